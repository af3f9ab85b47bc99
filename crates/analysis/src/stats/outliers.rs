//! Which values stand apart?
//!
//! They are named and counted, never dropped: a spike is part of what a person gets. The median
//! and the decisions do not need them gone.

use super::sample::Sample;

/// Where a value lies with respect to the fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutlierClass {
    /// More than 3 interquartile ranges below the first quartile.
    LowSevere,
    /// More than 1.5 interquartile ranges below the first quartile.
    LowMild,
    /// Within the fences.
    Ordinary,
    /// More than 1.5 interquartile ranges above the third quartile.
    HighMild,
    /// More than 3 interquartile ranges above the third quartile.
    HighSevere,
}

/// The fences of a sample and what lies beyond them.
#[derive(Clone, Debug, PartialEq)]
pub struct Outliers {
    /// First and third quartile.
    pub quartiles: [f64; 2],
    /// Third minus first quartile, or the resolution where that is larger.
    pub spread: f64,
    /// How many values lie beyond the lower outer fence.
    pub low_severe: usize,
    /// How many lie between the lower fences.
    pub low_mild: usize,
    /// How many lie between the upper fences.
    pub high_mild: usize,
    /// How many lie beyond the upper outer fence.
    pub high_severe: usize,
    /// Indices of isolated spikes: severe high values whose neighbours in time are ordinary.
    /// Severe values that follow one another are a disturbed stretch, not spikes.
    pub spikes: Vec<usize>,
}

impl Outliers {
    /// Classifies the values of a sample that stands in the order of measuring.
    ///
    /// The fences are Tukey's ("Exploratory Data Analysis", 1977). `resolution` is the smallest
    /// step that the instrument can show, in the unit of the sample (0 when unknown): when more
    /// than half of the values are the same tick, the next tick is no outlier.
    pub fn of(sample: &Sample, resolution: f64) -> Outliers {
        let quartiles = sample.quantiles([0.25, 0.75]);
        let mut outliers = Outliers {
            quartiles,
            spread: (quartiles[1] - quartiles[0]).max(resolution),
            low_severe: 0,
            low_mild: 0,
            high_mild: 0,
            high_severe: 0,
            spikes: Vec::new(),
        };
        let classes: Vec<_> = sample.values().iter().map(|&value| outliers.classify(value)).collect();
        let ordinary = |index: usize| classes.get(index).is_none_or(|&class| class == OutlierClass::Ordinary);
        for (index, class) in classes.iter().enumerate() {
            match class {
                OutlierClass::LowSevere => outliers.low_severe += 1,
                OutlierClass::LowMild => outliers.low_mild += 1,
                OutlierClass::Ordinary => {}
                OutlierClass::HighMild => outliers.high_mild += 1,
                OutlierClass::HighSevere => {
                    outliers.high_severe += 1;
                    // Before the first value there is none: the index wraps beyond every length.
                    if ordinary(index.wrapping_sub(1)) && ordinary(index + 1) {
                        outliers.spikes.push(index);
                    }
                }
            }
        }
        outliers
    }

    /// Where a value lies with respect to these fences.
    pub fn classify(&self, value: f64) -> OutlierClass {
        let [first, third] = self.quartiles;
        if value < first - 3.0 * self.spread {
            OutlierClass::LowSevere
        } else if value < first - 1.5 * self.spread {
            OutlierClass::LowMild
        } else if value > third + 3.0 * self.spread {
            OutlierClass::HighSevere
        } else if value > third + 1.5 * self.spread {
            OutlierClass::HighMild
        } else {
            OutlierClass::Ordinary
        }
    }

    /// How many values lie beyond any fence.
    pub fn total(&self) -> usize {
        self.low_severe + self.low_mild + self.high_mild + self.high_severe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outliers(values: &[f64], resolution: f64) -> Outliers {
        Outliers::of(&Sample::new(values).unwrap(), resolution)
    }

    /// Quartiles 3 and 7, so the fences stand at −3, 13 and −9, 19.
    #[test]
    fn fences_stand_where_tukey_put_them() {
        let found = outliers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], 0.0);
        assert_eq!((found.quartiles, found.total()), ([3.0, 7.0], 0));
        for (value, class) in [
            (-9.1, OutlierClass::LowSevere),
            (-9.0, OutlierClass::LowMild),
            (-3.0, OutlierClass::Ordinary),
            (13.0, OutlierClass::Ordinary),
            (13.1, OutlierClass::HighMild),
            (19.0, OutlierClass::HighMild),
            (19.1, OutlierClass::HighSevere),
        ] {
            assert_eq!(found.classify(value), class, "{value}");
        }
    }

    #[test]
    fn a_spike_is_alone_and_a_stretch_is_not() {
        let mut values: Vec<f64> = (0..20).map(|i| f64::from(i % 4)).collect();
        values[0] = 90.0;
        values[7] = 80.0;
        let found = outliers(&values, 0.0);
        assert_eq!((found.high_severe, found.spikes), (2, vec![0, 7]));
        values[8] = 70.0;
        let found = outliers(&values, 0.0);
        assert_eq!((found.high_severe, found.spikes), (3, vec![0]));
    }

    #[test]
    fn one_tick_of_a_coarse_timer_is_no_outlier() {
        let mut values = [10.0; 12];
        values[3] = 11.0;
        assert_eq!(outliers(&values, 1.0).total(), 0);
        assert_eq!(outliers(&values, 0.0).high_severe, 1);
        values[3] = 15.0;
        assert_eq!(outliers(&values, 1.0).high_severe, 1);
    }

    proptest! {
        #[test]
        fn at_most_half_of_the_values_stand_apart(values in prop::collection::vec(-1e9..1e9, 1..100)) {
            let found = outliers(&values, 0.0);
            prop_assert!(2 * found.total() <= values.len());
        }

        #[test]
        fn the_mirror_image_has_the_mirrored_outliers(values in prop::collection::vec(-1000i32..1000, 1..100)) {
            let there: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
            let back: Vec<f64> = there.iter().map(|v| -v).collect();
            let (there, back) = (outliers(&there, 0.0), outliers(&back, 0.0));
            prop_assert_eq!((there.low_severe, there.low_mild), (back.high_severe, back.high_mild));
        }
    }
}
