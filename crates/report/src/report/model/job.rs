//! What the subjects take of a job whose length the reader names: differences from the baseline over that length.

use serde::Serialize;

use super::Report;
use crate::experiment::{self, Event};
use crate::stats::Estimate;
use crate::verdict::{Finding, Kind, Verdict};

/// When the shares of a job hold, in a sentence.
pub const JOB_HOLDS: &str = "Medians of the differences round by round over the length of the job, with their intervals; they hold for jobs that \
    wait for what is named, one after the other, and compute inside as fast as outside.";

/// A job, and what each subject adds to it.
#[derive(Debug, Clone, Serialize)]
pub struct Job {
    /// How long it takes by itself, in seconds.
    #[serde(rename = "length_s")]
    pub length: f64,
    /// By experiment, setting and subject.
    pub shares: Vec<JobShare>,
}

/// What a subject adds to a job.
#[derive(Debug, Clone, Serialize)]
pub struct JobShare {
    /// What happens once in the job: `launch`.
    pub event: &'static str,
    /// The difference over the length of the job.
    pub share: Estimate,
    /// What was found of the subject.
    #[serde(flatten)]
    pub finding: Finding,
    /// The verdict in a word, by the metric's unit and direction.
    #[serde(rename = "verdict")]
    pub kind: Kind,
}

impl Report {
    /// The same report for a reader with jobs of this length.
    pub fn with_job(mut self, length: f64) -> Report {
        let mut shares: Vec<JobShare> = Vec::new();
        for one in &self.experiments {
            let event = match experiment::find(one.name).map(|found| found.event) {
                Some(Event::Once(event)) => event,
                Some(Event::Whole) => one.name,
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
