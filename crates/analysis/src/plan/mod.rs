//! What a run will do, fixed before anything is measured: cells, comparisons with their margins, the order of
//! every round, and the predicted time. A pure function of subjects, experiments, options and seed.

pub mod again;
mod cells;
pub mod factors;
mod pairs;
mod parts;
pub mod prediction;
mod relation;
mod rounds;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::cells::{Cell, Entry, Ladder};
pub use self::factors::{Factor, Factorial};
pub use self::prediction::Prediction;
pub use self::relation::{Comparison, Relation, Role};
use crate::experiment::{
    self, Compared, Experiment, ExperimentName, Metric, MetricFacts, Setting, SettingKey, Weight,
};
use crate::share;
use crate::stats::{Alpha, Margin};
pub use crate::subject::Layer;
use crate::units::{self, Nanos};
use parts::{baseline_among, members};

/// The number of verdicts of an experiment. Each kind holds together at 95 %, independently of the rest of
/// the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// The experiment's name.
    #[serde(deserialize_with = "experiment::read_name")]
    pub experiment: ExperimentName,
    /// Verdicts on the questions that are asked first ([`Plan::role`]); none in runs of older versions, where they are among the
    /// others.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub first: usize,
    /// All other verdicts asked for: comparisons, and effects of the factorial, × settings × decisive metrics.
    pub asked: usize,
    /// Controls: twins × settings × decisive metrics.
    pub controls: usize,
}

impl Verdicts {
    /// All of them but the controls.
    pub fn all_asked(&self) -> usize {
        self.first + self.asked
    }
}

/// What a run will do. `record::plan_file` describes its file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The seed of every order and every scripted value.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: usize,
    /// Warm-up rounds before them.
    pub warmups: usize,
    /// The index of the subject that all others are compared with.
    pub baseline: usize,
    /// The verdicts of each experiment that gives any; the level of each is 0.05 divided by the number of its
    /// kind.
    pub verdicts: Vec<Verdicts>,
    /// The time limit of one launch, after which it counts as hung.
    #[serde(rename = "allowed_ns", with = "units::whole_nanos")]
    pub allowed: Nanos,
    /// The subjects.
    pub subjects: Vec<Entry>,
    /// The cells; samples refer to them by index.
    pub cells: Vec<Cell>,
    /// The comparisons.
    #[serde(serialize_with = "share::fields")]
    pub comparisons: Vec<Comparison>,
    /// The smallest differences that matter, by experiment and metric.
    #[serde(serialize_with = "share::fields")]
    pub margins: Vec<FixedMargin>,
    /// The precision for which the number of rounds was computed from a pilot.
    pub precision: Option<Precision>,
    /// The rounds after which a run for a precision checks whether it is reached, and if so ends; the last is
    /// all of them. Empty if it does not check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<usize>,
    /// The complete factorial among the subjects, if factors are declared.
    pub factorial: Option<Factorial>,
    /// Experiments that are in fewer rounds than the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<Quota>,
    /// The user's predictions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// The time of work that its experiment does not know: from a trial, otherwise assumed.
    #[serde(rename = "unknown_ns", default, with = "units::whole_nanos")]
    pub unknown: Nanos,
}

/// A precision that the user asked for: half the width of the intervals of differences from the
/// baseline, as a share of the longer of the two medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The precision asked for.
    pub asked: f64,
    /// Rounds of the pilot, which are not part of the run.
    pub pilot_rounds: usize,
    /// The pilot's prediction for the rounds of the plan; none if it gave too few samples.
    pub predicted: Option<f64>,
    /// Whether more rounds would be needed than the run may have.
    pub capped: bool,
}

pub use rounds::Quota;

/// The default time limit of a launch.
pub const ALLOWED: Nanos = Nanos::from_millis(60_000);

/// The smallest difference of a metric that matters, as fixed before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FixedMargin {
    /// The experiment's name.
    pub experiment: String,
    /// The metric's name.
    pub metric: String,
    /// The size.
    #[serde(flatten)]
    pub margin: Margin,
}

/// A key of experiments with its chosen values.
pub type Chosen = (String, Vec<String>);

/// The input of a plan.
#[derive(Debug, Clone)]
pub struct Request {
    /// The experiments.
    pub experiments: Vec<&'static str>,
    /// The subjects, without twins.
    pub subjects: Vec<Entry>,
    /// Values chosen for keys of experiments, by key or `experiment.key`; other keys take all their values.
    pub chosen: Vec<Chosen>,
    /// The seed.
    pub seed: u64,
    /// How to find the number of rounds.
    pub rounds: Rounds,
    /// The time limit of one launch.
    pub allowed: Nanos,
    /// The user's margins; metrics without one keep their own.
    pub margins: Vec<FixedMargin>,
    /// The factorial among the subjects.
    pub factorial: Option<Factorial>,
    /// The predictions; pairs that are not compared otherwise are compared for them.
    pub predictions: Vec<Prediction>,
    /// The time of the work in its trial, if there was one.
    pub trial: Option<Nanos>,
}

