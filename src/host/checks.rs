//! What on this machine would distort measuring or prevent it, and how to mend it?
//!
//! One explicit list; what each check matters for stands beside it. A check is a pure function of a [`View`], which is gathered once; so every
//! check is tested on planted machines. Checks change nothing: what they propose is for a person to
//! do. Deliberately absent: engines and runtimes, which `subject::survey` looks at in the same manner.

mod activity;
mod cgroups;
mod devices;
mod kernel;
mod measured;
mod privileges;
mod processors;
mod settings;
mod speculation;
mod storage;
mod view;

pub use measured::{Measured, Moves};
pub use settings::{Node, Overlay, Settings, Turbo};
#[cfg(test)]
pub(crate) use view::planted;
pub use view::{StateDirectory, View};

use serde::Serialize;

use crate::report::text::clean;

/// How things stand with one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The question does not arise here, or the machine does not tell.
    #[serde(rename = "n/a")]
    NotApplicable,
    /// As it should be.
    Ok,
    /// As it may be; but whoever reads the figures must know it.
    Note,
    /// Measuring is possible but distorted, or not comparable with a default machine.
    Warning,
    /// Something cannot be measured at all.
    Problem,
}

impl State {
    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            State::NotApplicable => "n/a",
            State::Ok => "ok",
            State::Note => "note",
            State::Warning => "warning",
            State::Problem => "problem",
        }
    }
}

/// How to mend what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fix {
    /// Typed as it stands, it mends it.
    Command(String),
    /// What a person has to do or to decide.
    Advice(String),
}

/// The words of either.
impl std::ops::Deref for Fix {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Fix::Command(words) | Fix::Advice(words) => words,
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How things stand.
    pub state: State,
    /// What was found, with its value, in one line.
    #[serde(rename = "found")]
    pub what: String,
    /// How to fix it.
    #[serde(flatten)]
    pub fix: Option<Fix>,
}

impl Finding {
    fn new(state: State, what: impl Into<String>) -> Finding {
        Finding { state, what: clean(&what.into()), fix: None }
    }

    /// As it should be.
    pub fn ok(what: impl Into<String>) -> Finding {
        Finding::new(State::Ok, what)
    }

    /// To be known.
    pub fn note(what: impl Into<String>) -> Finding {
        Finding::new(State::Note, what)
    }

    /// Distorts.
    pub fn warning(what: impl Into<String>) -> Finding {
        Finding::new(State::Warning, what)
    }

    /// Prevents.
    pub fn problem(what: impl Into<String>) -> Finding {
        Finding::new(State::Problem, what)
    }

    /// Does not arise.
    pub fn not_applicable(what: impl Into<String>) -> Finding {
        Finding::new(State::NotApplicable, what)
    }

    /// With a command that mends it.
    pub fn command(self, command: impl Into<String>) -> Finding {
        Finding { fix: Some(Fix::Command(command.into())), ..self }
    }

    /// With advice where no command does.
    pub fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { fix: Some(Fix::Advice(advice.into())), ..self }
    }
}

/// What a check is about: the heading under which reports show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// What this process may do.
    Privileges,
    /// Control groups.
    Cgroups,
    /// Filesystems and disks.
    Storage,
    /// What else goes on.
    Activity,
    /// Processors and clocks.
    Processors,
    /// How the kernel is set.
    Kernel,
}

impl Group {
    /// The heading.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Privileges => "privileges",
            Group::Cgroups => "control groups",
            Group::Storage => "storage",
            Group::Activity => "activity",
            Group::Processors => "processors and clocks",
            Group::Kernel => "kernel",
        }
    }
}

/// A question about the machine.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// What it is about.
    pub group: Group,
    /// Its name in reports.
    pub name: &'static str,
    /// What it matters for in measuring.
    pub matters: &'static str,
    /// Answers it.
    pub run: fn(&View) -> Finding,
}

const fn check(group: Group, name: &'static str, matters: &'static str, run: fn(&View) -> Finding) -> Check {
    Check { group, name, matters, run }
}

