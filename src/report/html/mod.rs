//! The report as one page for a browser: a single file that asks the network for nothing, sorts, hides and tells
//! values by a small script of its own, and reads without it.
//!
//! Templates are askama's: they are compiled and checked with the program, so that no parser of templates lies in
//! the executable that is also the probe, and everything that is put into them is escaped unless it says `safe`.
//! Only what this directory holds, and drawings made of numbers and escaped labels, says so. The page's policy
//! allows its own style and script, by their hashes, and nothing else.

mod answer;
mod compared;
mod course;
pub(crate) mod figure;
pub(crate) mod frame;
mod own;
pub(crate) mod prose;
mod published;
mod section;
pub(crate) mod table;

use askama::Template;

use self::answer::Answer;
use self::frame::Frame;
use self::prose::{prose, question};
use self::published::Source;
use self::section::Section;
use super::model::{Failure, Notice, Program, Report, Suspicion};
use super::{Format, Look, Rendering, head};

/// The format `html`.
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn description(&self) -> &'static str {
        "one page for a browser: the answer in a screen, then everything behind it; one file, no network"
    }

    fn rendering(&self) -> Rendering {
        Rendering::Whole(render)
    }
}

/// The report as a page.
pub fn render(report: &Report, look: &Look) -> String {
    Page::of(report, look).render().expect("a string takes any text")
}

/// All that the page shows.
#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    frame: Frame,
    report: &'a Report,
    machine: Vec<String>,
    versions: Vec<String>,
    how: String,
    /// What follows from carry-over tests.
    carry_over: String,
    answer: Option<Answer>,
    sections: Vec<Section<'a>>,
    /// What concerns no experiment by itself, and what is found but not usable stands with it.
    notices: Vec<&'a Notice>,
    sources: Vec<Source<'a>>,
    place: String,
    repeat: Vec<String>,
}

impl<'a> Page<'a> {
    fn of(report: &'a Report, look: &Look) -> Page<'a> {
        let names: Vec<_> = report.experiments.iter().map(|one| one.name).collect();
        let labels = labels(report);
        let title = format!("{} on {}", names.join(", "), report.host);
        Page {
            machine: head::machine(report),
            versions: head::versions(report),
            how: head::rounds(report),
            carry_over: head::carry_over(report),
            answer: answer::answer(report, &labels),
            sections: section::sections(report, &labels),
            notices: report.notices.iter().filter(|notice| notice.experiment.is_none()).collect(),
            sources: published::sources(&report.references),
            place: super::text::clean(&look.place),
            repeat: head::repeat(report),
            frame: Frame::of(title, &report.dunnage, labels),
            report,
        }
    }

    /// Programs with the first digits of their hashes.
    fn programs(&self) -> impl Iterator<Item = (&'a Program, &'a str)> {
        let short = |program: &'a Program| (program, program.sha256.get(..12).unwrap_or(&program.sha256));
        self.report.programs.iter().map(short)
    }
}

/// The subjects of all experiments, each once.
fn labels(report: &Report) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (_, _, row) in report.experiments.iter().flat_map(|one| one.rows()) {
        if !labels.contains(&row.label) {
            labels.push(row.label.clone());
        }
    }
    labels
}

/// A suspect as the page tells it, counted from 1.
#[derive(Debug)]
struct Suspected<'a> {
    number: usize,
    suspicion: &'a Suspicion,
}

fn suspected(report: &Report) -> impl Iterator<Item = Suspected<'_>> {
    let counted = report.suspects.iter().enumerate();
    counted.map(|(index, suspicion)| Suspected { number: index + 1, suspicion })
}

/// How often something failed.
fn often(failure: &Failure) -> String {
    format!("{} of {}", failure.times, crate::units::counted(failure.planned, "sample"))
}
