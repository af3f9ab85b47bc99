//! What a comparison says in sentences. They come from verdicts only; and how far one reaches depends on how many
//! runs stand behind it.

use std::collections::BTreeSet;

use super::lines::Scale;
use super::{Comparison, Difference, Line, Meaning, Metric, Run, Subject, Verdict};
use crate::report::text::{clean, estimated, in_percent, joined, number, percent};
use crate::stats::{Alpha, Basis, Estimate, Goal, NewRun, fewest_each};
use crate::units::{Unit, counted};
use crate::verdict::Warning;

/// A new run with more rounds than this is not worth planning.
pub(super) const HOPELESS: usize = 10_000;

/// The unit of a change that is no ratio: the smallest difference that matters.
pub(super) const MATTERS: &str = " × what matters";

/// What a reader must know before the numbers.
pub(super) fn notices(
    old: &[Run<'_>],
    new: &[Run<'_>],
    subjects: &[Subject],
    differences: &[Difference],
) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(not_comparable(differences));
    let restarted: Vec<&Difference> = differences
        .iter()
        .filter(|one| one.meaning == Meaning::Instance && !one.subjects.is_empty())
        .collect();
    if old.len() == 1 && new.len() == 1 && !restarted.is_empty() {
        let labels: Vec<String> =
            restarted.iter().flat_map(|one| &one.subjects).map(|one| format!("`{one}`")).collect();
        all.push(format!(
            "the daemon of {} was started anew between the runs: a started daemon is one sample of what a start gives",
            labels.join(", ")
        ));
    }
    for run in old {
        let name = &run.recorded.run;
        if new.iter().any(|other| other.recorded.run == *name) {
            all.push(format!(
                "`{}` stands on both sides: run {} is compared with itself",
                clean(run.place),
                clean(name)
            ));
        }
    }
    all.extend(without_controls(subjects));
    all.extend(in_blocks(old.iter().chain(new)));
    all.extend(margins(old, new));
    for run in old.iter().chain(new) {
        all.extend(of_run(run));
    }
    all
}

/// Where nobody shows what the machine does by itself.
fn without_controls(subjects: &[Subject]) -> Option<String> {
    let names = |subjects: &mut dyn Iterator<Item = &Subject>| -> BTreeSet<&str> {
        subjects.flat_map(|one| &one.shared).map(|(name, _)| *name).collect()
    };
    let known = names(&mut subjects.iter().filter(|one| one.is_control));
    let without: Vec<&str> = names(&mut subjects.iter()).difference(&known).copied().collect();
    let where_ = if known.is_empty() { String::new() } else { format!(" with {}", without.join(", ")) };
    (!without.is_empty()).then(|| {
        format!("neither bare nor floor is in all runs{where_}: what the machine did cannot be told from what a subject did")
    })
}

/// What makes every change doubtful, and what would help.
fn not_comparable(differences: &[Difference]) -> Option<String> {
    let differing: Vec<&Difference> =
        differences.iter().filter(|one| one.meaning.is_not_comparable()).collect();
    let names: Vec<&str> = differing.iter().map(|one| one.what.as_str()).collect();
    let verb = match names.len() {
        0 => return None,
        1 => "differs",
        _ => "differ",
    };
    let of_dunnage = differing.iter().all(|one| one.meaning == Meaning::Instrument);
    let remedy = if of_dunnage { "; one build of dunnage for both sides takes that away" } else { "" };
    Some(format!(
        "not comparable: {} {verb}, so a change below may come from that and not from what you changed{remedy}",
        names.join(", ")
    ))
}

/// Margins are fixed before measuring; two plans may have fixed them differently.
fn margins(old: &[Run<'_>], new: &[Run<'_>]) -> Vec<String> {
    let plan = &old[0].recorded.plan;
    let mut all = Vec::new();
    for one in &plan.margins {
        let same = |run: &&Run<'_>| {
            let margins = &run.recorded.plan.margins;
            let other = margins
                .iter()
                .find(|other| (&other.experiment, &other.metric) == (&one.experiment, &one.metric));
            other.is_none_or(|other| other.margin == one.margin)
        };
        if let Some(run) = old.iter().chain(new).find(|run| !same(run)) {
            all.push(format!(
                "`{}` has another margin for {} of {}; the one of `{}` holds here",
                clean(run.place),
                clean(&one.metric),
                clean(&one.experiment),
                clean(old[0].place)
            ));
        }
    }
    all
}

