//! What a reader must know in addition to the verdicts of a comparison, in sentences without full stops.

use std::collections::BTreeSet;

use super::{Difference, Meaning, Run, Subject};
use crate::distinct;
use crate::group::in_groups;
use crate::subject::kinds::FAKE;
use crate::text::{clean, listed, quoted};
use crate::verdict::Warning;

/// All notices, the most important first.
pub(super) fn all(
    old: &[Run<'_>],
    new: &[Run<'_>],
    subjects: &[Subject],
    differences: &[Difference],
) -> Vec<String> {
    let mut all: Vec<String> = not_comparable(differences).into_iter().collect();
    let restarted = differences.iter().filter(|one| one.meaning == Meaning::Instance);
    let labels = quoted(restarted.flat_map(|one| &one.subjects));
    if old.len() == 1 && new.len() == 1 && !labels.is_empty() {
        all.push(format!(
            "the daemon of {labels} was restarted between the runs, and no two starts of a daemon are quite alike"
        ));
    }
    for run in old {
        let name = &run.recorded.run;
        if new.iter().any(|other| other.recorded.run == *name) {
            all.push(format!("`{}` is on both sides: run {name} is compared with itself, so differences show the resolution, not a change", run.place));
        }
    }
    all.extend(without_controls(subjects));
    let runs = || old.iter().chain(new);
    all.extend(scripted(runs()));
    all.extend(in_blocks(runs()));
    all.extend(margins(&old[0], runs()));
    all.extend(runs().flat_map(of_run));
    all.extend(disturbed(runs()));
    all
}

/// Where no subject shows the machine's own changes.
fn without_controls(subjects: &[Subject]) -> Option<String> {
    let names = |is_meant: fn(&&Subject) -> bool| -> BTreeSet<&str> {
        subjects.iter().filter(is_meant).flat_map(|one| &one.shared).map(|(name, ..)| *name).collect()
    };
    let known = names(|one| one.is_control);
    let without: Vec<&str> = names(|_| true).difference(&known).copied().collect();
    let where_ = if known.is_empty() { String::new() } else { format!(" with {}", without.join(", ")) };
    (!without.is_empty()).then(|| {
        format!("neither bare nor floor is in all runs{where_}: changes of the machine and of a subject cannot be told apart")
    })
}

/// What makes every change doubtful, and what helps.
fn not_comparable(differences: &[Difference]) -> Option<String> {
    let differing: Vec<&Difference> =
        differences.iter().filter(|one| one.meaning.is_not_comparable()).collect();
    let names = listed(differing.iter().map(|one| &one.what), ", ");
    let verb = match differing.len() {
        0 => return None,
        1 => "differs",
        _ => "differ",
    };
    let of_dunnage = differing.iter().all(|one| one.meaning == Meaning::Instrument);
    let remedy = if of_dunnage { "; use one build of dunnage for both sides" } else { "" };
    Some(format!(
        "not comparable: {names} {verb}, so a change below may come from that and not from what you changed{remedy}"
    ))
}

/// Margins are fixed before measuring, and two plans can have different ones.
fn margins<'a>(first: &Run<'_>, runs: impl Iterator<Item = &'a Run<'a>> + Clone) -> Vec<String> {
    let of = |one: &crate::plan::FixedMargin| {
        let name = (&one.experiment, &one.metric);
        let differs = |run: &&Run<'_>| {
            let mut margins = run.recorded.plan.margins.iter();
            margins.any(|other| (&other.experiment, &other.metric) == name && other.margin != one.margin)
        };
        let run = runs.clone().find(differs)?;
        Some(format!(
            "`{}` has another margin for {} of {}; that of `{}` is used here",
            run.place, one.metric, one.experiment, first.place
        ))
    };
    first.recorded.plan.margins.iter().filter_map(of).collect()
}

/// What is wrong with a run on its own.
fn of_run(run: &Run<'_>) -> Vec<String> {
    let is_told = |one: &&Warning| ["unfinished", "resumed", "damaged"].contains(&one.kind);
    let warnings = run.quality.warnings.iter().filter(is_told);
    warnings.map(|warning| format!("`{}`: {}", run.place, warning.seen)).collect()
}

/// What the machine did besides: each run's own words, and runs together only where these are equal.
fn disturbed<'a>(runs: impl Iterator<Item = &'a Run<'a>>) -> Vec<String> {
    let warned = runs.filter_map(|run| {
        let warning = run.quality.warnings.iter().find(|one| one.kind == "disturbed")?;
        Some((run.place, warning.seen.as_str()))
    });
    // A run may be on both sides.
    let groups = in_groups(distinct(warned), |(_, seen)| *seen).into_iter();
    groups
        .map(|(seen, alike)| format!("{}: {seen}", quoted(alike.into_iter().map(|(place, _)| place))))
        .collect()
}

/// Subjects whose values were not measured.
pub(crate) fn scripted<'a>(runs: impl Iterator<Item = &'a Run<'a>>) -> Option<String> {
    let subjects = runs.flat_map(|run| &run.recorded.plan.subjects);
    let own = subjects.filter(|entry| entry.spec.name == FAKE.name && entry.twin_of.is_none());
    let labels = distinct(own.map(|entry| clean(&entry.label)));
    (!labels.is_empty())
        .then(|| format!("{} only followed a script: nothing of this was measured", quoted(labels)))
}

/// What imported samples lack if they were measured one cell after the other; one sentence for all such runs.
pub(crate) fn in_blocks<'a>(runs: impl Iterator<Item = &'a Run<'a>>) -> Option<String> {
    let own: Vec<&str> = runs.filter(|run| run.recorded.is_in_blocks()).map(|run| run.place).collect();
    let were = if own.len() == 1 { "was" } else { "were" };
    (!own.is_empty()).then(|| {
        format!(
            "{} {were} imported and measured in blocks: one cell after another, not in shuffled rounds, so differences between \
             cells include what the machine did meanwhile",
            quoted(&own)
        )
    })
}
