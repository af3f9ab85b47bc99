//! A run in one screen: what ran where, the ladder in one table, what the findings mean for a decision, what is
//! undecided, failures and warnings, and where the rest is. All sentences are those of the full report.

use dunnage_analysis::group::in_groups;

use super::compared::floor_shares_in_short;
use super::{asked, dearest, lead, nothing_measured, own, published};
use crate::distinct;
use crate::document::{
    Block, Cell, Cells, Column, Document, Drawn, Extent, Item, Look, Row as Line, Table, Tone, fitted,
    in_a_line,
};
use crate::plan::Relation;
use crate::report::head;
use crate::report::model::{Experiment, Ladder, Report, Row, Setting};
use crate::report::summary::{Sentence, Topic};
use crate::report::text::{clean, estimated, in_brackets, in_shell, listed, shorten, width, wrap};
use crate::stats::Estimate;
use crate::units::{Unit, counted};
use crate::verdict::{About, Kind};

/// Experiments that the first line names.
const NAMED: usize = 3;
/// Characters of a label that stay on one line.
const LABEL: usize = 16;
/// The narrowest drawing.
const DRAWING: usize = 14;
/// Failures and suspects with a line of their own.
const MOST: usize = 4;
/// The most lines that the kernel's shares may take.
const SHARES: usize = 5;

pub(crate) fn brief(report: &Report, look: &Look) -> Document {
    let mut document = Document::titled(&headline(report, look.width));
    let suspects = report.suspects.iter().map(|one| {
        let of = one.experiment.map_or(String::new(), |name| format!("{name}: "));
        Item::of(format!("{of}{}", one.evidence)).named(one.rule)
    });
    document.alarms = few(in_a_line(look, suspects));
    document.answer.extend(nothing_measured(report));
    let lead = lead(report);
    let before = match lead {
        _ if report.rounds.complete == 0 && report.samples == 0 => None,
        Some(lead) => {
            let leads = lead.experiment_tables.iter().any(|table| table.leads);
            let own = if leads { own::short_table(lead, look) } else { None };
            own.or_else(|| ladder(report, lead, look.width.max(40)).map(Block::Table))
        }
        None => report.experiments.first().and_then(|one| own::short_table(one, look)),
    };
    document.answer.extend(before);
    let points = points(report, lead);
    let always = in_a_line(look, beware(report));
    let mut brief = fitted(look, &points, |items, left_out| {
        let mut document = document.clone();
        document.answer.push(Block::List(named_once(items)));
        document.answer.push(Block::List(always.clone()));
        if look.extent == Extent::Brief {
            document.answer.push(Block::note(the_rest(report, look, left_out)));
        }
        document
    });
    brief.sections.extend(published::section(&report.references));
    brief
}

/// What ran where and for how long, in one line.
fn headline(report: &Report, width: usize) -> String {
    let names = match report.experiments.len() {
        many if many > NAMED => counted(many, "experiment"),
        _ => listed(report.experiments.iter().map(|one| one.name), ", "),
    };
    let rounds = report.rounds;
    let rounds = match rounds.complete == rounds.planned {
        true => counted(rounds.planned, "round"),
        false => format!("{} of {}", rounds.complete, counted(rounds.planned, "round")),
    };
    let lasted = report.lasted.map_or(String::new(), |time| format!(" in {time}"));
    let mut line = match &report.imported {
        Some(imported) => {
            format!("{names} imported from {}: {}", imported.from, counted(report.samples, "sample"))
        }
        None => {
            format!("{names} on {}: {rounds}{lasted}", report.host.as_deref().unwrap_or("an unnamed host"))
        }
    };
    let day = head::started(&report.started).get(..16).map(str::to_owned);
    let cpus = head::fact(report, "cpu_usable").and_then(|count| Some(counted(count.parse().ok()?, "CPU")));
    let kernel = head::fact(report, "kernel").map(|release| format!("Linux {release}"));
    for part in [day, cpus, kernel].into_iter().flatten() {
        let longer = format!("{line} · {part}");
        if self::width(&longer) <= width {
            line = longer;
        }
    }
    shorten(&line, width)
}

