//! Verdicts, warnings and suspects on planted data whose truth is known: each rule has a case in
//! which it fires and a near miss in which it must not.

// long: a case and its near miss for each rule, on the same planted runs.

use dunnage::experiment::Weight;
use dunnage::outcome::{Failure, FailureClass};
use dunnage::plan::prediction::Written;
use dunnage::plan::{self, Entry, Ladder, Layer, Prediction, Relation, Request, Role, Rounds};
use dunnage::record::{Cause, Environment, FailureRow, Recorded, RoundContext, Series, Timer};
use dunnage::report::predicted::{Came, predictions};
use dunnage::report::summary::{Topic, sentences};
use dunnage::stats::Rng;
use dunnage::subject::Spec;
use dunnage::units::Nanos;
use dunnage::verdict::{Analysis, Verdict, Warning, analyse};

const ROUNDS: usize = 20;
/// Positions of the metrics of `start`.
const RETURNED: usize = 0;
const FIRST: usize = 1;
const GONE: usize = 2;

fn entry(text: &str, layer: Layer) -> Entry {
    let spec = Spec::parse(text).unwrap();
    let launch = Nanos::from_millis(1);
    Entry {
        label: spec.shown(),
        spec,
        layer,
        ladder: Ladder::AsInstalled,
        twin_of: None,
        runtime: None,
        launch,
        offers: dunnage::subject::Need::CONTAINER.to_vec(),
        only_in: Vec::new(),
        variant_of: None,
    }
}

/// A run of `start`, idle, in which every subject takes about this many milliseconds.
fn planted(subjects: &[(&str, Layer, f64)], noise: f64) -> Recorded {
    let plan = plan::make(Request {
        experiments: vec!["start"],
        subjects: subjects.iter().map(|(name, layer, _)| entry(name, *layer)).collect(),
        chosen: vec![("prestate".into(), vec!["idle".into()])],
        seed: 3,
        rounds: Rounds::Fixed(ROUNDS),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
    });
    let series = plan.cells.iter().enumerate().map(|(cell, planned)| {
        let entry = &plan.subjects[planned.subject];
        let original = entry.twin_of.unwrap_or(planned.subject);
        let mut rng = Rng::for_stream(11, cell as u64);
        let mut values = vec![vec![f64::NAN; ROUNDS]; plan.metrics(planned).len()];
        for round in 0..ROUNDS {
            let returned = subjects[original].2 * 1e-3 * (noise * rng.standard_normal()).exp();
            let shares = [1.0, 0.6, 1.1, 0.3, 0.1, 0.4, 0.02, 0.02];
            for (column, share) in values.iter_mut().zip(shares) {
                column[round] = returned * share;
            }
        }
        let order = |round: usize| plan.order(plan.warmups + round);
        let before = |round: usize| {
            let order = order(round);
            let position = order.iter().position(|other| *other == cell).unwrap();
            position.checked_sub(1).map(|index| order[index])
        };
        Series {
            values,
            predecessors: (0..ROUNDS).map(before).collect(),
            treatments: vec![Some(0); ROUNDS],
            samples: Vec::new(),
        }
    });
    let series = series.collect();
    Recorded {
        run: "test".into(),
        environment: Environment { timer: Timer { step: 30, cost: 30 }, ..Environment::default() },
        series,
        failures: Vec::new(),
        contexts: vec![Some(RoundContext::default()); plan.warmups + plan.rounds],
        treatments: vec![vec![("root_durability".into(), "ordinary".into())]],
        missing: Vec::new(),
        damaged: 0,
        cut: false,
        resumed: false,
        plan,
    }
}

/// The same under predictions, which must be there before anything is measured.
fn predicted(subjects: &[(&str, Layer, f64)], noise: f64, predictions: &[&str]) -> Recorded {
    let mut run = planted(subjects, noise);
    let read = |text: &&str| Prediction::of(&Written::parse(text).unwrap(), &["start"]).unwrap();
    run.plan = plan::make(Request {
        predictions: predictions.iter().map(read).collect(),
        experiments: vec!["start"],
        subjects: subjects.iter().map(|(name, layer, _)| entry(name, *layer)).collect(),
        chosen: vec![("prestate".into(), vec!["idle".into()])],
        seed: 3,
        rounds: Rounds::Fixed(ROUNDS),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
    });
    run
}

