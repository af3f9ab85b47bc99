//! What a run will do, fixed before anything is measured: cells, comparisons with their margins,
//! the order of every round, and how long it will take. A pure function of subjects, experiments,
//! options and seed.

pub mod again;
mod cells;
pub mod factors;
mod pairs;
mod parts;
pub mod prediction;
mod rounds;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use self::cells::{Cell, Entry, Ladder};
pub use self::factors::{Factor, Factorial};
pub use self::prediction::Prediction;
use crate::experiment::{self, Experiment, ExperimentName, Metric, MetricFacts, Setting, SettingKey, Weight};
use crate::stats::{Alpha, Margin, Rng};
pub use crate::subject::Layer;
use crate::units::{self, Nanos};
use parts::{baseline_among, members};

/// Why two subjects are compared.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(tag = "relation", content = "key", rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Relation {
    /// The second is the baseline of the run.
    Baseline,
    /// Both are the same: what differs is noise.
    Twin,
    /// Both belong to one layer and one ladder, and a person chose them apart in at most one thing, with which others
    /// come along: another engine as it is installed.
    #[serde(rename = "one choice")]
    #[strum(serialize = "one choice")]
    Choice,
    /// The first stands one step above the second: what the step adds.
    Step,
    /// They differ in this one thing: a cause may be named.
    #[serde(rename = "one key")]
    #[strum(serialize = "one key")]
    OneKey(String),
    /// A person predicted how they compare.
    Predicted,
    /// Several things differ at once, and a reader asked to see them side by side: nothing is decided.
    #[serde(skip_deserializing)]
    Several,
}

impl Relation {
    /// The word used in files.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Which question it answers.
    pub fn role(&self) -> Role {
        match self {
            Relation::Twin => Role::Control,
            Relation::Several => Role::Described,
            _ => Role::Asked,
        }
    }
}

/// What a comparison is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is among the verdicts of its experiment.
    Asked,
    /// It watches the instrument, at a level that the controls of its experiment share.
    Control,
    /// It is shown with its interval.
    Described,
}

/// How many verdicts an experiment gives. Each kind holds together at 95 %, whatever else is in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// The experiment's name.
    #[serde(deserialize_with = "experiment::read_name")]
    pub experiment: ExperimentName,
    /// What is asked: comparisons, and effects of the factorial, × settings × decisive metrics.
    pub asked: usize,
    /// Controls: twins × settings × decisive metrics.
    pub controls: usize,
}

/// Two subjects that will be compared in every setting of an experiment, in every decisive metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The experiment's name.
    #[serde(deserialize_with = "experiment::read_name")]
    pub experiment: ExperimentName,
    /// The subject's index.
    pub subject: usize,
    /// The index of what it is compared with.
    pub against: usize,
    /// Why.
    #[serde(flatten)]
    pub relation: Relation,
}

/// What a run will do, and what its file says (`record::plan_file`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The seed of every order and every scripted value.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds before them that do not.
    pub warmups: usize,
    /// The index of the subject that all others are compared with.
    pub baseline: usize,
    /// By experiment that decides something, the verdicts that will be given; the level of each is 0.05 divided by
    /// the number of its kind.
    pub verdicts: Vec<Verdicts>,
    /// How long one launch may take before it counts as hung.
    #[serde(rename = "allowed_ns", with = "units::whole_nanos")]
    pub allowed: Nanos,
    /// The subjects.
    pub subjects: Vec<Entry>,
    /// The cells; samples refer to them by index.
    pub cells: Vec<Cell>,
    /// The comparisons.
    pub comparisons: Vec<Comparison>,
    /// The smallest differences that matter, by experiment and metric.
    pub margins: Vec<FixedMargin>,
    /// The precision for which the number of rounds was computed from a pilot.
    pub precision: Option<Precision>,
    /// The rounds after which a run for a precision looks whether it is reached, and then ends; the last are all. None
    /// where it does not look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<usize>,
    /// The complete factorial among the subjects, where factors are declared.
    pub factorial: Option<Factorial>,
    /// Experiments that are in fewer rounds than the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<Quota>,
    /// What a person predicted before measuring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// How long a work takes that its experiment does not know: as a trial told, else as it is taken for.
    #[serde(rename = "unknown_ns", default, with = "units::whole_nanos")]
    pub unknown: Nanos,
}

