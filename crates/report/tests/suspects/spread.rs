//! Claims with too little data: intervals too narrow for their number of repetitions, differences within the noise,
//! and claims from a single run.

use dunnage_analysis::group::in_groups;

use crate::{Number, fired, last_digit, mean, named, number, repetitions, series, shown, student};

/// A 95 % interval that is narrower than Student's for the repetitions in the table.
pub fn narrower_than_student(numbers: &[Number], one: &Number) -> Option<String> {
    let [low, high] = one.interval?;
    let raw = repetitions(numbers, one, &one.without(&["stat"]));
    let needed = student::half_width(&raw)?;
    (half_width(one) < needed).then(|| {
        format!(
            "{}: its interval reaches {} {unit} to each side; {} repetitions with this spread need {} {unit}",
            named(one),
            shown((high - low) / 2.0),
            raw.len(),
            shown(needed),
            unit = one.unit,
        )
    })
}

/// Half the width of an interval. Each end is known to half a step of its last digit, and not better than the value.
pub fn half_width(one: &Number) -> f64 {
    one.interval.map_or(0.0, |[low, high]| (high - low) / 2.0 + last_digit(one) / 2.0)
}

/// Conditions without influence: the number of the image's layers changes nothing in a directory of the host.
const REPEATED: [(&str, &str, &str, &str); 1] = [("layers", "place", "bind", "layers")];

/// If the repetitions are unknown, an interval is judged by how often two measurements of one quantity are further
/// apart than the root of the sum of their squared half widths: in at most 5 % of pairs. The binomial distribution
/// says how many more may be chance.
pub fn disagreements(numbers: &[Number]) -> Vec<(&str, String)> {
    REPEATED
        .iter()
        .filter_map(|&(experiment, key, value, over)| {
            Some((experiment, disagreement(numbers, experiment, (key, value), over)?))
        })
        .collect()
}

fn disagreement(numbers: &[Number], experiment: &str, fixed: (&str, &str), over: &str) -> Option<String> {
    let fits = |one: &&Number| {
        one.experiment == experiment && one.condition(fixed.0) == Some(fixed.1) && one.interval.is_some()
    };
    let all: Vec<&Number> = numbers.iter().filter(fits).collect();
    let (mut pairs, mut apart) = (0, 0);
    for (at, one) in all.iter().enumerate() {
        let is_again = |other: &&&Number| {
            (&other.subject, &other.metric) == (&one.subject, &one.metric)
                && other.without(&[over]) == one.without(&[over])
        };
        let Some(again) = all[at + 1..].iter().find(is_again) else { continue };
        pairs += 1;
        apart += usize::from((one.value - again.value).abs() > half_width(one).hypot(half_width(again)));
    }
    let chance = at_least(apart, pairs, 0.05);
    (pairs > 0 && chance < 0.05).then(|| {
        format!(
            "with {}={}, where {over} change nothing, {apart} of {pairs} pairs of measurements are farther apart than their \
             95 % intervals allow; by chance that happens in {:.1} % of tables",
            fixed.0,
            fixed.1,
            chance * 100.0
        )
    })
}

/// The probability of so many or more of `count` independent events of probability `p`.
pub fn at_least(many: usize, count: usize, p: f64) -> f64 {
    let mut term = (1.0 - p).powi(count as i32);
    let mut below = 0.0;
    for at in 0..many {
        below += term;
        term *= (count - at) as f64 / (at + 1) as f64 * p / (1.0 - p);
    }
    1.0 - below
}

/// A claimed difference of means whose repetitions allow it to be zero.
pub fn within_the_noise(numbers: &[Number], claim: &Number) -> Option<String> {
    const WHERE: [&str; 2] = ["place", "vs"];
    if !["overhead_pct", "difference_pct"].contains(&claim.metric.as_str()) {
        return None;
    }
    let raw = |subject: &str, keys: &[&str]| {
        numbers.iter().find(|one| {
            one.repetition.is_some()
                && (&one.experiment, one.subject.as_str()) == (&claim.experiment, subject)
                && one.without(keys) == claim.without(keys)
        })
    };
    let own = raw(&claim.subject, &["vs"])?;
    let control = raw(claim.condition("vs")?, &WHERE).filter(|control| control.metric == own.metric)?;
    let [values, controls] = [own, control].map(|one| repetitions(numbers, one, &one.conditions));
    let (difference, error) = student::difference(&values, &controls)?;
    (difference.abs() <= error).then(|| {
        format!(
            "{} is {} %, which is {} {unit}; {} and {} repetitions give ±{} {unit} at 95 %",
            named(claim),
            claim.printed,
            shown(mean(&values) - mean(&controls)),
            values.len(),
            controls.len(),
            shown(error),
            unit = own.unit,
        )
    })
}

/// How many numbers of each experiment were measured only once.
pub fn single_runs(numbers: &[Number]) -> Vec<(&str, String)> {
    let is_single = |one: &&Number| match one.repetition {
        Some(1) => repetitions(numbers, one, &one.conditions).len() == 1,
        Some(_) => false,
        None => one.repetitions == Some(1),
    };
    let single = numbers.iter().filter(|one| one.is_measured()).filter(is_single);
    let told = in_groups(single, |one| one.experiment.as_str()).into_iter().map(|(experiment, all)| {
        let rest = if all.len() == 1 { "number rests" } else { "numbers rest" };
        let metrics: Vec<&str> =
            in_groups(&all, |one| one.metric.as_str()).into_iter().map(|(metric, _)| metric).collect();
        (experiment, format!("{} {rest} on one run: {}", all.len(), metrics.join(", ")))
    });
    told.collect()
}

#[test]
fn an_interval_is_as_wide_as_few_repetitions_make_it() {
    // Half the width is 1.9632 by Student's t with four degrees of freedom, and 1.386 by a normal quantile.
    let printed = |half: f64| {
        let mut all = series("x docker a=1 wall_time s", &["1", "2", "3", "4", "5"]);
        let mean = number("x docker a=1 wall_time s", 0, "3.00");
        all.push(Number { interval: Some([3.0 - half, 3.0 + half]), repetitions: Some(5), ..mean });
        fired("interval too narrow", &all).len()
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
    assert_eq!(fired("interval too narrow", &table(3)), [""; 0]);
    assert_eq!(fired("interval too narrow", &table(5)).len(), 1);
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
            "difference within the noise",
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
        fired("a single run", &[vec![once], twice.clone()].concat()),
        ["1 number rests on one run: wall_time"]
    );
    assert_eq!(fired("a single run", &[twice, vec![estimate]].concat()), [""; 0]);
}
