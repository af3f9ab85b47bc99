//! What on this machine would distort measuring or prevent it, and how to mend it?
//!
//! One explicit list. A check is a pure function of a [`View`], which is gathered once; so every
//! check is tested on planted machines. Checks change nothing: what they propose is for a person to
//! do. Deliberately absent: engines and runtimes, which the subjects check themselves.

mod activity;
mod cgroups;
mod kernel;
mod privileges;
mod processors;
mod storage;
mod view;

pub use view::{Overlay, Settings, StateDirectory, Turbo, View};

/// How things stand with one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The question does not arise here, or the machine does not tell.
    NotApplicable,
    /// As it should be.
    Ok,
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
            State::Warning => "warning",
            State::Problem => "problem",
        }
    }
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How things stand.
    pub state: State,
    /// What was found, with its value, in one line.
    pub what: String,
    /// The command that mends it, or advice where no command does.
    pub fix: Option<String>,
}

impl Finding {
    fn new(state: State, what: impl Into<String>) -> Finding {
        Finding { state, what: what.into(), fix: None }
    }

    fn ok(what: impl Into<String>) -> Finding {
        Finding::new(State::Ok, what)
    }

    fn warning(what: impl Into<String>) -> Finding {
        Finding::new(State::Warning, what)
    }

    fn problem(what: impl Into<String>) -> Finding {
        Finding::new(State::Problem, what)
    }

    fn not_applicable(what: impl Into<String>) -> Finding {
        Finding::new(State::NotApplicable, what)
    }

    fn fix(self, fix: impl Into<String>) -> Finding {
        Finding { fix: Some(fix.into()), ..self }
    }
}

/// A question about the machine.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its name in reports.
    pub name: &'static str,
    /// Answers it.
    pub run: fn(&View) -> Finding,
}

const fn check(name: &'static str, run: fn(&View) -> Finding) -> Check {
    Check { name, run }
}

/// Every check, in the order of reports: first what prevents measuring, then what distorts it.
pub static CHECKS: &[Check] = &[
    check("user", privileges::user),
    check("cap-sys-admin", privileges::sys_admin),
    check("cap-sys-resource", privileges::sys_resource),
    check("cpu-accounting", privileges::cpu_accounting),
    check("user-namespaces", privileges::user_namespaces),
    check("no-new-privileges", privileges::no_new_privileges),
    check("seccomp", privileges::seccomp),
    check("container", privileges::container),
    check("time-namespace", privileges::time_namespace),
    check("cgroup-mode", cgroups::mode),
    check("cgroup-controllers", cgroups::controllers),
    check("cgroup-moves", cgroups::moves),
    check("overlay", storage::overlay),
    check("state-writable", storage::writable),
    check("state-exec", storage::exec),
    check("state-space", storage::space),
    check("state-filesystem", storage::filesystem),
    check("containers", activity::containers),
    check("steal", activity::steal),
    check("busy", activity::busy),
    check("load", activity::load),
    check("pressure", activity::pressure),
    check("memory", activity::memory),
    check("swap", activity::swap),
    check("cpus", processors::count),
    check("cpu-limit", processors::limit),
    check("smt", processors::smt),
    check("governor", processors::governor),
    check("turbo", processors::turbo),
    check("clock-source", processors::clock_source),
    check("virtualisation", processors::virtualisation),
    check("rcu", kernel::rcu),
    check("ipv6", kernel::ipv6),
    check("audit", kernel::audit),
    check("tracing", kernel::tracing),
    check("mitigations", kernel::mitigations),
    check("security-modules", kernel::security_modules),
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
