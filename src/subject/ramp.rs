//! Containers of one subject that are alive at the same time, from step to step more or fewer. Deliberately absent: what they cost.

use super::{Container, ContainerRequest, RunContext, Subject};
use crate::outcome::{Abort, Failure};

/// What is done with a container once it runs.
pub type Furnish<'a> = Box<dyn FnMut(&mut Container<'_>) -> Result<(), Abort> + 'a>;

/// Any number of like containers.
pub struct Ramp<'a> {
    subject: &'a dyn Subject,
    request: ContainerRequest,
    run: &'a RunContext,
    furnish: Furnish<'a>,
    alive: Vec<Container<'a>>,
    /// Why there are no more; then no step goes up any more.
    ended: Option<Failure>,
}

impl<'a> Ramp<'a> {
    /// Without any container yet. This is done with each before the next one is made.
    pub fn new(
        subject: &'a dyn Subject,
        request: ContainerRequest,
        (furnish, run): (Furnish<'a>, &'a RunContext),
    ) -> Ramp<'a> {
        Ramp { subject, request, run, furnish, alive: Vec::new(), ended: None }
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
            && let Some(mut last) = self.alive.pop()
        {
            // Its program has nothing to finish, and may not wait for SIGTERM yet.
            last.stop(0)?;
            last.remove()?;
        }
        while self.alive.len() < wanted && self.ended.is_none() {
            match self.one_more() {
                Err(Abort::Failed(why)) if !self.alive.is_empty() => self.ended = Some(why),
                done => done?,
            }
        }
        Ok(())
    }

    fn one_more(&mut self) -> Result<(), Abort> {
        let mut container = Container::create(self.subject, &self.request, self.run)?;
        container.start()?;
        (self.furnish)(&mut container)?;
        self.alive.push(container);
        Ok(())
    }
}
