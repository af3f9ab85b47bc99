//! What qualifies the verdicts: each warning says what was seen and what to do about it.

mod programs;

use serde::Serialize;

use super::columns::{by_cell, resolution};
use super::{CellSummary, Columns, Spikes};
use crate::distinct;
use crate::experiment::command::SHARED_CGROUP;
use crate::launch::names::ROOT_DURABILITY;
use crate::plan::{Layer, Plan};
use crate::record::{Cause, Order, Recorded};
use crate::stats;
use crate::subject::kinds::FAKE;
use crate::text::{clean, listed, number, percent, with_interval};
use crate::units::counted;

/// The level of the tests for a warning over all cells together.
const LEVEL: f64 = 0.05;
/// The maximum number of rounds, evenly spread, for tests that look at their order.
const MOST_LOOKED_AT: usize = 200;

/// Something that qualifies the verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its kind, in a word or two.
    pub kind: &'static str,
    /// The experiment concerned; none if it is the whole run.
    pub experiment: Option<&'static str>,
    /// The labels of the subjects concerned.
    pub labels: Vec<String>,
    /// What was seen.
    pub seen: String,
    /// What can be done about it.
    pub remedy: &'static str,
}

impl Warning {
    fn of_run(kind: &'static str, seen: impl AsRef<str>, remedy: &'static str) -> Warning {
        Warning { kind, experiment: None, labels: Vec::new(), seen: clean(seen.as_ref()), remedy }
    }

    /// The same about a cell.
    fn about(self, plan: &Plan, cell: usize) -> Warning {
        let labels = vec![clean(&plan.entry(cell).label)];
        Warning { experiment: Some(plan.cells[cell].experiment), labels, ..self }
    }
}

/// All warnings of a run, and the number of cells in which carry-over was tested.
pub(super) fn all(
    run: &Recorded,
    columns: &Columns,
    cells: &[CellSummary],
    spikes: &[Spikes],
) -> (Vec<Warning>, usize) {
    let mut warnings: Vec<Warning> = imported(run).into_iter().chain(scripted(&run.plan)).collect();
    warnings.extend(of_the_record(run));
    warnings.extend(of_failures(run, cells));
    warnings.extend(volatile_roots(run));
    warnings.extend(programs::warnings(run));
    let tests = run.plan.cells.len().max(1) as f64;
    let by_cell = by_cell(run, |cell| of_values(run, columns, cell, spikes, LEVEL / tests));
    let tested = by_cell.iter().filter(|(_, tested)| *tested).count();
    warnings.extend(by_cell.into_iter().flat_map(|(warnings, _)| warnings));
    warnings.extend(run.environment.no_cpu_accounting.as_ref().map(|why| {
        let seen = format!("CPU time of whole launches is unknown: {why}");
        Warning::of_run("no cpu accounting", seen, "`dunnage doctor` says what accounting needs")
    }));
    (warnings, tested)
}

/// For a run that dunnage did not measure: where it comes from.
fn imported(run: &Recorded) -> Option<Warning> {
    let origin = run.environment.origin.as_ref()?;
    let order = match origin.order {
        Order::Rounds => "",
        Order::Blocks => {
            "its samples are in blocks, not in rounds, so they are not paired and get no verdict; "
        }
    };
    Some(Warning::of_run(
        "imported",
        format!("dunnage did not measure this: {order}{}", origin.notes.join("; ")),
        "measure with `dunnage run` for shuffled rounds and a treatment read back from inside",
    ))
}

/// For subjects that follow a script, under any label.
fn scripted(plan: &Plan) -> Option<Warning> {
    let own = plan.subjects.iter().filter(|entry| entry.spec.name == FAKE.name);
    let labels: Vec<String> = own.map(|entry| clean(&entry.label)).collect();
    let seen = match labels.len() {
        0 => return None,
        count if count == plan.subjects.len() => {
            "all values follow a script: nothing was measured".to_owned()
        }
        _ => format!("the values of {} follow a script: they were not measured", listed(&labels, ", ")),
    };
    let warning = Warning::of_run("scripted", seen, "`dunnage list subjects` shows what can be measured");
    Some(Warning { labels, ..warning })
}