/// How the number of rounds is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rounds {
    /// Given.
    Fixed(usize),
    /// As many as fit into this time, but enough for a verdict, and no more than are useful.
    Fit(Nanos),
    /// As many as a pilot finds necessary for this precision; before that, the minimum.
    Precise(f64),
}

/// Rounds of a pilot.
pub const PILOT_ROUNDS: usize = 15;
/// A run for a precision takes at most this long, unless verdicts need more.
pub const PRECISE_TIME: Nanos = Nanos::from_millis(3_600_000);
/// It has at most this many rounds.
pub const MOST_PRECISE_ROUNDS: usize = 1000;

/// Further rounds make no interval of a start usefully narrower.
const MOST_ROUNDS: usize = 40;
/// Added to the minimum, so that a failure or two do not cost the verdict, and the interval is not the
/// whole range.
const SPARE_ROUNDS: usize = 2;

/// Makes the plan. Subjects must have distinct labels, and there must be at least one.
pub fn make(request: Request) -> Plan {
    let experiments: Vec<_> = request.experiments.iter().filter_map(|name| experiment::find(name)).collect();
    let subjects = with_twins(request.subjects, &experiments);
    let everyone: Vec<_> = (0..subjects.len()).collect();
    let baseline = baseline_among(&subjects, &everyone);
    let cells_of = |experiment: &&'static Experiment| {
        let own = cells(experiment, &settings(experiment, &request.chosen), &subjects);
        let chosen = experiment::chosen_settings(experiment, |key| values(experiment, &request.chosen, key));
        // What all is compared with answers nothing alone.
        if own.iter().any(|cell| chosen.contains(&cell.setting)) { own } else { Vec::new() }
    };
    let cells = experiments.iter().flat_map(cells_of).collect();
    let mut plan = Plan {
        seed: request.seed,
        warmups: 1,
        subjects,
        cells,
        baseline,
        margins: margins(&experiments, request.margins),
        allowed: request.allowed,
        factorial: request.factorial,
        predictions: request.predictions,
        unknown: request.trial.or(experiments.iter().find_map(|one| one.unknown)).unwrap_or_default(),
        ..Plan::default()
    };
    plan.compare(&experiments);
    let predicted = prediction::comparisons_wanted(&plan);
    plan.comparisons.extend(predicted);
    plan.verdicts = plan.count_verdicts();
    plan.quotas = rounds::quotas(&plan, request.rounds);
    if plan.cells.iter().all(|cell| !plan.warms_up(cell.experiment)) {
        plan.warmups = 0;
    }
    plan.rounds = match request.rounds {
        Rounds::Fixed(rounds) => rounds,
        Rounds::Fit(time) => plan.rounds_within(time, MOST_ROUNDS),
        Rounds::Precise(_) => plan.rounds_for_verdicts(),
    };
    plan
}

impl Plan {
    /// Whether a subject was asked for: it is neither the twin nor the variant of another.
    pub fn is_original(&self, subject: usize) -> bool {
        let entry = &self.subjects[subject];
        entry.twin_of.is_none() && entry.variant_of.is_none()
    }

    /// The cell of a subject in this experiment and setting.
    pub fn cell_of(&self, experiment: &str, setting: &Setting, subject: usize) -> Option<usize> {
        let fits =
            |one: &Cell| one.subject == subject && one.experiment == experiment && one.setting == *setting;
        self.cells.iter().position(fits)
    }

