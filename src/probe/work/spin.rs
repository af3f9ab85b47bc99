//! Keeps a CPU busy for so many milliseconds: work that does nothing, with which all that carries works is
//! tried.

use super::{Report, Words};
use crate::sys::raw;

/// `spin MILLISECONDS`: reports the turns it took and the nanoseconds.
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
