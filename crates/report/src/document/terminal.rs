//! A document for a terminal of 80 columns or more: suspects, the answer, and everything else. The answer comes
//! first; if more follows than fits on a screen it comes last, where the user sees it.
//!
//! The result is text; the caller writes it. No terminal is queried here.

use super::axis::Axis;
use super::page::Page;
use super::{
    Block, Cell, Cells, Column, Detail, Document, Drawn, Item, Look, Measured, Need, Row, Shown, Table, Tone,
};
use crate::report::text::{align_points, joined, left, right, width, wrap};

/// The widest page: longer lines are hard to read.
pub const WIDEST: usize = 160;
/// Lines that are visible at once.
const SCREEN: usize = 40;
/// The gap between two columns.
const GAP: usize = 2;
/// A column of words is not narrower than this, unless its words are.
const NARROW: usize = 16;
/// Words of the first column are not broken up to this width: part of a label looks like another label.
const LABEL: usize = 40;
/// The narrowest useful drawing, and the widest.
const DRAWING: (usize, usize) = (12, 60);
/// The longest name that the text of a point follows on the same line; it is below longer ones.
const NAME: usize = 26;
/// The fewest columns for the text next to it.
const TEXT: usize = 24;

/// The document as text.
pub fn render(document: &Document, look: &Look) -> String {
    let mut page = Page::new(look);
    page.outdented(Tone::Strong, &document.title);
    if !document.about.is_empty() {
        page.outdented(Tone::Faint, &document.about.join(" · "));
    }
    facts(&mut page, &document.head);
    if !document.alarms.is_empty() {
        page.title(Tone::Alarm, "SUSPECT: do not believe these numbers");
        let number =
            |(index, item): (usize, &Item)| item.clone().marked(Tone::Alarm, format!("{}", index + 1));
        list(&mut page, &document.alarms.iter().enumerate().map(number).collect::<Vec<_>>());
    }
    let answer = |page: &mut Page| blocks(page, &document.answer);
    let mut rest = Page::new(look);
    for section in &document.sections {
        rest.section(&section.title, |page| blocks(page, &section.blocks));
    }
    if rest.lines() > SCREEN {
        page.append(rest);
        page.section("in short", answer);
    } else {
        page.gap();
        answer(&mut page);
        page.append(rest);
    }
    page.finish()
}

fn blocks(page: &mut Page, all: &[Block]) {
    for (index, block) in all.iter().enumerate().filter(|(_, block)| !block.is_empty()) {
        match block {
            Block::Title(title) => {
                // A title without contents is left out.
                let own = all[index + 1..].iter().take_while(|next| !matches!(next, Block::Title(_)));
                if own.into_iter().any(|next| !next.is_empty()) {
                    page.heading(title);
                }
            }
            Block::Words(tone, text) => page.paragraph(*tone, "", text),
            Block::Facts(all) => facts(page, all),
            Block::List(items) => list(page, items),
            Block::Table(table) => self::table(page, table),
            Block::Copy(lines) => lines.iter().for_each(|line| page.uncut(&format!("  {line}"))),
            Block::Folded(folded) if folded.shown == Shown::Everywhere => {
                page.heading(&folded.title);
                blocks(page, &folded.blocks);
            }
            Block::Beside(all) => blocks(page, all),
            Block::Picture(_) | Block::Rounds(_) | Block::Folded(_) => {}
        }
    }
}

fn facts(page: &mut Page, all: &[(String, String)]) {
    let room = all.iter().map(|(name, _)| width(name)).max().unwrap_or(0).min(NAME + 8);
    for (name, text) in all {
        page.paragraph(Tone::Plain, &format!("{}  ", left(name, room)), text);
    }
}

