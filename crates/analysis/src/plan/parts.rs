//! Who takes part in an experiment, and which subject is its baseline: not every subject supports what every
//! experiment needs.

use super::{Entry, Plan};
use crate::experiment::{self, Experiment};
use crate::subject::Need;

/// The indices of the subjects that support what an experiment needs. Twins are left out of experiments
/// without verdicts.
pub(super) fn members(experiment: &Experiment, subjects: &[Entry]) -> Vec<usize> {
    let takes_part = |index: &usize| {
        let entry = &subjects[*index];
        let is_needed = entry.twin_of.is_none() || experiment.decides();
        entry.takes_part_in(experiment.name) && entry.offers.contains(&experiment.needs) && is_needed
    };
    (0..subjects.len()).filter(takes_part).collect()
}

/// `bare` if it is a member, otherwise `floor`, otherwise the first member.
pub(super) fn baseline_among(subjects: &[Entry], members: &[usize]) -> usize {
    let original = |index: &usize| subjects[*index].twin_of.is_none();
    let named = |name: &str| {
        members.iter().copied().filter(original).find(|&index| subjects[index].spec.name == name)
    };
    named("bare").or_else(|| named("floor")).or_else(|| members.first().copied()).unwrap_or(0)
}

impl Entry {
    /// Whether it is meant for this experiment; what the experiment needs is not checked.
    pub fn takes_part_in(&self, experiment: &str) -> bool {
        self.only_in.is_empty() || self.only_in.contains(&experiment)
    }
}

impl Plan {
    /// The baseline of an experiment: the run's baseline, unless it lacks what the experiment needs.
    pub fn baseline_of(&self, experiment: &str) -> usize {
        baseline_among(&self.subjects, &self.members_of(experiment))
    }

    /// The subjects that have cells in an experiment.
    pub(super) fn members_of(&self, experiment: &str) -> Vec<usize> {
        let takes_part = |index: &usize| {
            self.cells.iter().any(|cell| cell.subject == *index && cell.experiment == experiment)
        };
        (0..self.subjects.len()).filter(takes_part).collect()
    }

    /// The subjects without cells in an experiment because they lack what it needs: the experiment, the
    /// subject, the reason. Without twins.
    pub fn lacking<'a>(
        &'a self,
        experiments: &'a [&'static str],
    ) -> impl Iterator<Item = (&'static str, &'a str, &'static str)> {
        let originals = || self.subjects.iter().filter(|entry| entry.twin_of.is_none());
        experiments.iter().flat_map(move |name| {
            let need = experiment::find(name).map(|experiment| experiment.needs);
            let lacks = move |entry: &&Entry| {
                entry.takes_part_in(name) && need.is_some_and(|need| !entry.offers.contains(&need))
            };
            originals()
                .filter(lacks)
                .map(move |entry| (*name, entry.label.as_str(), need.map_or("", Need::lacking)))
        })
    }
}
