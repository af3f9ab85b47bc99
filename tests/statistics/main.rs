//! Do the statistics keep their promises? (rule 26 of the methodology)
//!
//! Simulations with fixed seeds, judged by exact binomial bounds. The seeds were not chosen, and a bound that fails is to
//! be explained. One file a promise.

mod alarms;
mod bounds;
mod coverage;
mod factors;
mod noise;
mod power;
mod rounds;
mod shapes;
mod shifts;
mod warnings;