/// A precision that a person asked for: half the width of the intervals of differences from the
/// baseline, as a share of the longer of the two medians.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// What was asked for.
    pub asked: f64,
    /// Rounds that the pilot had; they are not part of the run.
    pub pilot_rounds: usize,
    /// What the pilot foretold for the rounds of the plan; none if it gave too few samples to say.
    pub predicted: Option<f64>,
    /// Whether more rounds would have been needed than the run may have.
    pub capped: bool,
}

pub use rounds::Quota;

/// How long a launch may take unless the person says otherwise.
pub const ALLOWED: Nanos = Nanos::from_millis(60_000);

/// The smallest difference of a metric that matters, as fixed before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FixedMargin {
    /// The experiment's name.
    pub experiment: String,
    /// The metric's name.
    pub metric: String,
    /// How much.
    #[serde(flatten)]
    pub margin: Margin,
}

/// A key of experiments with the values that were chosen for it.
pub type Chosen = (String, Vec<String>);

/// What a plan is made of.
#[derive(Debug, Clone)]
pub struct Request {
    /// The experiments.
    pub experiments: Vec<&'static str>,
    /// The subjects, without twins.
    pub subjects: Vec<Entry>,
    /// Values chosen for keys of experiments, by key or `experiment.key`; others take all of theirs.
    pub chosen: Vec<Chosen>,
    /// The seed.
    pub seed: u64,
    /// How many rounds.
    pub rounds: Rounds,
    /// How long one launch may take.
    pub allowed: Nanos,
    /// Margins that the person set; metrics without one keep their own.
    pub margins: Vec<FixedMargin>,
    /// The factorial among the subjects.
    pub factorial: Option<Factorial>,
    /// What is predicted; pairs that nobody compares are compared for it.
    pub predictions: Vec<Prediction>,
    /// How long a work took in its trial, where there was one.
    pub trial: Option<Nanos>,
}

/// How the number of rounds is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rounds {
    /// Given.
    Fixed(usize),
    /// As many as fit into this time, but enough for a verdict, and not more than are of use.
    Fit(Nanos),
    /// As many as a pilot finds necessary for this precision; until it has run, the fewest.
    Precise(f64),
}

/// Rounds of a pilot.
pub const PILOT_ROUNDS: usize = 15;
/// A run for a precision takes no longer than this, unless verdicts need it.
pub const PRECISE_TIME: Nanos = Nanos::from_millis(3_600_000);
/// And it has no more rounds than this.
pub const MOST_PRECISE_ROUNDS: usize = 1000;

/// Rounds beyond this narrow no interval that a start needs.
const MOST_ROUNDS: usize = 40;
/// More than the smallest possible number, so that a failure or two do not cost the verdict, and
/// the interval is not the whole range.
const SPARE_ROUNDS: usize = 2;
/// Bookkeeping per cell and round that is no part of a launch: journal, records, looking for
/// remains.
const OVERHEAD: Nanos = Nanos(2_500_000);

