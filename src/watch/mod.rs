//! Watches the CPU usage of a running container: finds its cgroup ([`target`]), and reads its counters ([`group`], [`queue`])
//! at the ticks of a clock ([`sampler`]). Changes nothing.
//!
//! Deliberately absent: the interpretation of the readings (`advise`).

pub mod group;
pub mod queue;
pub mod sampler;
pub mod target;
