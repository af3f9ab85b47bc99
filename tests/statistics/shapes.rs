//! Distributions with a known median, like samples of measured times: even, with a tail, in modes, coarse.

use dunnage::stats::Rng;

/// A distribution with a known median.
pub struct Shape {
    pub name: &'static str,
    pub median: f64,
    pub draw: fn(&mut Rng) -> f64,
}

pub const NORMAL: Shape = Shape { name: "normal", median: 0.0, draw: Rng::standard_normal };

/// exp of a normal number with σ = 1: a tail like that of start-up times, but worse.
pub const LOG_NORMAL: Shape =
    Shape { name: "log-normal", median: 1.0, draw: |rng| rng.standard_normal().exp() };

/// Seven in ten around 0 and three in ten around 10, each with σ = 1. The median is where the lower mode has
/// 5/7 of its values, since the upper one has almost none there: the normal quantile of 5/7.
pub const BIMODAL: Shape = Shape {
    name: "bimodal",
    median: 0.565_948_821_932_863_1,
    draw: |rng| {
        let centre = if rng.uniform() < 0.3 { 10.0 } else { 0.0 };
        centre + rng.standard_normal()
    },
};

/// Almost half of the mass is at one point, as with coarse timers.
pub const COARSE: Shape =
    Shape { name: "coarse", median: 0.0, draw: |rng| (rng.standard_normal() * 0.8).round() };

pub fn series(rounds: usize, mut value: impl FnMut() -> f64) -> Vec<Option<f64>> {
    (0..rounds).map(|_| Some(value())).collect()
}
