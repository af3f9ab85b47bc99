//! What a comparison comes to: first what must not be put down to a subject, then what changed, by name; and the
//! sentences of an experiment's lines, those that say the same of many subjects once.

use std::collections::BTreeMap;

use super::lines::Scale;
use super::words::{change, goes_up, how_to_decide, lost, size};
use super::{Comparison, Experiment, Line, Meaning, Scope, Verdict};
use crate::report::text::joined;
use crate::stats::Basis;
use crate::units::counted;
use crate::verdict::Kind;

/// So many changes are named, the largest first.
const NAMED: usize = 5;
/// So many lines that say the same of a metric are told as one.
const MANY: usize = 4;

/// The sentences.
pub(super) fn summary(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    if comparison.sides[0].iter().any(|run| comparison.sides[1].iter().any(|other| other.run == run.run)) {
        all.push(
            "a run stands on both sides: what is said of it is how far it can tell, not what changed".into(),
        );
    }
    all.extend(machine(comparison));
    for kind in Kind::ALL
        .into_iter()
        .filter(|kind| kind.is_difference() || matches!(kind, Kind::Mixed | Kind::Suspect | Kind::NoData))
    {
        all.extend(named(comparison, kind));
    }
    let kinds: Vec<Kind> = comparison.judged().map(|line| line.verdict.kind()).collect();
    let count = |kind: Kind| kinds.iter().filter(|own| **own == kind).count();
    let known: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| count(*kind) > 0).collect();
    match known.as_slice() {
        [] => {}
        [Kind::Undecided] => all.push(format!(
            "{}: all undecided: no change was found, and none is ruled out",
            counted(kinds.len(), "verdict")
        )),
        [only] => all.push(format!("{}: all {}", counted(kinds.len(), "verdict"), only.word())),
        several => {
            let parts: Vec<String> =
                several.iter().map(|kind| format!("{} {}", count(*kind), kind.word())).collect();
            all.push(format!("{}: {}", counted(kinds.len(), "verdict"), parts.join(", ")));
        }
    }
    let differ =
        Kind::ALL.into_iter().any(|kind| (kind.is_difference() || kind == Kind::Mixed) && count(kind) > 0);
    all.push(match (comparison.scope, differ) {
        (Scope::TwoRuns, true) => "these two runs differ: one run a side cannot say that others like them would".into(),
        (Scope::TwoRuns, false) => "one run a side: what is said holds of these two runs".into(),
        (Scope::TheseRuns, _) => {
            "too few runs a side for each to count as one value: what is said holds of these runs, in every pair".into()
        }
        (Scope::RunsLikeThese, _) => "each run counts as one value: what is said holds of runs like these".into(),
    });
    all
}

/// In which metrics bare or floor is not what it was, and what that means for the others.
fn machine(comparison: &Comparison) -> Option<String> {
    let of = |experiment: &Experiment| {
        let mut metrics: Vec<String> = Vec::new();
        for line in experiment.lines.iter().filter(|line| line.is_control && line.verdict == Verdict::Machine)
        {
            let name = experiment.metrics[line.metric].name.to_owned();
            if !metrics.contains(&name) {
                metrics.push(name);
            }
        }
        (!metrics.is_empty()).then(|| format!("{} of {}", joined(&metrics, "and"), experiment.name))
    };
    let places: Vec<String> = comparison.experiments.iter().filter_map(of).collect();
    if places.is_empty() {
        return None;
    }
    let probe = comparison.differences.iter().any(|one| one.meaning == Meaning::Instrument);
    let who = if probe {
        "the machine changed, or the probe, which is not the same"
    } else {
        "the machine changed"
    };
    Some(format!(
        "{who}: bare or floor is not what it was in {}; what they show too is not put down to a subject",
        places.join(", ")
    ))
}

/// The lines of a kind by name, the largest change first.
fn named(comparison: &Comparison, kind: Kind) -> Option<String> {
    let mut lines: Vec<(String, &Line)> = Vec::new();
    for one in &comparison.experiments {
        let is_own = |line: &&Line| is_judged(one, line) && line.verdict.kind() == kind;
        for line in one.lines.iter().filter(is_own) {
            let of =
                if comparison.experiments.len() > 1 { format!(" ({})", one.name) } else { String::new() };
            lines.push((format!("{} of `{}`{of}", one.metrics[line.metric].name, line.label), line));
        }
    }
    if lines.is_empty() {
        return None;
    }
    lines.sort_by(|(_, one), (_, other)| reach(other).total_cmp(&reach(one)));
    let shown = |(name, line): &(String, &Line)| match (kind, line.together) {
        (kind, Some(all)) if kind.is_difference() => format!("{name} {}", change(all.scale, &all.change)),
        _ => name.clone(),
    };
    let mut told: Vec<String> = lines.iter().take(NAMED).map(shown).collect();
    if lines.len() > NAMED {
        told.push(format!("and {} more", lines.len() - NAMED));
    }
    Some(format!("{}: {}", kind.word(), told.join(", ")))
}

fn is_judged(experiment: &Experiment, line: &Line) -> bool {
    experiment.metrics[line.metric].is_decisive && !line.is_control
}

/// How many times what matters a change is.
fn reach(line: &Line) -> f64 {
    line.together.map_or(0.0, |all| match all.scale {
        Scale::Ratio => (all.change.value.ln() / all.matters.ln()).abs(),
        Scale::Margins => all.change.value.abs(),
    })
}