/// What is wrong with a run by itself.
fn of_run(run: &Run<'_>) -> Vec<String> {
    let place = clean(run.place);
    let told = |warning: &Warning| match warning {
        Warning::Unfinished { have, planned } => {
            Some(format!("`{place}` was cut short: {have} of {}", counted(*planned, "round")))
        }
        Warning::Resumed => Some(format!("`{place}` was interrupted and resumed")),
        Warning::Damaged { lines, cut } => {
            let tail = if *cut { ", and its last line is cut" } else { "" };
            Some(format!("`{place}` is damaged: {} cannot be read{tail}", counted(*lines, "line")))
        }
        Warning::Disturbed { rounds, first } => {
            Some(format!("`{place}` was disturbed in {}: {}", counted(*rounds, "round"), clean(first)))
        }
        _ => None,
    };
    run.doubts.warnings.iter().filter_map(told).collect()
}

/// What imported samples lack that were taken one cell after the other; said once of all such runs.
pub(crate) fn in_blocks<'a>(runs: impl Iterator<Item = &'a Run<'a>>) -> Option<String> {
    let own: Vec<String> =
        runs.filter(|run| run.recorded.is_in_blocks()).map(|run| format!("`{}`", clean(run.place))).collect();
    let were = match own.len() {
        0 => return None,
        1 => "was",
        _ => "were",
    };
    Some(format!(
        "{} {were} imported, and taken in blocks: every sample of one cell after another, not in shuffled rounds, so that what \
         the machine did meanwhile is part of what differs between cells",
        joined(&own, "and")
    ))
}

/// Gives every line its sentence.
pub(super) fn speak(comparison: &mut Comparison) {
    for experiment in &mut comparison.experiments {
        let metrics = &experiment.metrics;
        for line in &mut experiment.lines {
            line.sentence = sentence(line, &metrics[line.metric]);
        }
    }
}

fn sentence(line: &Line, metric: &Metric) -> String {
    let name = format!("{} of `{}`", metric.name, line.label);
    let Some(together) = line.together else {
        return match &line.verdict {
            Verdict::Suspect(words) => format!("{name} is suspect in {words}"),
            _ => format!("{name} cannot be compared: {}", missing(line)),
        };
    };
    let shown = change(together.scale, &together.change);
    let over = match line.settings.iter().filter(|one| one.difference.is_some()).count() {
        1 => String::new(),
        several => format!(" over {several} settings"),
    };
    let over = format!("{over}{}", lost(line));
    let rises = if goes_up(together.scale, &together.change) { "rises" } else { "falls" };
    let size = |share: f64| size(together.scale, share);
    match &line.verdict {
        Verdict::Same => {
            let matters = match together.scale {
                Scale::Ratio => together.matters - 1.0,
                Scale::Margins => together.matters,
            };
            format!("{name} is the same: {shown}{over}, nowhere beyond {}", size(matters))
        }
        Verdict::Changed(_) => format!("{name} {rises}: {shown}{over}"),
        Verdict::Machine if line.is_control => format!("{name} {rises}: {shown}{over}: the machine changed"),
        Verdict::Machine => {
            format!("{name} {rises}: {shown}{over}; but so does bare or floor: the machine changed")
        }
        Verdict::Mixed => format!("{name} is mixed: {}", in_settings(line, metric.unit)),
        Verdict::Undecided { smallest_visible, new_run } => format!(
            "{name} is undecided: {shown}{over}; smallest visible effect {}; {}",
            size(*smallest_visible),
            how_to_decide(*new_run, together.basis, together.change.alpha)
        ),
        Verdict::ControlsTooWide(bound) => format!(
            "{name} is undecided: it {rises}, {shown}{over}, but bare and floor leave open that the machine made {} of it",
            size(*bound)
        ),
        Verdict::Unsteady(bound) => format!(
            "{name} is undecided: it {rises}, {shown}{over}, but within a run it moved by {} on its own",
            size(*bound)
        ),
        Verdict::TooFew { have, need } => format!(
            "{name} has no verdict: {} a side of the {need} that this many comparisons need; so far {shown}{over}",
            counted(*have, "round")
        ),
        Verdict::Suspect(words) => format!("{name} is suspect in {words}"),
        Verdict::NoData => format!("{name} cannot be compared: {}", missing(line)),
        Verdict::Context => format!("{name}: {shown}"),
    }
}

