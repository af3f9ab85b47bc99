//! `dunnage plan`: shows what a run would do, without measuring.

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use dunnage_analysis::distinct;
use dunnage_analysis::group::in_groups;
use dunnage_analysis::subject::inherited::{differences, shown};

use super::request::{self, Asked};
use super::show;
use crate::cli;
use crate::document::{Block, Cell, Column, Document, Extent, Item, Look, TALL, Table, fitted, terminal};
use crate::exit::{self, usage};
use crate::plan::{
    Factor, MOST_PRECISE_ROUNDS, PILOT_ROUNDS, PRECISE_TIME, Plan, Relation, Role, Rounds, Verdicts,
};
use crate::plan_file;
use crate::record::{self, Present};
use crate::report::text::{clean, confidence, in_brackets, in_shell, listed, percent};
use crate::session::{Found, Leftovers};
use crate::stats::min_rounds;
use crate::subject::by_cause;
use crate::units::{Nanos, counted};

/// Runs the verb.
pub fn run(options: &cli::Plan) -> Result<i32> {
    let asked = request::asked(&options.selection)?;
    if let Some(path) = options.write.as_deref().filter(|path| path.exists()) {
        return Err(usage(format!("`{}` already exists\n\nhint: choose another file", path.display())));
    }
    let session = asked.session(Leftovers::Kept)?;
    let (plan, left_out) = request::plan(&asked, &session.found)?;
    let is_terminal = std::io::stdout().is_terminal();
    let look = Look { extent: options.extent.into(), ..show::look(Path::new(""), is_terminal) };
    let text = terminal::render(&describe(&asked, &session.found, &plan, &left_out, &look), &look);
    drop(session);
    std::io::stdout().write_all(text.as_bytes())?;
    if let Some(path) = &options.write {
        let written = plan_file::write(&plan, &asked.request, &asked.tags, asked.variants);
        record::part_of(path)
            .and_then(|mut part| part.file().write_all(written.as_bytes()).map(|()| part))
            .and_then(|part| part.persist(Present::Keep))
            .with_context(|| format!("cannot write the plan file `{}`", path.display()))?;
        super::tell(&format!(
            "wrote `{0}`; run it with `dunnage run --plan {0}`",
            in_shell([path.to_string_lossy()])
        ));
    }
    Ok(exit::FINE)
}

/// Trials shorter than this are not worth telling.
const TOLD: Nanos = Nanos::from_millis(5_000);
/// Number of subjects that fit one screen.
const SUBJECTS: usize = 14;

