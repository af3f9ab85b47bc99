//! What a comparison comes to: first what must not be put down to a subject, then what changed, by name; and the
//! sentences of an experiment's lines, those that say the same of many subjects once.

use std::mem::{Discriminant, discriminant};

use dunnage_analysis::compare::{Comparison, Experiment, Line, Meaning, Scale, Scope};
use dunnage_analysis::group::in_groups;

use super::words::{change, sentence};
use crate::report::text::{clean, joined};
use crate::stats::Ruling;
use crate::units::counted;
use crate::verdict::Kind;

/// So many changes are named, the largest first.
const NAMED: usize = 5;
/// So many lines that say the same of a metric are told as one.
const MANY: usize = 4;

/// What it comes to, each a sentence without its end.
pub fn summary(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let [old, new] = &comparison.sides;
    if old.iter().any(|run| new.iter().any(|other| other.run == run.run)) {
        all.push(
            "a run stands on both sides: what is said of it is how far it can tell, not what changed".into(),
        );
    }
    all.extend(machine(comparison));
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
            all.push(format!("{verdicts}: all undecided: no change was found, and none is ruled out"))
        }
        [only] => all.push(format!("{verdicts}: all {}", only.word())),
        _ => all.push(format!("{verdicts}: {}", parts.join(", "))),
    }
    let differ = known.iter().any(|kind| kind.is_difference() || *kind == Kind::Mixed);
    let reach = match (comparison.scope, differ) {
        (Scope::TwoRuns, true) => {
            "these two runs differ: one run a side cannot say that others like them would"
        }
        (Scope::TwoRuns, false) => "one run a side: what is said holds of these two runs",
        (Scope::TheseRuns, _) => {
            "too few runs a side for each to count as one value: what is said holds of these runs, in every pair"
        }
        (Scope::RunsLikeThese, _) => "each run counts as one value: what is said holds of runs like these",
    };
    all.push(reach.into());
    all
}

/// In which metrics bare or floor is not what it was, and what that means for the others.
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
    let who = if probe {
        "the machine changed, or the probe, which is not the same"
    } else {
        "the machine changed"
    };
    (!places.is_empty()).then(|| {
        format!(
            "{who}: bare or floor is not what it was in {}; what they show too is not put down to a subject",
            places.join(", ")
        )
    })
}

/// The lines of a kind by name, the largest change first.
fn named(comparison: &Comparison, kind: Kind) -> Option<String> {
    let mut lines: Vec<_> = comparison.judged().filter(|(_, line)| line.verdict == kind).collect();
    lines.sort_by(|(_, one), (_, other)| reach(other).total_cmp(&reach(one)));
    let shown = |(experiment, line): &(&Experiment, &Line)| {
        let many = comparison.experiments.len() > 1;
        let of = if many { format!(" ({})", experiment.name) } else { String::new() };
        let name = format!("{} of `{}`{of}", line.name, clean(&line.label));
        match line.together {
            Some(all) if kind.is_difference() => format!("{name} {}", change(&all)),
            _ => name,
        }
    };
    let mut told: Vec<String> = lines.iter().take(NAMED).map(shown).collect();
    if lines.len() > NAMED {
        told.push(format!("and {} more", lines.len() - NAMED));
    }
    (!told.is_empty()).then(|| format!("{}: {}", kind.word(), told.join(", ")))
}

/// How many times what matters a change is.
fn reach(line: &Line) -> f64 {
    line.together.map_or(0.0, |all| match all.scale {
        Scale::Ratio => (all.change.value.ln() / all.matters.ln()).abs(),
        Scale::Margins => all.change.value.abs(),
    })
}

/// What the tables of an experiment do not say, each with what it is for the eye: why something is open, or not to be
/// believed, and whose a change is. What is the same needs no more words; what many share is told once.
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

/// What a line says but for its sizes; none where it changed by itself, or has more to say. bare and floor are told by themselves
/// where they say what the machine did.
fn said(line: &Line) -> Option<(usize, Kind, Discriminant<Ruling>, Scale)> {
    let is_open = match line.verdict {
        Kind::Undecided | Kind::TooFew => true,
        verdict => verdict == Kind::Machine && !line.is_control,
    };
    let is_plain = is_open && line.lost().next().is_none();
    is_plain.then_some((line.metric, line.verdict, discriminant(&line.ruling?), line.together?.scale))
}
