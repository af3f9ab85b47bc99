//! Existing changes are found, and others are not invented. Simulations with fixed seeds.

use dunnage::plan::{Ladder, Layer};
use dunnage::verdict::{Kind, quality};

use super::planted::{compared, compared_quickly, ladder, plain, planted, run, word};
use crate::report::scripted::{entry, plan_of};

/// A docker that is slower by 5 %, with the margin of 3 % of `start`, 30 rounds and 3 % noise.
#[test]
fn five_percent_are_found_in_nine_of_ten_trials() {
    let trials = 200;
    let slower = |label: &str, _: &str, _: usize| if label == "docker" { 1.05 } else { 1.0 };
    let alone = quality(&run(0, 30, plain));
    let found = (0..trials).filter(|trial| {
        let comparison =
            compared_quickly(&run(2 * trial, 30, plain), &run(2 * trial + 1, 30, slower), &alone);
        word(&comparison, "docker") == "slower"
    });
    let found = found.count();
    assert!(found >= 180, "{found} of {trials}");
}

/// Runs of the same subjects, on a machine that is faster on one day and slower on the next, which shows in
/// all of them: the machine may be reported as changed, but no subject. The verdicts of each experiment are a
/// separate family with its own level. The bound is that of a binomial count with 5 % that is exceeded once
/// in 10,000.
#[test]
fn equal_subjects_are_called_different_in_no_experiment_more_often_than_the_level_allows() {
    let trials = 200;
    let five = |seed: u64, weather: f64| {
        let mut subjects = ladder();
        subjects.push(entry("crun", Layer::Runtime, Ladder::AsInstalled, Some("crun")));
        subjects.push(entry("podman", Layer::Engine, Ladder::AsInstalled, Some("crun")));
        planted(plan_of(vec!["start", "exec"], subjects, 20), seed, move |_, _, _| weather)
    };
    let alone = quality(&five(0, 1.0));
    let mut alarms = [0, 0];
    for trial in 0..trials {
        // From 0 to 15 % in either direction.
        let weather = 1.0 + 0.15 * ((trial as f64 * 0.618).fract() * 2.0 - 1.0);
        let comparison =
            compared_quickly(&five(1000 + 2 * trial, 1.0), &five(1001 + 2 * trial, weather), &alone);
        for (alarms, experiment) in alarms.iter_mut().zip(&comparison.experiments) {
            let is_called = |kind: Kind| kind.is_difference() || kind == Kind::Mixed;
            *alarms += usize::from(experiment.lines.iter().any(|line| is_called(line.verdict)));
        }
    }
    assert!(alarms.iter().all(|alarms| *alarms <= 23), "{alarms:?} of {trials}");
}

/// Other experiments do not affect one: its level, and so its intervals, are those that it has alone.
#[test]
fn a_further_experiment_weakens_no_other_one() {
    let slower = |label: &str, _: &str, _: usize| if label == "docker" { 1.05 } else { 1.0 };
    let both = |seed, factor: fn(&str, &str, usize) -> f64| {
        planted(plan_of(vec!["start", "exec"], ladder(), 30), seed, factor)
    };
    let together = compared(&[both(1, plain)], &[both(2, slower)]);
    let [start, exec] = together.experiments.as_slice() else { panic!("{:?}", together.experiments) };
    let alone = compared(&[run(1, 30, plain)], &[run(2, 30, slower)]);
    // For each subject three metrics in two settings and over both, and two metrics.
    assert_eq!((start.family, exec.family, alone.experiments[0].family), (27, 18, 27));
    for experiment in [start, exec] {
        let of_all = experiment.level.get() * experiment.family as f64;
        assert!((of_all - 0.05).abs() < 1e-12, "{of_all}");
        let changes = experiment.lines.iter().filter_map(|line| line.together);
        assert!(
            changes.clone().count() > 0 && changes.clone().all(|all| all.change.alpha == experiment.level)
        );
    }
    assert_eq!(start.level, alone.experiments[0].level);
}
