//! What a program gets from the one that starts it, and can be given otherwise: resource limits, CPUs, umask,
//! niceness, timer slack. Read from a running process, and set between the clone and the program.
//!
//! Deliberately absent: how soon the kernel kills a process, and its environment, which engines set for
//! every container.

use std::fs;
use std::io;

use dunnage_analysis::subject::limits::{RESOURCES, Ulimit, cpus_text, parse_cpus};

use super::identity::{Limit, limits_in, set_limit};
use super::limits;
use super::raw;
use super::steps::{Argument, Step, number};

const CAP_SYS_NICE: u64 = 1 << 23;

/// The bounds of a process. What is empty or `None` stays as it is inherited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Resource limits.
    pub limits: Vec<Limit>,
    /// The CPUs that it may use, lowest first.
    pub cpus: Vec<usize>,
    /// The file mode creation mask.
    pub umask: Option<u32>,
    /// The niceness.
    pub nice: Option<i32>,
    /// By how many nanoseconds its timers may be late.
    pub timer_slack: Option<usize>,
}

/// A bound that cannot be given to a child, with both values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name.
    pub what: String,
    /// The value that was asked for.
    pub wanted: String,
    /// The value that the child gets.
    pub got: String,
}

/// A number that is a word of a bit set.
const WORD: usize = u64::BITS as usize;

impl Bounds {
    /// Those of a running process.
    pub fn of(pid: i32) -> io::Result<Bounds> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        let unknown = |name: &str| io::Error::other(format!("cannot parse `/proc/{pid}/{name}`"));
        let status = read("status")?;
        let fact = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let stat = read("stat")?;
        // After the name, which may contain anything, comes the third field.
        let nice = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(16)?.parse().ok());
        Ok(Bounds {
            limits: limits_in(&read("limits")?).ok_or_else(|| unknown("limits"))?,
            cpus: fact("Cpus_allowed_list:").and_then(parse_cpus).unwrap_or_default(),
            umask: fact("Umask:").and_then(|mask| u32::from_str_radix(mask, 8).ok()),
            nice,
            timer_slack: read("timerslack_ns").ok().and_then(|slack| slack.trim().parse().ok()),
        })
    }

    /// Those that this process may give to a child, and which ones it may not.
    pub fn attainable(&self) -> io::Result<(Bounds, Vec<Refused>)> {
        let own = Bounds::of(std::process::id() as i32)?;
        let mut refused = Vec::new();
        let may_be_raised = limits::may_be_raised();
        let limit = |wanted: &Limit| {
            let own = own.limits.iter().find(|own| own.resource == wanted.resource);
            let most = own.map_or(wanted.hard, |own| own.hard);
            if may_be_raised || wanted.hard <= most {
                return *wanted;
            }
            let got = Limit { soft: wanted.soft.min(most), hard: most, ..*wanted };
            refused.push(Refused { what: name(wanted), wanted: shown(wanted), got: shown(&got) });
            got
        };
        let limits = self.limits.iter().map(limit).collect();
        let may_be_nice = raw::effective_capabilities().is_some_and(|own| own & CAP_SYS_NICE != 0);
        let nice = match (self.nice, own.nice) {
            (Some(wanted), Some(own)) if wanted < own && !may_be_nice => {
                let [wanted, got] = [wanted, own].map(|nice| nice.to_string());
                refused.push(Refused { what: "nice".to_owned(), wanted, got });
                None
            }
            (wanted, _) => wanted,
        };
        Ok((Bounds { limits, nice, ..self.clone() }, refused))
    }

    /// The calls of the child.
    pub(in crate::sys) fn steps(&self) -> Vec<Step> {
        let call = |name, number, arguments: Vec<Argument>| Step::call(name, "", number, arguments);
        let mut steps: Vec<Step> = self.limits.iter().map(set_limit).collect();
        if let Some(last) = self.cpus.last() {
            let mut words = vec![0u64; last / WORD + 1];
            self.cpus.iter().for_each(|cpu| words[cpu / WORD] |= 1 << (cpu % WORD));
            let size = number(words.len() * size_of::<u64>());
            let arguments = vec![number(0), size, Argument::Words(words.into())];
            let path = format!("CPUs {}", cpus_text(&self.cpus));
            steps.push(Step::call("bind to", path, libc::SYS_sched_setaffinity, arguments));
        }
        let umask = self.umask.map(|mask| call("set umask", libc::SYS_umask, vec![number(mask)]));
        let nice = self.nice.map(|nice| {
            let nice = Argument::Number(nice as isize as usize);
            let arguments = vec![number(libc::PRIO_PROCESS), number(0), nice];
            call("set niceness", libc::SYS_setpriority, arguments)
        });
        let slack = self.timer_slack.map(|slack| {
            call("set timer slack", libc::SYS_prctl, vec![number(libc::PR_SET_TIMERSLACK), number(slack)])
        });
        steps.extend([umask, nice, slack].into_iter().flatten());
        steps
    }
}

fn name(limit: &Limit) -> String {
    format!("ulimit {}", RESOURCES.get(limit.resource as usize).unwrap_or(&"unknown"))
}

/// The limit as docker writes it.
fn shown(limit: &Limit) -> String {
    Ulimit { resource: limit.resource as usize, soft: limit.soft, hard: limit.hard }.value()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sys::spawn::{Program, start};
    use crate::units::Nanos;

    fn own() -> Bounds {
        Bounds::of(std::process::id() as i32).unwrap()
    }

    #[test]
    fn a_child_gets_the_bounds_that_it_is_given() {
        let before = own();
        let files = before.limits.iter().find(|one| one.resource == libc::RLIMIT_NOFILE).unwrap();
        let bounds = Bounds {
            limits: vec![Limit { soft: 100, hard: files.hard.min(200), ..*files }],
            cpus: vec![before.cpus[0]],
            umask: Some(0o27),
            nice: before.nice.map(|nice| (nice + 1).min(19)),
            timer_slack: Some(70_000),
        };
        let program = Program::new(Path::new("/bin/sleep"), ["100"]).unwrap().bounded(&bounds);
        let child = start(&program).unwrap();
        let found = Bounds::of(child.pid).unwrap();
        child.signal(libc::SIGKILL).unwrap();
        child.wait(Nanos::from_millis(5000), None).unwrap();
        assert!(found.limits.contains(&bounds.limits[0]), "{found:?}");
        let rest = |all: &Bounds| Bounds { limits: Vec::new(), ..all.clone() };
        // Another process's timer slack is only for root to read.
        let slack = found.timer_slack.and(bounds.timer_slack);
        assert_eq!(rest(&found), Bounds { timer_slack: slack, ..rest(&bounds) });
    }

    #[test]
    fn what_may_not_be_raised_is_named_with_both_values() {
        let own = own();
        let own = own.limits.iter().find(|one| one.resource == libc::RLIMIT_NOFILE).unwrap();
        let of = |hard| {
            Bounds { limits: vec![Limit { soft: 5, hard, ..*own }], ..Bounds::default() }
                .attainable()
                .unwrap()
        };
        assert_eq!(of(own.hard).1, []);
        let (got, refused) = of(own.hard + 1);
        if limits::may_be_raised() {
            return assert_eq!((got.limits[0].hard, refused), (own.hard + 1, Vec::new()));
        }
        assert_eq!(got.limits[0].hard, own.hard);
        let [Refused { what, wanted, got }] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!(
            (what.as_str(), wanted.clone(), got.clone()),
            ("ulimit nofile", format!("5:{}", own.hard + 1), format!("5:{}", own.hard))
        );
    }
}
