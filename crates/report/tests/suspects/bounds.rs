//! Numbers that cannot be what they claim: below zero, better than the machine itself, outside their own interval,
//! counted over another window, or a share of nothing.

use crate::{Number, fired, named, number, range, repetitions, series, shown, told};

/// Amounts and times are not below zero; only differences may be.
pub fn below_zero(_: &[Number], one: &Number) -> Option<String> {
    const DIFFERENCES: [&str; 3] = ["overhead", "difference", "reduction"];
    let is_called = |word: &&str| one.metric.starts_with(word) || one.metric.contains(&format!("_{word}"));
    (one.value < 0.0 && !DIFFERENCES.iter().any(is_called)).then(|| told(one))
}

/// Writes into the container's own layer, better than bare.
pub fn better_than_bare_in_a_layer(numbers: &[Number], own: &Number) -> Option<String> {
    better_than_bare(numbers, own).filter(|_| own.condition("place") == Some("rw"))
}

/// Anything else that is better than bare.
pub fn better_than_bare_elsewhere(numbers: &[Number], own: &Number) -> Option<String> {
    better_than_bare(numbers, own).filter(|_| own.condition("place") != Some("rw"))
}

/// A container achieves more than the machine itself, or takes less time, by more than the machine varies. With a
/// single value of the control, that variation is unknown.
fn better_than_bare(numbers: &[Number], own: &Number) -> Option<String> {
    let is_asked = own.subject != "bare" && !own.is_derived() && own.condition("stat").is_none();
    let is_more = match own.metric.as_str() {
        "throughput" | "requests_per_second" => true,
        "wall_time" => false,
        _ => return None,
    };
    let same = |one: &&Number| {
        (&one.subject, &one.metric, &one.conditions) == (&own.subject, &own.metric, &own.conditions)
    };
    // Repetitions are reported once.
    if !is_asked || !std::ptr::eq(numbers.iter().find(same)?, own) {
        return None;
    }
    let control = numbers.iter().find(|one| is_control(one, own))?;
    let ([low, high], [least, most]) = (ends(numbers, own)?, ends(numbers, control)?);
    let spread = most - least;
    let (is_beyond, nearest, edge, word) = match is_more {
        true => (low > most + spread, low, most, "least"),
        false => (high < least - spread, high, least, "most"),
    };
    (is_beyond && spread > 0.0).then(|| {
        format!(
            "{} is {} {unit} at {word}, where bare is between {} and {} {unit}: beyond {} by more than bare varies",
            named(own),
            shown(nearest),
            shown(least),
            shown(most),
            shown(edge),
            unit = own.unit,
        )
    })
}

/// Whether a number is bare's for the same work. If the control has its own tables, it is the one for the subject's
/// storage driver.
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
    if all.len() > 1 { Some(range(&all)) } else { of.interval }
}

/// An interval contains its estimate.
pub fn outside_its_interval(_: &[Number], one: &Number) -> Option<String> {
    let [low, high] = one.interval?;
    (!(low <= one.value && one.value <= high))
        .then(|| format!("{}, and its interval is [{low}, {high}]", told(one)))
}

/// The kernel's default period is 100 ms (`cpu.max`, `cpu.cfs_period_us`).
pub const PERIOD: f64 = 0.1;

/// Periods add up to the window in which they were counted, except for one that was cut at each end.
pub fn another_window(numbers: &[Number]) -> Vec<(&str, String)> {
    let window = |one: &Number| one.condition("duration")?.strip_suffix('s')?.parse::<f64>().ok();
    let counted = numbers.iter().filter(|one| one.metric == "periods" && one.value > 0.0);
    let wrong: Vec<(&Number, f64)> = counted
        .filter_map(|one| Some((one, window(one)?)))
        .filter(|(one, seconds)| (one.value - (seconds / PERIOD).round()).abs() > 2.0)
        .collect();
    let Some((first, seconds)) = wrong.first() else { return Vec::new() };
    let each: Vec<_> = wrong.iter().map(|(one, _)| format!("{} of `{}`", one.printed, one.subject)).collect();
    let longest = wrong.iter().map(|(one, _)| one.value * PERIOD).fold(0.0, f64::max);
    let evidence = format!(
        "periods of 100 ms: {}; that is {} s, not the {seconds} s that the shares refer to",
        each.join(", "),
        shown(longest),
    );
    vec![(&first.experiment, evidence)]
}

