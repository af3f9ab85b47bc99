//! Markdown under construction: paragraphs, lists, tables and what is folded away, and how a text from outside becomes
//! one that is shown as it is.
//!
//! A comment is read in two ways: as GitHub shows it, and as it stands in an editor or a mail. So what needs no
//! escaping has none, and tables have their columns under each other.

use std::fmt::Write as _;

use crate::report::text::{left, right, width};

/// Tables with wider lines are not padded: they would wrap, and a comment has room for so many characters.
const WIDEST_LINE: usize = 140;

/// A column of a table.
pub(super) enum Column {
    /// Words.
    Text(String),
    /// Numbers, which end at the right.
    Number(String),
}

impl Column {
    /// Words under this head, which is ours.
    pub fn text(head: impl Into<String>) -> Column {
        Column::Text(head.into())
    }

    /// Numbers under this head, which is ours.
    pub fn number(head: impl Into<String>) -> Column {
        Column::Number(head.into())
    }

    fn head(&self) -> &str {
        let (Column::Text(head) | Column::Number(head)) = self;
        head
    }

    fn padded(&self, text: &str, room: usize) -> String {
        match self {
            Column::Text(_) => left(text, room),
            Column::Number(_) => right(text, room),
        }
    }

    fn rule(&self, room: usize) -> String {
        match self {
            Column::Text(_) => "-".repeat(room.max(3)),
            Column::Number(_) => format!("{}:", "-".repeat(room.max(4) - 1)),
        }
    }
}

/// Markdown under construction.
pub(super) struct Page {
    pub text: String,
    /// How many characters there may be before rows of tables are left out.
    pub limit: usize,
    /// How many rows were.
    pub left_out: usize,
}

impl Page {
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}\n");
    }

    pub fn list(&mut self, lines: impl IntoIterator<Item = String>) {
        let before = self.text.len();
        for line in lines {
            let _ = writeln!(self.text, "- {line}");
        }
        if self.text.len() > before {
            self.text.push('\n');
        }
    }

    /// A list whose items are counted from 1.
    pub fn numbered(&mut self, lines: impl IntoIterator<Item = String>) {
        for (index, line) in lines.into_iter().enumerate() {
            let _ = writeln!(self.text, "{}. {line}", index + 1);
        }
        self.text.push('\n');
    }

    /// What may be copied into a shell. Nothing in it is markup, so nothing is escaped: only the fence must be longer
    /// than any in the text.
    pub fn code(&mut self, lines: &[String]) {
        let text = lines.join("\n");
        let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(3.max(longest + 1));
        let _ = writeln!(self.text, "{fence}sh\n{text}\n{fence}\n");
    }

    /// A table of cells that are escaped already; rows for which a comment has no room are counted instead.
    pub fn table(&mut self, columns: &[Column], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        let cell = |row: &Vec<String>, index: usize| row.get(index).map_or(0, |text| width(text));
        let room = |index: usize, column: &Column| {
            rows.iter().map(|row| cell(row, index)).max().unwrap_or(0).max(width(column.head()))
        };
        let rooms: Vec<usize> = columns.iter().enumerate().map(|(index, one)| room(index, one)).collect();
        let is_padded = rooms.iter().sum::<usize>() + 3 * rooms.len() < WIDEST_LINE;
        let room = |index: usize| if is_padded { rooms[index].max(3) } else { 0 };
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = columns.iter().zip(cells).enumerate();
            let cells: Vec<String> = cells
                .map(|(index, (column, text))| match is_padded {
                    true => column.padded(text, room(index)),
                    false => text.to_owned(),
                })
                .collect();
            format!("| {} |", cells.join(" | "))
        };
        let head = line(&mut columns.iter().map(Column::head));
        let rules: Vec<String> =
            columns.iter().enumerate().map(|(index, column)| column.rule(room(index))).collect();
        let _ = writeln!(self.text, "{head}\n| {} |", rules.join(" | "));
        let mut used = self.text.chars().count();
        for row in rows {
            let line = line(&mut row.iter().map(String::as_str));
            used += line.chars().count() + 1;
            if used > self.limit {
                self.left_out += 1;
                continue;
            }
            let _ = writeln!(self.text, "{line}");
        }
        self.text.push('\n');
    }

    pub fn folded(&mut self, title: &str, write: impl FnOnce(&mut Page)) {
        let _ = writeln!(self.text, "<details>\n<summary>{title}</summary>\n");
        write(self);
        let _ = writeln!(self.text, "</details>\n");
    }
}

