//! Contradictions within a table: parts and their whole, one quantity with two values, loads that cannot be divided,
//! and shares of another window.

use dunnage_analysis::group::in_groups;

use crate::{Number, fired, last_digit, number, series, shown, told};

/// A whole and its parts in the same conditions; the way of reading may differ.
const PARTS: [(&str, [&str; 2]); 1] = [("supervisor_plus_containers", ["supervisor_rss", "cgroup_total"])];

/// A whole that is not the sum of its parts, apart from rounding and truncation.
pub fn not_the_sum(numbers: &[Number], whole: &Number) -> Option<String> {
    let (_, parts) = PARTS.iter().find(|(name, _)| *name == whole.metric)?;
    let containers = whole.condition("containers");
    let part = |name: &&str| {
        numbers.iter().find(|one| {
            (&one.experiment, &one.subject, one.metric.as_str()) == (&whole.experiment, &whole.subject, name)
                && one.condition("containers") == containers
        })
    };
    let parts = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
    let base = |one: &Number, value: f64| one.in_base_units(value).map(|(_, value)| value);
    let sum: f64 = parts.iter().map(|one| base(one, one.value)).sum::<Option<_>>()?;
    let rounding: f64 = parts.iter().map(|one| base(one, last_digit(one) / 2.0)).sum::<Option<_>>()?;
    let unit = base(whole, 1.0)?;
    let is_off = (whole.value * unit - sum).abs() >= last_digit(whole) * unit * (1.0 + 1e-9) + rounding;
    let names = parts.iter().map(|one| format!("{} {} {}", one.metric, one.printed, one.unit));
    let names: Vec<String> = names.collect();
    is_off.then(|| {
        format!("{}, and {} give {} {}", told(whole), names.join(" and "), shown(sum / unit), whole.unit)
    })
}

/// Named parts (`component=…`), from the least to the most, and a whole outside their sum.
pub fn components(numbers: &[Number], whole: &Number) -> Option<String> {
    let is_part = |one: &&Number| {
        one.metric == format!("{}_component", whole.metric)
            && (&one.experiment, &one.subject, &one.unit) == (&whole.experiment, &whole.subject, &whole.unit)
            && one.without(&["component", "basis", "stat"]) == whole.without(&["vs"])
    };
    let parts = in_groups(numbers.iter().filter(is_part), |one| one.condition("component"));
    let end = |name: &str| -> f64 {
        let of = |all: &[&Number]| {
            all.iter()
                .find(|one| one.condition("stat").is_none_or(|stat| stat == name))
                .map_or(0.0, |one| one.value)
        };
        parts.iter().map(|(_, all)| of(all)).sum()
    };
    let (low, high) = (end("min"), end("max"));
    let is_off = !parts.is_empty() && !(low..=high).contains(&whole.value);
    is_off.then(|| {
        format!(
            "{}, and its {} parts give {} to {} {}",
            told(whole),
            parts.len(),
            shown(low),
            shown(high),
            whole.unit
        )
    })
}

/// One quantity with different values in the table and in the text of a document.
pub fn told_otherwise(numbers: &[Number], one: &Number) -> Option<String> {
    let place = one.condition("where")?;
    let is_same = |other: &&Number| {
        other.condition("where").is_none()
            && (&other.experiment, &other.subject, &other.metric, &other.unit)
                == (&one.experiment, &one.subject, &one.metric, &one.unit)
            && other.conditions == one.without(&["where"])
    };
    let other = numbers.iter().find(is_same)?;
    let step = last_digit(one).max(last_digit(other));
    ((one.value - other.value).abs() >= step)
        .then(|| format!("{} in the {place} and {} {} in the table", told(one), other.printed, other.unit))
}

/// Each thread of a load generator has the same number of connections.
pub fn undivided_connections(numbers: &[Number]) -> Vec<(&str, String)> {
    let load = |one: &Number| -> Option<[u32; 2]> {
        let of = |key| one.condition(key)?.parse().ok();
        Some([of("threads")?, of("connections")?])
    };
    let loads =
        in_groups(numbers.iter().filter_map(|one| Some((one.experiment.as_str(), load(one)?))), |one| *one);
    let undivided = loads
        .into_iter()
        .filter(|((_, [threads, connections]), _)| *threads > 0 && connections % threads > 0);
    let told = undivided.map(|((experiment, [threads, connections]), _)| {
        let each = connections / threads;
        (
            experiment,
            format!(
                "{threads} threads cannot share {connections} connections: {each} each are {}",
                each * threads
            ),
        )
    });
    told.collect()
}

