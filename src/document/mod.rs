//! What a verb says, as one document whatever it will look like: titles, paragraphs, facts, lists, tables, pictures,
//! what can be copied, and parts that are folded where a format can fold. Plain data; a renderer for each format
//! turns it into text and knows nothing of what it is about.
//!
//! **A new verb** needs a builder: a function from its findings to a [`Document`]. The answer stands in
//! [`Document::answer`], everything behind it in [`Document::sections`], the most important first. What must not be
//! believed goes to [`Document::alarms`], which every format shows first. Findings become cells through [`Cell`]'s
//! constructors, so that a number never travels without its unit and interval: [`Column::measured`] takes a whole
//! column of estimates and brings them to one unit. Then [`Findings`] joins the builder with the findings themselves,
//! which are what JSON holds: they derive `Serialize`.
//!
//! **A new format** needs a renderer: a function of a document, and a line in [`FORMATS`].
//!
//! Texts come in plain, with what a person would type between backticks; the constructors here take out whatever
//! could fool a terminal, and each renderer escapes for its own format. Deliberately absent: deciding anything.

pub(crate) mod axis;
mod format;
pub(crate) mod html;
pub(crate) mod json;
pub mod markdown;
pub(crate) mod page;
pub(crate) mod terminal;

pub use format::{FORMATS, Findings, Format, Glyphs, Look, Style, shown};

use crate::report::text::{clean, common_scale, decimals, number, with_interval};
use crate::stats::Estimate;
use crate::units::Unit;
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

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What a reader must know to read it.
    pub notes: Vec<String>,
    /// Its columns; the first says what a row is about.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The column whose values are drawn beside each other where pictures are made of letters.
    pub drawn: Option<Drawn>,
}

/// What is drawn of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// The column.
    pub column: usize,
    /// The unit of its values.
    pub unit: Unit,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its head, with the unit of all its cells where they share one.
    pub name: String,
    /// How its cells stand.
    pub kind: Cells,
    /// Whether it can be left out where there is no room.
    pub need: Need,
}

/// How cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// From the left.
    Words,
    /// To the right, each with its own unit.
    Numbers,
    /// Values below each other in one unit, and their intervals below each other beside them.
    Measured,
}

/// Whether a column can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It cannot.
    Always,
    /// It can, where the page is too narrow for all.
    WithRoom,
}

/// A row; it is hidden with any of its subjects.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The labels of the subjects that it is about.
    pub subjects: Vec<String>,
    /// A cell for each column.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// The interval of a value.
    pub interval: String,
    /// What is said beside it.
    pub detail: String,
    /// What it is for the eye.
    pub tone: Tone,
    /// Whether it is spelled as a person would type it.
    pub is_code: bool,
    /// What its column is sorted by, where the text does not do.
    pub key: Option<f64>,
    /// The alarm that says why, counted from 1.
    pub alarm: Option<usize>,
    /// What is drawn of it.
    pub measured: Option<Measured>,
}

