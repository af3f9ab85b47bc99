//! A comparison for people: the summary, what else differs, and a table for each metric.

use dunnage_analysis::compare::{Comparison, Experiment, Facts, InSetting, Line};
use dunnage_analysis::group::in_groups;
use serde::Serialize;

use super::summary::{in_words, summary};
use super::{picture, words};
use crate::document::{
    Block, Cell, Column, Document, Extent, Findings, Item, Look, Section, TALL, Table, Tone, fitted,
    in_a_line,
};
use crate::experiment;
use crate::report::head;
use crate::report::model::Metric;
use crate::report::text::{capital, clean, confidence, in_brackets, listed, percent_parts};
use crate::report::words::{inside, insides};
use crate::units::counted;
use crate::verdict::Kind;

const SIDES: [&str; 2] = ["old", "new"];

/// The most subjects whose verdicts fit next to the answer.
const GLANCE: usize = 14;

/// What is serialised: the findings and the summary.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    found: &'a Comparison,
    summary: Vec<String>,
}

impl Findings for Comparison {
    const SCHEMA: &'static str = "dunnage-compare/3";

    fn data(&self) -> impl Serialize {
        Told { found: self, summary: summary(self) }
    }

    fn document(&self, _: &Look) -> Document {
        let mut document = Document::titled("What changed from old to new");
        for (side, runs) in SIDES.into_iter().zip(&self.sides) {
            runs.iter().for_each(|run| document.fact(side, &in_short(run)));
        }
        let level = |one: &Experiment| {
            format!("{} of {} at {}", counted(one.family, "interval"), one.name, confidence(one.level))
        };
        let levels = listed(self.experiments.iter().map(level), ", ");
        document.fact("how", &format!("{levels}, so that all of an experiment together hold at 95 %"));
        document.fact("shown", PAIRS);
        let labels = in_groups(self.lines(), |(_, line)| clean(&line.label));
        document.subjects = labels.into_iter().map(|(label, _)| label).collect();
        let notices = self.notices.iter().map(|notice| Item::of(capital(notice)).named("note"));
        document.answer.push(Block::List(notices.collect()));
        document.answer.push(Block::sentences(summary(self).iter().map(|text| capital(text))));
        let mut sections =
            vec![Section { name: "around".into(), title: "Other differences".into(), blocks: around(self) }];
        for experiment in &self.experiments {
            let mut pictures = picture::pictures(experiment).into_iter().map(Block::picture);
            let first = pictures.next().into_iter();
            document.answer.push(Block::Beside(first.chain([Block::Table(glance(experiment))]).collect()));
            sections.push(section(experiment, pictures.collect()));
        }
        document.answer.push(Block::note(
            "Slower, faster: over all settings of the metric together, the whole interval excludes zero, the change is large \
             enough to matter, and neither bare and floor nor the variation within a run explain it. Machine changed: bare \
             or floor changed too, so the change is not attributed to the subject. Same: no change in the interval is \
             large enough to matter.",
        ));
        document.sections = sections;
        document
    }

