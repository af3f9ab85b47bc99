//! What the doctor found, as a page for people: first what is to be mended, then what is to be
//! known, then everything else by its heading, one line each.

use super::Row;
use crate::host::checks::{Fix, State};
use crate::report::Look;
use crate::report::terminal::page::{Page, Tone};
use crate::report::text::{clean, width, wrap};

/// Columns of the state, from the margin to the name.
const STATE: usize = 10;

/// The page.
pub fn render(rows: &[Row], look: &Look) -> String {
    let mut page = Page::new(look);
    let names = rows.iter().map(|row| width(&row.name)).max().unwrap_or(0) + 2;
    page.line(&[(Tone::Strong, "dunnage doctor: "), (Tone::Plain, &summary(rows))]);
    section(&mut page, rows, names, "to be mended", |state| state >= State::Warning);
    section(&mut page, rows, names, "to be known", |state| state == State::Note);
    let mut group = "";
    for row in rows.iter().filter(|row| row.finding.state <= State::Ok) {
        if row.group != group {
            group = row.group;
            page.title(Tone::Strong, group);
        }
        found(&mut page, row, names);
        if row.group == "subjects" {
            fix(&mut page, row);
        }
    }
    page.finish()
}

/// The worst first, each with what it matters for and what mends it.
fn section(page: &mut Page, rows: &[Row], names: usize, title: &str, wanted: impl Fn(State) -> bool) {
    let mut rows: Vec<&Row> = rows.iter().filter(|row| wanted(row.finding.state)).collect();
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.finding.state));
    page.title(Tone::Strong, title);
    for row in rows {
        found(page, row, names);
        beside(page, &format!("why: {}", row.matters));
        fix(page, row);
    }
}

fn found(page: &mut Page, row: &Row, names: usize) {
    let state = format!("  {:<STATE$}", row.finding.state.name());
    let name = format!("{:<names$}", row.name);
    let tone = match row.finding.state {
        State::Problem => Tone::Alarm,
        State::Warning => Tone::Open,
        State::Ok => Tone::Better,
        State::Note | State::NotApplicable => Tone::Faint,
    };
    let lead = " ".repeat(width(&state) + width(&name));
    for (index, line) in wrap(&lead, &clean(&row.finding.what), page.width).iter().enumerate() {
        match index {
            0 => page.line(&[(tone, &state), (Tone::Plain, &name), (Tone::Plain, line.trim_start())]),
            _ => page.line(&[(Tone::Plain, line)]),
        }
    }
}

/// A command stands in one line, however long, so that it can be copied.
fn fix(page: &mut Page, row: &Row) {
    match &row.finding.fix {
        Some(Fix::Command(command)) => {
            page.uncut(&format!("{}fix: {}", " ".repeat(2 + STATE), clean(command)));
        }
        Some(Fix::Advice(advice)) => beside(page, &format!("fix: {}", clean(advice))),
        None => {}
    }
}

fn beside(page: &mut Page, text: &str) {
    for line in wrap(&" ".repeat(2 + STATE), text, page.width) {
        page.line(&[(Tone::Faint, &line)]);
    }
}

fn summary(rows: &[Row]) -> String {
    let count = |state| rows.iter().filter(|row| row.finding.state == state).count();
    let of = |state: State, word: &str| match count(state) {
        1 => format!("1 {word}"),
        many => format!("{many} {word}s"),
    };
    format!(
        "{}, {}, {}; {} ok, {} not applicable",
        of(State::Problem, "problem"),
        of(State::Warning, "warning"),
        of(State::Note, "note"),
        count(State::Ok),
        count(State::NotApplicable)
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;
    use crate::host::checks::Finding;
    use crate::report::Style;

    fn rows() -> Vec<Row> {
        vec![
            row("fine", Finding::ok("as it should be")),
            row("slow", Finding::warning("word ".repeat(30)).advice("do this ".repeat(20))),
            row(
                "broken",
                Finding::problem("no\x1b[31m answer").command(format!("sudo mend {}", "x".repeat(100))),
            ),
            row("absent", Finding::not_applicable("not here")),
            row("old", Finding::note("version 1")),
        ]
    }

    #[test]
    fn problems_come_first_and_everything_stands_once() {
        let page = render(&rows(), &Look::default());
        let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words} in\n{page}"));
        assert!(page.starts_with("dunnage doctor: 1 problem, 1 warning, 1 note; 1 ok, 1 not applicable\n"));
        assert!(
            at("broken") < at("slow") && at("slow") < at("version 1") && at("version 1") < at("not here")
        );
        for name in ["fine", "slow", "broken", "absent"] {
            assert_eq!(page.matches(&format!(" {name} ")).count(), 1, "{page}");
        }
        assert!(!page.contains('\x1b'));
    }

    #[test]
    fn words_wrap_in_their_column_and_commands_stay_whole() {
        let page = render(&rows(), &Look::default());
        let long: Vec<_> = page.lines().filter(|line| width(line) > 80).collect();
        assert_eq!(long.len(), 1, "{page}");
        assert!(long[0].trim_start().starts_with("fix: sudo mend xxx") && long[0].ends_with('x'));
        let of_slow = page.lines().filter(|line| line.contains("word"));
        let columns: Vec<_> = of_slow.map(|line| line.find("word").unwrap()).collect();
        assert!(columns.len() > 1 && columns.iter().all(|column| *column == columns[0]), "{page}");
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let coloured = render(&rows(), &Look { style: Style::Colour, ..Look::default() });
        assert!(coloured.contains("\x1b[1;31m  problem"));
        let plain = render(&rows(), &Look::default());
        let stripped: Vec<_> = coloured.lines().map(clean).collect();
        assert_eq!(stripped, plain.lines().map(clean).collect::<Vec<_>>());
    }
}
