//! Numbers that cannot be true: each rule fires on a planted case, and not on a near miss.

use dunnage::experiment::Metric;
use dunnage::plan::{self, Entry, Layer, Request};
use dunnage::record::{Recorded, RoundContext};
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::verdict::{Verdict, analyse};

use super::{FIRST, GONE, RETURNED, ROUNDS, change, ladder, planted, verdict};
use crate::scripted::planted::{cell_of, entry, recorded, request, rules};

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
    let subjects = [("bare", Layer::Bare), ("floor", Layer::Floor), ("crun", Layer::Runtime)];
    let subjects = subjects.map(|(name, layer)| entry(name, layer)).to_vec();
    let chosen = vec![("cmd".into(), vec!["true".into()])];
    let mut run = ladder();
    run.plan = plan::make(Request { chosen, ..request(vec!["command"], subjects, ROUNDS) });
    let names = run.plan.metrics(&run.plan.cells[0]).iter().map(|metric| metric.name);
    let beyond = names.into_iter().position(|name| name == "beyond_start").unwrap();
    let crun = cell_of(&run, "crun");
    run.contexts = vec![Some(RoundContext::default()); run.plan.warmups + ROUNDS];
    // Possible with noise, and then impossible.
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
    for (metric, share) in [(RETURNED, 1.0), (FIRST, 0.4), (5, 0.3)] {
        change(&mut run, "crun", metric, 0, shortest * share);
    }
    assert_eq!(rules(&analyse(&run)), [""; 0]);
    change(&mut run, "crun", RETURNED, 0, shortest * 0.999);
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), ["shorter than a bare start"]);
    assert_eq!(verdict(&run, &analysis, "crun", "bare"), &Verdict::Suspect(0));
    // Of four bare starts all may have been slow.
    let bare = cell_of(&run, "bare");
    run.series[bare].values[RETURNED][4..].fill(f64::NAN);
    assert_eq!(rules(&analyse(&run)), [""; 0]);
    change(&mut run, "crun", RETURNED, 0, shortest * 0.49);
    assert_eq!(rules(&analyse(&run)), ["shorter than a bare start"]);
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
    let mut faster = planted(&[("bare", Layer::Bare, 10.0), ("crun", Layer::Runtime, 8.0)], 0.005);
    let analysis = analyse(&faster);
    assert!(rules(&analysis).contains(&"faster than bare"), "{:?}", rules(&analysis));
    assert!(matches!(verdict(&faster, &analysis, "crun", "bare"), Verdict::Suspect(_)));
    // A mechanism is named only if the samples show it.
    let why = |run: &Recorded| {
        let suspects = analyse(run).suspects;
        suspects.into_iter().find(|one| one.rule == "faster than bare").unwrap().mechanism
    };
    assert_eq!(why(&faster), "");
    let fact = |sum: &str| vec![("program_sha256".to_owned(), sum.to_owned())];
    faster.treatments = vec![fact("1"), fact("2")];
    let cell = cell_of(&faster, "crun");
    faster.series[cell].treatments.fill(Some(1));
    assert_eq!(why(&faster), "the two sides executed different files");
    // In memory alone no disk is claimed to be faster.
    let kept = |word: &str| vec![vec![("durability".to_owned(), word.to_owned())]];
    for (word, expected) in [("ordinary", true), ("memory", false)] {
        faster.treatments = kept(word);
        faster.series[cell].treatments.fill(Some(0));
        assert_eq!(rules(&analyse(&faster)).contains(&"faster than bare"), expected, "{word}");
    }
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

/// A run of a user's command that takes seconds, on bare and in crun, with an empty launch before each.
fn of_a_command() -> Recorded {
    let subject = |(name, layer)| Entry { offers: Need::ALL.to_vec(), ..entry(name, layer) };
    let subjects = [("bare", Layer::Bare), ("crun", Layer::Runtime)].map(subject).to_vec();
    let chosen = vec![("cmd".into(), vec!["sort file".into()])];
    let plan = plan::make(Request { chosen, seed: 5, ..request(vec!["command"], subjects, ROUNDS) });
    let values = |cell: usize| {
        let planned = &plan.cells[cell];
        let mut rng = Rng::for_stream(17, cell as u64);
        let is_bare = plan.subjects[planned.subject].layer == Layer::Bare;
        let start = if is_bare { 0.001 } else { 0.02 };
        let mut value = |metric: &Metric| match metric.name {
            "start" => start * (0.01 * rng.standard_normal()).exp(),
            _ => 3.0 * (0.05 * rng.standard_normal()).exp(),
        };
        plan.metrics(planned).iter().map(|metric| (0..ROUNDS).map(|_| value(metric)).collect()).collect()
    };
    recorded(plan.clone(), values)
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
    // By chance the shortest time of the command is the container's: close, but not a start.
    let shortest = run.series[bare].values[returned].iter().copied().fold(f64::INFINITY, f64::min);
    run.series[crun].values[returned][3] = shortest * 0.99;
    assert!(!rules(&analyse(&run)).contains(&RULE));
    let shortest = run.series[bare].values[start].iter().copied().fold(f64::INFINITY, f64::min);
    run.series[crun].values[start][3] = shortest * 1.01;
    assert!(!rules(&analyse(&run)).contains(&RULE));
    run.series[crun].values[start][3] = shortest * 0.99;
    assert!(rules(&analyse(&run)).contains(&RULE));
}
