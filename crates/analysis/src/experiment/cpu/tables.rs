//! The tables of computing: verdicts kind by kind, and what cannot be true of fixed work done by one thread
//! and by all.

use super::NAME;
use crate::experiment::fixed_work::reason;
use crate::experiment::{Metric, Weight};
use crate::stats::{Estimate, Pairs};
use crate::text::listed;
use crate::units::{Unit, counted};
use crate::verdict::finding::{Finding, Verdict};
use crate::verdict::kind::Kind;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};
use crate::verdict::{Suspect, View};

/// Suffix of the metrics that are about all threads at once.
const ALL: &str = "_all";
/// A pass of all threads ends with the last of them, and one of them is the thread that also works alone. So
/// it cannot be shorter than alone; a tenth leaves room for a clock rate that was higher by chance.
const SHORTER: f64 = 0.9;
/// Threads that are off their CPUs for more than this share of the time get a sentence.
const WAITING: f64 = 0.1;

/// Whether it is the speed of the core, and not what a user waits for, which includes others on the CPUs.
fn is_of_passes(metric: &Metric) -> bool {
    metric.weight == Weight::Verdict && !metric.name.starts_with("elapsed")
}

/// Whether passes of all threads are impossibly short: by the whole interval of their time as a multiple of
/// one thread's, round by round.
fn is_too_short(together: &Estimate) -> bool {
    together.interval.is_some_and(|interval| interval.high < SHORTER)
}

/// All threads at once cannot finish before one alone.
pub fn shorter_together(view: &View<'_>) -> Vec<Suspect> {
    let timer = view.run.environment.timer.step as f64 / 1e9;
    let mechanism = "others were on the CPU while one thread worked, or part of the work was left out";
    Suspect::each(view, "shorter together than alone", mechanism, |cell, together| {
        let metric = view.metric(cell, together);
        let alone = metric
            .name
            .strip_suffix(ALL)
            .filter(|_| view.cell(cell).experiment == NAME && is_of_passes(metric))?;
        let alone = view.metric_index(cell, alone)?;
        let (one, all) = (view.median(cell, alone)?, view.median(cell, together)?);
        let pairs = Pairs::align(view.columns.get(cell, alone), view.columns.get(cell, together))?;
        let share = pairs.ratio(timer, view.plan().alpha(NAME))?;
        let told = |metric, time| format!("{} is {}", view.named(cell, metric), Unit::Seconds.format(time));
        let (together, alone) = (told(together, all), told(alone, one));
        is_too_short(&share).then(|| {
            format!("{together}, but {alone}: more than the rounds vary, though the same thread does the same in both")
        })
    })
}