    /// The number of verdicts of each experiment: each comparison gives one for every setting that it is about and
    /// in which its subject has a cell, and every decisive metric.
    pub fn count_verdicts(&self) -> Vec<Verdicts> {
        let decisive = |one: &Comparison, cell: &Cell, role: Role| {
            let metrics = self.metrics(cell).iter().enumerate();
            let own = metrics.filter(|(at, metric)| {
                metric.weight == Weight::Verdict && self.possible_role(one, cell, *at) == role
            });
            own.count()
        };
        let in_role = |experiment: &str, role: Role| {
            let own = self.comparisons.iter().filter(|one| one.experiment == experiment);
            let of = |one: &Comparison| {
                let cells = self.cells.iter().filter(|cell| one.is_about(cell));
                cells.map(|cell| decisive(one, cell, role)).sum::<usize>()
            };
            own.map(of).sum::<usize>()
        };
        let verdicts = |experiment: &'static str| Verdicts {
            experiment,
            first: in_role(experiment, Role::First),
            asked: in_role(experiment, Role::Asked) + self.factorial_verdicts(experiment),
            controls: in_role(experiment, Role::Control),
        };
        let names = crate::distinct(self.cells.iter().map(|cell| cell.experiment));
        names.into_iter().map(verdicts).filter(|one| one.all_asked() + one.controls > 0).collect()
    }

    /// The verdicts of an experiment.
    pub fn verdicts_of(&self, experiment: &str) -> Option<&Verdicts> {
        self.verdicts.iter().find(|one| one.experiment == experiment)
    }

    /// The number of verdicts asked for, over all experiments.
    pub fn verdicts_asked(&self) -> usize {
        self.verdicts.iter().map(Verdicts::all_asked).sum()
    }

    /// The level of a single verdict of an experiment.
    pub fn alpha(&self, experiment: &str) -> Alpha {
        self.alpha_for(experiment, Role::Asked)
    }

    /// The level of a comparison of an experiment.
    pub fn alpha_for(&self, experiment: &str, role: Role) -> Alpha {
        let shared = self.verdicts_of(experiment).map_or(0, |one| match role {
            Role::Control => one.controls,
            Role::Asked | Role::Described if one.asked > 0 => one.asked,
            Role::First | Role::Asked | Role::Described => one.first,
        });
        self.level(shared)
    }

    /// What a comparison is for, in the setting of a cell and a metric.
    pub fn role(&self, comparison: usize, cell: usize, metric: usize) -> Role {
        let (comparison, cell) = (&self.comparisons[comparison], &self.cells[cell]);
        match self.possible_role(comparison, cell, metric) {
            // In runs of older versions they are among the others.
            Role::First if self.verdicts_of(cell.experiment).is_none_or(|own| own.first == 0) => Role::Asked,
            role => role,
        }
    }

    /// The same in a plan of this version. Asked first is what people ask: which of two that were chosen, by the first metric that
    /// decides, in the first setting; and whether a setting differs from its control.
    fn possible_role(&self, comparison: &Comparison, cell: &Cell, metric: usize) -> Role {
        let role = comparison.relation.role();
        let decisive = |metric: &Metric| metric.weight == Weight::Verdict;
        let is_first_metric = self.metrics(cell).iter().position(decisive) == Some(metric);
        let is_first_setting = || {
            let own = self.cells.iter().filter(|one| one.experiment == cell.experiment);
            let first = own.map(|one| one.asks().rank_of(&one.setting)).min();
            first == Some(cell.asks().rank_of(&cell.setting))
        };
        let is_chosen = || {
            let both = [comparison.subject, comparison.against];
            both.into_iter().all(|one| self.is_original(one)) || cell.asks().compares == Compared::OneKey
        };
        let is_question = || match comparison.relation {
            Relation::Choice | Relation::OneKey { .. } | Relation::KeyAndMore { .. } => {
                is_chosen() && is_first_setting()
            }
            Relation::OneSetting { .. } => true,
            Relation::Baseline
            | Relation::Twin
            | Relation::Step
            | Relation::Predicted
            | Relation::Several => false,
        };
        if role == Role::Asked && is_first_metric && is_question() { Role::First } else { role }
    }

    /// The smallest difference of an experiment's metric that matters: as fixed in the plan, otherwise the
    /// program's own.
    pub fn margin_of(&self, experiment: &str, metric: &Metric) -> Margin {
        let fits = |one: &&FixedMargin| one.experiment == experiment && one.metric == metric.name;
        self.margins.iter().find(fits).map_or(metric.margin, |one| one.margin)
    }

    /// The metrics of an experiment, with this plan's margins.
    pub fn metric_facts(&self, about: &Experiment) -> Vec<MetricFacts> {
        let facts = |metric: &Metric| MetricFacts {
            name: metric.name,
            unit: metric.unit,
            better: metric.better,
            meaning: metric.meaning,
            decisive: metric.weight == Weight::Verdict,
            margin: self.margin_of(about.name, metric).parts(),
        };
        about.metrics.iter().map(facts).collect()
    }

    /// The subject of a cell.
    pub fn entry(&self, cell: usize) -> &Entry {
        &self.subjects[self.cells[cell].subject]
    }

    /// The name of a cell in a sentence.
    pub fn named(&self, cell: usize) -> String {
        let (label, own) = (&self.entry(cell).label, &self.cells[cell]);
        format!("`{label}`{}", Setting(self.telling(own.experiment, &own.setting)).in_brackets())
    }

    /// The keys of a setting whose values differ among the cells of an experiment, with their values.
    pub fn telling(&self, experiment: &str, setting: &Setting) -> Vec<(&'static str, &'static str)> {
        let cells = || self.cells.iter().filter(|cell| cell.experiment == experiment);
        let differs = |(key, value): &&(&'static str, &'static str)| {
            cells().any(|cell| cell.setting.get(key) != Some(*value))
        };
        setting.0.iter().filter(differs).copied().collect()
    }

    /// The metrics of a cell.
    pub fn metrics(&self, cell: &Cell) -> &'static [Metric] {
        cell.asks().metrics
    }
}

