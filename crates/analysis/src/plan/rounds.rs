//! How many rounds, in which order, and which experiments are in which. Experiments with verdicts are in every
//! round. Those that only show and price are in some of the rounds, evenly spread, so that they do not take the
//! time that verdicts need; so are those whose samples take long and replicate within.

use std::collections::BTreeSet;

use super::{Cell, Entry, Plan, Role, Rounds, SPARE_ROUNDS, Verdicts};
use crate::experiment;
use crate::stats::{Alpha, Rng, min_rounds};
use crate::units::Nanos;

/// An experiment that is in fewer rounds than the plan has.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Quota {
    /// The experiment's name.
    pub experiment: String,
    /// The maximum number of rounds that count.
    pub rounds: usize,
}

/// Bookkeeping per cell and round outside a launch: journal, records, looking for what is left of it.
const OVERHEAD: Nanos = Nanos(2_500_000);
/// Rounds for an experiment without verdicts, next to one with: enough for the interval of a median to leave
/// out the two values at either end.
const BESIDE: usize = 12;

/// The experiments with a limit on their rounds. What the user asks of a single experiment has priority.
pub(super) fn quotas(plan: &Plan, asked: Rounds) -> Vec<Quota> {
    let names: BTreeSet<_> = plan.cells.iter().map(|cell| cell.experiment).collect();
    if names.len() == 1 && !matches!(asked, Rounds::Fit(_)) {
        return Vec::new();
    }
    let (own, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| keeps_samples(name));
    let (deciding, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|name| decides(name));
    let others = if deciding.is_empty() { Vec::new() } else { others };
    let asked = |name: &str| plan.verdicts_of(name).filter(|one| one.all_asked() > 0);
    // Without verdicts, what replicates within one sample is enough.
    let own = own.into_iter().map(|name| (name, asked(name).map_or(1, |one| plan.rounds_for(one))));
    let beside = others.into_iter().map(|name| (name, BESIDE));
    own.chain(beside).map(|(name, rounds)| Quota { experiment: name.to_owned(), rounds }).collect()
}

/// Whether much of the replication of an experiment is within its samples.
fn keeps_samples(name: &str) -> bool {
    experiment::find(name).is_some_and(|one| one.keeps_samples)
}

fn decides(name: &str) -> bool {
    experiment::find(name).is_some_and(|one| one.decides())
}

impl Plan {
    /// The time of a round with all cells.
    pub fn round_time(&self) -> Nanos {
        self.time_of(|_| true)
    }

    /// The time of all rounds.
    pub fn predicted(&self) -> Nanos {
        let warm = |experiment: &str| if self.warms_up(experiment) { self.warmups } else { 0 };
        let counted = |experiment: &str| self.rounds_of(experiment) + warm(experiment);
        let counts: BTreeSet<_> = self.cells.iter().map(|cell| counted(cell.experiment)).collect();
        // Those in the same rounds may share containers.
        let of = |count| Nanos(self.time_of(|own| counted(own) == count).0 * count as i64);
        counts.into_iter().map(of).sum()
    }

    /// The time of these experiments' cells in one round.
    pub(super) fn time_of(&self, is_meant: impl Fn(&str) -> bool) -> Nanos {
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
        let cells: Vec<usize> =
            (0..self.cells.len()).filter(|cell| is_meant(self.cells[*cell].experiment)).collect();
        // A container that stays takes about as long as two launches.
        let shared = |group: &Vec<usize>| {
            let launch = self.entry(group[0]).launch;
            if self.cells[group[0]].asks().shares.is_some() { launch + launch } else { Nanos(0) }
        };
        let containers: Nanos = self.groups(&cells).iter().map(shared).sum();
        containers + cells.iter().map(|cell| cost(&self.cells[*cell])).sum()
    }

    /// Whether these cells share a container in a round.
    pub fn share(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|cell| &self.cells[cell]);
        let group = one.asks().shares;
        group.is_some() && group == other.asks().shares && one.subject == other.subject
    }

    /// The cells, those that share a container together.
    fn groups(&self, cells: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &cell in cells {
            match groups.iter_mut().find(|group| self.share(group[0], cell)) {
                Some(group) => group.push(cell),
                None => groups.push(vec![cell]),
            }
        }
        groups
    }

    /// The order of the cells in a round, warm-ups counted from 0 before the others. Those that share a
    /// container follow each other. Every such order is equally likely, and the same seed gives the same order.
    pub fn order(&self, round: usize) -> Vec<usize> {
        let visited: Vec<_> =
            (0..self.cells.len()).filter(|&cell| self.visits(self.cells[cell].experiment, round)).collect();
        let mut rng = Rng::for_stream(self.seed, round as u64);
        let mut groups = self.groups(&visited);
        rng.shuffle(&mut groups);
        groups.iter_mut().for_each(|group| rng.shuffle(group));
        groups.concat()
    }
}

