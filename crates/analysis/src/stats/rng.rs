//! Where do reproducible random numbers come from?
//!
//! One small generator serves the planner (shuffled rounds), the permutation tests and the tests
//! of the statistics, so that a recorded seed gives the same order on every machine and with
//! every version of every dependency. Deliberately absent: entropy; a seed always comes from
//! outside. Not for cryptography.
//!
//! Sources: xoshiro256++ 1.0 and SplitMix64 by David Blackman and Sebastiano Vigna
//! (<https://prng.di.unimi.it/xoshiro256plusplus.c>, <https://prng.di.unimi.it/splitmix64.c>,
//! "Scrambled linear pseudorandom number generators", ACM TOMS 47, 2021); bounded integers after
//! Daniel Lemire, "Fast random integer generation in an interval", ACM TOMACS 29, 2019.

use std::num::NonZeroU64;

/// The increment of SplitMix64: the golden ratio as an odd 64-bit number.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A xoshiro256++ generator: 256 bits of state, period 2^256 − 1.
///
/// A clone repeats the sequence, which tests want and simulations do not; so it is `Clone` but not `Copy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of a seed. Its state is filled by SplitMix64, as the authors recommend.
    pub fn new(seed: u64) -> Rng {
        let mut filler = SplitMix64 { state: seed };
        // Four consecutive outputs of SplitMix64 are never all zero, the one forbidden state of xoshiro:
        // its output function is a bijection, and its inputs are distinct.
        Rng { state: std::array::from_fn(|_| filler.next()) }
    }

    /// The generator number `stream` of a seed.
    ///
    /// Use one stream per purpose (the order of round 7, the test of metric 3), so that adding a
    /// use does not shift the numbers of another. For one seed, different streams have different
    /// states: `stream` enters by a bijection.
    pub fn for_stream(seed: u64, stream: u64) -> Rng {
        // The two are mixed differently; otherwise `(a, b)` and `(b, a)` would give the same generator.
        let seed = SplitMix64 { state: seed }.next();
        let stream = SplitMix64 { state: stream ^ 0x6475_6e6e_6167_6521 }.next();
        Rng::new(seed ^ stream)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A whole number in `0..bound`, each equally likely (Lemire's multiplication with rejection).
    pub fn below(&mut self, bound: NonZeroU64) -> u64 {
        let bound = bound.get();
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        // Only the low word decides about rejection, and the division is only rarely needed.
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// An index into something with `len` elements; `None` if it is empty.
    pub fn index(&mut self, len: usize) -> Option<usize> {
        NonZeroU64::new(len as u64).map(|bound| self.below(bound) as usize)
    }

    /// Puts the elements into a random order; every order is equally likely (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = NonZeroU64::MIN.saturating_add(last as u64);
            items.swap(last, self.below(bound) as usize);
        }
    }

    /// A number in `[0, 1)`, a multiple of 2^−53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number from the standard normal distribution (Box and Muller 1958), for simulations.
    pub fn standard_normal(&mut self) -> f64 {
        // One minus a number below one is above zero, so the logarithm is finite.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// SplitMix64: it only fills states and mixes seeds.
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    // Named, because proptest's prelude has a trait of that name.
    use crate::stats::Rng;
    use proptest::prelude::*;

    #[test]
    fn splitmix_gives_the_published_vector() {
        let mut splitmix = SplitMix64 { state: 1_234_567 };
        let got: [u64; 5] = std::array::from_fn(|_| splitmix.next());
        assert_eq!(
            got,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn xoshiro_gives_the_vector_of_the_reference_implementation() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let got: [u64; 10] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(
            got,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386,
                9_228_616_714_210_784_205,
                9_973_669_472_204_895_162,
                14_011_001_112_246_962_877,
                12_406_186_145_184_390_807,
                15_849_039_046_786_891_736,
                10_450_023_813_501_588_000
            ]
        );
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let first = |seed, stream| Rng::for_stream(seed, stream).next_u64();
        assert_eq!(first(7, 1), first(7, 1));
        assert_ne!(first(7, 1), first(1, 7));
        let mut outputs: Vec<u64> = (0..10_000).map(|stream| first(42, stream)).collect();
        outputs.sort_unstable();
        outputs.dedup();
        assert_eq!(outputs.len(), 10_000);
    }

    /// All 24 orders of four things: chi-square with 23 degrees of freedom, whose 0.9999 quantile
    /// is 55.9. A shuffle that draws from the whole slice each time fails by thousands.
    #[test]
    fn every_order_is_equally_likely() {
        let mut rng = Rng::new(2);
        let mut seen = std::collections::BTreeMap::new();
        let draws = 24_000;
        for _ in 0..draws {
            let mut items = [0u8, 1, 2, 3];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(seen.len(), 24);
        let expected = f64::from(draws) / 24.0;
        let chi: f64 = seen.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi < 55.9, "chi-square {chi}");
    }

    #[test]
    fn bounded_numbers_are_unbiased_where_a_remainder_would_not_be() {
        // For this bound, a plain remainder gives the lower half twice as often as the upper.
        let bound = NonZeroU64::new(3 << 62).unwrap();
        let mut rng = Rng::new(3);
        let draws = 30_000;
        let lower = (0..draws).filter(|_| rng.below(bound) < (3 << 61)).count() as f64;
        // Five standard deviations of a binomial count with p = 1/2.
        let deviation = (f64::from(draws) / 4.0).sqrt();
        assert!((lower - f64::from(draws) / 2.0).abs() < 5.0 * deviation);
    }

    proptest! {
        #[test]
        fn bounded_numbers_stay_below(seed: u64, bound in 1u64..) {
            let bound = NonZeroU64::new(bound).unwrap();
            prop_assert!(Rng::new(seed).below(bound) < bound.get());
        }

        #[test]
        fn a_shuffle_keeps_every_element(seed: u64, items: Vec<u16>) {
            let mut shuffled = items.clone();
            Rng::new(seed).shuffle(&mut shuffled);
            let mut before = items;
            before.sort_unstable();
            shuffled.sort_unstable();
            prop_assert_eq!(before, shuffled);
        }

        #[test]
        fn simulation_numbers_are_in_their_range(seed: u64) {
            let mut rng = Rng::new(seed);
            prop_assert!((0.0..1.0).contains(&rng.uniform()));
            prop_assert!(rng.standard_normal().abs() < 9.0);
        }
    }
}
