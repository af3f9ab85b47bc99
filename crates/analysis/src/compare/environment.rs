//! How do old and new runs differ, apart from their numbers? Reported before the numbers, since a change of
//! the subject and one of the machine cannot be told apart afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Run, Subject};
use crate::plan::{Cell, Layer};
use crate::record::ComponentFacts;
use crate::record::kernel::{HOST, shared_arguments};
use crate::subject::inherited::{self, ENVIRONMENT, names_of_variables};

/// What a difference between the two sides means for their comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Meaning {
    /// Another machine or kernel: any difference below may come from it.
    Machine,
    /// The probe is another build, or another dunnage took the stamps.
    Instrument,
    /// A subject does something else than before, as found inside.
    Treatment,
    /// Programs and settings of a subject: perhaps what the comparison is about.
    Programs,
    /// The same, but restarted: a boot, a daemon.
    Instance,
    /// Anything else on the machine.
    Other,
}

impl Meaning {
    /// The word used in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the two sides are not comparable if this differs.
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
    /// What differs; for subjects, with the first label that it applies to.
    pub what: String,
    /// The labels of all subjects that it applies to; empty if it is about the machine.
    pub subjects: Vec<String>,
    /// What the old runs have, each value once; `nothing` if unknown.
    pub old: String,
    /// The same of the new runs.
    pub new: String,
}

/// Facts that identify the machine, in addition to the mitigations.
const MACHINE: &str = "kernel kernel_version kernel_command_line architecture cpu cpu_cores cpu_sockets cpu_threads cpu_usable \
     hypervisor cgroup_mode cgroup_v1_controllers cgroup_v2_controllers clock_source disk_model disk_kind";
/// Facts that are new with every boot or directory and have no effect on speed.
const PASSING: [&str; 2] = ["boot_time", "storage_state"];
/// Notes about an engine that change with time, or with each start.
const AGEING: [&str; 4] = ["containers", "daemon uptime", "daemon start-up", "service start-up"];
const STARTED: &str = "daemon started";

/// What a fact is about: the meaning of a difference, its name, and the subject's label, empty if it is about
/// the machine.
type About = (Meaning, String, String);

/// What is known about a run. None means that the run cannot tell, so nothing is compared.
type Facts = BTreeMap<About, Option<String>>;

