//! The plan of a run that was measured already and is known by its samples alone: the cells as they were, and the
//! comparisons as a plan would have fixed them beforehand.

use super::{ALLOWED, Cell, Comparison, Entry, Ladder, Layer, Plan, Quota, margins, pairs, parts};
use crate::experiment;
use crate::subject::Spec;

/// What is known of it.
#[derive(Debug)]
pub struct Measured {
    /// Its subjects.
    pub subjects: Vec<Entry>,
    /// Its cells.
    pub cells: Vec<Cell>,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds before them.
    pub warmups: usize,
    /// Experiments that are in fewer rounds than the others.
    pub quotas: Vec<Quota>,
    /// Whether samples of different cells belong together.
    pub pairing: Pairing,
}

/// Whether samples of different cells belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Those of one round do: subjects are compared.
    ByRound,
    /// None do: nothing is compared, and there are no verdicts.
    None,
}

/// The ladder of a subject: an engine is on equal ground with others where it has no network, keeps no log and filters
/// system calls, whether it was asked to or does so by itself.
pub fn ladder_of(spec: &Spec, layer: Layer) -> Ladder {
    let is = |key: &str, value: &str| pairs::in_force(spec, key) == Some(value);
    match layer == Layer::Engine && is("net", "none") && is("log", "none") && !is("seccomp", "off") {
        true => Ladder::Equalised,
        false => Ladder::AsInstalled,
    }
}

/// Makes the plan.
pub fn of(measured: Measured) -> Plan {
    let Measured { subjects, cells, rounds, warmups, quotas, pairing } = measured;
    let mut names: Vec<&'static str> = Vec::new();
    for cell in &cells {
        if !names.contains(&cell.experiment) {
            names.push(cell.experiment);
        }
    }
    let experiments: Vec<_> = names.iter().filter_map(|name| experiment::find(name)).collect();
    let compared = |name: &'static str| {
        let takes_part =
            |index: &usize| cells.iter().any(|cell| cell.subject == *index && cell.experiment == name);
        let members: Vec<_> = (0..subjects.len()).filter(takes_part).collect();
        let baseline = parts::baseline_among(&subjects, &members);
        let all = pairs::of(&subjects, &members, baseline).into_iter();
        all.map(move |(subject, against, relation)| Comparison {
            experiment: name,
            subject,
            against,
            relation,
        })
    };
    let deciding = experiments.iter().filter(|one| one.about().decides() && pairing == Pairing::ByRound);
    let comparisons: Vec<_> = deciding.flat_map(|one| compared(one.about().name)).collect();
    let everyone: Vec<_> = (0..subjects.len()).collect();
    let mut plan = Plan {
        seed: 0,
        rounds,
        warmups,
        baseline: parts::baseline_among(&subjects, &everyone),
        margins: margins(&experiments, Vec::new()),
        subjects,
        cells,
        comparisons,
        verdicts: Vec::new(),
        allowed: ALLOWED,
        precision: None,
        factorial: None,
        quotas,
        predictions: Vec::new(),
    };
    plan.verdicts = plan.count_verdicts();
    plan
}
