//! Faults for real: each gives one clear error or row with a hint, the other cells are measured, every sample
//! taken stays readable, and nothing is left behind.

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/left.rs"]
mod left;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/mod.rs"]
mod support;

mod api;
mod disk;
mod engines;
mod isolation;
mod missing;
mod stopped;
mod two;
