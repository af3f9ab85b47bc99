//! What a run will do, fixed before anything is measured: cells, comparisons with their margins,
//! the order of every round, and how long it will take. A pure function of subjects, experiments,
//! options and seed.

mod pairs;
mod parts;

use std::collections::BTreeSet;

use crate::experiment::{self, Experiment, Metric, Setting, Weight};
use crate::stats::{Alpha, Family, Margin, Rng};
pub use crate::subject::Layer;
use crate::subject::{Need, Spec};
use crate::units::Nanos;
use parts::{baseline_among, members};

/// On which ladder a subject stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ladder {
    /// As a person who just installed it would start it.
    AsInstalled,
    /// With the differences between engines taken away.
    Equalised,
}

/// A subject of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What stands in tables; distinct among the subjects.
    pub label: String,
    /// What it is.
    pub spec: Spec,
    /// Its layer.
    pub layer: Layer,
    /// Its ladder. Subjects below the engines stand on both.
    pub ladder: Ladder,
    /// The index of the subject that it repeats under another label.
    pub twin_of: Option<usize>,
    /// The runtime that does the work, as found.
    pub runtime: Option<String>,
    /// The time of one launch until all is gone, as seen in a trial.
    pub launch: Nanos,
    /// What it can do; experiments that need more have no cells with it.
    pub offers: Vec<Need>,
}

/// An experiment, a setting and a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The experiment's name.
    pub experiment: &'static str,
    /// Its conditions.
    pub setting: Setting,
    /// The subject's index.
    pub subject: usize,
}

/// Why two subjects are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// The second is the baseline of the run.
    Baseline,
    /// Both are the same: what differs is noise.
    Twin,
    /// Both belong to one layer and one ladder.
    Layer,
    /// The first stands one step above the second: what the step adds.
    Step,
    /// They differ in this one thing: a cause may be named.
    OneKey(String),
}

impl Relation {
    /// The word used in files.
    pub fn name(&self) -> &str {
        match self {
            Relation::Baseline => "baseline",
            Relation::Twin => "twin",
            Relation::Layer => "layer",
            Relation::Step => "step",
            Relation::OneKey(_) => "one key",
        }
    }
}

/// Two subjects that will be compared in every setting of an experiment, in every decisive metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The experiment's name.
    pub experiment: &'static str,
    /// The subject's index.
    pub subject: usize,
    /// The index of what it is compared with.
    pub against: usize,
    /// Why.
    pub relation: Relation,
}

/// What a run will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The seed of every order and every scripted value.
    pub seed: u64,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds before them that do not.
    pub warmups: usize,
    /// The subjects.
    pub subjects: Vec<Entry>,
    /// The cells; samples refer to them by index.
    pub cells: Vec<Cell>,
    /// The comparisons.
    pub comparisons: Vec<Comparison>,
    /// The index of the subject that all others are compared with.
    pub baseline: usize,
    /// Verdicts that will be given: comparisons × settings × decisive metrics.
    pub family: usize,
    /// The smallest differences that matter, by experiment and metric.
    pub margins: Vec<FixedMargin>,
    /// How long one launch may take before it counts as hung.
    pub allowed: Nanos,
}

/// How long a launch may take unless the person says otherwise.
pub const ALLOWED: Nanos = Nanos::from_millis(60_000);

/// The smallest difference of a metric that matters, as fixed before the run.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedMargin {
    /// The experiment's name.
    pub experiment: String,
    /// The metric's name.
    pub metric: String,
    /// How much.
    pub margin: Margin,
}

/// What a plan is made of.
#[derive(Debug, Clone)]
pub struct Request {
    /// The experiments.
    pub experiments: Vec<&'static str>,
    /// The subjects, without twins.
    pub subjects: Vec<Entry>,
    /// Values chosen for keys of experiments, by key; others take all of theirs.
    pub chosen: Vec<(String, Vec<String>)>,
    /// The seed.
    pub seed: u64,
    /// How many rounds.
    pub rounds: Rounds,
    /// How long one launch may take.
    pub allowed: Nanos,
    /// Margins that the person set; metrics without one keep their own.
    pub margins: Vec<FixedMargin>,
}

