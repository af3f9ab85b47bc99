//! Containers of one subject that are alive at the same time, from step to step more or fewer. Deliberately absent: what they cost.

use super::{Container, ContainerRequest, RunContext, Subject};
use crate::outcome::{Abort, Failure};
use crate::units::Unit;

/// So much of the machine's memory, or one in so many bytes of it if that is more, is left to others.
const RESERVE: i64 = 512 << 20;
const SHARE: i64 = 20;
/// What one that is being started may take before anything is known of it.
const COMING: i64 = 32 << 20;

/// What is done with a container once it runs.
pub type Furnish<'a> = Box<dyn FnMut(&mut Container<'_>) -> Result<(), Abort> + 'a>;

/// Memory of the machine that is left to others while containers are started.
#[derive(Debug, Clone, Copy)]
pub struct Reserve {
    bytes: i64,
    /// What was available before the first container.
    before: i64,
}

impl Reserve {
    /// So many bytes, or as many as are usual; none where there is no limit.
    pub fn begin(subject: &dyn Subject, bytes: Option<i64>) -> Option<Reserve> {
        let memory = subject.machine().memory_now()?;
        let usual = || RESERVE.max(memory.total / SHARE);
        Some(Reserve { bytes: bytes.unwrap_or_else(usual), before: memory.available })
    }

    /// Why there cannot be one more container next to so many, each of which takes as much, and to so many that are being started.
    ///
    /// # Errors
    /// If that takes of the reserve.
    pub fn check(self, subject: &dyn Subject, alive: usize, coming: usize) -> Result<(), Failure> {
        let Some(memory) = subject.machine().memory_now() else { return Ok(()) };
        let Err(each) = self.keeps(memory.available, alive, coming) else { return Ok(()) };
        let [available, reserve, each] =
            [memory.available, self.bytes, each].map(|bytes| Unit::Bytes.format(bytes as f64));
        Err(Failure::environment(format!(
            "{available} of memory are available, of which {reserve} are left to others, and one more may take {each}"
        )))
    }
}

impl Reserve {
    /// Whether that much is left; otherwise what one more may take.
    fn keeps(self, available: i64, alive: usize, coming: usize) -> Result<(), i64> {
        let known = (self.before - available).max(0) / alive.max(1) as i64;
        // Clients are there until the container is.
        let each = if coming > 0 { known.max(COMING) } else { known };
        if available - each * (coming as i64 + 1) >= self.bytes { Ok(()) } else { Err(each) }
    }
}

/// Any number of like containers.
pub struct Ramp<'a> {
    subject: &'a dyn Subject,
    request: ContainerRequest,
    run: &'a RunContext,
    furnish: Furnish<'a>,
    alive: Vec<Container<'a>>,
    /// Why there are no more; then no step goes up any more.
    ended: Option<Failure>,
    reserve: Option<Reserve>,
}

impl<'a> Ramp<'a> {
    /// Without any container yet. This is done with each before the next one is made.
    pub fn new(
        subject: &'a dyn Subject,
        request: ContainerRequest,
        (furnish, run): (Furnish<'a>, &'a RunContext),
    ) -> Ramp<'a> {
        let reserve = Reserve::begin(subject, None);
        Ramp { subject, request, run, furnish, alive: Vec::new(), ended: None, reserve }
    }

    /// The same that leaves so much memory of the machine to others.
    pub fn leaving(self, bytes: Option<i64>) -> Ramp<'a> {
        Ramp { reserve: Reserve::begin(self.subject, bytes), ..self }
    }

    /// The containers that run, the oldest first.
    pub fn alive(&mut self) -> &mut [Container<'a>] {
        &mut self.alive
    }

    /// Why there are fewer than were asked for.
    pub fn ended(&self) -> Option<&Failure> {
        self.ended.as_ref()
    }

    /// Goes up or down to so many containers, one after the other. Where no more can be had, it stays at those that run; without any
    /// there is nothing to learn, and that is an error.
    pub fn step(&mut self, wanted: usize) -> Result<(), Abort> {
        while self.alive.len() > wanted
            && let Some(last) = self.alive.pop()
        {
            // Its program has nothing to finish, and may not wait for SIGTERM yet.
            last.end()?;
        }
        while self.alive.len() < wanted && self.ended.is_none() {
            if self.run.interrupts.asked() {
                return Err(Abort::Interrupted);
            }
            match self.one_more() {
                Err(Abort::Failed(why)) if !self.alive.is_empty() => self.ended = Some(why),
                done => done?,
            }
        }
        Ok(())
    }

    fn one_more(&mut self) -> Result<(), Abort> {
        self.reserve.map_or(Ok(()), |reserve| reserve.check(self.subject, self.alive.len(), 0))?;
        let mut container = Container::run(self.subject, &self.request, self.run)?;
        (self.furnish)(&mut container)?;
        self.alive.push(container);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_is_refused_before_it_takes_of_the_reserve() {
        const MEBIBYTES: i64 = 1 << 20;
        let reserve = Reserve { bytes: 512 * MEBIBYTES, before: 2048 * MEBIBYTES };
        let keeps = |available, alive, coming| reserve.keeps(available * MEBIBYTES, alive, coming);
        // Ten have taken 100 each: of 1048 one more leaves 948, and six at a time 448.
        assert_eq!((keeps(1048, 10, 0), keeps(1048, 10, 4)), (Ok(()), Ok(())));
        assert_eq!(keeps(1048, 10, 5), Err(1000 * MEBIBYTES / 10));
        assert_eq!(
            (keeps(612, 14, 0), keeps(600, 14, 0)),
            (Err(1436 * MEBIBYTES / 14), Err(1448 * MEBIBYTES / 14))
        );
        // Nothing is known of the first ones.
        assert_eq!(
            (keeps(2048, 0, 0), keeps(2048, 0, 47), keeps(2048, 0, 48)),
            (Ok(()), Ok(()), Err(COMING))
        );
        // Memory that others gave back is none that these took.
        assert_eq!(keeps(4096, 10, 0), Ok(()));
    }
}
