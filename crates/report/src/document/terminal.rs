//! A document for a person at a terminal, in 80 columns or more: what must not be believed, what it comes to, and
//! everything behind it. What it comes to stands first; where more follows than fits a screen it stands last, where it
//! is seen.
//!
//! It is text, for whoever writes it to where it belongs: no terminal is asked anything here.

use super::axis::Axis;
use super::page::Page;
use super::{Block, Cell, Cells, Column, Detail, Document, Item, Look, Need, Shown, Table, Tone};
use crate::report::text::{align_points, left, right, width, wrap};

/// Lines that are in sight at once.
const SCREEN: usize = 40;
/// Between two columns.
const GAP: usize = 2;
/// A column of words is not narrower than this, unless its words are.
const NARROW: usize = 16;
/// What the first column says is not broken within a word that is no wider: a part of a label reads like another one.
const LABEL: usize = 40;
/// A drawing in less tells nothing; in more, nothing more.
const DRAWING: (usize, usize) = (12, 60);
/// The longest name beside which the words of a point stand; behind a longer one they stand below it.
const NAME: usize = 26;

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
                // A title above nothing is left out.
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

/// Marks and names stand below each other, and so do the words behind them.
fn list(page: &mut Page, items: &[Item]) {
    let widest = |of: fn(&Item) -> &str| match items.iter().map(|item| width(of(item))).max() {
        None | Some(0) => 0,
        Some(widest) => widest + 2,
    };
    let marks = widest(|item| &item.mark);
    let names = widest(|item| &item.name);
    let is_beside = names <= NAME + 2;
    let bullet = if marks + names == 0 && items.len() > 1 { "- " } else { "" };
    for item in items {
        let first = format!("  {bullet}{}", left(&item.mark, marks));
        let indent = " ".repeat(width(&first));
        match (item.name.is_empty(), is_beside) {
            (false, false) => {
                page.hanging(&[(item.tone, &first)], Tone::Strong, &item.name);
                page.paragraph(Tone::Plain, &format!("{indent}  "), &item.text);
            }
            _ => page.hanging(
                &[(item.tone, &first), (Tone::Strong, &left(&item.name, names))],
                Tone::Plain,
                &item.text,
            ),
        }
        for detail in &item.details {
            match detail {
                Detail::Words(text) => page.paragraph(Tone::Faint, &format!("{indent}  "), text),
                // In one line, however long, so that it can be copied.
                Detail::Copy(what, line) => page.uncut(&format!("{indent}  {what}: {line}")),
            }
        }
    }
}

/// A column as it is shown.
struct Laid<'a> {
    column: &'a Column,
    /// By row: what stands in it; a value is already in line with those above and below it.
    cells: Vec<String>,
    width: usize,
    /// The least that its words can be wrapped into.
    least: usize,
}

impl Laid<'_> {
    fn of<'a>(index: usize, column: &'a Column, table: &'a Table) -> Laid<'a> {
        let own: Vec<&Cell> = table.rows.iter().filter_map(|row| row.cells.get(index)).collect();
        let cells: Vec<String> = match column.kind {
            Cells::Measured => {
                let values = align_points(&own.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>());
                values.iter().zip(&own).map(|(text, cell)| format!("{text} {}", cell.interval)).collect()
            }
            _ => own.iter().map(|cell| told(cell)).collect(),
        };
        let cells: Vec<String> = cells.iter().map(|text| text.trim_end().to_owned()).collect();
        let lines = || cells.iter().flat_map(|text| text.lines());
        let widest = lines().map(width).max().unwrap_or(0);
        let word = |text: &str| text.split(' ').map(width).max().unwrap_or(0);
        let head = word(&column.name);
        let least = match column.kind {
            Cells::Words if index > 0 => lines().map(word).max().unwrap_or(0).max(NARROW).min(widest),
            Cells::Words => lines().map(word).max().unwrap_or(0).clamp(NARROW, LABEL).min(widest),
            _ => widest,
        };
        Laid { column, width: widest.max(head), least: least.max(head), cells }
    }

    /// Its cell in this row, in lines; in the first column those that go on stand farther in, so that none reads like a
    /// row of its own.
    fn lines(&self, row: usize, index: usize) -> Vec<String> {
        let text = self.cells.get(row).map_or("", String::as_str);
        // Who it is about is told once of rows below each other.
        if index == 0 && row > 0 && self.cells.get(row - 1).is_some_and(|above| above == text) {
            return Vec::new();
        }
        let wrapped = |room: usize| text.lines().flat_map(|line| wrap("", line, room)).collect::<Vec<_>>();
        match (self.column.kind, index) {
            (Cells::Measured, _) => vec![text.to_owned()],
            (_, 0) if width(text) > self.width => {
                let lines = wrapped(self.width - GAP).into_iter().enumerate();
                lines
                    .map(|(at, line)| if at == 0 { line } else { format!("{}{line}", " ".repeat(GAP)) })
                    .collect()
            }
            _ => wrapped(self.width),
        }
    }

    fn placed(&self, text: &str) -> String {
        match self.column.kind {
            Cells::Numbers => right(text, self.width),
            _ => left(text, self.width),
        }
    }
}

/// A cell in one line, with everything that it says.
fn told(cell: &Cell) -> String {
    let alarm = cell.alarm.map_or(String::new(), |number| format!(" {number}"));
    let detail = if cell.detail.is_empty() { String::new() } else { format!(" ({})", cell.detail) };
    format!("{}{alarm}{detail}", cell.joined())
}