/// What happened to the run and to its record.
pub(super) fn of_the_record(run: &Recorded) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (have, planned) = (run.complete_rounds(), run.plan.rounds);
    if have < planned {
        let seen = format!("the run ended after {have} of {}", counted(planned, "round"));
        warnings.push(Warning::of_run("unfinished", seen, "`dunnage resume` measures the rest"));
    }
    if run.resumed {
        let seen = "the run was interrupted and resumed later, on a machine that may have changed meanwhile";
        let remedy = "compare only within rounds, or run again without interruption";
        warnings.push(Warning::of_run("resumed", seen, remedy));
    }
    if run.damaged > 0 || run.cut {
        let lines = counted(run.damaged, "line");
        let seen = match (run.damaged, run.cut) {
            (0, _) => "the last line of the samples is truncated".to_owned(),
            (_, false) => format!("{lines} of the samples could not be read"),
            (_, true) => format!("{lines} of the samples could not be read, and the last is truncated"),
        };
        let remedy = match have < planned {
            true => "everything else was read; `dunnage resume` measures the missing rounds",
            false => "everything else was read, and no round is missing",
        };
        warnings.push(Warning::of_run("damaged", seen, remedy));
    }
    let counted_rounds = run.contexts.iter().skip(run.plan.warmups).flatten();
    let disturbed: Vec<_> = counted_rounds.filter_map(|context| context.disturbed.as_ref()).collect();
    if let Some(first) = disturbed.first() {
        let rounds = counted(disturbed.len(), "round");
        let seen = format!("the machine was busy with other things in {rounds}, first: {first}");
        let remedy =
            "these rounds are kept and marked; if much is undecided, run again while the machine is idle";
        warnings.push(Warning::of_run("disturbed", seen, remedy));
        let share = run.environment.machine.get("cpu_share");
        if share.is_some_and(|share| share != "own")
            && run.plan.subjects.iter().any(|one| one.layer == Layer::Bare)
        {
            let seen = "`bare` has no CPU share of its own, as containers have, so other load slows it down differently";
            warnings.push(Warning::of_run("cpu share", seen, "see `cpu-share` in `dunnage doctor`"));
        }
    }
    // If there is no CPU time at all, that has a warning of its own.
    let told = run.environment.no_cpu_accounting.as_ref();
    let missing = run.missing.iter().filter(|(_, why)| Some(why) != told && why != SHARED_CGROUP);
    warnings.extend(missing.map(|(name, why)| {
        let seen = format!("{name} is missing from samples: {why}");
        Warning::of_run("missing", seen, "`dunnage doctor` says what it needs")
    }));
    warnings
}

fn of_failures(run: &Recorded, cells: &[CellSummary]) -> Vec<Warning> {
    let of_cell = |(cell, summary): (usize, &CellSummary)| {
        let named = run.plan.named(cell);
        let failed = summary.failures.first().map(|(.., first)| {
            let rounds = counted(summary.failures.iter().map(|(_, count, _)| count).sum(), "round");
            let remedy = "`dunnage check` tries every cell once and says what is wrong";
            Warning::of_run("failures", format!("{named} failed in {rounds}: {first}"), remedy)
        });
        let reason = run.failures.iter().find_map(|row| match &row.cause {
            Cause::Skipped(reason) if row.cell == cell => Some(reason),
            _ => None,
        });
        let skipped = reason.filter(|_| summary.skipped > 0).map(|reason| {
            let seen = format!("{named} was left out of {}: {reason}", counted(summary.skipped, "round"));
            Warning::of_run("skipped", seen, "`dunnage doctor` says what is missing and how to fix it")
        });
        failed.into_iter().chain(skipped).map(move |warning| warning.about(&run.plan, cell))
    };
    cells.iter().enumerate().flat_map(of_cell).collect()
}

fn volatile_roots(run: &Recorded) -> Option<Warning> {
    let is_volatile =
        |cell: &usize| run.facts(*cell, ROOT_DURABILITY).flatten().any(|fact| fact == "volatile");
    let cells = (0..run.plan.cells.len()).filter(is_volatile);
    let labels = distinct(cells.map(|cell| clean(&run.plan.entry(cell).label)));
    let all = labels.join(", ");
    let seen = format!("no fsync reaches the disk in the root of {all}, which is mounted volatile");
    let remedy = "starts are not affected; do not compare writes there with writes to a disk";
    (!labels.is_empty()).then(|| Warning { labels, ..Warning::of_run("volatile root", seen, remedy) })
}

