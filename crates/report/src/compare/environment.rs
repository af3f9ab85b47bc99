//! In what do old and new runs differ besides their numbers? Said before any of these, since a change of the
//! subject and one of the machine cannot be told apart afterwards.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Run, Subject};
use crate::plan::Layer;
use crate::record::kernel::{HOST, shared_arguments};
use crate::record::{ComponentFacts, Environment};
use crate::report::text::clean;

/// What a difference between the two sides means for their comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// Of another machine or kernel: whatever differs below may come from it.
    Machine,
    /// The probe is not the same bits on both sides, or another dunnage took the stamps.
    Instrument,
    /// What a subject does is not what it did: found inside, not as asked.
    Treatment,
    /// Programs and settings of a subject: perhaps what the comparison is about.
    Programs,
    /// The same, started anew: a boot, a daemon.
    Instance,
    /// Anything else about the machine.
    Other,
}

impl Meaning {
    /// The word used in files.
    pub fn name(self) -> &'static str {
        match self {
            Meaning::Machine => "machine",
            Meaning::Instrument => "instrument",
            Meaning::Treatment => "treatment",
            Meaning::Programs => "programs",
            Meaning::Instance => "instance",
            Meaning::Other => "other",
        }
    }

    /// Whether the two sides cannot be compared where this differs.
    pub fn is_not_comparable(self) -> bool {
        matches!(self, Meaning::Machine | Meaning::Instrument | Meaning::Treatment)
    }
}

/// Something that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it means.
    #[serde(rename = "kind")]
    pub meaning: Meaning,
    /// What differs; of subjects, with the first label that it is true of.
    pub what: String,
    /// The labels of all subjects that it is true of; empty where it is about the machine.
    pub subjects: Vec<String>,
    /// What the old runs have, each once; `nothing` where it is not known.
    pub old: String,
    /// The same of the new runs.
    pub new: String,
}

/// Facts about the machine whose difference makes it another one, beside the mitigations.
const MACHINE: [&str; 14] = [
    "kernel",
    "kernel_version",
    "kernel_command_line",
    "architecture",
    "cpu",
    "cpu_cores",
    "cpu_sockets",
    "cpu_threads",
    "cpu_usable",
    "hypervisor",
    "cgroup_mode",
    "cgroup_v1_controllers",
    "cgroup_v2_controllers",
    "clock_source",
];
/// Facts that are new with every boot or directory and say nothing about speed.
const PASSING: [&str; 2] = ["boot_time", "storage_state"];
/// Notes about an engine that count or age.
const AGEING: [&str; 2] = ["containers", "daemon uptime"];
const STARTED: &str = "daemon started";

/// Everything that differs, what weighs most first.
pub(super) fn differences(old: &[Run<'_>], new: &[Run<'_>], subjects: &[Subject]) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut add = |meaning, what: &str, subjects: &[&str], read: &dyn Fn(&Run<'_>) -> Option<String>| {
        let side = |runs: &[Run<'_>]| -> BTreeSet<String> {
            runs.iter().map(|run| read(run).map_or("nothing".into(), |text| clean(&text))).collect()
        };
        let (old, new) = (side(old), side(new));
        // Runs of one side that differ among themselves are worth the same words.
        if old != new || (old.len() > 1 && meaning != Meaning::Instance) {
            let shown = |side: BTreeSet<String>| side.into_iter().collect::<Vec<_>>().join(", ");
            let subjects = subjects.iter().map(|label| clean(label)).collect();
            all.push(Difference { meaning, what: clean(what), subjects, old: shown(old), new: shown(new) });
        }
    };
    let is_told = |host: &String| !host.is_empty() && host != HOST;
    let host = |run: &Run<'_>| Some(environment(run).host.clone()).filter(is_told);
    // A host's name is taken out of what is shared, which makes it no other machine.
    if old.iter().chain(new).all(|run| host(run).is_some()) {
        add(Meaning::Machine, "host", &[], &host);
    }
    let everyone = || old.iter().chain(new);
    let names: BTreeSet<&String> = everyone().flat_map(|run| environment(run).machine.keys()).collect();
    for name in names {
        let meaning = match name.as_str() {
            one if MACHINE.contains(&one) || one.starts_with("mitigation_") => Meaning::Machine,
            one if PASSING.contains(&one) => continue,
            _ => Meaning::Other,
        };
        // What a pack leaves out says nothing, and what is shortened there is compared as it is shortened.
        let is_silent = |run: &Run<'_>| is_of_pack(run) && !environment(run).machine.contains_key(name);
        if everyone().any(is_silent) {
            continue;
        }
        let shown = |fact: &String| match name.as_str() {
            "kernel_command_line" if everyone().any(is_of_pack) => shared_arguments(fact),
            _ => fact.clone(),
        };
        add(meaning, &name.replace('_', " "), &[], &|run| environment(run).machine.get(name).map(shown));
    }
    // The time of the boot is computed from a clock that is being corrected.
    let boots = || everyone().filter_map(booted);
    if boots().max().zip(boots().min()).is_some_and(|(last, first)| last - first > 5) {
        add(Meaning::Instance, "boot", &[], &|run| booted(run).map(shown_time));
    }
    add(Meaning::Instrument, "dunnage", &[], &|run| Some(environment(run).dunnage.clone()));
    add(Meaning::Instrument, "probe (SHA-256)", &[], &|run| Some(short(&environment(run).probe)));
    for subject in subjects {
        of_subject(subject, old, new, &mut add);
    }
    let mut all = of_same_subjects(all);
    all.sort_by_key(|one| one.meaning);
    all
}

/// Whether the run comes from a pack, which names no host.
fn is_of_pack(run: &Run<'_>) -> bool {
    environment(run).host == HOST
}

