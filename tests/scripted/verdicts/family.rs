//! All verdicts of an experiment together keep their level.

use dunnage::experiment::Weight;
use dunnage::plan::{self, Comparison, Entry, Layer, Precision, Request, Role};
use dunnage::record::Recorded;
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::verdict::{Finding, Kind, analyse, precision};

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

/// The comparisons of an experiment in which something differs, each with the family of that verdict.
fn alarms(run: &Recorded, experiment: &str) -> Vec<(Role, Comparison)> {
    let differs = |finding: &Finding| {
        let comparison = &run.plan.comparisons[finding.comparison];
        let metric = &run.plan.metrics(&run.plan.cells[finding.cell])[finding.metric];
        let interval = finding.difference.and_then(|one| one.interval);
        let is_alarm = comparison.experiment == experiment
            && metric.weight == Weight::Verdict
            && interval.is_some_and(|interval| !interval.contains(0.0));
        let role = run.plan.role(finding.comparison, finding.cell, finding.metric);
        is_alarm.then(|| (role, comparison.clone()))
    };
    analyse(run).findings.iter().filter_map(differs).collect()
}

/// Whether anything differs in `start` and in `exec`, in comparisons of this kind.
fn alarmed(run: &Recorded, role: Role) -> [bool; 2] {
    ["start", "exec"].map(|name| alarms(run, name).iter().any(|(own, _)| *own == role))
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
    let (mut alarms, mut firsts, mut ended) = ([0usize; 2], [0usize; 2], [0usize; 3]);
    for seed in 0..RUNS {
        let mut run = of_the_same(1000 + seed, LOOKS[2]);
        run.plan.looks = LOOKS.to_vec();
        // As wide as the widest intervals are at one look or another.
        let asked = 0.16 + 0.03 * (seed % 8) as f64;
        run.plan.precision = Some(Precision { asked, pilot_rounds: 15, predicted: None, capped: false });
        let first = LOOKS.iter().position(|look| precision::is_reached(&after(&run, *look)));
        let look = first.unwrap_or(LOOKS.len() - 1);
        ended[look] += 1;
        let ended = after(&run, LOOKS[look]);
        let [first, others] = [Role::First, Role::Asked].map(|role| alarmed(&ended, role));
        firsts.iter_mut().zip(first).for_each(|(count, one)| *count += usize::from(one));
        let alarmed = others;
        alarms.iter_mut().zip(alarmed).for_each(|(count, one)| *count += usize::from(one));
    }
    println!("ended at looks: {ended:?}; alarms {alarms:?}");
    assert!(ended.iter().all(|count| *count > 20), "runs end at {ended:?}");
    assert!(alarms.iter().chain(&firsts).all(|count| *count <= MOST), "{alarms:?}, {firsts:?} of {RUNS}");
    assert!(alarms.iter().sum::<usize>() > 0, "a rule that never speaks keeps every level");
}

/// The number of runs with false differences, by experiment and kind of comparison. With 300 runs and a true
/// level of 5 %, more than 28 alarms have a probability below 0.1 %; with none at all the test would show
/// nothing.
#[test]
fn each_family_keeps_its_level_whatever_else_is_in_the_run() {
    const RUNS: u64 = 300;
    const MOST: usize = 28;
    for role in [Role::First, Role::Asked, Role::Control] {
        let mut alarms = [0usize; 2];
        for seed in 0..RUNS {
            // As many rounds as the levels need, so that these are nearly used up.
            let rounds = match role {
                Role::First => 8,
                Role::Asked => 11,
                _ => 9,
            };
            let alarmed = alarmed(&of_the_same(2000 + seed, rounds), role);
            alarms.iter_mut().zip(alarmed).for_each(|(count, one)| *count += usize::from(one));
        }
        for (place, count) in alarms.into_iter().enumerate() {
            assert!((1..=MOST).contains(&count), "{role:?} of experiment {place}: {count} of {RUNS}");
        }
    }
}

