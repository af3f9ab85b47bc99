//! What the numbers allow one to say: order statistics, paired differences, decisions, warnings.
//!
//! Everything here is a pure function of numbers and seeds. Deliberately absent: processes,
//! clocks, files, serialised types, units (this is the only place where a naked `f64` may stand
//! for a time or a size; the caller knows which), and words for people. Every function is total
//! once its input has been built, because constructors refuse bad values.
//!
//! The files stand in reading order, and each answers one question.

pub mod rng;

pub mod sample;

pub mod level;

pub mod order;

pub use level::{Alpha, Family};
pub use order::{Estimate, Interval, MedianRanks, median_ranks, min_rounds};
pub use rng::Rng;
pub use sample::{Sample, SampleError};