/// A column of the ladder.
#[derive(Clone, Copy)]
struct Place<'a> {
    setting: &'a Setting,
    ladder: &'a Ladder,
    metric: usize,
    /// Whether it follows the column of the same setting as installed.
    is_beside: bool,
}

impl<'a> Place<'a> {
    /// The row of a subject by its name as installed; below the engines both ladders are the same.
    fn row(&self, name: &str) -> Option<&'a Row> {
        let own = self.ladder.rows.iter().filter(|row| row.variant_of.is_none());
        let mut own = own.filter(|row| !self.is_beside || row.layer == "engine");
        own.find(|row| name_of(self.setting, self.ladder, row) == name)
    }

    fn head(&self, experiment: &Experiment, has_metrics: bool) -> String {
        let metric = experiment.metrics[self.metric].name;
        match (has_metrics, self.is_beside, self.setting.values.as_str()) {
            (true, ..) | (_, false, "") => metric.to_owned(),
            (_, false, _) if experiment.settings.len() == 1 => metric.to_owned(),
            (false, true, _) => "equalised".to_owned(),
            (false, false, setting) => setting.to_owned(),
        }
    }
}

/// The name of a row. On the equalised ladder that is the name of the same engine as installed, if there is only one.
fn name_of<'a>(setting: &Setting, ladder: &Ladder, row: &'a Row) -> &'a str {
    if !ladder.equalised {
        return &row.label;
    }
    let Some((engine, _)) = row.short.split_once(':') else { return &row.short };
    let is_of = |other: &&Row| other.short.split(':').next() == Some(engine);
    let is_installed = |one: &Ladder| {
        !one.equalised && one.rows.iter().any(|row| row.layer == "engine" && row.label == engine)
    };
    let is_alone = ladder.rows.iter().filter(is_of).count() == 1;
    if is_alone && setting.ladders.iter().any(is_installed) { engine } else { &row.short }
}

/// How the engines of a column are equalised: the keys they share, and those that only some of them need.
fn equalised(place: &Place<'_>) -> String {
    let own = place.ladder.rows.iter().filter_map(|row| {
        let keys = row.short.strip_prefix(name_of(place.setting, place.ladder, row))?.strip_prefix(':')?;
        Some(format!("{} also {keys}", name_of(place.setting, place.ladder, row)))
    });
    let shared = Some(place.ladder.shared_keys.clone()).filter(|keys| !keys.is_empty());
    let all = listed(shared.into_iter().chain(own), ", ");
    if all.is_empty() { all } else { format!("; equalised: {all}") }
}

/// A metric in a setting, on each ladder.
fn in_setting(setting: &Setting, metric: usize) -> Vec<Place<'_>> {
    let first = setting.ladders.first().is_some_and(|ladder| ladder.equalised);
    let place = |ladder| Place { setting, ladder, metric, is_beside: ladder.equalised != first };
    setting.ladders.iter().map(place).collect()
}

/// The columns, the most important first: the first metric in every setting, as installed and equalised; or several
/// metrics, if they rank equally or there is only one setting.
fn places(experiment: &Experiment) -> Vec<Place<'_>> {
    let [first, rest @ ..] = &experiment.settings[..] else { return Vec::new() };
    let mut all = in_setting(first, 0);
    if experiment.about.event.has_one_answer() {
        all.extend(rest.iter().flat_map(|setting| in_setting(setting, 0)));
    } else {
        all.truncate(1);
    }
    if rest.is_empty() || all.len() == 1 {
        let others = (1..experiment.metrics.len()).filter(|&metric| experiment.metrics[metric].decisive);
        all.extend(others.filter_map(|metric| in_setting(first, metric).first().copied()));
    }
    all
}

