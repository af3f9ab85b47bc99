//! What the subjects add to a job of a given length: differences from the baseline as shares of that length.

use serde::Serialize;

use super::Report;
use crate::experiment::Event;
use crate::stats::Estimate;
use crate::verdict::{Finding, Kind, Verdict};

/// When the shares of a job apply, in a sentence.
pub const JOB_HOLDS: &str = "Medians of the differences round by round as shares of the job, with their intervals. They apply to jobs that wait \
    for one such event each and compute as fast inside as outside.";

/// A job, and what each subject adds to it.
#[derive(Debug, Clone, Serialize)]
pub struct Job {
    /// How long the job alone takes, in seconds.
    #[serde(rename = "length_s")]
    pub length: f64,
    /// By experiment, setting and subject.
    pub shares: Vec<JobShare>,
}

/// What a subject adds to a job.
#[derive(Debug, Clone, Serialize)]
pub struct JobShare {
    /// What happens once per job, such as `launch`.
    pub event: &'static str,
    /// The difference divided by the length of the job.
    pub share: Estimate,
    /// The finding about the subject.
    #[serde(flatten)]
    pub finding: Finding,
    /// The verdict in a word, by the unit and direction of the metric.
    #[serde(rename = "verdict")]
    pub kind: Kind,
}

impl Report {
    /// The same report, with shares of a job of this length.
    pub fn with_job(mut self, length: f64) -> Report {
        let mut shares: Vec<JobShare> = Vec::new();
        for one in &self.experiments {
            let event = match one.about.event {
                Event::Once(event) => event,
                Event::Whole => one.name,
                _ => continue,
            };
            for finding in one.rows().filter_map(|(_, _, row)| row.found(0)) {
                let is_known = shares.iter().any(|known| known.finding.cell == finding.cell);
                let is_believed = !matches!(finding.verdict, Verdict::Suspect(_));
                let Some(difference) = finding.difference.filter(|_| is_believed && !is_known) else {
                    continue;
                };
                let share = difference.map(|value| value / length);
                shares.push(JobShare { event, share, finding: finding.clone(), kind: finding.kind() });
            }
        }
        self.job = Some(Job { length, shares });
        self
    }
}
