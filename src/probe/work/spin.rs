//! Keeps a CPU busy for some milliseconds: a work without a purpose, to test everything that carries works.

use dunnage_orders::work::{Spin, Spun};

use crate::sys::raw;
use crate::units::Nanos;

/// Counts its readings of the clock.
pub fn work(order: Spin) -> Spun {
    let began = raw::monotonic();
    let end = began + order.millis * 1_000_000;
    let mut turns = 0;
    let mut now = began;
    while now < end {
        turns += 1;
        now = raw::monotonic();
    }
    Spun { turns, took: Nanos((now - began) as i64) }
}