/// The plan in words: its time, its verdicts, then what it measures, and every detail with `--full`.
fn describe(asked: &Asked, found: &Found, plan: &Plan, left_out: &[String], look: &Look) -> Document {
    let mut points: Vec<(usize, Item)> = Vec::new();
    let mut line = |head: &str, words: String| match (head, points.last_mut()) {
        ("", Some((_, last))) => last.text = clean(&format!("{}; {words}", last.text)),
        _ => {
            let rank = match head {
                "comparisons" | "left out" => 1,
                "settings" => 2,
                _ => 0,
            };
            points.push((rank, Item::of(words).named(head)));
        }
    };
    let label = |index: usize| plan.subjects[index].label.as_str();
    line("experiments", asked.request.experiments.join(", "));
    for name in &asked.without {
        line("", format!("{name} is left out to stay within a minute"));
    }
    let (round, all) = (plan.round_time(), plan.predicted());
    let trials = Some(found.took()).filter(|took| *took >= TOLD);
    let trials = trials.map_or("the trials".to_owned(), |took| format!("{took} of trials"));
    line("time", format!("{all} in total, {round} per round, plus {trials} before"));
    takes_long(asked, plan, found).into_iter().for_each(|words| line("", words));
    if plan.cells.iter().any(|cell| cell.asks().unknown.is_some()) {
        let taken = plan.unknown;
        line("", format!("assuming that the command takes {taken}; `run` tries it once to find out"));
    }
    let need = match plan.verdicts_asked() {
        0 => String::new(),
        _ => format!("; verdicts need {}", plan.rounds_for_verdicts()),
    };
    line("rounds", format!("{} and {} to warm up{need}", plan.rounds, plan.warmups));
    if let Rounds::Precise(share) = asked.request.rounds {
        let (share, most) = (percent(share), plan.rounds_within(PRECISE_TIME, MOST_PRECISE_ROUNDS));
        line(
            "",
            format!(
                "this is the least: for ±{share}, a pilot of {PILOT_ROUNDS} rounds finds the number, up to {most}"
            ),
        );
    }
    for quota in plan.quotas.iter().filter(|quota| quota.rounds < plan.rounds) {
        line("", format!("{} of them with {}", quota.rounds, quota.experiment));
    }
    if let Some(words) = too_few(plan) {
        line("", words);
    }
    if plan.verdicts_asked() == 0 {
        line("comparisons", "none: no verdicts".to_owned());
    }
    for one in plan.verdicts.iter().filter(|one| one.all_asked() > 0) {
        let of = if plan.verdicts.len() > 1 { format!(" of {}", one.experiment) } else { String::new() };
        let at = |count: usize, role: Role, what: &str, on: &str| {
            let level = confidence(plan.alpha_for(one.experiment, role));
            let each = if count == 1 { "" } else { " each" };
            (count > 0).then(|| format!("{}{of}{on} at {level}{each}", counted(count, what)))
        };
        let first = at(one.first, Role::First, "verdict", " on what is asked first");
        let what = if first.is_some() { "other verdict" } else { "verdict" };
        let others = at(one.asked, Role::Asked, what, "");
        let asked = listed([first, others].into_iter().flatten(), ", ");
        let own = plan.comparisons.iter().filter(|other| other.experiment == one.experiment);
        let settings = listed(distinct(own.filter_map(|one| controlled(&one.relation))), ", ");
        let settings = in_brackets(&settings).replacen('(', "(also ", 1);
        line("comparisons", format!("{asked}{settings}, plus {} of twins as controls", one.controls));
    }
    for one in &plan.predictions {
        line("predicted", one.to_string());
        for label in plan.not_there(one) {
            line("", format!("except `{label}`, which this run does not measure"));
        }
    }
    if let Some(factorial) = &plan.factorial {
        let factor = |one: &Factor| format!("{} ({}, {})", one.name, one.levels[0], one.levels[1]);
        line(
            "factors",
            format!(
                "{}: all {} combinations, {} in each setting, counted among the verdicts",
                listed(factorial.factors.iter().map(factor), ", "),
                factorial.subjects.len(),
                counted(factorial.effects().len(), "effect")
            ),
        );
    }
    for name in &asked.request.experiments {
        let settings = settings(plan, name);
        let settings = if settings.is_empty() { "none to choose" } else { &settings };
        let of = if asked.request.experiments.len() > 1 { format!("of {name}: ") } else { String::new() };
        line("settings", format!("{of}{settings}"));
    }
    line("cells", plan.cells.len().to_string());
    if !left_out.is_empty() {
        line("left out", format!("{}, {}", left_out.join(", "), asked.to_be_quick()));
    }
    let lacking = plan.lacking(&asked.request);
    for ((experiment, why), all) in in_groups(lacking, |(experiment, _, why)| (experiment.clone(), *why)) {
        let (labels, is) =
            (listed(all.iter().map(|(_, label, _)| label), ", "), if all.len() > 1 { "are" } else { "is" });
        line("left out", format!("{labels} {is} not in {experiment}: {why}"));
    }
    for (what, why) in &asked.lacking {
        line("left out", format!("{what}: {why}"));
    }
    for told in by_cause(&found.unavailable) {
        line("left out", format!("{}, not available: {}", told.names, told.reason));
        for remedy in told.remedies {
            line("", format!("remedy: {remedy}"));
        }
    }
    line("subjects", format!("{}, with baseline `{}`", plan.subjects.len(), label(plan.baseline)));
    let is_full = look.extent == Extent::Full;
    let shown = if is_full { plan.subjects.len() } else { SUBJECTS };
    let mut subjects =
        Table::of("", vec![Column::words("subject"), Column::words("layer"), Column::numbers("launch")]);
    for entry in plan.subjects.iter().take(shown) {
        let kind = if entry.twin_of.is_some() { "twin" } else { entry.layer.name() };
        let cells = vec![Cell::code(&entry.label), Cell::words(kind), Cell::words(entry.launch.to_string())];
        subjects.row(&[], cells);
    }
    let whole = |items: Vec<Item>, left_out: usize| {
        let mut document = Document::titled(&in_short(asked, plan));
        document.head = items.into_iter().map(|item| (item.name, item.text)).collect();
        document.answer.push(Block::Table(subjects.clone()));
        if is_full {
            document.answer.extend(at_length(plan));
        } else {
            let more = [(plan.subjects.len().saturating_sub(SUBJECTS), "subject"), (left_out, "line")]
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!("{}, ", counted(count, &format!("more {what}"))));
            let more: String = more.collect();
            let all =
                format!("{more}all comparisons and the order of the first round: `dunnage plan … --full`");
            document.answer.push(Block::note(all));
        }
        document
    };
    match is_full {
        true => whole(points.into_iter().map(|(_, item)| item).collect(), 0),
        false => fitted(look, TALL, &points, whole),
    }
}

