//! Verdicts on planted data with known truth. Each rule on suspects and each warning has a case in which it
//! fires and a near miss in which it does not.

mod claims;
mod command;
mod failures;
mod family;
mod predictions;
mod settings;
mod suspects;
mod warnings;

use dunnage::plan::{self, Layer, Relation, Request};
use dunnage::record::Recorded;
use dunnage::stats::Rng;
use dunnage::verdict::{Analysis, Verdict, analyse};

use crate::scripted::planted::{cell_of, entry, recorded, request, rules};

const ROUNDS: usize = 20;
/// Positions of the metrics of `start`.
const RETURNED: usize = 0;
const FIRST: usize = 1;
const GONE: usize = 2;

/// The request: `start`, idle, of these subjects.
fn asked(subjects: &[(&str, Layer, f64)]) -> Request {
    let subjects = subjects.iter().map(|(name, layer, _)| entry(name, *layer)).collect();
    let chosen = vec![("prestate".into(), vec!["idle".into()])];
    Request { chosen, ..request(vec!["start"], subjects, ROUNDS) }
}

/// A run of it in which every subject takes about this many milliseconds.
fn planted(subjects: &[(&str, Layer, f64)], noise: f64) -> Recorded {
    let plan = plan::make(asked(subjects));
    let values = |cell: usize| {
        let planned = &plan.cells[cell];
        let original = plan.subjects[planned.subject].twin_of.unwrap_or(planned.subject);
        let mut rng = Rng::for_stream(11, cell as u64);
        let mut values = vec![vec![f64::NAN; ROUNDS]; plan.metrics(planned).len()];
        for round in 0..ROUNDS {
            let returned = subjects[original].2 * 1e-3 * (noise * rng.standard_normal()).exp();
            let shares = [1.0, 0.6, 1.1, 0.3, 0.1, 0.4, 0.02, 0.02];
            for (column, share) in values.iter_mut().zip(shares) {
                column[round] = returned * share;
            }
        }
        values
    };
    let mut run = recorded(plan.clone(), values);
    for round in 0..ROUNDS {
        for pair in plan.order(plan.warmups + round).windows(2) {
            run.series[pair[1]].predecessors[round] = Some(pair[0]);
        }
    }
    run
}

fn ladder() -> Recorded {
    let subjects = [("bare", Layer::Bare, 1.0), ("floor", Layer::Floor, 3.0), ("crun", Layer::Runtime, 20.0)];
    planted(&subjects, 0.01)
}

fn verdict<'a>(run: &Recorded, analysis: &'a Analysis, label: &str, against: &str) -> &'a Verdict {
    let (cell, other) = (cell_of(run, label), cell_of(run, against));
    let found = analysis
        .findings
        .iter()
        .find(|one| one.cell == cell && one.against == other && one.metric == RETURNED);
    &found.unwrap().verdict
}

fn change(run: &mut Recorded, label: &str, metric: usize, round: usize, value: f64) {
    let cell = cell_of(run, label);
    run.series[cell].values[metric][round] = value;
}

/// Whether there is a warning of this kind with these words.
fn warns(analysis: &Analysis, kind: &str, words: &str) -> bool {
    analysis.warnings.iter().any(|one| one.kind == kind && one.seen.contains(words))
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
fn the_floor_explains_its_share_of_what_stands_above_it() {
    let run = ladder();
    let analysis = analyse(&run);
    let share = analysis.floor_shares.iter().find(|share| share.cell == cell_of(&run, "crun")).unwrap();
    assert!((share.share.value - 0.15).abs() < 0.005, "{share:?}");
}

/// The floor that enters its cgroups as the runtime does is used, and the saving of the other way is
/// reported.
#[test]
fn the_kernels_share_is_that_of_the_floor_that_does_as_the_runtime() {
    let share = |subjects: &[(&str, Layer, f64)], label: &str| {
        let run = planted(subjects, 0.01);
        let analysis = analyse(&run);
        let own = analysis.floor_shares.iter().find(|one| one.cell == cell_of(&run, label)).unwrap().clone();
        let report = dunnage::report::Report::of(&run, &analysis);
        let look = dunnage::document::Look { width: 200, ..Default::default() };
        let shown = dunnage::document::shown(&report, "terminal", &look).unwrap();
        (run.plan.subjects[own.floor].label.clone(), own.unlike, own.share.value, shown)
    };
    let all = [
        ("bare", Layer::Bare, 1.0),
        ("floor", Layer::Floor, 3.0),
        ("floor:cgroup=procs", Layer::Floor, 9.0),
        ("crun", Layer::Runtime, 20.0),
        ("docker", Layer::Engine, 200.0),
    ];
    let (floor, unlike, value, shown) = share(&all, "crun");
    assert_eq!((floor.as_str(), unlike), ("floor:cgroup=procs", vec!["overlay"]));
    assert!((value - 0.45).abs() < 0.01, "{value}");
    for words in [
        "kernel's share (floor:cgroup=procs)",
        "this floor's root is an overlay, theirs a directory",
        "`floor`, which avoids the write to `cgroup.procs`, takes 5.97 ms [5.91, 6.06] less",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(share(&all, "docker").1, [""; 0]);
    let (floor, unlike, value, shown) = share(&[&all[..2], &all[3..]].concat(), "crun");
    assert_eq!((floor.as_str(), unlike), ("floor", vec!["cgroup", "overlay"]));
    assert!(
        (value - 0.15).abs() < 0.01 && shown.contains("`floor:cgroup=procs` does it their way"),
        "{shown}"
    );
    let like = [&all[..], &[("floor:cgroup=procs,overlay=off", Layer::Floor, 8.0)]].concat();
    assert_eq!(share(&like, "crun").0, "floor:cgroup=procs,overlay=off");
    // A runtime that is faster than the floor, whose root is an overlay.
    let cheap = [&all[..3], &[("crun", Layer::Runtime, 8.0)]].concat();
    let (_, _, value, shown) = share(&cheap, "crun");
    let why = "above 100 % it is not a share, since `floor:cgroup=procs` takes longer than crun: its root is an overlay, theirs a directory";
    assert!(value > 1.0 && shown.contains(why), "{value}: {shown}");
}

#[test]
fn comparisons_with_a_cause_differ_in_one_thing() {
    let run = ladder();
    assert!(run.plan.comparisons.iter().all(|one| !matches!(one.relation, Relation::OneKey { .. })));
}
