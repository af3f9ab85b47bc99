//! Maps values to positions in a picture, and chooses ticks with their labels.
//!
//! Deliberately absent: drawing, and values beyond the axis.

use crate::units::{Scale, Unit};

/// The space at both ends of a range, as a share of it.
const MARGIN: f64 = 0.03;
/// If the largest value is a smaller multiple of the smallest, evenly spread ticks read better than powers.
const NARROW: f64 = 6.0;

/// The range of an axis over its values, and its scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// From a little below the values to a little above: equal ratios are equal distances. As [`Range::FromZero`]
    /// if a value is not above zero.
    Ratio,
    /// From zero, or from a negative value: equal differences are equal distances.
    FromZero,
    /// From the smallest to the largest value, evenly.
    Exact,
}

/// Maps a range of values to a range of positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    unit: Unit,
    is_logarithmic: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// A labelled value of the axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its position.
    pub at: f64,
    /// Its label.
    pub label: String,
}

/// The widest range of a logarithmic axis, for which the ratio of its ends is still a number.
const WIDEST: f64 = 1e300;

impl Axis {
    /// An axis over these values; none without values.
    pub fn over(
        range: Range,
        values: impl IntoIterator<Item = f64>,
        unit: Unit,
        (from, to): (f64, f64),
    ) -> Option<Axis> {
        let (low, high) = ends(values)?;
        let is_logarithmic = range == Range::Ratio && low > 0.0;
        let (low, high) = match range {
            // The range must not be so small that noise fills it.
            _ if is_logarithmic => {
                let margin = (high / low).min(WIDEST).powf(MARGIN).max(1.04);
                let high = (high * margin).min(f64::MAX);
                ((low / margin).max(high / WIDEST).max(f64::MIN_POSITIVE), high)
            }
            Range::Exact => (low, high),
            _ => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                // Halved, since the distance could overflow.
                let margin = (high / 2.0 - low / 2.0) * 2.0 * MARGIN;
                let margin = if margin.is_finite() { margin } else { 0.0 };
                let low = if low < 0.0 { low - margin } else { low };
                (low, if high > 0.0 { high + margin } else { high })
            }
        };
        let high = if high > low { high } else { low + 1.0 };
        Some(Axis { unit, is_logarithmic, low, high, from, to })
    }

    /// The position of a value; that of the nearest end if it is beyond.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
        };
        // On a logarithmic axis, values that are not above zero are at the low end.
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }

    /// The smallest and the largest value on the axis.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Whether equal ratios are equal distances.
    pub fn is_logarithmic(&self) -> bool {
        self.is_logarithmic
    }

    /// Whether its ticks are evenly spread values in one unit.
    fn has_even_ticks(&self) -> bool {
        !self.is_logarithmic || self.high / self.low < NARROW
    }

    /// As many ticks as there is room for. `room` returns the length of a label on the axis, with the gap to the
    /// next one.
    pub fn ticks(&self, room: impl Fn(&str) -> f64) -> Vec<Tick> {
        let fits = |ticks: &Vec<Tick>| {
            ticks.windows(2).all(|pair| {
                let needed = (room(&pair[0].label) + room(&pair[1].label)) / 2.0;
                (pair[1].at - pair[0].at).abs() >= needed && pair[0].label != pair[1].label
            })
        };
        let all: Vec<Vec<Tick>> = self.candidates().into_iter().map(|values| self.named(values)).collect();
        let found = all.iter().find(|ticks| ticks.len() >= 2 && fits(ticks));
        let single = || all.iter().rev().find(|ticks| !ticks.is_empty()).map(|ticks| ticks[..1].to_vec());
        found.cloned().or_else(single).unwrap_or_default()
    }

    /// Candidate ticks, the most numerous first.
    fn candidates(&self) -> Vec<Vec<f64>> {
        if self.has_even_ticks() {
            return [10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0].map(|count| self.evenly(count)).to_vec();
        }
        match self.unit {
            Unit::Bytes | Unit::BytesPerSecond => {
                let powers = |stride: i32| self.powers(2.0, &[1.0], stride);
                [1, 2, 5, 10, 20, 40, 100, 200].map(powers).to_vec()
            }
            _ => {
                let fine = self.powers(10.0, &[1.0, 2.0, 5.0], 1);
                let decades = [1, 2, 3, 6, 12, 30, 60, 150].map(|stride| self.powers(10.0, &[1.0], stride));
                let thirds = self.powers(10.0, &[1.0, 3.0], 1);
                [vec![fine, thirds], decades.to_vec()].concat()
            }
        }
    }

    fn is_inside(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Every so many powers of a base, times these.
    fn powers(&self, base: f64, times: &[f64], stride: i32) -> Vec<f64> {
        let exponent = |value: f64| value.ln() / base.ln();
        let first = (exponent(self.low).floor() as i32 - 1).div_euclid(stride) * stride;
        let last = exponent(self.high).ceil() as i32 + 1;
        let of_power = |power: i32| times.iter().map(move |one| one * base.powi(power));
        let all = (first..=last).step_by(stride.unsigned_abs() as usize).flat_map(of_power);
        all.filter(|value| self.is_inside(*value)).collect()
    }

    /// About so many round values at equal distances.
    fn evenly(&self, count: f64) -> Vec<f64> {
        let scale = self.scale();
        let (low, high) = (self.low / scale.divisor, self.high / scale.divisor);
        let step = round_up((high - low) / count);
        if !step.is_finite() || step <= 0.0 || low + step <= low {
            return Vec::new();
        }
        let first = (low / step).ceil();
        let values = (0..).map(|index| (first + f64::from(index)) * step).take_while(|value| *value <= high);
        values.take(64).map(|value| value * scale.divisor).filter(|value| self.is_inside(*value)).collect()
    }

    /// One scale for evenly spread ticks.
    fn scale(&self) -> Scale {
        self.unit.scale_for(self.high.abs().max(self.low.abs()))
    }

    fn named(&self, values: Vec<f64>) -> Vec<Tick> {
        let is_even = self.has_even_ticks();
        let decimals = match &values[..] {
            [one, other, ..] if is_even => {
                let step = (other - one) / self.scale().divisor;
                // A step of 0.5 needs one decimal, one of 50 none.
                (-(step * 1.0001).log10().floor()).clamp(0.0, 9.0) as usize
            }
            _ => 3,
        };
        let label = |value: f64| {
            let scale = if is_even { self.scale() } else { self.unit.scale_for(value * 1.0001) };
            let number = format!("{:.decimals$}", value / scale.divisor);
            let number = match number.contains('.') && (!is_even || values.len() == 1) {
                true => number.trim_end_matches('0').trim_end_matches('.'),
                false => &number,
            };
            match (value, scale.symbol) {
                (0.0, _) => "0".to_owned(),
                (_, "") => number.replace('-', "−"),
                (_, symbol) => format!("{} {symbol}", number.replace('-', "−")),
            }
        };
        values.iter().map(|value| Tick { at: self.at(*value), label: label(*value) }).collect()
    }
}

