//! The processes that an engine keeps or starts for containers, other than its clients, for one container or many. What a kind of
//! subject declares is found by its name; what none declares is found by the process that started it, or by a cgroup that is named
//! after a container.
//!
//! Deliberately absent: what they cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dunnage_analysis::subject::kinds::{Duty, Helper, Runs};

use super::login::Login;
use super::{Subject, kind_of};
use crate::outcome::{Failure, OrEnvironment};
use crate::sys::memory::charged::Charging;
use crate::sys::process::{self, Process};

/// Which processes may work for a subject's containers: those since they were begun.
#[derive(Debug, Clone, Copy)]
pub struct Helping {
    declared: &'static [Helper],
    /// In clock ticks after boot.
    since: u64,
    /// The ordinary user for whom they work, if it is one.
    user: Option<u32>,
}

/// A process that works for containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Working {
    /// The process.
    pub process: Process,
    /// How it was found.
    pub by: By,
    /// The only container that it works for, by its place among those asked about, where that is known.
    pub container: Option<usize>,
}

/// How a helper was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Its kind of subject declares it.
    Declared(Duty),
    /// It started the container, or a daemon or another helper started it.
    Parent,
    /// Its cgroup is named after the container, and is not the container's.
    Cgroup,
}

impl Helping {
    /// From now on.
    pub fn begin(subject: &dyn Subject) -> Helping {
        let declared = kind_of(&subject.about().spec).map_or(&[][..], |kind| kind.helpers);
        let user = subject.about().spec.get("rootless").and_then(Login::ids).map(|(user, _)| user);
        Helping { declared, since: process::now(), user }
    }

