//! Time stamps, durations and the units of metrics. Values cross module borders
//! with their unit, never as bare numbers; only `stats` computes on bare `f64`.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A point in time: nanoseconds on the kernel's `CLOCK_MONOTONIC`.
///
/// Stamps from inside and from outside a container are comparable only if both processes are
/// in the same time namespace; `probe` reports its own so that this can be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp(pub u64);

impl Stamp {
    /// The signed time from `earlier` to this stamp.
    pub fn since(self, earlier: Stamp) -> Nanos {
        // The difference modulo 2⁶⁴ is right whenever it fits, and a damaged file does not end the program.
        Nanos(self.0.wrapping_sub(earlier.0) as i64)
    }
}

/// A signed duration in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub i64);

impl Nanos {
    /// Whole milliseconds as a duration.
    pub const fn from_millis(millis: i64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Seconds, the base unit of every duration that leaves the program.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The nearest duration to a number of seconds.
    pub fn from_seconds(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9).round() as i64)
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        // A file from elsewhere can hold any numbers.
        Nanos(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(all: I) -> Nanos {
        all.fold(Nanos(0), |sum, one| sum + one)
    }
}

/// Durations that dunnage's files hold as whole nanoseconds.
pub mod whole_nanos {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Nanos;

    /// Writes it.
    pub fn serialize<S: Serializer>(nanos: &Nanos, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_i64(nanos.0)
    }

    /// Reads it.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Nanos, D::Error> {
        i64::deserialize(from).map(Nanos)
    }
}

/// In seconds, for everything that other programs read.
impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.seconds())
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&Unit::Seconds.format(self.seconds()))
    }
}

/// The base unit of a metric's values, in which they are stored and exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, shown as ns, µs, ms or s.
    Seconds,
    /// A number of things.
    Count,
    /// A dimensionless quotient.
    Ratio,
    /// A part of a whole, shown in percent.
    Share,
    /// An amount of memory or data, shown as B, KiB, MiB or GiB.
    Bytes,
    /// A throughput, shown as B/s, KiB/s, MiB/s or GiB/s.
    BytesPerSecond,
    /// A rate of things, shown as /s, k/s or M/s.
    PerSecond,
}

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Smaller ones.
    Less,
    /// Larger ones.
    More,
    /// Neither: it only describes.
    Neither,
}

/// A decimal scale of a unit: values are divided by `divisor` and followed by `symbol`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// The size of one `symbol` in base units.
    pub divisor: f64,
    /// Printed after the number; empty for plain counts.
    pub symbol: &'static str,
}

const fn scale(divisor: f64, symbol: &'static str) -> Scale {
    Scale { divisor, symbol }
}

const KIB: f64 = 1024.0;
const TIME_SCALES: [Scale; 4] = [scale(1e-9, "ns"), scale(1e-6, "µs"), scale(1e-3, "ms"), scale(1.0, "s")];
const BYTE_SCALES: [Scale; 4] =
    [scale(1.0, "B"), scale(KIB, "KiB"), scale(KIB * KIB, "MiB"), scale(KIB * KIB * KIB, "GiB")];
const THROUGHPUT_SCALES: [Scale; 4] =
    [scale(1.0, "B/s"), scale(KIB, "KiB/s"), scale(KIB * KIB, "MiB/s"), scale(KIB * KIB * KIB, "GiB/s")];
const RATE_SCALES: [Scale; 3] = [scale(1.0, "/s"), scale(1e3, "k/s"), scale(1e6, "M/s")];

/// The largest scale in which the value is at least one; if there is none, the smallest.
fn fitting(scales: &[Scale], magnitude: f64) -> Scale {
    let size = magnitude.abs();
    *scales.iter().rev().find(|scale| size >= scale.divisor * 0.9995).unwrap_or(&scales[0])
}

