//! Whether there are enough CPUs of steady speed, with a clock that is cheap to read.

use std::collections::BTreeSet;

use super::{Check, Finding, check};
use crate::host::cgroups::CpuShare;
use crate::report::text::listed;
use crate::units::Nanos;

const CPUS: &str = "/sys/devices/system/cpu";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0";
/// Clock sources that are read without a system call, in some tens of nanoseconds.
const CHEAP: &str = "tsc tsc-early kvm-clock hyperv_clocksource_tsc_page arch_sys_counter riscv_clocksource timebase \
    tod";
/// Above it, a duration of a few hundred nanoseconds is mostly the clock's.
const STEP_LIMIT: Nanos = Nanos(1000);
const COST_LIMIT: Nanos = Nanos(200);
/// Two thirds. A lower rate is not explained by a moment of idling.
const RATE_SHARE: f64 = 0.66;

pub(super) const CHECKS: &[Check] = &[
    check("cpus", "with one CPU, the client and the engine compete for it", |view| {
        Some(match view.facts.cpu.usable.or(view.facts.cpu.threads)? {
            1 => Finding::warning("one CPU: client, engine and container compete for it")
                .advice("measure on a machine with at least two CPUs"),
            count => Finding::ok(format!("{count} CPUs")),
        })
    }),
    check(
        "cpu-limit",
        "a limit on dunnage also applies to `bare`, `floor` and runtimes, but not to daemons",
        |view| {
            let (usable, threads) = (view.facts.cpu.usable?, view.facts.cpu.threads?);
            let less = format!(
                "dunnage may use {usable} of {threads} CPUs, but containers of daemons are not limited"
            );
            Finding::warning(less)
                .advice("run dunnage without `taskset`, outside of a cgroup with a CPU limit")
                .unless(usable >= threads, format!("dunnage may use all {threads} CPUs"))
        },
    ),
    check("cpu-share", "on a busy machine, a container has its own share of the CPUs", |view| {
        let shared =
            |whose: &str| Finding::note(format!("`bare` has {whose}, a container has its own share"));
        Some(match CpuShare::gather(&view.tree)? {
            CpuShare::Own => Finding::ok("`bare` also has its own share: that of its session"),
            CpuShare::Cgroup => shared("a part of the share of dunnage's cgroup")
                .advice("keep the machine idle, or start dunnage in its own cgroup with `systemd-run --scope dunnage …`"),
            CpuShare::Threads => shared("one share per thread").command("sysctl kernel.sched_autogroup_enabled=1"),
        })
    }),
    check("smt", "threads of one core slow each other down", |view| {
        let cpu = &view.facts.cpu;
        Some(match (view.tree.switch(format!("{CPUS}/smt/active"))?, cpu.cores, cpu.threads) {
            (true, Some(1), Some(threads)) => Finding::warning(format!(
                "all {threads} CPUs are threads of one core: client and engine share it"
            ))
            .advice("measure on a machine with at least two cores"),
            (true, Some(cores), Some(threads)) => {
                Finding::ok(format!("on: {threads} threads on {cores} cores"))
            }
            (true, ..) => Finding::ok("on"),
            (false, ..) => Finding::ok("off"),
        })
    }),
    check("governor", "idle and primed starts differ if the clock rate follows the load", |view| {
        let policies = view.tree.names(format!("{CPUS}/cpufreq")).into_iter();
        let policies = policies.filter(|name| name.starts_with("policy"));
        let governor = |name: String| view.tree.line(format!("{CPUS}/cpufreq/{name}/scaling_governor"));
        let governors = listed(policies.filter_map(governor).collect::<BTreeSet<_>>(), ", ");
        Some(match governors.as_str() {
            "" => Finding::not_applicable("the kernel does not control the clock rate here"),
            "performance" => Finding::ok("performance"),
            _ => Finding::warning(format!("{governors}: the clock rate follows the load"))
                .command(format!("echo performance | sudo tee {CPUS}/cpu*/cpufreq/scaling_governor")),
        })
    }),
    check("turbo", "turbo rates depend on the temperature and the load of other cores", |view| {
        // Each with the value that means off.
        let switches = [("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")];
        let mut switches = switches.into_iter().map(|(file, off)| (format!("{CPUS}/{file}"), off));
        let found = switches.find_map(|(file, off)| Some((view.tree.line(&file)?, file, off)));
        Some(match found {
            Some((value, _, off)) if value == off => Finding::ok("off"),
            Some((_, file, off)) => {
                Finding::warning("on: the clock rate depends on the temperature and on other cores")
                    .command(format!("echo {off} | sudo tee {file}"))
            }
            None => Finding::not_applicable("the kernel does not control it here"),
        })
    }),
    // As set by the kernel; a hypervisor may change it without showing that.
    check("clock-rate", "far below the highest clock rate, everything is slower than it could be", |view| {
        let rate = view.context.frequency?;
        let now = format!("{:.2} GHz", rate / 1e9);
        let kilohertz: Option<f64> = view.tree.number(format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"));
        let Some(most) = kilohertz.map(|rate| rate * 1e3) else { return Some(Finding::ok(now)) };
        let what = format!("{now} of at most {:.2} GHz", most / 1e9);
        Finding::note(format!("currently {what}"))
            .advice("use the governor `performance` to keep the highest rate; see `governor`")
            .unless(rate >= most * RATE_SHARE, what)
    }),
    check("clock-source", "a slow clock source needs a system call for every stamp", |view| {
        let source = view.tree.line(format!("{CLOCKS}/current_clocksource"))?;
        if CHEAP.split_whitespace().any(|cheap| cheap == source) {
            return Some(Finding::ok(source));
        }
        let others = view.tree.line(format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
        let better = CHEAP.split_whitespace().find(|cheap| others.split(' ').any(|other| other == *cheap));
        let dear =
            Finding::warning(format!("{source}: every stamp takes a system call of a microsecond or more"));
        Some(match better {
            Some(better) => dear.command(format!("echo {better} | sudo tee {CLOCKS}/current_clocksource")),
            None => dear.advice("the kernel offers no better one here; see `dmesg | grep -i clocksource`"),
        })
    }),
    check(
        "timer-floor",
        "differences below one step of the clock are invisible, and each stamp costs a reading",
        |view| {
            let floor = view.measured.timer?;
            let what = format!("steps of {}, {} per reading", floor.step, floor.cost);
            Finding::warning(format!("{what}: too coarse for the shortest primitives"))
                .advice("see `clock-source`; if the machine is busy, check again when it is quiet")
                .unless(floor.step <= STEP_LIMIT && floor.cost <= COST_LIMIT, what)
        },
    ),
    // Nothing to fix, but results of a guest apply to guests.
    check("virtualisation", "entering the kernel, page tables and interrupts cost more in a guest", |view| {
        let found = &view.facts.virtualisation;
        let hypervisor = found.hypervisor.as_deref().unwrap_or("an unknown hypervisor");
        Finding::note(format!("a guest of {hypervisor}: results apply to guests"))
            .unless(!found.guest?, "no hypervisor detected")
    }),
];

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::View;
    use super::super::found;
    use super::*;
    use crate::sys::clock::TimerFloor;

    fn state(check: &str, change: impl Fn(&mut View)) -> State {
        found(check, change).state
    }

    #[test]
    fn one_cpu_or_one_core_is_too_few() {
        assert_eq!(state("cpus", |v| v.facts.cpu.usable = Some(1)), Warning);
        assert_eq!(state("cpus", |v| v.facts.cpu.usable = Some(2)), Ok);
        assert_eq!(state("cpu-limit", |v| v.facts.cpu.usable = Some(7)), Warning);
        assert_eq!(state("cpu-limit", |v| v.facts.cpu.usable = Some(8)), Ok);
        assert_eq!(state("smt", |v| v.facts.cpu.cores = Some(1)), Warning);
        assert_eq!(state("smt", |v| v.facts.cpu.cores = Some(2)), Ok);
        let off = |view: &mut View| {
            view.tree.plant("/sys/devices/system/cpu/smt/active", "0");
            view.facts.cpu.cores = Some(1);
        };
        assert_eq!(state("smt", off), Ok);
    }

    #[test]
    fn a_share_of_the_cpus_that_is_not_alike_is_noted() {
        const AUTOGROUPS: &str = "/proc/sys/kernel/sched_autogroup_enabled";
        assert_eq!(state("cpu-share", |_| ()), Ok);
        assert_eq!(state("cpu-share", |v| v.tree.plant(AUTOGROUPS, "0")), Note);
        assert_eq!(state("cpu-share", |v| v.tree.clear(AUTOGROUPS)), NotApplicable);
        let inside = found("cpu-share", |view| {
            view.tree
                .plant("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
            view.tree.plant("/proc/self/cgroup", "3:cpu:/session\n");
        });
        assert!(inside.state == Note && inside.fix.unwrap().contains("its own cgroup"));
    }

    #[test]
    fn a_clock_rate_that_moves_is_told() {
        let governed = |names: &[&str]| {
            state("governor", |view| {
                view.tree.clear("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor");
                for (id, name) in names.iter().enumerate() {
                    let policy = format!("/sys/devices/system/cpu/cpufreq/policy{id}/scaling_governor");
                    view.tree.plant(&policy, name);
                }
            })
        };
        assert_eq!(governed(&["performance", "schedutil"]), Warning);
        assert_eq!(governed(&["performance"]), Ok);
        assert_eq!(governed(&[]), NotApplicable);
        let intel = "/sys/devices/system/cpu/intel_pstate/no_turbo";
        let on = found("turbo", |v| v.tree.plant(intel, "0"));
        assert_eq!(
            (on.state, on.fix.as_deref()),
            (Warning, Some(format!("echo 1 | sudo tee {intel}").as_str()))
        );
        assert_eq!(state("turbo", |v| v.tree.plant(intel, "1")), Ok);
        let boost = "/sys/devices/system/cpu/cpufreq/boost";
        assert_eq!(state("turbo", |v| v.tree.plant(boost, "1")), Warning);
        assert_eq!(state("turbo", |v| v.tree.clear(boost)), NotApplicable);
        assert_eq!(state("turbo", |_| ()), Ok);
    }

    #[test]
    fn a_dear_clock_is_replaced_by_the_best_there_is() {
        const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let slow = found("clock-source", |v| v.tree.plant(CURRENT, "hpet"));
        assert_eq!(slow.state, Warning);
        assert!(slow.fix.unwrap().starts_with("echo tsc | sudo tee"));
        let stuck = found("clock-source", |v| {
            v.tree.plant(CURRENT, "acpi_pm");
            v.tree.plant("/sys/devices/system/clocksource/clocksource0/available_clocksource", "acpi_pm");
        });
        assert!(stuck.fix.unwrap().contains("no better one"));
        for fine in ["tsc", "kvm-clock", "arch_sys_counter"] {
            assert_eq!(state("clock-source", |v| v.tree.plant(CURRENT, fine)), Ok);
        }
    }

    #[test]
    fn a_timer_at_its_limits_is_good_and_beyond_them_not() {
        let floor = |step, cost| Some(TimerFloor { step: Nanos(step), cost: Nanos(cost) });
        assert_eq!(state("timer-floor", |v| v.measured.timer = floor(1000, 200)), Ok);
        assert_eq!(state("timer-floor", |v| v.measured.timer = floor(1001, 200)), Warning);
        assert_eq!(state("timer-floor", |v| v.measured.timer = floor(1000, 201)), Warning);
        assert_eq!(state("timer-floor", |v| v.measured.timer = None), NotApplicable);
    }

    #[test]
    fn a_clock_rate_far_below_the_highest_is_noted() {
        assert_eq!(state("clock-rate", |v| v.context.frequency = Some(1.9e9)), Note);
        assert_eq!(state("clock-rate", |v| v.context.frequency = Some(2.0e9)), Ok);
        assert_eq!(
            state("clock-rate", |v| v.tree.clear("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")),
            Ok
        );
        assert_eq!(state("clock-rate", |v| v.context.frequency = None), NotApplicable);
    }

    #[test]
    fn a_guest_is_named_but_not_accused() {
        let guest = found("virtualisation", |v| {
            (v.facts.virtualisation.guest, v.facts.virtualisation.hypervisor) =
                (Some(true), Some("kvm".into()));
        });
        assert_eq!((guest.state, guest.what.as_str()), (Note, "a guest of kvm: results apply to guests"));
        assert_eq!(state("virtualisation", |v| v.facts.virtualisation.guest = None), NotApplicable);
    }
}