/// Settings are asked about first, in one family with the first question about subjects: all of it keeps the level, as above, and
/// settings take their share of it.
#[test]
fn settings_keep_the_level_together_with_the_subjects() {
    const RUNS: u64 = 300;
    const MOST: usize = 28;
    // As many rounds as the level needs, so that it is nearly used up.
    const ROUNDS: usize = 9;
    let (mut any, mut of_settings, mut of_subjects) = (0usize, 0usize, 0usize);
    for seed in 0..RUNS {
        let run = independent(vec!["net-latency"], 3000 + seed, ROUNDS);
        let own = &run.plan.verdicts[0];
        // Six pairs of subjects on each of three paths, and the published path of each of four against its bridge.
        assert_eq!((own.first, own.asked, run.plan.without_verdicts()), (6 + 4, 6 * 2, Vec::new()));
        let mut asked = alarms(&run, "net-latency");
        asked.retain(|(role, _)| *role == Role::First);
        let has = |is_of_settings: bool| {
            asked.iter().any(|(_, one)| one.relation.is_of_settings() == is_of_settings)
        };
        any += usize::from(!asked.is_empty());
        of_settings += usize::from(has(true));
        of_subjects += usize::from(has(false));
    }
    println!("{any} alarms of {RUNS}: {of_settings} of settings, {of_subjects} of subjects");
    assert!((1..=MOST).contains(&any), "{any} of {RUNS}");
    assert!(of_settings > 0 && of_subjects > of_settings, "{of_settings} and {of_subjects} of {RUNS}");
}

/// Two runtimes among what `run --quick` measures, one a quarter slower than the other, or not: values vary by 8 %, and one in
/// fourteen is up to 60 % longer. What is asked first is decided in nine of ten runs of fifteen rounds. With 200 runs at 90 %, fewer than 167 have a probability below 0.1 %; the false alarms of one
/// question in four at 5 % together, more than 10.
#[test]
fn a_difference_of_a_quarter_is_decided_in_nine_of_ten_quick_runs() {
    const RUNS: u64 = 200;
    const ROUNDS: usize = 15;
    let subjects = || {
        let of = |text: &str, layer| Entry { offers: Need::CONTAINER.to_vec(), ..entry(text, layer) };
        let runtimes = ["crun", "runc"].map(|name| of(name, Layer::Runtime));
        let engines = ["docker", "podman", "containerd"].map(|name| of(name, Layer::Engine));
        let mut all = vec![of("bare", Layer::Bare), of("floor", Layer::Floor)];
        all.extend(runtimes.into_iter().chain(engines));
        all
    };
    let run = |seed: u64, slower: f64| {
        let plan = plan::make(Request { seed, ..request(vec!["start"], subjects(), ROUNDS) });
        let mut rng = Rng::for_stream(seed, 0);
        let mut value = |typical: f64| {
            let spike = if rng.uniform() < 1.0 / 14.0 { 0.6 * rng.uniform() } else { 0.0 };
            typical * (1.0 + 0.08 * rng.standard_normal() + spike)
        };
        let values = |cell: usize| {
            let typical = match plan.entry(cell).spec.name.as_str() {
                "bare" => 0.0005,
                "floor" => 0.004,
                "crun" => 0.035,
                "runc" => 0.035 * slower,
                _ => 0.3,
            };
            // No launch is gone before its client returns.
            let share = |name: &str| match name {
                "returned" => 1.0,
                "gone" => 3.0,
                _ => 0.3,
            };
            let metrics = plan.metrics(&plan.cells[cell]).iter();
            metrics.map(|one| (0..ROUNDS).map(|_| value(share(one.name) * typical)).collect()).collect()
        };
        recorded(plan.clone(), values)
    };
    let is_decided = |run: &Recorded| {
        let of_both = |one: &&Finding| {
            let mut both = [&*one.about.subject, &*one.about.against];
            both.sort_unstable();
            both == ["crun", "runc"] && run.plan.role(one.comparison, one.cell, one.metric) == Role::First
        };
        let found = analyse(run).findings.iter().find(of_both).map(Finding::kind);
        matches!(found.expect("a question"), Kind::Slower | Kind::Faster)
    };
    let count =
        |slower: f64, from: u64| (0..RUNS).filter(|seed| is_decided(&run(from + seed, slower))).count();
    let (found, false_alarms) = (count(1.25, 5000), count(1.0, 6000));
    println!("decided in {found} of {RUNS} runs, false alarms in {false_alarms}");
    assert!(found >= 167 && false_alarms <= 10, "{found} found, {false_alarms} false of {RUNS}");
}
