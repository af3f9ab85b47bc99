//! Three tables: the answers to what people ask about layers; what a copy costs by the size of a file; and the time
//! of each operation in each place.

use super::answers::{self, Answer, Cells, Question, each_layer_adds};
use super::names::{FILESYSTEM, METACOPY, MOUNT};
use super::{BIND, FIRST, LINE, MANY, NAME, at, count, size};
use crate::distinct;
use crate::experiment::storage::GB;
use crate::experiment::storage::class::Class;
use crate::experiment::storage::suspects::{class_of, median};
use crate::names::Fact;
use crate::stats::{self, Line, Rng};
use crate::text::{estimated, listed};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::kind::Kind;
use crate::verdict::table::{self, Column, ExperimentTable, Item, Screen, notes};

/// The random stream for resampling.
const STREAM: u64 = 0x6c61_7965_7273;
/// Filesystems on which two files can share extents.
const SHARING: [&str; 4] = ["btrfs", "xfs", "bcachefs", "zfs"];
/// What arrives at the device where all is copied.
const WHOLE: &str = "the whole file";
/// The same where the copy shares what stays the same.
const SHARED: &str = "its extents are shared";
/// A root that is no union of layers, so a change copies nothing.
const NO_UNION: &str = "nothing: the root is a copy";
/// The same on a filesystem that makes it without copying.
const SNAPSHOT: &str = "nothing: the root is a snapshot";
/// Of a copied file at least this share arrives at the device.
const COPIED: f64 = 0.5;

/// The metrics of the table of operations, with their headings.
const OPERATIONS: [(&str, &str); 12] = [
    ("modify", "changed"),
    ("modify_many", "10 changed"),
    ("modify_small", "4 KiB changed"),
    ("new", "written"),
    ("read", "read"),
    ("open", "opened"),
    ("chmod", "chmod"),
    ("chown", "chown"),
    ("append", "appended"),
    ("truncate", "replaced"),
    ("rename", "renamed"),
    ("delete", "deleted"),
];

/// All of them.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let mut cells: Vec<usize> = view.originals_of(NAME).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    cells.sort_by_key(|cell| view.cell(*cell).subject);
    let subjects = distinct(cells.iter().map(|cell| view.cell(*cell).subject));
    let answers = answers::all(view, &subjects);
    let copies: Vec<Copies<'_>> = subjects.iter().filter_map(|subject| Copies::of(view, *subject)).collect();
    let tables = [
        asked(view, &answers, &copies),
        differences(view, &answers),
        copied(&copies),
        operations(view, &cells),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// What a subject does with a file of an image that is changed.
struct Copies<'a> {
    label: &'a str,
    /// The mount of its root, and the filesystem that takes the bytes.
    mount: String,
    what: &'static str,
    metacopy: &'static str,
    line: Option<Line>,
    determination: Option<f64>,
    /// What each layer adds to an opening.
    each_layer: Option<stats::Estimate>,
    is_durable: bool,
}

impl<'a> Copies<'a> {
    fn of(view: &'a View<'a>, subject: usize) -> Option<Copies<'a>> {
        let cells = Cells::of(view, subject);
        let cell = cells.find(Some(*cells.layers().first()?), FIRST)?;
        let told = |name: Fact| view.fact(cell, name).unwrap_or("unknown");
        let arrived = median(view, cell, "copied");
        let is_durable = class_of(view, cell) == Class::Durable;
        let is_union = ["overlay", "fuse.fuse-overlayfs", "fuse", "aufs"].contains(&told(MOUNT));
        let what = match arrived {
            Some(_) if !is_union && SHARING.contains(&told(MOUNT)) => SNAPSHOT,
            Some(_) if !is_union => NO_UNION,
            Some(share) if share >= COPIED => WHOLE,
            Some(_) if is_durable && SHARING.contains(&told(FILESYSTEM)) => SHARED,
            Some(_) if !is_durable => "not at the device",
            Some(_) => "less than the file",
            None => "not counted",
        };
        let points = points(view, cell)?;
        let mut rng = Rng::for_stream(view.plan().seed, STREAM);
        let line = stats::line(&points.by_round, &mut rng, view.plan().level(1));
        Some(Copies {
            label: view.label(cell),
            mount: format!("{} on {}", told(MOUNT), told(FILESYSTEM)),
            what,
            metacopy: match told(METACOPY) {
                "on" => "on",
                "off" => "off",
                _ => "not an overlay",
            },
            line,
            determination: stats::determination(points.medians.iter().copied()),
            each_layer: each_layer_adds(view, &cells),
            is_durable,
        })
    }

    /// What each gigabyte takes, if it takes anything.
    fn each_gb(&self) -> Option<String> {
        let line = self.line.filter(|line| line.proportional.interval.is_some_and(|one| one.low > 0.0))?;
        let durable = if self.is_durable { "" } else { ", not on the disk then" };
        let takes = estimated(Unit::Seconds, &line.proportional);
        Some(format!("{} {takes} ({}{durable})", self.label, self.mount))
    }
}