/// How much each subject differs from the baseline, in as many settings or metrics as there is room for.
fn ladder(report: &Report, experiment: &Experiment, room: usize) -> Option<Table> {
    let mut places = places(experiment);
    let job = report
        .job
        .as_ref()
        .filter(|job| job.shares.iter().any(|one| one.finding.about.experiment == experiment.name));
    if job.is_some() {
        // Of a job only the first metric has a share.
        places.retain(|place| place.metric == 0);
    }
    let has_metrics = distinct(places.iter().map(|place| place.metric)).len() > 1;
    let decided = |row: &Row| {
        (0..experiment.metrics.len()).any(|at| row.found(at).is_some_and(|one| one.difference.is_some()))
    };
    let is_compared = experiment.rows().any(|(_, _, row)| decided(row));
    let names = distinct(places.iter().flat_map(|place| {
        let rows = place.ladder.rows.iter().filter(|row| row.variant_of.is_none());
        let rows = rows.filter(|row| !is_compared || has_metrics || !row.is_baseline);
        rows.map(|row| name_of(place.setting, place.ladder, row).to_owned()).collect::<Vec<_>>()
    }));
    let mut table = Table::of(title(report, experiment, &places, is_compared), vec![Column::words("")]);
    table.rows = names
        .iter()
        .map(|name| Line { subjects: vec![name.clone()], cells: vec![Cell::code(name)] })
        .collect();
    let mut taken = names.iter().map(|name| width(name)).max()?.min(LABEL);
    let mut left_out = 0;
    for place in &places {
        let unit = if job.is_some() { Unit::Share } else { experiment.metrics[place.metric].unit };
        let value = |name: &String| -> Option<Estimate> {
            let row = place.row(name)?;
            match (job, row.found(place.metric)) {
                _ if row.is_suspect(place.metric) => None,
                (Some(job), Some(found)) => {
                    job.shares.iter().find(|one| one.finding.cell == found.cell).map(|one| one.share)
                }
                (None, Some(found)) if is_compared && !row.is_baseline => found.difference,
                (Some(_), None) => None,
                _ if is_compared && !row.is_baseline => None,
                _ => row.value(place.metric).map(|value| value.median),
            }
        };
        let values: Vec<Option<Estimate>> = names.iter().map(value).collect();
        let (column, mut cells) = Column::measured(&place.head(experiment, has_metrics), unit, &values);
        for (cell, (name, value)) in cells.iter_mut().zip(names.iter().zip(&values)) {
            if value.is_none() {
                *cell = nothing(place.row(name), place.metric);
            }
        }
        let widest = cells.iter().map(|cell| width(&cell.text) + width(&cell.interval) + 1);
        let head = column.name.split(' ').map(width).max().unwrap_or(0);
        let needed = widest.max().unwrap_or(0).max(head) + 2;
        if taken + needed > room && table.columns.len() > 1 {
            left_out += 1;
            continue;
        }
        taken += needed;
        table.add((Column { kind: Cells::Numbers, ..column }, cells));
    }
    if taken + DRAWING <= room {
        table.drawn = Some(Drawn {
            column: 1,
            unit: if job.is_some() { Unit::Share } else { experiment.metrics[0].unit },
        });
    }
    if left_out > 0 {
        table = table.note(format!("`--full` shows {}", counted(left_out, "more column")));
    }
    let shares = floor_shares_in_short(experiment).filter(|told| wrap("", told, room).len() <= SHARES);
    Some(shares.into_iter().fold(table, Table::note))
}

/// Why a row has no value.
fn nothing(row: Option<&Row>, metric: usize) -> Cell {
    match row {
        None => Cell::default(),
        Some(row) if row.is_suspect(metric) => Cell::words("suspect").tone(Tone::Alarm),
        Some(row) if row.lost > 0 => Cell::words("failed").tone(Tone::Alarm),
        Some(_) => Cell::nothing("–"),
    }
}