fn came(run: &Recorded) -> Vec<Came> {
    predictions(run, &analyse(run)).iter().map(|prediction| prediction.came).collect()
}

#[test]
fn predictions_are_set_against_the_planted_truth() {
    let subjects = [
        ("bare", Layer::Bare, 1.0),
        ("floor", Layer::Floor, 3.0),
        ("crun", Layer::Runtime, 20.0),
        ("other=crun", Layer::Runtime, 20.0),
        ("docker", Layer::Engine, 200.0),
    ];
    let run = predicted(
        &subjects,
        0.002,
        &[
            "start.returned: bare < floor < crun < docker",
            "start.returned: docker > crun > floor > bare",
            "start.returned: crun = other",
            "start.returned[prestate=idle]: floor = docker",
            "start.gone: docker < bare",
            "start.returned: crun < other",
            "start.returned: bare < podman < docker",
            "start.returned[prestate=primed]: bare < floor",
        ],
    );
    use Came::{DidNotHold, Held, NotDecided};
    assert_eq!(came(&run), [Held, Held, Held, DidNotHold, DidNotHold, DidNotHold, NotDecided, NotDecided]);
    let links = &predictions(&run, &analyse(&run))[6].links;
    assert_eq!(links.iter().map(|link| link.verdict).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn what_is_not_decided_speaks_neither_for_nor_against_a_prediction() {
    let subjects =
        [("bare", Layer::Bare, 1.0), ("crun", Layer::Runtime, 20.0), ("other=crun", Layer::Runtime, 20.6)];
    let every =
        ["start.returned: crun < other", "start.returned: crun = other", "start.returned: crun > other"];
    let noisy = predicted(&subjects, 0.2, &every);
    assert_eq!(came(&noisy), [Came::NotDecided; 3]);
    // Suspect numbers decide nothing either.
    let mut suspect = predicted(&subjects, 0.002, &["start.returned: bare < crun"]);
    assert_eq!(came(&suspect), [Came::Held]);
    for round in 0..ROUNDS {
        change(&mut suspect, "crun", RETURNED, round, 0.0001);
    }
    assert_eq!(came(&suspect), [Came::NotDecided]);
}

#[test]
fn pairs_that_only_a_prediction_needs_are_compared_and_counted() {
    let subjects =
        [("bare", Layer::Bare, 1.0), ("floor", Layer::Floor, 3.0), ("docker", Layer::Engine, 200.0)];
    let without = predicted(&subjects, 0.01, &[]).plan;
    let with =
        predicted(&subjects, 0.01, &["start.returned: docker > floor", "start.gone: floor < docker"]).plan;
    assert_eq!(with.comparisons.len(), without.comparisons.len() + 1);
    let added = with.comparisons.last().unwrap();
    assert_eq!(added.relation, Relation::Predicted);
    let label = |index: usize| with.subjects[index].label.as_str();
    assert_eq!((label(added.subject), label(added.against)), ("docker", "floor"));
    // One setting, three metrics that are decided upon.
    assert_eq!(with.verdicts_asked(), without.verdicts_asked() + 3);
    let known = predicted(&subjects, 0.01, &["start.returned: bare < docker"]).plan;
    assert_eq!(known.comparisons, without.comparisons);
}

fn ladder() -> Recorded {
    let subjects = [("bare", Layer::Bare, 1.0), ("floor", Layer::Floor, 3.0), ("crun", Layer::Runtime, 20.0)];
    planted(&subjects, 0.01)
}

fn cell_of(run: &Recorded, label: &str) -> usize {
    let subject = run.plan.subjects.iter().position(|entry| entry.label == label).unwrap();
    run.plan.cells.iter().position(|cell| cell.subject == subject).unwrap()
}

fn verdict<'a>(run: &Recorded, analysis: &'a Analysis, label: &str, against: &str) -> &'a Verdict {
    let (cell, other) = (cell_of(run, label), cell_of(run, against));
    let found = analysis
        .findings
        .iter()
        .find(|one| one.cell == cell && one.against == other && one.metric == RETURNED);
    &found.unwrap().verdict
}