/// How the number of rounds is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// Given.
    Fixed(usize),
    /// As many as fit into this time, but enough for a verdict, and not more than are of use.
    Fit(Nanos),
}

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
    let subjects = with_twins(request.subjects);
    let everyone: Vec<_> = (0..subjects.len()).collect();
    let baseline = baseline_among(&subjects, &everyone);
    let experiments: Vec<_> = request.experiments.iter().filter_map(|name| experiment::find(name)).collect();
    let settings_of = |experiment: &'static dyn Experiment| settings(experiment, &request.chosen);
    let cells = experiments
        .iter()
        .flat_map(|experiment| cells(*experiment, &settings_of(*experiment), &subjects))
        .collect();
    let comparisons: Vec<_> = experiments
        .iter()
        .flat_map(|experiment| {
            let members = members(*experiment, &subjects);
            pairs::of(&subjects, &members, baseline_among(&subjects, &members)).into_iter().map(
                |(subject, against, relation)| Comparison {
                    experiment: experiment.name(),
                    subject,
                    against,
                    relation,
                },
            )
        })
        .collect();
    let mut plan = Plan {
        seed: request.seed,
        rounds: 0,
        warmups: 1,
        subjects,
        cells,
        comparisons,
        baseline,
        family: 0,
        margins: margins(&experiments, request.margins),
        allowed: request.allowed,
    };
    plan.family = plan.count_family();
    plan.rounds = match request.rounds {
        Rounds::Fixed(rounds) => rounds,
        Rounds::Fit(time) => {
            let for_rounds = time.0 - plan.round_time().0 * plan.warmups as i64;
            let fitting = (for_rounds / plan.round_time().0.max(1)).max(0) as usize;
            fitting.clamp(plan.rounds_for_verdicts(), MOST_ROUNDS.max(plan.rounds_for_verdicts()))
        }
    };
    plan
}

impl Plan {
    /// How many verdicts there will be: each comparison gives one for every setting in which both
    /// subjects have a cell, and every decisive metric.
    pub fn count_family(&self) -> usize {
        let settings = |one: &Comparison| {
            let own = self
                .cells
                .iter()
                .filter(|cell| cell.subject == one.subject && cell.experiment == one.experiment);
            let decisive = |cell: &Cell| {
                self.metrics(cell).iter().filter(|metric| metric.weight == Weight::Verdict).count()
            };
            own.map(decisive).sum::<usize>()
        };
        self.comparisons.iter().map(settings).sum()
    }

    /// The level of a single verdict.
    pub fn alpha(&self) -> Alpha {
        Family::of(self.family).per_comparison()
    }

    /// The fewest rounds that leave room for verdicts.
    pub fn rounds_for_verdicts(&self) -> usize {
        Family::of(self.family).min_rounds() + SPARE_ROUNDS
    }

    /// The time that one round takes.
    pub fn round_time(&self) -> Nanos {
        let cost = |cell: &Cell| {
            let experiment = experiment::find(cell.experiment).expect("cells are made of known experiments");
            experiment.cost(&cell.setting, self.subjects[cell.subject].launch) + OVERHEAD
        };
        self.cells.iter().map(cost).sum()
    }

    /// The time that all rounds take.
    pub fn predicted(&self) -> Nanos {
        Nanos(self.round_time().0 * (self.rounds + self.warmups) as i64)
    }

    /// The order of the cells in a round, warm-ups counted from 0 before the others. Every order
    /// is equally likely, and the same seed gives the same order.
    pub fn order(&self, round: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.cells.len()).collect();
        Rng::for_stream(self.seed, round as u64).shuffle(&mut order);
        order
    }

    /// The smallest difference of an experiment's metric that matters: as fixed in the plan, else as
    /// this program would fix it.
    pub fn margin_of(&self, experiment: &str, metric: &Metric) -> Margin {
        let fits = |one: &&FixedMargin| one.experiment == experiment && one.metric == metric.name;
        self.margins.iter().find(fits).map_or(metric.margin, |one| one.margin)
    }

    /// The metrics of a cell.
    pub fn metrics(&self, cell: &Cell) -> &'static [Metric] {
        experiment::find(cell.experiment).expect("cells are made of known experiments").metrics()
    }
}

