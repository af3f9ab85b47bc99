//! One line per sample and metric, for other programs: values in base units with full precision. The columns are
//! stable. A missing number has a line without a value, but with the reason; a metric that a subject cannot have
//! has no line.
//!
//! Rounds and positions count from 1, rounds within their phase. A cell without a sample has one line without
//! metric and value, but with the class and the reason. The class of a value is how safe what was written is, or where an
//! inner container was: `inside`, `sibling`, or `refused`. Quoting follows RFC 4180, with line feeds as line ends.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::text::clean;
use crate::experiment::nested::REFUSED_WAY;
use crate::outcome::Outcome;
use crate::plan::Cell;
use crate::record::{Recorded, Row};

/// The columns.
pub const COLUMNS: &str = "run,host,experiment,setting,subject,label,metric,unit,phase,round,position,predecessor,started,value,\
    outcome,class,reason,flags";

/// The first line.
pub fn header(_: &Recorded) -> String {
    format!("{COLUMNS}\n")
}

/// Appends the lines of one sample.
pub fn lines(run: &Recorded, row: &Row<'_>, out: &mut String) {
    let Some(cell) = run.plan.cells.get(row.cell) else { return };
    let line = Line::of(run, row, cell);
    match row.outcome.as_ref() {
        Outcome::Measured(sample) => {
            for (index, metric) in run.plan.metrics(cell).iter().enumerate() {
                let value = metric.value(sample).filter(|value| value.is_finite());
                // The shortest text that parses as the same number.
                let shown = value.map(|value| value.to_string()).unwrap_or_default();
                let missing = sample.missing.iter().find(|(name, _)| name == metric.name && value.is_none());
                let class = (cell.asks().class)(&cell.setting, sample, facts(run, row), metric.name);
                // A metric that this kind of subject cannot have is not missing; that what is asked did not happen is an answer.
                if value.is_none() && missing.is_none() && (index > 0 || class != Some(REFUSED_WAY)) {
                    continue;
                }
                let (reason, class) = (missing.map_or("", |(_, why)| why), class.unwrap_or(""));

                line.append([metric.name, metric.unit.name()], &shown, ["measured", class, reason], out);
            }
        }
        Outcome::Skipped(reason) => line.append(["", ""], "", ["skipped", "", reason], out),
        Outcome::Failed(failure) => {
            let reason = match &failure.words {
                Some(words) => format!("{}: {words}", failure.reason),
                None => failure.reason.clone(),
            };
            line.append(["", ""], "", ["failed", failure.class.name(), &reason], out);
        }
    }
}

/// What was read back for a sample; for a warm-up, which is not kept, what was for the first sample of its cell.
fn facts<'a>(run: &'a Recorded, row: &Row<'_>) -> &'a [(String, String)] {
    let kept = run.series.get(row.cell).map_or(&[][..], |series| &series.treatments);
    let own = row.round.checked_sub(run.plan.warmups).and_then(|counted| *kept.get(counted)?);
    let number = own.or_else(|| kept.iter().flatten().next().copied());
    number.and_then(|number| run.treatments.get(number)).map_or(&[], Vec::as_slice)
}

/// The common fields of the lines of one sample.
struct Line {
    /// `run` to `label`.
    subject: String,
    /// `phase` to `started`.
    place: String,
    flags: &'static str,
}

impl Line {
    fn of(run: &Recorded, row: &Row<'_>, cell: &Cell) -> Line {
        let entry = &run.plan.subjects[cell.subject];
        let (phase, round) = match row.round.checked_sub(run.plan.warmups) {
            Some(counted) => ("measure", counted + 1),
            None => ("warmup", row.round + 1),
        };
        let before = row.predecessor.and_then(|cell| run.plan.cells.get(cell));
        let before = before.map_or("", |cell| run.plan.subjects[cell.subject].label.as_str());
        Line {
            subject: joined(&[
                &harmless(&clean(&run.run)),
                &harmless(&clean(&run.environment.host)),
                cell.experiment,
                &visible(&cell.setting.to_string()),
                &harmless(&clean(&entry.spec.to_string())),
                &harmless(&clean(&entry.label)),
            ]),
            place: joined(&[
                phase,
                &round.to_string(),
                &row.position.saturating_add(1).to_string(),
                &harmless(&clean(before)),
                &instant(row.started),
            ]),
            flags: flags(run, row.round),
        }
    }

    fn append(&self, metric: [&str; 2], value: &str, outcome: [&str; 3], out: &mut String) {
        let [outcome, class, reason] = outcome;
        let reason = harmless(&clean(reason));
        let rest = joined(&[value, outcome, class, &reason, self.flags]);
        let _ = writeln!(out, "{},{},{},{rest}", self.subject, joined(&metric), self.place);
    }
}

/// `disturbed` for rounds in which the machine was also busy with other things, `incomplete` for unfinished rounds,
/// which do not count.
fn flags(run: &Recorded, round: usize) -> &'static str {
    match run.contexts.get(round) {
        Some(Some(context)) if context.disturbed.is_some() => "disturbed",
        Some(Some(_)) => "",
        _ => "incomplete",
    }
}

/// Fields separated by commas.
fn joined(fields: &[&str]) -> String {
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",")
}

/// A field, in quotes if needed.
fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}

/// A setting without control characters; its command may have several lines.
fn visible(setting: &str) -> String {
    let one =
        |c: char| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    setting.chars().map(one).collect()
}

/// A text from outside that no spreadsheet reads as a formula.
pub fn harmless(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() }
}

/// Nanoseconds since 1970 as RFC 3339 in UTC.
pub fn instant(nanoseconds: u64) -> String {
    let instant = jiff::Timestamp::from_nanosecond(nanoseconds.into()).expect("years after 2554 do not fit");
    format!("{instant:.9}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instants_are_rfc_3339() {
        assert_eq!(instant(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(instant(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(instant(1_763_705_739_123_456_789), "2025-11-21T06:15:39.123456789Z");
        assert_eq!(instant(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn text_is_no_formula() {
        assert_eq!(harmless("=cmd()"), "'=cmd()");
        assert_eq!(harmless("a=b"), "a=b");
    }

    /// Splits a line as in RFC 4180.
    fn fields(line: &str) -> Vec<String> {
        let mut fields = vec![String::new()];
        let mut quoted = false;
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if quoted && letters.next_if_eq(&'"').is_some() => fields.last_mut().unwrap().push('"'),
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                other => fields.last_mut().unwrap().push(other),
            }
        }
        fields
    }

    proptest! {
        #[test]
        fn fields_come_back_as_they_went(texts in prop::collection::vec("(\\PC|[\",\n\r]){0,12}", 1..6)) {
            let line = joined(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(fields(&line), texts);
        }
    }
}
