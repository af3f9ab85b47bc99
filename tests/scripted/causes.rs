//! Causes on planted data with known truth: a key that removes the difference is named, one that removes half
//! of it is not, two that each remove it are named together, and without a difference nothing is named. The
//! rules on impossible values of system calls are also tested, with near misses.

use dunnage::experiment::syscall::CALLS;
use dunnage::plan::{self, Entry, Layer, Request};
use dunnage::record::Recorded;
use dunnage::report::summary::claims;
use dunnage::stats::Rng;
use dunnage::subject::{Need, Spec};
use dunnage::units::Nanos;
use dunnage::verdict::table::{ExperimentTable, Item};
use dunnage::verdict::{Analysis, Finding, Verdict, analyse};

use crate::scripted::planted::{cell_of, entry, recorded, request, rules};

const ROUNDS: usize = 20;
/// The time of a call on the host, in seconds.
const BARE: f64 = 100e-9;
/// The planted noise of one value.
const NOISE: f64 = 0.3e-9;
const VARIANTS: [&str; 3] = ["docker:seccomp=off", "docker:pid=host", "docker:net=host"];

fn subject(text: &str) -> Entry {
    Entry {
        variant_of: VARIANTS.contains(&text).then(|| "docker".to_owned()),
        launch: Nanos::from_millis(300),
        offers: vec![Need::Launch, Need::Work],
        ..entry(text, if text == "bare" { Layer::Bare } else { Layer::Engine })
    }
}

/// A run in which every call takes the same time on the host, and `more` in each subject, from its spec and
/// the name of the call. Rounds have a pace of their own, which all cells share.
fn planted(subjects: &[&str], more: impl Fn(&Spec, &str) -> f64, noise: f64) -> Recorded {
    let subjects = subjects.iter().map(|text| subject(text)).collect();
    let plan = plan::make(Request { seed: 5, ..request(vec!["syscall"], subjects, ROUNDS) });
    let values = |cell: usize| {
        let planned = &plan.cells[cell];
        let spec = &plan.subjects[planned.subject].spec;
        let mut own = Rng::for_stream(13, cell as u64);
        let values = plan.metrics(planned).iter().map(|metric| {
            let mut value = |round: usize| {
                let pace = 10e-9 * Rng::for_stream(7, round as u64).standard_normal().abs();
                // A call answered without the kernel takes less time.
                let gain = if metric.name == "clock_vdso" { 60e-9 } else { 0.0 };
                BARE - gain + pace + more(spec, metric.name) + noise * own.standard_normal()
            };
            match metric.name {
                // Without a limit its counters do not exist.
                "throttled_time" | "throttled_periods" => vec![f64::NAN; ROUNDS],
                _ => (0..ROUNDS).map(&mut value).collect(),
            }
        });
        values.collect()
    };
    let mut run = recorded(plan.clone(), values);
    run.environment.timer.step = 1;
    run.treatments = vec![vec![("store_bypass".into(), "vulnerable".into())]];
    run
}

fn with_variants() -> Vec<&'static str> {
    ["bare", "docker"].into_iter().chain(VARIANTS).collect()
}

fn causes(analysis: &Analysis) -> &ExperimentTable {
    analysis
        .experiment_tables
        .iter()
        .find(|experiment_table| experiment_table.name == "causes")
        .expect("the experiment shows causes")
}