/// What the values of a cell's first metric show about how they came about.
fn of_values(
    run: &Recorded,
    columns: &Columns,
    cell: usize,
    spikes: &[Spikes],
    level: f64,
) -> (Vec<Warning>, bool) {
    let mut warnings = Vec::new();
    let planned = &run.plan.cells[cell];
    let Some(sample) = columns.sample(cell, 0) else { return (warnings, false) };
    let definition = &run.plan.metrics(planned)[0];
    let what = format!("{} of {}", definition.name, run.plan.named(cell));
    let shown = |value: f64| with_interval(definition.unit, value, None);
    let mut warn = |kind, seen: String, remedy| {
        warnings.push(Warning::of_run(kind, seen, remedy).about(&run.plan, cell));
    };
    let resolution = resolution(run, definition);
    let spread = spread_evenly(columns.get(cell, 0).len());
    let series: Vec<_> = spread.iter().map(|&round| columns.get(cell, 0)[round]).collect();
    let matters = run.plan.margin_of(planned.experiment, definition).at(sample.median());
    if let Some(drift) = stats::drift(&series, level)
        && drift.total.abs() > matters
        && let Some(share) = drift.relative
    {
        let direction = if share > 0.0 { "rises" } else { "falls" };
        // More than all of it is read as a multiple.
        let share = match share.abs() {
            all if all > 1.0 => format!("{} times its median", number(all, 1)),
            part => percent(part),
        };
        let p = probability(drift.p);
        warn(
            "drift",
            format!("{what} {direction} by {share} from the first round to the last ({p})"),
            "differences within a round are hardly affected; for absolute values, let the machine settle and run again",
        );
    }
    if let Some(modes) = stats::bimodal(&sample, resolution)
        && modes.medians[1] - modes.medians[0] > matters
    {
        let ([few, many], [one, other]) = (modes.counts, modes.medians.map(shown));
        warn(
            "bimodal",
            format!(
                "{what} is bimodal: {few} values around {one} and {many} around {other}; the median describes neither"
            ),
            "look for what separates them in the single values (`--format csv`)",
        );
    }
    let of_cell = spikes.iter().flat_map(|all| &all.samples).filter(|one| one.cell == cell);
    let severe: Vec<_> = of_cell.filter(|one| one.values[0].metric == definition.name).collect();
    if !severe.is_empty() {
        let (largest, median) = (shown(sample.max()), shown(sample.median()));
        let then = match severe.iter().filter(|one| !one.differs.is_empty()).count() {
            0 if severe.iter().any(|one| one.compared == 0) => String::new(),
            0 => "; nothing on the machine differed then".to_owned(),
            some => format!("; the machine differed in {some} of {}", counted(severe.len(), "round")),
        };
        let severe = counted(severe.len(), "value");
        warn(
            "outliers",
            format!(
                "{what} has {severe} far from the others, the largest {largest} against a median of {median}{then}"
            ),
            "they are kept and hardly move a median; the list of such values says what ran before each and what the machine did",
        );
    }
    let counted_rounds = run.contexts.iter().skip(run.plan.warmups).enumerate();
    let complete: Vec<usize> =
        counted_rounds.filter(|(_, context)| context.is_some()).map(|(round, _)| round).collect();
    let observations: Vec<(&str, f64)> = spread
        .iter()
        .filter_map(|&round| {
            let before = run.series[cell].predecessors[complete[round]];
            let group = match before {
                _ if planned.asks().shares.is_none() => run.plan.entry(before?).spec.name.as_str(),
                Some(before) if run.plan.share(before, cell) => "another measurement in its container",
                _ => "the start of its container",
            };
            // By subject, not by every key: with few rounds, fine groups show nothing.
            Some((group, columns.get(cell, 0)[round]?))
        })
        .collect();
    let carried = stats::carry_over(&observations, run.plan.seed);
    if let Some(carried) = &carried
        && carried.p < level
        && let Some(group) = carried.groups.get(carried.strongest)
        && group.deviation.abs() > matters
    {
        let (deviation, p) = (shown(group.deviation), probability(carried.p));
        warn(
            "carry-over",
            format!("{what} differs by {deviation} right after {} ({p})", group.predecessor),
            "look at the setting that fixes what ran before (prestate), or leave that subject out of the run",
        );
    }
    // If not even the strongest pattern could be found, nothing was tested.
    (warnings, carried.is_some_and(|carried| carried.smallest_p() < level))
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".into() } else { format!("p = {}", number(p, 4)) }
}

fn spread_evenly(rounds: usize) -> Vec<usize> {
    let wanted = rounds.min(MOST_LOOKED_AT);
    (0..wanted).map(|index| index * rounds / wanted).collect()
}