/// Makes the plan. Subjects must have distinct labels, and there must be at least one.
pub fn make(request: Request) -> Plan {
    let experiments: Vec<_> = request.experiments.iter().filter_map(|name| experiment::find(name)).collect();
    let subjects = with_twins(request.subjects, &experiments);
    let everyone: Vec<_> = (0..subjects.len()).collect();
    let baseline = baseline_among(&subjects, &everyone);
    let settings_of = |experiment: &'static Experiment| settings(experiment, &request.chosen);
    let cells = experiments
        .iter()
        .flat_map(|experiment| cells(experiment, &settings_of(experiment), &subjects))
        .collect();
    let deciding = experiments.iter().filter(|experiment| experiment.decides());
    let comparisons: Vec<_> = deciding
        .flat_map(|experiment| comparisons(experiment.name, &subjects, &members(experiment, &subjects)))
        .collect();
    let mut plan = Plan {
        seed: request.seed,
        warmups: 1,
        subjects,
        cells,
        comparisons,
        baseline,
        margins: margins(&experiments, request.margins),
        allowed: request.allowed,
        factorial: request.factorial,
        predictions: request.predictions,
        unknown: request.trial.or(experiments.iter().find_map(|one| one.unknown)).unwrap_or_default(),
        ..Plan::default()
    };
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
    /// Whether a subject stands for itself: it is neither the twin nor the variant of another.
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

    /// What is compared with what: each comparison with its cells, in every setting.
    pub fn compared(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let cells = |(index, one): (usize, &Comparison)| {
            let is_its = |cell: &Cell| cell.subject == one.subject && cell.experiment == one.experiment;
            let own = self.cells.iter().enumerate().filter(|(_, cell)| is_its(cell));
            let against = |cell: &Cell| self.cell_of(one.experiment, &cell.setting, one.against);
            own.filter_map(|(at, cell)| Some((index, at, against(cell)?))).collect::<Vec<_>>()
        };
        self.comparisons.iter().enumerate().flat_map(cells)
    }

    /// How many verdicts each experiment will give: each comparison gives one for every setting in which both
    /// subjects have a cell, and every decisive metric.
    pub fn count_verdicts(&self) -> Vec<Verdicts> {
        let decisive =
            |cell: &Cell| self.metrics(cell).iter().filter(|metric| metric.weight == Weight::Verdict).count();
        let of = |one: &Comparison| {
            let is_its = |cell: &&Cell| cell.subject == one.subject && cell.experiment == one.experiment;
            self.cells.iter().filter(is_its).map(decisive).sum::<usize>()
        };
        let in_role = |experiment: &str, role: Role| {
            let own = self.comparisons.iter().filter(|one| one.experiment == experiment);
            own.filter(|one| one.relation.role() == role).map(of).sum::<usize>()
        };
        let verdicts = |experiment: &'static str| Verdicts {
            experiment,
            asked: in_role(experiment, Role::Asked) + self.factorial_verdicts(experiment),
            controls: in_role(experiment, Role::Control),
        };
        let names = crate::distinct(self.cells.iter().map(|cell| cell.experiment));
        names.into_iter().map(verdicts).filter(|one| one.asked + one.controls > 0).collect()
    }

    /// The verdicts of an experiment.
    pub fn verdicts_of(&self, experiment: &str) -> Option<&Verdicts> {
        self.verdicts.iter().find(|one| one.experiment == experiment)
    }

    /// What all experiments ask, counted.
    pub fn verdicts_asked(&self) -> usize {
        self.verdicts.iter().map(|one| one.asked).sum()
    }

    /// The level of a single verdict of an experiment.
    pub fn alpha(&self, experiment: &str) -> Alpha {
        self.alpha_for(experiment, Role::Asked)
    }

    /// The level of a comparison of an experiment.
    pub fn alpha_for(&self, experiment: &str, role: Role) -> Alpha {
        let own = self.verdicts_of(experiment);
        let shared = own.map_or(0, |one| if role == Role::Control { one.controls } else { one.asked });
        self.level(shared)
    }

    /// The time that a round with all cells takes.
    pub fn round_time(&self) -> Nanos {
        self.time_of(|_| true)
    }

    /// The time that all rounds take.
    pub fn predicted(&self) -> Nanos {
        let warm = |experiment: &str| if self.warms_up(experiment) { self.warmups } else { 0 };
        let counted = |experiment: &str| self.rounds_of(experiment) + warm(experiment);
        let names: BTreeSet<_> = self.cells.iter().map(|cell| cell.experiment).collect();
        let of = |name| Nanos(self.time_of(|own| own == name).0 * counted(name) as i64);
        names.into_iter().map(of).sum()
    }

    /// The time that the cells of these experiments take in one round.
    fn time_of(&self, is_meant: impl Fn(&str) -> bool) -> Nanos {
        let cost = |cell: &Cell| {
            let Entry { spec, launch, .. } = &self.subjects[cell.subject];
            let own = if cell.asks().unknown.is_some() { self.unknown } else { Nanos(0) };
            let whole = (cell.asks().cost)(&cell.setting, *launch);
            let limit = spec
                .get("cpus")
                .and_then(|cpus| cpus.parse().ok())
                .filter(|cpus| (0.001..1.0).contains(cpus));
            let stretched = |limit: f64| *launch + Nanos(((whole.0 - launch.0) as f64 / limit) as i64);
            limit.filter(|_| cell.asks().computes).map_or(whole, stretched) + own + OVERHEAD
        };
        self.cells.iter().filter(|cell| is_meant(cell.experiment)).map(cost).sum()
    }

    /// The order of the cells in a round, warm-ups counted from 0 before the others. Every order
    /// is equally likely, and the same seed gives the same order.
    pub fn order(&self, round: usize) -> Vec<usize> {
        let mut order: Vec<_> =
            (0..self.cells.len()).filter(|&cell| self.visits(self.cells[cell].experiment, round)).collect();
        Rng::for_stream(self.seed, round as u64).shuffle(&mut order);
        order
    }

    /// The smallest difference of an experiment's metric that matters: as fixed in the plan, else as
    /// this program would fix it.
    pub fn margin_of(&self, experiment: &str, metric: &Metric) -> Margin {
        let fits = |one: &&FixedMargin| one.experiment == experiment && one.metric == metric.name;
        self.margins.iter().find(fits).map_or(metric.margin, |one| one.margin)
    }

    /// The metrics of an experiment, with what matters in this plan.
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

    /// A cell as it is called in a sentence.
    pub fn named(&self, cell: usize) -> String {
        format!("`{}`{}", self.entry(cell).label, self.cells[cell].setting.in_brackets())
    }

    /// The metrics of a cell.
    pub fn metrics(&self, cell: &Cell) -> &'static [Metric] {
        cell.asks().metrics
    }
}

