//! Many values of one sample, as an HdrHistogram: latencies of requests, which would fill the memory as a
//! series. Its text is the second version of the histogram's own format (uncompressed) in base64, which other
//! HdrHistogram tools read.
//!
//! Deliberately absent: the order of the values; that is a series.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

use crate::share;
use crate::stats::tail;

/// Values have three digits: those within a thousandth of each other count as equal.
const DIGITS: u8 = 3;
/// The longest duration that has its own value, in nanoseconds: 100 s.
const LONGEST_DURATION: u64 = 100_000_000_000;
/// The longest text that is read; three digits never need more.
const LONGEST: usize = 1 << 20;
/// The position of the digits in the format, after cookie, length and offset.
const PLACE_OF_DIGITS: std::ops::Range<usize> = 12..16;

/// The distribution of a sample's values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Distribution(Histogram<u64>);

impl Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        share::checked(&self.text(), to)
    }
}

impl TryFrom<String> for Distribution {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Distribution, &'static str> {
        Distribution::from_text(&text).ok_or("not one of dunnage's distributions")
    }
}

impl Distribution {
    /// The distribution of some values: durations in nanoseconds, counts.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut histogram = Histogram::new(DIGITS).expect("three digits are possible");
        for value in values {
            // The format stores signed numbers.
            histogram.record(value.min(i64::MAX as u64)).expect("it grows as it must");
        }
        Distribution(histogram)
    }

    /// No durations yet. Its memory is complete: to record a duration does not allocate.
    pub fn of_durations() -> Distribution {
        Distribution(
            Histogram::new_with_bounds(1, LONGEST_DURATION, DIGITS).expect("three digits are possible"),
        )
    }

    /// Adds a duration in nanoseconds; those above 100 s count as the longest.
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos);
    }

    /// Adds the durations of another distribution of durations.
    pub fn merge(&mut self, other: &Distribution) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// The value that this share of all values does not exceed; none without values.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.0.value_at_quantile(share))
    }

    /// The values in ascending order, each with how often it was recorded.
    pub fn counted(&self) -> Box<tail::Counted> {
        let recorded = self.0.iter_recorded();
        recorded.map(|one| (one.value_iterated_to(), one.count_at_value())).collect()
    }

    /// The mean of the values; none without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.0.mean())
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The distribution as text.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).expect("memory takes everything");
        STANDARD.encode(bytes)
    }

    /// The distribution in a text; none if it is damaged, or needs more memory than dunnage's own.
    pub fn from_text(text: &str) -> Option<Distribution> {
        let bytes = STANDARD.decode(Some(text).filter(|text| text.len() <= LONGEST)?).ok()?;
        let digits = u32::from_be_bytes(bytes.get(PLACE_OF_DIGITS)?.try_into().ok()?);
        if digits > u32::from(DIGITS) {
            return None;
        }
        Deserializer::new().deserialize(&mut bytes.as_slice()).ok().map(Distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_with_its_quantiles() {
        let own = Distribution::of((1..=10_000).map(|value| value * 1000));
        let back = Distribution::from_text(&own.text()).expect("its own text");
        assert_eq!(back, own);
        assert_eq!(back.count(), 10_000);
        for (share, exact) in [(0.5, 5e6), (0.99, 9.9e6), (1.0, 1e7)] {
            let value = back.quantile(share).unwrap() as f64;
            assert!((value / exact - 1.0).abs() < 1.5e-3, "{share}: {value}");
        }
        let counted = back.counted();
        assert_eq!(counted.iter().map(|(_, times)| times).sum::<u64>(), 10_000);
        assert!(counted.windows(2).all(|pair| pair[0].0 < pair[1].0), "{counted:?}");
        assert_eq!(Distribution::of([]).quantile(0.5), None);
        assert_eq!(Distribution::of([u64::MAX]).count(), 1);
    }

    #[test]
    fn durations_are_recorded_one_by_one() {
        let mut own = Distribution::of_durations();
        [15_000, 20_000, 25_000, u64::MAX].iter().for_each(|nanos| own.record(*nanos));
        assert_eq!(own.count(), 4);
        assert!(own.quantile(0.5).unwrap().abs_diff(20_000) <= 20);
        assert!(own.quantile(1.0).unwrap() >= LONGEST_DURATION);
        assert_eq!(Distribution::from_text(&own.text()), Some(own));
    }

    #[test]
    fn what_is_damaged_or_wants_too_much_is_none() {
        let text = Distribution::of([1, 2, 3]).text();
        assert_eq!(Distribution::from_text(&text[..text.len() - 4]), None);
        assert_eq!(Distribution::from_text("no base64"), None);
        assert_eq!(Distribution::from_text(""), None);
        let mut bytes = STANDARD.decode(&text).unwrap();
        bytes[PLACE_OF_DIGITS.end - 1] = 5;
        assert_eq!(Distribution::from_text(&STANDARD.encode(bytes)), None);
    }
}
