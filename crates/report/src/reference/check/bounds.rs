//! Numbers that cannot be what they are called: below zero, better than the machine itself, outside their own interval, of
//! another window, or a share of nothing.

use super::{Number, named, printed, repetitions, shown};
use crate::report::model::Doubt;

/// What a quantity is worth where it grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

/// Amounts and times are not below zero; only what is called a difference may be.
pub fn below_zero(numbers: &[Number]) -> Vec<Doubt> {
    const DIFFERENCES: [&str; 3] = ["overhead", "difference", "reduction"];
    let is_difference = |one: &Number| {
        DIFFERENCES
            .iter()
            .any(|word| one.metric.starts_with(word) || one.metric.contains(&format!("_{word}")))
    };
    let below = numbers.iter().filter(|one| one.value < 0.0 && !is_difference(one));
    below
        .map(|one| Doubt {
            rule: "negative",
            experiment: one.experiment.clone(),
            evidence: format!("{} is {}", named(one), printed(one)),
            mechanism: "a difference of two readings of the whole machine, in which what others do outweighs what was to be measured"
                .into(),
        })
        .collect()
}

/// Whom and what a doubt is about: subject, metric and conditions.
type Asked<'a> = (&'a str, &'a str, Vec<(String, String)>);

/// A container passes more than the machine itself, or takes less time, by more than the machine differs from itself. Where
/// the control was taken once, how much that is cannot be told.
pub fn better_than_bare(numbers: &[Number]) -> Vec<Doubt> {
    let mut found: Vec<Doubt> = Vec::new();
    let mut seen: Vec<Asked<'_>> = Vec::new();
    for own in numbers
        .iter()
        .filter(|one| one.subject != "bare" && !one.is_derived() && one.condition("stat").is_none())
    {
        let Some(better) = better(own) else { continue };
        let key = (own.subject.as_str(), own.metric.as_str(), own.conditions.clone());
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let Some(control) = numbers.iter().find(|one| is_control(one, own)) else { continue };
        let (Some([low, high]), Some([least, most])) = (ends(numbers, own), ends(numbers, control)) else {
            continue;
        };
        let spread = most - least;
        let (is_beyond, nearest, edge) = match better {
            Better::More => (low > most + spread, low, most),
            Better::Less => (high < least - spread, high, least),
        };
        if !is_beyond || spread == 0.0 {
            continue;
        }
        let word = if better == Better::More { "least" } else { "most" };
        let mechanism = match own.condition("place") {
            Some("rw") => {
                "writes that never reach the device: a root that is mounted volatile, or the page cache"
            }
            _ => {
                "other programs, another path or another load on the two sides: isolation makes nothing faster"
            }
        };
        found.push(Doubt {
            rule: "better than bare",
            experiment: own.experiment.clone(),
            evidence: format!(
                "{} is {} {} at {word}, where bare lies between {} and {} {unit}: beyond {} by more than bare differs from itself",
                named(own),
                shown(nearest),
                own.unit,
                shown(least),
                shown(most),
                shown(edge),
                unit = own.unit,
            ),
            mechanism: mechanism.into(),
        });
    }
    found
}

fn better(number: &Number) -> Option<Better> {
    match number.metric.as_str() {
        "throughput" | "requests_per_second" => Some(Better::More),
        "wall_time" => Some(Better::Less),
        _ => None,
    }
}

/// Whether a number is what bare gave for the same work. Where the control stands in a table of its own, it is that of the
/// subject's storage driver.
fn is_control(one: &Number, own: &Number) -> bool {
    const WHERE: [&str; 2] = ["place", "table"];
    let table = one.condition("table").is_none_or(|table| own.subject.ends_with(&format!("storage={table}")));
    one.subject == "bare"
        && table
        && one.condition("stat").is_none()
        && (&one.experiment, &one.metric) == (&own.experiment, &own.metric)
        && one.without(&WHERE) == own.without(&WHERE)
}

/// The smallest and the largest of the repetitions, or the ends of the interval.
fn ends(numbers: &[Number], of: &Number) -> Option<[f64; 2]> {
    let all = repetitions(numbers, of, &of.conditions);
    if all.len() > 1 {
        return Some([
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ]);
    }
    of.interval
}

/// An interval holds what it is the interval of.
pub fn outside_its_interval(numbers: &[Number]) -> Vec<Doubt> {
    let outside =
        |one: &&Number| one.interval.is_some_and(|[low, high]| !(low <= one.value && one.value <= high));
    let doubt = |one: &Number| {
        let [low, high] = one.interval.unwrap_or_default();
        Doubt {
            rule: "outside its interval",
            experiment: one.experiment.clone(),
            evidence: format!("{} is {}, and its interval is [{low}, {high}]", named(one), printed(one)),
            mechanism: "numbers of different rows, or a slip of the pen".into(),
        }
    };
    numbers.iter().filter(outside).map(doubt).collect()
}

/// The kernel counts periods of 100 ms unless told otherwise (`cpu.max`, `cpu.cfs_period_us`).
const PERIOD: f64 = 0.1;