/// How long it takes, and how many verdicts that gives.
fn in_short(asked: &Asked, plan: &Plan) -> String {
    let least = if matches!(asked.request.rounds, Rounds::Precise(_)) { "at least " } else { "" };
    let verdicts = match plan.verdicts_asked() {
        0 => "no verdicts".to_owned(),
        _ if !plan.without_verdicts().is_empty() => "too few rounds for all verdicts".to_owned(),
        _ if too_few(plan).is_some() => "verdicts only on what is asked first".to_owned(),
        count => counted(count, "verdict"),
    };
    format!("{least}{} in {}: {verdicts}", counted(plan.rounds, "round"), plan.predicted())
}

/// Two settings that are compared: `place=volume against root`.
fn controlled(relation: &Relation) -> Option<String> {
    match relation {
        Relation::OneSetting { key, value, control } => Some(format!("{key}={value} against {control}")),
        _ => None,
    }
}

/// What is compared, and the order of the first round.
fn at_length(plan: &Plan) -> Vec<Block> {
    let label = |index: usize| &plan.subjects[index].label;
    // Most experiments compare the same pairs.
    let told = plan.comparisons.iter().map(|one| (one.subject, one.against, &one.relation));
    let pairs = distinct(told).into_iter().map(|(subject, against, relation)| {
        if let Some(settings) = controlled(relation) {
            return format!("`{}` and itself: {settings}", label(subject));
        }
        let why = match relation {
            Relation::OneKey { key } => format!("differ only in {key}"),
            Relation::KeyAndMore { key } => {
                let [one, other] = [subject, against].map(|index| &plan.subjects[index].inherited);
                format!("differ in {key} and {}", shown(&differences(key, one, other)))
            }
            other => other.name().to_owned(),
        };
        format!("`{}` and `{}`: {why}", label(subject), label(against))
    });
    let order = plan.order(plan.warmups).into_iter().map(|cell| {
        let cell = &plan.cells[cell];
        format!("{} {} {}", cell.experiment, cell.setting, label(cell.subject))
    });
    let seed = format!("seed {}, with this order in the first round", plan.seed);
    [Block::titled("pairs", vec![Block::copy(pairs)]), Block::titled(seed, vec![Block::copy(order)])].concat()
}

/// A message if the rounds are too few for verdicts, or for all but the questions asked first, with the number that is enough.
pub fn too_few(plan: &Plan) -> Option<String> {
    let lacking = plan.without_verdicts();
    if lacking.is_empty() {
        let needs = |one: &&Verdicts| {
            one.asked > 0 && min_rounds(plan.alpha(one.experiment)) > plan.rounds_of(one.experiment)
        };
        let names = listed(plan.verdicts.iter().filter(needs).map(|one| one.experiment), ", ");
        let (rounds, enough) = (counted(plan.rounds, "round"), plan.rounds_for_verdicts());
        return (!names.is_empty()).then(|| {
            format!("from {rounds} of {names} only what is asked first has verdicts; use `--rounds {enough}` for all")
        });
    }
    let needs = listed(lacking.iter().map(|(name, needed)| format!("{name} needs {needed}")), ", ");
    let (rounds, enough) = (counted(plan.rounds, "round"), plan.rounds_for_verdicts());
    (!lacking.is_empty())
        .then(|| format!("no verdict from {rounds}: {needs}; use `--rounds {enough}` to have some to spare"))
}

/// A message if a run without a chosen number of rounds takes longer than documented, with what would shorten it.
pub fn takes_long(asked: &Asked, plan: &Plan, found: &Found) -> Option<String> {
    let minutes = match (asked.quick, &asked.request.experiments[..]) {
        (true, _) => asked.minutes,
        (false, [_]) => 6,
        (false, _) => 5,
    };
    let promised = Nanos::from_millis(minutes * 60_000);
    (matches!(asked.request.rounds, Rounds::Fit(_)) && plan.predicted().0 + found.took().0 > promised.0).then(|| {
        let rounds = counted(plan.rounds_for_verdicts(), "round");
        format!(
            "this takes longer than {promised}, because verdicts on this many subjects need {rounds}; choose fewer with `-s`, or one setting with `--set`"
        )
    })
}

/// Number of settings to list one by one.
const FEW: usize = 8;

/// The settings of an experiment; if they are many, their number and what they vary.
fn settings(plan: &Plan, name: &str) -> String {
    let own: Vec<_> = plan.cells.iter().filter(|cell| cell.experiment == name).collect();
    let mut all: Vec<String> = own.iter().map(|cell| cell.setting.to_string()).collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return "none: no subject supports this experiment".to_owned();
    }
    if all.len() <= FEW {
        return all.join(", ");
    }
    let keys = plan_file::settings(own.into_iter());
    let keys = keys.iter().map(|(key, values)| format!("{key}={}", values.join("|")));
    format!("{} of {}", all.len(), listed(keys, ";"))
}
