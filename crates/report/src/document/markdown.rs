//! A document for an issue, a wiki, or a comment on a pull request, in GitHub's Markdown: suspects and the answer
//! first, folded parts last.
//!
//! Texts are shown unchanged and never as markup: see [`escaped`]. A comment may have at most 65,536 characters; a
//! longer document loses the last rows of its tables, and says how many. People also read the source, in an editor
//! or a mail, so nothing is escaped without need, and table columns are aligned.

use std::fmt::Write as _;

use super::{Block, Cell, Cells, Detail, Document, Folded, Item, Look, Table, Tone};
use crate::report::text::{left, right, width};
use crate::units::counted;

/// The most characters that GitHub accepts in one comment.
pub const LONGEST: usize = 65_536;
/// Tables with wider lines are not padded: they would wrap, and padding uses up the characters of a comment.
const WIDEST_LINE: usize = 140;

/// The document as Markdown.
pub fn render(document: &Document, _: &Look) -> String {
    let mut limit = LONGEST;
    loop {
        let text = within(document, limit);
        let over = text.chars().count().saturating_sub(LONGEST);
        if over == 0 || limit == 0 {
            return text;
        }
        // Room for what follows the tables.
        limit = limit.saturating_sub(over + 100);
    }
}

/// The document, without the rows of tables beyond this many characters.
fn within(document: &Document, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit, left_out: 0 };
    page.paragraph(&format!("## {}", escaped(&document.title)));
    let about = document.about.join(" · ");
    let head = [about].into_iter().filter(|about| !about.is_empty()).map(|about| escaped(&about));
    let facts = document.head.iter().map(|(name, text)| format!("{}: {}", escaped(name), sentence(text)));
    page.list(head.chain(facts));
    if !document.alarms.is_empty() {
        page.paragraph("### Suspect: do not believe these numbers");
        for (index, alarm) in document.alarms.iter().enumerate() {
            let _ = writeln!(page.text, "{}. {}", index + 1, item(alarm));
        }
        page.text.push('\n');
    }
    let mut folded = Vec::new();
    if !document.answer.is_empty() {
        page.paragraph("### In short");
        blocks(&mut page, &document.answer, "", &mut folded);
    }
    for section in &document.sections {
        let before = page.text.len();
        page.paragraph(&format!("### {}", escaped(&section.title)));
        let titled = page.text.len();
        blocks(&mut page, &section.blocks, &section.name, &mut folded);
        if page.text.len() == titled {
            page.text.truncate(before);
        }
    }
    // Folded parts come last, so that they lose rows first.
    for (of, part) in folded {
        let title = if of.is_empty() { part.title.clone() } else { format!("{of}: {}", part.title) };
        let _ = writeln!(page.text, "<details>\n<summary>{}</summary>\n", escaped(&title));
        blocks(&mut page, &part.blocks, of, &mut Vec::new());
        page.paragraph("</details>");
    }
    if page.left_out > 0 {
        let rows = counted(page.left_out, "row");
        page.paragraph(&format!("_{rows} of tables left out to fit a comment: see `--format json`._"));
    }
    page.text
}

fn blocks<'a>(page: &mut Page, all: &'a [Block], of: &'a str, later: &mut Vec<(&'a str, &'a Folded)>) {
    for block in all.iter().filter(|block| !block.is_empty()) {
        match block {
            Block::Title(title) => page.paragraph(&format!("**{}**", sentence(title))),
            Block::Words(Tone::Faint, text) => page.paragraph(&format!("_{}_", sentence(text))),
            Block::Words(_, text) => page.paragraph(&sentence(text)),
            Block::Facts(all) => {
                page.list(all.iter().map(|(name, text)| format!("{}: {}", sentence(name), sentence(text))));
            }
            Block::List(items) => page.list(items.iter().map(item)),
            Block::Table(table) => self::table(page, table),
            Block::Copy(lines) => page.code(lines),
            Block::Beside(all) => blocks(page, all, of, later),
            Block::Picture(_) | Block::Rounds(_) => {}
            // The explanation of drawings is left out with them.
            Block::Folded(folded) if folded.blocks.iter().any(|one| matches!(one, Block::Rounds(_))) => {}
            Block::Folded(folded) => later.push((of, folded)),
        }
    }
}

