//! Whether all verdicts of an experiment together keep their level.

use dunnage::experiment::Weight;
use dunnage::plan::{self, Entry, Layer, Request, Role};
use dunnage::record::Recorded;
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::verdict::{Finding, analyse};

use crate::planted::{entry, recorded, request};

/// A run of two experiments in which every subject is the same under another name, and all values are independent.
fn of_the_same(seed: u64, rounds: usize) -> Recorded {
    let same =
        |name: &str| Entry { offers: Need::ALL.to_vec(), ..entry(&format!("{name}=fake"), Layer::Engine) };
    let subjects = ["a", "b", "c", "d"].map(same).to_vec();
    let chosen = vec![("prestate".into(), vec!["idle".into()])];
    let plan = plan::make(Request { chosen, seed, ..request(vec!["start", "exec"], subjects, rounds) });
    let mut rng = Rng::for_stream(seed, 0);
    let mut column = || (0..rounds).map(|_| 0.02 * (0.1 * rng.standard_normal()).exp()).collect();
    let values = |cell: usize| plan.metrics(&plan.cells[cell]).iter().map(|_| column()).collect();
    recorded(plan.clone(), values)
}

/// Runs in which anything differs that does not, by experiment and kind of comparison. With 300 runs and a true level of
/// 5 %, more than 28 alarms have a probability below 0.1 %; with none at all the test would see nothing.
#[test]
fn each_family_keeps_its_level_whatever_else_is_in_the_run() {
    const RUNS: u64 = 300;
    const MOST: usize = 28;
    for role in [Role::Asked, Role::Control] {
        let mut alarms = [0usize; 2];
        for seed in 0..RUNS {
            // As many rounds as the levels need, so that these are nearly used up.
            let rounds = if role == Role::Asked { 11 } else { 9 };
            let run = of_the_same(seed, rounds);
            let analysis = analyse(&run);
            for (place, experiment) in ["start", "exec"].into_iter().enumerate() {
                let differs = |finding: &Finding| {
                    let comparison = &run.plan.comparisons[finding.comparison];
                    let metric = &run.plan.metrics(&run.plan.cells[finding.cell])[finding.metric];
                    let interval = finding.difference.and_then(|one| one.interval);
                    comparison.experiment == experiment
                        && comparison.relation.role() == role
                        && metric.weight == Weight::Verdict
                        && interval.is_some_and(|interval| !interval.contains(0.0))
                };
                alarms[place] += usize::from(analysis.findings.iter().any(differs));
            }
        }
        for (place, count) in alarms.into_iter().enumerate() {
            assert!((1..=MOST).contains(&count), "{role:?} of experiment {place}: {count} of {RUNS}");
        }
    }
}
