//! Whether every runtime accepts the cgroups as they are set up, and whether they are set up as elsewhere.

use super::{Check, Finding, View, check};
use crate::host::cgroups::CgroupMode;
use crate::units::Nanos;

/// Ten times as long, and a tenth of the fastest start of a runtime.
const QUIET_FACTOR: i64 = 10;
const QUIET_LIMIT: Nanos = Nanos(500_000);

pub(super) const CHECKS: &[Check] = &[
    check("cgroup-mode", "runtimes expect all controllers on version 1 or all on version 2", |view| {
        let left = view.facts.cgroups.left_on_v2();
        Some(match view.facts.cgroups.mode {
            CgroupMode::Absent => {
                Finding::problem("no cgroups are mounted, so no runtime can limit a container")
                    .command("mount -t cgroup2 none /sys/fs/cgroup")
            }
            CgroupMode::Hybrid if !left.is_empty() => Finding::warning(format!(
                "hybrid, but v2 still has {}: crun fails with \"drop all controllers from cgroupv2\"",
                left.join(", ")
            ))
            .command(mount_as_v1(left)),
            CgroupMode::Hybrid => Finding::ok("hybrid, all controllers on v1"),
            CgroupMode::V1 | CgroupMode::V2 => Finding::ok(view.facts.cgroups.mode.name()),
        })
    }),
    // Nothing to fix, but the measurements depend on it.
    check(
        "cgroup-version",
        "the cost of limits and the available counters differ between the versions",
        |view| {
            Some(match mounted(view)? {
                CgroupMode::V2 => Finding::ok("version 2: containers can start inside their cgroup"),
                _ => Finding::note(
                    "controllers on version 1: containers cannot start inside their cgroup (CLONE_INTO_CGROUP), so each is \
                     moved; throttled time is in ns",
                ),
            })
        },
    ),
    check("cgroup-controllers", "limits on CPU, memory and processes need them", |view| {
        mounted(view)?;
        let cgroups = &view.facts.cgroups;
        let wanted = ["cpu", "cpuset", "memory", "pids"];
        let missing: Vec<_> = wanted.into_iter().filter(|name| !cgroups.has(name)).collect();
        if missing.is_empty() {
            return Some(Finding::ok(format!("{} available", wanted.join(", "))));
        }
        let what = format!("{} missing: limits on it fail or are ignored", missing.join(", "));
        // Some kernels disable `memory` by default.
        let off = missing.iter().filter(|name| cgroups.disabled.iter().any(|off| off == *name));
        let enable: Vec<_> = off.map(|name| format!("cgroup_enable={name}")).collect();
        Some(Finding::warning(what).advice(match enable.is_empty() {
            true => "mount the missing controllers, or delegate them to this cgroup".to_owned(),
            false => format!("boot the kernel with `{}` and without `cgroup_disable`", enable.join(" ")),
        }))
    }),
    check(
        "cgroup-moves",
        "moving a process into a cgroup is a large part of a start; `favordynmods` makes it faster",
        |view| {
            mounted(view)?;
            let Some(favoured) = view.facts.cgroups.all().find(|one| one.favours_moves) else {
                return Some(Finding::ok("the kernel's default (no `favordynmods`)"));
            };
            let point = favoured.mounted_on.display();
            let what = format!("`{point}` is mounted with `favordynmods`: starts are faster than by default");
            Some(Finding::warning(what).command(format!("mount -o remount,nofavordynmods {point}")))
        },
    ),
    // Measured by moving dunnage to the cgroup where it already is, once after a quiet moment and once right after that.
    check(
        "cgroup-quiet",
        "on a quiet kernel a move into a cgroup waits for RCU, so it depends on what ran before",
        |view| {
            let Some(moves) = view.measured.moves else {
                let why = "not measured: dunnage may not write to its own cgroup";
                return Some(Finding::not_applicable(why));
            };
            let (quiet, soon) = (moves.quiet, moves.soon);
            let what =
                format!("a move takes {quiet} after a quiet moment and {soon} right after another move");
            let advice = "keep both values of `prestate`; `favordynmods` would remove the wait, but also change the \
             machine";
            Finding::note(format!("{what}: compare idle starts only with idle ones, and primed with primed"))
                .advice(advice)
                .unless(quiet <= QUIET_LIMIT || quiet.0 <= soon.0 * QUIET_FACTOR, what)
        },
    ),
];

/// The mounted versions, if any.
fn mounted(view: &View) -> Option<CgroupMode> {
    Some(view.facts.cgroups.mode).filter(|mode| *mode != CgroupMode::Absent)
}