    /// What the program of this process does for containers, if it is declared: the longest name counts.
    fn duty(&self, process: &Process) -> Option<&'static Helper> {
        // A helper that executes itself again has another name, but the same executable.
        let file =
            process.executable.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
        let is_it = |one: &&Helper| process.name.starts_with(one.name) || file.starts_with(one.name);
        self.declared.iter().filter(is_it).max_by_key(|one| one.name.len())
    }

    /// Whether a helper may run as this user: those of other users only have the name. Helpers of root become users of the system.
    fn is_by(&self, user: u32, runs: Runs) -> bool {
        const NOBODY: u32 = 65_534;
        let own = rustix::process::geteuid().as_raw();
        match self.user {
            Some(theirs) => user == theirs,
            None if runs == Runs::ForUsers => own != 0 && user == own,
            None => user < 1000 || user == own || (user == NOBODY && runs == Runs::WithoutRights),
        }
    }

    /// The declared helpers that may be on the way of packets or names.
    pub fn on_the_way(self) -> impl Iterator<Item = (&'static str, Process)> {
        let declared = move |one: Process| {
            let helper = self.duty(&one).filter(|helper| helper.duty.is_on_the_way())?;
            let is_ours = process::user_of(one.pid).is_some_and(|user| self.is_by(user, helper.runs));
            is_ours.then_some((helper.name, one))
        };
        process::since(self.since).filter_map(declared)
    }

    /// All that works for the containers with these first processes, the daemons first.
    pub fn find(self, daemons: &[i32], firsts: &[i32]) -> Vec<Working> {
        let table = Table {
            all: process::all().map(|one| (one.pid, one)).collect(),
            cgroups: &|pid| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default(),
            user: &|pid| process::user_of(pid),
            own: std::process::id() as i32,
        };
        self.found(&table, daemons, firsts)
    }

    fn found(&self, table: &Table<'_>, daemons: &[i32], firsts: &[i32]) -> Vec<Working> {
        let is_new = |one: &Process| one.started() >= self.since;
        let mut found: BTreeMap<i32, (By, Option<usize>)> =
            daemons.iter().map(|pid| (*pid, (By::Declared(Duty::Daemon), None))).collect();
        let own_line: BTreeSet<i32> = std::iter::once(table.own).chain(table.above(table.own)).collect();
        let members: BTreeSet<i32> = firsts
            .iter()
            .flat_map(|first| table.below(*first, &|_| true))
            .chain(firsts.iter().copied())
            .collect();
        let by =
            |one: &Process, otherwise| self.duty(one).map_or(otherwise, |helper| By::Declared(helper.duty));
        // What started a container: one parent of several is of none alone.
        for (at, first) in firsts.iter().enumerate() {
            let above =
                table.above(*first).take_while(|pid| !own_line.contains(pid) && !daemons.contains(pid));
            for one in above.filter_map(|pid| table.all.get(&pid)).filter(|one| is_new(one)) {
                let (_, container) = found.entry(one.pid).or_insert((by(one, By::Parent), Some(at)));
                container.take_if(|known| *known != at);
            }
        }
        // What daemons and helpers started, without the containers of others and their shims.
        let is_others = |one: &Process| {
            members.contains(&one.pid) || self.duty(one).is_some_and(|helper| helper.duty.has_containers())
        };
        let known: Vec<(i32, Option<usize>)> = found.iter().map(|(pid, (_, whose))| (*pid, *whose)).collect();
        for (parent, container) in known {
            for pid in table.below(parent, &|one| is_new(one) && !is_others(one)) {
                found.entry(pid).or_insert_with(|| (by(&table.all[&pid], By::Parent), container));
            }
        }
        // What is called so.
        for one in table.all.values().filter(|one| is_new(one) && !is_others(one)) {
            if let Some(helper) = self.duty(one)
                && helper.duty != Duty::Daemon
                && (table.user)(one.pid).is_some_and(|user| self.is_by(user, helper.runs))
            {
                found.entry(one.pid).or_insert((By::Declared(helper.duty), None));
            }
        }
        // What has a cgroup of the container.
        let named: Vec<(String, String)> = firsts
            .iter()
            .filter_map(|first| {
                let own = (table.cgroups)(*first);
                Some((token(&own)?.to_owned(), own))
            })
            .collect();
        for one in table.all.values().filter(|one| is_new(one) && !members.contains(&one.pid)) {
            let own = (table.cgroups)(one.pid);
            let at =
                named.iter().position(|(token, of_first)| own.contains(token.as_str()) && own != *of_first);
            // Any user may have cgroups, and name them after a container.
            if let Some(at) = at
                && !own_line.contains(&one.pid)
                && (table.user)(one.pid).is_some_and(|user| self.is_by(user, Runs::AsCaller))
            {
                found.entry(one.pid).or_insert_with(|| (by(one, By::Cgroup), Some(at)));
            }
        }
        let working = |(pid, (by, container)): (i32, (By, Option<usize>))| {
            Some(Working { process: table.all.get(&pid)?.clone(), by, container })
        };
        let mut found: Vec<Working> = found.into_iter().filter_map(working).collect();
        found.sort_by_key(|one| (one.by != By::Declared(Duty::Daemon), one.process.pid));
        found
    }
}

/// All processes at a moment.
struct Table<'a> {
    all: BTreeMap<i32, Process>,
    /// The content of a process's `cgroup` file.
    cgroups: &'a dyn Fn(i32) -> String,
    user: &'a dyn Fn(i32) -> Option<u32>,
    /// This process.
    own: i32,
}

impl Table<'_> {
    /// The ancestors of a process, without the first process of all.
    fn above(&self, pid: i32) -> impl Iterator<Item = i32> {
        let parent = |pid: &i32| self.all.get(pid).map(|one| one.parent).filter(|parent| *parent > 1);
        // A process that ended while the table was read may have left its id to one of its descendants.
        std::iter::successors(parent(&pid), parent).take(self.all.len())
    }

    /// The descendants of a process, as far as they and all between are such.
    fn below(&self, pid: i32, is_wanted: &dyn Fn(&Process) -> bool) -> BTreeSet<i32> {
        let (mut found, mut rest) = (BTreeSet::new(), vec![pid]);
        while let Some(parent) = rest.pop() {
            for one in self.all.values().filter(|one| one.parent == parent && is_wanted(one)) {
                if found.insert(one.pid) {
                    rest.push(one.pid);
                }
            }
        }
        found
    }
}

