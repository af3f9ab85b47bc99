//! Means, ratios, differences and percentages that do not follow from their raw numbers.
//!
//! Rounding and truncation move a number by less than one step of its last digit; a number that is further off was
//! computed from something else. Deliberately absent: quoted numbers (`basis=…`), which have no raw data here.

use crate::{Number, fired, last_digit, mean, number, range, repetitions, series, shown, told};

/// A number that does not follow from its raw numbers.
pub fn not_given(numbers: &[Number], one: &Number) -> Option<String> {
    let given = match one.condition("vs") {
        Some(_) => derived(numbers, one).and_then(Result::err)?,
        None => aggregate(numbers, one)?,
    };
    Some(format!("{}, and {given}", told(one)))
}

/// A derived number without raw numbers, unless it is marked as a quotation.
pub fn without_data(numbers: &[Number], one: &Number) -> Option<String> {
    let against = one.condition("vs").filter(|_| one.condition("basis").is_none())?;
    let has_none = Formula::of(&one.metric).is_some() && derived(numbers, one).is_none();
    has_none.then(|| format!("{} against `{against}`: no numbers in the tables support it", told(one)))
}

/// A mean, smallest or largest value, or standard deviation of repetitions in the table: what these give, if it
/// differs.
fn aggregate(numbers: &[Number], one: &Number) -> Option<String> {
    if one.repetition.is_some() {
        return None;
    }
    let all = repetitions(numbers, one, &one.without(&["stat"]));
    if all.is_empty() || one.repetitions.is_some_and(|count| count as usize != all.len()) {
        return None;
    }
    let given = match one.statistic() {
        "mean" => mean(&all),
        "min" => range(&all)[0],
        "max" => range(&all)[1],
        "standard deviation" if all.len() > 1 => {
            let middle = mean(&all);
            (all.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (all.len() - 1) as f64).sqrt()
        }
        _ => return None,
    };
    is_off(one, given, given).then(|| format!("its {} repetitions give {}", all.len(), shown(given)))
}

/// How a derived number relates two others.
#[derive(Clone, Copy)]
enum Formula {
    Ratio,
    Difference,
    PercentMore,
    PercentLess,
    PercentOf,
    Orders,
}

impl Formula {
    /// The formula of a metric, and the metric it applies to; none if it applies to any.
    fn of(metric: &str) -> Option<(Formula, Option<&str>)> {
        match metric {
            "ratio" => Some((Formula::Ratio, None)),
            "overhead" => Some((Formula::Difference, None)),
            "overhead_pct" | "difference_pct" => Some((Formula::PercentMore, None)),
            "orders_of_magnitude" => Some((Formula::Orders, None)),
            "share_of_bare_pct" => Some((Formula::PercentOf, None)),
            other => {
                let ratio = other.strip_suffix("_ratio").map(|of| (Formula::Ratio, Some(of)));
                ratio.or_else(|| {
                    other.strip_suffix("_reduction_pct").map(|of| (Formula::PercentLess, Some(of)))
                })
            }
        }
    }

    fn apply(self, one: f64, other: f64) -> f64 {
        match self {
            Formula::Ratio => one / other,
            Formula::Difference => one - other,
            Formula::PercentMore => (one - other) / other * 100.0,
            Formula::PercentLess => (other - one) / other * 100.0,
            Formula::PercentOf => one / other * 100.0,
            Formula::Orders => (one / other).log10(),
        }
    }
}

/// Whether any two numbers give a derived one, or else what the nearest ones give; none without a pair.
fn derived(numbers: &[Number], one: &Number) -> Option<Result<(), String>> {
    let (formula, metric) = Formula::of(&one.metric)?;
    let own = sides(numbers, one, metric, |other| other.subject == one.subject && is_of(other, one));
    let mut nearest: Option<(f64, String)> = None;
    for upper in &own {
        for lower in baselines(numbers, one, upper.of) {
            let corner = |at: usize| {
                let (upper, lower) = ([upper.low, upper.high][at / 2], [lower.low, lower.high][at % 2]);
                formula.apply(upper, lower)
            };
            let [low, high] = range(&[0, 1, 2, 3].map(corner));
            if !is_off(one, low, high) {
                return Some(Ok(()));
            }
            let given =
                formula.apply(f64::midpoint(upper.low, upper.high), f64::midpoint(lower.low, lower.high));
            let subjects = format!("`{}` against `{}`", upper.of.subject, lower.of.subject);
            let told = format!("{} gives {} ({subjects})", upper.of.metric, shown(given));
            let distance = (given - one.value).abs();
            if nearest.as_ref().is_none_or(|(other, _)| distance < *other) {
                nearest = Some((distance, told));
            }
        }
    }
    nearest.map(|(_, told)| Err(told))
}

