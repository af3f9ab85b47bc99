//! Patterns of several numbers: a figure per container without a linear trend, one factor in two columns, and signs
//! that flip.

use dunnage_analysis::group::in_groups;

use crate::spread::{at_least, half_width};
use crate::student::{at_five_percent, difference};
use crate::{Number, fired, joined, mean, number, repetitions, series, shown};

/// Figures per container, and the totals from which they are computed.
const PER: [(&str, &str); 2] =
    [("launch_per_container", "launch_total"), ("used_per_container", "used_delta")];
const COUNT: &str = "containers";

/// A figure per container claims that totals are on a line. With totals at three counts or more, a fit shows whether
/// they are: least squares, with Student's t for the slope.
pub fn no_line(numbers: &[Number], claim: &Number) -> Option<String> {
    let (_, total) = PER.iter().find(|(per, _)| *per == claim.metric)?;
    let of = |one: &&Number, metric: &str| {
        (&one.experiment, &one.subject, one.metric.as_str()) == (&claim.experiment, &claim.subject, metric)
            && one.without(&[COUNT]) == claim.without(&[COUNT])
    };
    // Figures at several counts are reported once.
    if claim.condition("vs").is_some()
        || !std::ptr::eq(numbers.iter().find(|one| of(one, &claim.metric))?, claim)
    {
        return None;
    }
    let totals: Vec<&Number> =
        numbers.iter().filter(|one| one.condition("vs").is_none() && of(one, total)).collect();
    let point = |one: &&Number| Some((one.condition(COUNT)?.parse::<f64>().ok()?, one.value));
    let points: Vec<(f64, f64)> = totals.iter().filter_map(point).collect();
    let [slope, error] = slope(&points)?;
    let list = |all: Vec<String>| all.join(", ");
    (slope.abs() <= error).then(|| {
        format!(
            "{total} of `{}` is {} {unit} at {} containers: the fitted line rises by {} {unit} per container, ±{} at 95 %",
            claim.subject,
            list(totals.iter().map(|one| one.printed.clone()).collect()),
            list(points.iter().map(|point| point.0.to_string()).collect()),
            shown(slope),
            shown(error),
            unit = totals[0].unit,
        )
    })
}

/// The slope of the least-squares line, and half its 95 % interval; none for fewer than three points.
fn slope(points: &[(f64, f64)]) -> Option<[f64; 2]> {
    let freedom = points.len().checked_sub(2).filter(|free| *free > 0)? as f64;
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x, y) = (mean(&xs), mean(&ys));
    let across: f64 = xs.iter().map(|own| (own - x).powi(2)).sum();
    let slope = points.iter().map(|own| (own.0 - x) * (own.1 - y)).sum::<f64>() / across;
    let rest: f64 = points.iter().map(|own| (own.1 - y - slope * (own.0 - x)).powi(2)).sum();
    Some([slope, at_five_percent(freedom) * (rest / freedom / across).sqrt()])
}

/// A factor between two subjects that is the same in two rows belongs to what the rows have in common, not to what
/// distinguishes them. Both factors are known to differ from one, but not from each other.
pub fn one_factor(numbers: &[Number]) -> Vec<(&str, String)> {
    let raw = numbers.iter().filter(|one| one.repetition == Some(1));
    let cells: Vec<(&Number, Vec<f64>)> = raw
        .map(|one| (one, repetitions(numbers, one, &one.conditions).iter().map(|value| value.ln()).collect()))
        .collect();
    // By experiment, row and metric: the ratio of each pair of subjects.
    let mut quotients = Vec::new();
    for (at, (one, own)) in cells.iter().enumerate() {
        for (other, against) in &cells[at + 1..] {
            let is_row = (&one.experiment, &one.metric, &one.conditions)
                == (&other.experiment, &other.metric, &other.conditions);
            if let Some((log, error)) =
                difference(own, against).filter(|(log, error)| is_row && log.abs() > *error)
            {
                quotients.push((*one, *other, log, error));
            }
        }
    }
    let mut found = Vec::new();
    for (at, (one, against, log, error)) in quotients.iter().enumerate() {
        for (other, _, again, its) in quotients[at + 1..].iter().filter(|(other, base, ..)| {
            (&one.experiment, &one.metric, &one.subject, &against.subject)
                == (&other.experiment, &other.metric, &other.subject, &base.subject)
        }) {
            let differs: Vec<_> =
                one.conditions.iter().zip(&other.conditions).filter(|(own, its)| own != its).collect();
            let [((key, value), (_, second))] = differs[..] else { continue };
            if one.conditions.len() == other.conditions.len() && (log - again).abs() <= error.hypot(*its) {
                let evidence = format!(
                    "{} of `{}` is {} times that of `{}` with {key}={value}, and {} times with {key}={second}",
                    one.metric,
                    one.subject,
                    shown(log.exp()),
                    against.subject,
                    shown(again.exp()),
                );
                found.push((one.experiment.as_str(), evidence));
            }
        }
    }
    found
}

