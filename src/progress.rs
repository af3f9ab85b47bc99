//! Shows a run to the person who waits: a bar with the remaining time on a terminal, plain lines
//! elsewhere, or one JSON object an event for other programs. Drawn between launches only, by the
//! thread that measures, so that nothing runs beside them.

use std::io::{IsTerminal, Write};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::record::Row;
use crate::report::text::clean;
use crate::runner::Event;

/// Where events go.
pub enum Progress {
    /// A bar on a terminal.
    Bar(ProgressBar),
    /// A line a round, and one for each failure.
    Lines {
        /// When the first round began.
        began: std::time::Instant,
    },
    /// JSON on standard output.
    Json,
    /// Nothing.
    Quiet,
}

impl Progress {
    /// For a person: a bar if standard error is a terminal.
    pub fn for_person(plan: &Plan, done: usize) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress::Lines { began: std::time::Instant::now() };
        }
        let cells = plan.samples_before(plan.rounds + plan.warmups) as u64;
        let bar = ProgressBar::with_draw_target(Some(cells), ProgressDrawTarget::stderr_with_hz(4));
        let style =
            ProgressStyle::with_template("{prefix} {bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
        bar.set_position(plan.samples_before(done) as u64);
        bar.reset_eta();
        Progress::Bar(bar)
    }

    /// Shows one event.
    pub fn show(&mut self, plan: &Plan, event: &Event<'_>) -> Result<()> {
        match self {
            Progress::Bar(bar) => bar_event(bar, plan, event),
            Progress::Lines { began } => line_event(began, plan, event),
            Progress::Json => json_event(plan, event)?,
            Progress::Quiet => {}
        }
        Ok(())
    }

    /// The last round is over.
    pub fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn round_name(plan: &Plan, round: usize) -> String {
    match round.checked_sub(plan.warmups) {
        None => "warm-up".to_owned(),
        Some(counted) => format!("round {}/{}", counted + 1, plan.rounds),
    }
}

fn cell_name(plan: &Plan, cell: usize) -> String {
    let cell = &plan.cells[cell];
    format!("{} {} {}", cell.experiment, cell.setting, plan.subjects[cell.subject].label)
}

fn failure_of(plan: &Plan, row: &Row<'_>) -> Option<String> {
    let Outcome::Failed(failure) = row.outcome.as_ref() else { return None };
    let (round, cell) = (round_name(plan, row.round), cell_name(plan, row.cell));
    Some(format!("{round}: {cell}: {}", clean(&failure.in_short())))
}

fn bar_event(bar: &ProgressBar, plan: &Plan, event: &Event<'_>) {
    match event {
        Event::RoundBegins { round } => bar.set_prefix(round_name(plan, *round)),
        Event::CellBegins { cell, .. } => bar.set_message(cell_name(plan, *cell)),
        Event::CellEnds(row) => {
            bar.inc(1);
            if let Some(line) = failure_of(plan, row) {
                bar.println(line);
            }
        }
        Event::RoundEnds { .. } => {}
    }
}

fn line_event(began: &std::time::Instant, plan: &Plan, event: &Event<'_>) {
    let line = match event {
        Event::CellEnds(row) => failure_of(plan, row),
        Event::RoundEnds { round, .. } => {
            let passed = began.elapsed().as_secs_f64();
            Some(format!("{} done after {passed:.0} s", round_name(plan, *round)))
        }
        _ => None,
    };
    if let Some(line) = line {
        // Talk that nobody can hear any more is no reason to stop measuring.
        let _ = writeln!(std::io::stderr(), "{line}");
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
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
