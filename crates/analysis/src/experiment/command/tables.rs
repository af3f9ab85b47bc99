//! The extra time of each subject for the same command, compared with the baseline and split into its start,
//! measured in the same rounds, and a rest that is called so. Over several settings, into a fixed part and
//! one that grows with the command.

use super::super::setting::Setting;
use super::{NAME, OUTPUTS};
use crate::group::in_groups;
use crate::stats::{self, Estimate, Rng};
use crate::text::estimated;
use crate::units::Unit;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item};
use crate::verdict::{Finding, Verdict, View};

/// The random stream for resampling.
const STREAM: u64 = 0x636f_6d6d_616e_6400;

/// The tables that have something to show.
pub fn experiment_tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let own = Split {
        experiment: NAME,
        what: "for the same command",
        rest: "is unexplained",
        note: "`start` is the cost of a launch that runs nothing, measured right before; the rest is there only with the \
               command, and nothing here says why; `inside` is the part between fork and end of the command itself",
        parts: &[
            ("more in all", "returned"),
            ("start", "start"),
            ("unexplained rest", "beyond_start"),
            ("inside", "command"),
        ],
    };
    [split(view, &own), choice(view, &WAY_OUT), cold(view, NAME, "returned"), line(view)]
        .into_iter()
        .flatten()
        .collect()
}

/// How the extra time of a subject splits.
pub(in crate::experiment) struct Split<'a> {
    pub experiment: &'static str,
    /// What is timed.
    pub what: &'static str,
    /// A verb phrase for the third part.
    pub rest: &'static str,
    /// How the parts are separated.
    pub note: &'static str,
    /// The columns with their metrics: the whole, the start, the rest, and others to show.
    pub parts: &'a [(&'static str, &'static str)],
}

/// The columns that name a row; the setting only if rows differ in it.
pub(in crate::experiment) fn heads(shows_settings: bool) -> Vec<Column> {
    let setting = shows_settings.then(|| Column::of_texts("setting"));
    [Column::of_texts("subject")].into_iter().chain(setting).collect()
}

/// Their items.
pub(in crate::experiment) fn named(
    label: &str,
    setting: Option<&Setting>,
) -> impl Iterator<Item = Item> + use<> {
    let label = Item::Text(label.to_owned());
    [label].into_iter().chain(setting.map(|setting| Item::Text(setting.to_string())))
}

fn metric(view: &View<'_>, cell: usize, name: &str) -> usize {
    view.metric_index(cell, name).expect("the experiment has this metric")
}

/// Why a difference has no numbers.
const LACKING: &str = "no round has both values";

/// The median of the paired differences of a metric between two cells that the plan does not compare.
fn difference(view: &View<'_>, (cell, against): (usize, usize), name: &str) -> Item {
    let pairs = view.columns.pairs(against, cell, metric(view, cell, name));
    Item::interval(pairs.map(|pairs| pairs.difference(view.plan().level(1))), LACKING)
}

/// A difference with its interval, for a sentence.
fn told(estimate: Estimate) -> String {
    let sign = if estimate.value > 0.0 { "+" } else { "" };
    let few = if estimate.interval.is_none() { " (too few rounds for an interval)" } else { "" };
    format!("{sign}{}{few}", estimated(Unit::Seconds, &estimate))
}

/// Which is slower, and by how much, each difference with its interval.
fn compared(label: &str, against: &str, more: Estimate) -> String {
    let Some(interval) = more.interval else {
        return format!("{label} and {against} differ by {}", told(more));
    };
    let (sign, word) = if interval.high < 0.0 { (-1.0, "faster") } else { (1.0, "slower") };
    if interval.contains(0.0) {
        return format!("{label} and {against} cannot be told apart: {}", told(more));
    }
    let by = estimated(Unit::Seconds, &more.map(|value| sign * value));
    format!("{label} is {by} {word} than {against}")
}

/// The same for a comparison that has a verdict.
fn judged(label: &str, against: &str, finding: &Finding) -> Option<String> {
    let more = finding.difference?;
    Some(match &finding.verdict {
        Verdict::More | Verdict::Less if finding.noise.is_none() => compared(label, against, more),
        Verdict::Same => format!("{label} and {against} show no difference that matters: {}", told(more)),
        Verdict::Suspect(_) => return None,
        _ => format!("{label} and {against} cannot be told apart: {}", told(more)),
    })
}