/// Whether a derived number shares its conditions with its raw numbers, except for the way of reading, which it may
/// omit.
fn is_of(other: &Number, one: &Number) -> bool {
    let told = one.without(&["vs", "where"]);
    other.conditions == told || other.without(&["instrument"]) == told
}

/// A quantity behind a derived number: the mean of its repetitions, or the range of a rounded mean.
struct Side<'a> {
    of: &'a Number,
    low: f64,
    high: f64,
}

fn sides<'a>(
    numbers: &'a [Number],
    one: &Number,
    metric: Option<&str>,
    fits: impl Fn(&Number) -> bool,
) -> Vec<Side<'a>> {
    let mut all: Vec<Side<'a>> = Vec::new();
    for other in numbers.iter().filter(|other| other.experiment == one.experiment && fits(other)) {
        let is_quantity = metric.is_none_or(|metric| other.metric == metric)
            && Formula::of(&other.metric).is_none_or(|_| metric.is_some());
        let is_known = |side: &Side<'_>| side.of.metric == other.metric && side.of.subject == other.subject;
        if !is_quantity || all.iter().any(is_known) {
            continue;
        }
        let raw = repetitions(numbers, other, &other.conditions);
        let half = last_digit(other) / 2.0;
        all.push(match raw.is_empty() {
            true => Side { of: other, low: other.value - half, high: other.value + half },
            false => Side { of: other, low: mean(&raw), high: mean(&raw) },
        });
    }
    all
}

/// What `vs` names: a subject, the value of a condition (`rw`), or a condition with its value (`kernel-5.4`).
fn baselines<'a>(numbers: &'a [Number], one: &Number, upper: &Number) -> Vec<Side<'a>> {
    const WHERE: [&str; 3] = ["place", "path", "vs"];
    let named = one.condition("vs").unwrap_or_default();
    let (key, value) = named.split_once('-').unwrap_or(("", named));
    let fits = |other: &Number| {
        let is_alike = |keys: &[&str]| other.without(keys) == upper.without(keys);
        let by_subject = other.subject == named && is_alike(&WHERE);
        let by_place =
            other.conditions.iter().any(|(key, place)| WHERE.contains(&key.as_str()) && place == named);
        let by_key =
            other.condition(key) == Some(value) && other.subject == upper.subject && is_alike(&[key]);
        other.condition("stat").is_none()
            && (by_subject || (by_place && is_alike(&WHERE) && other.condition("vs").is_none()) || by_key)
    };
    let same_place = |side: &Side<'_>| side.of.subject == upper.subject;
    let mut all = sides(numbers, one, Some(&upper.metric), fits);
    // A place of the same subject takes precedence over that of another.
    if all.iter().any(same_place) {
        all.retain(same_place);
    }
    all
}

/// Whether a printed number is farther than a step of its last digit from everything between the two.
fn is_off(one: &Number, low: f64, high: f64) -> bool {
    let step = last_digit(one) * (1.0 + 1e-9);
    one.value <= low - step || one.value >= high + step
}

fn against(metric: &str, printed: &str) -> Vec<String> {
    let raw = [
        series("run bare w=a wall_time ms", &["1.4", "1.2"]),
        series("run docker w=a wall_time ms", &["300.0", "312.0"]),
        vec![number(&format!("run docker w=a;vs=bare {metric} x"), 0, printed)],
    ];
    fired("not what its raw data give", &raw.concat())
}

