//! `ramp`: more containers from step to step, and none again.

use super::{Asked, Visit, Visited, sample_of};
use crate::experiment::ramp::containers;
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
        let mut sample = sample_of(vec![("began", step.span.began), ("reached", step.span.ended)], &[]);
        sample.counters.push(("containers".into(), step.containers as i64));
        if let Some(why) = step.why {
            let reason = format!("{} of {wanted} containers run: {}", step.containers, why.reason);
            sample.stamps.clear();
            sample.missing.push(("raised".into(), reason));
        }
        Ok(sample)
    }
}
