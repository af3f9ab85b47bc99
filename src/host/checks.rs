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

/// A question about the machine.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name in reports.
    pub name: &'static str,
    /// What it matters for in measuring.
    pub matters: &'static str,
    /// Answers it.
    pub run: fn(&View) -> Finding,
}

const fn check(name: &'static str, matters: &'static str, run: fn(&View) -> Finding) -> Check {
    Check { name, matters, run }
}

/// Every check, in the order of reports, under the heading of its group.
pub static CHECKS: &[(&str, &[Check])] = &[
    (
        "privileges",
        &[
            check("user", "runtimes and CPU accounting need root", privileges::user),
            check("cap-sys-admin", "mounts, namespaces and control groups ask for it", privileges::sys_admin),
            check(
                "cap-net-admin",
                "bridges, veth pairs and addresses of containers ask for it",
                privileges::net_admin,
            ),
            check(
                "cap-sys-resource",
                "without it limits can only be lowered, and engines like to raise them",
                privileges::sys_resource,
            ),
            check(
                "container-caps",
                "a runtime can only give to containers what we have ourselves",
                privileges::container_capabilities,
            ),
            check(
                "cpu-accounting",
                "the CPU time of short-lived helpers is watched on all CPUs through perf events",
                privileges::cpu_accounting,
            ),
            check(
                "user-namespaces",
                "rootless subjects live in one, and so does everything that who is not root starts",
                privileges::user_namespaces,
            ),
            check(
                "namespace-limits",
                "each container takes up to seven namespaces",
                privileges::namespace_limits,
            ),
            check(
                "subordinate-ids",
                "rootless engines map the users of a container to them",
                privileges::subordinate_ids,
            ),
            check(
                "no-new-privileges",
                "rootless engines map users through set-user-id helpers",
                privileges::no_new_privileges,
            ),
            check(
                "seccomp",
                "a filter on dunnage lies on `bare` too, so the baseline would pay for isolation",
                privileges::seccomp,
            ),
            check("container", "inside a container `bare` is not bare", privileges::container),
            check(
                "time-namespace",
                "stamps compare only within one time namespace, and daemons use the machine's",
                privileges::time_namespace,
            ),
            check(
                "dev-net-tun",
                "slirp4netns and pasta make networks of rootless containers through it",
                devices::tun,
            ),
            check(
                "dev-fuse",
                "fuse-overlayfs, the storage of some rootless engines, works through it",
                devices::fuse,
            ),
        ],
    ),
    (
        "control groups",
        &[
            check("cgroup-mode", "runtimes want version 1 or 2 whole", cgroups::mode),
            check(
                "cgroup-version",
                "what a limit costs and what can be read differs between the versions",
                cgroups::version,
            ),
            check(
                "cgroup-controllers",
                "limits on CPU, memory and processes need them",
                cgroups::controllers,
            ),
            check(
                "cgroup-moves",
                "moving a process into a group is a large part of a start; `favordynmods` makes it quicker",
                cgroups::moves,
            ),
            check(
                "cgroup-quiet",
                "on a quiet kernel such a move waits for a grace period (RCU), so what ran before a launch belongs to its setting",
                cgroups::quiet,
            ),
        ],
    ),
    (
        "storage",
        &[
            check("overlay", "root filesystems of containers are overlay mounts", storage::overlay),
            check(
                "state-writable",
                "runs, bundles and the cleanup journal are written there",
                storage::writable,
            ),
            check("state-exec", "the probe is executed from there", storage::exec),
            check("state-space", "a disk that fills up during a run loses samples", storage::space),
            check(
                "state-filesystem",
                "upper directories of overlay mounts lie there, and not every filesystem can hold one",
                storage::filesystem,
            ),
        ],
    ),
    (
        "activity",
        &[
            check(
                "containers",
                "other containers take the same kernel locks that starting takes",
                activity::containers,
            ),
            check(
                "steal",
                "what the hypervisor gives to others is missing from every duration",
                activity::steal,
            ),
            check("busy", "a start often meets somebody else's work on its CPU", activity::busy),
            check(
                "load",
                "a start needs at least two CPUs that are free, its client's and its engine's",
                activity::load,
            ),
            check(
                "pressure",
                "each wait for CPU or disk is longer than many of the steps that are measured",
                activity::pressure,
            ),
            check(
                "memory",
                "without room the kernel takes pages back while a container starts",
                activity::memory,
            ),
            check("swap", "a start may wait until pages of its engine are read back", activity::swap),
            check("inotify", "daemons and dunnage itself wait for events through it", devices::inotify),
        ],
    ),
    (
        "processors and clocks",
        &[
            check(
                "cpus",
                "with one CPU the client waits for the engine that it waits for",
                processors::count,
            ),
            check(
                "cpu-limit",
                "a limit on us holds for `bare`, `floor` and runtimes, but not for what daemons start",
                processors::limit,
            ),
            check("smt", "threads of one core slow each other down", processors::smt),
            check(
                "governor",
                "a clock rate that follows the load makes idle and primed starts differ",
                processors::governor,
            ),
            check(
                "turbo",
                "rates beyond the nominal one depend on temperature and on what other cores do",
                processors::turbo,
            ),
            check(
                "clock-rate",
                "a rate far below the highest makes everything slower than the processor is",
                processors::clock_rate,
            ),
            check("clock-source", "dear clocks cost a system call for every stamp", processors::clock_source),
            check(
                "timer-floor",
                "no difference below the timer's step can be seen, and each stamp costs one reading",
                processors::timer,
            ),
            check(
                "virtualisation",
                "entering the kernel, page tables and interrupts cost more in a guest",
                processors::virtualisation,
            ),
        ],
    ),
    (
        "kernel",
        &[
            check(
                "rcu",
                "mounts, namespaces and control groups wait for readers (RCU) when they are taken apart",
                kernel::rcu,
            ),
            check("ipv6", "every new network namespace sets it up too, where it is there", kernel::ipv6),
            check("audit", "with audit on, each system call of most tasks takes the slow way", kernel::audit),
            check("tracing", "a tracer in force slows down what it traces", kernel::tracing),
            check("mitigations", "mitigations make entering the kernel dearer", kernel::mitigations),
            check(
                "store-bypass",
                "some kernels switch SSBD on for every task with a seccomp filter, so a filter seems to cost more",
                speculation::store_bypass,
            ),
            check(
                "indirect-branches",
                "some kernels switch STIBP on for every task with a seccomp filter",
                speculation::indirect_branches,
            ),
            check("security-modules", "modules are asked at many steps of a start", kernel::security_modules),
        ],
    ),
];

/// Every check with its group and with what it finds.
pub fn run(view: &View) -> impl Iterator<Item = (&'static str, &'static Check, Finding)> {
    CHECKS.iter().flat_map(|(group, checks)| checks.iter().map(|check| (*group, check, (check.run)(view))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_typeable() {
        let mut names: Vec<_> = CHECKS.iter().flat_map(|(_, all)| *all).map(|check| check.name).collect();
        let count = names.len();
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '6'))
        );
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_good_machine_has_nothing_to_mend() {
        for (_, check, finding) in run(&view::planted()) {
            assert!(finding.state <= State::Ok, "{}: {finding:?}", check.name);
            assert_eq!(finding.fix, None, "{}", check.name);
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_accused() {
        for (_, check, finding) in run(&view::silent()) {
            let accused = finding.state > State::Ok;
            // No control groups at all is a finding of its own: their mounts are always readable.
            assert!(!accused || check.name == "cgroup-mode", "{}: {finding:?}", check.name);
        }
    }
}
