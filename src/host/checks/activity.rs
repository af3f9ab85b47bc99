//! Whether the machine is quiet enough to measure now.
//!
//! Nothing of dunnage runs at the same time as the doctor, so the limits are stricter than those for marking rounds.

use super::{Check, Finding, check};
use crate::host::context::{self, STEAL_LIMIT};
use crate::report::text::listed;

/// A tenth. Above it, a start often has to share its CPU with other work.
const BUSY_LIMIT: f64 = 0.10;
/// Half the CPUs. A start needs at least two free ones, for its client and its engine.
const LOAD_PER_CPU: f64 = 0.5;
/// A tenth of the time. Each such wait is longer than many of the measured steps.
const PRESSURE_LIMIT: f64 = 0.10;
/// Two engines with their daemons, shims and clients fit into half a GiB.
const WANTED_BYTES: u64 = 512 << 20;
const NEEDED_BYTES: u64 = 128 << 20;
/// A few unused pages may be swapped out, but not a whole daemon.
const SWAPPED_LIMIT: u64 = 64 << 20;
/// Half of the kernel's default: each daemon and shim takes one or two.
const INSTANCES_WANTED: u64 = 64;

const TOO_SHORT: &str = "not watched long enough";
const WHO_RUNS: &str = "stop other work; see `ps -eo pcpu,stat,pid,comm --sort=-pcpu | head`";

pub(super) const CHECKS: &[Check] = &[
    check("containers", "other containers take the same kernel locks as a start", |view| {
        Some(match view.context.containers? {
            0 => Finding::ok("none running"),
            count => Finding::warning(format!(
                "{count} {} running ({}): every round will be marked as disturbed",
                if count == 1 { "container is" } else { "containers are" },
                named(&context::named_containers(&view.tree.at("/proc")))
            ))
            .advice("stop them first; see `docker ps`, `podman ps` and `ctr -n k8s.io containers ls`"),
        })
    }),
    check("steal", "CPU time that the hypervisor gives to other guests lengthens every duration", |view| {
        let Some(share) = view.context.steal else { return Some(Finding::not_applicable(TOO_SHORT)) };
        let shown = percent(share);
        Finding::warning(format!("the hypervisor gives {shown} of the CPU time to other guests"))
            .advice("measure at another time, or on a guest with dedicated CPUs")
            .unless(share <= STEAL_LIMIT, format!("{shown} of the CPU time"))
    }),
    check("busy", "a start on a busy CPU has to share it", |view| {
        let Some(share) = view.context.busy else { return Some(Finding::not_applicable(TOO_SHORT)) };
        let shown = percent(share);
        let busy = Finding::warning(format!("the CPUs are busy {shown} of the time")).advice(WHO_RUNS);
        busy.unless(share <= BUSY_LIMIT, format!("{shown} of the CPU time is in use"))
    }),
    check("load", "a start needs at least two free CPUs, for its client and its engine", |view| {
        let (load, cpus) = (view.context.load?, view.facts.cpu.threads?);
        let what = format!("{load:.2} on {cpus} CPUs over the last minute");
        let high = Finding::warning(&what).advice(format!("wait a minute, or {WHO_RUNS}"));
        high.unless(load <= f64::from(cpus) * LOAD_PER_CPU, what)
    }),
    check("pressure", "each wait for CPU or disk is longer than many measured steps", |view| {
        if view.facts.kernel.release.is_some() && !view.tree.has("/proc/pressure/cpu") {
            return Some(Finding::not_applicable("not reported by the kernel (boot it with `psi=1`)"));
        }
        let (Some(cpu), Some(io)) = (view.context.cpu_pressure, view.context.io_pressure) else {
            return Some(Finding::not_applicable(TOO_SHORT));
        };
        let what = format!("tasks wait for CPU {} and for I/O {} of the time", percent(cpu), percent(io));
        Finding::warning(&what).advice(WHO_RUNS).unless(cpu.max(io) <= PRESSURE_LIMIT, what)
    }),
    check("memory", "when memory is short, the kernel reclaims pages while a container starts", |view| {
        let bytes = view.context.available_memory?;
        let what = format!("{} MiB available", bytes >> 20);
        let fix = "free memory; see `ps -eo rss,pid,comm --sort=-rss | head`";
        Some(match bytes {
            bytes if bytes < NEEDED_BYTES => Finding::problem(format!("only {what}")).advice(fix),
            bytes if bytes < WANTED_BYTES => Finding::warning(format!("only {what}")).advice(fix),
            _ => Finding::ok(what),
        })
    }),
    check("swap", "a start may wait for swapped-out pages of its engine", |view| {
        let bytes = view.tree.memory("SwapTotal")?.saturating_sub(view.tree.memory("SwapFree")?);
        let what = format!("{} MiB swapped out", bytes >> 20);
        Finding::warning(format!("{what}: a start may wait for pages of its engine"))
            .command("sudo swapoff -a && sudo swapon -a")
            .unless(bytes <= SWAPPED_LIMIT, what)
    }),
    check("inotify", "daemons and dunnage itself use it to wait for events", |view| {
        let most: u64 = view.tree.number("/proc/sys/fs/inotify/max_user_instances")?;
        let what = format!("{most} instances per user");
        Finding::warning(format!("only {what}: daemons and dunnage may run out of them"))
            .command("sudo sysctl -w fs.inotify.max_user_instances=128")
            .unless(most >= INSTANCES_WANTED, what)
    }),
];

/// The first of them, since a finding is one line.
fn named(all: &[String]) -> String {
    let first = listed(all.iter().take(3), ", ");
    if all.len() > 3 { format!("{first}, …") } else { first }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::View;
    use super::super::found;

    fn state(check: &str, change: impl Fn(&mut View)) -> State {
        found(check, change).state
    }

    // The planted machine is exactly at each limit, which is the near miss of each check.
    #[test]
    fn each_limit_is_the_last_good_value() {
        for check in ["containers", "steal", "busy", "load", "pressure", "memory", "swap"] {
            assert_eq!(state(check, |_| ()), Ok);
        }
    }

    #[test]
    fn beyond_its_limit_each_check_fires() {
        assert_eq!(state("containers", |v| v.context.containers = Some(1)), Warning);
        assert_eq!(state("steal", |v| v.context.steal = Some(0.011)), Warning);
        assert_eq!(state("busy", |v| v.context.busy = Some(0.11)), Warning);
        assert_eq!(state("load", |v| v.context.load = Some(4.01)), Warning);
        assert_eq!(state("pressure", |v| v.context.cpu_pressure = Some(0.11)), Warning);
        assert_eq!(state("pressure", |v| v.context.io_pressure = Some(0.11)), Warning);
        assert_eq!(state("memory", |v| v.context.available_memory = Some((512 << 20) - 1)), Warning);
        assert_eq!(state("memory", |v| v.context.available_memory = Some((128 << 20) - 1)), Problem);
        assert_eq!(
            state("swap", |v| v.tree.plant("/proc/meminfo", "SwapTotal: 65537 kB\nSwapFree: 0 kB\n")),
            Warning
        );
    }

    #[test]
    fn a_kernel_without_pressure_is_not_accused() {
        assert_eq!(state("pressure", |v| v.tree.clear("/proc/pressure/cpu")), NotApplicable);
    }

    #[test]
    fn few_event_queues_are_told() {
        let found =
            |most| state("inotify", |v| v.tree.plant("/proc/sys/fs/inotify/max_user_instances", most));
        assert_eq!((found("63"), found("64"), found("")), (Warning, Ok, NotApplicable));
    }
}
