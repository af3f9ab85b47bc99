//! The tables that experiments have of their own: as wide as they need to be, and where that is more than
//! the page, in parts that each repeat the first column.

use crate::document::Tone;
use crate::document::page::Page;
use crate::report::model::Experiment;
use crate::report::text::{left, right, width, with_interval, wrap};
use crate::units::Unit;
use crate::verdict::exhibit::{Column, Exhibit, Item};

/// Between two columns.
const GAP: usize = 2;
/// What a column of texts may take unless it is the last of its part.
const TEXT: usize = 30;

/// All exhibits of an experiment.
pub(super) fn exhibits(page: &mut Page, experiment: &Experiment) {
    for exhibit in &experiment.exhibits {
        page.title(Tone::Strong, &format!("{}: {}", experiment.name, exhibit.title));
        // Heads above nothing would look like a table that was cut off.
        let parts = if exhibit.rows.is_empty() { Vec::new() } else { parts(page.width, exhibit) };
        for part in parts {
            table(page, exhibit, &part);
        }
        for note in &exhibit.notes {
            page.paragraph(Tone::Faint, "", note);
        }
    }
}

/// What the exhibits come to.
pub(super) fn in_short(page: &mut Page, experiment: &Experiment) {
    for sentence in experiment.exhibits.iter().flat_map(|exhibit| &exhibit.summary) {
        page.paragraph(Tone::Plain, &format!("  {}  ", experiment.name), sentence);
    }
}

/// A column as it is shown: its place in the exhibit, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    column: usize,
    width: usize,
}

/// The columns of each part; the first column of the exhibit begins every one.
fn parts(page: usize, exhibit: &Exhibit) -> Vec<Vec<Shown>> {
    let shown = |column: usize| {
        let head = exhibit.columns[column].name.split(' ').map(width).max().unwrap_or(0);
        let most = if exhibit.columns[column].unit.is_none() && column > 0 { TEXT } else { page / 2 };
        Shown { column, width: longest(exhibit, column).min(most).max(head) }
    };
    let all: Vec<Shown> = (0..exhibit.columns.len()).map(shown).collect();
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let mut parts = vec![vec![*first]];
    let mut used = first.width;
    for one in others {
        let full = used + GAP + one.width > page;
        if full && parts.last().is_some_and(|part| part.len() > 1) {
            parts.push(vec![*first]);
            used = first.width;
        }
        used += GAP + one.width;
        parts.last_mut().expect("there is always a part").push(*one);
    }
    // The first column says what a row is about, so it is shortened only where there is no room.
    let taken = |part: &Vec<Shown>| part.iter().map(|one| one.width + GAP).sum::<usize>() - GAP;
    let free = parts.iter().map(|part| page.saturating_sub(taken(part))).min().unwrap_or(0);
    let more = longest(exhibit, 0).saturating_sub(first.width).min(free);
    parts.iter_mut().for_each(|part| part[0].width += more);
    for part in &mut parts {
        let free = page.saturating_sub(taken(part));
        let Some(last) = part.last_mut().filter(|last| exhibit.columns[last.column].unit.is_none()) else {
            continue;
        };
        last.width += longest(exhibit, last.column).saturating_sub(last.width).min(free);
    }
    parts
}

/// The longest text below a column.
fn longest(exhibit: &Exhibit, column: usize) -> usize {
    let items = exhibit.rows.iter().filter_map(|row| row.get(column));
    items.map(|item| width(&text(&exhibit.columns[column], item))).max().unwrap_or(0)
}

