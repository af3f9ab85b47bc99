//! What is said with too little behind it: intervals that are too narrow for their number of repetitions, differences that
//! lie within the noise, and claims that rest on a single run.

use super::{Number, mean, named, repetitions, shown};
use crate::report::model::Doubt;
use crate::stats::student;

/// Intervals at 95 % that are too narrow: where the repetitions are known, narrower than Student's; where they are not, by
/// how often two measurements of the same thing leave each other's.
pub fn narrow_intervals(numbers: &[Number]) -> Vec<Doubt> {
    let mut found: Vec<Doubt> =
        numbers.iter().filter_map(|one| narrower_than_student(numbers, one)).collect();
    found.extend(disagreements(numbers));
    found
}

fn narrower_than_student(numbers: &[Number], one: &Number) -> Option<Doubt> {
    let [low, high] = one.interval?;
    let raw = repetitions(numbers, one, &one.without(&["stat"]));
    let needed = student::half_width(&raw)?;
    // Each end is known up to half a step of its last digit, which is not known better than the value's.
    let printed = (high - low) / 2.0 + one.last_digit() / 2.0;
    (printed < needed).then(|| Doubt {
        rule: "interval too narrow",
        experiment: one.experiment.clone(),
        evidence: format!(
            "{}: its interval reaches {} {unit} to either side, and {} repetitions that differ as these do need {} {unit}",
            named(one),
            shown((high - low) / 2.0),
            raw.len(),
            shown(needed),
            unit = one.unit,
        ),
        mechanism: "the quantile of a normal distribution in place of Student's, or a spread that was taken too small".into(),
    })
}

/// What is the same whatever a condition says: in a directory of the host the number of the image's layers changes nothing.
const REPEATED: [(&str, &str, &str, &str); 1] = [("layers", "place", "bind", "layers")];

/// Two measurements of one thing lie farther apart than the root of the sum of their squared half widths in at most 5 % of
/// pairs. How many more would be chance is told by the binomial distribution.
fn disagreements(numbers: &[Number]) -> Vec<Doubt> {
    REPEATED
        .iter()
        .filter_map(|(experiment, key, value, over)| disagreement(numbers, experiment, (key, value), over))
        .collect()
}

fn disagreement(numbers: &[Number], experiment: &str, fixed: (&str, &str), over: &str) -> Option<Doubt> {
    let fits = |one: &&Number| {
        one.experiment == experiment && one.condition(fixed.0) == Some(fixed.1) && one.interval.is_some()
    };
    let all: Vec<&Number> = numbers.iter().filter(fits).collect();
    let (mut pairs, mut apart) = (0, 0);
    for (at, one) in all.iter().enumerate() {
        let is_again = |other: &&&Number| {
            other.subject == one.subject
                && other.metric == one.metric
                && other.without(&[over]) == one.without(&[over])
        };
        let Some(again) = all[at + 1..].iter().find(is_again) else { continue };
        let half = |one: &Number| {
            one.interval.map_or(0.0, |[low, high]| (high - low) / 2.0 + one.last_digit() / 2.0)
        };
        pairs += 1;
        apart += usize::from((one.value - again.value).abs() > half(one).hypot(half(again)));
    }
    let chance = at_least(apart, pairs, 0.05);
    (pairs > 0 && chance < 0.05).then(|| Doubt {
        rule: "interval too narrow",
        experiment: experiment.to_owned(),
        evidence: format!(
            "with {}={}, where {over} change nothing, {apart} of {pairs} pairs of measurements lie farther apart than their intervals of 95 % allow; by chance that happens in {:.1} % of tables",
            fixed.0,
            fixed.1,
            chance * 100.0
        ),
        mechanism: "intervals too narrow for so few repetitions, or a machine that changed between the two".into(),
    })
}

/// The probability of so many or more of `count` independent events of probability `p`.
fn at_least(many: usize, count: usize, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(count as i32);
    let mut below = 0.0;
    for at in 0..many {
        below += term;
        term *= (count - at) as f64 / (at + 1) as f64 * p / (1.0 - p);
    }
    1.0 - below
}

/// A difference that is claimed, of means whose repetitions allow it to be zero.
pub fn within_the_noise(numbers: &[Number]) -> Vec<Doubt> {
    numbers.iter().filter_map(|one| uncertain(numbers, one)).collect()
}

fn uncertain(numbers: &[Number], claim: &Number) -> Option<Doubt> {
    const CLAIMS: [&str; 2] = ["overhead_pct", "difference_pct"];
    const WHERE: [&str; 2] = ["place", "vs"];
    if !CLAIMS.contains(&claim.metric.as_str()) {
        return None;
    }
    let raw = |subject: &str, keys: &[&str]| {
        numbers.iter().find(|one| {
            one.repetition.is_some()
                && one.experiment == claim.experiment
                && one.subject == subject
                && one.without(keys) == claim.without(keys)
        })
    };
    let own = raw(&claim.subject, &["vs"])?;
    let control = raw(claim.condition("vs")?, &WHERE).filter(|control| control.metric == own.metric)?;
    let [values, controls] = [own, control].map(|one| repetitions(numbers, one, &one.conditions));
    let (difference, error) = student::difference(&values, &controls)?;
    (difference.abs() <= error).then(|| Doubt {
        rule: "difference within the noise",
        experiment: claim.experiment.clone(),
        evidence: format!(
            "{} is {} %, which is {} {unit}; {} and {} repetitions know it to ±{} {unit} at 95 %",
            named(claim),
            claim.printed,
            shown(mean(&values) - mean(&controls)),
            values.len(),
            controls.len(),
            shown(error),
            unit = own.unit,
        ),
        mechanism: "too few repetitions for a difference of this size".into(),
    })
}

