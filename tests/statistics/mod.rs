//! The statistics have their nominal properties.
//!
//! Simulations with fixed seeds, judged by exact binomial bounds. The seeds were not selected, and a failing
//! bound must be explained. One file per property.

mod alarms;
mod bounds;
mod coverage;
mod factors;
mod failures;
mod noise;
mod power;
mod rounds;
mod shapes;
mod shifts;
mod warnings;
