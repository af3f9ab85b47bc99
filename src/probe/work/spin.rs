//! Keeps a CPU busy for some milliseconds: a work without a purpose, to test everything that carries works.

use dunnage_orders::work::{Done, Spin};

use super::Report;
use crate::outcome::Failure;
use crate::sys::raw;

/// Reports its number of iterations and the nanoseconds.
pub fn work(order: Spin) -> Result<Done, Failure> {
    let began = raw::monotonic();
    let end = began + order.millis * 1_000_000;
    let mut turns = 0;
    let mut now = began;
    while now < end {
        turns += 1;
        now = raw::monotonic();
    }
    let mut report = Report::default();
    report.note("clock", "CLOCK_MONOTONIC by system calls");
    report.result("turns", turns);
    report.series("span", &[0, now - began]);
    report.done()
}