/// Who is compared with whom in an experiment in which these subjects take part.
fn comparisons(experiment: ExperimentName, subjects: &[Entry], members: &[usize]) -> Vec<Comparison> {
    let pairs = pairs::of(subjects, members, baseline_among(subjects, members)).into_iter();
    let comparison = |(subject, against, relation)| Comparison { experiment, subject, against, relation };
    pairs.map(comparison).collect()
}

/// The margins of all metrics: the person's where there is one, else the program's.
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

/// The settings of an experiment with these values chosen: by key, or by `experiment.key` where they
/// are meant for one experiment only. A guarded key is part of them only where values were chosen.
pub fn settings(experiment: &Experiment, chosen: &[Chosen]) -> Vec<Setting> {
    experiment::settings_of(experiment, |key| {
        let by = |name: &str| chosen.iter().find(|(own, _)| own == name);
        let own = by(&key_of(experiment, key)).or_else(|| by(key.name));
        if own.is_none() && experiment.guarded.iter().any(|one| one.name == key.name) {
            return Vec::new();
        }
        let Some((_, chosen)) = own else { return key.values.to_vec() };
        let wanted = |value: &&'static str| chosen.iter().any(|one| one == value);
        let listed = key.values.iter().copied().filter(wanted);
        let others = chosen.iter().filter(|value| !key.values.contains(&value.as_str()));
        listed.chain(others.filter_map(|value| key.take(value).ok())).collect()
    })
}

/// How a key is named where it is meant for one experiment only.
pub fn key_of(experiment: &Experiment, key: &SettingKey) -> String {
    format!("{}.{}", experiment.name, key.name)
}

fn cells(experiment: &Experiment, settings: &[Setting], subjects: &[Entry]) -> Vec<Cell> {
    let cell =
        |setting: &Setting, subject| Cell { experiment: experiment.name, setting: setting.clone(), subject };
    let members = members(experiment, subjects);
    settings
        .iter()
        .flat_map(|setting| members.iter().map(|&subject| cell(setting, subject)).collect::<Vec<_>>())
        .collect()
}

/// Adds a twin for the baseline and for the first subject of each layer, of those about which something is decided.
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
