//! Are the control groups such that every runtime accepts them, and such as others have them?

use super::{Finding, View};
use crate::host::cgroups::CgroupMode;
use crate::units::Nanos;

/// Runtimes want either version whole; crun refuses a hybrid host whose v2 still has controllers.
pub(super) fn mode(view: &View) -> Finding {
    let cgroups = &view.facts.cgroups;
    let left = cgroups.left_on_v2();
    match cgroups.mode {
        CgroupMode::Absent => {
            Finding::problem("no control groups are mounted: no runtime can limit a container")
                .command("mount -t cgroup2 none /sys/fs/cgroup")
        }
        CgroupMode::Hybrid if !left.is_empty() => Finding::warning(format!(
            "hybrid, and v2 still has {}: crun refuses with \"drop all controllers from cgroupv2\"",
            left.join(", ")
        ))
        .command(mount_as_v1(left)),
        CgroupMode::Hybrid => Finding::ok("hybrid, all controllers on v1"),
        CgroupMode::V1 => Finding::ok("v1"),
        CgroupMode::V2 => Finding::ok("v2"),
    }
}

fn mount_as_v1(controllers: &[String]) -> String {
    let each = controllers.iter().map(|name| {
        format!("mkdir -p /sys/fs/cgroup/{name} && mount -t cgroup -o {name} {name} /sys/fs/cgroup/{name}")
    });
    each.collect::<Vec<_>>().join(" && ")
}

/// Not to be mended: it is how the machine is. But what is measured differs by it.
pub(super) fn version(view: &View) -> Finding {
    match view.facts.cgroups.mode {
        CgroupMode::V1 | CgroupMode::Hybrid => Finding::note(
            "controllers on version 1: no start inside a group (CLONE_INTO_CGROUP), so each container is moved; \
             throttled time in ns",
        ),
        CgroupMode::V2 => Finding::ok("version 2: containers can start inside their group"),
        CgroupMode::Absent => Finding::not_applicable("no control groups are mounted"),
    }
}

/// Ten times, and a tenth of the quickest start of a runtime.
const QUIET_FACTOR: i64 = 10;
const QUIET_LIMIT: Nanos = Nanos(500_000);

/// Measured just now with a move of dunnage to where it is, once after quiet and once right after.
pub(super) fn quiet(view: &View) -> Finding {
    let Some(moves) = view.measured.moves else {
        return Finding::not_applicable("not measured: dunnage may not write to its own control group");
    };
    let what =
        format!("a move takes {} after a quiet moment and {} right after another", moves.quiet, moves.soon);
    if moves.quiet > QUIET_LIMIT && moves.quiet.0 > moves.soon.0 * QUIET_FACTOR {
        return Finding::note(format!("{what}: compare idle starts with idle ones, primed with primed"))
            .advice("nothing to mend: keep both values of `prestate`; `favordynmods` would take it away, and change the machine");
    }
    Finding::ok(what)
}

/// Limits need these; some kernels are booted without `memory`.
pub(super) fn controllers(view: &View) -> Finding {
    let cgroups = &view.facts.cgroups;
    if cgroups.mode == CgroupMode::Absent {
        return Finding::not_applicable("no control groups are mounted");
    }
    let wanted = ["cpu", "cpuset", "memory", "pids"];
    let missing: Vec<_> = wanted.into_iter().filter(|name| !cgroups.has(name)).collect();
    if missing.is_empty() {
        return Finding::ok(format!("{} are there", wanted.join(", ")));
    }
    let what = format!("{} cannot be used: limits on it fail or are ignored", missing.join(", "));
    let off: Vec<_> = missing.iter().filter(|name| cgroups.disabled.iter().any(|off| off == *name)).collect();
    let fix = match off.is_empty() {
        true => "mount the missing controllers, or delegate them to this control group".to_owned(),
        false => {
            let enable: Vec<_> = off.iter().map(|name| format!("cgroup_enable={name}")).collect();
            format!("boot the kernel with `{}` and without `cgroup_disable`", enable.join(" "))
        }
    };
    Finding::warning(what).advice(fix)
}