fn table(page: &mut Page, exhibit: &Exhibit, part: &[Shown]) {
    let place = |shown: &Shown, text: &str| match exhibit.columns[shown.column].unit {
        Some(_) => right(text, shown.width),
        None => left(text, shown.width),
    };
    let joined = |cells: Vec<String>| cells.join(&" ".repeat(GAP));
    let heads: Vec<Vec<String>> =
        part.iter().map(|shown| wrap("", &exhibit.columns[shown.column].name, shown.width)).collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        // Short heads stand right above their column.
        let cell = |(shown, head): (&Shown, &Vec<String>)| {
            let skipped = height - head.len();
            place(shown, line.checked_sub(skipped).map_or("", |at| head[at].as_str()))
        };
        page.line(&[(Tone::Faint, &joined(part.iter().zip(&heads).map(cell).collect()))]);
    }
    for row in &exhibit.rows {
        let cell = |shown: &Shown| {
            let item = row.get(shown.column).map(|item| text(&exhibit.columns[shown.column], item));
            place(shown, &item.unwrap_or_default())
        };
        let mut cells: Vec<String> = part.iter().map(cell).collect();
        let first = cells.remove(0);
        let rest = if cells.is_empty() { String::new() } else { " ".repeat(GAP) + &joined(cells) };
        page.line(&[(Tone::Strong, &first), (Tone::Plain, &rest)]);
    }
}

fn text(column: &Column, item: &Item) -> String {
    let unit = column.unit.unwrap_or(Unit::Ratio);
    match item {
        Item::Text(text) | Item::Nothing(text) => text.clone(),
        Item::Value(value) => unit.format(*value).replace('-', "−"),
        Item::Interval(estimate) => {
            let interval = estimate.interval.map(|interval| (interval.low, interval.high));
            with_interval(unit, estimate.value, interval)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Look;

    fn exhibit(columns: usize) -> Exhibit {
        let named = |index: usize| Column::of_values(&format!("share number {index}"), Unit::Share);
        let mut row = vec![Item::Text("docker:cpus=0.1".into())];
        row.extend((1..columns).map(|index| Item::Value(index as f64 / 100.0)));
        let mut bare = vec![Item::Text("bare".into())];
        bare.extend((1..columns).map(|_| Item::Nothing("n/a".into())));
        let first = vec![Column::of_texts("subject")];
        Exhibit {
            experiment: "throttle",
            name: "quota",
            title: "shares".into(),
            columns: first.into_iter().chain((1..columns).map(named)).collect(),
            rows: vec![row, bare],
            notes: Vec::new(),
            summary: Vec::new(),
        }
    }

    #[test]
    fn a_wide_table_is_cut_into_parts_that_repeat_the_first_column() {
        let parts = parts(80, &exhibit(12));
        assert!(parts.len() > 1);
        assert!(parts.iter().all(|part| part[0].column == 0 && part.len() > 1));
        let shown: Vec<usize> =
            parts.iter().flat_map(|part| part.iter().skip(1)).map(|one| one.column).collect();
        assert_eq!(shown, (1..12).collect::<Vec<_>>());
        let wide = |part: &Vec<Shown>| part.iter().map(|one| one.width + GAP).sum::<usize>() - GAP;
        assert!(parts.iter().all(|part| wide(part) <= 80));
    }

    #[test]
    fn the_first_column_takes_what_room_is_free() {
        let name = "floor alternating 0.5 CPUs and a burst of 50 ms";
        let mut long = exhibit(3);
        long.rows[0][0] = Item::Text(name.into());
        assert_eq!(parts(80, &long)[0][0].width, width(name));
        // Beside many columns it is shortened.
        long.rows[0][0] = Item::Text(name.repeat(2));
        assert!(parts(80, &long).iter().all(|part| (40..=64).contains(&part[0].width)));
    }

    #[test]
    fn words_at_the_end_of_a_part_take_what_room_is_free() {
        let words = "seccomp=off 43 %, cgroup=host 31 %, net=host 17 %";
        let mut long = exhibit(3);
        long.columns.push(Column::of_texts("what else"));
        long.rows.iter_mut().for_each(|row| row.push(Item::Text(words.into())));
        let part = parts(100, &long).pop().unwrap();
        assert_eq!(part.last().map(|last| last.width), Some(width(words)));
    }

    #[test]
    fn heads_stand_above_their_columns_and_a_missing_value_has_its_reason() {
        let mut page = Page::new(&Look::default());
        let exhibit = exhibit(3);
        table(&mut page, &exhibit, &parts(80, &exhibit)[0]);
        let expected = "                  share   share\n                 number  number\n\
                        subject               1       2\ndocker:cpus=0.1  1.00 %  2.00 %\n\
                        bare                n/a     n/a\n";
        assert_eq!(page.finish(), expected);
    }
}