/// Marks, names and texts are aligned in columns.
fn list(page: &mut Page, items: &[Item]) {
    let widest = |of: fn(&Item) -> &str| match items.iter().map(|item| width(of(item))).max() {
        None | Some(0) => 0,
        Some(widest) => widest + 2,
    };
    let marks = widest(|item| &item.mark);
    let names = widest(|item| &item.name);
    let is_beside = names <= NAME + 2 && 2 + marks + names + TEXT <= page.width;
    let bullet = if marks + names == 0 && items.len() > 1 { "- " } else { "" };
    for item in items {
        let first = format!("  {bullet}{}", left(&item.mark, marks));
        let indent = " ".repeat(width(&first));
        match (item.name.is_empty(), is_beside) {
            (false, false) => {
                page.hanging(&[(item.tone, &first)], width(&first), Tone::Strong, &item.name);
                page.paragraph(Tone::Plain, &format!("{indent}  "), &item.text);
            }
            _ => page.hanging(
                &[(item.tone, &first), (Tone::Strong, &left(&item.name, names))],
                width(&first) + names,
                Tone::Plain,
                &item.text,
            ),
        }
        for detail in &item.details {
            match detail {
                Detail::Words(text) => page.paragraph(Tone::Faint, &format!("{indent}  "), text),
                // On one line, however long, so that it can be copied.
                Detail::Copy(what, line) => page.uncut(&format!("{indent}  {what}: {line}")),
            }
        }
    }
}

/// A column as displayed.
struct Laid {
    /// Its index in the table; none for a drawing.
    index: Option<usize>,
    kind: Cells,
    need: Need,
    /// Its heading, in lines unless it is wrapped.
    head: String,
    /// Its text in each row; values are already aligned.
    cells: Vec<String>,
    width: usize,
    /// The narrowest width that its words can be wrapped to.
    least: usize,
}

impl Laid {
    fn of(index: usize, table: &Table) -> Laid {
        let Column { name, kind, need } = table.columns[index].clone();
        let own: Vec<&Cell> = table.rows.iter().filter_map(|row| row.cells.get(index)).collect();
        let cells: Vec<String> = match kind {
            Cells::Measured => {
                let values = align_points(&own.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>());
                values.iter().zip(&own).map(|(text, cell)| format!("{text} {}", cell.interval)).collect()
            }
            _ => own.iter().map(|cell| cell.told(&cell.joined())).collect(),
        };
        let cells: Vec<String> = cells.iter().map(|text| text.trim_end().to_owned()).collect();
        let lines = || cells.iter().flat_map(|text| text.lines());
        let widest = lines().map(width).max().unwrap_or(0);
        let word = |text: &str| text.split(' ').map(width).max().unwrap_or(0);
        let words = lines().map(word).max().unwrap_or(0);
        let least = match kind {
            Cells::Words if index > 0 => words.max(NARROW).min(widest),
            Cells::Following => widest,
            Cells::Words => words.clamp(NARROW, LABEL).min(widest),
            _ => widest,
        };
        // What the rows are is said in one line, if it is no longer than a label.
        let head = if index == 0 && width(&name) <= LABEL { width(&name) } else { word(&name) };
        let (width, least) = (widest.max(head), least.max(word(&name)));
        Laid { index: Some(index), kind, need, head: name, cells, width, least }
    }

    /// The values of a column as dots and lines, if there is room.
    fn drawing(table: &Table, drawn: Drawn, room: usize) -> Option<Laid> {
        let own = |row: &'_ Row| row.cells.get(drawn.column).and_then(|cell| cell.measured.clone());
        let all: Vec<Option<Measured>> = table.rows.iter().map(own).collect();
        let ends = all.iter().flatten().flat_map(|one| {
            let (low, high) = one.interval.unwrap_or((one.value, one.value));
            [one.value, low, high].into_iter().chain(one.points.iter().copied())
        });
        if room < DRAWING.0 || all.iter().flatten().count() < 2 {
            return None;
        }
        let axis = Axis::over(ends, drawn.unit, room.min(DRAWING.1))?;
        let cell = |one: &Option<Measured>| {
            one.as_ref().map_or(String::new(), |one| axis.draw(one.value, one.interval, &one.points))
        };
        let (labels, ticks) = axis.drawn();
        Some(Laid {
            index: None,
            kind: Cells::Measured,
            need: Need::Always,
            head: format!("{labels}\n{ticks}"),
            cells: all.iter().map(cell).collect(),
            width: axis.columns(),
            least: axis.columns(),
        })
    }

    fn heads(&self) -> Vec<String> {
        match self.index {
            None => self.head.lines().map(str::to_owned).collect(),
            Some(_) => wrap("", &self.head, self.width),
        }
    }