#[test]
fn ratios_and_percentages_are_computed_again_from_the_raw_values() {
    // 306 against 1.3: 235.38.
    for fine in ["235", "236", "235.4", "235.3"] {
        assert_eq!(against("ratio", fine), [""; 0], "{fine}");
    }
    let evidence = against("ratio", "237");
    assert_eq!(
        evidence,
        ["ratio of `docker` (w=a) is 237 x, and wall_time gives 235.4 (`docker` against `bare`)"]
    );
    assert_eq!((against("overhead", "304.7").len(), against("overhead", "304.9").len()), (0, 1));
    // A factor of 235 is two orders of magnitude, truncated or rounded, and not four.
    assert_eq!(["2", "3", "4"].map(|orders| against("orders_of_magnitude", orders).len()), [0, 0, 1]);
    assert_eq!((against("overhead_pct", "23438").len(), against("overhead_pct", "25").len()), (0, 1));
    assert_eq!(
        (against("share_of_bare_pct", "23538").len(), against("share_of_bare_pct", "23000").len()),
        (0, 1)
    );
}

#[test]
fn printed_means_are_known_up_to_their_last_digit() {
    let claim = |printed| {
        let (one, other) =
            (number("m docker c=5 total MB", 0, "124"), number("m podman c=5 total MB", 0, "9.5"));
        fired(
            "not what its raw data give",
            &[one, other, number("m docker c=5;vs=podman ratio ratio", 0, printed)],
        )
    };
    // Between 123.5 / 9.55 and 124.5 / 9.45, with a step of the last digit on each side.
    for fine in ["13", "12", "14"] {
        assert_eq!(claim(fine), [""; 0], "{fine}");
    }
    assert_eq!(claim("15").len(), 1);
}

#[test]
fn what_vs_names_is_a_subject_a_place_or_a_condition() {
    let bind = series("disk docker place=bind throughput MB/s", &["500", "514"]);
    let layer = series("disk docker place=rw throughput MB/s", &["377", "377"]);
    let told = |printed| {
        [bind.clone(), layer.clone(), vec![number("disk docker place=bind;vs=rw ratio ratio", 0, printed)]]
            .concat()
    };
    assert_eq!(
        (
            fired("not what its raw data give", &told("1.34")),
            fired("not what its raw data give", &told("1.3")).len()
        ),
        (vec![], 0)
    );
    assert_eq!(fired("not what its raw data give", &told("1.4")), [""; 0], "cut or rounded from 1.345");
    assert_eq!(fired("not what its raw data give", &told("1.5")).len(), 1);
    let kernels = |printed| {
        let old = number("net docker kernel=5.4;basis=quoted overhead us", 0, "35");
        let new = number("net docker kernel=6.1;basis=quoted overhead us", 0, "8");
        [
            old,
            new,
            number("net docker vs=kernel-5.4;kernel=6.1;basis=quoted overhead_reduction_pct %", 0, printed),
        ]
    };
    assert_eq!(
        (
            fired("not what its raw data give", &kernels("77")),
            fired("not what its raw data give", &kernels("97")).len()
        ),
        (vec![], 1)
    );
}

#[test]
fn a_claim_without_numbers_is_suspect_and_a_quotation_is_none() {
    let claim = |conditions: &str| [number(&format!("call docker {conditions} ratio ratio"), 0, "1640")];
    assert!(fired("no raw data", &claim("op=x;vs=call"))[0].ends_with("no numbers in the tables support it"));
    assert_eq!(fired("no raw data", &claim("op=x;vs=call;basis=literature")), [""; 0]);
}

#[test]
fn means_and_extremes_are_those_of_the_repetitions() {
    let with = |stat: &str, printed| {
        let mut all = series("http bare e=a rate req/s", &["3.51", "3.46", "3.51"]);
        all.push(Number {
            repetitions: Some(3),
            ..number(&format!("http bare e=a{stat} rate req/s"), 0, printed)
        });
        fired("not what its raw data give", &all).len()
    };
    assert_eq!((with("", "3.49"), with("", "3.50"), with("", "3.51")), (0, 0, 1));
    assert_eq!((with(";stat=min", "3.46"), with(";stat=min", "3.48")), (0, 1));
    assert_eq!((with(";stat=sd", "0.03"), with(";stat=sd", "0.05")), (0, 1));
}
