//! What else ran on each side of a comparison.

use dunnage::compare::{Comparison, Meaning};
use dunnage::record::RoundContext;

use super::planted::{compared, plain, run};

/// Runs with so many containers of others, in every round but the first.
fn beside(old: u64, new: u64, new_in_first: u64) -> Comparison {
    let of = |seed, count, first| {
        let mut run = run(seed, 12, plain);
        for (round, context) in run.contexts.iter_mut().enumerate() {
            let containers = if round == run.plan.warmups { first } else { count };
            let disturbed = format!("{containers} other containers running");
            let disturbed = Some(disturbed).filter(|_| containers > 0);
            *context =
                Some(RoundContext { containers: Some(containers), disturbed, ..RoundContext::default() });
        }
        run
    };
    compared(&[of(1, old, old)], &[of(2, new, new_in_first)])
}

fn differences(comparison: &Comparison) -> Vec<(&str, &str)> {
    let about = comparison.differences.iter().filter(|one| one.what.starts_with("other containers running"));
    about.inspect(|one| assert_eq!(one.meaning, Meaning::Other)).map(|one| (&*one.old, &*one.new)).collect()
}

fn notices(comparison: &Comparison) -> Vec<&str> {
    comparison
        .notices
        .iter()
        .map(String::as_str)
        .filter(|one| one.contains("busy with other things"))
        .collect()
}

#[test]
fn each_side_has_its_own_containers_of_others() {
    let comparison = beside(1, 60, 60);
    let words = "the machine was busy with other things in 12 rounds, first:";
    assert_eq!(
        notices(&comparison),
        [
            format!("`before`: {words} 1 other containers running"),
            format!("`after`: {words} 60 other containers running")
        ]
    );
    assert_eq!(differences(&comparison), [("1", "60")]);
}

/// The near misses: equal words are said once, and a container in a single round is not a difference of the sides.
#[test]
fn what_is_equal_on_both_sides_is_said_once_and_is_no_difference() {
    let comparison = beside(3, 3, 3);
    let words = "the machine was busy with other things in 12 rounds, first: 3 other containers running";
    assert_eq!(notices(&comparison), [format!("`before`, `after`: {words}")]);
    assert!(differences(&comparison).is_empty());
    assert!(differences(&beside(0, 0, 2)).is_empty());
}