/// What the numbers in the ladder are.
fn title(report: &Report, experiment: &Experiment, places: &[Place<'_>], is_compared: bool) -> String {
    let metric = &experiment.metrics[0];
    let has_metrics = places.iter().any(|place| place.metric > 0);
    let shared = places.iter().find(|place| place.ladder.equalised).map_or(String::new(), equalised);
    let name = if has_metrics {
        experiment.name.to_owned()
    } else {
        format!("{} `{}`", experiment.name, metric.name)
    };
    if !is_compared {
        return format!("{name}: medians with their 95 % intervals{shared}");
    }
    if let Some(job) = &report.job {
        return format!("{name}: share added to a job of {}{shared}", Unit::Seconds.format(job.length));
    }
    let own = places.iter().filter(|place| !place.is_beside && place.metric == 0).filter_map(|place| {
        let row = place.ladder.rows.iter().find(|row| row.is_baseline)?;
        let takes = estimated(metric.unit, &row.value(0)?.median);
        Some((row.label.as_str(), format!("{takes}{}", in_brackets(&place.setting.values))))
    });
    let own: Vec<(&str, String)> = own.collect();
    let Some((baseline, _)) = own.first() else { return name };
    if has_metrics {
        return format!("{name}: medians of `{baseline}`, and differences from it, with intervals{shared}");
    }
    let takes = listed(own.iter().map(|(_, takes)| takes), ", ");
    format!("{name}: difference from `{baseline}`, which takes {takes}{shared}")
}

/// All candidate sentences by experiment, each with a rank: the higher, the sooner it is left out.
fn points(report: &Report, lead: Option<&Experiment>) -> Vec<(usize, Item)> {
    let predicted = report.predictions.iter().map(|one| (0, asked::outcome(one, 0)));
    let has_names = report.experiments.len() > 1;
    let of = |experiment: &Experiment| {
        let is_lead = lead.is_some_and(|lead| lead.name == experiment.name);
        let mut all = answers(report, experiment, is_lead);
        all.extend(exceptions(experiment).filter(|_| is_lead).map(|text| (2, text)));
        let name = if has_names { experiment.name } else { "" };
        all.into_iter().map(move |(rank, text)| (rank, Item::of(text).named(name))).collect::<Vec<_>>()
    };
    let precision = report.precision.iter().map(|one| (4, Item::of(&one.sentence)));
    let job = report.job.iter().filter_map(|job| Some((0, asked::not_shown(job, lead)?)));
    job.chain(predicted).chain(report.experiments.iter().flat_map(of)).chain(precision).collect()
}

/// The sentences of an experiment, the most important first, without those that repeat the table or each other.
fn answers(report: &Report, experiment: &Experiment, has_table: bool) -> Vec<(usize, String)> {
    let own = |one: &&Sentence| one.experiment == experiment.name;
    let is_choice = |one: &Sentence| {
        let first = one.rests_on.first().map(|about| about.metric);
        one.topic == Topic::Choice && first == experiment.metrics.first().map(|metric| metric.name)
    };
    let place = |about: &'_ About| {
        (about.subject.clone(), about.against.clone(), about.setting.clone(), about.metric)
    };
    let choices = |is_first: bool| {
        let all = report.sentences.iter().filter(own).filter(|one| one.topic == Topic::Choice);
        all.filter(move |one| is_choice(one) == is_first)
    };
    // "X is fastest, by 5 ms ahead of Y" also says what Y costs.
    let told: Vec<_> = choices(true).flat_map(|one| &one.rests_on).map(place).collect();
    let is_told = |one: &Sentence| one.rests_on.iter().all(|about| told.contains(&place(about)));
    // "X is faster than Y in one metric; in `returned` they cannot be told apart" also says the latter.
    let covers = |whole: &Sentence, part: &Sentence| {
        let told: Vec<_> = whole.rests_on.iter().map(place).collect();
        part.rests_on.iter().all(|about| told.contains(&place(about)))
    };
    let baseline = experiment.rows().find(|(_, _, row)| row.is_baseline).map(|(_, _, row)| &row.label);
    let has_own = experiment.experiment_tables.iter().any(|table| !table.summary.is_empty());
    // The table already shows the first metric of every subject against the baseline.
    let is_in_table = |one: &Sentence| {
        let is_shown = |about: &About| {
            Some(&about.against) == baseline
                && Some(about.metric) == experiment.metrics.first().map(|metric| metric.name)
        };
        has_table && report.job.is_none() && one.rests_on.iter().all(is_shown)
    };
    let has_one_answer = experiment.about.event.has_one_answer();
    let is_repeated = |one: &Sentence| match one.topic {
        Topic::Cost => has_one_answer && is_in_table(one),
        Topic::Difference => is_told(one) || is_in_table(one),
        Topic::Choice if is_choice(one) => {
            choices(false).any(|other| covers(other, one)) || (has_own && is_in_table(one))
        }
        _ => false,
    };
    let rank = |one: &Sentence| match one.topic {
        Topic::Failures => 0,
        Topic::Choice if is_choice(one) => 0,
        Topic::Cost if !has_one_answer => 0,
        Topic::Cost if !has_table => 1,
        Topic::Threshold | Topic::Setting => 1,
        Topic::Open => 2,
        Topic::Difference => 3,
        Topic::Choice if choices(true).any(|part| covers(one, part)) => 0,
        Topic::Choice => 4,
        Topic::Cost => 5,
        Topic::Risk => 6,
    };
    let described = experiment.comparisons.iter().filter(|told| {
        told.finding.about.relation == Relation::Several && experiment.metrics[told.finding.metric].decisive
    });
    let described = described.map(|told| {
        let of = format!(
            "`{}`{}",
            told.finding.about.metric,
            in_brackets(experiment.values_of(&told.finding.about.setting))
        );
        format!("{} {} in {of}", told.phrase, told.predicate)
    });
    let factors = experiment.factors.iter().flat_map(|one| &one.answers).map(|one| {
        format!("{}{}: {}", one.place.metric, in_brackets(experiment.values_of(&one.place.setting)), one.text)
    });
    let first = described.chain(factors).map(|text| (0, text));
    // Where another experiment has the table: one sentence, after those of the table.
    let summaries = experiment.experiment_tables.iter().flat_map(|table| table.summary.iter().cloned());
    let summaries = dearest(experiment).into_iter().chain(summaries).enumerate();
    let summaries = summaries.map(|(at, text)| match (has_table, at) {
        (true, _) => (0, text),
        (false, 0) => (1, text),
        (false, _) => (3, text),
    });
    let first = first.chain(summaries);
    let sentences = report.sentences.iter().filter(own).filter(|one| !is_repeated(one));
    let sentences = sentences.map(|one| (rank(one), one.text.clone()));
    let mut all: Vec<(usize, String)> = first.chain(sentences).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all
}

