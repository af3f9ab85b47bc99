//! Faults for real: each gives one clear error or row with a hint, the other cells are measured, every sample
//! taken stays readable, and nothing is left behind.

mod api;
mod disk;
mod engines;
mod isolation;
mod missing;
mod state;
mod stopped;
mod two;