fn rules(analysis: &Analysis) -> Vec<&'static str> {
    analysis.suspects.iter().map(|suspect| suspect.rule).collect()
}

fn change(run: &mut Recorded, label: &str, metric: usize, round: usize, value: f64) {
    let cell = cell_of(run, label);
    run.series[cell].values[metric][round] = value;
}

#[test]
fn planted_differences_are_found_and_nothing_is_suspect() {
    let run = ladder();
    let analysis = analyse(&run);
    assert_eq!(verdict(&run, &analysis, "crun", "bare"), &Verdict::More);
    assert_eq!(verdict(&run, &analysis, "crun", "floor"), &Verdict::More);
    assert_eq!(verdict(&run, &analysis, "bare (twin)", "bare"), &Verdict::Same);
    assert_eq!(rules(&analysis), [""; 0]);
    assert_eq!(analysis.rounds, ROUNDS);
}

#[test]
fn subjects_that_are_equal_are_the_same_and_a_small_difference_in_much_noise_is_undecided() {
    let equal = planted(&[("bare", Layer::Bare, 10.0), ("crun", Layer::Runtime, 10.0)], 0.005);
    assert_eq!(verdict(&equal, &analyse(&equal), "crun", "bare"), &Verdict::Same);
    let noisy = planted(&[("bare", Layer::Bare, 10.0), ("crun", Layer::Runtime, 10.4)], 0.3);
    let Verdict::Undecided { smallest_visible, new_run } = *verdict(&noisy, &analyse(&noisy), "crun", "bare")
    else {
        panic!("decided");
    };
    assert!(smallest_visible > 0.0 && new_run.is_none_or(|new| new.rounds > ROUNDS));
}

#[test]
fn too_few_rounds_give_no_verdict() {
    let mut run = ladder();
    run.contexts.truncate(run.plan.warmups + 5);
    run.contexts.resize(run.plan.warmups + ROUNDS, None);
    let analysis = analyse(&run);
    assert!(matches!(verdict(&run, &analysis, "crun", "bare"), Verdict::TooFew { have: 5, .. }));
    assert!(warns(&analysis, "unfinished", &format!("the run ended after 5 of {ROUNDS} rounds")));
}

#[test]
fn less_than_zero_is_suspect_and_zero_is_not() {
    let mut run = ladder();
    change(&mut run, "crun", 4, 3, 0.0);
    assert_eq!(rules(&analyse(&run)), [""; 0]);
    change(&mut run, "crun", 4, 3, -1e-9);
    assert_eq!(rules(&analyse(&run)), ["negative"]);
}

#[test]
fn a_difference_of_two_launches_is_suspect_below_zero_only_with_its_median() {
    let request = Request {
        experiments: vec!["command"],
        subjects: vec![
            entry("bare", Layer::Bare),
            entry("floor", Layer::Floor),
            entry("crun", Layer::Runtime),
        ],
        chosen: vec![("cmd".into(), vec!["true".into()])],
        seed: 3,
        rounds: Rounds::Fixed(ROUNDS),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
    };
    let mut run = ladder();
    run.plan = plan::make(request);
    let names = run.plan.metrics(&run.plan.cells[0]).iter().map(|metric| metric.name);
    let beyond = names.into_iter().position(|name| name == "beyond_start").unwrap();
    let crun = cell_of(&run, "crun");
    run.contexts = vec![Some(RoundContext::default()); run.plan.warmups + ROUNDS];
    // As noise has it, and then as it cannot be.
    for (shift, expected) in [(0.5, vec![]), (30.5, vec!["negative"])] {
        for round in 0..ROUNDS {
            run.series[crun].values[beyond][round] = 1e-4 * (round as f64 - ROUNDS as f64 / 2.0 - shift);
        }
        assert_eq!(rules(&analyse(&run)), expected);
    }
}

