//! Reports: what a run showed, for people, tables and other programs. There is one model in words and numbers, which
//! every format renders and JSON contains unchanged. Formats decide nothing.
//!
//! Pure functions of what was recorded: no clock, file, process or engine. Nothing is printed here; the caller writes
//! the text.

pub mod csv;
mod document;
pub mod gobench;
pub mod head;
pub mod model;
pub mod picture;
pub mod predicted;
pub mod ranking;
pub mod series;
pub mod summary;
pub(crate) mod words;

pub use crate::document::{Extent, Glyphs, Look, Style};
pub use dunnage_analysis::text;
use serde::Serialize;

use crate::document::{Document, Findings};
pub use model::Report;

use crate::record::{Recorded, Row};

/// A format that only runs have.
pub struct Format {
    /// Its name after `--format`.
    pub name: &'static str,
    /// One line of description.
    pub description: &'static str,
    /// How to render it.
    pub rendering: Rendering,
}

/// How a format is rendered: from the whole analysis, or sample by sample, since the samples of a run may not fit
/// into memory as text.
pub enum Rendering {
    /// One text.
    Text(fn(&Report) -> String),
    /// Files for a directory.
    Files(fn(&Report) -> anyhow::Result<Vec<File>>),
    /// A first line, then the lines of each sample.
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
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The formats of a run, in addition to those of every verb.
pub static FORMATS: [Format; 7] = [
    Format {
        name: "csv",
        description: "one line per sample and metric, in base units with full precision",
        rendering: Rendering::Rows { header: csv::header, lines: csv::lines },
    },
    Format {
        name: "gobench",
        description: "one line per round and cell as Go's benchmarks print them, for benchstat",
        rendering: Rendering::Rows { header: gobench::header, lines: gobench::lines },
    },
    Format {
        name: "openmetrics",
        description: "medians with their intervals as gauges, for Prometheus and node exporter's textfile collector",
        rendering: Rendering::Text(series::openmetrics),
    },
    Format {
        name: "bmf",
        description: "medians with their intervals in Bencher Metric Format",
        rendering: Rendering::Text(series::bmf),
    },
    Format {
        name: "github-benchmark",
        description: "medians with their intervals as github-action-benchmark's `customSmallerIsBetter`",
        rendering: Rendering::Text(series::github_benchmark),
    },
    Format {
        name: "svg",
        description: "a directory of pictures, light or dark as the viewer prefers, each with a text and its data",
        rendering: Rendering::Files(picture::svg_files),
    },
    Format {
        name: "png",
        description: "a directory of pictures in two sizes, each with a text and its data",
        rendering: Rendering::Files(picture::png_files),
    },
];

impl Findings for Report {
    const SCHEMA: &'static str = "dunnage-report/4";
    const FURTHER: &'static [&'static str] =
        &["csv", "gobench", "openmetrics", "bmf", "github-benchmark", "svg", "png"];

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, look: &Look) -> Document {
        match self.opened {
            Some(number) => document::opened(self, number),
            None => document::document(self, look),
        }
    }

    fn brief(&self, look: &Look) -> Option<Document> {
        self.opened.is_none().then(|| document::brief(self, look))
    }
}
