//! What is told of computing beside the findings: a table of verdicts, kind by kind, and what cannot be
//! true of fixed work that is done by one thread and by all.

use super::exhibit::{Column, Evidence, Exhibit, Item};
use super::suspect::{Suspect, View};
use super::{Finding, Verdict};
use crate::plan::Plan;
use crate::units::Unit;

/// The experiment whose cells are meant.
const EXPERIMENT: &str = "cpu";
/// What the names of metrics end with that are of all threads at once.
const ALL: &str = "_all";
/// The pass of all threads ends with the last of them, the one that also works alone among them. So it cannot
/// be shorter; a tenth leaves room for a clock rate that was higher by chance.
const SHORTER: f64 = 0.9;
/// Threads that are off their CPUs for longer than this share of the time are worth a sentence.
const WAITING: f64 = 0.1;

/// Whether passes of all threads are shorter than they can be, by the medians.
fn is_too_short(alone: f64, together: f64) -> bool {
    together < SHORTER * alone
}

/// Whether in most rounds no pass of some kind was calm, by the share of passes that were disturbed.
fn is_never_calm(disturbed: &[Option<f64>]) -> bool {
    let known: Vec<f64> = disturbed.iter().flatten().copied().collect();
    known.iter().filter(|share| **share >= 1.0).count() * 2 > known.len()
}

/// The cells of computing.
fn cells(plan: &Plan) -> impl Iterator<Item = usize> + '_ {
    (0..plan.cells.len()).filter(|&cell| plan.cells[cell].experiment == EXPERIMENT)
}

fn index_of(plan: &Plan, cell: usize, name: &str) -> Option<usize> {
    plan.metrics(&plan.cells[cell]).iter().position(|metric| metric.name == name)
}

/// All at once cannot be done before one alone.
pub(super) fn shorter_together(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for cell in cells(view.plan()) {
        for (together, metric) in view.plan().metrics(&view.plan().cells[cell]).iter().enumerate() {
            let alone = metric.name.strip_suffix(ALL).filter(|_| metric.unit == Unit::Seconds);
            let Some(alone) = alone.and_then(|name| index_of(view.plan(), cell, name)) else { continue };
            let median = |metric: usize| Some(view.cells[cell].metrics[metric].as_ref()?.median.value);
            let (Some(one), Some(all)) = (median(alone), median(together)) else { continue };
            if !is_too_short(one, all) {
                continue;
            }
            found.push(Suspect {
                rule: "shorter together than alone",
                cells: vec![cell],
                metric: Some(together),
                up_to: None,
                evidence: format!(
                    "{} is {}, and {} is {}, though the same thread does the same in both",
                    view.named(cell, together),
                    Unit::Seconds.format(all),
                    view.named(cell, alone),
                    Unit::Seconds.format(one)
                ),
                mechanism:
                    "others were on the CPU while one thread worked, or a part of the work was left out"
                        .into(),
            });
        }
    }
    found
}

/// A value that rests on passes during which something else ran is not the CPU's.
pub(super) fn never_calm(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for cell in cells(view.plan()) {
        let metrics = view.plan().metrics(&view.plan().cells[cell]);
        for (share, is_of_all) in [("disturbed", false), ("disturbed_all", true)] {
            let Some(share) = index_of(view.plan(), cell, share) else { continue };
            if !is_never_calm(view.columns.get(cell, share)) {
                continue;
            }
            let concerned = metrics.iter().enumerate().filter(|(_, metric)| {
                metric.unit == Unit::Seconds && metric.name.ends_with(ALL) == is_of_all
            });
            found.extend(concerned.map(|(metric, _)| Suspect {
                rule: "no calm pass",
                cells: vec![cell],
                metric: Some(metric),
                up_to: None,
                evidence: format!(
                    "{} is 100 % in most rounds: in every pass of some kind a thread was off its CPU",
                    view.named(cell, share)
                ),
                mechanism: "others work on these CPUs all the time, or a limit holds the threads back in every pass"
                    .into(),
            }));
        }
    }
    found
}