/// The numbers behind a cell.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Single values, where there is no interval.
    pub points: Vec<f64>,
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

    /// Adds a line to what stands before the answer.
    pub fn fact(&mut self, name: &str, text: &str) {
        self.head.push((clean(name), clean(text)));
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

    /// Whether there is anything to show.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Title(_) | Block::Words(..) => false,
            Block::Facts(all) => all.is_empty(),
            Block::List(all) => all.is_empty(),
            Block::Table(table) => table.rows.is_empty(),
            Block::Copy(lines) => lines.is_empty(),
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

impl Column {
    /// A column of words.
    pub fn words(name: impl AsRef<str>) -> Column {
        Column { name: clean(name.as_ref()), kind: Cells::Words, need: Need::Always }
    }

    /// A column of numbers with their units.
    pub fn numbers(name: impl AsRef<str>) -> Column {
        Column { kind: Cells::Numbers, ..Column::words(name) }
    }

    /// A column of estimates in one unit, which stands in its head, with their intervals; what is missing says so.
    pub fn measured(name: &str, unit: Unit, values: &[Option<Estimate>]) -> (Column, Vec<Cell>) {
        let scale = common_scale(unit, values.iter().flatten().map(|one| one.value.abs()));
        let cell = |one: &Option<Estimate>| {
            let Some(one) = one else { return Cell::nothing("–") };
            let shown = one.value / scale.divisor;
            let decimals = decimals(shown);
            let end = |end: f64| crate::report::text::bound(end / scale.divisor, decimals);
            let interval = one.interval.map(|ends| (ends.low, ends.high));
            Cell {
                text: number(shown, decimals),
                interval: interval.map_or(String::new(), |(low, high)| format!("{}–{}", end(low), end(high))),
                measured: Some(Measured { value: one.value, interval, points: Vec::new() }),
                ..Cell::default()
            }
            .key(one.value)
        };
        let name =
            if scale.symbol.is_empty() { name.to_owned() } else { format!("{name}, {}", scale.symbol) };
        (Column { kind: Cells::Measured, ..Column::words(name) }, values.iter().map(cell).collect())
    }

    /// It can be left out where the page is too narrow for all.
    pub fn with_room(self) -> Column {
        Column { need: Need::WithRoom, ..self }
    }
}

impl Table {
    /// A table with these columns.
    pub fn of(title: impl AsRef<str>, columns: Vec<Column>) -> Table {
        Table { title: clean(title.as_ref()), columns, ..Table::default() }
    }

    /// Adds a column with a cell for each row; the first columns make the rows.
    pub fn add(&mut self, (column, cells): (Column, Vec<Cell>)) {
        self.columns.push(column);
        self.rows.resize_with(cells.len().max(self.rows.len()), Row::default);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.cells.push(cell));
    }

    /// Adds a row about these subjects.
    pub fn row(&mut self, subjects: &[&str], cells: Vec<Cell>) {
        self.rows.push(Row { subjects: subjects.iter().map(|one| (*one).to_owned()).collect(), cells });
    }

    /// What a reader must know to read it.
    pub fn note(mut self, text: impl AsRef<str>) -> Table {
        self.notes.push(clean(text.as_ref()));
        self
    }
}

impl Cell {
    /// Words.
    pub fn words(text: impl AsRef<str>) -> Cell {
        Cell { text: clean(text.as_ref()), ..Cell::default() }
    }

    /// Several lines.
    pub fn lines<T: AsRef<str>>(lines: impl IntoIterator<Item = T>) -> Cell {
        let lines: Vec<String> = lines.into_iter().map(|line| clean(line.as_ref())).collect();
        Cell { text: lines.join("\n"), ..Cell::default() }
    }

    /// What is spelled as a person would type it.
    pub fn code(text: impl AsRef<str>) -> Cell {
        Cell { is_code: true, ..Cell::words(text) }
    }

    /// Nothing, with the reason.
    pub fn nothing(why: impl AsRef<str>) -> Cell {
        Cell { tone: Tone::Faint, ..Cell::words(why) }
    }

    /// A value with its unit, and its interval where it has one.
    pub fn value(unit: Unit, value: f64, interval: Option<(f64, f64)>) -> Cell {
        let measured = Measured { value, interval, points: Vec::new() };
        Cell { measured: Some(measured), ..Cell::ranged(with_interval(unit, value, interval)) }.key(value)
    }

    /// The same of an estimate.
    pub fn estimate(unit: Unit, one: &Estimate) -> Cell {
        Cell::value(unit, one.value, one.interval.map(|ends| (ends.low, ends.high)))
    }

    /// A value in words whose interval stands behind it in brackets.
    pub fn ranged(text: impl AsRef<str>) -> Cell {
        let cell = Cell::words(text);
        match cell.text.split_once(" [") {
            Some((text, rest)) => Cell { text: text.to_owned(), interval: format!("[{rest}"), ..cell },
            None => cell,
        }
    }

    /// What its column is sorted by.
    pub fn key(self, key: f64) -> Cell {
        Cell { key: Some(key).filter(|key| key.is_finite()), ..self }
    }

    /// What it is for the eye.
    pub fn tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }

    /// A verdict in its word.
    pub fn verdict(kind: Kind) -> Cell {
        Cell::words(kind.word()).tone(Tone::of(kind))
    }

    /// The value and its interval together, as they stand in a line.
    fn joined(&self) -> String {
        let parts = [self.text.as_str(), &self.interval];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}
