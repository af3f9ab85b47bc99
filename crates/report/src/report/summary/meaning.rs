//! What decided findings mean for kinds of jobs: the risk, when it matters, and what helps.

use serde::Serialize;

use super::{One, findings};
use crate::distinct;
use crate::experiment::{self, Concern, Event};
use crate::record::Recorded;
use crate::report::text::percent;
use crate::units::Unit;
use crate::verdict::{About, Analysis};

/// What a decided finding means for a kind of job.
#[derive(Debug, Clone, Serialize)]
pub struct Meaning {
    /// The kind of job.
    pub job: &'static str,
    /// The experiment that decided it.
    pub experiment: &'static str,
    /// What was decided, with its interval.
    pub risk: String,
    /// Which of these jobs it concerns.
    pub condition: String,
    /// What helps.
    pub remedy: &'static str,
    /// The findings it rests on; none where a model decides instead of a comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rests_on: Vec<About>,
}

/// All of them, by experiment, in the order of the plan.
pub fn meanings(run: &Recorded, analysis: &Analysis) -> Vec<Meaning> {
    let names = distinct(run.plan.cells.iter().map(|cell| cell.experiment));
    let concerned = names.into_iter().filter_map(|name| Some((name, experiment::find(name)?.concern?)));
    let of = |(name, concern): (&'static str, Concern)| {
        let own = analysis.experiment_tables.iter().filter(move |table| table.experiment == name);
        let own = own.flat_map(|table| &table.answers).filter(|one| one.is_decided);
        let own = own.map(|one| (one.text.clone(), "this load under this limit".to_owned(), Vec::new()));
        let compared = One::of(run, analysis, name).and_then(|one| one.risk());
        let Concern { job, remedy } = concern;
        let meaning = move |(risk, condition, rests_on)| Meaning {
            job,
            experiment: name,
            risk,
            condition,
            remedy,
            rests_on,
        };
        compared.into_iter().chain(own).map(meaning).collect::<Vec<_>>()
    };
    concerned.flat_map(of).collect()
}

impl One<'_> {
    /// What the highest layer adds to the baseline, and which jobs that concerns.
    fn risk(&self) -> Option<(String, String, Vec<About>)> {
        let layer =
            self.above_the_baseline().filter(|layer| !self.against_baseline(*layer).is_empty()).last()?;
        let mut more = self.more(layer);
        more.retain(|one| one.finding.metric == 0);
        let (range, metric) = (self.range(&more, ["from", "to"])?, &experiment::find(self.name)?.metrics[0]);
        let (_, share) = self.plan.margin_of(self.name, metric).parts();
        let low = more.iter().map(|one| one.interval.low).fold(f64::INFINITY, f64::min);
        let at = Unit::Seconds.format(low / share);
        let (what, which) = match self.event {
            Event::Once(what) => (what, format!("jobs of up to {at} that wait for one {what} each")),
            Event::Often(what) => {
                (what, format!("programs that make such a {what} every {at} or more often"))
            }
            Event::Held(_) | Event::Whole | Event::Works => return None,
        };
        let condition = format!("{which}: it adds more than {}", percent(share));
        let risk = format!("each {what} (`{}`) costs more than on {}: {range}", metric.name, self.baseline());
        let rests_on = findings(&more).into_iter().map(|finding| finding.about.clone()).collect();
        (share > 0.0).then_some((risk, condition, rests_on))
    }
}
