//! Are there enough processors, of steady speed, with a clock that is cheap to read?

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
/// Beyond it a duration of a few hundred nanoseconds is mostly the clock's.
const STEP_LIMIT: Nanos = Nanos(1000);
const COST_LIMIT: Nanos = Nanos(200);
/// Two thirds: less is more than what idling for a moment explains.
const RATE_SHARE: f64 = 0.66;

pub(super) const CHECKS: &[Check] = &[
    check("cpus", "with one CPU the client waits for the engine that it waits for", |view| {
        Some(match view.facts.cpu.usable.or(view.facts.cpu.threads)? {
            1 => Finding::warning("one CPU: client, engine and container take it from each other")
                .advice("measure on a machine with at least two CPUs"),
            count => Finding::ok(format!("{count} CPUs")),
        })
    }),
    check("cpu-limit", "a limit on us holds for `bare`, `floor` and runtimes, not for daemons", |view| {
        let (usable, threads) = (view.facts.cpu.usable?, view.facts.cpu.threads?);
        let less =
            format!("dunnage may use {usable} of {threads} CPUs; containers of daemons are not limited so");
        Finding::warning(less)
            .advice("run it without `taskset`, outside of a control group with a CPU limit")
            .unless(usable >= threads, format!("dunnage may use all {threads} CPUs"))
    }),
    check(
        "cpu-share",
        "on a busy machine a container has one share of the CPUs, whatever runs beside it",
        |view| {
            let shared =
                |whose: &str| Finding::note(format!("`bare` has {whose}, a container one of its own"));
            Some(match CpuShare::gather(&view.tree)? {
            CpuShare::Own => Finding::ok("`bare` has one of its own, too: its session's"),
            CpuShare::Cgroup => shared("a part of the share of the cgroup that dunnage is in")
                .advice("keep the machine idle, or start dunnage in a cgroup of its own: `systemd-run --scope dunnage …`"),
            CpuShare::Threads => shared("a share for each thread").command("sysctl kernel.sched_autogroup_enabled=1"),
        })
        },
    ),
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
    check("governor", "a clock rate that follows the load makes idle and primed starts differ", |view| {
        let policies = view.tree.names(format!("{CPUS}/cpufreq")).into_iter();
        let policies = policies.filter(|name| name.starts_with("policy"));
        let governor = |name: String| view.tree.line(format!("{CPUS}/cpufreq/{name}/scaling_governor"));
        let governors = listed(policies.filter_map(governor).collect::<BTreeSet<_>>(), ", ");
        Some(match governors.as_str() {
            "" => Finding::not_applicable("the kernel does not govern the clock rate here"),
            "performance" => Finding::ok("performance"),
            _ => Finding::warning(format!("{governors}: the clock rate follows the load"))
                .command(format!("echo performance | sudo tee {CPUS}/cpu*/cpufreq/scaling_governor")),
        })
    }),
    check("turbo", "rates beyond the nominal one depend on temperature and on what other cores do", |view| {
        // Each with the value by which it is off.
        let switches = [("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")];
        let mut switches = switches.into_iter().map(|(file, off)| (format!("{CPUS}/{file}"), off));
        let found = switches.find_map(|(file, off)| Some((view.tree.line(&file)?, file, off)));
        Some(match found {
            Some((value, _, off)) if value == off => Finding::ok("off"),
            Some((_, file, off)) => {
                Finding::warning("on: the clock rate depends on temperature and on other cores")
                    .command(format!("echo {off} | sudo tee {file}"))
            }
            None => Finding::not_applicable("the kernel does not govern it here"),
        })
    }),
    // As the kernel governs it; what a hypervisor gives is not told.
    check("clock-rate", "far below the highest rate everything is slower than the processor is", |view| {
        let rate = view.context.frequency?;
        let now = format!("{:.2} GHz", rate / 1e9);
        let kilohertz: Option<f64> = view.tree.number(format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"));
        let Some(most) = kilohertz.map(|rate| rate * 1e3) else { return Some(Finding::ok(now)) };
        let what = format!("{now} of at most {:.2} GHz", most / 1e9);
        Finding::note(format!("{what} at this moment"))
            .advice("with the governor `performance` the rate stays at its highest; see `governor`")
            .unless(rate >= most * RATE_SHARE, what)
    }),
    check("clock-source", "slow clocks cost a system call for every stamp", |view| {
        let source = view.tree.line(format!("{CLOCKS}/current_clocksource"))?;
        if CHEAP.split_whitespace().any(|cheap| cheap == source) {
            return Some(Finding::ok(source));
        }
        let others = view.tree.line(format!("{CLOCKS}/available_clocksource")).unwrap_or_default();
        let better = CHEAP.split_whitespace().find(|cheap| others.split(' ').any(|other| other == *cheap));
        let dear =
            Finding::warning(format!("{source}: every stamp costs a system call of a microsecond or more"));
        Some(match better {
            Some(better) => dear.command(format!("echo {better} | sudo tee {CLOCKS}/current_clocksource")),
            None => dear.advice("the kernel found no better one here; see `dmesg | grep -i clocksource`"),
        })
    }),
    check("timer-floor", "no difference below a step can be seen, and each stamp costs a reading", |view| {
        let floor = view.measured.timer?;
        let what = format!("steps of {}, {} a reading", floor.step, floor.cost);
        Finding::warning(format!("{what}: the shortest primitives drown in it"))
            .advice("see `clock-source`; on a busy machine, look again when it is quiet")
            .unless(floor.step <= STEP_LIMIT && floor.cost <= COST_LIMIT, what)
    }),
    // Nothing to fix, but figures of a guest hold for guests.
    check("virtualisation", "entering the kernel, page tables and interrupts cost more in a guest", |view| {
        let found = &view.facts.virtualisation;
        let hypervisor = found.hypervisor.as_deref().unwrap_or("an unknown hypervisor");
        Finding::note(format!("a guest of {hypervisor}; figures hold for guests"))
            .unless(!found.guest?, "no hypervisor makes itself known")
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
        assert!(inside.state == Note && inside.fix.unwrap().contains("a cgroup of its own"));
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
        assert_eq!((guest.state, guest.what.as_str()), (Note, "a guest of kvm; figures hold for guests"));
        assert_eq!(state("virtualisation", |v| v.facts.virtualisation.guest = None), NotApplicable);
    }
}
