//! How a kernel is set, as far as it changes what starting a container costs, or whether it works.

use crate::host::facts::{Facts, meminfo_bytes};
use crate::host::tree::Tree;

/// Whether the kernel has the overlay filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlay {
    /// It can be mounted.
    Ready,
    /// A module for it can be loaded.
    Module,
    /// Neither.
    Absent,
}

/// A device of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// It is not there.
    Absent,
    /// Only its owner, root, may open it.
    OfRoot,
    /// Everybody may open it.
    OfAll,
}

/// Clock rates beyond the nominal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turbo {
    /// Whether they are allowed.
    pub on: bool,
    /// The command that forbids them.
    pub off_by: &'static str,
}

/// Settings of the kernel that change what starting a container costs, or whether it works.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The overlay filesystem.
    pub overlay: Option<Overlay>,
    /// `user.max_user_namespaces`.
    pub max_user_namespaces: Option<u64>,
    /// `kernel.unprivileged_userns_clone`, a setting of Debian's kernels.
    pub unprivileged_userns_clone: Option<bool>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, a setting of Ubuntu's kernels.
    pub apparmor_restricts_userns: Option<bool>,
    /// `kernel.perf_event_paranoid`; `None` in a kernel without perf events.
    pub perf_event_paranoid: Option<i64>,
    /// Whether waiting for readers (RCU) is always hastened.
    pub rcu_expedited: Option<bool>,
    /// Whether waiting for readers (RCU) is never hastened.
    pub rcu_normal: Option<bool>,
    /// Whether the kernel has IPv6.
    pub ipv6_present: Option<bool>,
    /// `net.ipv6.conf.all.disable_ipv6`.
    pub ipv6_disabled: Option<bool>,
    /// Whether the kernel's audit is on.
    pub audit: Option<bool>,
    /// The tracer in force, `nop` for none.
    pub tracer: Option<String>,
    /// The different governors of the CPUs' clock rates; empty where the kernel does not govern them.
    pub governors: Vec<String>,
    /// Clock rates beyond the nominal one, where the kernel can forbid them.
    pub turbo: Option<Turbo>,
    /// Whether several hardware threads share a core.
    pub smt: Option<bool>,
    /// Clock sources to choose from.
    pub clock_sources: Vec<String>,
    /// Memory that is swapped out, in bytes.
    pub swapped_bytes: Option<u64>,
    /// The hard limit of open files that children inherit.
    pub open_files_limit: Option<u64>,
    /// The hard limit of processes that children inherit, but no more than there are process ids.
    pub processes_limit: Option<u64>,
    /// How many namespaces of each kind a user may have: `user.max_…_namespaces` by name.
    pub namespace_limits: Vec<(String, u64)>,
    /// The highest capability that the kernel knows.
    pub last_capability: Option<u32>,
    /// Ranges of subordinate user ids.
    pub subordinate_ids: Option<u32>,
    /// How many inotify instances a user may have.
    pub inotify_instances: Option<u64>,
    /// `/dev/net/tun`.
    pub tun: Option<Node>,
    /// `/dev/fuse`.
    pub fuse: Option<Node>,
    /// The highest clock rate of the CPUs in hertz.
    pub max_hertz: Option<f64>,
    /// What the kernel says of this process and Speculative Store Bypass.
    pub own_store_bypass: Option<String>,
    /// What the kernel says of this process and indirect branches.
    pub own_indirect_branches: Option<String>,
}