fn item(item: &Item) -> String {
    let name: Vec<&str> = [&*item.mark, &*item.name].into_iter().filter(|text| !text.is_empty()).collect();
    let name = if name.is_empty() { String::new() } else { format!("**{}**:", sentence(&name.join(" "))) };
    let details = item.details.iter().map(|detail| match detail {
        Detail::Words(words) => format!("_({})_", sentence(words)),
        Detail::Copy(what, line) => format!("({what}: {})", in_code(line)),
    });
    let parts = [name, sentence(&item.text)].into_iter().chain(details).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

/// The longest run of backticks in a text.
fn backticks(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

/// A text between as many backticks as it needs.
fn in_code(text: &str) -> String {
    let longest = backticks(text);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Rows that do not fit into a comment are counted instead.
fn table(page: &mut Page, table: &Table) {
    if !table.title.is_empty() {
        page.paragraph(&format!("**{}**", sentence(&table.title)));
    }
    let heads: Vec<String> = table.columns.iter().map(|column| sentence(&column.name)).collect();
    let rows: Vec<Vec<String>> = table.rows.iter().map(|row| row.cells.iter().map(cell).collect()).collect();
    let room = |index: usize, head: &String| {
        let cells = rows.iter().filter_map(|row| row.get(index)).chain([head]);
        cells.map(|text| width(text)).max().unwrap_or(0).max(3)
    };
    let rooms: Vec<usize> = heads.iter().enumerate().map(|(index, head)| room(index, head)).collect();
    let is_padded = rooms.iter().sum::<usize>() + 3 * rooms.len() < WIDEST_LINE;
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&rooms).zip(&table.columns).map(|((text, room), column)| {
            match (is_padded, column.kind) {
                (false, _) => text.clone(),
                (true, Cells::Words) => left(text, *room),
                (true, _) => right(text, *room),
            }
        });
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let rules = rooms.iter().zip(&table.columns).map(|(room, column)| {
        let room = if is_padded { *room } else { 3 };
        match column.kind {
            Cells::Words => "-".repeat(room),
            _ => format!("{}:", "-".repeat(room.max(4) - 1)),
        }
    });
    let _ = writeln!(page.text, "{}\n| {} |", line(&heads), rules.collect::<Vec<_>>().join(" | "));
    let mut used = page.text.chars().count();
    for row in &rows {
        let line = line(row);
        used += line.chars().count() + 1;
        match used > page.limit {
            true => page.left_out += 1,
            false => drop(writeln!(page.text, "{line}")),
        }
    }
    page.text.push('\n');
    table.notes.iter().for_each(|note| page.paragraph(&format!("_{}_", sentence(note))));
}

fn cell(cell: &Cell) -> String {
    let text = match cell.measured {
        // In running text, an interval needs brackets.
        Some(_) if !cell.interval.is_empty() && !cell.interval.starts_with('[') => {
            format!("{} [{}]", cell.text, cell.interval.replace('–', ", "))
        }
        _ => cell.joined(),
    };
    let text = escaped(&cell.told(&text).replace('\n', "; "));
    match cell.tone {
        Tone::Alarm | Tone::Strong if !text.is_empty() => format!("**{text}**"),
        _ => text,
    }
}

/// Markdown under construction.
struct Page {
    text: String,
    /// The number of characters after which rows of tables are left out.
    limit: usize,
    /// The number of rows left out.
    left_out: usize,
}

impl Page {
    fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}\n");
    }

    fn list(&mut self, lines: impl IntoIterator<Item = String>) {
        let before = self.text.len();
        for line in lines {
            let _ = writeln!(self.text, "- {line}");
        }
        if self.text.len() > before {
            self.text.push('\n');
        }
    }

    /// Lines to copy into a shell or a file. They contain no markup, so nothing is escaped; only the fence must be
    /// longer than any in the text.
    fn code(&mut self, lines: &[String]) {
        let text = lines.join("\n");
        let fence = "`".repeat(3.max(backticks(&text) + 1));
        let _ = writeln!(self.text, "{fence}\n{text}\n{fence}\n");
    }
}

/// A text escaped for prose and tables: without markup, HTML, mentions of people or issues, links, ends of table
/// cells, or beginnings of lists.
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
            // A zero-width character prevents mentions and references.
            '@' | '#' => {
                out.push(letter);
                out.push_str("&#8203;");
            }
            ':' if next == Some('/') => out.push_str("&#58;"),
            'w' | 'W' if out.to_ascii_lowercase().ends_with("ww") && next == Some('.') => {
                out.push(letter);
                out.push_str("&#8203;");
            }
            // Within a word it is not markup, and names are full of it.
            '_' if before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric) => {
                out.push('_');
            }
            '\\' | '`' | '*' | '_' | '|' | '~' | '$' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            // At the beginning, these start a list or a rule.
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

/// Whether the text so far would be the number of a list item.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A sentence without its backticks, which mark metrics and labels: labels come from outside and may contain more.
pub(crate) fn sentence(text: &str) -> String {
    escaped(&text.replace('`', ""))
}

#[cfg(test)]
mod tests {
    use super::super::Column;
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
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        let mut page = Page { text: String::new(), limit: usize::MAX, left_out: 0 };
        page.code(&["a ```` b".into(), "c".into()]);
        assert_eq!(page.text, "`````\na ```` b\nc\n`````\n\n");
    }

    #[test]
    fn a_point_that_is_nothing_but_lines_to_copy_begins_with_the_first() {
        let one = Item::default().copy("docker", "docker run --cpus 2").copy("podman", "podman run --cpus 2");
        assert_eq!(item(&one), "(docker: `docker run --cpus 2`) (podman: `podman run --cpus 2`)");
        assert_eq!(item(&Item::of("a").named("b").detail("c")), "**b**: a _(c)_");
    }

    #[test]
    fn columns_stand_under_each_other() {
        let mut page = Page { text: String::new(), limit: usize::MAX, left_out: 0 };
        let rows = [["docker", "320 ms"], ["bare", "1 ms"]].map(|row| row.map(str::to_owned).to_vec());
        let mut shown = Table::of("", vec![Column::words("subject"), Column::numbers("time")]);
        rows.iter().for_each(|row| shown.row(&[], row.iter().map(Cell::words).collect()));
        table(&mut page, &shown);
        assert_eq!(
            page.text,
            "| subject |   time |\n| ------- | -----: |\n| docker  | 320 ms |\n| bare    |   1 ms |\n\n"
        );
    }
}
