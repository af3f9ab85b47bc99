//! A document as one page for a browser: a single file that asks the network for nothing, sorts, hides and tells values
//! by a small script of its own, and reads without it.
//!
//! Templates are askama's: they are compiled and checked with the program, so that no parser of templates lies in
//! the executable that is also the probe, and everything that is put into them is escaped unless it says `safe`.
//! Only what this directory holds, and drawings made of numbers and escaped labels, says so. The page's policy
//! allows its own style and script, by their hashes, and nothing else.

mod prose;

use askama::Template;
use askama::filters::HtmlSafe;
use base64::Engine;
use sha2::{Digest, Sha256};

use self::prose::prose;
use super::{Block, Cell, Cells, Column, Detail, Document, Item, Look, Table, Tone};
use crate::report::picture::{Picture, svg};
use crate::report::text::capital;

/// The page's own style; pictures bring theirs.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document as a page: light, or dark where the system or the reader asks for it, though not on paper.
pub(super) fn render(document: &Document, _: &Look) -> String {
    let colours = svg::css(|light, dark| format!("light-dark({light},{dark})"));
    let style = format!("{STYLE}figure{{{}{colours}}}", svg::SHAPES);
    Page { document, style }.render().expect("a string takes any text")
}

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    document: &'a Document,
    style: String,
}

/// As the page's policy names a style or a script.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

/// Blocks below each other, about these subjects.
#[derive(Template)]
#[template(path = "blocks.html")]
struct Blocks<'a> {
    blocks: &'a [Block],
    subjects: &'a [String],
}

impl HtmlSafe for Blocks<'_> {}

fn blocks<'a>(blocks: &'a [Block], subjects: &'a [String]) -> Blocks<'a> {
    Blocks { blocks, subjects }
}

impl Blocks<'_> {
    /// The data behind a picture. Whose a row is, is told by a text in it that is a subject's label.
    fn data(&self, picture: &Picture) -> Table {
        let columns = picture.table.columns.iter().map(Column::words).collect();
        let mut table = Table::of(format!("{}, in numbers", picture.title), columns);
        for row in &picture.table.rows {
            let own: Vec<&str> =
                row.iter().filter(|text| self.subjects.contains(text)).map(String::as_str).collect();
            table.row(&own, row.iter().map(Cell::words).collect());
        }
        table
    }
}

/// The drawing, whose texts and attributes its own module escapes.
fn drawing(picture: &Picture) -> String {
    svg::draw(picture, svg::Style::Inline)
}

/// Whether points are a sentence each: then they look like text.
fn are_sentences(items: &[Item]) -> bool {
    items.iter().all(|item| item.mark.is_empty() && item.name.is_empty() && item.details.is_empty())
}

/// What data behind a drawing are folded under; paper does without them.
pub(crate) const NUMBERS: &str = "The numbers in it";

/// What something is for the eye, as the style names it.
fn class(tone: &Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Strong => "",
        Tone::Faint => "faint",
        Tone::Worse => "worse",
        Tone::Better => "better",
        Tone::Same => "same",
        Tone::Good => "held",
        Tone::Bad => "failed",
        Tone::Open => "open",
        Tone::Alarm => "alarm",
    }
}

impl Cell {
    /// Its text in parts between which a line may end: what a person would type has no spaces.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let may_end = self.is_code || !self.text.contains(' ');
        self.text.split_inclusive(move |letter| may_end && ",;:/".contains(letter))
    }

    /// How it stands, and what it is for the eye.
    fn classes(&self) -> String {
        let code = if self.is_code { " code" } else { "" };
        let list = if self.text.contains('\n') { " list" } else { "" };
        format!("{}{code}{list}", class(&self.tone)).trim().to_owned()
    }
}