/// A text as it stands in prose and in tables, whatever it holds: no markup, no HTML, no mention of a person or an issue,
/// no link, no end of a table's cell, no beginning of a list.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A character without width keeps names and numbers from being looked up.
            '@' | '#' => {
                out.push(letter);
                out.push_str("&#8203;");
            }
            ':' if next == Some('/') => out.push_str("&#58;"),
            'w' | 'W' if out.to_ascii_lowercase().ends_with("ww") && next == Some('.') => {
                out.push(letter);
                out.push_str("&#8203;");
            }
            // Within a word it is no markup, and names are full of it.
            '_' if before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric) => {
                out.push('_');
            }
            '\\' | '`' | '*' | '_' | '|' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            // What begins a list or a line, at the beginning and before a space or its like.
            '-' | '+' | '=' if before.is_none() && next.is_none_or(|next| next == ' ' || next == letter) => {
                out.push('\\');
                out.push(letter);
            }
            '.' | ')' if next.is_none_or(|next| next == ' ') && is_number(&out) => {
                out.push('\\');
                out.push(letter);
            }
            '[' if next == Some('^') => out.push_str("\\["),
            ']' if matches!(next, Some('(' | '[' | ':')) => out.push_str("\\]"),
            letter => out.push(letter),
        }
        before = Some(letter);
    }
    out
}

/// Whether a text so far would be the number of a list's item.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A sentence of the report, in which metrics and labels stand in backticks: labels come from outside and may hold
/// some of their own.
pub(crate) fn sentence(text: &str) -> String {
    escaped(&text.replace('`', ""))
}

/// A text of the program's own, whose backticks are meant.
pub(super) fn own_words(text: &'static str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => escaped(part),
        _ => format!("`{}`", part.replace('|', "\\|")),
    };
    parts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_from_outside_is_shown_and_does_nothing() {
        assert_eq!(escaped("a|b `c` *d* _e_ <b>&amp;"), "a\\|b \\`c\\` \\*d\\* \\_e\\_ &lt;b&gt;&amp;amp;");
        assert_eq!(escaped("@torvalds fixes #1"), "@&#8203;torvalds fixes #&#8203;1");
        assert_eq!(
            escaped("[x](http://e) ![i](y) www.e.org"),
            "[x\\](http&#58;//e) \\![i\\](y) www&#8203;.e.org"
        );
    }

    #[test]
    fn what_begins_a_line_begins_no_list() {
        assert_eq!(
            ["- a", "+ a", "1. a", "12) a", "---"].map(escaped),
            ["\\- a", "\\+ a", "1\\. a", "12\\) a", "\\---"]
        );
    }

    #[test]
    fn what_needs_no_escaping_has_none() {
        for plain in
            ["12.3 ms [10.1, 14.0]", "−1.5 %", "cpu_usable", "-s docker", "a - b", "1.1.5+ds1", "3 (a) 4)"]
        {
            assert_eq!(escaped(plain), plain);
        }
        assert_eq!(own_words("from `main` until _x_"), "from `main` until \\_x\\_");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        let mut page = Page { text: String::new(), limit: usize::MAX, left_out: 0 };
        page.code(&["a ```` b".into(), "c".into()]);
        assert_eq!(page.text, "`````sh\na ```` b\nc\n`````\n\n");
    }

    #[test]
    fn columns_stand_under_each_other() {
        let mut page = Page { text: String::new(), limit: usize::MAX, left_out: 0 };
        let rows = [["docker", "320 ms"], ["bare", "1 ms"]].map(|row| row.map(str::to_owned).to_vec());
        page.table(&[Column::text("subject"), Column::number("time")], &rows);
        assert_eq!(
            page.text,
            "| subject |   time |\n| ------- | -----: |\n| docker  | 320 ms |\n| bare    |   1 ms |\n\n"
        );
    }
}