/// How many numbers of each experiment nobody took a second time.
pub fn single_runs(numbers: &[Number]) -> Vec<Doubt> {
    let mut found: Vec<(String, usize, Vec<String>)> = Vec::new();
    for one in numbers.iter().filter(|one| one.is_measured()) {
        let is_single = match one.repetition {
            Some(1) => repetitions(numbers, one, &one.conditions).len() == 1,
            Some(_) => false,
            None => one.repetitions == Some(1),
        };
        if !is_single {
            continue;
        }
        let at =
            found.iter().position(|(experiment, ..)| *experiment == one.experiment).unwrap_or_else(|| {
                found.push((one.experiment.clone(), 0, Vec::new()));
                found.len() - 1
            });
        found[at].1 += 1;
        if !found[at].2.contains(&one.metric) {
            found[at].2.push(one.metric.clone());
        }
    }
    let doubt = |(experiment, count, metrics): (String, usize, Vec<String>)| Doubt {
        rule: "a single run",
        evidence: format!(
            "{} {} on one run: {}",
            count,
            if count == 1 { "number rests" } else { "numbers rest" },
            metrics.join(", ")
        ),
        mechanism: "nobody knows how far a second run would have been off".into(),
        experiment,
    };
    found.into_iter().map(doubt).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fired, number, series};
    use super::*;

    #[test]
    fn an_interval_is_as_wide_as_few_repetitions_make_it() {
        // Half the width is 1.9632 by Student's t with four degrees of freedom, and 1.386 by a normal quantile.
        let printed = |half: f64| {
            let mut all = series("x docker a=1 wall_time s", &["1", "2", "3", "4", "5"]);
            let mean = number("x docker a=1 wall_time s", 0, "3.00");
            all.push(Number { interval: Some([3.0 - half, 3.0 + half]), repetitions: Some(5), ..mean });
            fired(narrow_intervals, &all).len()
        };
        assert_eq!((printed(1.386), printed(1.95), printed(1.96), printed(2.5)), (1, 1, 0, 0));
    }

    #[test]
    fn what_is_measured_twice_leaves_its_intervals_in_one_of_twenty_pairs() {
        let table = |apart: usize| -> Vec<Number> {
            let pair = |row: usize| {
                let of = |layers: u32, value: f64| Number {
                    interval: Some([value - 0.1, value + 0.1]),
                    ..number(
                        &format!("layers docker op={row};place=bind;layers={layers} wall_time s"),
                        0,
                        &format!("{value:.3}"),
                    )
                };
                [of(10, 9.0), of(20, if row < apart { 9.15 } else { 9.14 })]
            };
            (0..27).flat_map(pair).collect()
        };
        assert_eq!(fired(narrow_intervals, &table(3)), [""; 0]);
        assert_eq!(fired(narrow_intervals, &table(5)).len(), 1);
        assert!((at_least(5, 27, 0.05) - 0.01002).abs() < 1e-5, "{}", at_least(5, 27, 0.05));
        assert!((at_least(0, 27, 0.05) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_difference_is_known_no_better_than_its_repetitions_allow() {
        let claim = |values: &[&str]| {
            let raw = [
                series("x bare a=1 wall_time s", &["4.82", "4.60", "5.18"]),
                series("x podman a=1 wall_time s", values),
            ];
            fired(
                within_the_noise,
                &[raw.concat(), vec![number("x podman a=1;vs=bare overhead_pct %", 0, "11.4")]].concat(),
            )
        };
        assert!(
            claim(&["5.32", "5.71", "5.23"])[0].contains("which is 0.5533 s; 3 and 3 repetitions"),
            "{:?}",
            claim(&["5.32", "5.71", "5.23"])
        );
        assert_eq!(claim(&["6.32", "6.71", "6.23"]), [""; 0]);
    }

    #[test]
    fn one_run_is_one_run() {
        let once = number("x docker a=1 wall_time s", 1, "3");
        let twice = series("x podman a=1 wall_time s", &["3", "4"]);
        let estimate = number("x podman a=1;basis=estimate wall_time s", 1, "3");
        assert_eq!(
            fired(single_runs, &[vec![once], twice.clone()].concat()),
            ["1 number rests on one run: wall_time"]
        );
        assert_eq!(fired(single_runs, &[twice, vec![estimate]].concat()), [""; 0]);
    }
}