/// The margins of all metrics: the person's where there is one, else the program's.
fn margins(experiments: &[&'static dyn Experiment], given: Vec<FixedMargin>) -> Vec<FixedMargin> {
    let own = |name: &str, metric: &Metric| {
        given.iter().find(|one| one.experiment == name && one.metric == metric.name).map(|one| one.margin)
    };
    let fixed = |experiment: &&'static dyn Experiment| {
        let name = experiment.name();
        let one = move |metric: &Metric| FixedMargin {
            experiment: name.to_owned(),
            metric: metric.name.to_owned(),
            margin: own(name, metric).unwrap_or(metric.margin),
        };
        experiment.metrics().iter().map(one).collect::<Vec<_>>()
    };
    experiments.iter().flat_map(fixed).collect()
}

fn settings(experiment: &dyn Experiment, chosen: &[(String, Vec<String>)]) -> Vec<Setting> {
    experiment::settings(experiment.setting_keys(), |key| {
        let own = chosen.iter().find(|(name, _)| name == key.name);
        let wanted =
            |value: &&'static str| own.is_none_or(|(_, values)| values.iter().any(|one| one == value));
        key.values.iter().copied().filter(wanted).collect()
    })
}

fn cells(experiment: &dyn Experiment, settings: &[Setting], subjects: &[Entry]) -> Vec<Cell> {
    let cell = |setting: &Setting, subject| Cell {
        experiment: experiment.name(),
        setting: setting.clone(),
        subject,
    };
    let members = members(experiment, subjects);
    settings
        .iter()
        .flat_map(|setting| members.iter().map(|&subject| cell(setting, subject)).collect::<Vec<_>>())
        .collect()
}

