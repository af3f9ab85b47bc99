//! The list of formats that every verb has, and what a verb gives for them: a document for people, and its findings
//! for programs.

use serde::Serialize;

use super::{Document, html, json, markdown, terminal};

/// How a document for people looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Columns; fewer than 80 count as 80.
    pub width: usize,
    /// Whether colours help.
    pub style: Style,
    /// What drawings are made of.
    pub glyphs: Glyphs,
    /// Where what is shown lies, as the person would type it.
    pub place: String,
}

impl Default for Look {
    /// What any pipe can take.
    fn default() -> Look {
        Look { width: 80, style: Style::Plain, glyphs: Glyphs::Unicode, place: "DIR".into() }
    }
}

/// Whether colours help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// Colours beside the words; they never say anything that the words do not.
    Colour,
}

/// What drawings are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Any character.
    Unicode,
    /// Only what every terminal has.
    Ascii,
}

/// What a verb found: a document for people, and itself for programs.
pub trait Findings {
    /// Name and version of the shape in which programs get it.
    const SCHEMA: &'static str;

    /// What people read.
    fn document(&self, look: &Look) -> Document;

    /// What programs read, which is what was found.
    fn data(&self) -> impl Serialize;

    /// The names of formats that only these findings have, such as rows of a table.
    const FURTHER: &'static [&'static str] = &[];

    /// What was found in one of these.
    fn further(&self, format: &str) -> Option<String> {
        let _ = format;
        None
    }
}

/// What was found, in the format with this name; none where there is no such format of it.
pub fn shown<F: Findings>(findings: &F, format: &str, look: &Look) -> Option<String> {
    let common = FORMATS.iter().find(|one| one.name == format);
    common.map(|one| one.render(findings, look)).or_else(|| findings.further(format))
}

/// A format in which every verb can show what it found.
pub struct Format {
    /// Its name after `--format`.
    pub name: &'static str,
    /// What it is, in a line.
    pub description: &'static str,
    /// How it is made.
    render: Render,
}

enum Render {
    /// From the document.
    Document(fn(&Document, &Look) -> String),
    /// From the findings themselves.
    Data,
}

/// Every format that all verbs have, the one for people first.
pub static FORMATS: [Format; 4] = [
    Format {
        name: "terminal",
        description: "what a person reads at a terminal",
        render: Render::Document(terminal::render),
    },
    Format {
        name: "html",
        description: "one page for a browser: the answer in a screen, then everything behind it; one file, no network",
        render: Render::Document(html::render),
    },
    Format {
        name: "md",
        description: "for an issue, a wiki or a comment, in GitHub's Markdown",
        render: Render::Document(markdown::render),
    },
    Format {
        name: "json",
        description: "everything that was found, with its numbers, for other programs",
        render: Render::Data,
    },
];

impl Format {
    /// What was found, in this format.
    pub fn render<F: Findings>(&self, findings: &F, look: &Look) -> String {
        match self.render {
            Render::Document(render) => render(&findings.document(look), look),
            Render::Data => json::render(findings),
        }
    }
}