impl Plan {
    /// The rounds that fit into this time after the warm-ups, but enough for verdicts, and otherwise at most
    /// `most`.
    pub fn rounds_within(&self, time: Nanos, most: usize) -> usize {
        let quota = |name: &str| self.quotas.iter().find(|quota| quota.experiment == name);
        let always = self.time_of(|name| quota(name).is_none());
        let most_of_quotas = self.quotas.iter().map(|quota| quota.rounds).max().unwrap_or(0);
        if always.0 == 0 && most_of_quotas > 0 {
            return most_of_quotas;
        }
        let of_quota = |one: &Quota| self.time_of(|name| name == one.experiment).0 * one.rounds as i64;
        let apart: i64 = self.quotas.iter().map(of_quota).sum();
        let warm = self.time_of(|name| self.warms_up(name)).0 * self.warmups as i64;
        let rest = time.0 - warm - apart;
        let fitting = (rest / always.0.max(1)).max(0) as usize;
        fitting.clamp(self.rounds_for_verdicts(), most.max(self.rounds_for_verdicts()))
    }

    /// The number of rounds that count for an experiment.
    pub fn rounds_of(&self, experiment: &str) -> usize {
        let quota = self.quotas.iter().find(|quota| quota.experiment == experiment);
        quota.map_or(self.rounds, |quota| quota.rounds.min(self.certain()))
    }

    /// The rounds that a run has, however early it ends.
    fn certain(&self) -> usize {
        self.looks.first().copied().unwrap_or(self.rounds)
    }

    /// The level of each of so many intervals that hold together. The looks at the precision share it too, so
    /// it holds whichever look ends the run, and by any rule.
    pub fn level(&self, intervals: usize) -> Alpha {
        Alpha::shared_by(intervals.max(1) * self.looks.len().max(1))
    }

    /// Whether an experiment is in the warm-up rounds.
    pub fn warms_up(&self, experiment: &str) -> bool {
        !keeps_samples(experiment)
    }

    /// Whether an experiment is in this round, warm-ups counted from 0 before the others. It is in all
    /// warm-ups, unless its samples replicate within.
    pub fn visits(&self, experiment: &str, round: usize) -> bool {
        let Some(counted) = round.checked_sub(self.warmups) else { return self.warms_up(experiment) };
        // An experiment without a quota is also in the rounds after the first look.
        let (own, certain) = (self.rounds_of(experiment), self.certain());
        let due = |rounds: usize| rounds.min(certain) * own / certain.max(1);
        own > certain || due(counted + 1) > due(counted)
    }

    /// The number of samples planned before this round, warm-ups included.
    pub fn samples_before(&self, round: usize) -> usize {
        let in_round =
            |one: usize| self.cells.iter().filter(move |cell| self.visits(cell.experiment, one)).count();
        (0..round).map(in_round).sum()
    }
}

impl Plan {
    /// The minimum number of rounds for verdicts of every experiment.
    pub fn rounds_for_verdicts(&self) -> usize {
        let most = self.verdicts.iter().map(|one| self.rounds_for(one)).max();
        most.unwrap_or_else(|| min_rounds(self.level(0)) + SPARE_ROUNDS)
    }

    /// The minimum number of rounds for these verdicts, with some to spare.
    fn rounds_for(&self, verdicts: &Verdicts) -> usize {
        min_rounds(self.level(verdicts.first.max(verdicts.asked).max(verdicts.controls))) + SPARE_ROUNDS
    }

    /// The minimum number of rounds for any verdict of an experiment: on what is asked first, if it asks that.
    pub fn rounds_for_any(&self, experiment: &str) -> usize {
        let own = self.verdicts_of(experiment);
        let role = own.map_or(Role::Asked, |own| match (own.first, own.asked) {
            (1.., asked) if asked == 0 || own.first < asked => Role::First,
            _ => Role::Asked,
        });
        min_rounds(self.alpha_for(experiment, role))
    }