    /// What changed, whether it is attributed to a subject, and what is undecided.
    fn brief(&self, look: &Look) -> Option<Document> {
        let document = Document::titled("What changed from old to new");
        let sides = SIDES.into_iter().zip(&self.sides).map(|(side, runs)| {
            let more = match runs.len() {
                0 | 1 => String::new(),
                all => format!("; and {} more", counted(all - 1, "run")),
            };
            (side.to_owned(), format!("{}{more}", runs.first().map_or(String::new(), in_short)))
        });
        let sides = Block::facts(sides);
        let differs = self.differences.iter().map(|one| {
            let tone = if one.meaning.is_not_comparable() { Tone::Alarm } else { Tone::Plain };
            let subjects = in_brackets(&one.subjects.join(", "));
            Item::of(format!("{}: {} → {}{subjects}", one.what, one.old, one.new))
                .marked(tone, one.meaning.name())
        });
        let differs = in_a_line(look, differs).into_iter().map(|item| (3, item));
        let told = summary(self).into_iter().map(|text| (0, Item::of(capital(&text))));
        let notices = self.notices.iter().map(|notice| (1, Item::of(capital(notice))));
        let open = |(kind, text): (Kind, String)| (!kind.is_difference()).then(|| (4, Item::of(text)));
        let open = self.experiments.iter().flat_map(in_words).filter_map(open);
        let points: Vec<(usize, Item)> = told.chain(notices).chain(open).chain(differs).collect();
        let glances = self.experiments.iter().map(changes).filter(|table| table.rows.len() <= GLANCE);
        let glances: Vec<Block> = glances.map(Block::Table).collect();
        Some(fitted(look, TALL, &points, |items, left_out| {
            let (around, answers): (Vec<Item>, Vec<Item>) =
                items.into_iter().partition(|item| !item.mark.is_empty());
            let mut document = document.clone();
            document.answer = vec![Block::List(answers)];
            document.answer.extend(glances.first().filter(|_| glances.len() == 1).cloned());
            document.answer.extend((look.extent == Extent::Brief).then(|| sides.clone()));
            document.answer.extend(Block::titled("Other differences", vec![Block::List(around)]));
            let more = match left_out {
                0 => String::new(),
                count => format!(", with {}", counted(count, "more point")),
            };
            let all = format!("Full comparison{more}: `dunnage compare … --full`.");
            document.answer.extend((look.extent == Extent::Brief).then(|| Block::note(all)));
            document
        }))
    }
}

/// The ratio need not be that of the two medians.
const PAIRS: &str = "old and new are medians; new − old and new ÷ old are medians over all pairs of an old and a new value, \
                     so they may differ from those of the two medians";

fn around(comparison: &Comparison) -> Vec<Block> {
    let mut table = Table::of("", ["what", "kind", "subjects", "old", "new"].map(Column::words).into());
    for one in &comparison.differences {
        let tone = if one.meaning.is_not_comparable() { Tone::Alarm } else { Tone::Plain };
        let [what, of, old, new] = [&one.what, &one.subjects.join(", "), &one.old, &one.new].map(Cell::words);
        table.row(&[], vec![what, Cell::words(one.meaning.name()).tone(tone), of, old, new]);
    }
    let none = Block::words("No recorded differences in machine, probe, programs or daemons.");
    let alone = SIDES.into_iter().zip(&comparison.alone).filter(|(_, alone)| !alone.is_empty());
    let alone = alone.map(|(side, all)| Item::of(all.join("; ")).named(format!("only {side}")));
    vec![if table.rows.is_empty() { none } else { Block::Table(table) }, Block::List(alone.collect())]
}

fn section(experiment: &Experiment, pictures: Vec<Block>) -> Section {
    let of = |is_decisive: bool| {
        let own = experiment.metrics.iter().enumerate().filter(move |(_, one)| one.decisive == is_decisive);
        own.map(|(index, metric)| Block::Table(table(experiment, index, metric)))
    };
    let is_compared = |index: usize| experiment.lines.iter().any(|line| line.metric == index);
    let compared = experiment.metrics.iter().enumerate().filter(|(index, _)| is_compared(*index));
    let inside = compared.map(|(_, metric)| (metric.name.to_owned(), inside(metric)));
    let told = in_words(experiment);
    let told = told.into_iter().map(|(kind, text)| Item::of(text).marked(Tone::of(kind), ""));
    let mut blocks = vec![
        Block::words(capital(experiment.question)),
        Block::hidden(insides(&experiment.metrics), vec![Block::Facts(inside.collect())]),
    ];
    blocks.extend(pictures);
    blocks.extend(of(true));
    blocks.push(Block::List(told.collect()));
    blocks.push(Block::hidden("Parts and CPU time, for context", of(false).collect()));
    Section { name: experiment.name.into(), title: experiment.name.into(), blocks }
}

