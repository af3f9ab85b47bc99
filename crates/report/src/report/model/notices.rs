//! Warnings and suspects in sentences, each warning with its remedy.

use super::{Notice, Suspicion};
use crate::plan::Cell;
use crate::record::{Cause, Order, Recorded};
use crate::report::text::{clean, percent, with_interval};
use crate::units::{Unit, counted};
use crate::verdict::{Analysis, Warning};

/// The warnings of a run.
pub(super) fn notices(run: &Recorded, analysis: &Analysis) -> Vec<Notice> {
    let mut notices: Vec<_> = imported(run).into_iter().collect();
    notices.extend(analysis.warnings.iter().map(|warning| notice(run, warning)));
    if let Some(why) = &run.environment.no_cpu_accounting {
        notices.push(Notice {
            kind: "no cpu accounting",
            experiment: None,
            labels: Vec::new(),
            seen: format!("CPU time of whole launches is not known: {}", clean(why)),
            remedy: "`dunnage doctor` says what accounting needs".into(),
        });
    }
    notices
}

/// Whose samples they are, where they are not our own.
fn imported(run: &Recorded) -> Option<Notice> {
    let origin = run.environment.origin.as_ref()?;
    let order = match origin.order {
        Order::Rounds => "",
        Order::Blocks => {
            "samples stand in blocks, not in rounds: none is paired with another, and no verdict is given; "
        }
    };
    let notes: Vec<_> = origin.notes.iter().map(|note| clean(note)).collect();
    Some(Notice {
        kind: "imported",
        experiment: None,
        labels: Vec::new(),
        seen: format!("dunnage did not measure this: {order}{}", notes.join("; ")),
        remedy: "`dunnage run` measures in shuffled rounds, with the treatment read back from inside".into(),
    })
}

/// Why a cell was left out the first time.
pub(super) fn first_skip(run: &Recorded, cell: usize) -> Option<String> {
    run.failures.iter().find_map(|row| match &row.cause {
        Cause::Skipped(reason) if row.cell == cell && row.round >= run.plan.warmups => Some(reason.clone()),
        _ => None,
    })
}

/// The rules that fired.
pub(super) fn suspicions(run: &Recorded, analysis: &Analysis) -> Vec<Suspicion> {
    let one = |suspect: &crate::verdict::Suspect| {
        let first = suspect.cells.first().map(|&cell| &run.plan.cells[cell]);
        let metric = suspect.metric.and_then(|metric| run.plan.metrics(first?).get(metric));
        let mut labels: Vec<_> =
            suspect.cells.iter().map(|&cell| label(run, &run.plan.cells[cell])).collect();
        labels.dedup();
        Suspicion {
            rule: suspect.rule,
            experiment: first.map(|cell| cell.experiment),
            labels,
            metric: metric.map(|metric| metric.name),
            evidence: clean(&suspect.evidence),
            mechanism: clean(&suspect.mechanism),
        }
    };
    analysis.suspects.iter().map(one).collect()
}

fn label(run: &Recorded, cell: &Cell) -> String {
    clean(&run.plan.subjects[cell.subject].label)
}