/// Throttled time as a share of the stated window, if the periods cover another one.
pub fn share_of_another_window(numbers: &[Number], share: &Number) -> Option<String> {
    let of = |metric: &str| {
        let is_one = |one: &&Number| {
            one.metric == metric && one.subject == share.subject && one.conditions == share.conditions
        };
        numbers.iter().find(is_one).map(|one| one.value)
    };
    let (time, covered) = (of("throttled_time")?, of("periods")? * crate::bounds::PERIOD);
    let given = time / covered * 100.0;
    let is_off = share.metric == "wasted_share"
        && covered > 0.0
        && (given - share.value).abs() >= 2.0 * last_digit(share);
    is_off.then(|| {
        format!(
            "{}, and {time} s of the {} s in which periods were counted are {} %",
            told(share),
            shown(covered),
            shown(given)
        )
    })
}

#[test]
fn a_whole_is_the_sum_of_its_parts() {
    let whole = |printed| {
        let of = |metric, unit, printed| {
            number(&format!("memory podman containers=5 {metric} {unit}"), 1, printed)
        };
        fired(
            "parts and whole disagree",
            &[
                of("supervisor_rss", "MB", "8.8"),
                of("cgroup_total", "kB", "490"),
                number(
                    "memory podman instrument=both;containers=5 supervisor_plus_containers MB",
                    0,
                    printed,
                ),
            ],
        )
    };
    assert_eq!((whole("9.3"), whole("9.2"), whole("9.4")), (vec![], vec![], vec![]));
    assert!(
        whole("9.5")[0]
            .ends_with("is 9.5 MB, and supervisor_rss 8.8 MB and cgroup_total 490 kB give 9.29 MB"),
        "{:?}",
        whole("9.5")
    );
}

#[test]
fn named_parts_hold_their_whole_between_their_ends() {
    let whole = |printed| {
        let part = |conditions: &str, printed| {
            number(
                &format!("run docker w=a;component={conditions};basis=estimate overhead_component s"),
                0,
                printed,
            )
        };
        fired(
            "parts and whole disagree",
            &[
                number("run docker w=a;vs=bare overhead s", 0, printed),
                part("start", "0.3"),
                part("io;stat=min", "3"),
                part("io;stat=max", "4"),
            ],
        )
    };
    assert_eq!((whole("3.3"), whole("4.3")), (vec![], vec![]));
    assert!(
        whole("5.8")[0].ends_with("its 2 parts give 3.3 to 4.3 s") && whole("3.2").len() == 1,
        "{:?}",
        whole("5.8")
    );
}

#[test]
fn one_quantity_has_one_value() {
    let twice = |place: &str, printed| {
        fired(
            "two values",
            &[
                number("call docker c=getpid;vs=bare overhead_pct %", 0, "11.0"),
                number(&format!("call docker c=getpid;vs=bare{place} overhead_pct %"), 0, printed),
            ],
        )
    };
    assert!(twice(";where=headline", "25")[0].ends_with("is 25 % in the headline and 11.0 % in the table"));
    // Rounded, or a share of something else.
    assert_eq!((twice(";where=headline", "11"), twice(";x=1;where=headline", "25")), (vec![], vec![]));
}

#[test]
fn threads_divide_connections() {
    let load = |threads, connections| {
        let words = format!("http bare threads={threads};connections={connections} rate req/s");
        fired("load that cannot be divided", &series(&words, &["1", "2"]))
    };
    assert_eq!(load(32, 400), ["32 threads cannot share 400 connections: 12 each are 384"]);
    assert_eq!(load(2, 4), [""; 0]);
}

#[test]
fn a_share_is_of_the_window_in_which_was_counted() {
    let share = |periods, printed| {
        let of = |metric, printed| {
            number(&format!("throttle docker:cpus=0.1 duration=30s {metric} x"), 1, printed)
        };
        let all = [of("throttled_time", "8.1"), of("periods", periods), of("wasted_share", printed)];
        fired("window and counters disagree", &all)
            .into_iter()
            .filter(|one| one.starts_with("wasted"))
            .collect::<Vec<_>>()
    };
    assert!(share("199", "27")[0].ends_with("8.1 s of the 19.9 s in which periods were counted are 40.7 %"));
    assert_eq!((share("300", "27"), share("199", "41"), share("0", "27")), (vec![], vec![], vec![]));
}
