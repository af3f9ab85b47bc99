//! Are there enough processors, of steady speed, with a clock that is cheap to read?

use super::{Finding, View};
use crate::units::Nanos;

/// With one CPU the client waits for the engine that it waits for.
pub(super) fn count(view: &View) -> Finding {
    match view.facts.cpu.usable.or(view.facts.cpu.threads) {
        Some(1) => Finding::warning("one CPU: client, engine and container take it from each other")
            .advice("measure on a machine with at least two CPUs"),
        Some(count) => Finding::ok(format!("{count} CPUs")),
        None => Finding::not_applicable("the number of CPUs is unknown"),
    }
}

/// A limit on us holds for `bare`, `floor` and runtimes, but not for what daemons start.
pub(super) fn limit(view: &View) -> Finding {
    match (view.facts.cpu.usable, view.facts.cpu.threads) {
        (Some(usable), Some(threads)) if usable < threads => Finding::warning(format!(
            "dunnage may use {usable} of {threads} CPUs; containers of daemons are not limited so"
        ))
        .advice("run it without `taskset`, outside of a control group with a CPU limit"),
        (Some(_), Some(threads)) => Finding::ok(format!("dunnage may use all {threads} CPUs")),
        _ => Finding::not_applicable("the number of CPUs is unknown"),
    }
}

/// Threads of one core slow each other down, which matters when there is no other core.
pub(super) fn smt(view: &View) -> Finding {
    match (view.settings.smt, view.facts.cpu.cores, view.facts.cpu.threads) {
        (Some(true), Some(1), Some(threads)) => Finding::warning(format!(
            "all {threads} CPUs are threads of one core: client and engine share it"
        ))
        .advice("measure on a machine with at least two cores"),
        (Some(true), Some(cores), Some(threads)) => {
            Finding::ok(format!("on: {threads} threads on {cores} cores"))
        }
        (Some(true), ..) => Finding::ok("on"),
        (Some(false), ..) => Finding::ok("off"),
        (None, ..) => Finding::not_applicable("the kernel does not tell"),
    }
}