/// The cause of the call, the share, and what else is reported.
fn cause_of(analysis: &Analysis, call: &str) -> Option<(String, Option<f64>, String)> {
    let text = |item: &Item| match item {
        Item::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let is_it = |row: &&Vec<Item>| [text(&row[0]), text(&row[1])] == ["docker", call];
    let row = causes(analysis).rows.iter().find(is_it)?;
    let share = match &row[6] {
        Item::Interval(share) => Some(share.value),
        Item::Nothing(_) => None,
        other => panic!("{other:?}"),
    };
    Some((text(&row[5]), share, text(&row[7])))
}

fn asked(spec: &Spec, key: &str) -> bool {
    spec.get(key).is_some()
}

fn in_a_container(spec: &Spec, time: f64) -> f64 {
    if spec.name == "bare" { 0.0 } else { time }
}

/// A tenth of a CPU: no undisturbed batch is slower, and many calls in sequence take ten times as long.
#[test]
fn a_limit_is_seen_by_whoever_waits_for_many_calls_and_told_as_the_reason() {
    let limit =
        |spec: &Spec, metric: &str| if metric == "elapsed" { in_a_container(spec, 9.0 * BARE) } else { 0.0 };
    let mut run = planted(&["bare", "docker"], limit, NOISE);
    let docker = cell_of(&run, "docker");
    run.series[docker].values[CALLS.len() + 2] = vec![8.9 * BARE; ROUNDS];
    run.series[docker].values[CALLS.len() + 3] = vec![48.0; ROUNDS];
    let analysis = analyse(&run);
    let verdict = |metric: &str| {
        let is_it = |one: &&Finding| one.about.metric == metric && one.cell == cell_of(&run, "docker");
        analysis.findings.iter().find(is_it).map(|one| one.verdict.clone())
    };
    assert_eq!([verdict("getppid"), verdict("elapsed")], [Some(Verdict::Same), Some(Verdict::More)]);
    let said = causes(&analysis).told().join("\n");
    assert!(said.contains("a fixed number of calls takes 8"), "{said}");
    assert!(
        said.contains("its CPU limit is the cause; throttled for") && said.contains("in 48 periods"),
        "{said}"
    );
    assert!(causes(&analysis).rows.is_empty(), "no call is slower: {:?}", causes(&analysis).rows);
    let both = causes(&analysis).notes.iter().any(|note| note.contains("what a user waits for"));
    assert!(both, "{:?}", causes(&analysis).notes);
}

/// The usual ratio, in addition to the difference in nanoseconds.
#[test]
fn a_slower_call_is_told_as_a_share_and_a_second_too() {
    let slower = |spec: &Spec, call: &str| if call == "stat" { in_a_container(spec, BARE) } else { 0.0 };
    let analysis = analyse(&planted(&["bare", "docker"], slower, NOISE));
    let row = &causes(&analysis).rows[0];
    let [Item::Value(share), Item::Value(rate)] = &row[3..5] else { panic!("{row:?}") };
    assert!((0.8..=1.0).contains(share), "{share}");
    assert!((*rate * 2.0 * BARE - 1.0).abs() < 0.2, "{rate}");
}

#[test]
fn the_key_that_takes_the_difference_away_is_named() {
    let filter = |spec: &Spec, call: &str| match call {
        "getppid" if asked(spec, "seccomp") => 1e-9,
        "getppid" => in_a_container(spec, 40e-9),
        "stat" if asked(spec, "pid") => 0.0,
        "stat" => in_a_container(spec, 30e-9),
        _ => 0.0,
    };
    let analysis = analyse(&planted(&with_variants(), filter, NOISE));
    let (cause, share, others) = cause_of(&analysis, "getppid").unwrap();
    assert_eq!((cause.as_str(), others.as_str()), ("seccomp", "2 others below 10 %"));
    assert!((share.unwrap() - 0.975).abs() < 0.02, "{share:?}");
    assert_eq!(cause_of(&analysis, "stat").unwrap().0, "pid");
    assert_eq!(causes(&analysis).rows.len(), 2, "{:?}", causes(&analysis).rows);
    let said = &causes(&analysis).told();
    assert_eq!(
        said,
        &[
            "docker: 2 calls are slower than the baseline by more than the noise floor: 1 because of pid, 1 because of seccomp"
        ]
    );
    assert_eq!(rules(&analysis), [""; 0]);
}

#[test]
fn two_causes_that_each_take_half_are_not_resolved() {
    let halves = |spec: &Spec, call: &str| {
        let left_out = asked(spec, "seccomp") || asked(spec, "net");
        if call == "getppid" { in_a_container(spec, if left_out { 20e-9 } else { 40e-9 }) } else { 0.0 }
    };
    let analysis = analyse(&planted(&with_variants(), halves, NOISE));
    let (cause, share, others) = cause_of(&analysis, "getppid").unwrap();
    assert_eq!((cause.as_str(), share), ("not resolved", None));
    assert!(others.contains("seccomp=off 5") && others.contains("net=host 5"), "{others}");
    assert!(
        !others.contains("pid"),
        "a key without effect is not listed with one that has an effect: {others}"
    );
}

#[test]
fn keys_of_which_each_alone_takes_all_are_named_together() {
    let together = |spec: &Spec, call: &str| {
        let left_out = asked(spec, "seccomp") || asked(spec, "pid");
        if call == "getppid" && !left_out { in_a_container(spec, 40e-9) } else { 0.0 }
    };
    let analysis = analyse(&planted(&with_variants(), together, NOISE));
    assert_eq!(cause_of(&analysis, "getppid").unwrap().0, "seccomp and pid together");
}

#[test]
fn what_is_left_out_only_together_with_something_else_is_not_named() {
    let filter = |spec: &Spec, call: &str| match call {
        "getppid" if asked(spec, "seccomp") => 0.0,
        "getppid" => in_a_container(spec, 40e-9),
        _ => 0.0,
    };
    let subjects = ["bare", "docker", "docker:seccomp=off,pid=host"];
    let analysis = analyse(&planted(&subjects, filter, NOISE));
    assert_eq!(cause_of(&analysis, "getppid").unwrap().0, "not tried");
}

#[test]
fn without_a_difference_there_is_no_cause() {
    let analysis = analyse(&planted(&with_variants(), |_, _| 0.0, NOISE));
    assert_eq!(causes(&analysis).rows, [] as [Vec<Item>; 0]);
    assert_eq!(causes(&analysis).told(), ["no call is slower than the baseline by an amount that matters"]);
}

#[test]
fn that_no_call_is_slower_is_said_only_where_every_one_was_decided() {
    // Three rounds cannot decide anything at any level.
    let mut few = planted(&with_variants(), |_, _| 0.0, NOISE);
    few.contexts.iter_mut().skip(few.plan.warmups + 3).for_each(|context| *context = None);
    let all =
        "no call is known to be slower than the baseline, but not all were decided; of 12 comparisons: ";
    assert_eq!(causes(&analyse(&few)).told(), [format!("{all}too few: 12")]);

    let mut gone = planted(&with_variants(), |_, _| 0.0, NOISE);
    let docker = cell_of(&gone, "docker");
    gone.series[docker].values[3].fill(f64::NAN);
    assert_eq!(causes(&analyse(&gone)).told(), [format!("{all}no data: 1")]);

    let noisy = analyse(&planted(&with_variants(), |_, _| 0.0, 30e-9));
    let noisy = causes(&noisy).told();
    assert!(noisy.len() == 1 && noisy[0].starts_with(all) && noisy[0].contains("undecided: "), "{noisy:?}");
}

#[test]
fn what_was_not_decided_is_counted_beside_what_is_slower() {
    let filter = |spec: &Spec, call: &str| {
        if call == "getppid" && !asked(spec, "seccomp") { in_a_container(spec, 40e-9) } else { 0.0 }
    };
    let mut run = planted(&with_variants(), filter, NOISE);
    assert_eq!(causes(&analyse(&run)).told().len(), 1);
    let docker = cell_of(&run, "docker");
    run.series[docker].values[3].fill(f64::NAN);
    let expected = "not all calls were decided; of 12 comparisons of calls with the baseline: no data: 1";
    assert_eq!(causes(&analyse(&run)).told().last(), Some(&expected));
}

#[test]
fn without_another_subject_nothing_is_said_to_be_no_slower() {
    let analysis = analyse(&planted(&["bare"], |_, _| 0.0, NOISE));
    assert_eq!(causes(&analysis).told(), ["no call is compared with the baseline"]);
}

#[test]
fn a_share_around_the_limit_is_not_resolved() {
    // About 80 % disappear: the interval cannot be completely above that.
    let most = |spec: &Spec, call: &str| match call {
        "getppid" if asked(spec, "seccomp") => 8e-9,
        "getppid" => in_a_container(spec, 40e-9),
        _ => 0.0,
    };
    let analysis = analyse(&planted(&with_variants(), most, 2e-9));
    let (cause, _, others) = cause_of(&analysis, "getppid").unwrap();
    assert_eq!(cause, "not resolved");
    assert!(others.starts_with("seccomp=off "), "{others}");
}

#[test]
fn noise_alone_names_nothing() {
    let noisy = planted(&with_variants(), |_, _| 0.0, 30e-9);
    assert_eq!(causes(&analyse(&noisy)).rows, [] as [Vec<Item>; 0]);
}

#[test]
fn a_vdso_that_takes_longer_than_the_call_is_suspect_and_one_that_takes_as_long_is_not() {
    let with = |vdso: f64| {
        let more = |_: &Spec, call: &str| if call == "clock_vdso" { 60e-9 + vdso } else { 0.0 };
        rules(&analyse(&planted(&["bare", "docker"], more, NOISE)))
    };
    let fired = with(5e-9);
    assert!(!fired.is_empty() && fired.iter().all(|rule| *rule == "vDSO slower than the call"), "{fired:?}");
    assert_eq!(with(0.0), [""; 0]);
    assert_eq!(with(-5e-9), [""; 0]);
}

#[test]
fn a_call_that_is_cheaper_inside_than_on_the_host_is_suspect_and_within_the_noise_is_not() {
    let with = |inside: f64| {
        let more =
            |spec: &Spec, call: &str| if call == "getppid" { in_a_container(spec, inside) } else { 0.0 };
        rules(&analyse(&planted(&["bare", "docker"], more, NOISE)))
    };
    assert_eq!(with(-20e-9), ["faster than bare"]);
    assert_eq!(with(-0.2e-9), [""; 0]);
}

#[test]
fn calls_that_agree_to_the_last_digit_are_suspect_and_one_other_value_clears_them() {
    let mut run = planted(&["bare", "docker"], |_, _| 0.0, NOISE);
    let (bare, docker) = (cell_of(&run, "bare"), cell_of(&run, "docker"));
    run.series[docker].values[0] = run.series[bare].values[0].clone();
    assert_eq!(rules(&analyse(&run)), ["two columns that are copies"]);
    run.series[docker].values[0][3] += 1e-12;
    assert_eq!(rules(&analyse(&run)), [""; 0]);
}

#[test]
fn what_twins_differ_by_too_has_no_cause_and_no_sentence() {
    let filter = |spec: &Spec, call: &str| {
        if call == "getppid" && !asked(spec, "seccomp") { in_a_container(spec, 40e-9) } else { 0.0 }
    };
    let mut run = planted(&with_variants(), filter, NOISE);
    let twin = cell_of(&run, "docker (twin)");
    let metrics = run.plan.metrics(&run.plan.cells[twin]);
    let getppid = metrics.iter().position(|metric| metric.name == "getppid").unwrap();

    // One disturbed round does not make a noise floor.
    run.series[twin].values[getppid][3] += 500e-9;
    assert_eq!(cause_of(&analyse(&run), "getppid").unwrap().0, "seccomp");

    // Twins that differ by 60 ns in most rounds do.
    for (round, value) in run.series[twin].values[getppid].iter_mut().enumerate() {
        *value += if round % 2 == 0 { 60e-9 } else { -60e-9 };
    }
    let analysis = analyse(&run);
    let (cause, share, others) = cause_of(&analysis, "getppid").unwrap();
    assert_eq!((cause.as_str(), share), ("not named", None));
    assert!(others.contains("seccomp=off 100 %"), "the observation is reported all the same: {others}");
    let said =
        "docker: no call is slower than the baseline by more than the noise floor; 1 by no more than that";
    assert_eq!(causes(&analysis).told(), [said]);
    let claims = claims(&run, &analysis);
    let says = |words: &str| claims.iter().any(|one| one.answer.contains(words));
    assert!(says(" in noise"), "{claims:?}");
    assert!(!says(" higher"), "{claims:?}");
}
