//! Who pays for what was read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Read, Reading};
use crate::subject::weight::{Weighed, Weight};
use crate::sys::memory::charged::Charged;
use crate::sys::memory::resident::Resident;

/// Less growth of a process than this is not worth a name.
const NOTED: i64 = 256 << 10;

/// What cgroups are for, by all steps together.
struct Cgroups<'a> {
    caller: Option<&'a Path>,
    own: BTreeSet<&'a Path>,
    /// In which helpers run, and those right above containers.
    helpers: BTreeSet<&'a Path>,
    above: BTreeSet<&'a Path>,
    /// Whether the caller has made those above.
    are_callers: bool,
}

impl<'a> Cgroups<'a> {
    fn of(readings: &'a [Reading], root: &'a Path, caller: Option<&'a Path>) -> Cgroups<'a> {
        let own: BTreeSet<&Path> = readings.iter().flat_map(|one| &one.own).map(PathBuf::as_path).collect();
        let above = own.iter().filter_map(|one| one.parent()).filter(|one| *one != root).collect();
        let are_callers = caller.is_some() && readings.iter().all(|one| one.helpers.is_empty());
        let all = Cgroups { caller, own, helpers: BTreeSet::new(), above, are_callers };
        let of_helpers = |reading: &'a Reading| reading.processes.iter().filter(|one| reading.is_helper(one));
        let theirs = readings.iter().flat_map(of_helpers).filter_map(|one| one.cgroup.as_deref());
        let is_apart = |one: &&Path| *one != root && Some(*one) != caller && !all.is_of_a_container(one);
        let helpers = theirs.filter(is_apart).collect();
        Cgroups { helpers, ..all }
    }

    /// Whether this is a container's, or below one.
    fn is_of_a_container(&self, cgroup: &Path) -> bool {
        cgroup.ancestors().any(|one| self.own.contains(one))
    }

    /// What is charged at a step to the cgroups like this.
    fn charged(&self, reading: &Reading, is_like: impl Fn(&Path) -> bool) -> Charged {
        let like = reading.cgroups.iter().filter(|(path, _)| is_like(path));
        like.fold(Charged::default(), |mut sum, (_, charged)| {
            sum += *charged;
            sum
        })
    }
}

impl Reading {
    fn is_helper(&self, process: &Read) -> bool {
        self.helpers
            .iter()
            .any(|one| one.process.pid == process.pid && one.process.started() == process.started)
    }

    fn sum(&self, is_like: impl Fn(&Read) -> bool) -> Resident {
        self.processes.iter().filter(|one| is_like(one)).fold(Resident::default(), |mut sum, one| {
            sum += one.has;
            sum
        })
    }
}

/// Divides all steps.
pub(super) fn divided(readings: &[Reading], root: &Path, caller: Option<&Path>) -> Weighed {
    let cgroups = Cgroups::of(readings, root, caller);
    let most = readings.iter().max_by_key(|one| one.own.len());
    Weighed {
        steps: readings.iter().map(|one| weight(one, &cgroups)).collect(),
        helpers: most.map(names).unwrap_or_default(),
        grown: most
            .zip(readings.first())
            .map(|(most, first)| grown(&cgroups, first, most))
            .unwrap_or_default(),
        unread: readings.iter().map(|one| one.unread).max().unwrap_or(0),
        ..Weighed::default()
    }
}

fn weight(reading: &Reading, cgroups: &Cgroups<'_>) -> Weight {
    let dunnage = std::process::id() as i32;
    let is_members = |one: &Read| one.cgroup.as_deref().is_some_and(|own| cgroups.is_of_a_container(own));
    let of_caller = |path: &Path| cgroups.caller.is_some_and(|caller| path.starts_with(caller));
    let own = cgroups.charged(reading, |path| cgroups.is_of_a_container(path));
    let helpers = reading.sum(|one| reading.is_helper(one));
    let above =
        cgroups.charged(reading, |path| cgroups.above.contains(path) && !cgroups.helpers.contains(path));
    let of_helpers = cgroups.charged(reading, |path| cgroups.helpers.contains(path));
    let caller = cgroups.charged(reading, of_caller);
    // What processes there have is counted with them.
    let members = reading.sum(|one| one.cgroup.as_deref().is_some_and(of_caller));
    let is_other = |one: &Read| one.pid != dunnage && !is_members(one) && !reading.is_helper(one);
    let others = reading.sum(is_other).own();
    // Where no engine has made them, the caller has.
    let [of_engine, of_caller] = if cgroups.are_callers { [0, above.kernel] } else { [above.kernel, 0] };
    let known = own.kernel + above.kernel + of_helpers.kernel + caller.kernel;
    Weight {
        containers: reading.own.len() as i64,
        own,
        parts: reading.parts,
        helpers: reading.processes.iter().filter(|one| reading.is_helper(one)).count() as i64,
        of_helpers: helpers,
        helpers_kernel: of_helpers.kernel + of_engine,
        // Memory without a file always belongs to a process that lives, whichever cgroup it was in when it was charged.
        caller: cgroups.caller.map(|_| caller.kernel + of_caller + caller.shmem - members.shmem),
        uncharged: reading.machine.kernel - reading.kernel_anywhere,
        machine: reading.machine.used,
        available: reading.machine.available,
        others: others + reading.kernel_anywhere - known,
        dunnage: reading.sum(|one| one.pid == dunnage).own(),
        left: above.own() + above.file,
        dying: reading.dying,
    }
}

/// The helpers by name and number, most first.
fn names(reading: &Reading) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in reading.processes.iter().filter(|one| reading.is_helper(one)) {
        *counts.entry(&one.name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let told: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

/// Other processes that have more than at first, by name, the most grown first.
fn grown(cgroups: &Cgroups<'_>, first: &Reading, most: &Reading) -> Vec<(String, i64)> {
    let dunnage = std::process::id() as i32;
    let before: BTreeMap<(i32, u64), i64> =
        first.processes.iter().map(|one| ((one.pid, one.started), one.has.own())).collect();
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    let is_other = |one: &&Read| {
        let of_a_container = one.cgroup.as_deref().is_some_and(|own| cgroups.is_of_a_container(own));
        one.pid != dunnage && !of_a_container && !most.is_helper(one)
    };
    for one in most.processes.iter().filter(is_other) {
        let known = before.get(&(one.pid, one.started)).copied().unwrap_or(0);
        *by_name.entry(&one.name).or_default() += one.has.own() - known;
    }
    let mut grown: Vec<(String, i64)> = by_name
        .into_iter()
        .filter(|(_, more)| *more >= NOTED)
        .map(|(name, more)| (name.to_owned(), more))
        .collect();
    grown.sort_by_key(|(_, more)| -more);
    grown
}