#[test]
fn shorter_than_the_shortest_bare_start_is_suspect_and_just_as_short_is_not() {
    let mut run = ladder();
    let bare = &run.series[cell_of(&run, "bare")].values[RETURNED];
    let shortest = bare.iter().copied().fold(f64::INFINITY, f64::min);
    for (metric, share) in [(RETURNED, 1.0), (FIRST, 0.5), (5, 0.3)] {
        change(&mut run, "crun", metric, 0, shortest * share);
    }
    assert_eq!(rules(&analyse(&run)), [""; 0]);
    change(&mut run, "crun", RETURNED, 0, shortest * 0.999);
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), ["shorter than a bare start"]);
    assert_eq!(verdict(&run, &analysis, "crun", "bare"), &Verdict::Suspect(0));
}

#[test]
fn a_part_that_is_longer_than_its_whole_is_suspect_and_one_as_long_is_not() {
    let mut run = ladder();
    let whole = run.series[cell_of(&run, "crun")].values[RETURNED][4];
    change(&mut run, "crun", FIRST, 4, whole);
    assert_eq!(rules(&analyse(&run)), [""; 0]);
    change(&mut run, "crun", FIRST, 4, whole * 1.0001);
    assert_eq!(rules(&analyse(&run)), ["longer than the whole"]);
}

#[test]
fn a_container_that_is_faster_than_bare_beyond_the_noise_is_suspect_and_one_within_it_is_not() {
    let faster = planted(&[("bare", Layer::Bare, 10.0), ("crun", Layer::Runtime, 8.0)], 0.005);
    let analysis = analyse(&faster);
    assert!(rules(&analysis).contains(&"faster than bare"), "{:?}", rules(&analysis));
    assert!(matches!(verdict(&faster, &analysis, "crun", "bare"), Verdict::Suspect(_)));
    // Within the noise floor of the twins, a little less is chance.
    let mut within = planted(&[("bare", Layer::Bare, 10.0), ("crun", Layer::Runtime, 10.0)], 0.005);
    let cell = cell_of(&within, "crun");
    let bare = within.series[cell_of(&within, "bare")].values.clone();
    for (metric, column) in within.series[cell].values.iter_mut().enumerate() {
        column.iter_mut().zip(&bare[metric]).for_each(|(own, bare)| *own = bare * 0.9999);
    }
    let analysis = analyse(&within);
    assert!(!rules(&analysis).contains(&"faster than bare"), "{:?}", rules(&analysis));
}

#[test]
fn a_twin_that_differs_overrules_what_is_no_larger_and_leaves_the_rest() {
    let mut run = ladder();
    let twin = cell_of(&run, "bare (twin)");
    for metric in [RETURNED, FIRST, GONE] {
        run.series[twin].values[metric].iter_mut().for_each(|value| *value *= 1.1);
    }
    let analysis = analyse(&run);
    let moved = rules(&analysis);
    assert!(!moved.is_empty() && moved.iter().all(|rule| *rule == "control moved"), "{moved:?}");
    assert!(matches!(verdict(&run, &analysis, "bare (twin)", "bare"), Verdict::Suspect(_)));
    assert_eq!(verdict(&run, &analysis, "crun", "bare"), &Verdict::More);
}

#[test]
fn columns_that_agree_to_the_last_digit_are_suspect_and_one_other_value_clears_them() {
    let mut run = planted(
        &[("bare", Layer::Bare, 1.0), ("crun", Layer::Runtime, 9.0), ("runc", Layer::Runtime, 9.0)],
        0.01,
    );
    let (one, other) = (cell_of(&run, "crun"), cell_of(&run, "runc"));
    run.series[other] = run.series[one].clone();
    assert_eq!(rules(&analyse(&run)), ["two columns that are copies"]);
    run.series[other].values[RETURNED][7] *= 1.0 + 1e-9;
    assert_eq!(rules(&analyse(&run)), [""; 0]);
}

