//! Means, ratios, differences and percentages that the numbers behind them do not give.
//!
//! Rounding and cutting move a number by less than one step of its last digit; what is farther off was computed from
//! something else. Deliberately absent: numbers that quote others (`basis=…`) and have nothing behind them here.

use super::{Number, mean, named, printed, repetitions, shown};
use crate::report::model::Doubt;

const RULE: &str = "not what its raw data give";

/// Everything that is not what the numbers behind it give.
pub fn not_given(numbers: &[Number]) -> Vec<Doubt> {
    numbers
        .iter()
        .filter_map(|one| {
            if one.condition("vs").is_some() { derived(numbers, one) } else { aggregate(numbers, one) }
        })
        .collect()
}

/// A mean, smallest or largest value, or standard deviation of repetitions that stand in the table.
fn aggregate(numbers: &[Number], one: &Number) -> Option<Doubt> {
    if one.repetition.is_some() {
        return None;
    }
    let all = repetitions(numbers, one, &one.without(&["stat"]));
    if all.is_empty() || one.repetitions.is_some_and(|count| count as usize != all.len()) {
        return None;
    }
    let given = match one.statistic() {
        "mean" => mean(&all),
        "min" => all.iter().copied().fold(f64::INFINITY, f64::min),
        "max" => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "standard deviation" if all.len() > 1 => {
            let middle = mean(&all);
            (all.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (all.len() - 1) as f64).sqrt()
        }
        _ => return None,
    };
    is_off(one, given, given)
        .then(|| doubt(one, &format!("its {} repetitions give {}", all.len(), shown(given))))
}

/// What a derived number says of two others.
#[derive(Clone, Copy)]
enum Formula {
    Ratio,
    Difference,
    PercentMore,
    PercentLess,
    PercentOf,
}

impl Formula {
    /// The formula of a metric, and the metric of which it is told; none where any is meant.
    fn of(metric: &str) -> Option<(Formula, Option<&str>)> {
        match metric {
            "ratio" => Some((Formula::Ratio, None)),
            "overhead" => Some((Formula::Difference, None)),
            "overhead_pct" | "difference_pct" => Some((Formula::PercentMore, None)),
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
        }
    }
}

fn derived(numbers: &[Number], one: &Number) -> Option<Doubt> {
    let (formula, metric) = Formula::of(&one.metric)?;
    let own = sides(numbers, one, metric, |other| other.subject == one.subject && is_of(other, one));
    let mut nearest: Option<(f64, String)> = None;
    for upper in &own {
        for lower in baselines(numbers, one, upper.of) {
            let corners = [
                (upper.low, lower.low),
                (upper.low, lower.high),
                (upper.high, lower.low),
                (upper.high, lower.high),
            ];
            let given = corners.map(|(upper, lower)| formula.apply(upper, lower));
            let (low, high) = given
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| (low.min(*one), high.max(*one)));
            if !is_off(one, low, high) {
                return None;
            }
            let given =
                formula.apply(f64::midpoint(upper.low, upper.high), f64::midpoint(lower.low, lower.high));
            let shown = format!(
                "{} gives {} (`{}` against `{}`)",
                upper.of.metric,
                shown(given),
                upper.of.subject,
                lower.of.subject
            );
            if nearest.as_ref().is_none_or(|(other, _)| (given - one.value).abs() < (other - one.value).abs())
            {
                nearest = Some((given, shown));
            }
        }
    }
    match nearest {
        Some((_, evidence)) => Some(doubt(one, &evidence)),
        // Who quotes says so; whoever does not has data.
        None if one.condition("basis").is_some() => None,
        None => Some(Doubt {
            rule: "no raw data",
            experiment: one.experiment.clone(),
            evidence: format!(
                "{} is {} against `{}`: no numbers in the tables are behind it",
                named(one),
                printed(one),
                one.condition("vs").unwrap_or_default()
            ),
            mechanism: "a claim without a measurement, or of a measurement against a quotation".into(),
        }),
    }
}

