//! What dunnage knows and concludes without touching a machine: units, statistics, questions, plans, reading
//! of runs, verdicts, advice. Deliberately absent: processes, clocks, file handles, system calls, engines.
//! `clippy.toml` refuses them, and the only dependencies are formats.

pub mod advise;
pub mod compare;
mod distribution;
pub mod experiment;
pub mod group;
pub mod history;
pub mod launch;
pub mod names;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod share;
pub mod stats;
pub mod subject;
pub mod text;
pub mod units;
pub mod variables;
pub mod verdict;

/// Each of them once, in order of first appearance.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for one in all {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// Whether a count is left out of a file.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