/// Every check, in the order of reports.
pub static CHECKS: &[Check] = &[
    check(Group::Privileges, "user", "runtimes and CPU accounting need root", privileges::user),
    check(
        Group::Privileges,
        "cap-sys-admin",
        "mounts, namespaces and control groups ask for it",
        privileges::sys_admin,
    ),
    check(
        Group::Privileges,
        "cap-net-admin",
        "bridges, veth pairs and addresses of containers ask for it",
        privileges::net_admin,
    ),
    check(
        Group::Privileges,
        "cap-sys-resource",
        "without it limits can only be lowered, and engines like to raise them",
        privileges::sys_resource,
    ),
    check(
        Group::Privileges,
        "container-caps",
        "a runtime can only give to containers what we have ourselves",
        privileges::container_capabilities,
    ),
    check(
        Group::Privileges,
        "cpu-accounting",
        "the CPU time of short-lived helpers is watched on all CPUs through perf events",
        privileges::cpu_accounting,
    ),
    check(
        Group::Privileges,
        "user-namespaces",
        "rootless subjects live in one, and so does everything that who is not root starts",
        privileges::user_namespaces,
    ),
    check(
        Group::Privileges,
        "namespace-limits",
        "each container takes up to seven namespaces",
        privileges::namespace_limits,
    ),
    check(
        Group::Privileges,
        "subordinate-ids",
        "rootless engines map the users of a container to them",
        privileges::subordinate_ids,
    ),
    check(
        Group::Privileges,
        "no-new-privileges",
        "rootless engines map users through set-user-id helpers",
        privileges::no_new_privileges,
    ),
    check(
        Group::Privileges,
        "seccomp",
        "a filter on dunnage lies on `bare` too, so the baseline would pay for isolation",
        privileges::seccomp,
    ),
    check(Group::Privileges, "container", "inside a container `bare` is not bare", privileges::container),
    check(
        Group::Privileges,
        "time-namespace",
        "stamps compare only within one time namespace, and daemons use the machine's",
        privileges::time_namespace,
    ),
    check(
        Group::Privileges,
        "dev-net-tun",
        "slirp4netns and pasta make networks of rootless containers through it",
        devices::tun,
    ),
    check(
        Group::Privileges,
        "dev-fuse",
        "fuse-overlayfs, the storage of some rootless engines, works through it",
        devices::fuse,
    ),
    check(Group::Cgroups, "cgroup-mode", "runtimes want version 1 or 2 whole", cgroups::mode),
    check(
        Group::Cgroups,
        "cgroup-version",
        "what a limit costs and what can be read differs between the versions",
        cgroups::version,
    ),
    check(
        Group::Cgroups,
        "cgroup-controllers",
        "limits on CPU, memory and processes need them",
        cgroups::controllers,
    ),
    check(
        Group::Cgroups,
        "cgroup-moves",
        "moving a process into a group is a large part of a start; `favordynmods` makes it quicker",
        cgroups::moves,
    ),
    check(
        Group::Cgroups,
        "cgroup-quiet",
        "on a quiet kernel such a move waits for a grace period (RCU), so what ran before a launch belongs to its setting",
        cgroups::quiet,
    ),
    check(Group::Storage, "overlay", "root filesystems of containers are overlay mounts", storage::overlay),
    check(
        Group::Storage,
        "state-writable",
        "runs, bundles and the cleanup journal are written there",
        storage::writable,
    ),
    check(Group::Storage, "state-exec", "the probe is executed from there", storage::exec),
    check(Group::Storage, "state-space", "a disk that fills up during a run loses samples", storage::space),
    check(
        Group::Storage,
        "state-filesystem",
        "upper directories of overlay mounts lie there, and not every filesystem can hold one",
        storage::filesystem,
    ),
    check(
        Group::Activity,
        "containers",
        "other containers take the same kernel locks that starting takes",
        activity::containers,
    ),
    check(
        Group::Activity,
        "steal",
        "what the hypervisor gives to others is missing from every duration",
        activity::steal,
    ),
    check(Group::Activity, "busy", "a start often meets somebody else's work on its CPU", activity::busy),
    check(
        Group::Activity,
        "load",
        "a start needs at least two CPUs that are free, its client's and its engine's",
        activity::load,
    ),
    check(
        Group::Activity,
        "pressure",
        "each wait for CPU or disk is longer than many of the steps that are measured",
        activity::pressure,
    ),
    check(
        Group::Activity,
        "memory",
        "without room the kernel takes pages back while a container starts",
        activity::memory,
    ),
    check(
        Group::Activity,
        "swap",
        "a start may wait until pages of its engine are read back",
        activity::swap,
    ),
    check(
        Group::Activity,
        "inotify",
        "daemons and dunnage itself wait for events through it",
        devices::inotify,
    ),
    check(
        Group::Processors,
        "cpus",
        "with one CPU the client waits for the engine that it waits for",
        processors::count,
    ),
    check(
        Group::Processors,
        "cpu-limit",
        "a limit on us holds for `bare`, `floor` and runtimes, but not for what daemons start",
        processors::limit,
    ),
    check(Group::Processors, "smt", "threads of one core slow each other down", processors::smt),
    check(
        Group::Processors,
        "governor",
        "a clock rate that follows the load makes idle and primed starts differ",
        processors::governor,
    ),
    check(
        Group::Processors,
        "turbo",
        "rates beyond the nominal one depend on temperature and on what other cores do",
        processors::turbo,
    ),
    check(
        Group::Processors,
        "clock-rate",
        "a rate far below the highest makes everything slower than the processor is",
        processors::clock_rate,
    ),
    check(
        Group::Processors,
        "clock-source",
        "dear clocks cost a system call for every stamp",
        processors::clock_source,
    ),
    check(
        Group::Processors,
        "timer-floor",
        "no difference below the timer's step can be seen, and each stamp costs one reading",
        processors::timer,
    ),
    check(
        Group::Processors,
        "virtualisation",
        "entering the kernel, page tables and interrupts cost more in a guest",
        processors::virtualisation,
    ),
    check(
        Group::Kernel,
        "rcu",
        "mounts, namespaces and control groups wait for readers (RCU) when they are taken apart",
        kernel::rcu,
    ),
    check(
        Group::Kernel,
        "ipv6",
        "every new network namespace sets it up too, where it is there",
        kernel::ipv6,
    ),
    check(
        Group::Kernel,
        "audit",
        "with audit on, each system call of most tasks takes the slow way",
        kernel::audit,
    ),
    check(Group::Kernel, "tracing", "a tracer in force slows down what it traces", kernel::tracing),
    check(Group::Kernel, "mitigations", "mitigations make entering the kernel dearer", kernel::mitigations),
    check(
        Group::Kernel,
        "store-bypass",
        "some kernels switch SSBD on for every task with a seccomp filter, so a filter seems to cost more",
        speculation::store_bypass,
    ),
    check(
        Group::Kernel,
        "indirect-branches",
        "some kernels switch STIBP on for every task with a seccomp filter",
        speculation::indirect_branches,
    ),
    check(
        Group::Kernel,
        "security-modules",
        "modules are asked at many steps of a start",
        kernel::security_modules,
    ),
];

/// Every check with what it finds.
pub fn run(view: &View) -> Vec<(&'static Check, Finding)> {
    CHECKS.iter().map(|check| (check, (check.run)(view))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_typeable() {
        let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '6'))
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), CHECKS.len());
    }

    #[test]
    fn a_good_machine_has_nothing_to_mend() {
        for (check, finding) in run(&view::planted()) {
            assert!(finding.state <= State::Ok, "{}: {finding:?}", check.name);
            assert_eq!(finding.fix, None, "{}", check.name);
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_accused() {
        let findings = run(&view::silent());
        for (check, finding) in &findings {
            let accused = finding.state > State::Ok;
            // No control groups at all is a finding of its own: their mounts are always readable.
            assert!(!accused || check.name == "cgroup-mode", "{}: {finding:?}", check.name);
        }
    }
}