/// Adds a twin for the baseline and for the first subject of each layer.
fn with_twins(mut subjects: Vec<Entry>) -> Vec<Entry> {
    let everyone: Vec<_> = (0..subjects.len()).collect();
    let mut doubled = BTreeSet::from([baseline_among(&subjects, &everyone)]);
    for layer in [Layer::Bare, Layer::Floor, Layer::Runtime, Layer::Engine] {
        doubled.extend(subjects.iter().position(|entry| entry.layer == layer));
    }
    for index in doubled {
        let mut twin = subjects[index].clone();
        twin.label.push_str(" (twin)");
        twin.twin_of = Some(index);
        subjects.push(twin);
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str, layer: Layer, ladder: Ladder, runtime: Option<&str>) -> Entry {
        let spec = Spec::parse(text).unwrap();
        Entry {
            label: spec.shown(),
            spec,
            layer,
            ladder,
            twin_of: None,
            runtime: runtime.map(str::to_owned),
            launch: Nanos::from_millis(100),
            offers: Need::ALL.to_vec(),
        }
    }

    fn ladder() -> Vec<Entry> {
        use Ladder::{AsInstalled, Equalised};
        vec![
            entry("bare", Layer::Bare, AsInstalled, None),
            entry("floor", Layer::Floor, AsInstalled, None),
            entry("crun", Layer::Runtime, AsInstalled, Some("crun")),
            entry("docker", Layer::Engine, AsInstalled, Some("runc")),
            entry("docker+crun", Layer::Engine, AsInstalled, Some("crun")),
            entry("docker+crun:log=none,net=none", Layer::Engine, Equalised, Some("crun")),
            entry("podman:log=none,net=none", Layer::Engine, Equalised, Some("crun")),
        ]
    }

    fn request(rounds: Rounds) -> Request {
        Request {
            experiments: vec!["start"],
            subjects: ladder(),
            chosen: Vec::new(),
            seed: 7,
            rounds,
            allowed: ALLOWED,
            margins: Vec::new(),
        }
    }

    fn plan(rounds: Rounds) -> Plan {
        make(request(rounds))
    }

    fn relation_of(plan: &Plan, subject: &str, against: &str) -> Option<Relation> {
        let label = |index: usize| plan.subjects[index].label.as_str();
        let found = |one: &&Comparison| label(one.subject) == subject && label(one.against) == against;
        plan.comparisons.iter().find(found).map(|one| one.relation.clone())
    }

    #[test]
    fn the_baseline_and_one_subject_of_each_layer_have_a_twin() {
        let plan = plan(Rounds::Fixed(3));
        let twins: Vec<_> = plan.subjects.iter().filter(|entry| entry.twin_of.is_some()).collect();
        let labels: Vec<_> = twins.iter().map(|entry| entry.label.as_str()).collect();
        assert_eq!(labels, ["bare (twin)", "floor (twin)", "crun (twin)", "docker (twin)"]);
    }

    #[test]
    fn causes_are_named_only_where_one_thing_differs() {
        let plan = plan(Rounds::Fixed(3));
        let one = |key: &str| Some(Relation::OneKey(key.into()));
        assert_eq!(relation_of(&plan, "docker+crun", "docker"), one("runtime"));
        assert_eq!(
            relation_of(&plan, "podman:log=none,net=none", "docker+crun:log=none,net=none"),
            one("engine")
        );
        assert_eq!(relation_of(&plan, "crun", "floor"), Some(Relation::Step));
        assert_eq!(relation_of(&plan, "docker+crun:log=none,net=none", "crun"), Some(Relation::Step));
        assert_eq!(relation_of(&plan, "docker", "crun"), None);
        assert_eq!(relation_of(&plan, "docker", "bare"), Some(Relation::Baseline));
        assert_eq!(relation_of(&plan, "docker+crun:log=none,net=none", "docker+crun"), None);
    }

    #[test]
    fn what_is_in_force_decides_and_not_what_was_typed() {
        use Ladder::{AsInstalled, Equalised};
        let relation = |upper: Entry, lower: Entry| {
            let bare = entry("bare", Layer::Bare, AsInstalled, None);
            let (one, other) = (upper.label.clone(), lower.label.clone());
            let plan = make(Request { subjects: vec![bare, lower, upper], ..request(Rounds::Fixed(3)) });
            relation_of(&plan, &one, &other)
        };
        let one = |key: &str| Some(Relation::OneKey(key.into()));
        let docker = |keys: &str| entry(&format!("docker{keys}"), Layer::Engine, AsInstalled, Some("runc"));
        let podman = |keys: &str| entry(&format!("podman{keys}"), Layer::Engine, Equalised, Some("runc"));
        assert_eq!(relation(docker(":log=none,seccomp=default"), docker(":log=none")), Some(Relation::Layer));
        assert_eq!(relation(docker(":log=default,seccomp=off"), docker("")), one("seccomp"));
        assert_eq!(relation(podman(":log=none,net=none,seccomp=off"), docker(":log=none,net=none")), None);
        assert_eq!(
            relation(podman(":log=default,net=none"), docker(":net=none,seccomp=default")),
            one("engine")
        );
    }

    #[test]
    fn every_verdict_counts_in_the_family() {
        let plan = plan(Rounds::Fixed(3));
        assert_eq!(plan.family, plan.comparisons.len() * 2 * 3);
    }

    #[test]
    fn orders_are_permutations_that_the_seed_fixes() {
        let plan = plan(Rounds::Fixed(3));
        let mut sorted = plan.order(0);
        assert_eq!(plan.order(0), plan.clone().order(0));
        assert_ne!(plan.order(0), plan.order(1));
        sorted.sort_unstable();
        assert_eq!(sorted, (0..plan.cells.len()).collect::<Vec<_>>());
    }

    #[test]
    fn rounds_fit_the_time_but_never_fall_below_what_verdicts_need() {
        let short = plan(Rounds::Fit(Nanos::from_millis(1000)));
        assert_eq!(short.rounds, short.rounds_for_verdicts());
        let long = plan(Rounds::Fit(Nanos::from_millis(10_000_000)));
        assert_eq!(long.rounds, MOST_ROUNDS);
    }

    #[test]
    fn chosen_values_restrict_the_settings() {
        let chosen = vec![("prestate".to_owned(), vec!["idle".to_owned()])];
        let plan = make(Request {
            experiments: vec!["start"],
            subjects: ladder(),
            chosen,
            seed: 7,
            rounds: Rounds::Fixed(1),
            allowed: ALLOWED,
            margins: Vec::new(),
        });
        assert_eq!(plan.cells.len(), plan.subjects.len());
    }
}
