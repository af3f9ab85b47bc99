//! The cgroups of this machine: version 1, version 2, or both.
//!
//! Read from the mounts and the root's list of controllers. Deliberately absent: creating and entering cgroups, which `sys`
//! does.

use std::path::PathBuf;

use super::mounts;
use super::tree::Tree;
use crate::sys::cgroup::{self, Version};

/// The mounted versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMode {
    /// No hierarchy with controllers is mounted.
    Absent,
    /// Only hierarchies of version 1.
    V1,
    /// Only the unified hierarchy of version 2.
    V2,
    /// Controllers on version 1, and the unified hierarchy next to them.
    Hybrid,
}

impl CgroupMode {
    /// The name in reports and in `env.json`.
    pub const fn name(self) -> &'static str {
        match self {
            CgroupMode::Absent => "none",
            CgroupMode::V1 => "v1",
            CgroupMode::V2 => "v2",
            CgroupMode::Hybrid => "hybrid",
        }
    }
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its mount point.
    pub mounted_on: PathBuf,
    /// Its controllers. A version 1 hierarchy with only a name (`name=systemd`) has none; version 2 has those that no version 1
    /// hierarchy uses.
    pub controllers: Vec<String>,
    /// Whether it is mounted with `favordynmods`, which makes moving processes faster and forking slower.
    pub favours_moves: bool,
}

/// The cgroups of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    /// The mounted versions.
    pub mode: CgroupMode,
    /// Every hierarchy of version 1.
    pub v1: Vec<Hierarchy>,
    /// The hierarchy of version 2, if it is mounted.
    pub v2: Option<Hierarchy>,
    /// Controllers that the kernel has but that are disabled at boot.
    pub disabled: Vec<String>,
}

impl Cgroups {
    pub(super) fn gather(tree: &Tree) -> Cgroups {
        let text = |path: &str| tree.text(path).unwrap_or_default();
        let mountinfo = text("/proc/self/mountinfo");
        let mounts = mounts::parse(&mountinfo);
        let (mut v1, mut v2) = (Vec::new(), None);
        for found in cgroup::parse(&mountinfo, &text("/proc/self/cgroup")) {
            let mut its = mounts.iter().filter(|mount| mount.point == found.mount);
            let favours_moves = its.any(|mount| mount.has("favordynmods"));
            let of = |controllers: &str, separator: char| Hierarchy {
                controllers: controllers
                    .split(separator)
                    .filter(|name| !name.is_empty() && !name.starts_with("name="))
                    .map(str::to_owned)
                    .collect(),
                favours_moves,
                mounted_on: found.mount.clone(),
            };
            match &found.version {
                Version::V1(controllers) => v1.push(of(controllers, ',')),
                Version::V2 => {
                    let controllers = tree.line(found.mount.join("cgroup.controllers"));
                    v2 = Some(of(&controllers.unwrap_or_default(), ' '));
                }
            }
        }
        let mode = match (v1.iter().any(|one| !one.controllers.is_empty()), v2.is_some()) {
            (false, false) => CgroupMode::Absent,
            (true, false) => CgroupMode::V1,
            (false, true) => CgroupMode::V2,
            (true, true) => CgroupMode::Hybrid,
        };
        Cgroups { mode, v1, v2, disabled: disabled_controllers(&text("/proc/cgroups")) }
    }

    /// Every hierarchy.
    pub fn all(&self) -> impl Iterator<Item = &Hierarchy> {
        self.v1.iter().chain(&self.v2)
    }

    /// Controllers on the v2 hierarchy of a hybrid host; empty on other hosts.
    pub fn left_on_v2(&self) -> &[String] {
        match (self.mode, &self.v2) {
            (CgroupMode::Hybrid, Some(unified)) => &unified.controllers,
            _ => &[],
        }
    }

    /// Whether a controller can be used on some hierarchy. Version 2 has no `devices`, `freezer` and `cpuacct`: their functions
    /// are part of its core.
    pub fn has(&self, controller: &str) -> bool {
        self.all().flat_map(|hierarchy| &hierarchy.controllers).any(|own| own == controller)
    }
}

/// How a process on the host, in its own session, shares the CPUs when they are all busy. A container in its cgroup has one
/// share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuShare {
    /// It also has its own share, because its session is an autogroup.
    Own,
    /// It shares that of dunnage's cgroup.
    Cgroup,
    /// Each of its threads has one, because autogroups are disabled.
    Threads,
}

impl CpuShare {
    /// Reads it from the machine; none for a kernel without autogroups.
    pub fn gather(tree: &Tree) -> Option<CpuShare> {
        let text = |path: &str| tree.text(path).unwrap_or_default();
        let hierarchies = cgroup::parse(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"));
        let counts = cgroup::with_controller(&hierarchies, "cpu").is_some_and(|one| {
            let own = one.own.iter().flat_map(|own| own.ancestors());
            let mut own = own.take_while(|place| *place != one.mount);
            own.any(|place| one.version != Version::V2 || tree.has(place.join("cpu.weight")))
        });
        match (counts, tree.switch("/proc/sys/kernel/sched_autogroup_enabled")?) {
            (true, _) => Some(CpuShare::Cgroup),
            (false, true) => Some(CpuShare::Own),
            (false, false) => Some(CpuShare::Threads),
        }
    }

    /// The name in `env.json`.
    pub const fn name(self) -> &'static str {
        match self {
            CpuShare::Own => "own",
            CpuShare::Cgroup => "cgroup",
            CpuShare::Threads => "threads",
        }
    }
}