impl Settings {
    pub(super) fn below(tree: &Tree, facts: &Facts) -> Settings {
        const CPUS: &str = "/sys/devices/system/cpu";
        let meminfo = tree.text("/proc/meminfo").unwrap_or_default();
        let swap = meminfo_bytes(&meminfo, "SwapTotal").zip(meminfo_bytes(&meminfo, "SwapFree"));
        let sources = tree.line("/sys/devices/system/clocksource/clocksource0/available_clocksource");
        let status = tree.text("/proc/self/status").unwrap_or_default();
        let of_status = |row: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(':'))?;
            Some(value.trim().to_owned())
        };
        let tracer = |root: &str| tree.line(format!("{root}/tracing/current_tracer"));
        Settings {
            overlay: overlay(tree, facts),
            max_user_namespaces: tree.number("/proc/sys/user/max_user_namespaces"),
            unprivileged_userns_clone: tree.switch("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts_userns: tree.switch("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            perf_event_paranoid: tree.number("/proc/sys/kernel/perf_event_paranoid"),
            rcu_expedited: tree.switch("/sys/kernel/rcu_expedited"),
            rcu_normal: tree.switch("/sys/kernel/rcu_normal"),
            ipv6_present: tree.has("/proc/sys/net").then(|| tree.has("/proc/sys/net/ipv6")),
            ipv6_disabled: tree.switch("/proc/sys/net/ipv6/conf/all/disable_ipv6"),
            tracer: tracer("/sys/kernel").or_else(|| tracer("/sys/kernel/debug")),
            governors: governors(tree),
            turbo: turbo(tree),
            smt: tree.switch(format!("{CPUS}/smt/active")),
            clock_sources: sources.iter().flat_map(|list| list.split(' ')).map(str::to_owned).collect(),
            swapped_bytes: swap.map(|(total, free)| total.saturating_sub(free)),
            audit: None,
            open_files_limit: None,
            processes_limit: None,
            namespace_limits: namespace_limits(tree),
            last_capability: tree.number("/proc/sys/kernel/cap_last_cap"),
            subordinate_ids: tree.text("/etc/subuid").map(|text| text.lines().count() as u32),
            inotify_instances: tree.number("/proc/sys/fs/inotify/max_user_instances"),
            tun: node(tree, "/dev/net/tun"),
            fuse: node(tree, "/dev/fuse"),
            max_hertz: tree
                .number::<f64>(format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq"))
                .map(|kilohertz| kilohertz * 1e3),
            own_store_bypass: of_status("Speculation_Store_Bypass"),
            own_indirect_branches: of_status("SpeculationIndirectBranch"),
        }
    }
}

fn overlay(tree: &Tree, facts: &Facts) -> Option<Overlay> {
    let known = tree.text("/proc/filesystems")?;
    if known.lines().any(|line| line.split_whitespace().last() == Some("overlay")) {
        return Some(Overlay::Ready);
    }
    let release = facts.kernel.release.as_deref()?;
    let modules = tree.text(format!("/lib/modules/{release}/modules.dep")).unwrap_or_default();
    let loadable = modules.contains("/overlay.ko") && !facts.kernel.was_told("nomodule");
    Some(if loadable { Overlay::Module } else { Overlay::Absent })
}

/// The limits on namespaces of every kind but users, which have a check of their own.
fn namespace_limits(tree: &Tree) -> Vec<(String, u64)> {
    const LIMITS: &str = "/proc/sys/user";
    let names = tree.names(LIMITS).into_iter();
    let names = names.filter(|name| name.ends_with("_namespaces") && name != "max_user_namespaces");
    names.filter_map(|name| tree.number(format!("{LIMITS}/{name}")).map(|most| (name, most))).collect()
}

fn node(tree: &Tree, path: &str) -> Option<Node> {
    use std::os::unix::fs::PermissionsExt;
    if !tree.has("/dev") {
        return None;
    }
    Some(match tree.at(path).metadata() {
        Ok(found) if found.permissions().mode() & 0o006 == 0o006 => Node::OfAll,
        Ok(_) => Node::OfRoot,
        Err(_) => Node::Absent,
    })
}

fn governors(tree: &Tree) -> Vec<String> {
    const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
    let policies = tree.names(POLICIES).into_iter().filter(|name| name.starts_with("policy"));
    let mut found: Vec<_> =
        policies.filter_map(|name| tree.line(format!("{POLICIES}/{name}/scaling_governor"))).collect();
    found.sort();
    found.dedup();
    found
}