/// `favordynmods` makes moving a process into a group, a large part of a start, many times quicker.
pub(super) fn moves(view: &View) -> Finding {
    let cgroups = &view.facts.cgroups;
    let v1 = cgroups.v1.iter().map(|one| (one.favours_moves, &one.mounted_on));
    let v2 = cgroups.v2.iter().map(|one| (one.favours_moves, &one.mounted_on));
    let favoured = v1.chain(v2).find(|(favours, _)| *favours);
    match favoured {
        Some((_, point)) => Finding::warning(format!(
            "`{}` is mounted `favordynmods`: starts are quicker than on a default machine",
            point.display()
        ))
        .command(format!("mount -o remount,nofavordynmods {}", point.display())),
        None if cgroups.mode == CgroupMode::Absent => {
            Finding::not_applicable("no control groups are mounted")
        }
        None => Finding::ok("the kernel's default (no `favordynmods`)"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Moves;
    use super::super::State::*;
    use super::super::view::planted;
    use super::*;
    use crate::host::cgroups::Hierarchy;

    /// All controllers but these on v1, these on v2.
    fn hybrid(left: &[&str]) -> View {
        let mut view = planted();
        let cgroups = &mut view.facts.cgroups;
        let all = cgroups.v2.as_mut().unwrap().controllers.take().unwrap();
        cgroups.mode = CgroupMode::Hybrid;
        cgroups.v1 = vec![Hierarchy {
            mounted_on: "/sys/fs/cgroup/all".into(),
            controllers: all.into_iter().filter(|name| !left.contains(&name.as_str())).collect(),
            favours_moves: false,
        }];
        let v2 = cgroups.v2.as_mut().unwrap();
        v2.controllers = Some(left.iter().map(|name| (*name).to_owned()).collect());
        view
    }

    #[test]
    fn a_controller_left_on_v2_of_a_hybrid_host_is_mounted_as_v1() {
        let finding = mode(&hybrid(&["hugetlb", "rdma"]));
        assert_eq!(finding.state, Warning);
        assert_eq!(
            &*finding.fix.unwrap(),
            "mkdir -p /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb hugetlb /sys/fs/cgroup/hugetlb && \
             mkdir -p /sys/fs/cgroup/rdma && mount -t cgroup -o rdma rdma /sys/fs/cgroup/rdma"
        );
        assert_eq!(mode(&hybrid(&[])).state, Ok);
        assert_eq!(mode(&planted()).state, Ok, "on v2 controllers belong there");
    }

    #[test]
    fn no_control_groups_are_a_problem() {
        let mut view = planted();
        view.facts.cgroups.mode = CgroupMode::Absent;
        assert_eq!(mode(&view).state, Problem);
        assert_eq!(controllers(&view).state, NotApplicable);
        view.facts.cgroups.mode = CgroupMode::V1;
        assert_eq!(mode(&view).state, Ok);
    }

    #[test]
    fn a_missing_controller_is_named_with_the_word_that_brings_it_back() {
        let mut view = hybrid(&[]);
        view.facts.cgroups.v1[0].controllers.retain(|name| name != "memory");
        assert!(controllers(&view).fix.unwrap().starts_with("mount the missing"));
        view.facts.cgroups.disabled = vec!["memory".to_owned()];
        let finding = controllers(&view);
        assert_eq!(finding.state, Warning);
        assert!(finding.fix.unwrap().contains("`cgroup_enable=memory`"));
        assert_eq!(controllers(&hybrid(&["memory"])).state, Ok, "on either version");
    }

    #[test]
    fn version_1_is_noted_wherever_controllers_are_on_it() {
        assert_eq!(version(&hybrid(&[])).state, Note);
        assert_eq!(version(&planted()).state, Ok);
        let mut view = planted();
        view.facts.cgroups.mode = CgroupMode::V1;
        assert_eq!(version(&view).state, Note);
    }

    #[test]
    fn moves_that_wait_on_a_quiet_kernel_are_noted() {
        let found = |quiet, soon| {
            let mut view = planted();
            view.measured.moves = Some(Moves { quiet: Nanos(quiet), soon: Nanos(soon) });
            super::quiet(&view).state
        };
        assert_eq!(found(4_500_000, 7_000), Note);
        assert_eq!(found(500_000, 7_000), Ok, "short in any case");
        assert_eq!(found(4_500_000, 450_000), Ok, "slow in any case");
        assert_eq!(quiet(&View { measured: Default::default(), ..planted() }).state, NotApplicable);
    }

    #[test]
    fn quicker_moves_are_told() {
        let mut view = planted();
        assert_eq!(moves(&view).state, Ok);
        view.facts.cgroups.v2.as_mut().unwrap().favours_moves = true;
        assert_eq!(moves(&view).state, Warning);
        assert_eq!(&*moves(&view).fix.unwrap(), "mount -o remount,nofavordynmods /sys/fs/cgroup");
    }
}