/// Whether a derived number shares its conditions with what it was derived from; how that was read may be left unsaid.
fn is_of(other: &Number, one: &Number) -> bool {
    let told = one.without(&["vs", "where"]);
    other.conditions == told || other.without(&["instrument"]) == told
}

/// A quantity behind a derived number: the mean of its repetitions, or what rounding leaves of a printed mean.
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
        let half = other.last_digit() / 2.0;
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
    // A place of the same subject goes before that of another.
    if all.iter().any(same_place) {
        all.retain(same_place);
    }
    all
}

/// Whether a printed number is farther than a step of its last digit from everything between the two.
fn is_off(one: &Number, low: f64, high: f64) -> bool {
    let step = one.last_digit() * (1.0 + 1e-9);
    one.value <= low - step || one.value >= high + step
}

fn doubt(one: &Number, given: &str) -> Doubt {
    let told = format!("{} is {}", named(one), printed(one));
    Doubt {
        rule: RULE,
        experiment: one.experiment.clone(),
        evidence: format!("{told}, and {given}"),
        mechanism: "it was computed from rounded numbers, from other ones, or left over from another version"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fired, number, series};
    use super::*;

    fn against(metric: &str, printed: &str) -> Vec<String> {
        let raw = [
            series("run bare w=a wall_time ms", &["1.4", "1.2"]),
            series("run docker w=a wall_time ms", &["300.0", "312.0"]),
            vec![number(&format!("run docker w=a;vs=bare {metric} x"), 0, printed)],
        ];
        fired(not_given, &raw.concat())
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
            fired(not_given, &[one, other, number("m docker c=5;vs=podman ratio ratio", 0, printed)])
        };
        // Between 123.5 / 9.55 and 124.5 / 9.45, a step of the last digit more on either side.
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
            [
                bind.clone(),
                layer.clone(),
                vec![number("disk docker place=bind;vs=rw ratio ratio", 0, printed)],
            ]
            .concat()
        };
        assert_eq!((fired(not_given, &told("1.34")), fired(not_given, &told("1.3")).len()), (vec![], 0));
        assert_eq!(fired(not_given, &told("1.4")), [""; 0], "cut or rounded from 1.345");
        assert_eq!(fired(not_given, &told("1.5")).len(), 1);
        let kernels = |printed| {
            let old = number("net docker kernel=5.4;basis=quoted overhead us", 0, "35");
            let new = number("net docker kernel=6.1;basis=quoted overhead us", 0, "8");
            [
                old,
                new,
                number(
                    "net docker vs=kernel-5.4;kernel=6.1;basis=quoted overhead_reduction_pct %",
                    0,
                    printed,
                ),
            ]
        };
        assert_eq!((fired(not_given, &kernels("77")), fired(not_given, &kernels("97")).len()), (vec![], 1));
    }

    #[test]
    fn a_claim_without_numbers_is_suspect_and_a_quotation_is_none() {
        let claim = |conditions: &str| [number(&format!("call docker {conditions} ratio ratio"), 0, "1640")];
        assert!(
            fired(not_given, &claim("op=x;vs=call"))[0].ends_with("no numbers in the tables are behind it")
        );
        assert_eq!(fired(not_given, &claim("op=x;vs=call;basis=literature")), [""; 0]);
    }

    #[test]
    fn means_and_extremes_are_those_of_the_repetitions() {
        let with = |stat: &str, printed| {
            let mut all = series("http bare e=a rate req/s", &["3.51", "3.46", "3.51"]);
            all.push(Number {
                repetitions: Some(3),
                ..number(&format!("http bare e=a{stat} rate req/s"), 0, printed)
            });
            fired(not_given, &all).len()
        };
        assert_eq!((with("", "3.49"), with("", "3.50"), with("", "3.51")), (0, 0, 1));
        assert_eq!((with(";stat=min", "3.46"), with(";stat=min", "3.48")), (0, 1));
        assert_eq!((with(";stat=sd", "0.03"), with(";stat=sd", "0.05")), (0, 1));
    }
}
