//! A run in one screen: the question, where and when; the table that answers it; the claims, as question and answer; failures and
//! warnings, one line a kind; and where the rest is.

use dunnage_analysis::experiment::Event;
use dunnage_analysis::group::in_groups;

use super::{alarm, asked, compared, dearest, lead, nothing_measured, own, published, stacked};
use crate::distinct;
use crate::document::{Block, Document, Extent, Item, Look, SCREEN, Tone, fitted, in_a_line, lines};
use crate::plan::Relation;
use crate::record::ComponentFacts;
use crate::report::head;
use crate::report::model::{Experiment, Report};
use crate::report::summary::Topic;
use crate::report::text::{capital, clean, in_brackets, in_shell, listed};
use crate::units::counted;
use crate::verdict::About;

/// Experiments that the first line names.
const NAMED: usize = 3;
/// Versions that the head names.
const VERSIONS: usize = 4;
/// On a narrower terminal nothing is cut.
const WIDE: usize = 80;
/// Failures and suspects with a line of their own.
const MOST: usize = 4;
/// Rows of the table: as many of these as leave lines for answers.
const ROWS: [usize; 5] = [16, 12, 9, 6, 3];
/// Lines for answers, the blank one before them, and that for the rest.
const CLAIMS: usize = 7;

pub(crate) fn brief(report: &Report, look: &Look) -> Document {
    let mut document = Document::titled(&title(report));
    document.about = [when(report), host(report)].concat();
    document.alarms = few(in_a_line(look, report.suspects.iter().map(alarm)));
    document.answer.extend(nothing_measured(report));
    let always = in_a_line(look, beware(report));
    let taken = |table: &[Block]| {
        let mut document = document.clone();
        document.answer.extend_from_slice(table);
        document.answer.push(Block::List(always.clone()));
        lines(&document, look)
    };
    let mut tables = ROWS.into_iter().map(|most| table(report, most));
    let fits = |table: &Vec<Block>| taken(table) + CLAIMS <= SCREEN;
    let table = tables.clone().find(fits).or_else(|| tables.next_back());
    document.answer.extend(table.unwrap_or_default());
    let points = points(report, look);

    let mut brief = fitted(look, SCREEN, &points, |items, left_out| {
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

/// The question that is answered, or which ones are.
fn title(report: &Report) -> String {
    let lead = lead(report).filter(|_| report.experiments.len() <= NAMED);
    match (lead, &report.experiments[..]) {
        (_, [one]) => capital(one.question),
        (Some(lead), all) => {
            let others = all.iter().map(|one| one.name).filter(|name| *name != lead.name);
            format!("{} (also: {})", capital(lead.question), listed(others, ", "))
        }
        (_, many) if many.len() > NAMED => counted(many.len(), "experiment"),
        (_, many) => listed(many.iter().map(|one| one.name), ", "),
    }
}

/// How often, for how long, and when.
fn when(report: &Report) -> Vec<String> {
    let rounds = report.rounds;
    let rounds = match &report.imported {
        Some(imported) => format!("{} imported from {}", counted(report.samples, "sample"), imported.from),
        None => head::done(rounds.complete, rounds.planned),
    };
    let lasted = report.lasted.map_or(String::new(), |time| format!(", {time}"));
    let day = head::started(&report.started).get(..16).map(str::to_owned);
    [Some(format!("{rounds}{lasted}")), day].into_iter().flatten().collect()
}

/// The machine, and the versions of what was measured on it.
fn host(report: &Report) -> Vec<String> {
    let fact = |name: &str| head::fact(report, name).map(str::to_owned);
    let cpus = fact("cpu_usable").and_then(|count| Some(counted(count.parse().ok()?, "CPU")));
    let kernel =
        fact("kernel").map(|release| format!("Linux {}", version(&release).unwrap_or(release.clone())));
    let groups = fact("cgroup_mode").map(|mode| format!("cgroup {mode}"));
    let host = report.host.clone();
    let rows = || report.experiments.iter().flat_map(Experiment::rows).map(|(.., row)| row);
    let names = rows().filter_map(|row| row.label.split([':', '+', '=', ' ']).next());
    let measured = distinct(names.chain(rows().filter_map(|row| row.runtime.as_deref())));
    let told = |program: &ComponentFacts| {
        let name = program.path.rsplit('/').next().unwrap_or_default();
        // An engine is its daemon; a client may have another version.
        let of = |wanted: &str| {
            let is_it = |one: &&ComponentFacts| one.path.rsplit('/').next() == Some(wanted);
            report.programs.iter().find(is_it).and_then(|one| version(&one.version))
        };
        let own = version(&program.version).filter(|_| measured.contains(&name))?;
        Some(match of(&format!("{name}d")).filter(|daemon| *daemon != own) {
            Some(daemon) => format!("{name} {daemon} (client {own})"),
            None => format!("{name} {own}"),
        })
    };
    let mut versions = distinct(report.programs.iter().filter_map(told));
    if versions.len() > VERSIONS {
        versions.truncate(VERSIONS);
        versions.push("and more".to_owned());
    }
    let versions = listed(versions, ", ");
    let parts = [host, kernel, groups, cpus, Some(versions).filter(|own| !own.is_empty())];
    parts.into_iter().flatten().collect()
}

/// The first number with a point in a text.
fn version(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.map(|word| word.trim_matches('.')).find(|word| word.contains('.')).map(str::to_owned)
}

/// The table that answers the question, with so many rows.
fn table(report: &Report, most: usize) -> Vec<Block> {
    let Some(lead) = lead(report) else {
        return report.experiments.first().and_then(|one| own::short_table(one, most)).into_iter().collect();
    };
    if report.rounds.complete == 0 && report.samples == 0 {
        return Vec::new();
    }
    if let Some(own) = own::answer(lead, most) {
        return vec![own];
    }
    let job = report.job.as_ref();
    let stacked = stacked::table(lead, most).filter(|_| job.is_none());
    vec![Block::Table(own::cut(stacked.unwrap_or_else(|| compared::at_a_glance(lead, 0, 0, job)), most))]
}

/// All claims by experiment, each with a rank: the higher, the sooner it is left out.
fn points(report: &Report, look: &Look) -> Vec<(usize, Item)> {
    let predicted = report.predictions.iter().map(|one| (0, asked::outcome(one, 0)));
    let has_names = report.experiments.len() > 1;
    let of = |experiment: &Experiment| {
        let is_lead = lead(report).is_some_and(|lead| lead.name == experiment.name);
        let name = Some(experiment.name.to_owned()).filter(|_| has_names && !is_lead);
        let all = answers(report, experiment).into_iter();
        all.map(move |(rank, item)| (rank, Item { subject: name.clone(), ..item }))
    };
    let precision = report.precision.iter().map(|one| (5, Item::of(&one.sentence).named("how exact?")));
    let job = report.job.iter().filter_map(|job| Some((0, asked::not_shown(job, lead(report))?)));
    let all: Vec<_> = report.experiments.iter().flat_map(|one| of(one).collect::<Vec<_>>()).collect();
    let mut all: Vec<(usize, Item)> = job.chain(predicted).chain(all).chain(precision).collect();
    if look.extent == Extent::Brief && look.width >= WIDE {
        // What is open takes a line: it can be opened.
        let cut = in_a_line(look, all.iter().map(|(_, item)| item.clone()));
        let is_open = |rank: usize| rank == Topic::Open.importance();
        all.iter_mut().zip(cut).filter(|(own, _)| is_open(own.0)).for_each(|(own, cut)| own.1 = cut);
    }
    all
}

/// The claims of an experiment, the most important first.
fn answers(report: &Report, experiment: &Experiment) -> Vec<(usize, Item)> {
    let described = experiment.comparisons.iter().filter(|told| {
        told.finding.about.relation == Relation::Several && experiment.metrics[told.finding.metric].decisive
    });
    let described = described.map(|told| {
        let About { metric, setting, .. } = &told.finding.about;
        let setting = in_brackets(experiment.values_of(setting));
        format!("{} {} in `{metric}`{setting}", told.phrase, told.predicate)
    });
    let factors = experiment.factors.iter().flat_map(|one| &one.answers).map(|one| {
        format!("{}{}: {}", one.place.metric, in_brackets(experiment.values_of(&one.place.setting)), one.text)
    });
    let first = described.chain(factors).chain(dearest(experiment));

    let is_lead = lead(report).is_none_or(|lead| lead.name == experiment.name);
    // Where another experiment has the table, one sentence comes soon, and the others late.
    let first =
        first.enumerate().map(|(at, text)| (if is_lead { 0 } else { 1 + 2 * at.min(1) }, Item::of(text)));
    let claims = report.claims.iter().enumerate().filter(|(_, one)| one.experiment == experiment.name);
    let mut last = "";
    let claims = claims.map(|(at, one)| {
        // A question with several answers is asked once.
        let asked = if last == one.question { "" } else { &one.question };
        last = &one.question;
        let item = Item::of(&one.answer).named(asked);
        let later = if one.topic == Topic::Table && !is_lead { 1 } else { 0 };
        let item = item.marked(Tone::Faint, (at + 1).to_string());

        (one.topic.importance() + later, item)
    });
    let mut all: Vec<(usize, Item)> = first.chain(claims).collect();
    all.sort_by_key(|(rank, _)| *rank);
    all
}

/// The same items, with the name of an experiment before its first point only, where it takes no room from the others.
fn named_once(mut items: Vec<Item>) -> Vec<Item> {
    let mut last = None;
    for item in &mut items {
        let name = item.subject.take();
        if let Some(name) = name.as_ref().filter(|_| name != last) {
            item.text = format!("{name}: {}", item.text);
        }
        last = name;
    }
    items
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
    // Where no file is synced, a volatile root is no caution.
    let has_files = report.experiments.iter().any(|one| one.about.event == Event::Works);
    let told = report.warnings.iter().filter(|one| !matches!(one.kind, "failures" | "skipped"));
    let told = told.filter(|one| one.kind != "volatile root" || has_files);
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
    let all = match left_out {
        _ if report.samples == 0 => "Machine, programs and failures".to_owned(),
        0 => "More".to_owned(),

        more => counted(more, "more answer"),
    };
    let one = if report.claims.is_empty() { "" } else { " or `--question 0`" };

    format!("{all}: `dunnage report {} --full`{one}", in_shell([clean(&look.place)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version("Docker version 20.10.24+dfsg1, build 297e128").as_deref(), Some("20.10.24"));
        assert_eq!(version("6.18.44-generic").as_deref(), Some("6.18.44"));
        assert_eq!(version("unknown"), None);
    }
}