fn mount_as_v1(controllers: &[String]) -> String {
    let each = controllers.iter().map(|name| {
        format!("mkdir -p /sys/fs/cgroup/{name} && mount -t cgroup -o {name} {name} /sys/fs/cgroup/{name}")
    });
    each.collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::super::Moves;
    use super::super::State::*;
    use super::super::{planted, run};
    use super::*;
    use crate::host::cgroups::Hierarchy;

    fn answer(check: &str, view: &View) -> Finding {
        run(view).find(|(_, one, _)| one.name == check).expect("a check").2
    }

    /// A machine with these controllers on v2, and the rest on v1.
    fn hybrid(left: &[&str]) -> View {
        let mut view = planted();
        let cgroups = &mut view.facts.cgroups;
        let all = std::mem::take(&mut cgroups.v2.as_mut().unwrap().controllers);
        cgroups.mode = CgroupMode::Hybrid;
        cgroups.v1 = vec![Hierarchy {
            mounted_on: "/sys/fs/cgroup/all".into(),
            controllers: all.into_iter().filter(|name| !left.contains(&name.as_str())).collect(),
            favours_moves: false,
        }];
        let v2 = cgroups.v2.as_mut().unwrap();
        v2.controllers = left.iter().map(|name| (*name).to_owned()).collect();
        view
    }

    #[test]
    fn a_controller_left_on_v2_of_a_hybrid_host_is_mounted_as_v1() {
        let finding = answer("cgroup-mode", &hybrid(&["hugetlb", "rdma"]));
        assert_eq!(finding.state, Warning);
        assert_eq!(
            &*finding.fix.unwrap(),
            "mkdir -p /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb hugetlb /sys/fs/cgroup/hugetlb && \
             mkdir -p /sys/fs/cgroup/rdma && mount -t cgroup -o rdma rdma /sys/fs/cgroup/rdma"
        );
        assert_eq!(answer("cgroup-mode", &hybrid(&[])).state, Ok);
        assert_eq!(answer("cgroup-mode", &planted()).state, Ok, "on v2 controllers belong there");
    }

    #[test]
    fn no_control_groups_are_a_problem() {
        let mut view = planted();
        view.facts.cgroups.mode = CgroupMode::Absent;
        assert_eq!(answer("cgroup-mode", &view).state, Problem);
        assert_eq!(answer("cgroup-controllers", &view).state, NotApplicable);
        view.facts.cgroups.mode = CgroupMode::V1;
        assert_eq!(answer("cgroup-mode", &view).state, Ok);
    }

    #[test]
    fn a_missing_controller_is_named_with_the_word_that_brings_it_back() {
        let mut view = hybrid(&[]);
        view.facts.cgroups.v1[0].controllers.retain(|name| name != "memory");
        assert!(answer("cgroup-controllers", &view).fix.unwrap().starts_with("mount the missing"));
        view.facts.cgroups.disabled = vec!["memory".to_owned()];
        let finding = answer("cgroup-controllers", &view);
        assert_eq!(finding.state, Warning);
        assert!(finding.fix.unwrap().contains("`cgroup_enable=memory`"));
        assert_eq!(answer("cgroup-controllers", &hybrid(&["memory"])).state, Ok, "on either version");
    }

    #[test]
    fn version_1_is_noted_wherever_controllers_are_on_it() {
        assert_eq!(answer("cgroup-version", &hybrid(&[])).state, Note);
        assert_eq!(answer("cgroup-version", &planted()).state, Ok);
        let mut view = planted();
        view.facts.cgroups.mode = CgroupMode::V1;
        assert_eq!(answer("cgroup-version", &view).state, Note);
    }

    #[test]
    fn moves_that_wait_on_a_quiet_kernel_are_noted() {
        let found = |quiet, soon| {
            super::super::found("cgroup-quiet", |v| {
                v.measured.moves = Some(Moves { quiet: Nanos(quiet), soon: Nanos(soon) })
            })
            .state
        };
        assert_eq!(found(4_500_000, 7_000), Note);
        assert_eq!(found(500_000, 7_000), Ok, "short in any case");
        assert_eq!(found(4_500_000, 450_000), Ok, "slow in any case");
        assert_eq!(super::super::found("cgroup-quiet", |v| v.measured.moves = None).state, NotApplicable);
    }

    #[test]
    fn quicker_moves_are_told() {
        let mut view = planted();
        assert_eq!(answer("cgroup-moves", &view).state, Ok);
        view.facts.cgroups.v2.as_mut().unwrap().favours_moves = true;
        assert_eq!(answer("cgroup-moves", &view).state, Warning);
        assert_eq!(
            &*answer("cgroup-moves", &view).fix.unwrap(),
            "mount -o remount,nofavordynmods /sys/fs/cgroup"
        );
    }
}
