//! `dunnage run`: finds the subjects, makes the plan, measures, and shows what came out.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{report, request};
use crate::cli::{self, Events};
use crate::exit::{self, Special};
use crate::plan::{Plan, Rounds};
use crate::progress::Progress;
use crate::record::{self, Writer};
use crate::runner::{self, Ending, Event};
use crate::session::{self, Candidate, Found};
use crate::subject::{Stage, Subject};
use crate::sys::clock;
use crate::units::Nanos;

/// Runs the verb.
pub fn run(options: &cli::Run) -> Result<i32> {
    let asked = request::asked(&options.selection)?;
    let directory = options.output.clone().unwrap_or_else(named_after_the_date);
    record::check_empty(&directory)?;
    let mut stage = session::begin(asked.seed, &mut super::tell)?;
    stage.allowed = asked.allowed;
    let mut found = session::find(asked.subjects.clone(), &mut stage, &mut super::tell)?;
    for (name, why) in &found.unavailable {
        super::tell(&format!("not available: {name}: {}", why.reason.trim()));
        if let Some(remedy) = &why.remedy {
            super::tell(&format!("       remedy: {remedy}"));
        }
    }
    let (plan, left_out) = match request::plan(&asked, &found) {
        Ok(planned) => planned,
        Err(error) => {
            session::finish(found.candidates, &mut stage);
            session::end(stage);
            return Err(error);
        }
    };
    if !left_out.is_empty() {
        super::tell(&format!("left out, since a minute would not be enough: {}", left_out.join(", ")));
        leave_out(&mut found, &left_out, &mut stage);
    }
    super::tell(&format!(
        "{} cells, {} rounds and {} to warm up: about {} (results in `{}`)",
        plan.cells.len(),
        plan.rounds,
        plan.warmups,
        plan.predicted(),
        directory.display()
    ));
    let promised = if asked.quick { Nanos::from_millis(60_000) } else { Nanos::from_millis(300_000) };
    if matches!(asked.rounds, Rounds::Fit(_)) && plan.predicted() > promised {
        super::tell(&format!(
            "this takes longer than {promised}: verdicts on this many subjects need {} rounds; name fewer with `-s`, or one setting with `--set`",
            plan.rounds_for_verdicts()
        ));
    }
    let mut environment = session::environment(&stage, &found);
    environment.tags = asked.tags.iter().cloned().collect();
    let run = stage.run.clone();
    let mut writer = match record::create(&directory, &run, &environment, &plan) {
        Ok(writer) => writer,
        Err(error) => {
            session::finish(found.candidates, &mut stage);
            session::end(stage);
            return Err(error);
        }
    };
    let progress = match options.events {
        Some(Events::Json) => Progress::Json,
        None => Progress::for_person(&plan, 0),
    };
    let began = clock::now();
    let ending = measure(&plan, 0, found.candidates, &mut stage, &mut writer, progress);
    if matches!(ending, Ok(Ending::Complete)) {
        let took = clock::now().since(began);
        super::tell(&format!("measured for {took}; {} were predicted", plan.predicted()));
    }
    session::end(stage);
    conclude(ending, &directory, options.events)
}

fn named_after_the_date() -> PathBuf {
    let now = jiff::Timestamp::now().to_string();
    let digits: String = now.chars().take(19).map(|c| if c == ':' { '-' } else { c }).collect();
    PathBuf::from(format!("dunnage-{digits}"))
}

fn leave_out(found: &mut Found, labels: &[String], stage: &mut Stage) {
    let all = std::mem::take(&mut found.candidates);
    let (dropped, kept): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| labels.contains(&one.entry.label));
    session::finish(dropped, stage);
    found.candidates = kept;
}

/// Carries out the plan from round `first` on, writing every sample down. The subjects are
/// finished when this returns, whatever it returns.
pub(super) fn measure(
    plan: &Plan,
    first: usize,
    candidates: Vec<Candidate>,
    stage: &mut Stage,
    writer: &mut Writer,
    mut progress: Progress,
) -> Result<Ending> {
    let mut subjects: Vec<Box<dyn Subject>> = candidates.into_iter().map(|one| one.subject).collect();
    let ending = (|| {
        for entry in plan.subjects.iter().filter(|entry| entry.twin_of.is_some()) {
            subjects.push(session::twin(entry, stage)?);
        }
        let mut context = session::round_context();
        runner::run(plan, first, &mut subjects, stage, &mut context, &mut |event| {
            match event {
                Event::RoundBegins { round } => writer.begin_round(*round)?,
                Event::CellEnds(row) => writer.sample(row)?,
                Event::RoundEnds { round, context } => writer.end_round(*round, context)?,
                Event::CellBegins { .. } => {}
            }
            progress.show(plan, event)
        })
    })();
    progress.finish();
    for mut subject in subjects {
        subject.finish(stage);
    }
    ending
}

/// Shows what came out of a run, and says how it ended.
pub(super) fn conclude(ending: Result<Ending>, directory: &Path, events: Option<Events>) -> Result<i32> {
    let ending = ending.with_context(|| {
        let directory = directory.display();
        format!("the run stopped; what was measured before is in `{directory}`\n\nhint: with the cause mended, `dunnage resume {directory}` goes on")
    });
    let code = match &ending {
        Ok(Ending::Complete) => exit::FINE,
        Ok(Ending::Interrupted) => exit::INTERRUPTED,
        Err(error) if matches!(error.downcast_ref(), Some(Special::Interrupted)) => exit::INTERRUPTED,
        // Whoever read the events has seen enough, which ends the run as Ctrl-C would.
        Err(error) if super::is_closed_pipe(error) => exit::INTERRUPTED,
        Err(_) => exit::ERROR,
    };
    if code == exit::INTERRUPTED {
        super::tell(&format!(
            "interrupted; the samples are kept, and `dunnage resume {}` goes on",
            directory.display()
        ));
    } else {
        ending?;
    }
    if events.is_none() {
        let measured = report::run(directory, "terminal", None)?;
        return Ok(if code == exit::FINE { measured } else { code });
    }
    Ok(code)
}