/// Other governors change the clock rate with the load, so idle and primed starts differ by it.
pub(super) fn governor(view: &View) -> Finding {
    let governors = &view.settings.governors;
    if governors.is_empty() {
        return Finding::not_applicable("the kernel does not govern the clock rate here");
    }
    if governors.iter().all(|governor| governor == "performance") {
        return Finding::ok("performance");
    }
    Finding::warning(format!("{}: the clock rate follows the load", governors.join(", ")))
        .command("echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
}

/// Rates beyond the nominal one depend on temperature and on what other cores do.
pub(super) fn turbo(view: &View) -> Finding {
    match view.settings.turbo {
        Some(turbo) if turbo.on => {
            Finding::warning("on: the clock rate depends on temperature and on other cores")
                .command(turbo.off_by)
        }
        Some(_) => Finding::ok("off"),
        None => Finding::not_applicable("the kernel does not govern it here"),
    }
}

/// Clock sources that are read without a system call, in some tens of nanoseconds.
const CHEAP: &[&str] = &[
    "tsc",
    "tsc-early",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "riscv_clocksource",
    "timebase",
    "tod",
];

pub(super) fn clock_source(view: &View) -> Finding {
    let Some(source) = view.facts.clock_source.as_deref() else {
        return Finding::not_applicable("the clock source is unknown");
    };
    if CHEAP.contains(&source) {
        return Finding::ok(source);
    }
    let better = CHEAP.iter().find(|cheap| view.settings.clock_sources.iter().any(|other| other == *cheap));
    let dear =
        Finding::warning(format!("{source}: every stamp costs a system call of a microsecond or more"));
    match better {
        Some(better) => dear.command(format!(
            "echo {better} | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource"
        )),
        None => dear.advice("the kernel found no better one here; see `dmesg | grep -i clocksource`"),
    }
}

/// Beyond it a duration of a few hundred nanoseconds is mostly the clock's.
const STEP_LIMIT: Nanos = Nanos(1000);
const COST_LIMIT: Nanos = Nanos(200);

/// What the clock can tell, as measured just now.
pub(super) fn timer(view: &View) -> Finding {
    let Some(floor) = view.measured.timer else {
        return Finding::not_applicable("not measured");
    };
    let what = format!("steps of {}, {} a reading", floor.step, floor.cost);
    if floor.step > STEP_LIMIT || floor.cost > COST_LIMIT {
        return Finding::warning(format!("{what}: the shortest primitives drown in it"))
            .advice("see `clock-source`; on a busy machine, look again when it is quiet");
    }
    Finding::ok(what)
}

/// Two thirds: less is more than what idling for a moment explains.
const RATE_SHARE: f64 = 0.66;

/// As the kernel governs it; what a hypervisor gives is not told.
pub(super) fn clock_rate(view: &View) -> Finding {
    let Some(rate) = view.context.cpu_hertz else {
        return Finding::not_applicable("the kernel does not tell the clock rate here");
    };
    let now = format!("{:.2} GHz", rate / 1e9);
    match view.settings.max_hertz {
        Some(most) if rate < most * RATE_SHARE => {
            Finding::note(format!("{now} of at most {:.2} GHz at this moment", most / 1e9))
                .advice("with the governor `performance` the rate stays at its highest; see `governor`")
        }
        Some(most) => Finding::ok(format!("{now} of at most {:.2} GHz", most / 1e9)),
        None => Finding::ok(now),
    }
}

/// Nothing to mend; but figures of a guest hold for guests.
pub(super) fn virtualisation(view: &View) -> Finding {
    let found = &view.facts.virtualisation;
    match (found.guest, &found.hypervisor) {
        (Some(true), Some(hypervisor)) => {
            Finding::note(format!("a guest of {hypervisor}; figures hold for guests"))
        }
        (Some(true), None) => Finding::note("a guest of an unknown hypervisor; figures hold for guests"),
        (Some(false), _) => Finding::ok("no hypervisor makes itself known"),
        (None, _) => Finding::not_applicable("nothing tells"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::{Turbo, view::planted};
    use super::*;
    use crate::sys::clock::TimerFloor;

    fn finding(check: fn(&View) -> Finding, change: impl Fn(&mut View)) -> Finding {
        let mut view = planted();
        change(&mut view);
        check(&view)
    }

    fn state(check: fn(&View) -> Finding, change: impl Fn(&mut View)) -> State {
        finding(check, change).state
    }

    #[test]
    fn one_cpu_or_one_core_is_too_few() {
        assert_eq!(state(count, |v| v.facts.cpu.usable = Some(1)), Warning);
        assert_eq!(state(count, |v| v.facts.cpu.usable = Some(2)), Ok);
        assert_eq!(state(limit, |v| v.facts.cpu.usable = Some(7)), Warning);
        assert_eq!(state(limit, |v| v.facts.cpu.usable = Some(8)), Ok);
        assert_eq!(state(smt, |v| v.facts.cpu.cores = Some(1)), Warning);
        assert_eq!(state(smt, |v| v.facts.cpu.cores = Some(2)), Ok);
        let off = |view: &mut View| (view.settings.smt, view.facts.cpu.cores) = (Some(false), Some(1));
        assert_eq!(state(smt, off), Ok);
    }

    #[test]
    fn a_clock_rate_that_moves_is_told() {
        let governed = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            state(governor, |view| view.settings.governors.clone_from(&names))
        };
        assert_eq!(governed(&["performance", "schedutil"]), Warning);
        assert_eq!(governed(&["performance"]), Ok);
        assert_eq!(governed(&[]), NotApplicable);
        let on = finding(turbo, |v| v.settings.turbo = Some(Turbo { on: true, off_by: "echo 1" }));
        assert_eq!((on.state, on.fix.as_deref()), (Warning, Some("echo 1")));
        assert_eq!(state(turbo, |_| ()), Ok);
    }

    #[test]
    fn a_dear_clock_is_replaced_by_the_best_there_is() {
        let slow = finding(clock_source, |v| v.facts.clock_source = Some("hpet".to_owned()));
        assert_eq!(slow.state, Warning);
        assert!(slow.fix.unwrap().starts_with("echo tsc | sudo tee"));
        let stuck = finding(clock_source, |v| {
            v.facts.clock_source = Some("acpi_pm".to_owned());
            v.settings.clock_sources = vec!["acpi_pm".to_owned()];
        });
        assert!(stuck.fix.unwrap().contains("no better one"));
        for fine in ["tsc", "kvm-clock", "arch_sys_counter"] {
            assert_eq!(state(clock_source, |v| v.facts.clock_source = Some(fine.to_owned())), Ok);
        }
    }

    #[test]
    fn a_timer_at_its_limits_is_good_and_beyond_them_not() {
        let floor = |step, cost| Some(TimerFloor { step: Nanos(step), cost: Nanos(cost) });
        assert_eq!(state(timer, |v| v.measured.timer = floor(1000, 200)), Ok);
        assert_eq!(state(timer, |v| v.measured.timer = floor(1001, 200)), Warning);
        assert_eq!(state(timer, |v| v.measured.timer = floor(1000, 201)), Warning);
        assert_eq!(state(timer, |v| v.measured.timer = None), NotApplicable);
    }

    #[test]
    fn a_clock_rate_far_below_the_highest_is_noted() {
        assert_eq!(state(clock_rate, |v| v.context.cpu_hertz = Some(1.9e9)), Note);
        assert_eq!(state(clock_rate, |v| v.context.cpu_hertz = Some(2.0e9)), Ok);
        assert_eq!(state(clock_rate, |v| v.settings.max_hertz = None), Ok);
        assert_eq!(state(clock_rate, |v| v.context.cpu_hertz = None), NotApplicable);
    }

    #[test]
    fn a_guest_is_named_but_not_accused() {
        let guest = finding(virtualisation, |v| {
            (v.facts.virtualisation.guest, v.facts.virtualisation.hypervisor) =
                (Some(true), Some("kvm".into()));
        });
        assert_eq!((guest.state, guest.what.as_str()), (Note, "a guest of kvm; figures hold for guests"));
        assert_eq!(state(virtualisation, |v| v.facts.virtualisation.guest = None), NotApplicable);
    }
}