/// What changes copy, in sentences.
fn copied_in_words(copies: &[Copies<'_>]) -> Vec<String> {
    let of = |what: &'static str| copies.iter().filter(move |one| one.what == what);
    let whole = listed(of(WHOLE).filter_map(Copies::each_gb), ", ");
    let shared = listed(of(SHARED).map(|one| one.label), ", ");
    let snapshot = listed(of(SNAPSHOT).map(|one| one.label), ", ");
    let none = listed(of(NO_UNION).map(|one| one.label), ", ");
    [
        ("the first change of a file of the image copies all of it; each GB takes: ", whole),
        ("a changed file of the image shares the bytes that stay the same: ", shared),
        ("a change copies no file, since each container's root is a snapshot that shares the image's data: ", snapshot),
        ("a change copies nothing, since the whole image is copied for each container: ", none),
    ]
    .into_iter()
    .filter(|(_, subjects)| !subjects.is_empty())
    .map(|(what, subjects)| format!("{what}{subjects}"))
    .collect()
}

/// The changes of files by their bytes.
struct Points {
    by_round: Vec<Vec<(f64, f64)>>,
    medians: Vec<(f64, f64)>,
}

/// In gigabytes and seconds for each file.
fn points(view: &View<'_>, cell: usize) -> Option<Points> {
    let whole = size(&view.cell(cell).setting) as f64 / GB;
    let files = MANY as f64;
    let of_one = LINE.iter().map(|(percent, metric)| (*percent as f64 / 100.0, metric.text(), 1.0));
    let series: Vec<_> = of_one
        .chain([(1.0 / files, "modify_many", files), (1.0, "modify", 1.0)])
        .filter_map(|(share, metric, files)| {
            let metric = view.metric_index(cell, metric)?;
            Some((share * whole, view.columns.get(cell, metric), view.median(cell, metric)? / files, files))
        })
        .collect();
    let rounds = series.first()?.1.len();
    let in_round = |round: usize| {
        let of_series = series.iter().filter_map(|(x, own, _, files)| Some((*x, own[round]? / files)));
        of_series.collect()
    };
    Some(Points {
        by_round: (0..rounds).map(in_round).collect(),
        medians: series.iter().map(|(x, _, median, _)| (*x, *median)).collect(),
    })
}

/// One row for each question, one column for each subject.
fn asked(view: &View<'_>, answers: &[Answer], copies: &[Copies<'_>]) -> ExperimentTable {
    let subjects = distinct(answers.iter().map(|answer| answer.subject));
    let questions = distinct(answers.iter().map(|answer| answer.question));
    let told = |question: Question, subject: usize| {
        let found = answers.iter().find(|one| one.question == question && one.subject == subject);
        Item::text(found.map(in_words), "not measured")
    };
    let row = |question: &Question| {
        let own = subjects.iter().map(|subject| told(*question, *subject));
        std::iter::once(Item::Text(question.short.to_owned())).chain(own).collect()
    };
    let labels = subjects.iter().map(|subject| Column::of_texts(&view.plan().subjects[*subject].label));
    let told = [
        table::Answer::decided("what does a change copy?", copied_in_words(copies)),
        table::Answer::decided("do layers matter?", by_verdict(view, answers)),
    ];
    ExperimentTable {
        rows: questions.iter().map(row).collect(),
        notes: notes(["slower: by how much; change: a byte of a file of the image, for the first time"]),
        answers: told.concat(),
        screen: Screen::Part { columns: highest(view, &subjects), rows: (0..questions.len()).collect() },
        ..ExperimentTable::new(
            NAME,
            "answers",
            "what matters to files of an image?".to_owned(),
            std::iter::once(Column::of_texts("question")).chain(labels).collect(),
        )
    }
}

/// The columns of the questions and of as many subjects as a screen has room for, those of the highest layer first.
fn highest(view: &View<'_>, subjects: &[usize]) -> Vec<usize> {
    const ROOM: usize = 3;
    let plan = view.plan();
    let order = |at: &usize| {
        let one = &plan.subjects[subjects[*at]];
        (one.ladder, std::cmp::Reverse(one.layer))
    };
    let mut all: Vec<usize> = (0..subjects.len()).collect();
    all.sort_by_key(order);
    all.truncate(ROOM);
    std::iter::once(0).chain(all.into_iter().map(|at| at + 1)).collect()
}

/// The verdict, with the difference where there is one.
fn in_words(answer: &Answer) -> String {
    let kind = answer.kind();
    match kind.is_difference() {
        true => format!("{} {}", kind.word(), Unit::Seconds.format(answer.compared.difference.value.abs())),
        false => kind.word().to_owned(),
    }
}