/// The smallest and the largest of the finite values.
fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|value| value.is_finite());
    finite.fold(None, |ends, value| {
        let (low, high) = ends.unwrap_or((value, value));
        Some((f64::min(low, value), f64::max(high, value)))
    })
}

/// The next larger of 1, 2 and 5 times a power of ten.
fn round_up(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let found = [1.0, 2.0, 5.0].map(|one| one * power).into_iter().find(|one| *one >= step * 0.9999);
    found.unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: Axis) -> Vec<String> {
        axis.ticks(|label| 7.0 * label.chars().count() as f64 + 10.0)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn a_wide_range_of_times_is_told_by_powers_of_ten() {
        let axis = Axis::over(Range::Ratio, [0.0008, 0.22], Unit::Seconds, (0.0, 300.0)).unwrap();
        assert_eq!(labels(axis), ["1 ms", "3 ms", "10 ms", "30 ms", "100 ms"]);
        let narrower = Axis::over(Range::Ratio, [0.0008, 0.22], Unit::Seconds, (0.0, 200.0)).unwrap();
        assert_eq!(labels(narrower), ["1 ms", "10 ms", "100 ms"]);
        let wider = Axis::over(Range::Ratio, [0.0008, 0.22], Unit::Seconds, (0.0, 600.0)).unwrap();
        assert_eq!(labels(wider), ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms", "50 ms", "100 ms", "200 ms"]);
    }

    #[test]
    fn a_narrow_range_is_told_by_even_steps_of_one_unit() {
        let axis = Axis::over(Range::Ratio, [0.0101, 0.0119], Unit::Seconds, (0.0, 400.0)).unwrap();
        assert_eq!(labels(axis), ["10.0 ms", "10.5 ms", "11.0 ms", "11.5 ms", "12.0 ms"]);
        let zero = Axis::over(Range::FromZero, [-2.0, 9.0], Unit::Count, (0.0, 300.0)).unwrap();
        assert_eq!(labels(zero), ["−2", "0", "2", "4", "6", "8"]);
    }

    #[test]
    fn amounts_of_memory_are_told_by_powers_of_two() {
        let axis = Axis::over(Range::Ratio, [4096.0, 67_108_864.0], Unit::Bytes, (0.0, 400.0)).unwrap();
        assert_eq!(labels(axis), ["32 KiB", "1 MiB", "32 MiB"]);
    }

    #[test]
    fn throughput_is_told_in_round_numbers_of_the_unit_that_is_shown() {
        let axis = Axis::over(Range::Ratio, [100e6, 900e6], Unit::BytesPerSecond, (0.0, 400.0)).unwrap();
        assert_eq!(labels(axis), ["128 MiB/s", "256 MiB/s", "512 MiB/s"]);
    }

    #[test]
    fn values_stand_in_their_order_and_what_lies_beyond_at_the_end() {
        let axis = Axis::over(Range::Ratio, [1.0, 100.0], Unit::Count, (10.0, 110.0)).unwrap();
        assert!((axis.at(10.0) - 60.0).abs() < 1e-9);
        assert_eq!((axis.at(-1.0), axis.at(1e9)), (10.0, 110.0));
        // A vertical axis runs upwards.
        let axis = Axis::over(Range::Exact, [0.0, 1.0], Unit::Share, (200.0, 100.0)).unwrap();
        assert_eq!((axis.at(0.0), axis.at(0.25), axis.at(1.0)), (200.0, 175.0, 100.0));
        assert_eq!(Axis::over(Range::Ratio, [f64::NAN, f64::INFINITY], Unit::Count, (0.0, 1.0)), None);
    }

    /// Numbers that only a damaged file contains must be drawn too.
    #[test]
    fn the_smallest_and_the_largest_numbers_have_their_places() {
        for ends in [[5e-324, 5e-324], [5e-324, 1.0], [1.0, f64::MAX], [5e-324, f64::MAX], [f64::MAX; 2]] {
            let axis = Axis::over(Range::Ratio, ends, Unit::Seconds, (0.0, 400.0)).unwrap();
            assert!(ends.map(|end| axis.at(end)).iter().all(|at| (0.0..=400.0).contains(at)), "{ends:?}");
            assert!(axis.ticks(|_| 50.0).iter().all(|tick| (0.0..=400.0).contains(&tick.at)), "{ends:?}");
        }
    }

    proptest! {
        #[test]
        fn ticks_ascend_inside_with_room_and_names_of_their_own(
            low in -12f64..12.0, decades in 0f64..14.0, length in 40f64..900.0, which in 0usize..4,
        ) {
            let unit = [Unit::Seconds, Unit::Bytes, Unit::Count, Unit::Share][which];
            let ends = [10f64.powf(low), 10f64.powf(low + decades)];
            let room = |label: &str| 7.0 * label.chars().count() as f64 + 10.0;
            for axis in [
                Axis::over(Range::Ratio, ends, unit, (0.0, length)),
                Axis::over(Range::FromZero, ends, unit, (0.0, length)),
                Axis::over(Range::FromZero, ends.map(|end| -end), unit, (0.0, length)),
            ] {
                let ticks = axis.unwrap().ticks(room);
                prop_assert!(ticks.iter().all(|tick| (0.0..=length).contains(&tick.at)));
                for pair in ticks.windows(2) {
                    let needed = (room(&pair[0].label) + room(&pair[1].label)) / 2.0;
                    prop_assert!(pair[1].at - pair[0].at >= needed, "{ticks:?}");
                    prop_assert_ne!(&pair[0].label, &pair[1].label);
                }
                // Two decades always contain a power of ten, however little room there is.
                prop_assert!(!ticks.is_empty() || decades < 2.0);
            }
        }

        #[test]
        fn places_keep_the_order_of_values(one in -1e9..1e9f64, other in -1e9..1e9f64) {
            let axis = Axis::over(Range::Ratio, [one, other], Unit::Seconds, (5.0, 700.0)).unwrap();
            prop_assert_eq!(axis.at(one) <= axis.at(other), one <= other || axis.at(one) == axis.at(other));
        }
    }
}
