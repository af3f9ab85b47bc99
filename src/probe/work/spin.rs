//! Keeps a CPU busy for some milliseconds: a work without a purpose, to test everything that carries works.

use super::{Report, Words};
use crate::sys::raw;

/// `spin MILLISECONDS`: reports its number of iterations and the nanoseconds.
pub fn work(words: Words, report: &mut Report<'_, '_>) {
    let Some(millis) = words.number(0) else { return report.refuse("`spin` needs a number of milliseconds") };
    let began = raw::monotonic();
    let end = began + millis * 1_000_000;
    let mut turns = 0;
    let mut now = began;
    while now < end {
        turns += 1;
        now = raw::monotonic();
    }
    report.note("clock", "CLOCK_MONOTONIC by system calls");
    report.result("turns", turns);
    report.series("span", &[0, now - began]);
}