/// There is no share of zero periods.
pub fn share_of_nothing(numbers: &[Number], one: &Number) -> Option<String> {
    let periods = |other: &&Number| {
        other.metric == "periods" && other.subject == one.subject && other.conditions == one.conditions
    };
    let has_none = numbers.iter().find(periods).is_some_and(|periods| periods.value == 0.0);
    (one.metric == "throttle_rate" && has_none).then(|| format!("{}, and there are 0 periods", told(one)))
}

#[test]
fn less_than_nothing_is_suspect_unless_it_is_a_difference() {
    let used = |value| [number("memory docker a=1 used_delta MB", 1, value)];
    assert_eq!(fired("negative", &used("-41")), ["used_delta of `docker` (a=1) is -41 MB"]);
    assert_eq!(fired("negative", &used("0")), [""; 0]);
    assert_eq!(fired("negative", &[number("x docker vs=bare overhead_pct %", 0, "-1.1")]), [""; 0]);
    assert_eq!(fired("negative", &[number("x docker vs=bare difference_pct %", 0, "-20")]), [""; 0]);
}

#[test]
fn better_than_bare_by_more_than_bare_differs_from_itself_is_suspect() {
    let written = |place: &str, values: &[&str]| {
        let bare = series("disk bare place=host throughput MB/s", &["448", "458", "504"]);
        [bare, series(&format!("disk podman place={place} throughput MB/s"), values)].concat()
    };
    // Bare reaches 504 and varies by 56.
    assert_eq!(fired("better than bare", &written("bind", &["560", "600"])), [""; 0]);
    let evidence = fired("better than bare", &written("rw", &["561", "600"]));
    assert!(evidence.len() == 1 && evidence[0].contains("561 MB/s at least"), "{evidence:?}");
    let timed = |value| {
        let bare = series("run bare work=a wall_time s", &["10.0", "10.5"]);
        [bare, series("run docker work=a wall_time s", &[value, value])].concat()
    };
    assert_eq!(fired("better than bare", &timed("9.5")), [""; 0]);
    assert_eq!(fired("better than bare", &timed("9.49")).len(), 1);
    // Other work is not a control.
    let other = [
        series("run bare work=a wall_time s", &["10.0", "10.5"]),
        series("run docker work=b wall_time s", &["1", "1"]),
    ];
    assert_eq!(fired("better than bare", &other.concat()), [""; 0]);
}

#[test]
fn an_interval_holds_its_value() {
    let with =
        |low, high| [Number { interval: Some([low, high]), ..number("x docker a=1 wall_time s", 0, "10") }];
    assert_eq!(fired("outside its interval", &with(10.0, 10.0)), [""; 0]);
    assert_eq!(fired("outside its interval", &with(10.01, 10.2)).len(), 1);
    assert_eq!(fired("outside its interval", &with(10.2, 9.8)).len(), 1);
}

#[test]
fn periods_cover_the_window_but_for_its_ends() {
    let counted = |periods| [number("throttle docker:cpus=1 duration=20s periods count", 1, periods)];
    for fine in ["0", "198", "202"] {
        assert_eq!(fired("window and counters disagree", &counted(fine)), [""; 0], "{fine}");
    }
    assert_eq!(fired("window and counters disagree", &counted("197")).len(), 1);
    assert_eq!(fired("window and counters disagree", &counted("203")).len(), 1);
}

#[test]
fn nothing_has_no_share() {
    let counted = |periods| {
        let rate = number("throttle docker duration=20s throttle_rate %", 1, "0");
        [rate, number("throttle docker duration=20s periods count", 1, periods)]
    };
    assert_eq!(fired("a share of nothing", &counted("0")).len(), 1);
    assert_eq!(fired("a share of nothing", &counted("1")), [""; 0]);
}
