//! The doctor's findings as a document: what to fix, what to know, then everything else by group.

use std::cmp::Reverse;

use serde::Serialize;

use super::Row;
use crate::document::{Block, Document, Extent, Findings, Item, Look, Section, TALL, Tone, fitted};
use crate::host::checks::{Fix, State};
use crate::report::text::listed;
use crate::units::counted;

/// All checks.
#[derive(Debug, Serialize)]
pub(super) struct Examined {
    pub host: Option<String>,
    pub subjects_that_work: Vec<String>,
    pub checks: Vec<Row>,
}

impl Examined {
    pub fn of(checks: Vec<Row>, host: Option<String>) -> Examined {
        let works = checks.iter().filter(|row| row.group == "subjects" && row.finding.state == State::Ok);
        Examined { host, subjects_that_work: works.map(|row| row.name.clone()).collect(), checks }
    }
}

impl Findings for Examined {
    const SCHEMA: &'static str = "dunnage-doctor/2";

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, _: &Look) -> Document {
        let mut document = Document::titled(&format!("dunnage doctor: {}", summary(&self.checks)));
        for (title, states) in
            [("To fix", &[State::Problem, State::Warning][..]), ("To know", &[State::Note][..])]
        {
            // The worst first, each with why it matters and how to fix it.
            let rows =
                states.iter().flat_map(|state| self.checks.iter().filter(|row| row.finding.state == *state));
            let items = rows.map(|row| fixed(point(row).detail(format!("why: {}", row.matters)), row));
            document.answer.extend(Block::titled(title, vec![Block::List(items.collect())]));
        }
        let fine = self.checks.iter().filter(|row| row.finding.state <= State::Ok).collect::<Vec<_>>();
        for group in fine.chunk_by(|one, other| one.group == other.group) {
            let is_subjects = group[0].group == "subjects";
            let told = |row: &&Row| if is_subjects { fixed(point(row), row) } else { point(row) };
            let items = group.iter().map(told).collect();
            document.sections.push(Section::of(group[0].group, vec![Block::List(items)]));
        }
        document
    }

    /// What can be measured, what to fix, and as many notes as fit.
    fn brief(&self, look: &Look) -> Option<Document> {
        let mut document = Document::titled(&format!("dunnage doctor: {}", summary(&self.checks)));
        let works = listed(&self.subjects_that_work, ", ");
        document.fact("can be measured here", if works.is_empty() { "nothing" } else { &works });
        let mut rows: Vec<&Row> = self.checks.iter().filter(|row| row.finding.state >= State::Note).collect();
        rows.sort_by_key(|row| Reverse(row.finding.state));
        let points: Vec<(usize, Item)> = rows.iter().map(|row| (0, fixed(point(row), row))).collect();
        Some(fitted(look, TALL, &points, |items, left_out| {
            let mut document = document.clone();
            document.answer.push(Block::List(items));
            let more = if left_out > 0 {
                format!("{left_out} more, why each matters,")
            } else {
                "Why each matters".into()
            };
            let all = format!("{more} and all checks that are ok: `dunnage doctor --full`.");
            document.answer.extend((look.extent == Extent::Brief).then(|| Block::note(all)));
            document
        }))
    }
}

/// A check's state, name and finding.
fn point(row: &Row) -> Item {
    let tone = match row.finding.state {
        State::Problem => Tone::Alarm,
        State::Warning => Tone::Open,
        State::Ok => Tone::Good,
        State::Note | State::NotApplicable => Tone::Faint,
    };
    Item::of(&row.finding.what).named(&row.name).marked(tone, row.finding.state.to_string())
}

fn fixed(item: Item, row: &Row) -> Item {
    match &row.finding.fix {
        Some(Fix::Command(command)) => item.copy("fix", command),
        Some(Fix::Advice(advice)) => item.detail(format!("fix: {advice}")),
        None => item,
    }
}

fn summary(rows: &[Row]) -> String {
    let count = |state| rows.iter().filter(|row| row.finding.state == state).count();
    let told = |state: State| counted(count(state), &state.to_string());
    let [problems, warnings, notes] = [State::Problem, State::Warning, State::Note].map(told);
    let [ok, not_applicable] = [State::Ok, State::NotApplicable].map(count);
    format!("{problems}, {warnings}, {notes}; {ok} ok, {not_applicable} not applicable")
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;
    use crate::document::shown;
    use crate::host::checks::Finding;
    use crate::report::text::width;

    fn page() -> String {
        let rows = vec![
            row("fine", Finding::ok("as it should be")),
            row("slow", Finding::warning("word ".repeat(30)).advice("do this ".repeat(20))),
            row(
                "broken",
                Finding::problem("no\x1b[31m answer").command(format!("sudo fix {}", "x".repeat(100))),
            ),
            row("absent", Finding::not_applicable("not here")),
            row("old", Finding::note("version 1")),
        ];
        shown(&Examined::of(rows, None), "terminal", &Look::default()).unwrap()
    }

    #[test]
    fn problems_come_first_and_everything_stands_once() {
        let page = page();
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
    fn the_first_screen_says_what_works_and_then_the_worst() {
        let slow = |index: i32| {
            row(&format!("slow-{index}"), Finding::warning("word ".repeat(30)).advice("do this ".repeat(20)))
        };
        let mut rows: Vec<Row> = (0..40).map(slow).collect();
        rows.push(row("broken", Finding::problem("no answer").command("sudo fix it")));
        rows.push(Row { group: "subjects", ..row("bare", Finding::ok("works")) });
        let look = Look { extent: Extent::Brief, ..Look::default() };
        let page = shown(&Examined::of(rows, None), "terminal", &look).unwrap();
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines[1].starts_with("can be measured here  bare") && lines[3].contains("broken"), "{page}");
        assert!(lines.len() <= 40 && lines.iter().all(|line| width(line) <= 80), "{page}");
        assert!(page.contains(" slow-0 ") && page.contains(" more, why each matters"), "{page}");
    }

    #[test]
    fn words_wrap_in_their_column_and_commands_stay_whole() {
        let page = page();
        let long: Vec<_> = page.lines().filter(|line| width(line) > 80).collect();
        assert_eq!(long.len(), 1, "{page}");
        assert!(long[0].trim_start().starts_with("fix: sudo fix xxx"));
        let again = page.lines().skip_while(|line| !line.contains(" slow ")).nth(1).unwrap();
        assert!(again.starts_with(&" ".repeat(15)) && again.trim().starts_with("word"), "{page}");
    }

    #[test]
    fn every_check_is_an_object_with_its_fields() {
        let rows = vec![
            row("a", Finding::problem("x\ny").command("sudo it")),
            Row { group: "subjects", ..row("bare", Finding::ok("works")) },
        ];
        let text = shown(&Examined::of(rows, None), "json", &Look::default()).unwrap();
        let data: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(data["schema"], "dunnage-doctor/2");
        assert_eq!(data["subjects_that_work"], serde_json::json!(["bare"]));
        let first = serde_json::json!({
            "group": "group", "name": "a", "matters": "it matters", "state": "problem", "found": "x y", "command": "sudo it",
        });
        assert_eq!(data["checks"][0], first);
    }
}
