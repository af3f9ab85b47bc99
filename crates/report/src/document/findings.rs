//! What a verb gives to be shown, a document for people and its findings for programs, and how the person wants the
//! document to look.

use serde::Serialize;

use super::Document;

/// How a document for people looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Columns; fewer than 40 count as 40.
    pub width: usize,
    /// Whether colours help.
    pub style: Style,
    /// What drawings are made of.
    pub glyphs: Glyphs,
    /// How much of it a terminal shows.
    pub extent: Extent,
    /// Where what is shown lies, as the person would type it.
    pub place: String,
}

impl Default for Look {
    /// What any pipe can take.
    fn default() -> Look {
        Look {
            width: 80,
            style: Style::Plain,
            glyphs: Glyphs::Unicode,
            extent: Extent::Full,
            place: "DIR".into(),
        }
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

/// How much of a document a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The answer, in a screen.
    #[default]
    Brief,
    /// Everything.
    Full,
}

/// What a verb found: a document for people, and itself for programs.
pub trait Findings {
    /// Name and version of the shape in which programs get it.
    const SCHEMA: &'static str;

    /// What people read.
    fn document(&self, look: &Look) -> Document;

    /// The answer alone, in a screen, and where the rest is; none where the document is no longer than that.
    fn brief(&self, look: &Look) -> Option<Document> {
        let _ = look;
        None
    }

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