fn notice(run: &Recorded, warning: &Warning) -> Notice {
    let cell = |index: usize| &run.plan.cells[index];
    // Warnings about values look at the first metric of the experiment.
    let unit = |index: usize| run.plan.metrics(cell(index)).first().map_or(Unit::Count, |metric| metric.unit);
    let named = |index: usize| {
        let metric = run.plan.metrics(cell(index)).first().map_or("", |metric| metric.name);
        format!("{metric} of {}", subject_in_setting(run, cell(index)))
    };
    let shown = |index: usize, value: f64| with_interval(unit(index), value, None);
    let of_cell = |kind, index: usize, seen: String, remedy: &str| Notice {
        kind,
        experiment: Some(cell(index).experiment),
        labels: vec![label(run, cell(index))],
        seen: clean(&seen),
        remedy: remedy.into(),
    };
    let of_run = |kind, seen: String, remedy: &str| Notice {
        kind,
        experiment: None,
        labels: Vec::new(),
        seen: clean(&seen),
        remedy: remedy.into(),
    };
    match warning {
        Warning::Drift { cell, share, p } => {
            let direction = if *share > 0.0 { "rises" } else { "falls" };
            of_cell(
                "drift",
                *cell,
                format!(
                    "{} {direction} by {} from the first round to the last ({})",
                    named(*cell),
                    percent(share.abs()),
                    probability(*p)
                ),
                "differences within a round hardly suffer; for absolute values let the machine settle and run again",
            )
        }
        Warning::CarryOver { cell, predecessor, deviation, p } => of_cell(
            "carry-over",
            *cell,
            format!(
                "{} differs by {} right after {predecessor} ({})",
                named(*cell),
                shown(*cell, *deviation),
                probability(*p)
            ),
            "read the setting that rules out what ran before (prestate), or leave that subject out of the run",
        ),
        Warning::TwoHeaps { cell, medians, counts } => of_cell(
            "two heaps",
            *cell,
            format!(
                "{} falls into two heaps, {} values around {} and {} around {}; the median describes neither",
                named(*cell),
                counts[0],
                shown(*cell, medians[0]),
                counts[1],
                shown(*cell, medians[1])
            ),
            "look at the single values (`--format csv`) for what sets them apart",
        ),
        Warning::Outliers { cell, severe, largest, median } => of_cell(
            "outliers",
            *cell,
            format!(
                "{} has {} far from the others, the largest {} against a median of {}",
                named(*cell),
                counted(*severe, "value"),
                shown(*cell, *largest),
                shown(*cell, *median)
            ),
            "they are kept and hardly move a median; if there are many, find out what else ran",
        ),
        Warning::Failures { cell, rounds, first } => of_cell(
            "failures",
            *cell,
            format!(
                "{} failed in {}: {first}",
                subject_in_setting(run, &run.plan.cells[*cell]),
                counted(*rounds, "round")
            ),
            "`dunnage check` tries every cell once and says what is wrong",
        ),
        Warning::Skipped { cell, rounds, reason } => of_cell(
            "skipped",
            *cell,
            format!(
                "{} was left out of {}: {reason}",
                subject_in_setting(run, &run.plan.cells[*cell]),
                counted(*rounds, "round")
            ),
            "`dunnage doctor` says what is missing and how to mend it",
        ),
        Warning::Disturbed { rounds, first } => of_run(
            "disturbed",
            format!("the machine did other things in {}, first: {first}", counted(*rounds, "round")),
            "these rounds are kept and marked; run again when the machine is idle if much is undecided",
        ),
        Warning::Unfinished { have, planned } => of_run(
            "unfinished",
            format!("the run ended after {have} of {}", counted(*planned, "round")),
            "`dunnage resume` takes the rest",
        ),
        Warning::Resumed => of_run(
            "resumed",
            "the run was interrupted and continued later, on a machine that may have changed meanwhile"
                .into(),
            "compare within rounds only, or run again in one piece",
        ),
        Warning::Damaged { lines, cut } => {
            let seen = match (lines, cut) {
                (0, _) => "the last line of the samples was cut".to_owned(),
                (lines, false) => format!("{} of the samples could not be read", counted(*lines, "line")),
                (lines, true) => {
                    format!(
                        "{} of the samples could not be read, and the last was cut",
                        counted(*lines, "line")
                    )
                }
            };
            of_run(
                "damaged",
                seen,
                "everything else was read; `dunnage resume` takes the rounds that are missing",
            )
        }
        Warning::Missing { name, reason } => of_run(
            "missing",
            format!("{name} is missing from samples: {reason}"),
            "`dunnage doctor` says what it needs",
        ),
        Warning::OtherPrograms { cell, files } => Notice {
            kind: "other program",
            experiment: Some(run.plan.cells[*cell].experiment),
            labels: files.iter().flat_map(|(_, labels)| labels).map(|label| clean(label)).collect(),
            seen: clean(&format!(
                "not the same file is executed everywhere ({}): {}",
                run.plan.cells[*cell].setting,
                files
                    .iter()
                    .map(|(sum, labels)| format!("{}… by {}", sum.get(..12).unwrap_or(sum), labels.join(", ")))
                    .collect::<Vec<_>>()
                    .join("; ")
            )),
            remedy: "differences may be those of the builds; give every subject the same image, `bare` too".into(),
        },
        Warning::HostsProgram { cell, path, labels } => Notice {
            kind: "the host's program",
            experiment: Some(run.plan.cells[*cell].experiment),
            labels: labels.iter().map(|label| clean(label)).collect(),
            seen: clean(&format!(
                "{} executes the host's own `{path}`, with the host's libraries ({})",
                labels.join(", "),
                run.plan.cells[*cell].setting
            )),
            remedy: "name the image for it too, as in `bare:image=REF`: then it runs from the image's unpacked root".into(),
        },
        Warning::VolatileRoot { labels } => Notice {
            kind: "volatile root",
            experiment: None,
            labels: labels.iter().map(|label| clean(label)).collect(),
            seen: clean(&format!(
                "the root of {} is mounted volatile: whatever is synced there, nothing reaches the disk",
                labels.join(", ")
            )),
            remedy: "starting is not concerned; do not compare writing there with a disk".into(),
        },
    }
}

fn subject_in_setting(run: &Recorded, cell: &Cell) -> String {
    let setting = if cell.setting.0.is_empty() { String::new() } else { format!(" ({})", cell.setting) };
    format!("`{}`{setting}", label(run, cell))
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".into() } else { format!("p = {}", crate::report::text::number(p, 4)) }
}
