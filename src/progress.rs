//! Shows the progress of a run: a bar with the remaining time on a terminal, plain lines elsewhere, or one JSON object per
//! event for other programs. Drawn by the measuring thread, between launches only, so that nothing runs at the same time.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::record::Row;
use crate::report::text::{clean, escaped, harmless, with_interval};
use crate::runner::Event;
use crate::stats::Sample;
use crate::units::{Nanos, Unit, counted};

/// A run may take so much longer than foretold before that is said.
const WORTH_TELLING: Nanos = Nanos::from_millis(10_000);

/// Where events go.
pub enum Progress {
    /// A bar on a terminal.
    Bar(ProgressBar, Told),
    /// Lines about rounds, at most twenty, and one for each kind of failure.
    Lines {
        /// When the first round began.
        began: std::time::Instant,
        /// The failures reported so far.
        told: Told,
    },
    /// JSON on standard output.
    Json,
    /// Nothing.
    Quiet,
}

/// Failures by subject and message, without words that contain a digit, such as names that differ between launches. Each has
/// the line of its first occurrence, and how often it happened.
#[derive(Debug, Default)]
pub struct Told {
    failures: BTreeMap<String, (String, usize)>,
    /// The first metric by cell, for the cells that the answer will begin with.
    values: BTreeMap<usize, Vec<f64>>,
    /// How often medians were shown.
    shown: u32,
}

/// Seconds after which first medians are shown; then twice as many each time.
const FIRST_MEDIANS: f64 = 60.0;
/// Rounds below which a median says nothing yet, and subjects with a median.
const FEWEST: usize = 3;
const MEDIANS: usize = 8;

impl Progress {
    /// For the user: a bar if standard error is a terminal.
    pub fn for_person(plan: &Plan, done: usize) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress::Lines { began: std::time::Instant::now(), told: Told::default() };
        }
        let cells = plan.samples_before(plan.rounds + plan.warmups) as u64;
        let bar = ProgressBar::with_draw_target(Some(cells), ProgressDrawTarget::stderr_with_hz(4));
        let style =
            ProgressStyle::with_template("{prefix} {bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
        bar.set_position(plan.samples_before(done) as u64);
        bar.reset_eta();
        Progress::Bar(bar, Told::default())
    }

    /// Shows one event.
    pub fn show(&mut self, plan: &Plan, event: &Event<'_>) -> Result<()> {
        match self {
            Progress::Bar(bar, told) => bar_event(bar, told, plan, event),
            Progress::Lines { began, told } => line_event(began, told, plan, event),
            Progress::Json => json_event(plan, event)?,
            Progress::Quiet => {}
        }
        Ok(())
    }

    /// Prints a line that is not about an event, above the bar if there is one.
    pub fn tell(&self, line: String) {
        match self {
            Progress::Bar(bar, _) => bar.println(harmless(&line)),
            _ => drop(writeln!(std::io::stderr(), "{}", harmless(&line))),
        }
    }

    /// Ends the display after the last round, and says how often each reported failure happened.
    pub fn finish(&self) {
        if let Progress::Bar(bar, _) = self {
            bar.finish_and_clear();
        }
        let (Progress::Bar(_, told) | Progress::Lines { told, .. }) = self else { return };
        for (line, times) in told.failures.values().filter(|(_, times)| *times > 1) {
            let _ = writeln!(std::io::stderr(), "{times} times, first in {}", harmless(line));
        }
    }
}

fn round_name(plan: &Plan, round: usize) -> String {
    match round.checked_sub(plan.warmups) {
        None => "warm-up".to_owned(),
        Some(counted) => format!("round {}/{}", counted + 1, plan.rounds),
    }
}

/// Whether to report the end of this round: warm-ups, the last one, and those that complete another twentieth.
fn is_told(plan: &Plan, round: usize) -> bool {
    let twentieths = |rounds: usize| rounds * 20 / plan.rounds.max(1);
    round.checked_sub(plan.warmups).is_none_or(|counted| twentieths(counted + 1) > twentieths(counted))
}

fn cell_name(plan: &Plan, cell: usize) -> String {
    let cell = &plan.cells[cell];
    format!("{} {} {}", cell.experiment, cell.setting, plan.subjects[cell.subject].label)
}

/// A failure, unless a similar one was already reported.
fn failure_of(told: &mut Told, plan: &Plan, row: &Row<'_>) -> Option<String> {
    let Outcome::Failed(failure) = row.outcome.as_ref() else { return None };
    let (round, cell) = (round_name(plan, row.round), cell_name(plan, row.cell));
    let why = clean(&failure.in_short());
    let lasting = why.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
    let key = [plan.subjects[plan.cells[row.cell].subject].label.as_str()].into_iter().chain(lasting);
    let line = format!("{round}: {cell}: {why}");
    let (_, times) =
        told.failures.entry(key.collect::<Vec<_>>().join(" ")).or_insert_with(|| (line.clone(), 0));
    *times += 1;
    (*times == 1).then_some(line)
}

/// Keeps the value of a sample of the cells that the answer will begin with: the first experiment in its first setting.
fn keep(told: &mut Told, plan: &Plan, row: &Row<'_>) {
    let (cell, first) = (&plan.cells[row.cell], &plan.cells[0]);
    let is_first = (cell.experiment, &cell.setting) == (first.experiment, &first.setting);
    let is_counted = row.round >= plan.warmups && is_first && plan.is_original(cell.subject);
    let Outcome::Measured(sample) = row.outcome.as_ref() else { return };
    if let Some(value) = plan.metrics(cell).first().filter(|_| is_counted).and_then(|one| one.value(sample)) {
        told.values.entry(row.cell).or_default().push(value);
    }
}

