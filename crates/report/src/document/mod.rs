//! What a verb says, as one document for all formats: titles, paragraphs, facts, lists, tables, pictures, lines to
//! copy, and parts that are folded where a format can fold. Plain data; the renderer of each format turns it into
//! text without knowing its subject.
//!
//! **A new verb** needs a builder: a function from its findings to a [`Document`]. The answer goes into
//! [`Document::answer`], everything else into [`Document::sections`], the most important first. Suspects go into
//! [`Document::alarms`], which every format shows first. Findings become cells through [`Cell`]'s constructors, so
//! that a number never travels without its unit and interval: [`Column::measured`] brings a whole column of
//! estimates to one unit. Then [`Findings`] joins the builder with the findings themselves, which JSON contains:
//! they derive `Serialize`. A terminal first shows a smaller document of the same findings, [`Findings::brief`],
//! which [`fitted`] keeps to one screen.
//!
//! **A new format** needs a renderer, which is a function of a document, and a line in [`FORMATS`].
//!
//! Texts come in plain, with code between backticks. The constructors here remove everything that could fool a
//! terminal, and each renderer escapes for its own format. Deliberately absent: decisions.

pub(crate) mod axis;
mod findings;
mod format;
pub(crate) mod html;
pub(crate) mod json;
pub mod markdown;
pub(crate) mod page;
mod rounds;
mod screen;
mod table;
pub mod terminal;

pub use findings::{Extent, Findings, Glyphs, Look, Style};
pub use format::{FORMATS, Format, csv, shown};
pub use rounds::{Drawing, Rounds};
pub use screen::{SCREEN, TALL, fitted, in_a_line, lines};
pub use table::{Cell, Cells, Column, Drawn, Measured, Need, Row, Table};

use crate::report::picture::Picture;
use crate::report::text::clean;
use crate::verdict::Kind;

/// What people read.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// Short texts next to the title: a version, a run, a time.
    pub about: Vec<String>,
    /// The head: names, each with a text.
    pub head: Vec<(String, String)>,
    /// Suspects, counted from 1, as cells and texts refer to them.
    pub alarms: Vec<Item>,
    /// The answer.
    pub answer: Vec<Block>,
    /// Everything else.
    pub sections: Vec<Section>,
    /// The subjects that a page lets its reader hide.
    pub subjects: Vec<String>,
}

/// A part with a title.
#[derive(Debug, Clone)]
pub struct Section {
    /// A word for it, used as its anchor.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its contents.
    pub blocks: Vec<Block>,
}

/// An element of a document.
#[derive(Debug, Clone)]
pub enum Block {
    /// The title of the following blocks.
    Title(String),
    /// A paragraph.
    Words(Tone, String),
    /// Names with their texts.
    Facts(Vec<(String, String)>),
    /// A list of points.
    List(Vec<Item>),
    /// A table.
    Table(Table),
    /// Lines to copy into a shell or a file.
    Copy(Vec<String>),
    /// A picture, if the format can show one; words and tables say the same.
    Picture(Box<Picture>),
    /// Raw rounds over time, if the format can show them.
    Rounds(Rounds),
    /// Blocks shown side by side, if there is room.
    Beside(Vec<Block>),
    /// Blocks that are folded if the format can fold.
    Folded(Folded),
}

/// Folded blocks.
#[derive(Debug, Clone)]
pub struct Folded {
    /// Their title.
    pub title: String,
    /// Which formats show them.
    pub shown: Shown,
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// Which formats show folded blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// All of them.
    Everywhere,
    /// Those that can fold it away.
    WhereFolded,
}

/// A point of a list.
#[derive(Debug, Clone, Default)]
pub struct Item {
    /// The tone of its mark.
    pub tone: Tone,
    /// A word before it: a state, an outcome.
    pub mark: String,
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Details below the text.
    pub details: Vec<Detail>,
    /// The subject with which a page hides it.
    pub subject: Option<String>,
}

/// A detail below a point.
#[derive(Debug, Clone)]
pub enum Detail {
    /// Words.
    Words(String),
    /// A line to copy, after a word that names it.
    Copy(&'static str, String),
}

/// The visual emphasis of a text, in addition to its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// Emphasised.
    Strong,
    /// Secondary.
    Faint,
    /// A difference for the worse.
    Worse,
    /// A difference for the better.
    Better,
    /// No difference that matters.
    Same,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Undecided, or a warning.
    Open,
    /// Suspect, or broken.
    Alarm,
}

