//! Who takes part in an experiment, and which subject is its baseline: not every subject supports what every
//! experiment needs.

use super::{Entry, Plan, Request};
use crate::distinct;
use crate::experiment::{self, Experiment};

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

    /// The subjects without cells in an experiment, or in some of its settings, because they lack what it
    /// needs: the experiment, with the value of a key if only that is lacking; the subject; the reason. Without
    /// twins.
    pub fn lacking(&self, request: &Request) -> Vec<(String, &str, &'static str)> {
        let mut all = Vec::new();
        for one in request.experiments.iter().filter_map(|name| experiment::find(name)) {
            let settings = super::settings(one, &request.chosen);
            let required = distinct(settings.iter().flat_map(|setting| one.required(setting)));
            let of_values = required
                .into_iter()
                .map(|(key, value, need)| (format!("{} {key}={value}", one.name), need, Some(one.needs)));
            for (what, need, has) in [(one.name.to_owned(), one.needs, None)].into_iter().chain(of_values) {
                let lacks = |entry: &&Entry| {
                    let is_asked = entry.twin_of.is_none() && entry.takes_part_in(one.name);
                    let offers = |need| entry.offers.contains(&need);
                    is_asked && !offers(need) && has.is_none_or(offers)
                };
                let lacking = self.subjects.iter().filter(lacks);
                all.extend(lacking.map(|entry| (what.clone(), entry.label.as_str(), need.lacking())));
            }
        }
        all
    }
}
