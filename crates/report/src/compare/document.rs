//! A comparison for people: what it comes to, what differs around it, and a table for each metric.

use serde::Serialize;

use super::lines::Scale;
use super::lines::one_setting;
use super::summary::in_words;
use super::{Comparison, Experiment, Facts, InSetting, Line, Metric, picture, words};
use crate::document::{Block, Cell, Column, Document, Findings, Item, Look, Section, Table, Tone};
use crate::report::text::{capital, in_percent, percent, with_interval};
use crate::units::counted;
use crate::verdict::Kind;

const SIDES: [&str; 2] = ["old", "new"];

impl Findings for Comparison {
    const SCHEMA: &'static str = "dunnage-compare/2";

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, _: &Look) -> Document {
        let mut document = Document::titled("What changed from old to new");
        for (side, runs) in SIDES.into_iter().zip(&self.sides) {
            runs.iter().for_each(|run| document.fact(side, &run.in_short()));
        }
        let level = format!("{:.4}", (1.0 - self.level.get()) * 100.0);
        let level = level.trim_end_matches('0').trim_end_matches('.');
        document.fact(
            "how",
            &format!("{} at {level} %, so that all together hold at 95 %", counted(self.family, "interval")),
        );
        for line in self.experiments.iter().flat_map(|one| &one.lines) {
            if !document.subjects.contains(&line.label) {
                document.subjects.push(line.label.clone());
            }
        }
        let notices = self.notices.iter().map(|notice| Item::of(capital(notice)).marked(Tone::Open, "!"));
        document.answer.push(Block::List(notices.collect()));
        document.answer.push(Block::sentences(self.summary.iter().map(|text| capital(text))));
        let mut pictures: Vec<_> =
            self.experiments.iter().map(|one| picture::pictures(one).into_iter()).collect();
        for (experiment, pictures) in self.experiments.iter().zip(&mut pictures) {
            let first = pictures.next().map(Block::picture);
            document
                .answer
                .push(Block::Beside(first.into_iter().chain([Block::Table(glance(experiment))]).collect()));
        }
        document.answer.push(Block::note(
            "Slower and faster: over all settings of the metric together, the whole interval lies beyond zero, the change \
             matters, and neither what bare and floor show nor what a run differs from itself explains it. Machine changed: \
             bare or floor changed too, so it is not put down to the subject. Same: the whole interval lies within what \
             does not matter.",
        ));
        document.sections.push(Section {
            name: "around".into(),
            title: "What differs around them".into(),
            blocks: self.around(),
        });
        for (experiment, pictures) in self.experiments.iter().zip(pictures) {
            document.sections.push(section(experiment, pictures.map(Block::picture).collect()));
        }
        document
    }
}

impl Comparison {
    fn around(&self) -> Vec<Block> {
        let mut table = Table::of("", ["what", "kind", "of", "old", "new"].map(Column::words).into());
        for one in &self.differences {
            let tone = if one.meaning.is_not_comparable() { Tone::Alarm } else { Tone::Plain };
            let [what, of, old, new] =
                [&one.what, &one.subjects.join(", "), &one.old, &one.new].map(Cell::words);
            table.row(&[], vec![what, Cell::words(one.meaning.name()).tone(tone), of, old, new]);
        }
        let none = Block::words("Nothing that was recorded: machine, probe, programs, daemons.");
        let alone = SIDES.into_iter().zip(&self.alone).filter(|(_, alone)| !alone.is_empty());
        let alone = alone.map(|(side, all)| Item::of(all.join("; ")).named(format!("only {side}")));
        vec![if table.rows.is_empty() { none } else { Block::Table(table) }, Block::List(alone.collect())]
    }
}

fn section(experiment: &Experiment, pictures: Vec<Block>) -> Section {
    let of = |is_decisive: bool| {
        let own =
            experiment.metrics.iter().enumerate().filter(move |(_, one)| one.is_decisive == is_decisive);
        own.map(|(index, metric)| Block::Table(table(experiment, index, metric)))
    };
    let inside = experiment.metrics.iter().map(|metric| (metric.name.to_owned(), meaning(metric)));
    let told = in_words(experiment);
    let told = told.into_iter().map(|(kind, text)| Item::of(text).marked(Tone::of(kind), ""));
    let mut blocks = vec![
        Block::words(capital(experiment.question)),
        Block::hidden("What lies inside the timed interval", vec![Block::Facts(inside.collect())]),
    ];
    blocks.extend(pictures);
    blocks.extend(of(true));
    blocks.push(Block::List(told.collect()));
    blocks.push(Block::hidden("Parts and CPU time, for context", of(false).collect()));
    Section { name: experiment.name.into(), title: experiment.name.into(), blocks }
}

