//! The summary of a comparison: first changes of the machine, then changes by name; and the sentences of an
//! experiment's lines, combined if they say the same about many subjects.

use std::mem::{Discriminant, discriminant};

use dunnage_analysis::compare::{Comparison, Experiment, Line, Meaning, Scale, Scope};
use dunnage_analysis::group::in_groups;

use super::words::{change, failures, sentence};
use crate::report::text::{clean, in_one, joined};
use crate::stats::Ruling;
use crate::units::counted;
use crate::verdict::Kind;

/// The most changes to name, the largest first.
const NAMED: usize = 5;
/// From so many on, lines that say the same about a metric are combined.
const MANY: usize = 4;

/// The summary, in sentences without full stops.
pub fn summary(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    all.extend(machine(comparison));
    let shown =
        comparison.failures().filter(|(.., failed)| failed.verdict != Kind::Undecided || failed.too_many);
    all.extend(shown.map(|(experiment, line, failed)| failures(experiment, line, failed)));
    let is_named =
        |kind: &Kind| kind.is_difference() || matches!(kind, Kind::Mixed | Kind::Suspect | Kind::NoData);
    all.extend(Kind::all().filter(is_named).filter_map(|kind| named(comparison, kind)));
    let kinds: Vec<Kind> = comparison.judged().map(|(_, line)| line.verdict).collect();
    let count = |kind: Kind| kinds.iter().filter(|own| **own == kind).count();
    let known: Vec<Kind> = Kind::all().filter(|kind| count(*kind) > 0).collect();
    let verdicts = counted(kinds.len(), "verdict");
    let parts: Vec<String> = known.iter().map(|kind| format!("{} {}", count(*kind), kind.word())).collect();
    match known.as_slice() {
        [] => {}
        [Kind::Undecided] => {
            all.push(format!("{verdicts}, all undecided: no change found, and none ruled out"))
        }
        [only] => all.push(format!("{verdicts}, all {}", only.word())),
        _ => all.push(format!("{verdicts}: {}", parts.join(", "))),
    }
    let differ = known.iter().any(|kind| kind.is_difference() || *kind == Kind::Mixed);
    let reach = match (comparison.scope, differ) {
        (Scope::TwoRuns, true) => {
            "one run on each side: the difference holds for these two runs, not for others like them"
        }
        (Scope::TwoRuns, false) => "one run on each side: the verdicts hold for these two runs only",
        (Scope::TheseRuns, _) => {
            "too few runs on each side to count each as one value: the verdicts hold for these runs, in every pair"
        }
        (Scope::RunsLikeThese, _) => "each run counts as one value: the verdicts hold for runs like these",
    };
    all.push(reach.into());
    all
}

/// The metrics in which bare or floor changed, and what that means for the others.
fn machine(comparison: &Comparison) -> Option<String> {
    let of = |experiment: &Experiment| {
        let moved = |line: &&Line| line.is_control && line.verdict == Kind::Machine;
        let mut metrics: Vec<String> =
            experiment.lines.iter().filter(moved).map(|line| line.name.to_owned()).collect();
        metrics.dedup();
        (!metrics.is_empty()).then(|| format!("{} of {}", joined(&metrics, "and"), experiment.name))
    };
    let places: Vec<String> = comparison.experiments.iter().filter_map(of).collect();
    let probe = comparison.differences.iter().any(|one| one.meaning == Meaning::Instrument);
    let who = if probe { "the machine or the probe changed" } else { "the machine changed" };
    (!places.is_empty()).then(|| {
        format!(
            "{who}: bare or floor changed in {}; changes that they share are not attributed to a subject",
            places.join(", ")
        )
    })
}

/// The lines with this verdict by name, the largest change first.
fn named(comparison: &Comparison, kind: Kind) -> Option<String> {
    let mut lines: Vec<_> = comparison.judged().filter(|(_, line)| line.verdict == kind).collect();
    lines.sort_by(|(_, one), (_, other)| reach(other).total_cmp(&reach(one)));
    let shown = |(experiment, line): &(&Experiment, &Line)| {
        let many = comparison.experiments.len() > 1;
        let of = if many { format!(" ({})", experiment.name) } else { String::new() };
        let name = format!("{} of `{}`{of}", line.name, clean(&line.label));
        match line.together {
            Some(all) if kind.is_difference() => format!("{name} {}", in_one(change(&all))),
            _ => name,
        }
    };
    let mut told: Vec<String> = lines.iter().take(NAMED).map(shown).collect();
    if lines.len() > NAMED {
        told.push(format!("and {} more", lines.len() - NAMED));
    }
    (!told.is_empty()).then(|| format!("{}: {}", kind.word(), told.join(", ")))
}

/// The size of a change in multiples of what matters.
fn reach(line: &Line) -> f64 {
    line.together.map_or(0.0, |all| match all.scale {
        Scale::Ratio => (all.change.value.ln() / all.matters.ln()).abs(),
        Scale::Margins => all.change.value.abs(),
    })
}

/// The sentences that add to the tables of an experiment, each with its verdict: why something is undecided or
/// suspect, and to what a change is attributed. Lines that are the same need none; what many share is said once.
pub(super) fn in_words(experiment: &Experiment) -> Vec<(Kind, String)> {
    let is_telling =
        |line: &&Line| !matches!(line.verdict, Kind::Same | Kind::Context) || line.lost().next().is_some();
    let lines = experiment.lines.iter().filter(is_telling).enumerate();
    let groups = in_groups(lines, |(index, line)| said(line).ok_or(*index)).into_iter();
    let told = |(_, group): (_, Vec<(usize, &Line)>)| -> Vec<(Kind, String)> {
        let group: Vec<&Line> = group.into_iter().map(|(_, line)| line).collect();
        let parts = if group.len() < MANY { group.chunks(1) } else { group.chunks(group.len()) };
        parts.map(|lines| (lines[0].verdict, sentence(experiment, lines))).collect()
    };
    groups.flat_map(told).collect()
}

/// What a line says apart from its sizes; none if it changed on its own, or has more to say. Changes of bare and
/// floor, which show the machine, are not combined.
fn said(line: &Line) -> Option<(usize, Kind, Discriminant<Ruling>, Scale)> {
    let is_open = match line.verdict {
        Kind::Undecided | Kind::TooFew => true,
        verdict => verdict == Kind::Machine && !line.is_control,
    };
    let is_plain = is_open && line.lost().next().is_none();
    is_plain.then_some((line.metric, line.verdict, discriminant(&line.ruling?), line.together?.scale))
}
