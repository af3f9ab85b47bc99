//! Is the machine quiet enough to be measured now?
//!
//! Nothing of ours runs while the doctor looks, so the limits are narrower than those by which
//! rounds are marked.

use super::{Finding, View};
use crate::host::context::STEAL_LIMIT;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Other containers take the same kernel locks that starting takes.
pub(super) fn containers(view: &View) -> Finding {
    match view.context.containers {
        Some(0) => Finding::ok("none is running"),
        Some(count) => Finding::warning(format!(
            "{count} {} running: every round will be marked as disturbed",
            if count == 1 { "container is" } else { "containers are" }
        ))
        .advice("stop them first; see `docker ps`, `podman ps` and `ctr -n k8s.io containers ls`"),
        None => Finding::not_applicable("processes cannot be listed"),
    }
}

/// What the hypervisor gives to others is missing from every duration.
pub(super) fn steal(view: &View) -> Finding {
    match view.context.steal_share {
        Some(share) if share > STEAL_LIMIT => {
            Finding::warning(format!("the hypervisor gives {} of the CPU time to others", percent(share)))
                .advice("measure at another time, or on a guest with CPUs of its own")
        }
        Some(share) => Finding::ok(format!("{} of the CPU time", percent(share))),
        None => Finding::not_applicable("not watched for long enough"),
    }
}

/// A tenth: with more, a start often meets somebody else's work on its CPU.
const BUSY_LIMIT: f64 = 0.10;

pub(super) fn busy(view: &View) -> Finding {
    match view.context.busy_share {
        Some(share) if share > BUSY_LIMIT => {
            Finding::warning(format!("the CPUs are busy for {} of the time", percent(share)))
                .advice("stop what runs; see `ps -eo pcpu,pid,comm --sort=-pcpu | head`")
        }
        Some(share) => Finding::ok(format!("{} of the CPU time is in use", percent(share))),
        None => Finding::not_applicable("not watched for long enough"),
    }
}

/// Half the CPUs: a start needs at least two that are free, its client's and its engine's.
const LOAD_PER_CPU: f64 = 0.5;

pub(super) fn load(view: &View) -> Finding {
    let (Some(load), Some(cpus)) = (view.context.load_1min, view.context.cpus) else {
        return Finding::not_applicable("the load is unknown");
    };
    let what = format!("{load:.2} on {cpus} CPUs over the last minute");
    if load > f64::from(cpus) * LOAD_PER_CPU {
        return Finding::warning(what)
            .advice("wait a minute, or stop what runs; see `ps -eo pcpu,pid,comm --sort=-pcpu | head`");
    }
    Finding::ok(what)
}

/// A tenth of the time: each such wait is longer than many of the steps that are measured.
const PRESSURE_LIMIT: f64 = 0.10;

pub(super) fn pressure(view: &View) -> Finding {
    if !view.facts.pressure_available {
        return match view.facts.kernel.release {
            Some(_) => Finding::not_applicable("the kernel does not tell (boot it with `psi=1`)"),
            None => Finding::not_applicable("the kernel does not tell"),
        };
    }
    let (Some(cpu), Some(io)) = (view.context.cpu_pressure, view.context.io_pressure) else {
        return Finding::not_applicable("not watched for long enough");
    };
    let what = format!("tasks wait for CPU in {} and for I/O in {} of the time", percent(cpu), percent(io));
    if cpu > PRESSURE_LIMIT || io > PRESSURE_LIMIT {
        return Finding::warning(what)
            .advice("stop what runs; see `ps -eo pcpu,stat,pid,comm --sort=-pcpu | head`");
    }
    Finding::ok(what)
}

/// Two engines with their daemons, shims and clients fit into half a GiB.
const WANTED_BYTES: u64 = 512 << 20;
const NEEDED_BYTES: u64 = 128 << 20;

pub(super) fn memory(view: &View) -> Finding {
    let Some(bytes) = view.context.available_memory_bytes else {
        return Finding::not_applicable("the available memory is unknown");
    };
    let what = format!("{} MiB are available", bytes >> 20);
    let fix = "free memory; see `ps -eo rss,pid,comm --sort=-rss | head`";
    match bytes {
        bytes if bytes < NEEDED_BYTES => Finding::problem(format!("only {what}")).advice(fix),
        bytes if bytes < WANTED_BYTES => Finding::warning(format!("only {what}")).advice(fix),
        _ => Finding::ok(what),
    }
}

/// A few pages that nobody needs may stay out; a whole daemon may not.
const SWAPPED_LIMIT: u64 = 64 << 20;

pub(super) fn swap(view: &View) -> Finding {
    match view.settings.swapped_bytes {
        Some(bytes) if bytes > SWAPPED_LIMIT => Finding::warning(format!(
            "{} MiB are swapped out: a start may wait until pages of its engine are read back",
            bytes >> 20
        ))
        .command("sudo swapoff -a && sudo swapon -a"),
        Some(bytes) => Finding::ok(format!("{} MiB are swapped out", bytes >> 20)),
        None => Finding::not_applicable("the kernel does not tell"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::view::planted;
    use super::*;

    fn state(check: fn(&View) -> Finding, change: impl Fn(&mut View)) -> State {
        let mut view = planted();
        change(&mut view);
        check(&view).state
    }

    // The planted machine stands exactly at each limit, which is the near miss of each check.
    #[test]
    fn each_limit_is_the_last_good_value() {
        for check in [containers, steal, busy, load, pressure, memory, swap] {
            assert_eq!(state(check, |_| ()), Ok);
        }
    }

    #[test]
    fn beyond_its_limit_each_check_fires() {
        assert_eq!(state(containers, |v| v.context.containers = Some(1)), Warning);
        assert_eq!(state(steal, |v| v.context.steal_share = Some(0.011)), Warning);
        assert_eq!(state(busy, |v| v.context.busy_share = Some(0.11)), Warning);
        assert_eq!(state(load, |v| v.context.load_1min = Some(4.01)), Warning);
        assert_eq!(state(pressure, |v| v.context.cpu_pressure = Some(0.11)), Warning);
        assert_eq!(state(pressure, |v| v.context.io_pressure = Some(0.11)), Warning);
        assert_eq!(state(memory, |v| v.context.available_memory_bytes = Some((512 << 20) - 1)), Warning);
        assert_eq!(state(memory, |v| v.context.available_memory_bytes = Some((128 << 20) - 1)), Problem);
        assert_eq!(state(swap, |v| v.settings.swapped_bytes = Some((64 << 20) + 1)), Warning);
    }

    #[test]
    fn a_kernel_without_pressure_is_not_accused() {
        assert_eq!(state(pressure, |v| v.facts.pressure_available = false), NotApplicable);
    }
}