/// What names a container in the paths of its cgroups: an engine's id, or the name that dunnage gave it. The last one: this process
/// may be in a container or in a unit of such a name itself.
pub(super) fn token(cgroups: &str) -> Option<&str> {
    let is_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = || cgroups.split(|c: char| !is_of_a_word(c));
    let id = |word: &&str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ids = || cgroups.split(|c: char| !c.is_ascii_hexdigit());
    ids().rfind(id).or_else(|| words().rfind(|word| word.starts_with("dunnage-")))
}

/// The cgroup that an engine made for a container: the lowest that is named after it, since a runtime may have put the container into
/// another one below.
///
/// # Errors
/// If there is none.
pub fn own_cgroup(charging: &Charging, first: i32, name: &str) -> Result<PathBuf, Failure> {
    let found = charging.of(first).or_environment(format_args!("cannot find the cgroup of `{name}`"))?;
    let is_named = |directory: &&Path| {
        let last = directory.file_name().and_then(|last| last.to_str()).unwrap_or_default();
        token(last).is_some()
    };
    found.ancestors().find(is_named).map(Path::to_owned).ok_or_else(|| {
        Failure::environment(format!(
            "`{name}` has no memory cgroup of its own: it is in `{}`",
            found.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: u64 = 1000;
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn one(pid: i32, parent: i32, name: &str, started: u64) -> (i32, Process) {
        (pid, Process::planted(pid, parent, name, started))
    }

    /// Which helpers are found among these, as process, way and container.
    fn found(
        kind: &str,
        all: &[(i32, Process)],
        cgroups: &[(i32, &str)],
        firsts: &[i32],
    ) -> Vec<(i32, By, Option<usize>)> {
        let declared = super::super::KINDS.iter().find(|own| own.name == kind).unwrap().helpers;
        let cgroup = |pid| {
            cgroups.iter().find(|(own, _)| *own == pid).map_or(String::new(), |(_, text)| (*text).to_owned())
        };
        let table =
            Table { all: all.iter().cloned().collect(), cgroups: &cgroup, user: &|_| Some(0), own: 20 };
        let daemons: Vec<i32> =
            all.iter().filter(|(_, own)| own.name == "dockerd").map(|(pid, _)| *pid).collect();
        let helping = Helping { declared, since: SINCE, user: None };
        helping
            .found(&table, &daemons, firsts)
            .into_iter()
            .map(|one| (one.process.pid, one.by, one.container))
            .collect()
    }

    #[test]
    fn declared_helpers_are_found_with_their_containers_and_those_of_others_are_not() {
        let all = [
            one(10, 1, "dockerd", 5),
            one(20, 1, "dunnage", 900),
            one(30, 1, "containerd-shim", 1000),
            one(31, 30, "dunnage", 1001),
            one(32, 31, "sh", 1002),
            one(40, 1, "containerd-shim", 1003),
            one(41, 40, "dunnage", 1004),
            one(50, 10, "docker-proxy", 1005),
            // Those of other containers, one of them older.
            one(60, 1, "containerd-shim", 1006),
            one(61, 60, "other", 1007),
            one(62, 10, "docker-proxy", 500),
        ];
        let wanted = [
            (10, By::Declared(Duty::Daemon), None),
            (30, By::Declared(Duty::Shim), Some(0)),
            (40, By::Declared(Duty::Shim), Some(1)),
            (50, By::Declared(Duty::Ports), None),
        ];
        assert_eq!(found("docker", &all, &[], &[31, 41]), wanted);
    }

    #[test]
    fn what_is_not_declared_is_found_by_its_parent_or_its_cgroup() {
        let all = [
            one(10, 1, "dockerd", 5),
            one(20, 1, "dunnage", 900),
            // A new kind of shim with a child next to the container, and a program that a daemon starts.
            one(30, 1, "novelty", 1000),
            one(31, 30, "dunnage", 1001),
            one(33, 30, "side", 1002),
            one(50, 10, "surprise", 1003),
            // A monitor whose cgroup is named after the container, a process of the container itself, and one of another.
            one(70, 1, "watcher", 1004),
            one(71, 1, "orphan", 1005),
            one(72, 1, "watcher", 1006),
        ];
        let (container, monitor) =
            (format!("4:memory:/docker/{ID}\n"), format!("4:memory:/monitors/watch-{ID}\n"));
        let other = format!("4:memory:/monitors/watch-{}\n", ID.replace('0', "1"));
        let cgroups = [(31, &*container), (70, &*monitor), (71, &*container), (72, &*other)];
        let wanted = [
            (10, By::Declared(Duty::Daemon), None),
            (30, By::Parent, Some(0)),
            (33, By::Parent, Some(0)),
            (50, By::Parent, None),
            (70, By::Cgroup, Some(0)),
        ];
        assert_eq!(found("docker", &all, &cgroups, &[31]), wanted);
    }

    #[test]
    fn a_name_counts_for_those_whose_engine_runs_it_so() {
        let own = rustix::process::geteuid().as_raw();
        let declared = |kind: &str| super::super::KINDS.iter().find(|one| one.name == kind).unwrap().helpers;
        let of = |kind: &str, name: &str, for_whom: Option<u32>, runs_as: u32| {
            let helping = Helping { declared: declared(kind), since: SINCE, user: for_whom };
            let helper = helping.duty(&Process::planted(9, 1, name, SINCE)).unwrap();
            helping.is_by(runs_as, helper.runs)
        };
        // Docker's root has no network in user space: what is called so is another engine's.
        assert!(
            !of("docker", "slirp4netns", None, 65_534) && of("docker", "slirp4netns", Some(65_534), 65_534)
        );
        assert!(own != 0 || !of("docker", "slirp4netns", None, 0));
        // Root's podman may have one, which stays root's; another program of root's gives up its rights.
        assert!(of("podman", "slirp4netns", None, 0) && !of("podman", "slirp4netns", None, 65_534));
        assert!(of("podman", "pasta", None, 65_534) && !of("podman", "pasta", None, 1001));
        // A user's engine runs all as this user.
        assert!(of("podman", "pasta", Some(1001), 1001) && !of("podman", "pasta", Some(1001), 0));
    }

    #[test]
    fn a_parent_of_two_containers_is_of_neither_alone_and_dunnage_is_no_helper() {
        let all = [
            one(20, 1, "dunnage", 900),
            one(30, 1, "containerd-shim", 1000),
            one(31, 30, "dunnage", 1001),
            one(32, 30, "dunnage", 1002),
            // A container of the floor is dunnage's own child.
            one(33, 20, "dunnage", 1003),
        ];
        let wanted = [(30, By::Declared(Duty::Shim), None)];
        assert_eq!(found("containerd", &all, &[], &[31, 32, 33]), wanted);
        // Without any container there is nothing that works for one.
        assert_eq!(found("containerd", &all, &[], &[]), []);
    }

    #[test]
    fn containers_are_named_in_the_paths_of_their_cgroups() {
        assert_eq!(token(&format!("0::/machine.slice/libpod-{ID}.scope/container")), Some(ID));
        assert_eq!(token("4:memory:/dunnage/dunnage-ab12-7\n0::/\n"), Some("dunnage-ab12-7"));
        assert_eq!(token("0::/user.slice\n"), None);
        let outer = ID.replace('0', "1");
        assert_eq!(token(&format!("4:memory:/docker/{outer}/docker/{ID}\n")), Some(ID));
        let unit = "4:memory:/system.slice/dunnage-nightly.service/dunnage/dunnage-ab12-7\n";
        assert_eq!(token(unit), Some("dunnage-ab12-7"));
    }
}
