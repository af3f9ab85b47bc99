//! Tables as the page shows them: texts, what to sort them by, and whose they are. One shape for all, so that
//! one template and one script serve them.

use crate::report::model::{Change, Experiment, Value};
use crate::report::text::{align_points, bound, common_scale, decimals, number, with_interval};
use crate::stats::Estimate;
use crate::units::{Scale, Unit};
use crate::verdict::{Kind, Verdict};

/// A table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// What it shows.
    pub caption: String,
    /// What a reader must know to read it.
    pub notes: Vec<String>,
    /// The heads of its columns.
    pub heads: Vec<Head>,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// The head of a column.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub name: String,
    /// How its cells stand: `text`, `number` or `range`.
    pub class: &'static str,
}

/// A line; its first cell says what it is about.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The labels of the subjects that it is about: it is hidden with any of them.
    pub subjects: Vec<String>,
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Default, Clone)]
pub(crate) struct Cell {
    pub text: String,
    /// Below the text, smaller.
    pub detail: String,
    /// What a column is sorted by, where the text does not do.
    pub key: Option<f64>,
    /// What it is for the eye, beside what the words say.
    pub tone: &'static str,
    /// The suspect that says why, counted from 1.
    pub suspect: Option<usize>,
}

impl Table {
    /// Whether there is anything to show.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl Head {
    pub fn text(name: impl Into<String>) -> Head {
        Head { name: name.into(), class: "text" }
    }

    pub fn number(name: impl Into<String>) -> Head {
        Head { name: name.into(), class: "number" }
    }

    /// A column of several lines each.
    pub fn list(name: impl Into<String>) -> Head {
        Head { name: name.into(), class: "text list" }
    }

    /// What stands right of a number and belongs to it.
    pub fn range(name: impl Into<String>) -> Head {
        Head { name: name.into(), class: "range" }
    }
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// Nothing, with the reason.
    pub fn nothing(why: impl Into<String>) -> Cell {
        Cell { text: why.into(), tone: "faint", ..Cell::default() }
    }

    /// What is spelled as a person would type it.
    pub fn code(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: "code", ..Cell::default() }
    }

    pub fn key(self, key: f64) -> Cell {
        Cell { key: Some(key).filter(|key| key.is_finite()), ..self }
    }

    /// A value with its unit, its interval below it.
    pub fn estimate(unit: Unit, one: &Estimate) -> Cell {
        let interval = one.interval.map(|ends| (ends.low, ends.high));
        let shown = with_interval(unit, one.value, interval);
        let (text, detail) = match shown.split_once(" [") {
            Some((text, detail)) => (text.to_owned(), format!("[{detail}")),
            None => (shown, String::new()),
        };
        Cell { text, detail, ..Cell::default() }.key(one.value)
    }

    /// Its text in parts between which a line may end: what a person would type has no spaces.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let may_end = self.tone == "code" || !self.text.contains(' ');
        self.text.split_inclusive(move |letter| may_end && ",;:/".contains(letter))
    }

    /// A verdict in its word.
    pub fn verdict(verdict: &Verdict, kind: Kind) -> Cell {
        let cell = Cell { tone: tone(kind), ..Cell::text(kind.word()) };
        match verdict {
            Verdict::Suspect(index) => Cell { suspect: Some(index + 1), ..cell },
            _ => cell,
        }
    }

    /// The verdict of a change, and whether noise hides it.
    pub fn change(change: &Change) -> Cell {
        let cell = Cell::verdict(&change.verdict, change.kind);
        match change.hidden_by_noise {
            Some(_) => Cell { tone: "open", detail: "within noise".into(), ..cell },
            None => cell,
        }
    }
}

/// What a verdict is for the eye.
pub(crate) fn tone(kind: Kind) -> &'static str {
    match kind {
        Kind::Slower | Kind::Worse => "worse",
        Kind::Faster | Kind::Better => "better",
        Kind::More | Kind::Less => "plain",
        Kind::Same => "same",
        Kind::Machine | Kind::Mixed | Kind::Undecided | Kind::TooFew | Kind::NoData => "open",
        Kind::Suspect => "alarm",
        Kind::Context => "faint",
    }
}

/// A column of medians and a column of their intervals, all in one unit that stands in the head.
pub(super) struct Medians {
    pub unit: String,
    pub cells: Vec<[Cell; 2]>,
}

impl Medians {
    pub fn of(unit: Unit, values: &[Option<&Value>]) -> Medians {
        let estimates: Vec<_> = values.iter().map(|value| value.map(|value| value.median)).collect();
        Medians::of_estimates(unit, &estimates)
    }

    pub fn of_estimates(unit: Unit, values: &[Option<Estimate>]) -> Medians {
        let scale = common_scale(unit, values.iter().flatten().map(|one| one.value.abs()));
        let shown = |one: &Estimate| {
            let value = one.value / scale.divisor;
            number(value, decimals(value))
        };
        let texts: Vec<String> = values.iter().map(|one| one.as_ref().map_or(String::new(), shown)).collect();
        let cells = values.iter().zip(aligned(&texts)).map(|(one, text)| match one {
            Some(one) => [Cell::text(text).key(one.value), interval(one, scale)],
            None => [Cell::nothing("–"), Cell::default()],
        });
        Medians { unit: scale.symbol.to_owned(), cells: cells.collect() }
    }

    /// The name of a column with its unit.
    pub fn named(&self, name: &str) -> String {
        if self.unit.is_empty() { name.to_owned() } else { format!("{name}, {}", self.unit) }
    }
}

/// The ends of an interval with as many decimals as its median.
fn interval(one: &Estimate, scale: Scale) -> Cell {
    let Some(ends) = one.interval else { return Cell::nothing("none yet").key(f64::NAN) };
    let decimals = decimals(one.value / scale.divisor);
    let shown = |value: f64| bound(value / scale.divisor, decimals);
    Cell::text(format!("{} to {}", shown(ends.low), shown(ends.high))).key(ends.low)
}

/// Numbers with their points below each other where digits are equally wide: what is missing behind the point is
/// made up by spaces as wide as a digit and as a point.
pub(super) fn aligned(numbers: &[String]) -> Vec<String> {
    let pad = |text: String| {
        let digits = text.trim_start();
        let shown = digits.trim_end();
        let mut missing = digits.len() - shown.len();
        let mut padded = shown.to_owned();
        if missing > 0 && !shown.contains('.') && !shown.is_empty() {
            padded.push('\u{2008}');
            missing -= 1;
        }
        if !shown.is_empty() {
            padded.extend(std::iter::repeat_n('\u{2007}', missing));
        }
        padded
    };
    align_points(numbers).into_iter().map(pad).collect()
}

/// The name of a setting for a column or a caption.
pub(super) fn setting_name(experiment: &Experiment, setting: usize) -> &str {
    experiment.settings.get(setting).map_or("", |one| one.text.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_below_each_other() {
        let texts = ["220", "21.6", "0.812", ""].map(str::to_owned);
        let padded = aligned(&texts);
        assert_eq!(padded, ["220\u{2008}\u{2007}\u{2007}\u{2007}", "21.6\u{2007}\u{2007}", "0.812", ""]);
        assert_eq!(aligned(&["7".to_owned(), "12".to_owned()]), ["7", "12"]);
    }
}