impl Tone {
    /// The tone of a verdict.
    pub fn of(kind: Kind) -> Tone {
        match kind {
            Kind::Slower | Kind::Worse => Tone::Worse,
            Kind::Faster | Kind::Better => Tone::Better,
            Kind::More | Kind::Less => Tone::Strong,
            Kind::Same => Tone::Same,
            Kind::Machine | Kind::Mixed | Kind::Undecided | Kind::TooFew | Kind::NoData => Tone::Open,
            Kind::Suspect => Tone::Alarm,
            Kind::Context => Tone::Faint,
        }
    }
}

impl Document {
    /// A document with this title.
    pub fn titled(title: &str) -> Document {
        Document { title: clean(title), ..Document::default() }
    }

    /// Adds a line to the head, unless it is empty.
    pub fn fact(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.head.push((clean(name), clean(text)));
        }
    }

    /// This document, led by the answer of another one.
    fn led_by(mut self, brief: Document) -> Document {
        let at_length = std::mem::replace(&mut self.answer, brief.answer);
        self.sections.insert(0, Section::of("Details", at_length));
        self
    }
}

impl Section {
    /// A section whose title is also its anchor.
    pub fn of(title: &str, blocks: Vec<Block>) -> Section {
        Section { name: clean(title), title: clean(title), blocks }
    }
}

impl Block {
    /// The title of the following blocks.
    pub fn title(text: impl AsRef<str>) -> Block {
        Block::Title(clean(text.as_ref()))
    }

    /// A title with its blocks; nothing if they are empty.
    pub fn titled(title: impl AsRef<str>, blocks: Vec<Block>) -> Vec<Block> {
        match blocks.iter().all(Block::is_empty) {
            true => Vec::new(),
            false => [Block::title(title)].into_iter().chain(blocks).collect(),
        }
    }

    /// A paragraph.
    pub fn words(text: impl AsRef<str>) -> Block {
        Block::Words(Tone::Plain, clean(text.as_ref()))
    }

    /// A paragraph that explains the block above.
    pub fn note(text: impl AsRef<str>) -> Block {
        Block::Words(Tone::Faint, clean(text.as_ref()))
    }

    /// A list of sentences.
    pub fn sentences<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> Block {
        Block::List(all.into_iter().map(|text| Item::of(text.as_ref())).collect())
    }

    /// Names with their texts.
    pub fn facts<T: AsRef<str>>(all: impl IntoIterator<Item = (T, T)>) -> Block {
        Block::Facts(
            all.into_iter().map(|(name, text)| (clean(name.as_ref()), clean(text.as_ref()))).collect(),
        )
    }

    /// Lines to copy.
    pub fn copy<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Block {
        Block::Copy(lines.into_iter().map(|line| copied(line.as_ref())).collect())
    }

    /// Blocks that are folded where a format can fold, and shown by all.
    pub fn folded(title: impl AsRef<str>, blocks: Vec<Block>) -> Block {
        Block::Folded(Folded { title: clean(title.as_ref()), shown: Shown::Everywhere, blocks })
    }

    /// Blocks that only formats show that can fold.
    pub fn hidden(title: impl AsRef<str>, blocks: Vec<Block>) -> Block {
        Block::Folded(Folded { title: clean(title.as_ref()), shown: Shown::WhereFolded, blocks })
    }

    /// A picture.
    pub fn picture(picture: Picture) -> Block {
        Block::Picture(Box::new(picture))
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Title(_) | Block::Words(..) | Block::Picture(_) | Block::Rounds(_) => false,
            Block::Facts(all) => all.is_empty(),
            Block::List(all) => all.is_empty(),
            Block::Table(table) => table.rows.is_empty(),
            Block::Copy(lines) => lines.is_empty(),
            Block::Beside(blocks) => blocks.iter().all(Block::is_empty),
            Block::Folded(folded) => folded.blocks.iter().all(Block::is_empty),
        }
    }
}

/// A line to copy, with its indentation.
fn copied(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indent), clean(line))
}

impl Item {
    /// A sentence.
    pub fn of(text: impl AsRef<str>) -> Item {
        Item { text: clean(text.as_ref()), ..Item::default() }
    }

    /// The same with a name.
    pub fn named(self, name: impl AsRef<str>) -> Item {
        Item { name: clean(name.as_ref()), ..self }
    }

    /// The same with a word before it, and its tone.
    pub fn marked(self, tone: Tone, mark: impl AsRef<str>) -> Item {
        Item { tone, mark: clean(mark.as_ref()), ..self }
    }

    /// The same with a detail.
    pub fn detail(mut self, text: impl AsRef<str>) -> Item {
        self.details.push(Detail::Words(clean(text.as_ref())));
        self
    }

    /// The same with a line to copy, after a word that names it.
    pub fn copy(mut self, what: &'static str, text: impl AsRef<str>) -> Item {
        self.details.push(Detail::Copy(what, copied(text.as_ref())));
        self
    }
}