    /// Its cell in this row, in lines. In the first column, continuation lines are indented, so that they do not
    /// look like rows.
    fn lines(&self, row: usize) -> Vec<String> {
        let text = self.cells.get(row).map_or("", String::as_str);
        let is_first = self.index == Some(0);
        // Consecutive rows about the same subject name it once.
        if is_first && row > 0 && self.cells.get(row - 1).is_some_and(|above| above == text) {
            return Vec::new();
        }
        let wrapped = |room: usize| text.lines().flat_map(|line| wrap("", line, room)).collect::<Vec<_>>();
        if matches!(self.kind, Cells::Measured | Cells::Following) {
            return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        }
        if !is_first || width(text) <= self.width {
            return wrapped(self.width);
        }
        let lines = wrapped(self.width - GAP).into_iter().enumerate();
        lines.map(|(at, line)| if at == 0 { line } else { format!("{}{line}", " ".repeat(GAP)) }).collect()
    }

    fn tone(&self, row: &Row) -> Tone {
        let cell = self.index.and_then(|index| row.cells.get(index));
        match cell.map_or(Tone::Plain, |cell| cell.tone) {
            Tone::Plain if self.index == Some(0) => Tone::Strong,
            tone => tone,
        }
    }

    /// A line of it, with the gap to the next column.
    fn placed(&self, line: Option<&String>) -> String {
        let text = line.map_or("", String::as_str);
        match self.kind {
            Cells::Numbers => right(text, self.width) + &" ".repeat(GAP),
            Cells::Following => text.to_owned(),
            _ => left(text, self.width + GAP),
        }
    }
}

/// The width of several columns.
fn taken(columns: &[Laid], of: fn(&Laid) -> usize) -> usize {
    columns.iter().map(|one| of(one) + GAP).sum::<usize>() - GAP
}

fn table(page: &mut Page, table: &Table) {
    page.gap();
    if !table.title.is_empty() {
        page.heading(&table.title);
    }
    let mut columns: Vec<Laid> = (0..table.columns.len()).map(|index| Laid::of(index, table)).collect();
    if taken(&columns, |one| one.width) > page.width {
        follow(&mut columns);
    } else if let Some(last) = columns.last_mut().filter(|last| last.kind == Cells::Following) {
        last.kind = Cells::Words;
    }
    // A drawing is worth more than optional columns.
    let drawing = if table.drawn.is_some() { DRAWING.0 + GAP } else { 0 };
    let wide = taken(&columns, |one| one.width) + drawing;
    let mut left_out = Vec::new();
    while taken(&columns, |one| one.width) + drawing > page.width
        && let Some(at) = columns.iter().rposition(|one| one.need == Need::WithRoom)
    {
        let removed = columns.remove(at);
        let name = removed.head.split(',').next().unwrap_or_default();
        left_out.splice(0..0, (!name.is_empty()).then(|| format!("`{name}`")));
    }
    // Columns that do not fit even with wrapped words are shown in parts, each of which begins with what names the rows.
    let names = naming(&columns, page.width);
    let mut part: Vec<Laid> = Vec::new();
    for column in columns {
        part.push(column);
        if part.len() > names + 1 && taken(&part, |one| one.least.min(one.width)) > page.width {
            let next = part.split_off(part.len() - 1);
            shown(page, table, part);
            part = (0..names).map(|index| Laid::of(index, table)).chain(next).collect();
        }
    }
    shown(page, table, part);
    for note in &table.notes {
        page.paragraph(Tone::Faint, "", note);
    }
    let left_out = joined(&left_out, "and");
    if !left_out.is_empty() && !page.left_out.contains(&left_out) {
        let shown = if wide > WIDEST { "--format html".into() } else { format!("COLUMNS={wide}") };
        page.outdented(Tone::Faint, &format!("No room for {left_out}: `{shown}` shows all."));
        page.left_out.push(left_out);
    }
    page.gap();
}