fn turbo(tree: &Tree) -> Option<Turbo> {
    let no_turbo = tree.switch("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|off| Turbo {
        on: !off,
        off_by: "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    });
    no_turbo.or_else(|| {
        let on = tree.switch("/sys/devices/system/cpu/cpufreq/boost")?;
        Some(Turbo { on, off_by: "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost" })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> Settings {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let tree = Tree::planted(root.path());
        Settings::below(&tree, &Facts::below(&tree))
    }

    #[test]
    fn overlay_is_in_the_kernel_or_a_module_or_not_there() {
        let release = ("proc/sys/kernel/osrelease", "6.1.0\n");
        let without = ("proc/filesystems", "nodev\tsysfs\n\text4\n");
        let module = ("lib/modules/6.1.0/modules.dep", "kernel/fs/overlayfs/overlay.ko.xz:\n");
        let found = |files: &[(&str, &str)]| machine(files).overlay;
        assert_eq!(found(&[("proc/filesystems", "nodev\toverlay\n")]), Some(Overlay::Ready));
        assert_eq!(found(&[release, without, module]), Some(Overlay::Module));
        assert_eq!(found(&[release, without, module, ("proc/cmdline", "nomodule")]), Some(Overlay::Absent));
        assert_eq!(found(&[release, without]), Some(Overlay::Absent));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn devices_are_absent_of_root_or_of_all() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::planted(root.path());
        assert_eq!(node(&tree, "/dev/fuse"), None);
        fs::create_dir(root.path().join("dev")).unwrap();
        assert_eq!(node(&tree, "/dev/fuse"), Some(Node::Absent));
        let path = root.path().join("dev/fuse");
        fs::write(&path, "").unwrap();
        for (mode, expected) in [(0o600, Node::OfRoot), (0o644, Node::OfRoot), (0o666, Node::OfAll)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(node(&tree, "/dev/fuse"), Some(expected));
        }
    }

    #[test]
    fn limits_of_namespaces_and_speculation_are_read() {
        let settings = machine(&[
            ("proc/sys/user/max_net_namespaces", "7\n"),
            ("proc/sys/user/max_user_namespaces", "0\n"),
            ("proc/sys/user/max_inotify_watches", "1\n"),
            ("proc/self/status", "Speculation_Store_Bypass:\tthread vulnerable\n"),
            ("etc/subuid", "a:100000:65536\nb:165536:65536\n"),
        ]);
        assert_eq!(settings.namespace_limits, [("max_net_namespaces".to_owned(), 7)]);
        assert_eq!(settings.own_store_bypass.as_deref(), Some("thread vulnerable"));
        assert_eq!((settings.own_indirect_branches, settings.subordinate_ids), (None, Some(2)));
    }

    #[test]
    fn both_ways_of_forbidding_turbo_are_read() {
        let intel = machine(&[("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")]).turbo.unwrap();
        assert!(intel.on && intel.off_by.contains("no_turbo"));
        let other = machine(&[("sys/devices/system/cpu/cpufreq/boost", "0\n")]).turbo.unwrap();
        assert!(!other.on);
        assert_eq!(machine(&[]).turbo, None);
    }

    #[test]
    fn governors_swap_and_protocols_are_read() {
        let policy = |id: u32| format!("sys/devices/system/cpu/cpufreq/policy{id}/scaling_governor");
        let (first, second) = (policy(0), policy(1));
        let settings = machine(&[
            (&first, "powersave\n"),
            (&second, "powersave\n"),
            ("proc/meminfo", "SwapTotal: 100 kB\nSwapFree: 60 kB\n"),
            ("proc/sys/net/ipv4/x", ""),
        ]);
        assert_eq!(settings.governors, ["powersave"]);
        assert_eq!(settings.swapped_bytes, Some(40 * 1024));
        assert_eq!((settings.ipv6_present, settings.ipv6_disabled), (Some(false), None));
    }
}
