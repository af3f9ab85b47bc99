//! Reports: what a run showed, for people, tables and other programs. One model in words and
//! numbers; every format renders it, JSON holds it as it is, and none decides anything.
//!
//! Pure functions of what was recorded: no clock, file, process or engine, and nothing is printed
//! here; whoever calls writes the text where it belongs.

pub mod csv;
mod document;
pub mod gobench;
pub mod head;
pub mod model;
pub mod picture;
pub mod png;
pub mod ranking;
pub mod svg;
pub mod text;

pub use crate::document::{Glyphs, Look, Style};
use serde::Serialize;

use crate::document::{Document, FORMATS as EVERYWHERE, Findings};
pub use model::Report;

use crate::record::{Recorded, Row};

/// One way to show a run.
pub trait Format: Sync {
    /// Its name after `--format`.
    fn name(&self) -> &'static str;
    /// What it is, in a line.
    fn description(&self) -> &'static str;
    /// How it is made.
    fn rendering(&self) -> Rendering;
}

/// How a format is made: from the analysis as a whole, or sample by sample, since a run can have
/// more samples than fit into memory as text.
pub enum Rendering {
    /// As every verb is shown in it.
    Common(&'static crate::document::Format),
    /// Files for a directory, each with its name and what it holds.
    Files(fn(&Report, &Look) -> anyhow::Result<Vec<File>>),
    /// A first line, then what each sample gives.
    Rows {
        /// The first line.
        header: fn(&Recorded) -> String,
        /// Appends the lines of one sample.
        lines: fn(&Recorded, &Row<'_>, &mut String),
    },
}

/// A file of a format that makes several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a directory.
    pub name: String,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// A format that every verb has.
struct Shown(&'static crate::document::Format);

impl Format for Shown {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn description(&self) -> &'static str {
        self.0.description
    }

    fn rendering(&self) -> Rendering {
        Rendering::Common(self.0)
    }
}

impl Findings for Report {
    const SCHEMA: &'static str = "dunnage-report/2";

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, look: &Look) -> Document {
        document::document(self, look)
    }
}

/// Every format there is, the one for people first.
pub static FORMATS: &[&dyn Format] = &[
    &Shown(&EVERYWHERE[0]),
    &Shown(&EVERYWHERE[1]),
    &Shown(&EVERYWHERE[2]),
    &csv::Csv,
    &gobench::Gobench,
    &Shown(&EVERYWHERE[3]),
    &svg::Svg,
    &png::Png,
];

/// The format with this name.
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}
