//! `ramp`: more containers from step to step, and none again.

use super::{Asked, Visit, Visited};
use crate::experiment::ramp::containers;
use crate::experiment::ramp::names::{BEGAN, CONTAINERS, REACHED};
use crate::outcome::{Abort, Sample};
use crate::subject::ContainerRequest;
use crate::subject::ramp::Ramp;

struct Ramped<'a>(Ramp<'a>);

/// Begins a visit.
pub(super) fn begin<'a>(visited: Visited<'a>) -> Box<dyn Visit + 'a> {
    Box::new(Ramped(Ramp::new(visited.subject, ContainerRequest::default(), visited.run)))
}

impl Visit for Ramped<'_> {
    fn take(&mut self, (_, setting): Asked<'_>) -> Result<Sample, Abort> {
        let wanted = containers(setting);
        let step = self.0.step(wanted)?;
        let mut sample = Sample::default();
        sample.add(CONTAINERS, step.containers as i64);
        match step.why {
            None => sample.extend([(BEGAN, step.span.began), (REACHED, step.span.ended)]),
            Some(why) => {
                let said = why.words.unwrap_or(why.reason);
                let reason = format!("{} of {wanted} containers run: {said}", step.containers);
                sample.lacks(&["raised"], &reason);
            }
        }
        Ok(sample)
    }
}
