//! The report as one page for a browser: a single file that asks the network for nothing, sorts, hides and tells
//! values by a small script of its own, and reads without it.
//!
//! Templates are askama's: they are compiled and checked with the program, so that no parser of templates lies in
//! the executable that is also the probe, and everything that is put into them is escaped unless it says `safe`.
//! Only what this directory holds, and drawings made of numbers and escaped labels, says so. The page's policy
//! allows its own style and script, by their hashes, and nothing else.

mod answer;
mod asked;
mod compared;
mod course;
pub(crate) mod figure;
mod own;
mod published;
mod section;
pub(crate) mod table;

use askama::Template;

use self::answer::Answer;
use self::asked::{JobAdded, Predicted};
use self::published::Source;
use self::section::Section;
use super::model::{Failure, Notice, Program, Report, Suspicion};
use super::{Format, Look, Rendering, head};
use crate::document::html::frame::Frame;
use crate::document::html::prose::prose;
use crate::report::text::capital as question;

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
    /// When it began, for people.
    started: String,
    machine: Vec<String>,
    versions: Vec<String>,
    how: String,
    /// What follows from carry-over tests.
    carry_over: String,
    answer: Option<Answer>,
    predicted: Option<Predicted>,
    job: Option<JobAdded>,
    sections: Vec<Section<'a>>,
    facts: Facts<'a>,
    /// What concerns no experiment by itself, and what is found but not usable stands with it.
    notices: Vec<Warned<'a>>,
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
            started: started(&report.started),
            machine: head::machine(report),
            versions: head::versions(report),
            how: head::rounds(report),
            carry_over: head::carry_over(report),
            answer: answer::answer(report, &labels),
            predicted: asked::predicted(report),
            job: asked::job(report),
            sections: section::sections(report, &labels),
            facts: facts(report),
            notices: warned(report, None),
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

/// A time in UTC to the second; anything else as it is.
fn started(text: &str) -> String {
    match (text.get(..10), text.get(10..11), text.get(11..19), text.ends_with('Z')) {
        (Some(day), Some("T"), Some(time), true) => format!("{day} {time} UTC"),
        _ => text.to_owned(),
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

/// Facts about the machine, by how much room they take.
struct Facts<'a> {
    short: Vec<Fact<'a>>,
    long: Vec<Fact<'a>>,
    /// Of the CPU's weaknesses; there are many.
    mitigations: Vec<Fact<'a>>,
}

/// A name and what it is.
type Fact<'a> = (&'a str, &'a str);

/// What fits into a column beside others, in letters.
const SHORT: usize = 40;

fn facts(report: &Report) -> Facts<'_> {
    let named = |(name, fact): &'_ (String, String)| (name.starts_with("mitigation_"), fact.len() <= SHORT);
    let of = |wanted: fn((bool, bool)) -> bool| {
        let own = report.machine.iter().filter(|fact| wanted(named(fact)));
        own.map(|(name, fact)| (name.strip_prefix("mitigation_").unwrap_or(name), fact.as_str())).collect()
    };
    Facts {
        short: of(|(is_mitigation, is_short)| !is_mitigation && is_short),
        long: of(|(is_mitigation, is_short)| !is_mitigation && !is_short),
        mitigations: of(|(is_mitigation, _)| is_mitigation),
    }
}

/// Warnings of one kind that are met in one way.
#[derive(Debug)]
struct Warned<'a> {
    kind: &'static str,
    remedy: &'a str,
    /// What was seen, each time.
    seen: Vec<&'a str>,
}

/// The warnings about an experiment, or about the run as a whole.
fn warned<'a>(report: &'a Report, experiment: Option<&str>) -> Vec<Warned<'a>> {
    let mut all: Vec<Warned> = Vec::new();
    for Notice { kind, seen, remedy, .. } in report.notices.iter().filter(|one| one.experiment == experiment)
    {
        match all.iter_mut().find(|one| one.kind == *kind && one.remedy == remedy) {
            Some(known) => known.seen.push(seen),
            None => all.push(Warned { kind, remedy, seen: vec![seen] }),
        }
    }
    all
}

/// How often something failed.
fn often(failure: &Failure) -> String {
    format!("{} of {}", failure.times, crate::units::counted(failure.planned, "sample"))
}