fn table(page: &mut Page, table: &Table) {
    page.gap();
    if !table.title.is_empty() {
        page.heading(&table.title);
    }
    let mut columns: Vec<(usize, Laid<'_>)> = table
        .columns
        .iter()
        .enumerate()
        .map(|(index, column)| (index, Laid::of(index, column, table)))
        .collect();
    let taken =
        |columns: &[(usize, Laid<'_>)]| columns.iter().map(|(_, one)| one.width + GAP).sum::<usize>() - GAP;
    // A drawing tells more than what can be left out.
    let drawing = if table.drawn.is_some() { DRAWING.0 + GAP } else { 0 };
    while taken(&columns) + drawing > page.width
        && let Some(at) = columns.iter().rposition(|(_, one)| one.column.need == Need::WithRoom)
    {
        columns.remove(at);
    }
    // What does not fit beside each other even with its words wrapped is shown in parts that each begin with the first.
    let room = page.width;
    let fits = |columns: &[(usize, Laid<'_>)]| {
        columns.iter().map(|(_, one)| one.least.min(one.width) + GAP).sum::<usize>() - GAP <= room
    };
    let mut rest = columns.into_iter();
    let Some(first) = rest.next() else { return };
    let mut part = vec![first];
    for column in rest {
        part.push(column);
        if part.len() > 2 && !fits(&part) {
            let column = part.pop().expect("it was pushed");
            let again = Laid::of(part[0].0, part[0].1.column, table);
            shown(page, table, &mut part);
            part = vec![(0, again), column];
        }
    }
    shown(page, table, &mut part);
    for note in &table.notes {
        page.paragraph(Tone::Faint, "", note);
    }
    page.gap();
}

/// Makes columns of words as narrow as the page needs, the widest first.
fn narrow(page: usize, part: &mut [(usize, Laid<'_>)]) {
    let taken = |part: &[(usize, Laid<'_>)]| part.iter().map(|(_, one)| one.width + GAP).sum::<usize>() - GAP;
    while taken(part) > page {
        let over = taken(part) - page;
        let can = part.iter_mut().filter(|(_, one)| one.width > one.least).max_by_key(|(_, one)| one.width);
        let Some((_, widest)) = can else { break };
        widest.width -= over.min(widest.width - widest.least).min(8);
    }
}

/// Some columns of a table that have room beside each other.
fn shown(page: &mut Page, table: &Table, part: &mut Vec<(usize, Laid<'_>)>) {
    narrow(page.width, part);
    let taken: usize = part.iter().map(|(_, one)| one.width + GAP).sum();
    let drawn = table.drawn.filter(|drawn| part.iter().any(|(index, _)| *index == drawn.column));
    let room = page.width.saturating_sub(taken);
    let measured = |row: &super::Row| row.cells.get(drawn?.column)?.measured.clone();
    let all = || table.rows.iter().filter_map(measured);
    let ends = all().flat_map(|one| {
        let (low, high) = one.interval.unwrap_or((one.value, one.value));
        [one.value, low, high].into_iter().chain(one.points)
    });
    let axis = drawn.filter(|_| room >= DRAWING.0 && all().count() > 1);
    let axis = axis.and_then(|drawn| Axis::over(ends, drawn.unit, room.min(DRAWING.1)));
    let (labels, ticks) = axis.as_ref().map(Axis::drawn).unzip();
    let heads: Vec<Vec<String>> = part
        .iter()
        .map(|(index, one)| {
            let mut lines = wrap("", &one.column.name, one.width);
            if axis.is_some() && drawn.is_some_and(|drawn| drawn.column == *index) && lines.len() < 2 {
                lines.push(String::new());
            }
            lines
        })
        .collect();
    let height = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..height {
        let mut text = String::new();
        for ((index, one), head) in part.iter().zip(&heads) {
            // Short heads stand right above their column.
            let at = line.checked_sub(height - head.len());
            text += &one.placed(at.map_or("", |at| head[at].as_str()));
            text += &" ".repeat(GAP);
            if drawn.is_some_and(|drawn| drawn.column == *index)
                && let (Some(labels), Some(ticks)) = (&labels, &ticks)
            {
                text += match height - line {
                    1 => ticks,
                    2 => labels,
                    _ => "",
                };
                text += &" ".repeat(if height - line > 2 { width(ticks) + GAP } else { GAP });
            }
        }
        page.line(&[(Tone::Faint, &text)]);
    }
    for (index, row) in table.rows.iter().enumerate() {
        let cells: Vec<Vec<String>> = part.iter().map(|(column, one)| one.lines(index, *column)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
        for line in 0..height {
            let mut pieces: Vec<(Tone, String)> = Vec::new();
            for ((column, one), lines) in part.iter().zip(&cells) {
                let tone = row.cells.get(*column).map_or(Tone::Plain, |cell| cell.tone);
                let tone = if *column == 0 && tone == Tone::Plain { Tone::Strong } else { tone };
                let text = one.placed(lines.get(line).map_or("", String::as_str));
                pieces.push((tone, text));
                pieces.push((Tone::Plain, " ".repeat(GAP)));
                if drawn.is_some_and(|drawn| drawn.column == *column)
                    && let Some(axis) = &axis
                {
                    let own = measured(row).filter(|_| line == 0);
                    let text = own.map_or(left("", axis.columns()), |own| {
                        axis.draw(own.value, own.interval, &own.points)
                    });
                    pieces.push((Tone::Plain, text + &" ".repeat(GAP)));
                }
            }
            page.line(&pieces.iter().map(|(tone, text)| (*tone, text.as_str())).collect::<Vec<_>>());
        }
    }
}
