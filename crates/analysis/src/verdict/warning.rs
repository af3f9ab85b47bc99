//! What a reader must know beside the verdicts: each warning is a case of one enum, says what was
//! seen, and what can be done about it.

mod programs;

use super::{CellSummary, Columns};
use crate::plan::Plan;
use crate::record::{Cause, Recorded};
use crate::stats::{self, Outliers};
use crate::units::Unit;

/// Tests of a warning over all cells together keep this level.
const LEVEL: f64 = 0.05;
/// Tests that look at the order of rounds look at this many at most, evenly spread.
const MOST_LOOKED_AT: usize = 200;

/// Something that qualifies the verdicts.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// Values rise or fall over the rounds.
    Drift {
        /// The cell.
        cell: usize,
        /// From the first to the last round, as a share of the median.
        share: f64,
        /// Probability by chance.
        p: f64,
    },
    /// Values depend on what ran before.
    CarryOver {
        /// The cell.
        cell: usize,
        /// The kind of predecessor that stands out.
        predecessor: String,
        /// What it does to the median, in seconds.
        deviation: f64,
        /// Probability by chance.
        p: f64,
    },
    /// Values fall into two heaps, and the median describes neither.
    TwoHeaps {
        /// The cell.
        cell: usize,
        /// The medians of the heaps, in seconds.
        medians: [f64; 2],
        /// How many values each has.
        counts: [usize; 2],
    },
    /// Some values are far from the others. They are kept.
    Outliers {
        /// The cell.
        cell: usize,
        /// How many lie beyond the outer fences.
        severe: usize,
        /// The largest value.
        largest: f64,
        /// The median.
        median: f64,
    },
    /// A cell failed in some or all rounds.
    Failures {
        /// The cell.
        cell: usize,
        /// In how many rounds that count.
        rounds: usize,
        /// What it said the first time.
        first: String,
    },
    /// A cell was left out in some rounds.
    Skipped {
        /// The cell.
        cell: usize,
        /// In how many rounds that count.
        rounds: usize,
        /// Why.
        reason: String,
    },
    /// Rounds in which the machine did other things too. They are kept.
    Disturbed {
        /// How many.
        rounds: usize,
        /// The first reason.
        first: String,
    },
    /// The run was ended before its last round.
    Unfinished {
        /// Complete rounds that count.
        have: usize,
        /// Planned ones.
        planned: usize,
    },
    /// The run was interrupted and continued later, on a machine that may have changed meanwhile.
    Resumed,
    /// Lines of the record that could not be read.
    Damaged {
        /// How many.
        lines: usize,
        /// Whether the last line was cut.
        cut: bool,
    },
    /// A value that samples should have and lack.
    Missing {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// Writes to the root do not reach the disk, whatever is synced.
    VolatileRoot {
        /// The subjects, by label.
        labels: Vec<String>,
    },
    /// The same command is not the same file in all subjects.
    OtherPrograms {
        /// A cell with the setting.
        cell: usize,
        /// SHA-256 of each file, with the subjects that execute it, by label.
        files: Vec<(String, Vec<String>)>,
    },
    /// A bare process executes what is installed on the host.
    HostsProgram {
        /// A cell with the setting.
        cell: usize,
        /// The file.
        path: String,
        /// The subjects, by label.
        labels: Vec<String>,
    },
}

/// All warnings of a run, and in how many cells carry-over was tested.
pub(super) fn all(run: &Recorded, columns: &Columns, cells: &[CellSummary]) -> (Vec<Warning>, usize) {
    let mut warnings = of_the_record(run);
    warnings.extend(of_failures(run, cells));
    warnings.extend(volatile_roots(run));
    warnings.extend(programs::warnings(run));
    let tests = run.plan.cells.len().max(1) as f64;
    let looked_at: Vec<usize> = (0..run.plan.cells.len()).collect();
    let by_cell = super::in_parallel(&looked_at, |&cell| of_values(run, columns, cell, LEVEL / tests));
    let tested = by_cell.iter().filter(|(_, tested)| *tested).count();
    warnings.extend(by_cell.into_iter().flat_map(|(warnings, _)| warnings));
    (warnings, tested)
}

/// What became of the run, and of its record.
pub(super) fn of_the_record(run: &Recorded) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let have = run.complete_rounds();
    if have < run.plan.rounds {
        warnings.push(Warning::Unfinished { have, planned: run.plan.rounds });
    }
    if run.resumed {
        warnings.push(Warning::Resumed);
    }
    if run.damaged > 0 || run.cut {
        warnings.push(Warning::Damaged { lines: run.damaged, cut: run.cut });
    }
    let counted = run.contexts.iter().skip(run.plan.warmups).flatten();
    let disturbed: Vec<_> = counted.filter_map(|context| context.disturbed.clone()).collect();
    if let Some(first) = disturbed.first() {
        warnings.push(Warning::Disturbed { rounds: disturbed.len(), first: first.clone() });
    }
    // Why there is no CPU time at all is told once, with the environment.
    let told = run.environment.no_cpu_accounting.as_ref();
    let missing = run.missing.iter().filter(|(_, why)| Some(why) != told);
    warnings.extend(missing.map(|(name, why)| Warning::Missing { name: name.clone(), reason: why.clone() }));
    warnings
}