/// The verdicts against the baseline, a row for each subject and width.
pub fn exhibits(evidence: &Evidence<'_>) -> Vec<Exhibit> {
    let plan = &evidence.run.plan;
    let Some(first) = cells(plan).next() else { return Vec::new() };
    let kinds: Vec<&str> = plan.metrics(&plan.cells[first]).iter().map(|metric| metric.name).collect();
    let kinds: Vec<&str> = kinds
        .iter()
        .copied()
        .filter(|name| kinds.contains(&format!("{name}{ALL}").as_str()))
        .filter(|name| !["waiting", "disturbed"].contains(name))
        .collect();
    let mut rows = Vec::new();
    let mut counts = std::collections::BTreeMap::new();
    for cell in cells(plan) {
        let baseline = plan.baseline_of(EXPERIMENT);
        let subject = plan.cells[cell].subject;
        if subject == baseline || plan.subjects[subject].twin_of.is_some() {
            continue;
        }
        for (width, suffix) in [("one", ""), ("all", ALL)] {
            let mut row = vec![Item::Text(plan.subjects[subject].label.clone()), Item::Text(width.into())];
            for kind in &kinds {
                let metric = index_of(plan, cell, &format!("{kind}{suffix}"));
                let of_cell = |one: &&Finding| {
                    one.cell == cell
                        && Some(one.metric) == metric
                        && plan.cells[one.against].subject == baseline
                };
                let finding = evidence.findings.iter().find(of_cell);
                if let Some(finding) = finding {
                    *counts.entry(finding.verdict.word()).or_insert(0usize) += 1;
                }
                row.push(finding.map_or(Item::Nothing("not compared".into()), |one| told(evidence, one)));
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let names = ["subject", "CPUs"].into_iter().chain(kinds.iter().copied());
    let mut notes = vec![
        "each difference from the baseline as a share of it; `same` is followed by the end of its interval that is \
         farther from zero, other words by the difference itself"
            .to_owned(),
    ];
    notes.extend(cells(plan).filter_map(|cell| waited(evidence, cell)));
    let counted: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let baseline = &plan.subjects[plan.baseline_of(EXPERIMENT)].label;
    vec![Exhibit {
        experiment: EXPERIMENT,
        name: "verdicts",
        title: format!("computing, once started, against {baseline}"),
        columns: names.map(Column::of_texts).collect(),
        rows,
        notes,
        summary: vec![format!("computing against {baseline}: {}", counted.join(", "))],
    }]
}

fn told(evidence: &Evidence<'_>, finding: &Finding) -> Item {
    let Some(numbers) = finding.numbers else { return Item::Nothing("no data".into()) };
    let baseline = evidence.cells[finding.against].metrics[finding.metric].as_ref();
    let Some(baseline) = baseline.map(|one| one.median.value).filter(|value| *value > 0.0) else {
        return Item::Text(finding.verdict.word().into());
    };
    let reach = numbers.difference.interval.map(|interval| interval.farthest_end() / baseline * 100.0);
    let difference = numbers.difference.value / baseline * 100.0;
    Item::Text(match (&finding.verdict, reach) {
        (Verdict::Same, Some(reach)) => format!("same ±{reach:.1} %"),
        (verdict, _) => format!("{} {difference:+.1} %", verdict.word()),
    })
}

/// What held its threads up, where that is worth a sentence.
fn waited(evidence: &Evidence<'_>, cell: usize) -> Option<String> {
    let plan = &evidence.run.plan;
    let share = index_of(plan, cell, "waiting")?;
    let share = evidence.cells[cell].metrics[share].as_ref()?.median.value;
    let label = &plan.subjects[plan.cells[cell].subject].label;
    (share > WAITING).then(|| {
        format!(
            "the thread of `{label}` was off its CPU for {:.0} % of the time: others ran there, or a limit held it back; \
             passes in which it was do not count",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_at_once_may_be_a_little_shorter_and_no_more() {
        assert!(is_too_short(1.0, 0.899) && !is_too_short(1.0, 0.901) && !is_too_short(1.0, 1.5));
    }

    #[test]
    fn most_rounds_without_a_calm_pass_are_needed() {
        let shares =
            |full: usize| (0..10).map(|at| Some(if at < full { 1.0 } else { 0.99 })).collect::<Vec<_>>();
        assert!(is_never_calm(&shares(6)) && !is_never_calm(&shares(5)));
        assert!(!is_never_calm(&[]) && !is_never_calm(&[None, None]));
        assert!(is_never_calm(&[None, Some(1.0), None]));
    }
}
