//! Containers of one subject that are alive at the same time, from step to step more or fewer. Deliberately absent: what they cost.

use super::{Container, ContainerRequest, GRACE, RunContext, Span, Subject};
use crate::outcome::{Abort, Failure};
use crate::units::Stamp;

/// Any number of like containers.
pub struct Ramp<'a> {
    subject: &'a dyn Subject,
    request: ContainerRequest,
    run: &'a RunContext,
    alive: Vec<Container<'a>>,
    /// Why there are no more; then no step goes up any more.
    ended: Option<Failure>,
}

/// What one step came to.
#[derive(Debug)]
pub struct Step {
    /// How many containers run.
    pub containers: usize,
    /// From the first verb of the step to the end of the last one.
    pub span: Span,
    /// Why there are fewer than were asked for.
    pub why: Option<Failure>,
}

impl<'a> Ramp<'a> {
    /// Without any container yet.
    pub fn new(subject: &'a dyn Subject, request: ContainerRequest, run: &'a RunContext) -> Ramp<'a> {
        Ramp { subject, request, run, alive: Vec::new(), ended: None }
    }

    /// The containers that run, the oldest first.
    pub fn alive(&mut self) -> &mut [Container<'a>] {
        &mut self.alive
    }

    /// Goes up or down to so many containers, one after the other. Where no more can be had, it stays at those that run.
    pub fn step(&mut self, wanted: usize) -> Result<Step, Abort> {
        let mut ends: Vec<Stamp> = Vec::new();
        while self.alive.len() > wanted
            && let Some(mut last) = self.alive.pop()
        {
            let stopped = last.stop(GRACE)?;
            ends.extend([stopped.began, last.remove()?.ended]);
        }
        while self.alive.len() < wanted && self.ended.is_none() {
            match self.one_more() {
                Ok(span) => ends.extend([span.began, span.ended]),
                Err(Abort::Failed(why)) => self.ended = Some(why),
                Err(interrupted) => return Err(interrupted),
            }
        }
        let none = Span::none();
        let ends = (ends.first().copied().unwrap_or(none.began), ends.last().copied().unwrap_or(none.ended));
        let span = Span { began: ends.0, ended: ends.1 };
        let why = self.ended.clone().filter(|_| self.alive.len() < wanted);
        Ok(Step { containers: self.alive.len(), span, why })
    }

    fn one_more(&mut self) -> Result<Span, Abort> {
        let mut container = Container::create(self.subject, &self.request, self.run)?;
        let began = container.created().began;
        let ended = container.start()?.ended;
        self.alive.push(container);
        Ok(Span { began, ended })
    }
}