fn of_failures(run: &Recorded, cells: &[CellSummary]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (cell, summary) in cells.iter().enumerate() {
        let rounds = summary.failures.iter().map(|(_, count, _)| count).sum();
        if let Some((.., first)) = summary.failures.first() {
            warnings.push(Warning::Failures { cell, rounds, first: first.clone() });
        }
        let reason = run.failures.iter().find_map(|row| match &row.cause {
            Cause::Skipped(reason) if row.cell == cell => Some(reason.clone()),
            _ => None,
        });
        if let Some(reason) = reason.filter(|_| summary.skipped > 0) {
            warnings.push(Warning::Skipped { cell, rounds: summary.skipped, reason });
        }
    }
    warnings
}

fn volatile_roots(run: &Recorded) -> Option<Warning> {
    let volatile: Vec<bool> = run
        .treatments
        .iter()
        .map(|facts| facts.iter().any(|(name, fact)| name == "root_durability" && fact == "volatile"))
        .collect();
    let mut labels: Vec<String> = Vec::new();
    for (cell, series) in run.plan.cells.iter().zip(&run.series) {
        let label = &run.plan.subjects[cell.subject].label;
        let is_volatile = |number: &usize| volatile.get(*number) == Some(&true);
        if series.treatments.iter().flatten().any(is_volatile) && !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    (!labels.is_empty()).then_some(Warning::VolatileRoot { labels })
}

/// What the values of a cell's first metric show about the way they came about.
fn of_values(run: &Recorded, columns: &Columns, cell: usize, level: f64) -> (Vec<Warning>, bool) {
    let mut warnings = Vec::new();
    let planned = &run.plan.cells[cell];
    let Some(sample) = columns.sample(cell, 0) else { return (warnings, false) };
    let definition = &run.plan.metrics(planned)[0];
    let resolution =
        if definition.unit == Unit::Seconds { run.environment.timer.step as f64 / 1e9 } else { 0.0 };
    let spread = spread_evenly(columns.get(cell, 0).len());
    let series: Vec<_> = spread.iter().map(|&round| columns.get(cell, 0)[round]).collect();
    let matters = run.plan.margin_of(planned.experiment, definition).at(sample.median());
    if let Ok(drift) = stats::drift(&series)
        && drift.p < level
        && drift.total.abs() > matters
        && let Some(share) = drift.relative
    {
        warnings.push(Warning::Drift { cell, share, p: drift.p });
    }
    if let Some(heaps) = stats::two_heaps(&sample, resolution)
        && heaps.medians[1] - heaps.medians[0] > matters
    {
        warnings.push(Warning::TwoHeaps { cell, medians: heaps.medians, counts: heaps.counts });
    }
    let outliers = Outliers::of(&sample, resolution);
    let severe = outliers.low_severe + outliers.high_severe;
    if severe > 0 && sample.count() >= 8 {
        let (largest, median) = (sample.max(), sample.median());
        warnings.push(Warning::Outliers { cell, severe, largest, median });
    }
    let complete: Vec<usize> = complete_rounds(run);
    let observations: Vec<(&str, f64)> = spread
        .iter()
        .filter_map(|&round| {
            let before = run.series[cell].predecessors[complete[round]]?;
            Some((kind_of(&run.plan, before), columns.get(cell, 0)[round]?))
        })
        .collect();
    let carried = stats::carry_over(&observations, run.plan.seed);
    if let Ok(carried) = &carried
        && carried.p < level
        && let Some(group) = carried.groups.get(carried.strongest)
        && group.deviation.abs() > matters
    {
        warnings.push(Warning::CarryOver {
            cell,
            predecessor: group.predecessor.to_owned(),
            deviation: group.deviation,
            p: carried.p,
        });
    }
    // Where not even the strongest pattern would be found, nothing was tested.
    (warnings, carried.is_ok_and(|carried| carried.smallest_p() < level))
}

/// Predecessors are told apart by what they are, not by every key: with few rounds, fine groups
/// can show nothing.
fn kind_of(plan: &Plan, cell: usize) -> &str {
    &plan.subjects[plan.cells[cell].subject].spec.name
}

fn complete_rounds(run: &Recorded) -> Vec<usize> {
    let counted = run.contexts.iter().skip(run.plan.warmups).enumerate();
    counted.filter(|(_, context)| context.is_some()).map(|(round, _)| round).collect()
}

fn spread_evenly(rounds: usize) -> Vec<usize> {
    let wanted = rounds.min(MOST_LOOKED_AT);
    (0..wanted).map(|index| index * rounds / wanted).collect()
}