fn meaning(metric: &Metric) -> String {
    let (absolute, relative) = metric.margin;
    let margin = match metric.is_decisive {
        true => format!("{} or {}", with_interval(metric.unit, absolute, None), percent(relative)),
        false => "no verdicts".into(),
    };
    format!("{} ({}). Matters: {margin}.", metric.meaning, metric.unit.name())
}

/// Which subject changed in which metric.
fn glance(experiment: &Experiment) -> Table {
    let decisive: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&metric| experiment.metrics[metric].is_decisive).collect();
    let names = decisive.iter().map(|&metric| Column::words(experiment.metrics[metric].name));
    let columns = [Column::words("subject")].into_iter().chain(names).collect();
    let mut table = Table::of(format!("{}: verdicts", experiment.name), columns);
    let mut labels: Vec<&str> = Vec::new();
    for line in experiment.lines.iter().filter(|line| decisive.contains(&line.metric)) {
        if !labels.contains(&line.label.as_str()) {
            labels.push(&line.label);
        }
    }
    for label in labels {
        let cell = |metric: &usize| {
            let line = experiment.lines.iter().find(|line| line.metric == *metric && line.label == label);
            line.map_or(Cell::nothing("–"), |line| Cell::verdict(line.verdict.kind()))
        };
        table.row(&[label], [Cell::code(label)].into_iter().chain(decisive.iter().map(cell)).collect());
    }
    table
}

/// A metric with a row for each subject and setting; after several settings what holds over them together.
fn table(experiment: &Experiment, index: usize, metric: &Metric) -> Table {
    let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == index).collect();
    let given = one_setting(&lines);
    let has_ratios = lines.iter().flat_map(|line| &line.settings).all(|one| one.ratio.is_some());
    let difference = Column::numbers("new − old");
    let settings = given.is_none().then(|| Column::words("setting"));
    let columns = [Column::words("subject")].into_iter().chain(settings).chain([
        Column::numbers("old"),
        Column::numbers("new"),
        if has_ratios { difference.with_room() } else { difference },
        Column::numbers("new ÷ old"),
        Column::words("verdict"),
    ]);
    let named = given.filter(|text| !text.is_empty()).map_or(String::new(), |text| format!(" ({text})"));
    let mut table = Table::of(format!("{} of {}{named}", metric.name, experiment.name), columns.collect());
    for line in lines {
        let verdict = Some(line.verdict.kind()).filter(|kind| *kind != Kind::Context);
        let is_whole = line.settings.len() == 1;
        let mut add = |setting: &str, rest: [Cell; 4], verdict: Option<Kind>| {
            let setting = given.is_none().then(|| Cell::words(setting));
            let verdict = verdict.map_or(Cell::default(), Cell::verdict);
            let cells = [Cell::code(&line.label)].into_iter().chain(setting).chain(rest).chain([verdict]);
            table.row(&[&line.label], cells.collect());
        };
        for one in &line.settings {
            add(&one.values, in_setting(metric, one), verdict.filter(|_| is_whole));
        }
        if let Some(kind) = verdict.filter(|_| !is_whole) {
            let change = line.together.map_or(Cell::default(), |all| {
                let from = if all.scale == Scale::Ratio { 1.0 } else { 0.0 };
                Cell::ranged(words::change(all.scale, &all.change)).key(all.change.value - from)
            });
            add("together", [Cell::default(), Cell::default(), Cell::default(), change], Some(kind));
        }
    }
    table
}

fn in_setting(metric: &Metric, one: &InSetting) -> [Cell; 4] {
    let unit = metric.unit;
    let [old, new] =
        one.medians.map(|median| median.map_or(Cell::nothing("–"), |value| Cell::value(unit, value, None)));
    let difference = one.difference.map_or(Cell::default(), |found| Cell::estimate(unit, &found));
    let ratio = |ratio| Cell::ranged(in_percent(&ratio)).key(ratio.value - 1.0);
    [old, new, difference, one.ratio.map_or(Cell::default(), ratio)]
}

impl Facts {
    /// The run in short: where it lies, its name, when it began, its rounds, its tags.
    fn in_short(&self) -> String {
        let rounds = match self.rounds {
            (have, planned) if have == planned => counted(planned, "round"),
            (have, planned) => format!("{have} of {}", counted(planned, "round")),
        };
        let tags = self.tags.iter().map(|(key, value)| format!("{key}={value}"));
        let own = [self.place.clone(), format!("run {}", self.run), to_the_second(&self.started), rounds];
        own.into_iter().chain(tags).collect::<Vec<_>>().join(", ")
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
