//! How many rounds, and which experiments are in which. Those that decide something are in every round;
//! those beside them that only show and price are in some of them, evenly spread, so that they do not
//! take the time that verdicts need.

use super::Plan;
use crate::experiment;
use crate::units::Nanos;

/// An experiment that is in fewer rounds than there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The experiment's name.
    pub experiment: String,
    /// The most rounds that count.
    pub rounds: usize,
}

/// Rounds for what decides nothing, beside what does: enough for the interval of a median to leave out
/// the two values at either end.
const BESIDE: usize = 12;

/// The experiments that are in no more rounds than these.
pub(super) fn quotas(plan: &Plan) -> Vec<Quota> {
    let names: std::collections::BTreeSet<_> = plan.cells.iter().map(|cell| cell.experiment).collect();
    let (deciding, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| decides(name));
    let others = if deciding.is_empty() { Vec::new() } else { others };
    others.into_iter().map(|name| Quota { experiment: name.to_owned(), rounds: BESIDE }).collect()
}

fn decides(name: &str) -> bool {
    experiment::find(name).is_some_and(experiment::decides)
}

impl Plan {
    /// The rounds that fit into this time beside the warm-ups, but enough for verdicts, and else no more
    /// than `most`.
    pub fn rounds_within(&self, time: Nanos, most: usize) -> usize {
        let rare = |name: &str| self.quotas.iter().any(|quota| quota.experiment == name);
        let (always, apart) = (self.time_of(|name| !rare(name)), self.time_of(rare));
        let beside = if apart.0 > 0 { BESIDE } else { 0 };
        let warm = (always.0 + apart.0) * self.warmups as i64;
        let rest = time.0 - warm - apart.0 * beside as i64;
        let fitting = (rest / always.0.max(1)).max(0) as usize;
        fitting.clamp(self.rounds_for_verdicts(), most.max(self.rounds_for_verdicts()))
    }

    /// The rounds that count and that an experiment is in.
    pub fn rounds_of(&self, experiment: &str) -> usize {
        let quota = self.quotas.iter().find(|quota| quota.experiment == experiment);
        quota.map_or(self.rounds, |quota| quota.rounds.min(self.rounds))
    }

    /// Whether an experiment is in this round, warm-ups counted from 0 before the others. It is in all
    /// of those.
    pub fn visits(&self, experiment: &str, round: usize) -> bool {
        let Some(counted) = round.checked_sub(self.warmups) else { return true };
        let due = |rounds: usize| rounds * self.rounds_of(experiment) / self.rounds.max(1);
        due(counted + 1) > due(counted)
    }

    /// How many samples are planned in the rounds before this one, warm-ups included.
    pub fn samples_before(&self, round: usize) -> usize {
        let in_round =
            |one: usize| self.cells.iter().filter(move |cell| self.visits(cell.experiment, one)).count();
        (0..round).map(in_round).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ALLOWED, Entry, Ladder, Layer, Request, Rounds, make};
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
        // What is not decided adds no verdict.
        assert_eq!(both.family, plan(&["start"], Rounds::Fit(time)).family);
        let visited =
            (0..both.rounds).filter(|round| both.visits("primitives", round + both.warmups)).count();
        assert_eq!(visited, quota);
        let all = (0..both.rounds + both.warmups).map(|round| both.order(round).len()).sum::<usize>();
        assert_eq!(both.samples_before(both.rounds + both.warmups), all);
    }

    #[test]
    fn only_those_that_can_be_taken_apart_are_priced_and_need_no_twin() {
        let plan = plan(&["primitives"], Rounds::Fixed(4));
        assert!(plan.cells.iter().all(|cell| plan.subjects[cell.subject].label == "floor"));
        assert_eq!((plan.family, plan.comparisons.len(), plan.quotas.len()), (0, 0, 0));
        let settings: std::collections::BTreeSet<_> =
            plan.cells.iter().map(|cell| cell.setting.clone()).collect();
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