/// Two places, in one of which one subject is faster, and in the other another subject, in more rows than chance
/// explains. Pairs of measurements are compared by their printed intervals.
pub fn flips(numbers: &[Number]) -> Vec<(&str, String)> {
    const PLACE: &str = "place";
    let placed = numbers.iter().filter(|one| one.interval.is_some() && one.condition(PLACE).is_some());
    let placed = placed.filter(|one| one.subject != "bare");
    let experiments = in_groups(placed, |one| one.experiment.as_str()).into_iter();
    let told = experiments.filter_map(|(experiment, all)| {
        let rows = in_groups(all, |one| (one.metric.as_str(), one.without(&[PLACE])));
        let (mut asked, mut chance) = (0, 0.0_f64);
        let mut flipped: Vec<(f64, String)> = Vec::new();
        for ((metric, conditions), row) in rows {
            let places = in_groups(&row, |one| one.condition(PLACE));
            for (at, (first, ones)) in places.iter().enumerate() {
                for (second, others) in &places[at + 1..] {
                    let pair = |one: &&&Number| {
                        let again = others.iter().find(|other| other.subject == one.subject)?;
                        let error = half_width(one).hypot(half_width(again));
                        Some((
                            one.subject.clone(),
                            again.value - one.value,
                            (again.value - one.value) / error,
                        ))
                    };
                    let pairs: Vec<(String, f64, f64)> = ones.iter().filter_map(pair).collect();
                    let order =
                        |one: &&(String, f64, f64), other: &&(String, f64, f64)| one.2.total_cmp(&other.2);
                    let (Some(least), Some(most)) = (pairs.iter().min_by(order), pairs.iter().max_by(order))
                    else {
                        continue;
                    };
                    asked += 1;
                    // Each pair in both directions, 2.5 % on each side.
                    chance = chance.max((pairs.len() * (pairs.len() - 1)) as f64 * 0.025 * 0.025);
                    if least.2 < -1.0 && most.2 > 1.0 {
                        let words = |place: &Option<&str>| place.unwrap_or_default().to_owned();
                        let told = format!(
                            "{metric} in {} against {} ({}) is {} {unit} with `{}` and +{} {unit} with `{}`",
                            words(second),
                            words(first),
                            joined(&conditions),
                            shown(least.1),
                            least.0,
                            shown(most.1),
                            most.0,
                            unit = row[0].unit,
                        );
                        flipped.push((most.2.min(-least.2), told));
                    }
                }
            }
        }
        let (_, clearest) = flipped.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
        (at_least(flipped.len(), asked, chance) < 0.05)
            .then(|| (experiment, format!("{clearest}; so in {} of {asked} pairs of places", flipped.len())))
    });
    told.collect()
}

fn totals(values: &[(&str, &str)]) -> Vec<Number> {
    let total = |(count, value): &(&str, &str)| {
        number(&format!("scale docker containers={count} launch_total s"), 1, value)
    };
    let mut all: Vec<Number> = values.iter().map(total).collect();
    all.push(number("scale docker containers=10 launch_per_container ms", 0, "200"));
    all.push(number("scale docker containers=20 launch_per_container ms", 0, "200"));
    all
}

#[test]
fn a_figure_per_container_needs_a_line() {
    let evidence = fired("linear without a fit", &totals(&[("10", "2.00"), ("20", "7.76"), ("50", "10.70")]));
    assert_eq!(
        evidence,
        [
            "launch_total of `docker` is 2.00, 7.76, 10.70 s at 10, 20, 50 containers: the fitted line rises by 0.1899 s per container, ±1.214 at 95 %"
        ]
    );
    // Two points are always on a line, and these three are.
    for fine in [&[("10", "2.00"), ("20", "7.76")][..], &[("10", "1.04"), ("20", "2.05"), ("50", "5.28")]] {
        assert_eq!(fired("linear without a fit", &totals(fine)), [""; 0]);
    }
}

#[test]
fn a_difference_that_two_rows_share_is_of_neither() {
    let table = |disk: [&str; 3]| {
        let of = |subject: &str, endpoint: &str, values: &[&str]| {
            series(&format!("http {subject} endpoint={endpoint};threads=32 rate req/s"), values)
        };
        let all = [
            of("bridge", "network", &["7008.73", "6923.70", "6961.60"]),
            of("host", "network", &["7718.26", "7485.36", "7580.54"]),
            of("bridge", "disk", &disk),
            of("host", "disk", &["4291.90", "4234.98", "4349.31"]),
        ];
        fired("one factor in two columns", &all.concat())
    };
    assert_eq!(
        table(["3965.71", "3971.72", "3926.30"]),
        [
            "rate of `bridge` is 0.9171 times that of `host` with endpoint=network, and 0.9214 times with endpoint=disk"
        ]
    );
    // Another factor, and one that is not known to differ from 1.
    assert_eq!((table(["2965.71", "2971.72", "2926.30"]), table(["4291", "4235", "4349"])), (vec![], vec![]));
}

#[test]
fn a_sign_that_flips_from_subject_to_subject_is_told() {
    let table = |again: f64| {
        let of = |subject: &str, place: &str, value: f64| Number {
            interval: Some([value - 0.03, value + 0.03]),
            ..number(
                &format!("layers docker:storage={subject} op=read;place={place} wall_time s"),
                0,
                &format!("{value:.2}"),
            )
        };
        let all = [
            of("overlay2", "layer0", 9.99),
            of("overlay2", "layer19", 10.22),
            of("fuse", "layer0", 10.05),
            of("fuse", "layer19", again),
        ];
        fired("a sign that flips", &all)
    };
    assert_eq!(
        table(9.55),
        [
            "wall_time in layer19 against layer0 (op=read) is -0.5 s with `docker:storage=fuse` and +0.23 s with `docker:storage=overlay2`; so in 1 of 1 pairs of places"
        ]
    );
    // The same direction, and no known direction.
    assert_eq!((table(10.55), table(10.02)), (vec![], vec![]));
}