/// The medians so far, some time after the beginning.
fn so_far(told: &mut Told, plan: &Plan, passed: f64) -> Option<String> {
    let is_due = passed >= FIRST_MEDIANS * f64::from(1u32.checked_shl(told.shown).unwrap_or(u32::MAX));
    let rounds = told.values.values().map(Vec::len).max().unwrap_or(0);
    if !is_due || rounds < FEWEST {
        return None;
    }
    told.shown += 1;
    let cells = told.values.iter().take(MEDIANS);
    let medians = cells.filter_map(|(cell, values)| {
        let unit = plan.metrics(&plan.cells[*cell]).first()?.unit;
        let median = Sample::new(values)?.median();
        Some(format!("{} {}", plan.entry(*cell).label, with_interval(unit, median, None)))
    });
    let medians: Vec<String> = medians.collect();
    Some(clean(&format!("so far, provisional ({}): {}", counted(rounds, "round"), medians.join(", "))))
}

/// How much longer a run takes at its own pace, after a round.
fn left(plan: &Plan, round: usize, passed: f64) -> String {
    let (done, all) = ((round + 1) as f64, (plan.warmups + plan.rounds) as f64);
    let rest = passed / done * (all - done);
    if rest < 1.0 { String::new() } else { format!(", about {} left", Unit::Seconds.format(rest)) }
}

fn bar_event(bar: &ProgressBar, told: &mut Told, plan: &Plan, event: &Event<'_>) {
    match event {
        Event::RoundBegins { round } => bar.set_prefix(round_name(plan, *round)),
        Event::CellBegins { cell, .. } => bar.set_message(clean(&cell_name(plan, *cell))),
        Event::CellEnds(row) => {
            bar.inc(1);
            keep(told, plan, row);
            if let Some(line) = failure_of(told, plan, row) {
                bar.println(harmless(&line));
            }
        }
        Event::RoundEnds { round, .. } => {
            if let Some(line) = foretold(plan, *round, Nanos::from_seconds(bar.elapsed().as_secs_f64())) {
                bar.println(line);
            }
            if let Some(line) = so_far(told, plan, bar.elapsed().as_secs_f64()) {
                bar.println(harmless(&line));
            }
        }
    }
}

/// What the whole run will take by its warm-up, if that is far more than was foretold.
fn foretold(plan: &Plan, round: usize, passed: Nanos) -> Option<String> {
    let predicted = plan.predicted();
    let rounds = (plan.warmups + plan.rounds) as i64;
    let now = Nanos(passed.0 / plan.warmups.max(1) as i64 * rounds);
    let is_far = now.0 > 3 * predicted.0 / 2 && now.0 - predicted.0 > WORTH_TELLING.0;
    (round + 1 == plan.warmups && is_far)
        .then(|| format!("by the warm-up, about {now} in all instead of {predicted}"))
}

fn line_event(began: &std::time::Instant, told: &mut Told, plan: &Plan, event: &Event<'_>) {
    let line = match event {
        Event::CellEnds(row) => {
            keep(told, plan, row);
            failure_of(told, plan, row)
        }
        Event::RoundEnds { round, .. } => {
            let passed = began.elapsed().as_secs_f64();
            let line = || {
                let left = left(plan, *round, passed);
                format!("{} done after {passed:.0} s{left}", round_name(plan, *round))
            };
            let lines = is_told(plan, *round).then(line).into_iter();
            let lines = lines.chain(foretold(plan, *round, Nanos::from_seconds(passed)));
            let lines = lines.chain(so_far(told, plan, passed));
            Some(lines.collect::<Vec<_>>().join("\n")).filter(|lines| !lines.is_empty())
        }
        _ => None,
    };
    if let Some(line) = line {
        // If progress can no longer be written, measuring continues.
        let _ = writeln!(std::io::stderr(), "{}", harmless(&line));
    }
}

fn json_event(plan: &Plan, event: &Event<'_>) -> Result<()> {
    let phase = |round: &usize| if *round < plan.warmups { "warmup" } else { "measure" };
    let of_cell = |event: &str, cell: usize, position: usize| {
        let planned = &plan.cells[cell];
        json!({"event": event, "cell": cell, "position": position, "experiment": planned.experiment,
            "setting": planned.setting.to_string(), "label": plan.subjects[planned.subject].label})
    };
    let line = match event {
        Event::RoundBegins { round } => {
            json!({"event": "round begins", "round": round, "phase": phase(round)})
        }
        Event::CellBegins { cell, position } => of_cell("cell begins", *cell, *position),
        Event::CellEnds(row) => {
            let mut line = of_cell("cell ends", row.cell, row.position);
            line["round"] = json!(row.round);
            line["phase"] = json!(phase(&row.round));
            match row.outcome.as_ref() {
                Outcome::Measured(sample) => {
                    line["outcome"] = json!("measured");
                    let values = plan
                        .metrics(&plan.cells[row.cell])
                        .iter()
                        .filter_map(|metric| Some((metric.name.to_owned(), json!(metric.value(sample)?))));
                    line["values"] = values.collect::<serde_json::Map<_, _>>().into();
                }
                Outcome::Skipped(reason) => {
                    line["outcome"] = json!("skipped");
                    line["reason"] = json!(reason);
                }
                Outcome::Failed(failure) => {
                    line["outcome"] = json!("failed");
                    line["class"] = json!(failure.class.name());
                    line["reason"] = json!(failure.reason);
                    line["words"] = json!(failure.words);
                }
            }
            line
        }
        Event::RoundEnds { round, context } => {
            json!({"event": "round ends", "round": round, "phase": phase(round),
            "disturbed": context.disturbed})
        }
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", escaped(&line.to_string()))?;
    Ok(out.flush()?)
}
