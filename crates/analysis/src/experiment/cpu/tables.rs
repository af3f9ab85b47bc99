//! What is told of computing beside the findings: a table of verdicts, kind by kind, and what cannot be
//! true of fixed work that is done by one thread and by all.

use super::NAME;
use crate::plan::Plan;
use crate::stats::{Estimate, Pairs};
use crate::units::{Unit, counted};
use crate::verdict::exhibit::{Column, Evidence, Exhibit, Item};
use crate::verdict::finding::{Finding, Verdict};
use crate::verdict::suspect::{Suspect, View};

/// What the names of metrics end with that are of all threads at once.
const ALL: &str = "_all";
/// The pass of all threads ends with the last of them, the one that also works alone among them. So it cannot
/// be shorter; a tenth leaves room for a clock rate that was higher by chance.
const SHORTER: f64 = 0.9;
/// Threads that are off their CPUs for longer than this share of the time are worth a sentence.
const WAITING: f64 = 0.1;

/// Whether passes of all threads are shorter than they can be, by the whole interval of what all take as a
/// multiple of what one takes, round by round.
fn is_too_short(together: &Estimate) -> bool {
    together.interval.is_some_and(|interval| interval.high < SHORTER)
}

/// The cells of computing.
fn cells(plan: &Plan) -> impl Iterator<Item = usize> + '_ {
    (0..plan.cells.len()).filter(|&cell| plan.cells[cell].experiment == NAME)
}

fn index_of(plan: &Plan, cell: usize, name: &str) -> Option<usize> {
    plan.metrics(&plan.cells[cell]).iter().position(|metric| metric.name == name)
}

/// All at once cannot be done before one alone.
pub fn shorter_together(view: &View<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for cell in cells(view.plan()) {
        for (together, metric) in view.plan().metrics(&view.plan().cells[cell]).iter().enumerate() {
            let alone = metric.name.strip_suffix(ALL).filter(|_| metric.unit == Unit::Seconds);
            let Some(alone) = alone.and_then(|name| index_of(view.plan(), cell, name)) else { continue };
            let median = |metric: usize| Some(view.cells[cell].metrics[metric].as_ref()?.median.value);
            let (Some(one), Some(all)) = (median(alone), median(together)) else { continue };
            let pairs = Pairs::align(view.columns.get(cell, alone), view.columns.get(cell, together));
            let timer = view.run.environment.timer.step as f64 / 1e9;
            let share = pairs.ok().and_then(|pairs| {
                pairs.ratio(timer, view.plan().alpha(view.plan().cells[cell].experiment)).ok()
            });
            if !share.as_ref().is_some_and(is_too_short) {
                continue;
            }
            found.push(Suspect {
                rule: "shorter together than alone",
                cells: vec![cell],
                metric: Some(together),
                up_to: None,
                evidence: format!(
                    "{} is {}, and {} is {}, beyond what the rounds differ, though the same thread does the same in both",
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
        let baseline = plan.baseline_of(NAME);
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
                    *counts.entry(finding.kind().word()).or_insert(0usize) += 1;
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
    notes.extend(cells(plan).filter_map(|cell| lacked(evidence, cell)));
    let counted: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let baseline = &plan.subjects[plan.baseline_of(NAME)].label;
    vec![Exhibit {
        experiment: NAME,
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
        return Item::Text(finding.kind().word().into());
    };
    let reach = numbers.difference.interval.map(|interval| interval.farthest_end() / baseline * 100.0);
    let difference = signed(numbers.difference.value / baseline * 100.0);
    Item::Text(match (&finding.verdict, reach) {
        (Verdict::Same, Some(reach)) => format!("same ±{reach:.1} %"),
        _ => format!("{} {difference} %", finding.kind().word()),
    })
}

/// With one decimal; what rounds to nothing has no sign.
fn signed(percent: f64) -> String {
    match format!("{percent:+.1}").as_str() {
        "-0.0" | "+0.0" => "0.0".to_owned(),
        text => text.replace('-', "−"),
    }
}

/// In how many rounds something has no value since too few passes were calm.
fn lacked(evidence: &Evidence<'_>, cell: usize) -> Option<String> {
    let plan = &evidence.run.plan;
    let metrics = plan.metrics(&plan.cells[cell]);
    let times = (0..metrics.len()).filter(|&metric| metrics[metric].unit == Unit::Seconds);
    let columns: Vec<_> = times.map(|metric| evidence.columns.get(cell, metric)).collect();
    let measured = columns.iter().map(|column| column.len()).max()?;
    let is_measured = |round: &usize| {
        metrics.iter().enumerate().any(|(metric, _)| evidence.columns.get(cell, metric)[*round].is_some())
    };
    let lacks = |round: &usize| columns.iter().any(|column| column[*round].is_none());
    let rounds = (0..measured).filter(|round| is_measured(round) && lacks(round)).count();
    let label = &plan.subjects[plan.cells[cell].subject].label;
    (rounds > 0).then(|| {
        format!(
            "`{label}` has no value of some kind in {} of {}: fewer than three passes of it were calm",
            rounds,
            counted(measured, "round")
        )
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
    use crate::stats::{Alpha, Sample};

    fn share(values: impl IntoIterator<Item = f64>) -> Estimate {
        let sample = Sample::new(values.into_iter().collect::<Vec<_>>()).unwrap();
        Estimate::of_median(&sample, Alpha::FIVE_PERCENT)
    }

    #[test]
    fn all_at_once_may_be_a_little_shorter_and_no_more() {
        let around = |middle: f64| share((-5..=5).map(|at| middle + f64::from(at) * 0.001));
        assert!(is_too_short(&around(0.89)) && !is_too_short(&around(0.91)) && !is_too_short(&around(1.5)));
    }

    #[test]
    fn nothing_has_no_sign_and_less_has_a_real_one() {
        assert_eq!([-0.04, 0.04, 0.0, -1.26, 2.0].map(signed), ["0.0", "0.0", "0.0", "−1.3", "+2.0"]);
    }

    #[test]
    fn rounds_that_differ_by_more_or_are_too_few_show_nothing() {
        assert!(!is_too_short(&share([0.7, 0.75])));
        assert!(!is_too_short(&share((0..11).map(|at| 0.6 + f64::from(at) * 0.05))));
    }
}