/// Periods add up to the window in which they were counted, but for one that was cut at either end.
pub fn another_window(numbers: &[Number]) -> Vec<Doubt> {
    let mut wrong: Vec<(&Number, f64)> = Vec::new();
    for one in numbers.iter().filter(|one| one.metric == "periods" && one.value > 0.0) {
        let seconds = one.condition("duration").and_then(|text| text.strip_suffix('s')?.parse::<f64>().ok());
        wrong.extend(
            seconds
                .filter(|seconds| (one.value - (seconds / PERIOD).round()).abs() > 2.0)
                .map(|seconds| (one, seconds)),
        );
    }
    let Some((first, seconds)) = wrong.first() else { return Vec::new() };
    let each: Vec<_> = wrong.iter().map(|(one, _)| format!("{} of `{}`", one.printed, one.subject)).collect();
    vec![Doubt {
        rule: "window and counters disagree",
        experiment: first.experiment.clone(),
        evidence: format!(
            "periods of 100 ms: {}; that is {} s and not the {seconds} s that shares are told of",
            each.join(", "),
            shown(wrong.iter().map(|(one, _)| one.value * PERIOD).fold(0.0, f64::max)),
        ),
        mechanism: "counters that were not read at both ends of the window that is stated".into(),
    }]
}

/// Of no periods at all, none is a share.
pub fn share_of_nothing(numbers: &[Number]) -> Vec<Doubt> {
    let is_share = |one: &&Number| {
        let periods = |other: &&Number| {
            other.metric == "periods" && other.subject == one.subject && other.conditions == one.conditions
        };
        one.metric == "throttle_rate"
            && numbers.iter().find(periods).is_some_and(|periods| periods.value == 0.0)
    };
    let doubt = |one: &Number| Doubt {
        rule: "a share of nothing",
        experiment: one.experiment.clone(),
        evidence: format!("{} is {}, and there are 0 periods", named(one), printed(one)),
        mechanism: "without a quota nothing is counted: the share does not apply".into(),
    };
    numbers.iter().filter(is_share).map(doubt).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fired, number, series};
    use super::*;

    #[test]
    fn less_than_nothing_is_suspect_unless_it_is_a_difference() {
        let used = |value| [number("memory docker a=1 used_delta MB", 1, value)];
        assert_eq!(fired(below_zero, &used("-41")), ["used_delta of `docker` (a=1) is -41 MB"]);
        assert_eq!(fired(below_zero, &used("0")), [""; 0]);
        assert_eq!(fired(below_zero, &[number("x docker vs=bare overhead_pct %", 0, "-1.1")]), [""; 0]);
        assert_eq!(fired(below_zero, &[number("x docker vs=bare difference_pct %", 0, "-20")]), [""; 0]);
    }

    #[test]
    fn better_than_bare_by_more_than_bare_differs_from_itself_is_suspect() {
        let written = |place: &str, values: &[&str]| {
            let bare = series("disk bare place=host throughput MB/s", &["448", "458", "504"]);
            [bare, series(&format!("disk podman place={place} throughput MB/s"), values)].concat()
        };
        // Bare reaches 504 and differs by 56 from itself.
        assert_eq!(fired(better_than_bare, &written("bind", &["560", "600"])), [""; 0]);
        let evidence = fired(better_than_bare, &written("rw", &["561", "600"]));
        assert!(evidence.len() == 1 && evidence[0].contains("561 MB/s at least"), "{evidence:?}");
        let timed = |value| {
            let bare = series("run bare work=a wall_time s", &["10.0", "10.5"]);
            [bare, series("run docker work=a wall_time s", &[value, value])].concat()
        };
        assert_eq!(fired(better_than_bare, &timed("9.5")), [""; 0]);
        assert_eq!(fired(better_than_bare, &timed("9.49")).len(), 1);
        // Other work is no control.
        let other = [
            series("run bare work=a wall_time s", &["10.0", "10.5"]),
            series("run docker work=b wall_time s", &["1", "1"]),
        ];
        assert_eq!(fired(better_than_bare, &other.concat()), [""; 0]);
    }

    #[test]
    fn an_interval_holds_its_value() {
        let with = |low, high| {
            [Number { interval: Some([low, high]), ..number("x docker a=1 wall_time s", 0, "10") }]
        };
        assert_eq!(fired(outside_its_interval, &with(10.0, 10.0)), [""; 0]);
        assert_eq!(fired(outside_its_interval, &with(10.01, 10.2)).len(), 1);
        assert_eq!(fired(outside_its_interval, &with(10.2, 9.8)).len(), 1);
    }

    #[test]
    fn periods_cover_the_window_but_for_its_ends() {
        let counted = |periods| [number("throttle docker:cpus=1 duration=20s periods count", 1, periods)];
        for fine in ["0", "198", "202"] {
            assert_eq!(fired(another_window, &counted(fine)), [""; 0], "{fine}");
        }
        assert_eq!(fired(another_window, &counted("197")).len(), 1);
        assert_eq!(fired(another_window, &counted("203")).len(), 1);
    }

    #[test]
    fn nothing_has_no_share() {
        let counted = |periods| {
            let rate = number("throttle docker duration=20s throttle_rate %", 1, "0");
            [rate, number("throttle docker duration=20s periods count", 1, periods)]
        };
        assert_eq!(fired(share_of_nothing, &counted("0")).len(), 1);
        assert_eq!(fired(share_of_nothing, &counted("1")), [""; 0]);
    }
}