pub(in crate::experiment) fn split(view: &View<'_>, about: &Split<'_>) -> Option<ExperimentTable> {
    let cells = view.beside_baseline(about.experiment);
    let setting_of = |cell: usize| &view.run.plan.cells[cell].setting;
    let (first, _) = *cells.first()?;
    let shows_settings = cells.iter().any(|(cell, _)| setting_of(*cell) != setting_of(first));
    let baseline = view.baseline(about.experiment);
    let mut columns = heads(shows_settings);
    columns.extend(about.parts.iter().map(|(title, _)| Column::of_values(title, Unit::Seconds)));
    let row = |&(cell, against): &(usize, usize)| {
        let part = |name| view.finding(cell, against, name)?.difference;
        let parts = about.parts.iter().map(|(_, name)| Item::interval(part(name), LACKING));
        named(view.label(cell), shows_settings.then(|| setting_of(cell))).chain(parts).collect()
    };
    let sentence = |&(cell, against): &(usize, usize)| {
        let part = |part: usize| view.finding(cell, against, about.parts[part].1);
        let [whole, start, rest] = [part(0)?, part(1)?, part(2)?];
        let (all, start, rest) = (whole.difference?, start.difference?, rest.difference?);
        let label = view.label(cell);
        if all.interval.is_none() {
            return Some(format!(
                "{label} compared with `{baseline}`: too few rounds with both of them ({}) to say which is slower",
                all.rounds
            ));
        }
        let [start, rest] = [start, rest].map(told);
        let against = format!("`{baseline}` {}", about.what);
        Some(format!(
            "{}; its start accounts for {start}, and {rest} {}",
            judged(label, &against, whole)?,
            about.rest
        ))
    };
    // For many settings the table says enough.
    let summary = if shows_settings { Vec::new() } else { cells.iter().filter_map(sentence).collect() };
    let title = format!("extra time of each compared with `{baseline}` {}, and why", about.what);
    Some(ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: vec![
            "medians of differences within each round, with the intervals of the verdicts; medians of parts need not add up to \
             the median of the whole"
                .into(),
            about.note.into(),
        ],
                answers: Answer::all("what does it add?", summary),
        ..ExperimentTable::new(about.experiment, "overhead", title, columns)
    })
}