/// All differences, the most important first.
pub(super) fn differences(old: &[Run<'_>], new: &[Run<'_>], subjects: &[Subject]) -> Vec<Difference> {
    let everyone = || old.iter().chain(new);
    let has_pack = everyone().any(is_of_pack);
    let boots = || everyone().filter_map(booted);
    // The time of the boot is computed from a clock that is being corrected.
    let has_booted = boots().max().zip(boots().min()).is_some_and(|(last, first)| last - first > 5);
    let sides = [old, new].map(|side| -> Vec<(&Run<'_>, Facts)> {
        let of = |run| {
            let mut facts = of_machine(run, has_pack);
            if let Some(at) = booted(run).filter(|_| has_booted) {
                facts.insert((Meaning::Instance, "boot".into(), String::new()), Some(shown_time(at)));
            }
            subjects.iter().for_each(|subject| of_subject(run, subject, &mut facts));
            (run, facts)
        };
        side.iter().map(of).collect()
    });
    let known: BTreeSet<&About> = sides.iter().flatten().flat_map(|(_, facts)| facts.keys()).collect();
    let mut all: Vec<Difference> = Vec::new();
    for about @ (meaning, what, label) in known {
        let value = |(run, facts): &(&Run<'_>, Facts)| match facts.get(about) {
            Some(value) => value.clone(),
            // Facts of the machine that a pack leaves out are not differences.
            None => Some("nothing".to_owned()).filter(|_| !label.is_empty() || !is_of_pack(run)),
        };
        let values =
            |side: &[(&Run<'_>, Facts)]| side.iter().map(value).collect::<Option<BTreeSet<String>>>();
        let [Some(old), Some(new)] = sides.each_ref().map(|side| values(side)) else { continue };
        // Runs of one side that differ from each other are reported in the same words.
        if old == new && (old.len() == 1 || *meaning == Meaning::Instance) {
            continue;
        }
        let [old, new] = [old, new].map(|side| side.into_iter().collect::<Vec<_>>().join(", "));
        let same = |other: &&mut Difference| {
            !label.is_empty()
                && (other.meaning, &other.what, &other.old, &other.new) == (*meaning, what, &old, &new)
        };
        let own = Some(label.clone()).filter(|label| !label.is_empty());
        match all.iter_mut().find(same) {
            Some(other) => other.subjects.extend(own),
            None => {
                let (what, subjects) = (what.clone(), own.into_iter().collect());
                all.push(Difference { meaning: *meaning, what, subjects, old, new });
            }
        }
    }
    all
}

/// Whether the run comes from a pack, which names no host.
fn is_of_pack(run: &Run<'_>) -> bool {
    run.recorded.environment.host == HOST
}

/// When the machine booted, in seconds after 1970.
fn booted(run: &Run<'_>) -> Option<i64> {
    run.recorded.environment.machine.get("boot_time")?.parse().ok()
}

/// When a daemon was started, from the kernel's ticks, which are hundredths of a second on every
/// architecture.
fn started(ticks: &str) -> String {
    let Ok(ticks) = ticks.parse::<u64>() else { return format!("started at tick {ticks} after boot") };
    let (seconds, hundredths) = (ticks / 100, ticks % 100);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("started {hours}:{minutes:02}:{:02}.{hundredths:02} h after boot", seconds % 60)
}

fn shown_time(seconds: i64) -> String {
    let at = jiff::Timestamp::from_second(seconds);
    at.map_or_else(|_| seconds.to_string(), |at| at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

fn short(hash: &str) -> String {
    hash.chars().take(12).collect()
}

fn of_machine(run: &Run<'_>, has_pack: bool) -> Facts {
    let environment = &run.recorded.environment;
    let mut all = Facts::new();
    let mut add = |meaning, what: &str, value: Option<String>| {
        all.insert((meaning, what.replace('_', " "), String::new()), value);
    };
    // Packs and shared files omit the host's name, which does not make it another machine.
    let host = Some(&environment.host).filter(|host| !host.is_empty() && *host != HOST);
    add(Meaning::Machine, "host", host.cloned());
    for (name, fact) in &environment.machine {
        let meaning = match name.as_str() {
            one if one.starts_with("mitigation_") => Meaning::Machine,
            one if MACHINE.split_whitespace().any(|name| name == one) => Meaning::Machine,
            one if PASSING.contains(&one) => continue,
            _ => Meaning::Other,
        };
        // A fact that packs shorten is shortened before it is compared.
        let is_shortened = has_pack && name == "kernel_command_line";
        add(meaning, name, Some(if is_shortened { shared_arguments(fact) } else { fact.clone() }));
    }
    add(Meaning::Other, "other containers running (median of the rounds)", others_running(run));
    add(Meaning::Instrument, "dunnage", Some(environment.dunnage.clone()));
    add(Meaning::Instrument, "probe (SHA-256)", Some(short(&environment.probe)));
    all
}

/// The number of running containers that were not the run's own, in the middle of its rounds.
fn others_running(run: &Run<'_>) -> Option<String> {
    let counted = run.recorded.contexts.iter().skip(run.recorded.plan.warmups).flatten();
    let mut counts: Vec<u64> = counted.filter_map(|context| context.containers).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).map(u64::to_string)
}

fn of_subject(run: &Run<'_>, subject: &Subject, all: &mut Facts) {
    let environment = &run.recorded.environment;
    let label = subject.label.as_str();
    let mut add = |meaning, what: &str, value: Option<String>| {
        all.insert((meaning, what.to_owned(), label.to_owned()), value);
    };
    let entry = run.recorded.plan.subjects.iter().find(|entry| entry.label == label);
    add(Meaning::Programs, "subject", entry.map(|entry| entry.spec.to_string()));
    if let Some(facts) = environment.subjects.get(label) {
        let mut programs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        // dunnage's own executable is reported once, as the instrument.
        for one in facts.components.iter().filter(|one| one.sha256 != environment.probe) {
            programs.entry(&one.role).or_default().push(program(one));
        }
        programs.iter().for_each(|(role, own)| add(Meaning::Programs, role, Some(own.join(" + "))));
        for (note, text) in facts.notes.iter().filter(|(note, _)| !AGEING.contains(&note.as_str())) {
            match note.as_str() {
                STARTED => add(Meaning::Instance, "daemon", Some(started(text))),
                // A pack replaces a private path.
                _ if is_of_pack(run) && text.starts_with("/…/") => add(Meaning::Programs, note, None),
                _ => add(Meaning::Programs, note, Some(text.clone())),
            }
        }
    }
    for name in entry.iter().flat_map(|_| inherited::names()) {
        let value = entry.and_then(|entry| entry.inherited.get(&name));
        match name.as_str() {
            // What a shell has in it changes with every login, and packs leave it out.
            ENVIRONMENT => add(Meaning::Other, "variables inside", value.map(|all| names_of_variables(all))),
            // Runs of earlier versions do not know it.
            other => add(Meaning::Treatment, other, value.cloned()),
        }
    }
    // The run's filter is given to the floor and to runtimes.
    let is_given = entry.is_some_and(|entry| {
        [Layer::Floor, Layer::Runtime].contains(&entry.layer) && entry.spec.get("seccomp") != Some("off")
    });
    let filter = environment.filter.as_ref().filter(|_| is_given);
    add(Meaning::Treatment, "system call filter (SHA-256)", filter.map(|filter| short(&filter.sha256)));
    for (name, values) in found(run, subject) {
        let values: Vec<&str> = values.into_iter().collect();
        add(Meaning::Treatment, &name.replace('_', " "), Some(values.join(" or ")));
    }
}

fn program(one: &ComponentFacts) -> String {
    let version = if one.version.is_empty() { &one.path } else { &one.version };
    format!("{version} ({})", short(&one.sha256))
}

/// What the probe found inside a subject in any round of the cells that both sides have.
fn found<'a>(run: &Run<'a>, subject: &Subject) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let plan = &run.recorded.plan;
    let is_shared = |cell: &Cell| {
        plan.subjects[cell.subject].label == subject.label
            && subject
                .shared
                .iter()
                .any(|(name, setting, _)| (*name, setting) == (cell.experiment, &cell.setting))
    };
    let own = plan.cells.iter().zip(&run.recorded.series).filter(|(cell, _)| is_shared(cell));
    let numbers: BTreeSet<usize> =
        own.flat_map(|(_, series)| series.treatments.iter().flatten().copied()).collect();
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, fact) in numbers.into_iter().filter_map(|number| run.recorded.treatments.get(number)).flatten()
    {
        all.entry(name).or_default().insert(fact);
    }
    all
}