/// What lines have in common that can be told together.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    metric: usize,
    kind: Kind,
    reason: u8,
    is_ratio: bool,
    goes_up: bool,
    told_apart: ToldApart,
}

/// Whether a line has more to say than others like it: a setting that is lost.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ToldApart {
    No,
    Yes,
}

/// What the tables of an experiment do not say, each with what it is for the eye: why something is open, or not to be
/// believed, and whose a change is. What is the same needs no more words.
pub(super) fn in_words(experiment: &Experiment) -> Vec<(Kind, String)> {
    let mut groups: BTreeMap<Alike, Vec<&Line>> = BTreeMap::new();
    for line in &experiment.lines {
        let is_plain = matches!(line.verdict.kind(), Kind::Same | Kind::Context);
        if !is_plain || !lost(line).is_empty() {
            groups.entry(alike(line)).or_default().push(line);
        }
    }
    let told = |(alike, lines): (&Alike, &Vec<&Line>)| -> Vec<(Kind, String)> {
        let name = experiment.metrics[alike.metric].name;
        let is_many = lines.len() >= MANY && alike.told_apart == ToldApart::No;
        match together(name, lines).filter(|_| is_many) {
            Some(sentence) => vec![(alike.kind, sentence)],
            None => lines.iter().map(|line| (alike.kind, line.sentence.clone())).collect(),
        }
    };
    groups.iter().flat_map(told).collect()
}

fn alike(line: &Line) -> Alike {
    let reason = match line.verdict {
        Verdict::ControlsTooWide(_) => 1,
        Verdict::Unsteady(_) => 2,
        // bare and floor are told by themselves: they say what the machine did.
        Verdict::Machine if line.is_control => 1,
        _ => 0,
    };
    let (is_ratio, goes_up) = line.together.map_or((false, false), |all| {
        let is_ratio = all.scale == Scale::Ratio;
        (is_ratio, line.verdict.kind() == Kind::Machine && goes_up(all.scale, &all.change))
    });
    let told_apart = if lost(line).is_empty() { ToldApart::No } else { ToldApart::Yes };
    Alike { metric: line.metric, kind: line.verdict.kind(), reason, is_ratio, goes_up, told_apart }
}

/// Lines that say the same, in one sentence; none where each has more to say.
fn together(metric: &str, lines: &[&Line]) -> Option<String> {
    let first = lines.first()?;
    let scale = first.together?.scale;
    let name = format!("{metric} of {}", counted(lines.len(), "subject"));
    let sizes = |of: &dyn Fn(&Line) -> Option<f64>| {
        let known = || lines.iter().filter_map(|line| of(line));
        let (low, high) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        let (low, high) = (size(scale, low), size(scale, high));
        let number = low.split(' ').next().unwrap_or_default();
        match scale {
            _ if low == high => high,
            Scale::Ratio => format!("{low} to {high}"),
            Scale::Margins => format!("{number} to {high}"),
        }
    };
    let changes = || {
        sizes(&|line: &Line| {
            let value = line.together?.change.value;
            Some(if scale == Scale::Ratio { (value - 1.0).abs() } else { value.abs() })
        })
    };
    match &first.verdict {
        Verdict::Undecided { .. } => {
            let visible = sizes(&|line: &Line| match line.verdict {
                Verdict::Undecided { smallest_visible, .. } => Some(smallest_visible),
                _ => None,
            });
            Some(format!("{name} is undecided: smallest visible effect {visible}; {}", foretold(lines)))
        }
        Verdict::ControlsTooWide(_) => Some(format!(
            "{name} is undecided: it moves by {}, but bare and floor leave open that the machine made all of it",
            changes()
        )),
        Verdict::Unsteady(_) => Some(format!(
            "{name} is undecided: it moves by {}, but within a run it moved as much on its own",
            changes()
        )),
        Verdict::TooFew { have, need } => Some(format!(
            "{name} has no verdict: {} a side of the {need} that this many comparisons need",
            counted(*have, "round")
        )),
        Verdict::Machine => {
            let rises = if goes_up(scale, &first.together?.change) { "rises" } else { "falls" };
            Some(format!("{name} {rises} by {}; but so does bare or floor: the machine changed", changes()))
        }
        _ => None,
    }
}

/// How many rounds, or runs, might decide lines that are undecided.
fn foretold(lines: &[&Line]) -> String {
    let of = |line: &Line| match (&line.verdict, line.together) {
        (Verdict::Undecided { new_run, .. }, Some(all)) => Some((*new_run, all)),
        _ => None,
    };
    let known: Vec<usize> = lines
        .iter()
        .filter_map(|line| Some(of(line)?.0?.rounds))
        .filter(|rounds| *rounds <= super::words::HOPELESS)
        .collect();
    let Some((_, first)) = lines.iter().find_map(|line| of(line)) else { return String::new() };
    let (Some(least), Some(most)) = (known.iter().min(), known.iter().max()) else {
        return how_to_decide(None, first.basis, first.change.alpha);
    };
    let what = if first.basis == Basis::Runs { "run" } else { "round" };
    let range = if least == most { counted(*most, what) } else { format!("{least} to {most} {what}s") };
    let rest = match lines.len() - known.len() {
        0 => String::new(),
        open => format!(", and for {open} no number can be foretold"),
    };
    match first.basis {
        Basis::Runs => format!("{range} a side might decide it{rest}"),
        _ => format!("runs of {range} might decide it{rest}"),
    }
}
