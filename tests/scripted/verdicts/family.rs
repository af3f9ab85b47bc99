//! All verdicts of an experiment together keep their level.

use dunnage::experiment::Weight;
use dunnage::plan::{self, Comparison, Entry, Layer, Precision, Request, Role};
use dunnage::record::Recorded;
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::verdict::{Finding, analyse, precision};

use crate::scripted::planted::{entry, recorded, request};

/// A run of two experiments in which every subject is the same under another name, and all values are
/// independent.
fn of_the_same(seed: u64, rounds: usize) -> Recorded {
    independent(vec!["start", "exec"], seed, rounds)
}

/// The same of these experiments; every setting is the same too.
fn independent(experiments: Vec<&'static str>, seed: u64, rounds: usize) -> Recorded {
    let same =
        |name: &str| Entry { offers: Need::ALL.to_vec(), ..entry(&format!("{name}=fake"), Layer::Engine) };
    let subjects = ["a", "b", "c", "d"].map(same).to_vec();
    let chosen = vec![("prestate".into(), vec!["idle".into()])];
    let plan = plan::make(Request { chosen, seed, ..request(experiments, subjects, rounds) });
    let mut rng = Rng::for_stream(seed, 0);
    let mut column = || (0..rounds).map(|_| 0.02 * (0.1 * rng.standard_normal()).exp()).collect();
    let values = |cell: usize| plan.metrics(&plan.cells[cell]).iter().map(|_| column()).collect();
    recorded(plan.clone(), values)
}

/// The comparisons of an experiment in which something differs.
fn alarms(run: &Recorded, experiment: &str) -> Vec<Comparison> {
    let differs = |finding: &Finding| {
        let comparison = &run.plan.comparisons[finding.comparison];
        let metric = &run.plan.metrics(&run.plan.cells[finding.cell])[finding.metric];
        let interval = finding.difference.and_then(|one| one.interval);
        let is_alarm = comparison.experiment == experiment
            && metric.weight == Weight::Verdict
            && interval.is_some_and(|interval| !interval.contains(0.0));
        is_alarm.then(|| comparison.clone())
    };
    analyse(run).findings.iter().filter_map(differs).collect()
}

/// Whether anything differs in `start` and in `exec`, in comparisons of this kind.
fn alarmed(run: &Recorded, role: Role) -> [bool; 2] {
    ["start", "exec"].map(|name| alarms(run, name).iter().any(|one| one.relation.role() == role))
}

/// The run after this many rounds.
fn after(run: &Recorded, rounds: usize) -> Recorded {
    let mut run = run.clone();
    run.contexts[run.plan.warmups + rounds..].fill(None);
    run
}

/// Runs for a precision that end at the first look at which it is reached: at every look, each family keeps
/// its level. With 300 runs and a true level of 5 %, more than 28 alarms have a probability below 0.1 %.
#[test]
fn each_family_keeps_its_level_whichever_look_ends_the_run() {
    const RUNS: u64 = 300;
    const MOST: usize = 28;
    const LOOKS: [usize; 3] = [16, 24, 36];
    let (mut alarms, mut ended) = ([0usize; 2], [0usize; 3]);
    for seed in 0..RUNS {
        let mut run = of_the_same(1000 + seed, LOOKS[2]);
        run.plan.looks = LOOKS.to_vec();
        // As wide as the widest intervals are at one look or another.
        let asked = 0.16 + 0.03 * (seed % 8) as f64;
        run.plan.precision = Some(Precision { asked, pilot_rounds: 15, predicted: None, capped: false });
        let first = LOOKS.iter().position(|look| precision::is_reached(&after(&run, *look)));
        let look = first.unwrap_or(LOOKS.len() - 1);
        ended[look] += 1;
        let alarmed = alarmed(&after(&run, LOOKS[look]), Role::Asked);
        alarms.iter_mut().zip(alarmed).for_each(|(count, one)| *count += usize::from(one));
    }
    println!("ended at looks: {ended:?}; alarms {alarms:?}");
    assert!(ended.iter().all(|count| *count > 20), "runs end at {ended:?}");
    assert!(alarms.iter().all(|count| *count <= MOST), "{alarms:?} of {RUNS}");
    assert!(alarms.iter().sum::<usize>() > 0, "a rule that never speaks keeps every level");
}

/// The number of runs with false differences, by experiment and kind of comparison. With 300 runs and a true
/// level of 5 %, more than 28 alarms have a probability below 0.1 %; with none at all the test would show
/// nothing.
#[test]
fn each_family_keeps_its_level_whatever_else_is_in_the_run() {
    const RUNS: u64 = 300;
    const MOST: usize = 28;
    for role in [Role::Asked, Role::Control] {
        let mut alarms = [0usize; 2];
        for seed in 0..RUNS {
            // As many rounds as the levels need, so that these are nearly used up.
            let rounds = if role == Role::Asked { 11 } else { 9 };
            let alarmed = alarmed(&of_the_same(2000 + seed, rounds), role);
            alarms.iter_mut().zip(alarmed).for_each(|(count, one)| *count += usize::from(one));
        }
        for (place, count) in alarms.into_iter().enumerate() {
            assert!((1..=MOST).contains(&count), "{role:?} of experiment {place}: {count} of {RUNS}");
        }
    }
}

/// Settings and subjects are one family: all of it keeps the level, as above, and settings take their share of it.
#[test]
fn settings_keep_the_level_together_with_the_subjects() {
    const RUNS: u64 = 300;
    const MOST: usize = 28;
    // As many rounds as the level needs, so that it is nearly used up.
    const ROUNDS: usize = 10;
    let (mut any, mut of_settings, mut of_subjects) = (0usize, 0usize, 0usize);
    for seed in 0..RUNS {
        let run = independent(vec!["net-latency"], 3000 + seed, ROUNDS);
        let own = &run.plan.verdicts[0];
        // Six pairs of subjects on each of three paths, and the published path of each of four against its bridge.
        assert_eq!((own.asked, run.plan.without_verdicts()), (6 * 3 + 4, Vec::new()));
        let mut asked = alarms(&run, "net-latency");
        asked.retain(|one| one.relation.role() == Role::Asked);
        let has =
            |is_of_settings: bool| asked.iter().any(|one| one.relation.is_of_settings() == is_of_settings);
        any += usize::from(!asked.is_empty());
        of_settings += usize::from(has(true));
        of_subjects += usize::from(has(false));
    }
    println!("{any} alarms of {RUNS}: {of_settings} of settings, {of_subjects} of subjects");
    assert!((1..=MOST).contains(&any), "{any} of {RUNS}");
    assert!(of_settings > 0 && of_subjects > of_settings, "{of_settings} and {of_subjects} of {RUNS}");
}
