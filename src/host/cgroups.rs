//! Which control groups has this machine: version 1, version 2, or both side by side?
//!
//! Told from the mounts and from the root's list of controllers. Deliberately absent: making and
//! entering control groups, which is the business of `sys`.

use std::path::{Path, PathBuf};

use super::mounts::Mount;
use super::tree::Tree;

/// Controllers that a v1 hierarchy can carry; its mount options name them among others.
const CONTROLLERS: &[&str] = &[
    "blkio",
    "cpu",
    "cpuacct",
    "cpuset",
    "devices",
    "dmem",
    "freezer",
    "hugetlb",
    "memory",
    "misc",
    "net_cls",
    "net_prio",
    "perf_event",
    "pids",
    "rdma",
];

/// Which versions are mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMode {
    /// No hierarchy with controllers is mounted.
    Absent,
    /// Only hierarchies of version 1.
    V1,
    /// Only the unified hierarchy of version 2.
    V2,
    /// Controllers on version 1, and the unified hierarchy beside them.
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

/// One mounted hierarchy of version 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mounted_on: PathBuf,
    /// Its controllers; empty for one that only has a name (`name=systemd`).
    pub controllers: Vec<String>,
    /// Whether it is mounted `favordynmods`.
    pub favours_moves: bool,
}

/// The unified hierarchy of version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unified {
    /// Where it is mounted.
    pub mounted_on: PathBuf,
    /// What its `cgroup.controllers` lists: those that no v1 hierarchy has taken.
    pub controllers: Option<Vec<String>>,
    /// Whether it is mounted `favordynmods`, which makes moving processes quicker and forking slower.
    pub favours_moves: bool,
}

/// The control groups of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    /// Which versions are mounted.
    pub mode: CgroupMode,
    /// Every hierarchy of version 1.
    pub v1: Vec<Hierarchy>,
    /// The hierarchy of version 2, if it is mounted.
    pub v2: Option<Unified>,
    /// Controllers that the kernel has but that are switched off at boot.
    pub disabled: Vec<String>,
}

impl Cgroups {
    pub(super) fn gather(tree: &Tree, mounts: &[Mount]) -> Cgroups {
        let v2_controllers = |point: &Path| {
            let text = tree.text(point.join("cgroup.controllers"))?;
            Some(text.split_whitespace().map(str::to_owned).collect())
        };
        let table = tree.text("/proc/cgroups").unwrap_or_default();
        Cgroups::from_mounts(mounts, &table, v2_controllers)
    }

    /// From the mount table, the text of `/proc/cgroups` and the controllers of a v2 mount point.
    fn from_mounts(
        mounts: &[Mount],
        table: &str,
        v2_controllers: impl Fn(&Path) -> Option<Vec<String>>,
    ) -> Cgroups {
        let v1 = v1_hierarchies(mounts);
        let unified = mounts.iter().find(|mount| mount.filesystem == "cgroup2");
        let v2 = unified.map(|mount| Unified {
            mounted_on: mount.point.clone(),
            controllers: v2_controllers(&mount.point),
            favours_moves: mount.has("favordynmods"),
        });
        let has_v1 = v1.iter().any(|hierarchy| !hierarchy.controllers.is_empty());
        let mode = match (has_v1, v2.is_some()) {
            (false, false) => CgroupMode::Absent,
            (true, false) => CgroupMode::V1,
            (false, true) => CgroupMode::V2,
            (true, true) => CgroupMode::Hybrid,
        };
        Cgroups { mode, v1, v2, disabled: disabled_controllers(table) }
    }

    /// Controllers that stay on the v2 hierarchy although others are on v1, empty elsewhere.
    pub fn left_on_v2(&self) -> &[String] {
        match (self.mode, &self.v2) {
            (CgroupMode::Hybrid, Some(Unified { controllers: Some(left), .. })) => left,
            _ => &[],
        }
    }

    /// Whether a controller can be used on one hierarchy or the other. Version 2 has none for
    /// `devices`, `freezer` and `cpuacct`: there they belong to the core.
    pub fn has(&self, controller: &str) -> bool {
        let v1 = self.v1.iter().flat_map(|hierarchy| &hierarchy.controllers);
        let v2 = self.v2.iter().filter_map(|unified| unified.controllers.as_ref()).flatten();
        v1.chain(v2).any(|own| own == controller)
    }
}

/// The first mount of each hierarchy; binds of the same one into containers are passed over.
fn v1_hierarchies(mounts: &[Mount]) -> Vec<Hierarchy> {
    let mut found: Vec<(Hierarchy, Option<&str>)> = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.filesystem == "cgroup") {
        let named = mount.options.iter().find_map(|option| option.strip_prefix("name="));
        let controllers: Vec<String> =
            mount.options.iter().filter(|option| CONTROLLERS.contains(&option.as_str())).cloned().collect();
        if !found.iter().any(|(known, name)| known.controllers == controllers && *name == named) {
            let favours_moves = mount.has("favordynmods");
            found.push((Hierarchy { mounted_on: mount.point.clone(), controllers, favours_moves }, named));
        }
    }
    found.into_iter().map(|(hierarchy, _)| hierarchy).collect()
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
    use super::super::mounts::parse;
    use super::*;

    fn read(mountinfo: &str, v2: &[&str]) -> Cgroups {
        let controllers: Vec<String> = v2.iter().map(|name| (*name).to_owned()).collect();
        Cgroups::from_mounts(&parse(mountinfo), "", |_| Some(controllers.clone()))
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
        assert_eq!(found.v1[2].mounted_on, Path::new("/sys/fs/cgroup/memory"));
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
    fn controllers_switched_off_at_boot_are_found() {
        let table = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t4\t1\nmemory\t0\t1\t0\n";
        assert_eq!(disabled_controllers(table), ["memory"]);
    }
}
