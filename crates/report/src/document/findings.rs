//! What a verb has to show: a document for people and findings for programs; and how the document should look.

use serde::Serialize;

use super::Document;

/// How a document should look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Columns; fewer than 40 count as 40.
    pub width: usize,
    /// Whether to use colours.
    pub style: Style,
    /// The characters to draw with.
    pub glyphs: Glyphs,
    /// How much of it a terminal shows.
    pub extent: Extent,
    /// The path of what is shown, as the user would type it.
    pub place: String,
}

impl Default for Look {
    /// A look that suits any pipe.
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

/// Whether to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    Plain,
    /// Colours, which never say more than the words.
    Colour,
}

/// The characters to draw with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Any character.
    Unicode,
    /// ASCII only.
    Ascii,
}

/// How much of a document a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The answer, on one screen.
    #[default]
    Brief,
    /// Everything.
    Full,
}

/// The findings of a verb: a document for people, and data for programs.
pub trait Findings {
    /// The name and version of their JSON schema.
    const SCHEMA: &'static str;

    /// The document for people.
    fn document(&self, look: &Look) -> Document;

    /// The answer alone, on one screen, with a pointer to the rest; none if the document is no longer than that.
    fn brief(&self, _: &Look) -> Option<Document> {
        None
    }

    /// The data for programs.
    fn data(&self) -> impl Serialize;

    /// The names of formats that only these findings have, such as `csv`.
    const FURTHER: &'static [&'static str] = &[];

    /// The findings in one of these formats.
    fn further(&self, _: &str) -> Option<String> {
        None
    }
}