/// The change of each subject in the metric that answers the experiment's question, over all settings; where several
/// metrics rank equally, their verdicts.
fn changes(experiment: &Experiment) -> Table {
    let has_one_answer = experiment::find(experiment.name).is_some_and(|one| one.event.has_one_answer());
    let Some(index) = experiment.metrics.iter().position(|metric| metric.decisive).filter(|_| has_one_answer)
    else {
        return glance(experiment);
    };
    let metric = &experiment.metrics[index];
    let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == index).collect();
    let settings = words::one_setting(&lines).map_or("over all settings".to_owned(), str::to_owned);
    let title = format!("{} of {}{}", metric.name, experiment.name, in_brackets(&settings));
    let heads = ["old", "new", "new ÷ old"].map(Column::numbers);
    let columns = [Column::words("subject")].into_iter().chain(heads).chain([Column::words("verdict")]);
    let mut table = Table::of(title, columns.collect());
    for line in lines {
        let [old, new, change] = match (&line.settings[..], &line.together) {
            ([one], _) => {
                let [old, new, _, ratio] = in_setting(metric, one);
                [old, new, ratio]
            }
            (_, Some(all)) => [Cell::nothing("–"), Cell::nothing("–"), Cell::ranged(words::change(all))],
            _ => [Cell::nothing("–"), Cell::nothing("–"), Cell::nothing("–")],
        };
        table.row(
            &[&line.label],
            vec![Cell::code(&line.label), old, new, change, Cell::verdict(line.verdict)],
        );
    }
    table
}

/// The verdict of each subject in each metric.
fn glance(experiment: &Experiment) -> Table {
    let decisive: Vec<usize> =
        (0..experiment.metrics.len()).filter(|&metric| experiment.metrics[metric].decisive).collect();
    let names = decisive.iter().map(|&metric| Column::words(experiment.metrics[metric].name));
    let columns = [Column::words("subject")].into_iter().chain(names).collect();
    let mut table = Table::of(format!("{}: verdicts", experiment.name), columns);
    let lines = experiment.lines.iter().filter(|line| line.verdict != Kind::Context);
    for (label, own) in in_groups(lines, |line| &line.label) {
        let cell = |metric: &usize| {
            let line = own.iter().find(|line| line.metric == *metric);
            line.map_or(Cell::nothing("–"), |line| Cell::verdict(line.verdict))
        };
        table.row(&[label], [Cell::code(label)].into_iter().chain(decisive.iter().map(cell)).collect());
    }
    table
}

/// A metric with a row for each subject and setting, and one for several settings together.
fn table(experiment: &Experiment, index: usize, metric: &Metric) -> Table {
    let lines: Vec<&Line> = experiment.lines.iter().filter(|line| line.metric == index).collect();
    let given = words::one_setting(&lines);
    let has_ratio = |one: &InSetting| one.numbers.is_some_and(|numbers| numbers.ratio.is_some());
    let has_ratios = lines.iter().flat_map(|line| &line.settings).all(has_ratio);
    let difference = Column::numbers("new − old");
    let settings = given.is_none().then(|| Column::words("setting"));
    let columns = [Column::words("subject")].into_iter().chain(settings).chain([
        Column::numbers("old"),
        Column::numbers("new"),
        if has_ratios { difference.with_room() } else { difference },
        Column::numbers("new ÷ old"),
        Column::words("verdict"),
    ]);
    let named = in_brackets(given.unwrap_or_default());
    let mut table = Table::of(format!("{} of {}{named}", metric.name, experiment.name), columns.collect());
    for line in lines {
        let verdict = Some(line.verdict).filter(|kind| *kind != Kind::Context);
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
                Cell::ranged(words::change(&all)).key(words::from_none(all.scale, all.change.value))
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
    let numbers = one.numbers.map(|numbers| (Cell::estimate(unit, &numbers.difference), numbers.ratio));
    let (difference, ratio) = numbers.unwrap_or_default();
    let ratio = ratio.map(|ratio| Cell::ranged(percent_parts(&ratio)).key(ratio.value - 1.0));
    [old, new, difference, ratio.unwrap_or_default()]
}

/// The run on one line: its place, name, start, rounds and tags.
fn in_short(run: &Facts) -> String {
    let rounds = head::done(run.rounds.0, run.rounds.1);
    let tags = run.tags.iter().map(|(key, value)| format!("{key}={value}"));
    let own = [run.place.clone(), format!("run {}", run.run), head::started(&run.started), rounds];
    own.into_iter().chain(tags).collect::<Vec<_>>().join(", ")
}
