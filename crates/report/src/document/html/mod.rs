//! A document as one page for a browser: a single file without network access. A small script sorts tables, hides
//! subjects and shows values; the page is readable without it.
//!
//! The templates are askama's: they are compiled and checked with the program, so that the executable, which is
//! also the probe, contains no template parser. Everything put into them is escaped unless marked `safe`. Only
//! files of this directory, and drawings made of numbers and escaped labels, are marked so. The page's policy
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

/// The page's own style; pictures have theirs.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document as a page: light, or dark if the system or the reader wants it, but not on paper.
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

/// The hash by which the page's policy names a style or a script.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

/// A sequence of blocks about these subjects.
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
    /// The data behind a picture. A row belongs to the subjects whose labels are among its texts.
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

/// Whether the points are plain sentences, which are shown as text.
fn are_sentences(items: &[Item]) -> bool {
    items.iter().all(|item| item.mark.is_empty() && item.name.is_empty() && item.details.is_empty())
}

/// The title under which the data of a drawing are folded; they are not printed on paper.
pub(crate) const NUMBERS: &str = "The numbers";

/// The style's class for a tone.
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
    /// Its text in parts between which a line may break: code has no spaces.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let may_end = self.is_code || !self.text.contains(' ');
        self.text.split_inclusive(move |letter| may_end && ",;:/".contains(letter))
    }

    /// Its classes: tone and kind.
    fn classes(&self) -> String {
        let code = if self.is_code { " code" } else { "" };
        let list = if self.text.contains('\n') { " list" } else { "" };
        format!("{}{code}{list}", class(&self.tone)).trim().to_owned()
    }
}