fn environment<'a>(run: &Run<'a>) -> &'a Environment {
    &run.recorded.environment
}

/// When the machine booted, in seconds after 1970.
fn booted(run: &Run<'_>) -> Option<i64> {
    environment(run).machine.get("boot_time")?.parse().ok()
}

/// When a daemon was started, from the kernel's ticks, of which every architecture has a hundred in a second.
fn started(ticks: &str) -> String {
    let Ok(ticks) = ticks.parse::<u64>() else { return format!("started at tick {ticks} after the boot") };
    let (seconds, hundredths) = (ticks / 100, ticks % 100);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("started {hours}:{minutes:02}:{:02}.{hundredths:02} h after the boot", seconds % 60)
}

fn shown_time(seconds: i64) -> String {
    let at = jiff::Timestamp::from_second(seconds);
    at.map_or_else(|_| seconds.to_string(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

fn short(hash: &str) -> String {
    hash.chars().take(12).collect()
}

type Add<'a> = dyn FnMut(Meaning, &str, &[&str], &dyn Fn(&Run<'_>) -> Option<String>) + 'a;

fn of_subject(subject: &Subject, old: &[Run<'_>], new: &[Run<'_>], add: &mut Add<'_>) {
    let label = subject.label.as_str();
    let facts = |run: &Run<'_>| environment(run).subjects.get(label).cloned();
    let everyone: Vec<_> = old.iter().chain(new).filter_map(facts).collect();
    add(Meaning::Programs, "subject", &[label], &|run| {
        let entries = &run.recorded.plan.subjects;
        entries.iter().find(|entry| entry.label == subject.label).map(|entry| entry.spec.to_string())
    });
    let roles: BTreeSet<String> =
        everyone.iter().flat_map(|facts| facts.components.iter().map(|one| one.role.clone())).collect();
    for role in roles {
        add(Meaning::Programs, &role, &[label], &|run| {
            let facts = facts(run)?;
            let own = facts.components.iter().filter(|one| one.role == role);
            // Our own executable is told once, as the instrument.
            let others = own.filter(|one| one.sha256 != environment(run).probe);
            let texts: Vec<String> = others.map(program).collect();
            Some(texts.join(" + "))
        });
    }
    let notes: BTreeSet<String> = everyone.iter().flat_map(|facts| facts.notes.keys().cloned()).collect();
    for note in notes.iter().filter(|note| !AGEING.contains(&note.as_str())) {
        let read = |run: &Run<'_>| facts(run)?.notes.get(note).cloned();
        // A pack has another path in the place of a private one.
        let is_hidden =
            |run: &Run<'_>| is_of_pack(run) && read(run).is_some_and(|text| text.starts_with("/…/"));
        if old.iter().chain(new).any(is_hidden) {
            continue;
        }
        match note.as_str() {
            STARTED => {
                add(Meaning::Instance, "daemon", &[label], &|run| read(run).map(|ticks| started(&ticks)))
            }
            _ => add(Meaning::Programs, note, &[label], &read),
        }
    }
    // Of the floor and of runtimes, which are given one that is the run's.
    let filter = |run: &Run<'_>| {
        let entry = run.recorded.plan.subjects.iter().find(|entry| entry.label == label)?;
        let is_given =
            [Layer::Floor, Layer::Runtime].contains(&entry.layer) && entry.spec.get("seccomp") != Some("off");
        let filter = environment(run).filter.as_ref().filter(|_| is_given)?;
        Some(short(&filter.sha256))
    };
    if old.iter().chain(new).all(|run| filter(run).is_some()) {
        add(Meaning::Treatment, "system call filter (SHA-256)", &[label], &filter);
    }
    let names: BTreeSet<String> =
        old.iter().chain(new).flat_map(|run| found(run, subject)).map(|(name, _)| name).collect();
    for name in names {
        add(Meaning::Treatment, &name.replace('_', " "), &[label], &|run| {
            let all = found(run, subject);
            let values: BTreeSet<_> =
                all.into_iter().filter(|(own, _)| *own == name).map(|(_, fact)| fact).collect();
            (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(" or "))
        });
    }
}

fn program(one: &ComponentFacts) -> String {
    let version = if one.version.is_empty() { &one.path } else { &one.version };
    format!("{version} ({})", short(&one.sha256))
}

/// What the probe found inside a subject in any round of the cells that both sides have.
fn found(run: &Run<'_>, subject: &Subject) -> Vec<(String, String)> {
    let plan = &run.recorded.plan;
    let is_shared = |cell: &crate::plan::Cell| {
        let key = (cell.experiment, cell.setting.clone());
        plan.subjects[cell.subject].label == subject.label && subject.shared.contains(&key)
    };
    let own = plan.cells.iter().zip(&run.recorded.series).filter(|(cell, _)| is_shared(cell));
    let numbers: BTreeSet<usize> =
        own.flat_map(|(_, series)| series.treatments.iter().flatten().copied()).collect();
    let facts = numbers.into_iter().filter_map(|number| run.recorded.treatments.get(number));
    facts.flatten().cloned().collect()
}

/// The same difference of several subjects, told once.
fn of_same_subjects(all: Vec<Difference>) -> Vec<Difference> {
    let mut told: Vec<Difference> = Vec::new();
    for one in all {
        let same = |other: &&mut Difference| {
            !one.subjects.is_empty()
                && (other.meaning, &other.what, &other.old, &other.new)
                    == (one.meaning, &one.what, &one.old, &one.new)
        };
        match told.iter_mut().find(same) {
            Some(other) => other.subjects.extend(one.subjects),
            None => told.push(one),
        }
    }
    told
}
