//! Is what is there found, and is what is not there left alone? Simulations with fixed seeds.

use dunnage::plan::{Ladder, Layer};
use dunnage::verdict::doubts;

use super::planted::{compared_quickly, ladder, plain, run, run_of, word};
use super::scripted::entry;

/// A docker that is slower by 5 %, with the margin of 3 % of `start`, 30 rounds and 3 % noise.
#[test]
fn five_percent_are_found_in_nine_of_ten_trials() {
    let trials = 200;
    let slower = |label: &str, _: &str, _: usize| if label == "docker" { 1.05 } else { 1.0 };
    let alone = doubts(&run(0, 30, plain));
    let found = (0..trials).filter(|trial| {
        let comparison =
            compared_quickly(&run(2 * trial, 30, plain), &run(2 * trial + 1, 30, slower), &alone);
        word(&comparison, "docker") == "slower"
    });
    let found = found.count();
    assert!(found >= 180, "{found} of {trials}");
}

/// Runs of the same, on a machine that is faster on one day and slower on the next, which everybody shows: the
/// machine may be said to have changed, but no subject. The bound is that of a binomial count with 5 % that is
/// exceeded once in 10,000.
#[test]
fn equal_subjects_are_called_different_no_more_often_than_the_level_allows() {
    let trials = 200;
    let five = |seed: u64, weather: f64| {
        let mut subjects = ladder();
        subjects.push(entry("crun", Layer::Runtime, Ladder::AsInstalled, Some("crun")));
        subjects.push(entry("podman", Layer::Engine, Ladder::AsInstalled, Some("crun")));
        run_of(subjects, seed, 20, move |_, _, _| weather)
    };
    let alone = doubts(&five(0, 1.0));
    let alarms = (0..trials).filter(|trial| {
        // From nothing to 15 % in either direction.
        let weather = 1.0 + 0.15 * ((*trial as f64 * 0.618).fract() * 2.0 - 1.0);
        let comparison =
            compared_quickly(&five(1000 + 2 * trial, 1.0), &five(1001 + 2 * trial, weather), &alone);
        ["crun", "docker", "podman"]
            .iter()
            .any(|label| ["slower", "faster", "mixed"].contains(&word(&comparison, label)))
    });
    let alarms = alarms.count();
    assert!(alarms <= 23, "{alarms} of {trials}");
}