/// The verdicts against the baseline, one row for each subject and number of threads.
pub fn experiment_tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let plan = &view.run.plan;
    let Some(first) = view.cells_of(NAME).next() else { return Vec::new() };
    let metrics = plan.metrics(&plan.cells[first]);
    let is_of_one = |metric: &&Metric| metric.weight == Weight::Verdict && !metric.name.ends_with(ALL);
    let kinds: Vec<&str> = metrics.iter().filter(is_of_one).map(|metric| metric.name).collect();
    let (mut rows, mut waits) = (Vec::new(), Vec::new());
    let mut counts = std::collections::BTreeMap::new();
    for (cell, against) in view.beside_baseline(NAME) {
        for (width, suffix, work) in
            [("one", "", "fixed work by one thread"), ("all", ALL, "fixed work by all threads")]
        {
            waits.extend(reason::sentence(view, [cell, against], work, suffix));
            let mut row = vec![Item::Text(view.label(cell).to_owned()), Item::Text(width.into())];
            for kind in &kinds {
                let metric = view.metric_index(cell, &format!("{kind}{suffix}"));
                let of_cell =
                    |one: &&Finding| (one.cell, one.against) == (cell, against) && Some(one.metric) == metric;
                let finding = view.findings.iter().find(of_cell);
                if let Some(finding) = finding {
                    *counts.entry(finding.kind().word()).or_insert(0usize) += 1;
                }
                row.push(finding.map_or(Item::Nothing("not compared".into()), |one| told(view, one)));
            }
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let names = ["subject", "CPUs"].into_iter().chain(kinds.iter().copied());
    let same =
        if counts.contains_key(Kind::Same.word()) { "; `same`: at most so much either way" } else { "" };
    let mut notes = vec![
        format!(
            "difference from the baseline, as a share of it; brackets alone: not decided, it lies between these \
             ends{same}"
        ),
        "`elapsed` is what a user waits for, with limits and others on the CPUs; the other columns are the core's speed in \
         its calmest passes, which no limit changes"
            .to_owned(),
    ];
    notes.extend(view.cells_of(NAME).filter_map(|cell| waited(view, cell)));
    notes.extend(view.cells_of(NAME).filter_map(|cell| lacked(view, cell)));
    let counted = listed(counts.iter().map(|(word, count)| format!("{count} {word}")), ", ");
    let baseline = view.baseline(NAME);
    let title = format!("computing once started, compared with {baseline}");
    vec![ExperimentTable {
        rows,
        notes,
        screen: Screen::All,
        answers: [
            Answer::all("is computing slower?", [format!("compared with {baseline}: {counted}")]),
            Answer::all("who waits?", waits),
        ]
        .concat(),
        ..ExperimentTable::new(NAME, "verdicts", title, names.map(Column::of_texts).collect())
    }]
}

fn told(view: &View<'_>, finding: &Finding) -> Item {
    let Some(difference) = finding.difference else { return Item::Nothing("no data".into()) };
    let baseline = view.median(finding.against, finding.metric);
    let Some(baseline) = baseline.filter(|value| *value > 0.0) else {
        return Item::Text(finding.kind().word().into());
    };
    let share = |value: f64| value / baseline * 100.0;
    let percent = signed(share(difference.value));
    Item::Text(match (&finding.verdict, difference.interval) {
        (Verdict::Same, Some(ends)) => format!("same ±{:.1} %", share(ends.farthest_end())),
        (Verdict::Undecided { .. }, Some(ends)) => {
            format!("[{}, {}] %", signed(share(ends.low)), signed(share(ends.high)))
        }
        _ => format!("{} {percent} %", finding.kind().word()),
    })
}

/// With one decimal, and no sign if it rounds to zero.
fn signed(percent: f64) -> String {
    match format!("{percent:+.1}").as_str() {
        "-0.0" | "+0.0" => "0.0".to_owned(),
        "-inf" => "−∞".to_owned(),
        "+inf" => "+∞".to_owned(),
        text => text.replace('-', "−"),
    }
}

/// In how many rounds a value is missing because too few passes were calm.
fn lacked(view: &View<'_>, cell: usize) -> Option<String> {
    let plan = &view.run.plan;
    let metrics = plan.metrics(&plan.cells[cell]);
    let times = (0..metrics.len()).filter(|&metric| is_of_passes(&metrics[metric]));
    let columns: Vec<_> = times.map(|metric| view.columns.get(cell, metric)).collect();
    let measured = columns.iter().map(|column| column.len()).max()?;
    let is_measured = |round: &usize| {
        metrics.iter().enumerate().any(|(metric, _)| view.columns.get(cell, metric)[*round].is_some())
    };
    let lacks = |round: &usize| columns.iter().any(|column| column[*round].is_none());
    let rounds = (0..measured).filter(|round| is_measured(round) && lacks(round)).count();
    let label = view.label(cell);
    (rounds > 0).then(|| {
        format!(
            "`{label}` lacks a value of some kind in {rounds} of {}: fewer than three passes of it were calm",
            counted(measured, "round")
        )
    })
}

/// What held its threads up, if it is worth a sentence.
fn waited(view: &View<'_>, cell: usize) -> Option<String> {
    let share = view.median(cell, view.metric_index(cell, "waiting")?)?;
    let label = view.label(cell);
    (share > WAITING).then(|| {
        format!(
            "the thread of `{label}` was off its CPU for {:.0} % of the time: others ran there, or a limit held it back; \
             disturbed passes do not count",
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
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY].map(signed), ["+∞", "−∞"]);
    }

    #[test]
    fn rounds_that_differ_by_more_or_are_too_few_show_nothing() {
        assert!(!is_too_short(&share([0.7, 0.75])));
        assert!(!is_too_short(&share((0..11).map(|at| 0.6 + f64::from(at) * 0.05))));
    }
}
