//! How much memory a run may take: that of what its file of samples holds, not of what its plan has room for.

use crate::experiment::Experiment;
use crate::outcome::Sample;

/// Every complete round has a line for nearly every cell, so values take little more memory than lines. An import of samples
/// that were taken one after the other has a round for each.
const MOST_ROOM: u64 = 32;
/// The memory that the values of any run may take.
const LEAST_ROOM: u64 = 128 << 20;

/// Whether a file of this length can be the samples of these cells in so many rounds.
pub(super) fn fits(wanted: &[&'static Experiment], rounds: usize, length: u64) -> bool {
    room(wanted, rounds) <= LEAST_ROOM + length.saturating_mul(MOST_ROOM)
}

/// The memory of the values of these cells in so many rounds, in bytes.
fn room(wanted: &[&'static Experiment], rounds: usize) -> u64 {
    let of = |one: &&Experiment| {
        let whole = if one.keeps_samples { size_of::<Option<Sample>>() } else { 0 };
        let tails = one.metrics.iter().filter(|metric| metric.is_tail().is_some()).count();
        (one.metrics.len() + 2 * tails) * size_of::<f64>() + 3 * size_of::<Option<usize>>() + whole
    };
    (wanted.iter().map(of).sum::<usize>() as u64).saturating_mul(rounds as u64)
}

/// The maximum number of lines of a run of this plan: its samples, the begin and end of each round, and
/// treatments, with room for rounds that were interrupted and started again. A file with more is not a run,
/// and must not fill the memory.
pub(super) fn most_lines(cells: usize, rounds: usize) -> usize {
    const ATTEMPTS: usize = 4;
    const TREATMENTS: usize = 1 << 17;
    (cells + 2).saturating_mul(rounds).saturating_mul(ATTEMPTS).saturating_add(TREATMENTS)
}