/// The same items, with the name of an experiment before its first point only, where it takes no room from the others.
fn named_once(mut items: Vec<Item>) -> Vec<Item> {
    let mut last = String::new();
    for item in &mut items {
        let name = std::mem::take(&mut item.name);
        if name != last {
            item.text = format!("{name}: {}", item.text);
            last = name;
        }
    }
    items
}

/// Unexpected verdicts against the baseline: subjects of higher layers that are not slower. Undecided comparisons
/// have a sentence of their own, and so have pairs within the layer of the baseline.
fn exceptions(experiment: &Experiment) -> Option<String> {
    let baseline = experiment.rows().find(|(_, _, row)| row.is_baseline)?.2;
    let is_above = |row: &Row| row.variant_of.is_none() && row.layer != baseline.layer;
    let rows = experiment.rows().filter(|(_, _, row)| is_above(row));
    let found = rows.filter_map(|(setting, _, row)| Some((setting, row, row.found(0)?)));
    let is_decided = |kind: Kind| kind == Kind::Same || kind.is_difference();
    let told =
        found.filter(|(_, _, one)| is_decided(one.kind()) && !one.kind().is_worse() && one.noise.is_none());
    let has_settings = experiment.settings.len() > 1;
    let told = told.map(|(setting, row, one)| {
        let values = if has_settings { in_brackets(&setting.values) } else { String::new() };
        (one.word(), format!("{}{values}", row.label))
    });
    let groups = in_groups(told, |(word, _)| *word).into_iter();
    let groups = groups.map(|(word, all)| {
        let names = listed(distinct(all.into_iter().map(|(_, name)| name)), ", ");
        let (metric, label) = (experiment.metrics[0].name, &baseline.label);
        if word == Kind::Same.word() {
            format!("no difference from {label} that matters (`{metric}`): {names}")
        } else {
            format!("{word} than {label} (`{metric}`): {names}")
        }
    });
    let text = listed(groups, "; ");
    (!text.is_empty()).then_some(text)
}