/// Whether there is a warning of this kind that says so.
fn warns(analysis: &Analysis, kind: &str, words: &str) -> bool {
    analysis.warnings.iter().any(|one| one.kind == kind && one.seen.contains(words))
}

#[test]
fn warnings_fire_on_what_was_planted_and_not_on_clean_data() {
    let clean = analyse(&ladder());
    assert_eq!(clean.warnings, []);
    assert_eq!(clean.carry_over_tested, 6);

    let mut drifting = ladder();
    let cell = cell_of(&drifting, "crun");
    let column = &mut drifting.series[cell].values[RETURNED];
    column.iter_mut().enumerate().for_each(|(round, value)| *value *= 1.0 + 0.02 * round as f64);
    assert!(warns(&analyse(&drifting), "drift", "returned of `crun`"));

    let mut spiky = ladder();
    change(&mut spiky, "crun", RETURNED, 9, 0.2);
    assert!(warns(&analyse(&spiky), "outliers", "has 1 value far from the others"));

    let mut heaped = ladder();
    for round in (0..ROUNDS).step_by(2) {
        change(&mut heaped, "crun", RETURNED, round, 0.04 + 1e-5 * round as f64);
    }
    assert!(warns(&analyse(&heaped), "bimodal", "`crun`"));

    let mut volatile = ladder();
    volatile.treatments[0][0].1 = "volatile".into();
    assert!(warns(&analyse(&volatile), "volatile root", "nothing reaches the disk"));
}