/// The rows of `/proc/cgroups` whose last column is 0.
fn disabled_controllers(table: &str) -> Vec<String> {
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let off = rows.filter_map(|row| {
        let mut columns = row.split_whitespace();
        let name = columns.next()?;
        (columns.nth(2)? == "0").then(|| name.to_owned())
    });
    off.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mountinfo: &str, v2: &[&str]) -> Cgroups {
        let own = "4:memory:/\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n";
        let tree = Tree::planted(&[("/proc/self/mountinfo", mountinfo), ("/proc/self/cgroup", own)]);
        for mount in mounts::parse(mountinfo).iter().filter(|mount| mount.filesystem == "cgroup2") {
            tree.plant(&format!("{}/cgroup.controllers", mount.point.display()), &v2.join(" "));
        }
        Cgroups::gather(&tree)
    }

    const V2: &str = "\
24 23 0:22 / /sys rw,nosuid - sysfs sysfs rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";
    const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
32 31 0:29 / /sys/fs/cgroup/systemd rw,nosuid shared:10 - cgroup cgroup rw,xattr,name=systemd
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/memory rw,nosuid shared:12 - cgroup cgroup rw,memory
90 80 0:31 /docker/ab /var/lib/x/cgroup/memory rw,nosuid - cgroup cgroup rw,memory
";
    const UNIFIED: &str = "\
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,favordynmods
";

    #[test]
    fn a_unified_host_is_v2() {
        let found = read(V2, &["cpu", "memory", "pids"]);
        assert_eq!(found.mode, CgroupMode::V2);
        assert!(found.v1.is_empty() && found.has("pids") && !found.has("rdma"));
        assert!(found.left_on_v2().is_empty(), "on v2 everything belongs there");
        assert!(!found.v2.unwrap().favours_moves);
    }

    #[test]
    fn a_legacy_host_is_v1_and_binds_count_once() {
        let found = read(V1, &[]);
        assert_eq!(found.mode, CgroupMode::V1);
        assert_eq!(found.v1.len(), 3);
        assert_eq!(found.v1[1].controllers, ["cpu", "cpuacct"]);
        assert_eq!(found.v1[0].mounted_on, std::path::Path::new("/sys/fs/cgroup/memory"));
    }

    #[test]
    fn both_is_hybrid_with_what_v2_kept() {
        let found = read(&format!("{V1}{UNIFIED}"), &["hugetlb"]);
        assert_eq!((found.mode, found.mode.name()), (CgroupMode::Hybrid, "hybrid"));
        assert_eq!(found.left_on_v2(), ["hugetlb"]);
        assert!(found.v2.unwrap().favours_moves);
    }

    #[test]
    fn a_hierarchy_with_only_a_name_does_not_make_a_host_hybrid() {
        let named = "32 31 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
        assert_eq!(read(&format!("{named}{V2}"), &["cpu"]).mode, CgroupMode::V2);
        assert_eq!(read(named, &[]).mode, CgroupMode::Absent);
        assert_eq!(read("", &[]).mode, CgroupMode::Absent);
    }

    #[test]
    fn a_share_of_the_cpus_is_a_sessions_unless_a_cgroup_has_it() {
        let share = |mounts: &str, own: &str, autogroups: &str, weight: &str| {
            let tree = Tree::planted(&[("/proc/self/mountinfo", mounts), ("/proc/self/cgroup", own)]);
            tree.plant("/proc/sys/kernel/sched_autogroup_enabled", autogroups);
            tree.plant(&format!("/sys/fs/cgroup/{weight}/cpu.weight"), "100");
            CpuShare::gather(&tree)
        };
        assert_eq!(share(V1, "3:cpu,cpuacct:/\n4:memory:/user\n", "1", "x"), Some(CpuShare::Own));
        assert_eq!(share(V1, "3:cpu,cpuacct:/\n", "0", "x"), Some(CpuShare::Threads));
        assert_eq!(share(V1, "3:cpu,cpuacct:/user\n", "1", "x"), Some(CpuShare::Cgroup));
        // In version 2 a cgroup counts only if the controller is enabled for it.
        let own = "0::/user.slice/session.scope\n";
        assert_eq!(share(V2, own, "1", "user.slice"), Some(CpuShare::Cgroup));
        assert_eq!(share(V2, own, "1", "system.slice"), Some(CpuShare::Own));
        assert_eq!(CpuShare::gather(&Tree::planted(&[])), None);
    }

    #[test]
    fn controllers_switched_off_at_boot_are_found() {
        let table = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t4\t1\nmemory\t0\t1\t0\n";
        assert_eq!(disabled_controllers(table), ["memory"]);
    }
}