/// The margins of all metrics: the user's if there is one, otherwise the program's.
fn margins(experiments: &[&'static Experiment], given: Vec<FixedMargin>) -> Vec<FixedMargin> {
    let own = |name: &str, metric: &Metric| {
        given.iter().find(|one| one.experiment == name && one.metric == metric.name).map(|one| one.margin)
    };
    let fixed = |experiment: &&'static Experiment| {
        let one = |metric: &Metric| FixedMargin {
            experiment: experiment.name.to_owned(),
            metric: metric.name.to_owned(),
            margin: own(experiment.name, metric).unwrap_or(metric.margin),
        };
        experiment.metrics.iter().map(one).collect::<Vec<_>>()
    };
    experiments.iter().flat_map(fixed).collect()
}

/// The settings of an experiment with these values chosen: by key, or by `experiment.key` for one experiment
/// only. A guarded key is part of them only if values were chosen for it.
pub fn settings(experiment: &Experiment, chosen: &[Chosen]) -> Vec<Setting> {
    experiment::settings_of(experiment, |key| values(experiment, chosen, key))
}

/// The values of a key: those that were chosen, otherwise its own.
fn values(experiment: &Experiment, chosen: &[Chosen], key: &SettingKey) -> Vec<&'static str> {
    let by = |name: &str| chosen.iter().find(|(own, _)| own == name);
    let own = by(&key_of(experiment, key)).or_else(|| by(key.name));
    let is_guarded = || experiment.guarded.iter().any(|one| one.name == key.name);
    if own.is_none() && key.formerly.is_none() && is_guarded() {
        return Vec::new();
    }
    let Some((_, chosen)) = own else { return key.values.to_vec() };
    let wanted = |value: &&'static str| chosen.iter().any(|one| one == value);
    let listed = key.values.iter().copied().filter(wanted);
    let others = chosen.iter().filter(|value| !key.values.contains(&value.as_str()));
    listed.chain(others.filter_map(|value| key.take(value).ok())).collect()
}

/// The name of a key for one experiment only.
pub fn key_of(experiment: &Experiment, key: &SettingKey) -> String {
    format!("{}.{}", experiment.name, key.name)
}

fn cells(experiment: &Experiment, settings: &[Setting], subjects: &[Entry]) -> Vec<Cell> {
    let members = members(experiment, subjects);
    let all = settings.iter().flat_map(|setting| members.iter().map(move |&subject| (setting, subject)));
    let has = |(setting, subject): &(&Setting, usize)| {
        let entry = &subjects[*subject];
        (entry.twin_of.is_none() || (experiment.twins)(setting, entry.layer))
            && (entry.variant_of.is_none() || (experiment.varies_in)(setting))
            && experiment.required(setting).all(|(.., need)| entry.offers.contains(&need))
    };
    all.filter(has)
        .map(|(setting, subject)| Cell { experiment: experiment.name, setting: setting.clone(), subject })
        .collect()
}

/// Adds a twin for the baseline and for the first subject of each layer, among those with verdicts.
fn with_twins(mut subjects: Vec<Entry>, experiments: &[&'static Experiment]) -> Vec<Entry> {
    let everyone: Vec<_> = (0..subjects.len()).collect();
    let mut doubled = BTreeSet::from([baseline_among(&subjects, &everyone)]);
    for layer in [Layer::Bare, Layer::Floor, Layer::Runtime, Layer::Engine] {
        doubled.extend(subjects.iter().position(|entry| entry.layer == layer));
    }
    let deciding = experiments.iter().filter(|experiment| experiment.decides());
    let judged: BTreeSet<_> = deciding.flat_map(|experiment| members(experiment, &subjects)).collect();
    for index in doubled.intersection(&judged).copied() {
        let mut twin = subjects[index].clone();
        twin.label.push_str(" (twin)");
        twin.twin_of = Some(index);
        subjects.push(twin);
    }
    subjects
}