#[test]
fn another_file_under_the_same_name_is_warned_of() {
    let mut run = ladder();
    let (other, hosts) = ("other program", "the host's program");
    let clean = analyse(&run);
    assert!(!warns(&clean, other, "") && !warns(&clean, hosts, ""));
    let file = |sum: &str| {
        [("program", "/bin/x"), ("program_sha256", sum)].map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    // Everybody executes the same file, which on the host is its own.
    run.treatments[0].extend(file("1234"));
    let analysis = analyse(&run);
    assert!(warns(&analysis, hosts, "/bin/x") && !warns(&analysis, other, ""));
    // One subject executes another.
    let mut treatment = run.treatments[0].clone();
    treatment.last_mut().unwrap().1 = "5678".into();
    run.treatments.push(treatment);
    let cell = cell_of(&run, "crun");
    let last = run.treatments.len() - 1;
    run.series[cell].treatments.iter_mut().for_each(|number| *number = Some(last));
    assert!(warns(&analyse(&run), other, "5678… by crun"));
}

#[test]
fn when_a_layer_matters_is_told_only_where_all_of_it_is_decided() {
    let layers = |other: f64| -> Vec<Layer> {
        let run = planted(
            &[
                ("bare", Layer::Bare, 20.0),
                ("floor", Layer::Floor, 30.0),
                ("crun", Layer::Runtime, 60.0),
                ("other=crun", Layer::Runtime, other),
            ],
            0.002,
        );
        let all = sentences(&run, &analyse(&run));
        let told = all.iter().find(|one| one.topic == Topic::Threshold).expect("a threshold");
        let names = [(Layer::Floor, "(the floor)"), (Layer::Runtime, "(a runtime)")];
        names.into_iter().filter(|(_, name)| told.text.contains(name)).map(|(layer, _)| layer).collect()
    };
    assert_eq!(layers(70.0), [Layer::Floor, Layer::Runtime]);
    assert_eq!(layers(20.1), [Layer::Floor], "one of the runtimes adds nothing that matters");
}

#[test]
fn carry_over_is_found_where_a_predecessor_makes_a_difference() {
    let mut run = planted(
        &[("bare", Layer::Bare, 1.0), ("floor", Layer::Floor, 3.0), ("crun", Layer::Runtime, 20.0)],
        0.002,
    );
    let cell = cell_of(&run, "crun");
    for round in 0..ROUNDS {
        let Some(before) = run.series[cell].predecessors[round] else { continue };
        if run.plan.subjects[run.plan.cells[before].subject].spec.name == "bare" {
            run.series[cell].values[RETURNED][round] *= 1.3;
        }
    }
    let analysis = analyse(&run);
    let is_told = |one: &&Warning| one.kind == "carry-over" && one.labels == ["crun"];
    let seen = &analysis.warnings.iter().find(is_told).expect("carry-over").seen;
    assert!(seen.contains(" right after bare ") && !seen.contains('−'), "{seen}");
}

#[test]
fn failures_are_counted_by_class_and_leave_holes_not_numbers() {
    let mut run = ladder();
    let cell = cell_of(&run, "crun");
    for round in [2, 5] {
        for column in &mut run.series[cell].values {
            column[round] = f64::NAN;
        }
        let failure = Failure::new(FailureClass::Crash, "boom");
        run.failures.push(FailureRow {
            cell,
            round: run.plan.warmups + round,
            cause: Cause::Failed(failure),
        });
    }
    let analysis = analyse(&run);
    assert_eq!(analysis.cells[cell].failures, [(FailureClass::Crash, 2, "crash: boom".to_owned())]);
    let finding = analysis.findings.iter().find(|one| one.cell == cell && one.metric == RETURNED).unwrap();
    assert_eq!(finding.difference.unwrap().rounds, ROUNDS - 2);
    assert!(warns(&analysis, "failures", "failed in 2 rounds: crash: boom"));
}

#[test]
fn the_floor_explains_its_share_of_what_stands_above_it() {
    let run = ladder();
    let analysis = analyse(&run);
    let share = analysis.floor_shares.iter().find(|share| share.cell == cell_of(&run, "crun")).unwrap();
    assert!((share.share.value - 0.15).abs() < 0.005, "{share:?}");
}

#[test]
fn comparisons_with_a_cause_differ_in_one_thing() {
    let run = ladder();
    assert!(run.plan.comparisons.iter().all(|one| !matches!(one.relation, Relation::OneKey(_))));
}

/// A run of two experiments in which every subject is the same under another name, and all values are independent.
fn of_the_same(seed: u64, rounds: usize) -> Recorded {
    let offers = dunnage::subject::Need::ALL.to_vec();
    let same = |name: &str| Entry { offers: offers.clone(), ..entry(&format!("{name}=fake"), Layer::Engine) };
    let plan = plan::make(Request {
        experiments: vec!["start", "exec"],
        subjects: ["a", "b", "c", "d"].map(same).to_vec(),
        chosen: vec![("prestate".into(), vec!["idle".into()])],
        seed,
        rounds: Rounds::Fixed(rounds),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
    });
    let mut rng = Rng::for_stream(seed, 0);
    let mut column = || (0..rounds).map(|_| 0.02 * (0.1 * rng.standard_normal()).exp()).collect::<Vec<f64>>();
    let series = plan.cells.iter().map(|planned| Series {
        values: plan.metrics(planned).iter().map(|_| column()).collect(),
        predecessors: vec![None; rounds],
        treatments: vec![Some(0); rounds],
        samples: Vec::new(),
    });
    Recorded {
        run: "same".into(),
        environment: Environment { timer: Timer { step: 30, cost: 30 }, ..Environment::default() },
        series: series.collect(),
        failures: Vec::new(),
        contexts: vec![Some(RoundContext::default()); plan.warmups + plan.rounds],
        treatments: vec![Vec::new()],
        missing: Vec::new(),
        damaged: 0,
        cut: false,
        resumed: false,
        plan,
    }
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
                let differs = |finding: &dunnage::verdict::Finding| {
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

/// Engines with a runtime of one's choice are not all compared with each other, and yet one of them takes the least.
#[test]
fn the_least_is_shown_by_comparisons_or_by_way_of_the_baseline() {
    let choice = |docker_with_crun: f64| {
        let engines =
            [("docker", 245.0), ("docker+crun", docker_with_crun), ("podman", 180.0), ("podman+runc", 190.0)];
        let engines = engines.map(|(name, millis)| (name, Layer::Engine, millis));
        let run = planted(&[&[("bare", Layer::Bare, 1.0)], &engines[..]].concat(), 0.005);
        let analysis = analyse(&run);
        sentences(&run, &analysis).into_iter().find(|one| one.topic == Topic::Choice).expect("a choice")
    };
    let least = choice(231.0);
    assert!(least.text.starts_with("of the engines as installed, podman takes the least"), "{}", least.text);
    // docker and podman+runc in comparisons of their own, docker+crun by its difference from bare and podman's.
    assert_eq!(least.rests_on.len(), 4);
    // Less than matters apart: nobody knows which.
    let open = choice(181.0).text;
    assert!(open.contains("which of docker+crun and podman takes the least is not decided"), "{open}");
    let other = choice(150.0).text;
    assert!(other.contains(", docker+crun takes the least"), "{other}");
}

/// A run of a person's own command that takes seconds, on bare and in crun, with a launch of nothing before each.
fn of_a_command() -> Recorded {
    let mut run = of_the_same(5, ROUNDS);
    run.plan = plan::make(Request {
        experiments: vec!["command"],
        subjects: [("bare", Layer::Bare), ("crun", Layer::Runtime)]
            .map(|(name, layer)| Entry { offers: dunnage::subject::Need::ALL.to_vec(), ..entry(name, layer) })
            .to_vec(),
        chosen: vec![("cmd".into(), vec!["sort file".into()])],
        seed: 5,
        rounds: Rounds::Fixed(ROUNDS),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
    });
    run.contexts = vec![Some(RoundContext::default()); run.plan.warmups + run.plan.rounds];
    let series = run.plan.cells.iter().enumerate().map(|(cell, planned)| {
        let mut rng = Rng::for_stream(17, cell as u64);
        let is_bare = run.plan.subjects[planned.subject].layer == Layer::Bare;
        let start = if is_bare { 0.001 } else { 0.02 };
        let value = |metric: &dunnage::experiment::Metric, rng: &mut Rng| match metric.name {
            "start" => start * (0.01 * rng.standard_normal()).exp(),
            _ => 3.0 * (0.05 * rng.standard_normal()).exp(),
        };
        let metrics = run.plan.metrics(planned);
        let values = metrics.iter().map(|metric| (0..ROUNDS).map(|_| value(metric, &mut rng)).collect());
        Series {
            values: values.collect(),
            predecessors: vec![None; ROUNDS],
            treatments: vec![Some(0); ROUNDS],
            samples: Vec::new(),
        }
    });
    run.series = series.collect();
    run
}

#[test]
fn what_a_command_takes_is_not_a_start_and_its_empty_launch_is() {
    const RULE: &str = "shorter than a bare start";
    let mut run = of_a_command();
    let (bare, crun) = (cell_of(&run, "bare"), cell_of(&run, "crun"));
    let metric = |name: &str| {
        run.plan.metrics(&run.plan.cells[crun]).iter().position(|metric| metric.name == name).unwrap()
    };
    let (returned, start) = (metric("returned"), metric("start"));
    // By chance the shortest of a command's times is the container's: nearly, but not a start.
    let shortest = run.series[bare].values[returned].iter().copied().fold(f64::INFINITY, f64::min);
    run.series[crun].values[returned][3] = shortest * 0.99;
    assert!(!rules(&analyse(&run)).contains(&RULE));
    let shortest = run.series[bare].values[start].iter().copied().fold(f64::INFINITY, f64::min);
    run.series[crun].values[start][3] = shortest * 1.01;
    assert!(!rules(&analyse(&run)).contains(&RULE));
    run.series[crun].values[start][3] = shortest * 0.99;
    assert!(rules(&analyse(&run)).contains(&RULE));
}
