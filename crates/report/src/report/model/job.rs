//! What the subjects take of a job whose length the reader names: differences from the baseline over that length.

use serde::Serialize;

use super::{Change, Report, Row};
use crate::experiment::{self, Occasion};
use crate::stats::{Estimate, Interval};
use crate::verdict::{Kind, Verdict};

/// When the shares of a job hold, in a sentence.
pub const JOB_HOLDS: &str = "Medians of the differences round by round over the length of the job, with their intervals; they hold for jobs that \
    wait for what is named, one after the other, and compute inside as fast as outside.";

/// A job, and what each subject adds to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// How long it takes by itself, in seconds.
    #[serde(rename = "length_s")]
    pub length: f64,
    /// By experiment, setting and subject.
    pub shares: Vec<JobShare>,
}

/// What a subject adds to a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobShare {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What happens once in the job: `launch`.
    pub occasion: &'static str,
    /// The setting as `key=value` joined by `;`.
    pub setting: String,
    /// The same, only the values.
    #[serde(skip)]
    pub values: String,
    /// The label of the subject.
    pub label: String,
    /// The label of what it is compared with.
    pub against: String,
    /// The difference from it over the length of the job.
    pub share: Estimate,
    /// The verdict on the difference.
    #[serde(skip)]
    pub verdict: Verdict,
    /// The same in a word, by the metric's unit and direction.
    #[serde(rename = "verdict")]
    pub kind: Kind,
    /// The same in a word for people.
    #[serde(skip)]
    pub word: &'static str,
}

impl Report {
    /// The same report for a reader with jobs of this length.
    pub fn with_job(mut self, length: f64) -> Report {
        let mut shares: Vec<JobShare> = Vec::new();
        for one in &self.experiments {
            let Some(Occasion::Once(occasion)) =
                experiment::find(one.name).map(|found| found.about().occasion)
            else {
                continue;
            };
            for (setting, ladder, row) in one.rows() {
                let known = |share: &JobShare| {
                    share.experiment == one.name && share.label == row.label && share.setting == setting.text
                };
                let Some((share, change)) = share(row, length).filter(|_| !shares.iter().any(known)) else {
                    continue;
                };
                shares.push(JobShare {
                    experiment: one.name,
                    occasion,
                    setting: setting.text.clone(),
                    values: setting.values.clone(),
                    label: row.label.clone(),
                    against: ladder.baseline.clone(),
                    share,
                    verdict: change.verdict.clone(),
                    kind: change.kind,
                    word: change.word(),
                });
            }
        }
        self.job = Some(Job { length, shares });
        self
    }
}

/// The difference from the baseline over the length, where numbers are to be believed.
fn share(row: &Row, length: f64) -> Option<(Estimate, &Change)> {
    let change = row.against_baseline.first()?.as_ref()?;
    let difference = change.difference.filter(|_| !matches!(change.verdict, Verdict::Suspect(_)))?;
    let over = |interval: Interval| Interval {
        low: interval.low / length,
        high: interval.high / length,
        ..interval
    };
    let share =
        Estimate { value: difference.value / length, interval: difference.interval.map(over), ..difference };
    Some((share, change))
}
