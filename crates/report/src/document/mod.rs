//! What a verb says, as one document whatever it will look like: titles, paragraphs, facts, lists, tables, pictures,
//! what can be copied, and parts that are folded where a format can fold. Plain data; a renderer for each format
//! turns it into text and knows nothing of what it is about.
//!
//! **A new verb** needs a builder: a function from its findings to a [`Document`]. The answer stands in
//! [`Document::answer`], everything behind it in [`Document::sections`], the most important first. What must not be
//! believed goes to [`Document::alarms`], which every format shows first. Findings become cells through [`Cell`]'s
//! constructors, so that a number never travels without its unit and interval: [`Column::measured`] takes a whole
//! column of estimates and brings them to one unit. Then [`Findings`] joins the builder with the findings themselves,
//! which are what JSON holds: they derive `Serialize`. What a terminal shows first is a smaller document of the same
//! findings, [`Findings::brief`], which [`fitted`] keeps to a screen.
//!
//! **A new format** needs a renderer: a function of a document, and a line in [`FORMATS`].
//!
//! Texts come in plain, with what a person would type between backticks; the constructors here take out whatever
//! could fool a terminal, and each renderer escapes for its own format. Deliberately absent: deciding anything.

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
pub(crate) mod terminal;

pub use findings::{Extent, Findings, Glyphs, Look, Style};
pub use format::{FORMATS, Format, csv, shown};
pub use rounds::{Drawing, Rounds};
pub use screen::{fitted, in_a_line};
pub use table::{Cell, Cells, Column, Drawn, Measured, Need, Row, Table};

use crate::report::picture::Picture;
use crate::report::text::clean;
use crate::verdict::Kind;

/// What a person reads.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// What stands beside the title, each in a few words: a version, a run, a moment.
    pub about: Vec<String>,
    /// What, where, how: a name and a text each.
    pub head: Vec<(String, String)>,
    /// What must not be believed; counted from 1, as cells and words refer to it.
    pub alarms: Vec<Item>,
    /// What it comes to.
    pub answer: Vec<Block>,
    /// Everything else.
    pub sections: Vec<Section>,
    /// The subjects that a page lets its reader hide.
    pub subjects: Vec<String>,
}

/// A part with a title.
#[derive(Debug, Clone)]
pub struct Section {
    /// A word for it, by which a page leads there.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What is said.
    pub blocks: Vec<Block>,
}

/// What a document is made of.
#[derive(Debug, Clone)]
pub enum Block {
    /// The title of what follows.
    Title(String),
    /// A paragraph.
    Words(Tone, String),
    /// Names and what they are.
    Facts(Vec<(String, String)>),
    /// Points, each on its own.
    List(Vec<Item>),
    /// A table.
    Table(Table),
    /// Lines that can be copied into a shell or a file.
    Copy(Vec<String>),
    /// A picture, where a format can show one; what it shows stands in words and tables too.
    Picture(Box<Picture>),
    /// Raw rounds over time, where a format can show them.
    Rounds(Rounds),
    /// What is seen together, where there is room beside each other.
    Beside(Vec<Block>),
    /// What is folded away where a format can fold.
    Folded(Folded),
}

/// What is folded away.
#[derive(Debug, Clone)]
pub struct Folded {
    /// What is in it.
    pub title: String,
    /// Where it is shown.
    pub shown: Shown,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// Which formats show it.
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
    /// What its mark is for the eye.
    pub tone: Tone,
    /// A word before it: a state, an outcome.
    pub mark: String,
    /// Whom or what it is about.
    pub name: String,
    /// What is said.
    pub text: String,
    /// What else is said of it.
    pub details: Vec<Detail>,
    /// The subject with which a page hides it.
    pub subject: Option<String>,
}

/// What is said below a point.
#[derive(Debug, Clone)]
pub enum Detail {
    /// Words.
    Words(String),
    /// What can be copied, behind a word that says what it is.
    Copy(&'static str, String),
}

/// What something is for the eye, beside what the words say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// To be seen first.
    Strong,
    /// Helps reading and is not read.
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
    /// Open, or to be looked at.
    Open,
    /// Not to be believed, or broken.
    Alarm,
}

impl Tone {
    /// What a verdict of this kind is for the eye.
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

    /// Adds a line to what stands before the answer, unless it would be empty.
    pub fn fact(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.head.push((clean(name), clean(text)));
        }
    }

    /// The same with the answer of another document before its own.
    fn led_by(mut self, brief: Document) -> Document {
        let at_length = std::mem::replace(&mut self.answer, brief.answer);
        self.sections.insert(0, Section::of("At length", at_length));
        self
    }
}

impl Section {
    /// A part whose title is the word that leads there.
    pub fn of(title: &str, blocks: Vec<Block>) -> Section {
        Section { name: clean(title), title: clean(title), blocks }
    }
}

impl Block {
    /// The title of what follows.
    pub fn title(text: impl AsRef<str>) -> Block {
        Block::Title(clean(text.as_ref()))
    }

    /// A title with what stands below it; neither where nothing does.
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

    /// A paragraph that helps to read what stands above it.
    pub fn note(text: impl AsRef<str>) -> Block {
        Block::Words(Tone::Faint, clean(text.as_ref()))
    }

    /// Points that are a sentence each.
    pub fn sentences<T: AsRef<str>>(all: impl IntoIterator<Item = T>) -> Block {
        Block::List(all.into_iter().map(|text| Item::of(text.as_ref())).collect())
    }

    /// Names and what they are.
    pub fn facts<T: AsRef<str>>(all: impl IntoIterator<Item = (T, T)>) -> Block {
        Block::Facts(
            all.into_iter().map(|(name, text)| (clean(name.as_ref()), clean(text.as_ref()))).collect(),
        )
    }

    /// Lines that can be copied.
    pub fn copy<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Block {
        Block::Copy(lines.into_iter().map(|line| copied(line.as_ref())).collect())
    }

    /// What is folded away where a format can fold, and shown by all.
    pub fn folded(title: impl AsRef<str>, blocks: Vec<Block>) -> Block {
        Block::Folded(Folded { title: clean(title.as_ref()), shown: Shown::Everywhere, blocks })
    }

    /// What only formats show that can fold it away.
    pub fn hidden(title: impl AsRef<str>, blocks: Vec<Block>) -> Block {
        Block::Folded(Folded { title: clean(title.as_ref()), shown: Shown::WhereFolded, blocks })
    }

    /// A picture.
    pub fn picture(picture: Picture) -> Block {
        Block::Picture(Box::new(picture))
    }

    /// Whether there is anything to show.
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

/// A line to be copied: its indentation is part of it.
fn copied(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indent), clean(line))
}

impl Item {
    /// A sentence.
    pub fn of(text: impl AsRef<str>) -> Item {
        Item { text: clean(text.as_ref()), ..Item::default() }
    }

    /// Whom or what it is about.
    pub fn named(self, name: impl AsRef<str>) -> Item {
        Item { name: clean(name.as_ref()), ..self }
    }

    /// A word before it, and what that is for the eye.
    pub fn marked(self, tone: Tone, mark: impl AsRef<str>) -> Item {
        Item { tone, mark: clean(mark.as_ref()), ..self }
    }

    /// What else is said of it.
    pub fn detail(mut self, text: impl AsRef<str>) -> Item {
        self.details.push(Detail::Words(clean(text.as_ref())));
        self
    }

    /// What can be copied, behind a word that says what it is.
    pub fn copy(mut self, what: &'static str, text: impl AsRef<str>) -> Item {
        self.details.push(Detail::Copy(what, copied(text.as_ref())));
        self
    }
}
