//! Lines of a page: pieces with tones, which become colours if requested. Widths are computed before colours are
//! added.

use super::{Glyphs, Look, Style, Tone};
use crate::report::text::{shorten, width, wrap};

/// The arguments of the escape sequence (ECMA-48, SGR).
fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Same => "",
        Tone::Strong => "1",
        Tone::Faint => "2",
        Tone::Worse | Tone::Bad => "31",
        Tone::Better | Tone::Good => "32",
        Tone::Open => "33",
        Tone::Alarm => "1;31",
    }
}

/// A page under construction.
pub struct Page {
    text: String,
    /// Columns.
    pub width: usize,
    style: Style,
    glyphs: Glyphs,
    /// Table columns already reported as left out for lack of room.
    pub left_out: Vec<String>,
}

impl Page {
    /// An empty page.
    pub fn new(look: &Look) -> Page {
        let (text, left_out) = (String::new(), Vec::new());
        Page { text, width: look.width.max(40), style: look.style, glyphs: look.glyphs, left_out }
    }

    /// Adds a line of pieces, cut to the width.
    pub fn line(&mut self, pieces: &[(Tone, &str)]) {
        let mut room = self.width;
        let last = pieces.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (index, (tone, text)) in pieces.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let text = if Some(index) == last { text.trim_end() } else { text };
            let text = shorten(text, room);
            room -= width(&text).min(room);
            self.piece(*tone, &text);
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    fn piece(&mut self, tone: Tone, text: &str) {
        let code = code(tone);
        if self.style == Style::Colour && !code.is_empty() && !text.trim().is_empty() {
            self.text.push_str(&format!("\x1b[{code}m{text}\x1b[0m"));
        } else {
            self.text.push_str(text);
        }
    }

    /// Adds a line to copy, which is not cut.
    pub fn uncut(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a title with a rule, after an empty line.
    pub fn title(&mut self, tone: Tone, text: &str) {
        self.gap();
        let rule = self.width.saturating_sub(width(text) + 1);
        self.line(&[(tone, text), (Tone::Faint, &format!(" {}", "─".repeat(rule)))]);
    }

    /// Adds a title with the contents below it; nothing if they are empty.
    pub fn section(&mut self, title: &str, write: impl FnOnce(&mut Page)) {
        let before = self.text.len();
        self.title(Tone::Strong, title);
        let titled = self.text.len();
        write(self);
        if self.text.len() == titled {
            self.text.truncate(before);
        }
    }

    /// Adds a text in as many lines as it needs; `first` begins the first line, and the others are indented.
    pub fn paragraph(&mut self, tone: Tone, first: &str, text: &str) {
        self.hanging(&[(Tone::Plain, first)], width(first), tone, text);
    }

    /// Adds a text in as many lines as it needs, all but the first indented, so that a name from outside cannot
    /// look like a new line of the page.
    pub fn outdented(&mut self, tone: Tone, text: &str) {
        self.hanging(&[], 2, tone, text);
    }

    /// Adds a text in as many lines as it needs; pieces begin the first line, and the others are indented by so much.
    pub fn hanging(&mut self, first: &[(Tone, &str)], indent: usize, tone: Tone, text: &str) {
        let indent = " ".repeat(indent);
        for (index, line) in wrap("", text, self.width.saturating_sub(indent.len())).iter().enumerate() {
            let before = if index == 0 { first } else { &[(Tone::Plain, indent.as_str())] };
            self.line(&[before, &[(tone, line)]].concat());
        }
    }

    /// The number of lines.
    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Adds the contents of another page, after an empty line.
    pub fn append(&mut self, other: Page) {
        self.gap();
        self.text.push_str(&other.text);
    }

    /// Adds a title below a section's title.
    pub fn heading(&mut self, text: &str) {
        self.gap();
        self.paragraph(Tone::Strong, "", text);
    }

    /// The page as text.
    pub fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text.push('\n');
        match self.glyphs {
            Glyphs::Unicode => self.text,
            Glyphs::Ascii => self.text.chars().map(ascii).collect(),
        }
    }
}

/// The nearest ASCII character, of the same width.
fn ascii(letter: char) -> char {
    match letter {
        letter if letter.is_ascii() => letter,
        '×' => 'x',
        'µ' => 'u',
        '−' | '–' | '─' | '—' => '-',
        '├' | '┤' | '│' => '|',
        '┼' | '┴' | '┬' => '+',
        '●' => 'o',
        '→' => '>',
        '·' => '.',
        '…' => '~',
        '━' => '=',
        '╸' => '-',
        '▁'..='█' => char::from(b'1' + (letter as u32 - '▁' as u32) as u8),
        '÷' => '/',
        '±' => '~',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_without_anything_below_it_is_left_out() {
        let mut page = Page::new(&Look::default());
        page.line(&[(Tone::Plain, "before")]);
        page.section("nothing", |_| ());
        page.section("something", |page| page.line(&[(Tone::Plain, "told")]));
        let text = page.finish();
        assert!(text.starts_with("before\n\nsomething ──") && text.ends_with("\ntold\n"), "{text}");
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let render = |style| {
            let mut page = Page::new(&Look { style, ..Look::default() });
            page.title(Tone::Alarm, "suspect");
            page.line(&[(Tone::Worse, "slower  "), (Tone::Plain, "")]);
            page.finish()
        };
        let (plain, coloured) = (render(Style::Plain), render(Style::Colour));
        assert!(coloured.contains("\x1b[31mslower\x1b[0m\n"), "{coloured:?}");
        let lines: Vec<_> = coloured.lines().map(crate::report::text::clean).collect();
        assert_eq!(lines, plain.lines().collect::<Vec<_>>());
    }
}