/// How many of the first columns tell the rows apart: at least one, and only words that leave half of the page to the rest.
fn naming(columns: &[Laid], page: usize) -> usize {
    let rows = columns.iter().map(|one| one.cells.len()).max().unwrap_or(0);
    let tells_apart = |count: &usize| {
        let name =
            |row: usize| columns[..*count].iter().map(move |one| one.cells.get(row)).collect::<Vec<_>>();
        (0..rows).all(|row| (0..row).all(|other| name(row) != name(other)))
    };
    let is_name = |(at, one): &(usize, &Laid)| one.index == Some(*at) && one.kind == Cells::Words;
    let most = columns.iter().enumerate().take_while(is_name).count();
    let fits = |count: &usize| taken(&columns[..*count], |one| one.least.min(one.width)) <= page / 2;
    (1..=most).find(tells_apart).filter(fits).unwrap_or(1)
}

/// Words that follow the last number of their row need only the room that they have not there.
fn follow(columns: &mut [Laid]) {
    let Some((last, before)) = columns.split_last_mut().filter(|(last, _)| last.kind == Cells::Following)
    else {
        return;
    };
    let needed = |(row, text): (usize, &String)| {
        let is_empty =
            |one: &&Laid| one.kind == Cells::Numbers && one.cells.get(row).is_none_or(String::is_empty);
        let free: usize = before.iter().rev().take_while(is_empty).map(|one| one.width + GAP).sum();
        width(text).saturating_sub(free)
    };
    last.width = last.cells.iter().enumerate().map(needed).max().unwrap_or(0);
    last.least = last.width;
}

/// Makes columns of words as narrow as the page needs, the widest first.
fn narrow(page: usize, part: &mut [Laid]) {
    while let over @ 1.. = taken(part, |one| one.width).saturating_sub(page) {
        let can = part.iter_mut().filter(|one| one.width > one.least);
        let Some(widest) = can.max_by_key(|one| one.width) else { break };
        widest.width -= over.min(widest.width - widest.least).min(8);
    }
    // A broken label reads better than a cut number.
    let over = taken(part, |one| one.width).saturating_sub(page);
    if let Some(first) = part.first_mut().filter(|one| one.kind == Cells::Words) {
        first.width -= over.min(first.width.saturating_sub(NARROW));
    }
}

/// Makes room for headings in one line, where there is enough for all of them.
fn widen(page: usize, part: &mut [Laid]) {
    let with_head = |one: &Laid| one.width.max(width(&one.head));
    if taken(part, with_head) <= page {
        part.iter_mut().for_each(|one| one.width = with_head(one));
    }
}

/// Displays some columns of a table that fit next to each other.
fn shown(page: &mut Page, table: &Table, mut part: Vec<Laid>) {
    narrow(page.width, &mut part);
    if table.drawn.is_none() {
        widen(page.width, &mut part);
    }
    let room = page.width.saturating_sub(taken(&part, |one| one.width) + GAP);
    if let Some(drawn) = table.drawn
        && let Some(at) = part.iter().position(|one| one.index == Some(drawn.column))
    {
        let drawing = Laid::drawing(table, drawn, room);
        part.splice(at + 1..at + 1, drawing);
    }
    let heads: Vec<Vec<String>> = part.iter().map(Laid::heads).collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        // Short headings are right above their column.
        let at = |head: &Vec<String>| line.checked_sub(height - head.len());
        let line = |(one, head): (&Laid, &Vec<String>)| one.placed(at(head).and_then(|at| head.get(at)));
        page.line(&[(Tone::Faint, &part.iter().zip(&heads).map(line).collect::<String>())]);
    }
    for (index, row) in table.rows.iter().enumerate() {
        let cells: Vec<Vec<String>> = part.iter().map(|one| one.lines(index)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(1).max(1) {
            let piece = |(one, lines): (&Laid, &Vec<String>)| (one.tone(row), one.placed(lines.get(line)));
            let mut pieces: Vec<(Tone, String)> = part.iter().zip(&cells).map(piece).collect();
            if part.last().is_some_and(|one| one.kind == Cells::Following)
                && let Some(words) = pieces.pop()
            {
                let is_empty = |at: usize| part[at].kind == Cells::Numbers && cells[at].is_empty();
                while !pieces.is_empty() && is_empty(pieces.len() - 1) {
                    pieces.pop();
                }
                pieces.push(words);
            }
            page.line(&pieces.iter().map(|(tone, text)| (*tone, text.as_str())).collect::<Vec<_>>());
        }
    }
}
