//! Tables of a comparison as texts, one for each metric: what stands in which column is settled here, once for the
//! terminal, the page and Markdown.

use super::lines::Scale;
use super::{Experiment, Facts, Line, Metric, words};
use crate::report::text::{estimated, in_percent};
use crate::units::counted;
use crate::verdict::Kind;

/// A metric with a row for each subject and setting.
pub(super) struct Table<'a> {
    /// The metric.
    pub metric: &'a Metric,
    /// The only setting of all its rows, where there is no other; the rows do not say it then.
    pub given: Option<&'a str>,
    /// By subject, then by setting; after several settings what holds over them together.
    pub rows: Vec<Row<'a>>,
}

/// A row.
pub(super) struct Row<'a> {
    /// The line that it belongs to.
    pub line: &'a Line,
    /// Which part of it.
    pub part: Part,
    /// The values of the setting, or `together`; empty where all rows have the same.
    pub setting: &'a str,
    /// The medians, old and new, with their texts.
    pub medians: [Option<(f64, String)>; 2],
    /// New − old in the unit of the metric, with its size.
    pub difference: Option<(f64, String)>,
    /// The change: new ÷ old in percent, else what it is told in.
    pub change: Option<(f64, String)>,
    /// What was decided, on the row that says it of its line.
    pub verdict: Option<Kind>,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// One setting, the first of its line.
    First,
    /// A further setting.
    Further,
    /// All settings together.
    Together,
}

/// The tables of these metrics that have rows.
pub(super) fn tables(experiment: &Experiment, is_wanted: impl Fn(&Metric) -> bool) -> Vec<Table<'_>> {
    let wanted = experiment.metrics.iter().enumerate().filter(|(_, metric)| is_wanted(metric));
    let of = |(index, metric)| {
        let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == index).collect();
        let given = one_setting(&lines);
        let rows = lines.into_iter().flat_map(|line| of_line(metric, line, given)).collect();
        Table { metric, given: given.filter(|text| !text.is_empty()), rows }
    };
    wanted.map(of).filter(|table| !table.rows.is_empty()).collect()
}

/// The setting of all lines, where they have one and the same.
pub(super) fn one_setting<'a>(lines: &[&'a Line]) -> Option<&'a str> {
    let first = lines.first()?.settings.first()?;
    let is_only = |line: &&Line| line.settings.len() == 1 && line.settings[0].text == first.text;
    lines.iter().all(is_only).then_some(first.text.as_str())
}

fn of_line<'a>(metric: &Metric, line: &'a Line, given: Option<&str>) -> Vec<Row<'a>> {
    let unit = metric.unit;
    let is_whole = line.settings.len() == 1;
    let kind = Some(line.verdict.kind()).filter(|kind| *kind != Kind::Context);
    let in_setting = |(index, one): (usize, &'a super::InSetting)| Row {
        line,
        part: if index == 0 { Part::First } else { Part::Further },
        setting: if given.is_some() { "" } else { &one.values },
        medians: one.medians.map(|median| median.map(|value| (value, unit.format(value).replace('-', "−")))),
        difference: one.difference.map(|found| (found.value, estimated(unit, &found))),
        change: one.ratio.map(|ratio| (ratio.value - 1.0, in_percent(&ratio))),
        verdict: kind.filter(|_| is_whole),
    };
    let mut rows: Vec<Row<'a>> = line.settings.iter().enumerate().map(in_setting).collect();
    if let Some(kind) = kind.filter(|_| !is_whole) {
        let of_ratio = |scale| if scale == Scale::Ratio { 1.0 } else { 0.0 };
        rows.push(Row {
            line,
            part: Part::Together,
            setting: "together",
            medians: [None, None],
            difference: None,
            change: line
                .together
                .map(|all| (all.change.value - of_ratio(all.scale), words::change(all.scale, &all.change))),
            verdict: Some(kind),
        });
    }
    rows
}

impl Facts {
    /// The run in short, piece by piece: where it lies, its name, when it began, its rounds, its tags.
    pub(super) fn in_short(&self) -> Vec<String> {
        let rounds = match self.rounds {
            (have, planned) if have == planned => counted(planned, "round"),
            (have, planned) => format!("{have} of {}", counted(planned, "round")),
        };
        let tags = self.tags.iter().map(|(key, value)| format!("{key}={value}"));
        let own = [self.place.clone(), format!("run {}", self.run), to_the_second(&self.started), rounds];
        own.into_iter().chain(tags).collect()
    }
}

/// A moment without what is smaller than a second.
fn to_the_second(moment: &str) -> String {
    let Some((seconds, rest)) = moment.split_once('.') else { return moment.to_owned() };
    let zone = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    format!("{seconds}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_end_with_their_second_and_their_zone() {
        assert_eq!(to_the_second("2026-11-22T04:29:14.746136339Z"), "2026-11-22T04:29:14Z");
        assert_eq!(to_the_second("2026-11-22T04:29:14Z"), "2026-11-22T04:29:14Z");
        assert_eq!(to_the_second("2026-11-22T04:29:14.7+01:00"), "2026-11-22T04:29:14+01:00");
    }
}