    /// The experiments for which the planned rounds are too few for any verdict, each with the minimum.
    pub fn without_verdicts(&self) -> Vec<(&'static str, usize)> {
        let asked = self.verdicts.iter().filter(|one| one.all_asked() > 0);
        let needed = asked.map(|one| (one.experiment, self.rounds_for_any(one.experiment)));
        needed.filter(|(name, needed)| *needed > self.rounds_of(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ALLOWED, Entry, Ladder, Layer, Request, make};
    use crate::subject::{Need, Spec};

    fn plan(experiments: &[&'static str], rounds: Rounds) -> Plan {
        let entry = |text: &str, layer, millis, offers: &[Need]| Entry {
            label: text.into(),
            spec: Spec::parse(text).unwrap(),
            layer,
            ladder: Ladder::AsInstalled,
            twin_of: None,
            runtime: None,
            launch: Nanos::from_millis(millis),
            offers: offers.to_vec(),
            only_in: Vec::new(),
            variant_of: None,
            inherited: Default::default(),
        };
        make(Request {
            experiments: experiments.to_vec(),
            subjects: vec![
                entry("bare", Layer::Bare, 1, &[Need::Launch]),
                entry("floor", Layer::Floor, 8, &[Need::Launch, Need::Pieces]),
                entry("crun", Layer::Runtime, 20, &[Need::Launch]),
                entry("docker", Layer::Engine, 300, &[Need::Launch]),
            ],
            chosen: Vec::new(),
            seed: 3,
            rounds,
            allowed: ALLOWED,
            margins: Vec::new(),
            factorial: None,
            predictions: Vec::new(),
            trial: None,
        })
    }

    #[test]
    fn prices_take_their_share_and_leave_the_verdicts_theirs() {
        let time = Nanos::from_millis(265_000);
        let both = plan(&["start", "primitives"], Rounds::Fit(time));
        assert!(both.predicted() <= time, "{}", both.predicted());
        let quota = both.rounds_of("primitives");
        assert_eq!((quota, both.rounds_of("start")), (BESIDE, both.rounds));
        assert!(both.rounds >= both.rounds_for_verdicts() && both.rounds > quota);
        // Experiments without verdicts add none.
        assert_eq!(both.verdicts, plan(&["start"], Rounds::Fit(time)).verdicts);
        let visited =
            (0..both.rounds).filter(|round| both.visits("primitives", round + both.warmups)).count();
        assert_eq!(visited, quota);
        let all = (0..both.rounds + both.warmups).map(|round| both.order(round).len()).sum::<usize>();
        assert_eq!(both.samples_before(both.rounds + both.warmups), all);
    }

    #[test]
    fn what_is_in_fewer_rounds_is_done_at_the_first_look() {
        let mut plan = plan(&["start", "primitives"], Rounds::Fixed(100));
        plan.looks = vec![25, 50, 100];
        let visited = |name: &str, rounds: usize| {
            (0..rounds).filter(|round| plan.visits(name, round + plan.warmups)).count()
        };
        assert_eq!((visited("primitives", 25), visited("primitives", 100)), (BESIDE, BESIDE));
        assert_eq!((visited("start", 25), visited("start", 100)), (25, 100));
        assert_eq!(
            plan.alpha("start").get() * 3.0,
            Plan { looks: Vec::new(), ..plan.clone() }.alpha("start").get()
        );
    }

    #[test]
    fn only_those_that_can_be_taken_apart_are_priced_and_need_no_twin() {
        let plan = plan(&["primitives"], Rounds::Fixed(4));
        assert!(plan.cells.iter().all(|cell| plan.subjects[cell.subject].label == "floor"));
        assert_eq!((plan.verdicts.len(), plan.comparisons.len(), plan.quotas.len()), (0, 0, 0));
        let settings: BTreeSet<_> = plan.cells.iter().map(|cell| cell.setting.clone()).collect();
        assert_eq!(settings.len(), plan.cells.len());
    }

    #[test]
    fn rounds_that_are_given_make_the_same_plan_as_rounds_that_fit() {
        let fixed = |rounds| plan(&["start", "primitives"], Rounds::Fixed(rounds));
        let counts = |plan: &Plan| (plan.rounds_of("primitives"), plan.rounds_of("start"));
        assert_eq!(counts(&fixed(50)), (BESIDE, 50));
        assert_eq!(counts(&fixed(5)), (5, 5));
        assert_eq!(counts(&plan(&["primitives"], Rounds::Fixed(50))).0, 50);
        let fitted = plan(&["start", "primitives"], Rounds::Fit(Nanos::from_millis(265_000)));
        assert_eq!(fixed(fitted.rounds), fitted);
    }
}