/// A change with its interval.
pub(super) fn change(scale: Scale, change: &Estimate) -> String {
    match scale {
        Scale::Ratio => in_percent(change),
        Scale::Margins => {
            let shown = |value: f64| number(value, 1);
            let interval = change.interval.map(|one| format!(" [{}, {}]", shown(one.low), shown(one.high)));
            format!("{}{MATTERS}{}", shown(change.value), interval.unwrap_or_default())
        }
    }
}

/// The size of a change without its direction.
pub(super) fn size(scale: Scale, size: f64) -> String {
    match scale {
        Scale::Ratio => percent(size),
        Scale::Margins => format!("{}{MATTERS}", number(size, 1)),
    }
}

pub(super) fn goes_up(scale: Scale, change: &Estimate) -> bool {
    match scale {
        Scale::Ratio => change.value > 1.0,
        Scale::Margins => change.value > 0.0,
    }
}

fn in_settings(line: &Line, unit: Unit) -> String {
    let one = |one: &super::InSetting| {
        let change = one.ratio.as_ref().map(in_percent);
        let change = change.or_else(|| Some(estimated(unit, one.difference.as_ref()?)))?;
        Some(format!("{change} with {}", one.text))
    };
    line.settings.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// The settings that a line says nothing about, since the old runs have values there and the new ones have none.
pub(super) fn lost(line: &Line) -> String {
    let one = |one: &super::InSetting| {
        let why = one.failure[1].as_ref().filter(|_| one.medians[0].is_some())?;
        Some(format!("{} (new {why})", one.text))
    };
    let all: Vec<String> = line.settings.iter().filter_map(one).collect();
    if all.is_empty() { String::new() } else { format!(", without {}", all.join(", ")) }
}

/// Why a line has no numbers.
fn missing(line: &Line) -> String {
    let sides = ["old", "new"];
    let of = |one: &super::InSetting| {
        let reason = |side: usize| Some(format!("{} {}", sides[side], one.failure[side].as_ref()?));
        reason(0).or_else(|| reason(1))
    };
    line.settings.iter().find_map(of).unwrap_or_else(|| "no round has values of all settings".into())
}

pub(super) fn how_to_decide(new_run: Option<NewRun>, basis: Basis, level: Alpha) -> String {
    match new_run {
        Some(run) if run.rounds <= HOPELESS => {
            let goal = match run.goal {
                Goal::Same => "that it does not matter",
                Goal::Difference => "that there is a change",
            };
            match basis {
                Basis::Runs => format!("{} a side might show {goal}", counted(run.rounds, "run")),
                _ => format!("runs of {} might show {goal}", counted(run.rounds, "round")),
            }
        }
        _ if basis == Basis::Pairs => {
            format!("with {} a side each would count as one value", counted(fewest_each(level), "run"))
        }
        _ => "no number of rounds can be foretold to decide it".into(),
    }
}
