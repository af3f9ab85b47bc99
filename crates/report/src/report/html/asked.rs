//! What a person asked of the run beside its own questions: predictions with what came of them, and what the subjects
//! add to a job of the reader's.

use super::table::{Cell, Head, Line, Medians, Table};
use crate::report::model::{JOB_HOLDS, Job, JobShare, Prediction, Report};
use crate::stats::Estimate;
use crate::units::{Unit, counted};
use crate::verdict::prediction::Came;

/// Predictions, and what came of them.
#[derive(Debug)]
pub(super) struct Predicted {
    /// How many came how.
    pub summary: String,
    pub predictions: Vec<Outcome>,
    /// Every step of every chain in every setting.
    pub steps: Table,
}

/// A prediction in a line.
#[derive(Debug)]
pub(super) struct Outcome {
    pub text: String,
    pub word: &'static str,
    pub tone: &'static str,
    /// What speaks against it, or leaves it open.
    pub because: Vec<String>,
}

/// What a job is, and what is added to it.
#[derive(Debug)]
pub(super) struct JobAdded {
    pub title: String,
    /// When it holds, or why there is nothing.
    pub note: &'static str,
    /// A table an experiment.
    pub tables: Vec<Table>,
}

/// Reasons that stand beside a prediction; all of them stand in the table.
const REASONS: usize = 2;

/// What was predicted; none where nothing was.
pub(super) fn predicted(report: &Report) -> Option<Predicted> {
    let all = &report.predictions;
    let count = |came: Came| all.iter().filter(|one| one.came == came).count();
    let told = [Came::Held, Came::DidNotHold, Came::NotDecided].map(|came| (count(came), came.words()));
    let told: Vec<String> = told
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    (!all.is_empty()).then(|| Predicted {
        summary: format!("{}: {}", counted(all.len(), "prediction"), told.join(", ")),
        predictions: all.iter().map(outcome).collect(),
        steps: steps(all),
    })
}

fn outcome(prediction: &Prediction) -> Outcome {
    // Of what held, nothing more needs to be said; what did not hold comes before what is open.
    let of = |came: Came| prediction.links.iter().filter(move |link| link.came == came);
    let told: Vec<_> = of(Came::DidNotHold).chain(of(Came::NotDecided)).collect();
    let mut because: Vec<String> = told
        .iter()
        .take(REASONS)
        .map(|link| {
            let setting = if link.values.is_empty() { String::new() } else { format!(" ({})", link.values) };
            format!("`{}`{setting} {}: {}", link.text, link.came.words(), link.because)
        })
        .collect();
    if told.len() > REASONS {
        because.push(format!("{} more in the table below", told.len() - REASONS));
    }
    Outcome {
        text: prediction.text.clone(),
        word: prediction.came.words(),
        tone: tone(prediction.came),
        because,
    }
}

/// What came of it, for the eye.
fn tone(came: Came) -> &'static str {
    match came {
        Came::Held => "held",
        Came::DidNotHold => "failed",
        Came::NotDecided => "open",
    }
}

fn steps(predictions: &[Prediction]) -> Table {
    let line = |(prediction, link): (&Prediction, &crate::report::model::PredictedLink)| Line {
        subjects: Vec::new(),
        cells: vec![
            Cell::code(link.text.clone()),
            Cell::text(link.values.clone()),
            Cell { tone: tone(link.came), ..Cell::text(link.came.words()) },
            Cell::text(link.because.replace('`', "")),
            Cell::code(prediction.text.clone()),
        ],
    };
    let links = predictions.iter().flat_map(|one| one.links.iter().map(move |link| (one, link)));
    let heads = ["step", "setting", "outcome", "found", "of the prediction"].map(Head::text);
    Table {
        caption: "Every step of the predictions".into(),
        heads: heads.into(),
        lines: links.map(line).collect(),
        ..Table::default()
    }
}

/// What is added to the reader's job; none where no length was given.
pub(super) fn job(report: &Report) -> Option<JobAdded> {
    let job = report.job.as_ref()?;
    let of_experiments = job.shares.chunk_by(|one, other| one.experiment == other.experiment);
    Some(JobAdded {
        title: format!("What is added to a job of {}", length(job)),
        note: match job.shares.is_empty() {
            true => "Nothing that this run measured happens once in a job.",
            false => JOB_HOLDS,
        },
        tables: of_experiments.map(added).collect(),
    })
}

/// The length of a job as a person would say it.
pub(super) fn length(job: &Job) -> String {
    Unit::Seconds.format(job.length)
}

/// What is added to the job in one experiment: settings beside each other.
fn added(shares: &[JobShare]) -> Table {
    let each = |told: fn(&JobShare) -> &str| {
        let mut all: Vec<&str> = Vec::new();
        shares.iter().map(told).for_each(|one| {
            if !all.contains(&one) {
                all.push(one)
            }
        });
        all
    };
    let (labels, settings) = (each(|one| &one.label), each(|one| &one.values));
    let mut lines: Vec<Line> = labels
        .iter()
        .map(|label| Line { subjects: vec![(*label).to_owned()], cells: vec![Cell::code(*label)] })
        .collect();
    let mut heads = vec![Head::text("subject")];
    for setting in settings {
        let of = |label: &&str| shares.iter().find(|one| one.values == setting && one.label == **label);
        let own: Vec<Option<&JobShare>> = labels.iter().map(of).collect();
        let estimates: Vec<Option<Estimate>> = own.iter().map(|one| one.map(|one| one.share)).collect();
        let medians = Medians::of_estimates(Unit::Share, &estimates);
        let named = if setting.is_empty() { "share" } else { setting };
        heads.extend([Head::number(medians.named(named)), Head::range("interval"), Head::text("verdict")]);
        for ((line, cells), share) in lines.iter_mut().zip(medians.cells).zip(own) {
            line.cells.extend(cells);
            line.cells.push(share.map_or(Cell::default(), |share| Cell::verdict(&share.verdict, share.kind)));
        }
    }
    let first = &shares[0];
    Table {
        caption: format!("For each {} ({}), more than {}", first.occasion, first.experiment, first.against),
        heads,
        lines,
        ..Table::default()
    }
}