/// Failures and warnings, one line each.
fn beware(report: &Report) -> Vec<Item> {
    let failures = in_groups(&report.failures, |one| (one.label.as_str(), one.class)).into_iter();
    let failures = failures.map(|((label, class), all)| {
        let (times, planned) =
            all.iter().fold((0, 0), |(times, planned), one| (times + one.times, planned + one.planned));
        let often = format!("`{label}`: {times} of {}", counted(planned, "sample"));
        Item::of(format!("{often}: {}", without_arguments(&all[0].reason))).marked(Tone::Alarm, class)
    });
    let told = report.warnings.iter().filter(|one| !matches!(one.kind, "failures" | "skipped"));
    let far: usize =
        report.experiments.iter().filter_map(|one| Some(one.spikes.as_ref()?.samples.len())).sum();
    let warnings = in_groups(told, |one| one.kind).into_iter().map(|(kind, all)| {
        let labels = distinct(all.iter().flat_map(|one| &one.labels).map(String::as_str));
        let text = match (kind, all.len(), labels.is_empty()) {
            ("outliers", ..) => {
                format!("{} far from the others: {}", counted(far, "sample"), listed(labels, ", "))
            }
            (_, 1, _) | (_, _, true) => all[0].seen.clone(),
            (_, many, _) => format!("{}: {}", counted(many, "cell"), listed(labels, ", ")),
        };
        Item::of(text).marked(Tone::Open, kind)
    });
    few(failures.collect()).into_iter().chain(warnings).collect()
}

/// A reason that begins with a command line, with only the program and its verb: the cause comes after them.
fn without_arguments(reason: &str) -> String {
    let Some((line, cause)) = reason.strip_prefix('`').and_then(|rest| rest.split_once('`')) else {
        return reason.to_owned();
    };
    let mut words = line.split(' ');
    let program = words.next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let verb = words.next().map_or(String::new(), |verb| format!(" {verb}"));
    let more = if words.next().is_some() { " …" } else { "" };
    format!("`{program}{verb}{more}`{cause}")
}

/// The first of them, and how many more there are.
fn few(mut items: Vec<Item>) -> Vec<Item> {
    let more = items.len().saturating_sub(MOST);
    if more > 1 {
        items.truncate(MOST);
        items.push(Item::of(format!("and {more} more: see `--full`")));
    }
    items
}

/// Where the rest is.
fn the_rest(report: &Report, look: &Look, left_out: usize) -> String {
    let has_verdicts = report.experiments.iter().any(|one| one.has_verdicts() && one.too_few().is_none());
    let level = if has_verdicts {
        "Differences hold together at 95 %: those asked first, and all others. "
    } else {
        ""
    };
    let all = match left_out {
        _ if report.samples == 0 => "Machine, programs and failures".to_owned(),
        0 => "Full report".to_owned(),
        more => format!("Full report, with {}", counted(more, "more answer")),
    };
    format!("{level}{all}: `dunnage report {} --full`.", in_shell([clean(&look.place)]))
}
