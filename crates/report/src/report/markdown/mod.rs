//! The report for an issue, a wiki, or a comment on a pull request, in GitHub's Markdown: what must not be believed and
//! the answer first, then what each subject takes, what was predicted, and folded away the comparisons, the environment
//! and how to repeat it, so that whoever reads it can judge.
//!
//! Texts from outside are shown as they are and never as markup: see [`crate::document::markdown::escaped`]. A comment may have no more than
//! 65,536 characters; where a run has more to say, the last rows are left out, and it is said how many.

mod around;
mod experiment;
mod published;

use super::model::{Report, Topic};
use super::{Format, Look, Rendering, head};
use crate::document::markdown::{Column, Page, escaped, sentence};
use crate::units::{Unit, counted};

/// The format `md`.
pub struct Markdown;

impl Format for Markdown {
    fn name(&self) -> &'static str {
        "md"
    }

    fn description(&self) -> &'static str {
        "for an issue, a wiki or a comment: the answer, tables, warnings and the environment, in GitHub's Markdown"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Whole(render)
    }
}

/// What GitHub takes in one comment, in characters.
pub const LONGEST: usize = 65_536;

/// The report as Markdown.
pub fn render(report: &Report, look: &Look) -> String {
    let mut limit = LONGEST;
    loop {
        let text = within(report, look, limit);
        let over = text.chars().count().saturating_sub(LONGEST);
        if over == 0 || limit == 0 {
            return text;
        }
        // What follows the tables needs this much.
        limit = limit.saturating_sub(over + 100);
    }
}

/// The report, with rows of tables as long as what stands before them has no more characters than this.
fn within(report: &Report, look: &Look, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit, left_out: 0 };
    begin(&mut page, report);
    doubts(&mut page, report);
    answer(&mut page, report);
    predictions(&mut page, report);
    job(&mut page, report);
    for one in &report.experiments {
        experiment::experiment(&mut page, one);
    }
    published::references(&mut page, report);
    around::failures(&mut page, report);
    around::warnings(&mut page, report);
    for one in &report.experiments {
        experiment::details(&mut page, one);
    }
    let cut = page.left_out;
    page.limit = usize::MAX;
    around::environment(&mut page, report, look);
    if cut > 0 {
        let rows = counted(cut, "row");
        page.paragraph(&format!(
            "_{rows} of tables left out, since a comment has no room for them; the JSON report has all._"
        ));
    }
    page.text
}

/// What was measured on what, and how.
fn begin(page: &mut Page, report: &Report) {
    let names: Vec<&str> = report.experiments.iter().map(|one| one.name).collect();
    page.paragraph(&format!("## dunnage: {}", names.join(", ")));
    page.list([
        format!("on: {}", escaped(&head::machine(report).join(" · "))),
        format!("with: {}", escaped(&head::versions(report).join(" · "))),
        format!("how: {}", escaped(&head::rounds(report))),
        format!(
            "run {} of {}, dunnage {}",
            escaped(&report.run),
            escaped(&report.started.chars().take(19).collect::<String>()),
            escaped(&report.dunnage)
        ),
    ]);
    if let Some(imported) = &report.imported {
        page.list(imported.notes.iter().map(|note| escaped(note)));
    }
}

fn doubts(page: &mut Page, report: &Report) {
    if report.suspects.is_empty() {
        return;
    }
    page.paragraph("### Suspect: do not believe these numbers");
    page.numbered(report.suspects.iter().map(|one| {
        format!("**{}**: {}; probably: {}", one.rule, escaped(&one.evidence), escaped(&one.mechanism))
    }));
}

fn answer(page: &mut Page, report: &Report) {
    page.paragraph("### In short");
    if report.samples == 0 {
        let why = report.failures.first().map_or("no sample was taken", |one| one.reason.as_str());
        return page.paragraph(&format!("Nothing was measured: {}", escaped(why)));
    }
    let exhibits = report.experiments.iter().flat_map(|one| &one.exhibits).flat_map(|one| &one.summary);
    let sentences = report.sentences.iter().filter(|one| one.topic != Topic::Difference);
    page.list(exhibits.map(|text| sentence(text)).chain(sentences.map(|one| sentence(&one.text))));
    if let Some(precision) = &report.precision {
        page.paragraph(&sentence(&precision.sentence));
    }
}

fn predictions(page: &mut Page, report: &Report) {
    if report.predictions.is_empty() {
        return;
    }
    page.paragraph("### Predicted before measuring");
    let rows = report.predictions.iter().flat_map(|one| {
        let whole = vec![escaped(&one.text), format!("**{}**", one.came.words()), String::new()];
        let links = one.links.iter().map(|link| {
            let setting = if link.values.is_empty() { String::new() } else { format!(" ({})", link.values) };
            let text = escaped(&format!("… {}{setting}", link.text));
            vec![text, link.came.words().to_owned(), sentence(&link.because)]
        });
        std::iter::once(whole).chain(links)
    });
    let rows: Vec<_> = rows.collect();
    page.table(&["prediction", "outcome", "found"].map(Column::text), &rows);
}

fn job(page: &mut Page, report: &Report) {
    let Some(job) = &report.job else { return };
    page.paragraph(&format!("### What is added to a job of {}", Unit::Seconds.format(job.length)));
    if job.shares.is_empty() {
        return page.paragraph("Nothing that this run measured happens once in a job.");
    }
    let rows = job.shares.iter().map(|one| {
        let setting = if one.values.is_empty() { String::new() } else { format!(", {}", one.values) };
        vec![
            escaped(&one.label),
            escaped(&format!("{}{setting}", one.occasion)),
            experiment::shown(Unit::Share, &one.share),
            escaped(&one.against),
            one.word.to_owned(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = [
        Column::text("subject"),
        Column::text("for each"),
        Column::number("of the job"),
        Column::text("more than"),
        Column::text("verdict"),
    ];
    page.table(&columns, &rows);
    page.paragraph(super::model::JOB_HOLDS);
}