/// Two values of a key of settings that are otherwise the same: what choosing one of them costs.
struct Choice {
    experiment: &'static str,
    /// The key, the value in question, and the value to compare it with.
    key: (&'static str, &'static str, &'static str),
    /// The metric that is compared, in seconds.
    metric: &'static str,
    /// The table's name in files, its title, and the title of the column with the differences.
    table: (&'static str, &'static str, &'static str),
    /// A metric in bytes that is shown too, for the value in question.
    beside: Option<&'static str>,
    /// The two values in words, if there is a sentence about each subject: "with a cold cache".
    words: Option<(&'static str, &'static str)>,
}

/// What a value of a key costs, for each subject and setting in which both values were measured.
fn choice(view: &View<'_>, about: &Choice) -> Option<ExperimentTable> {
    let plan = &view.run.plan;
    let (key, asked, plain) = about.key;
    let other = |cell: usize| {
        let own = view.cell(cell);
        let setting = own.setting.with(key, plain);
        (own.setting.get(key) == Some(asked))
            .then(|| Some((cell, plan.cell_of(about.experiment, &setting, own.subject)?)))?
    };
    let cells: Vec<_> = view.originals_of(about.experiment).filter_map(other).collect();
    let setting_of = |cell: usize| &view.cell(cell).setting;
    let shows_settings = cells.iter().any(|(cell, _)| setting_of(*cell) != setting_of(cells[0].0));
    let row = |&(cell, against): &(usize, usize)| {
        let beside = about.beside.map(|name| Item::interval(view.estimate_of(cell, name), "not counted"));
        let named = named(view.label(cell), shows_settings.then(|| setting_of(cell)));
        named.chain(beside).chain([difference(view, (cell, against), about.metric)]).collect()
    };
    let sentence = |&(cell, against): &(usize, usize)| {
        let Item::Interval(more) = difference(view, (cell, against), about.metric) else { return None };
        let of = if shows_settings { format!(" ({})", setting_of(cell)) } else { String::new() };
        let (asked, plain) = about.words?;
        let label = format!("{}{of} {asked}", view.label(cell));
        Some(format!("{} (`{}`)", compared(&label, plain, more), about.metric))
    };
    let (name, title, column) = about.table;
    let mut columns = heads(shows_settings);
    columns.extend(about.beside.map(|name| Column::of_values(name, Unit::Bytes)));
    columns.push(Column::of_values(column, Unit::Seconds));
    (!cells.is_empty()).then(|| ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: vec![format!(
            "`{0}` with `{key}={asked}` less `{0}` with `{key}={plain}`, medians of differences within each round, with \
             their 95 % intervals",
            about.metric
        )],
        answers: Answer::all("what does a cold cache cost?", cells.iter().filter_map(sentence)),
        ..ExperimentTable::new(about.experiment, name, title.into(), columns)
    })
}

/// The cost of letting the output through, if it was also discarded in the same run.
const WAY_OUT: Choice = Choice {
    experiment: NAME,
    key: ("output", OUTPUTS[0], OUTPUTS[1]),
    metric: "returned",
    table: (
        "way-out",
        "cost of letting the output leave the container instead of discarding it inside",
        "cost of the output",
    ),
    beside: Some("output"),
    words: None,
};

/// The cost of an empty page cache, in a metric of an experiment that has the key `cache`.
pub(crate) fn cold(
    view: &View<'_>,
    experiment: &'static str,
    metric: &'static str,
) -> Option<ExperimentTable> {
    choice(
        view,
        &Choice {
            experiment,
            key: ("cache", "cold", "warm"),
            metric,
            table: ("cold-cache", "cost of an empty page cache", "extra time when cold"),
            beside: None,
            words: Some(("with an empty page cache", "with a warm one")),
        },
    )
}

/// By round, the points of a subject: the baseline's own time of the command in a setting, and the subject's
/// extra time in all.
fn points(view: &View<'_>, cells: &[(usize, usize)]) -> Vec<Vec<(f64, f64)>> {
    let rounds = view.columns.get(cells[0].0, 0).len();
    let mut all = vec![Vec::new(); rounds];
    for &(cell, against) in cells {
        let Some(known) = view.columns.sample(against, metric(view, against, "command")) else { continue };
        let x = known.median();
        let own = view.columns.get(cell, metric(view, cell, "returned"));
        let others = view.columns.get(against, metric(view, against, "returned"));
        for (round, (own, other)) in all.iter_mut().zip(own.iter().zip(others)) {
            round.extend(own.zip(*other).map(|(own, other)| (x, own - other)));
        }
    }
    all
}

/// What two settings must share for their points to be on one line: everything but the command and its swept
/// values.
fn beside_the_command(setting: &Setting) -> Setting {
    Setting(setting.0.iter().filter(|(key, _)| !["cmd", "sweep"].contains(key)).copied().collect())
}

fn line(view: &View<'_>) -> Option<ExperimentTable> {
    let plan = &view.run.plan;
    let cells = view.beside_baseline(NAME);
    let kind = |cell: usize| (plan.cells[cell].subject, beside_the_command(&plan.cells[cell].setting));
    let kinds = in_groups(cells, |(cell, _)| kind(*cell));
    let shows_settings = kinds.iter().any(|((_, setting), _)| *setting != kinds[0].0.1);
    let mut rng = Rng::for_stream(plan.seed, STREAM);
    let mut rows = Vec::new();
    for ((subject, setting), own) in kinds.iter().filter(|(_, own)| own.len() > 1) {
        let Some(found) = stats::line(&points(view, own), &mut rng, plan.level(1)) else { continue };
        let named = named(&plan.subjects[*subject].label, shows_settings.then_some(setting));
        rows.push(named.chain([found.fixed, found.proportional].map(Item::Interval)).collect());
    }
    let baseline = view.baseline(NAME);
    let title = format!("extra time of each compared with `{baseline}`: fixed, and growing with the command");
    let mut columns = heads(shows_settings);
    columns.push(Column::of_values("fixed", Unit::Seconds));
    columns.push(Column::of_values("proportional", Unit::Share));
    (!rows.is_empty()).then(|| ExperimentTable {
        rows,
        notes: vec![format!(
            "a least-squares line through the commands of a setting: the extra time of a subject over the median time of the \
             command on `{baseline}`; 95 % intervals by resampling rounds; two commands are always on a line, more show \
             whether there is one"
        )],
        ..ExperimentTable::new(NAME, "fixed-and-proportional", title, columns)
    })
}
