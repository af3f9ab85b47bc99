//! The table of all comparisons: medians, ratio, difference, target, and whether it is reached.

use dunnage::stats::{Alpha, Estimate, Interval, Pairs};
use dunnage::units::Unit;

use crate::bench::Bench;

/// The expected result of a comparison.
pub enum Target {
    /// The ratio instrument ÷ yardstick is between these.
    Ratio(f64, f64),
    /// The difference is at most this many seconds, in either direction.
    Difference(f64),
    /// Either of the two.
    Either(f64, f64, f64),
}

/// Whether the target is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    No,
    ProbablyNot,
    Probably,
    Yes,
}

impl Reached {
    /// From the estimate and its interval.
    fn of(estimate: &Estimate, low: f64, high: f64) -> Reached {
        let fits = |value: f64| low <= value && value <= high;
        match (fits(estimate.value), estimate.interval) {
            (true, Some(Interval { low, high, .. })) if fits(low) && fits(high) => Reached::Yes,
            (true, _) => Reached::Probably,
            (false, Some(interval)) if interval.high < low || high < interval.low => Reached::No,
            (false, _) => Reached::ProbablyNot,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Reached::No => "no",
            Reached::ProbablyNot => "probably not",
            Reached::Probably => "probably",
            Reached::Yes => "yes",
        }
    }
}

/// A line of the table.
pub struct Row {
    /// Its columns.
    pub cells: [String; COLUMNS],
}

const COLUMNS: usize = 8;
/// What stands above them.
pub const TITLES: [&str; COLUMNS] =
    ["benchmark", "yardstick", "dunnage", "ratio [95 %]", "difference [95 %]", "pairs", "target", "reached"];

impl Row {
    /// A comparison in pairs of seconds, with the yardstick as the baseline.
    pub fn of_pairs(name: &str, bench: &Bench, pairs: &Pairs, target: &Target) -> Row {
        let alpha = Alpha::FIVE_PERCENT;
        let ratio = pairs.ratio(bench.timer, alpha);
        let difference = pairs.difference(alpha);
        let by_ratio = |low, high| ratio.as_ref().map_or(Reached::No, |ratio| Reached::of(ratio, low, high));
        let by_difference = |most: f64| Reached::of(&difference, -most, most);
        let reached = match *target {
            Target::Ratio(low, high) => by_ratio(low, high),
            Target::Difference(most) => by_difference(most),
            Target::Either(low, high, most) => by_ratio(low, high).max(by_difference(most)),
        };
        let seconds = |value: f64| Unit::Seconds.format(value);
        Row {
            cells: [
                name.into(),
                seconds(pairs.baseline.median()),
                seconds(pairs.subject.median()),
                ratio.map_or("-".into(), |ratio| with_interval(&ratio, |value| format!("{value:.3}"))),
                with_interval(&difference, |value| Unit::Seconds.format_signed(value)),
                pairs.differences.count().to_string(),
                target.to_string(),
                reached.word().into(),
            ],
        }
    }

    /// A line of measured amounts, without a yardstick.
    pub fn of_amount(name: &str, taken: String, runs: usize, target: &str, reached: bool) -> Row {
        let reached = if reached { Reached::Yes } else { Reached::No };
        let none = || "-".to_owned();
        let word = reached.word().to_owned();
        Row { cells: [name.into(), none(), taken, none(), none(), runs.to_string(), target.into(), word] }
    }

    /// A predicted share next to the counted one. The target applies if between a tenth and nine tenths were
    /// counted.
    pub fn of_shares(name: &str, counted: f64, predicted: f64, periods: u64, most: f64) -> Row {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let difference = predicted - counted;
        let is_telling = (0.1..=0.9).contains(&counted);
        let reached = if difference.abs() <= most { Reached::Yes } else { Reached::No };
        let (target, word) = match is_telling {
            true => (format!("±{:.0} points", most * 100.0), reached.word()),
            false => ("-".into(), "-"),
        };
        let points = format!("{:+.1} points", difference * 100.0).replace('-', "−");
        let cells = [
            name.into(),
            percent(counted),
            percent(predicted),
            "-".into(),
            points,
            periods.to_string(),
            target,
            word.into(),
        ];
        Row { cells }
    }

    /// A line with the reason why there are no numbers.
    pub fn not_measured(name: &str, why: &str) -> Row {
        let mut cells = std::array::from_fn(|_| String::new());
        cells[0] = name.into();
        cells[1] = format!("not measured: {}", why.trim());
        Row { cells }
    }
}

fn with_interval(estimate: &Estimate, shown: impl Fn(f64) -> String) -> String {
    match estimate.interval {
        Some(interval) => {
            format!("{} [{}, {}]", shown(estimate.value), shown(interval.low), shown(interval.high))
        }
        None => format!("{} [too few pairs]", shown(estimate.value)),
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Target::Ratio(low, high) if low <= 0.0 => write!(out, "at most {}", (high * 1e3).round() / 1e3),
            Target::Ratio(low, high) if high.is_infinite() => write!(out, "at least {low}"),
            Target::Ratio(low, high) => write!(out, "{low} to {high}"),
            Target::Difference(most) => write!(out, "±{}", Unit::Seconds.format(most)),
            Target::Either(low, high, most) => {
                write!(out, "{low} to {high} or ±{}", Unit::Seconds.format(most))
            }
        }
    }
}

/// A line of the table, with its columns where those of the others are.
pub fn line(cells: &[impl AsRef<str>; COLUMNS]) -> String {
    const WIDTHS: [usize; COLUMNS] = [45, 9, 8, 20, 33, 5, 12, 12];
    let padded = cells.iter().zip(WIDTHS).map(|(cell, width)| format!("{:<width$}", cell.as_ref()));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}
