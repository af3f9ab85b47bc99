//! Watches what a container that is already running uses of the CPUs: finds its control group
//! ([`target`]), reads its counters ([`group`], [`queue`]), at the ticks of a clock ([`sampler`]). Changes nothing.
//!
//! Deliberately absent: what the readings mean (`advise`).

pub mod group;
pub mod queue;
pub mod sampler;
pub mod target;