/// The same with the intervals.
fn differences(view: &View<'_>, answers: &[Answer]) -> ExperimentTable {
    let row = |answer: &Answer| {
        let label = view.plan().subjects[answer.subject].label.clone();
        let [question, verdict] = [answer.question.short, answer.kind().word()].map(str::to_owned);
        let texts = [label, question, verdict].map(Item::Text).into_iter();
        let (difference, matters) = (answer.compared.difference, answer.compared.matters);
        texts.chain([Item::Interval(difference), Item::Value(matters)]).collect()
    };
    let texts = ["subject", "question", "verdict"].map(Column::of_texts).into_iter();
    let values = ["difference", "matters from"].map(|name| Column::of_values(name, Unit::Seconds));
    ExperimentTable {
        rows: answers.iter().map(row).collect(),
        notes: notes([
            "medians of the differences of both in the same round, with intervals at a level that all of these share; files are in the first \
             layer of the image with the fewest layers, and depth is compared in the image with the most",
        ]),
        ..ExperimentTable::new(
            NAME,
            "differences",
            "the differences behind these answers".to_owned(),
            texts.chain(values).collect(),
        )
    }
}

/// To whom depth and the number of layers matter, and to whom they do not.
fn by_verdict(view: &View<'_>, answers: &[Answer]) -> Vec<String> {
    let label = |answer: &Answer| view.plan().subjects[answer.subject].label.as_str();
    let about = |answer: &&Answer| answer.question.is_of_layers;
    let of_kind = |kind: Kind| answers.iter().filter(about).filter(move |answer| answer.kind() == kind);
    let named = |answer: &Answer| {
        let difference = estimated(Unit::Seconds, &answer.compared.difference);
        format!("{} ({}: {difference})", label(answer), answer.question.short)
    };
    let longer = listed(of_kind(Kind::Slower).map(named), ", ");
    let same =
        listed(of_kind(Kind::Same).map(|one| format!("{} ({})", label(one), one.question.short)), ", ");
    [("depth or number of layers matters to", longer), ("neither matters to", same)]
        .into_iter()
        .filter(|(_, told)| !told.is_empty())
        .map(|(what, told)| format!("{what} {told}"))
        .collect()
}

fn copied(copies: &[Copies<'_>]) -> ExperimentTable {
    let row = |one: &Copies<'_>| {
        vec![
            Item::Text(one.label.to_owned()),
            Item::Text(one.mount.clone()),
            Item::Text(one.what.to_owned()),
            Item::interval(one.line.map(|line| line.proportional), "no line"),
            Item::interval(one.line.map(|line| line.fixed), "no line"),
            Item::value(one.determination, "no line"),
            Item::interval(one.each_layer, "not measured"),
            Item::Text(one.metacopy.to_owned()),
        ]
    };
    let times = |name: &str| Column::of_values(name, Unit::Seconds);
    let columns = ["subject", "root", "copied"]
        .map(Column::of_texts)
        .into_iter()
        .chain([times("each GB"), times("each file"), Column::of_values("R²", Unit::Ratio)])
        .chain([times("each layer"), Column::of_texts("metacopy")])
        .collect();
    ExperimentTable {
        rows: copies.iter().map(row).collect(),
        notes: notes([
            "a line through the first changes of files of five sizes in the first layer: what each GB adds, and what each file \
             takes apart from that; intervals at 95 % by resampling rounds; R² of the medians",
            "`each layer`: what a layer above adds to the first opening of a file; `copied`: by what arrived at the device; `metacopy`: an option of \
             overlays with which `chmod` and `chown` copy no data",
        ]),
        ..ExperimentTable::new(
            NAME,
            "copy-up",
            "what a change copies, by the size of a file".to_owned(),
            columns,
        )
    }
}

fn operations(view: &View<'_>, cells: &[usize]) -> ExperimentTable {
    let row = |&cell: &usize| {
        let setting = &view.cell(cell).setting;
        let layers = count(setting).map(|count| format!(" of {count}")).unwrap_or_default();
        let place = if at(setting) == BIND { BIND.to_owned() } else { format!("{}{layers}", at(setting)) };
        let class = class_of(view, cell).word().to_owned();
        let size = setting.get("size").unwrap_or_default().to_owned();
        let head = [view.label(cell).to_owned(), place, size, class].map(Item::Text);
        let value = |(metric, _): &(&str, &str)| Item::interval(view.estimate_of(cell, metric), "no data");
        head.into_iter().chain(OPERATIONS.iter().map(value)).collect()
    };
    let heads = ["subject", "layer", "size", "class"].map(Column::of_texts).into_iter();
    let values = OPERATIONS.iter().map(|(_, heading)| Column::of_values(heading, Unit::Seconds));
    ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: notes([
            "medians with their 95 % intervals; changed, written and read: a file of the size; chmod to deleted: a file of a tenth of it; \
             opened: one of a thousand small files, for the first time in the container",
            "only numbers of the class `durable` are a disk's; what is changed or read is not in the page cache before, except small files",
        ]),
        ..ExperimentTable::new(
            NAME,
            "operations",
            "time of each operation, by layer".to_owned(),
            heads.chain(values).collect(),
        )
    }
}
