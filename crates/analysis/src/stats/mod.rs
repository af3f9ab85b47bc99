//! What the numbers allow us to conclude: order statistics, paired differences, decisions, warnings.
//!
//! Everything here is a pure function of numbers and seeds. Deliberately absent: processes, clocks, files,
//! serialised types, units (only here may a bare `f64` be a time or a size; the caller knows which), and
//! wording. Every function is total once its [`Sample`], [`Alpha`] or [`Margin`] has been built, because
//! those reject bad values.
//!
//! The files are in reading order, and each answers one question.

pub mod rng;

pub mod sample;

pub mod level;

pub mod order;

pub mod tail;

pub mod paired;

pub mod decide;

pub mod unpaired;

pub mod runs;

pub mod factorial;

pub mod line;

pub mod shape;

pub mod share;

pub mod noise;

pub mod precision;

pub mod outliers;

pub mod bimodal;

pub mod drift;

pub mod carryover;

pub mod time_series;

pub mod change;

pub mod quota;

mod normal;

pub use bimodal::{Bimodal, bimodal};
pub use carryover::{CarryOver, carry_over};
pub use change::{Change, changes, fewest, shifted};
pub use decide::{Comparison, Decision, Goal, Margin, NewRun, compare, decide};
pub use drift::{Drift, drift, rise};
pub use factorial::{Effect, effect};
pub use level::{Alpha, min_rounds};
pub use line::{Line, determination, line, slope};
pub use noise::NoiseFloor;
pub use order::{Estimate, Interval, MedianRanks, median_ranks};
pub use outliers::outer_fences;
pub use paired::{FAR, FailedRounds, Pairs, more_often};
pub use precision::{Spread, decisive};
pub use rng::Rng;
pub use runs::{Basis, Between, Ruling, between, over_both, own_move, rule, rule_at_both};
pub use sample::Sample;
pub use shape::{Shape, shape};
pub use share::{Share, share};
pub use time_series::{TimeSeries, steps, time_series};
pub use unpaired::{fewest_each, more_often_of, shift};
