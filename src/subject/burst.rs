//! Containers of one subject that are started one after the other or several at a time, each by one command, and removed in the
//! same way. What fails is counted, and the rest goes on, unless nothing works any more.
//!
//! Deliberately absent: what the times mean.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use super::ramp::Reserve;
use super::{Container, ContainerRequest, RunContext, Span, Subject};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::units::Stamp;

/// After so many failures in a row there is nothing to learn from another one.
const HOPELESS: usize = 3;

/// A container that was started.
pub struct Started<'a> {
    /// It.
    pub container: Container<'a>,
    /// From the command until it had returned.
    pub span: Span,
    /// When its program executed its first instruction, where the clock inside is the one outside.
    pub first: Option<Stamp>,
}

/// What came of as many as were asked for.
#[derive(Default)]
pub struct Outcome<'a> {
    /// How many were asked for.
    pub asked: usize,
    /// Those that run, in the order in which they were begun.
    pub started: Vec<Started<'a>>,
    /// Why others do not.
    pub failed: Vec<Failure>,
}

/// What all workers share.
struct Shared<'a> {
    outcome: Outcome<'a>,
    asked: usize,
    /// Those that are being started.
    coming: usize,
    in_a_row: usize,
    interrupted: bool,
}

/// Starts so many containers, of which so many are being started at a time; none once too little memory is left for others.
///
/// # Errors
/// If the user interrupts.
pub fn start<'a>(
    subject: &'a dyn Subject,
    request: &ContainerRequest,
    (count, at_once): (usize, usize),
    run: &'a RunContext,
) -> Result<Outcome<'a>, Abort> {
    let reserve = Reserve::begin(subject, None);
    let shared = Mutex::new(Shared {
        outcome: Outcome { asked: count, ..Outcome::default() },
        asked: 0,
        coming: 0,
        in_a_row: 0,
        interrupted: false,
    });
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || {
        let mut all = lock();
        // A command that has begun may end after an interrupt, and no further one begins.
        all.interrupted |= run.interrupts.asked();
        let goes_on = all.asked < count && all.in_a_row < HOPELESS && !all.interrupted;
        let known = (all.outcome.started.len(), all.coming);
        all.asked += usize::from(goes_on);
        all.coming += usize::from(goes_on);
        goes_on.then_some(known)
    };
    let one = |(alive, coming)| {
        reserve.map_or(Ok(()), |reserve| reserve.check(subject, alive, coming))?;
        let container = Container::run(subject, request, run)?;
        let span = container.created();
        Ok(Started { container, span, first: None })
    };
    let work = || {
        while let Some(known) = next() {
            let done = one(known);
            let mut all = lock();
            all.coming -= 1;
            match done {
                Ok(started) => {
                    all.in_a_row = 0;
                    all.outcome.started.push(started);
                }
                Err(Abort::Interrupted) => all.interrupted = true,
                Err(Abort::Failed(why)) => {
                    all.in_a_row += 1;
                    all.outcome.failed.push(why);
                }
            }
        }
    };
    each(at_once, &work);
    let Shared { mut outcome, interrupted, .. } = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    if interrupted {
        outcome.discard(at_once);
        return Err(Abort::Interrupted);
    }
    outcome.started.sort_by_key(|one| one.span.began);
    Ok(outcome)
}

/// In this thread, or in so many of its own.
fn each(at_once: usize, work: &(impl Fn() + Sync)) {
    if at_once == 1 {
        return work();
    }
    thread::scope(|scope| {
        let spawned = |_: &usize| thread::Builder::new().spawn_scoped(scope, work).is_ok();
        // Where there can be no more threads, those that there are go on.
        if (0..at_once).take_while(spawned).count() == 0 {
            work();
        }
    });
}

impl<'a> Outcome<'a> {
    /// With those of another one, which were begun later.
    pub fn extend(&mut self, other: Outcome<'a>) {
        self.asked += other.asked;
        self.started.extend(other.started);
        self.failed.extend(other.failed);
    }

    /// Waits until all have said that they run. What has not is a failure, and is removed.
    ///
    /// # Errors
    /// If the user interrupts, or a container runs and is not as asked.
    pub fn until_ready(&mut self) -> Result<(), Abort> {
        for mut one in std::mem::take(&mut self.started) {
            match one.container.ready() {
                Ok(hello) => {
                    one.first = (!hello.inside.has_own_kernel()).then_some(hello.entry);
                    self.started.push(one);
                }
                Err(Abort::Failed(why)) if why.class != FailureClass::Treatment => self.failed.push(why),
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    /// Removes all in any state, so many at a time.
    fn discard(self, at_once: usize) {
        let rest = Mutex::new(self.started);
        each(at_once, &|| {
            while let Some(last) = rest.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                drop(last);
            }
        });
    }

    /// Removes all, so many at a time. Returns how long each took, in no order.
    ///
    /// # Errors
    /// The first one of any.
    pub fn remove(self, at_once: usize) -> Result<Vec<Span>, Abort> {
        let rest = Mutex::new(self.started);
        let spans = Mutex::new(Vec::new());
        let failed = Mutex::new(None);
        let work = || {
            loop {
                let last = rest.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some(Started { container, .. }) = last else { return };
                match container.end() {
                    Ok(span) => spans.lock().unwrap_or_else(PoisonError::into_inner).push(span),
                    Err(why) => {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
                    }
                }
            }
        };
        each(at_once, &work);
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(why),
            None => Ok(spans.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}