/// As its name.
impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl Unit {
    /// The name used in exported tables.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Count => "count",
            Unit::Ratio | Unit::Share => "ratio",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::PerSecond => "1/s",
        }
    }

    /// Whether its values are about speed, so that one of two is faster.
    pub const fn is_about_speed(self) -> bool {
        matches!(self, Unit::Seconds | Unit::BytesPerSecond | Unit::PerSecond)
    }

    /// The scale in which a value of about this magnitude reads best.
    pub fn scale_for(self, magnitude: f64) -> Scale {
        match self {
            Unit::Seconds => fitting(&TIME_SCALES, magnitude),
            Unit::Bytes => fitting(&BYTE_SCALES, magnitude),
            Unit::BytesPerSecond => fitting(&THROUGHPUT_SCALES, magnitude),
            Unit::PerSecond => fitting(&RATE_SCALES, magnitude),
            Unit::Share => scale(0.01, "%"),
            Unit::Count | Unit::Ratio => scale(1.0, ""),
        }
    }

    /// The value with three significant digits and its unit, such as `21.6 ms`.
    pub fn format(self, value: f64) -> String {
        let scale = self.scale_for(value);
        let number = match self {
            // Counts have no fractions, but their mean can.
            Unit::Count if value.fract() == 0.0 => format!("{value}"),
            _ => three_digits(value / scale.divisor),
        };
        let number = number.replacen('-', "−", 1);
        match scale.symbol {
            "" => number,
            symbol => format!("{number} {symbol}"),
        }
    }

    /// The value with an explicit sign, such as `+1.20 ms`.
    pub fn format_signed(self, value: f64) -> String {
        let text = self.format(value.abs());
        match value {
            v if v < 0.0 => format!("−{text}"),
            v if v > 0.0 => format!("+{text}"),
            _ => text,
        }
    }
}

/// A number of things, with a plural where needed: `1 round`, `2 rounds`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A share written in percent, such as `5%` or `0.5 %`; not negative.
pub fn parse_percent(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix('%')?.trim_end();
    // The parser would accept a sign or an exponent, but they are not a percentage that users mean.
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let percent: f64 = number.parse().ok().filter(|_| plain)?;
    Some(percent / 100.0)
}

/// A number with three significant digits and no exponent: `0.213`, `5.90`, `21.6`, `1240`.
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    if size.is_infinite() {
        return (if value > 0.0 { "∞" } else { "-∞" }).to_owned();
    }
    let decimals = match size {
        0.0 => 0,
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_with_three_digits_and_the_fitting_unit() {
        let shown = |seconds: f64| Unit::Seconds.format(seconds);
        assert_eq!(shown(0.0), "0 ns");
        assert_eq!(shown(9.9996e-4), "1.00 ms");
        assert_eq!(shown(2.131e-4), "213 µs");
        assert_eq!(shown(5.904e-3), "5.90 ms");
        assert_eq!(shown(0.0216), "21.6 ms");
        assert_eq!(shown(0.2204), "220 ms");
        assert_eq!(shown(1.24), "1.24 s");
    }

    #[test]
    fn shares_and_bytes_read_in_their_own_scales() {
        assert_eq!(Unit::Share.format(0.415), "41.5 %");
        assert_eq!(Unit::Share.format_signed(-0.002), "−0.200 %");
        assert_eq!(Unit::Bytes.format(0.0), "0 B");
        assert_eq!(Unit::Bytes.format(1536.0), "1.50 KiB");
        assert_eq!(Unit::Bytes.format(6.0 * 1_048_576.0), "6.00 MiB");
        assert_eq!(Unit::BytesPerSecond.format(3.0 * 1_073_741_824.0), "3.00 GiB/s");
        assert_eq!([12.0, 9_400.0].map(|rate| Unit::PerSecond.format(rate)), ["12.0 /s", "9.40 k/s"]);
        assert_eq!([6.0, 25.0, 5.5].map(|count| Unit::Count.format(count)), ["6", "25", "5.50"]);
    }

    #[test]
    fn one_thing_has_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "round")), ["0 rounds", "1 round", "2 rounds"]);
    }

    #[test]
    fn percentages_have_their_sign() {
        assert_eq!(["5%", "0.5 %", "7%"].map(parse_percent), [Some(0.05), Some(0.005), Some(0.07)]);
        for wrong in ["5", "-5%", "%", "1e1%", "inf%", "5%%"] {
            assert_eq!(parse_percent(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn signs_are_explicit_where_asked() {
        assert_eq!(Unit::Seconds.format_signed(1.2e-3), "+1.20 ms");
        assert_eq!(Unit::Seconds.format_signed(-1.2e-3), "−1.20 ms");
        assert_eq!(Unit::Count.format_signed(0.0), "0");
    }
}
