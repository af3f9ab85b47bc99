//! What the user asked beyond the questions of the experiments: the outcome of predictions, what the findings mean
//! for kinds of jobs, and what the subjects add to a job of a given length.

use super::compared::{decided, of_subjects};
use crate::distinct;
use crate::document::{Block, Cell, Column, Item, Table, Tone};
use crate::report::model::{Experiment, JOB_HOLDS, Job, JobShare, Report};
use crate::report::predicted::{Came, PredictedLink, Prediction};
use crate::report::text::{in_brackets, listed};
use crate::stats::Estimate;
use crate::units::{Unit, counted};
use crate::verdict::Finding;

/// Reasons shown with a prediction; the table has all of them.
const REASONS: usize = 2;

/// The predictions and their outcomes; nothing without predictions.
pub(super) fn predicted(report: &Report) -> Vec<Block> {
    let all = &report.predictions;
    if all.is_empty() {
        return Vec::new();
    }
    let count = |came: Came| all.iter().filter(|one| one.came == came).count();
    let told = [Came::Held, Came::DidNotHold, Came::NotDecided].map(|came| (count(came), came.words()));
    let told = told.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    let told = format!("{}: {}", counted(all.len(), "prediction"), listed(told, ", "));
    vec![
        Block::title(format!("Predicted before measuring ({told})")),
        Block::List(all.iter().map(|one| outcome(one, REASONS)).collect()),
        Block::folded("Every step and its outcome", vec![Block::Table(steps(all))]),
    ]
}

/// The outcome of a prediction, with so many reasons.
pub(super) fn outcome(prediction: &Prediction, reasons: usize) -> Item {
    // Links that held need no reason; those that did not hold come before undecided ones.
    let of = |came: Came| prediction.links.iter().filter(move |link| link.came == came);
    let told: Vec<&PredictedLink> = of(Came::DidNotHold).chain(of(Came::NotDecided)).collect();
    let item =
        Item::of(format!("`{}`", prediction.text)).marked(tone(prediction.came), prediction.came.words());
    let item = told.iter().take(reasons).fold(item, |item, link| {
        let setting = in_brackets(&link.values);
        item.detail(format!("`{}`{setting} {}: {}", link.text, link.came.words(), link.because))
    });
    match told.len().saturating_sub(reasons) {
        _ if reasons == 0 => item,
        0 => item,
        more => item.detail(format!("{more} more in the table below")),
    }
}

/// The tone of an outcome.
fn tone(came: Came) -> Tone {
    match came {
        Came::Held => Tone::Good,
        Came::DidNotHold => Tone::Bad,
        Came::NotDecided => Tone::Open,
    }
}

fn steps(predictions: &[Prediction]) -> Table {
    let columns = ["step", "setting", "outcome", "finding", "prediction"].map(Column::words);
    let mut table = Table::of("Every step of the predictions", columns.into());
    for (prediction, link) in predictions.iter().flat_map(|one| one.links.iter().map(move |link| (one, link)))
    {
        let cells = vec![
            Cell::code(&link.text),
            Cell::words(&link.values),
            Cell::words(link.came.words()).tone(tone(link.came)),
            Cell::words(link.because.replace('`', "")),
            Cell::code(&prediction.text),
        ];
        table.row(&[], cells);
    }
    table
}

/// What decided findings mean for kinds of jobs; nothing if nothing is decided.
pub(super) fn meanings(report: &Report) -> Block {
    let columns = ["kind of job", "risk", "when it matters", "what helps"].map(Column::words);
    let mut table = Table::of("What this means", columns.into());
    for one in &report.meanings {
        let words = [one.job, &one.risk, &one.condition, one.remedy];
        table.row(&[], words.map(Cell::words).into());
    }
    Block::Table(table)
}

/// Why a job of a given length has no shares.
const NO_SHARES: &str = "This run compares no subjects by something that happens once per job.";

/// Why the first screen does not show the shares of a job whose length was given.
pub(super) fn not_shown(job: &Job, lead: Option<&Experiment>) -> Option<Item> {
    let is_shown = |share: &JobShare| lead.is_some_and(|lead| lead.name == share.finding.about.experiment);
    let why = if job.shares.is_empty() { NO_SHARES } else { "`--full` shows what is added to the job." };
    let text = why.trim_end_matches('.');
    (!job.shares.iter().any(is_shown)).then(|| Item::of(text).named("--job"))
}

/// What the subjects add to the user's job; nothing without a length.
pub(super) fn job(report: &Report) -> Vec<Block> {
    let Some(job) = &report.job else { return Vec::new() };
    let title = Block::title(format!("Added to a job of {}", Unit::Seconds.format(job.length)));
    if job.shares.is_empty() {
        return vec![title, Block::words(NO_SHARES)];
    }
    let of_experiments =
        job.shares.chunk_by(|one, other| one.finding.about.experiment == other.finding.about.experiment);
    let tables = of_experiments.filter_map(|shares| Some(Block::Table(added(report, shares)?)));
    vec![title, Block::Beside(tables.collect()), Block::note(JOB_HOLDS)]
}

/// What is added to the job in one experiment, with a column for each setting.
fn added(report: &Report, shares: &[JobShare]) -> Option<Table> {
    let labels = distinct(shares.iter().map(|one| one.finding.about.subject.as_str()));
    let settings = distinct(shares.iter().map(|one| one.finding.about.setting.as_str()));
    let JobShare { event, finding: Finding { about, .. }, .. } = shares.first()?;
    let experiment = report.experiments.iter().find(|one| one.name == about.experiment)?;
    let title = format!("For each {event} ({}), compared with {}", about.experiment, about.against);
    let mut table = of_subjects(title, labels.iter().copied());
    for setting in settings {
        let of = |label: &&str| {
            let is_it = |one: &&JobShare| {
                one.finding.about.setting == setting && one.finding.about.subject == **label
            };
            shares.iter().find(is_it)
        };
        let own: Vec<Option<&JobShare>> = labels.iter().map(of).collect();
        let estimates: Vec<Option<Estimate>> = own.iter().map(|one| one.map(|one| one.share)).collect();
        let head = if setting.is_empty() { "share" } else { experiment.values_of(setting) };
        table.add(Column::measured(head, Unit::Share, &estimates));
        let cells = own.iter().map(|share| share.map_or(Cell::default(), |share| decided(&share.finding)));
        table.add((Column::words("verdict"), cells.collect()));
    }
    Some(table)
}
