//! Everything that the checks look at, gathered once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host::context::{Context, Watch};
use crate::host::facts::{Facts, meminfo_bytes};
use crate::host::mounts;
use crate::host::tree::Tree;
use crate::sys::filesystem::{self, Left};
use crate::sys::{audit, limits};
use crate::units::Nanos;

/// One machine at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// What it is.
    pub facts: Facts,
    /// What it does now.
    pub context: Context,
    /// How its kernel is set.
    pub settings: Settings,
    /// Where dunnage keeps its own files.
    pub state: StateDirectory,
}

/// Where dunnage keeps its own files, bundles and images among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateDirectory {
    /// As configured; it need not exist yet.
    pub path: PathBuf,
    /// Whether files can be made in it, or it can be made itself.
    pub writable: Option<bool>,
    /// What its filesystem has left.
    pub left: Option<Left>,
}

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

/// Clock rates beyond the nominal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turbo {
    /// Whether they are allowed.
    pub on: bool,
    /// The command that forbids them.
    pub off_by: &'static str,
}

/// Settings of the kernel that change what starting a container costs, or whether it works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// The hard limit of processes that children inherit.
    pub processes_limit: Option<u64>,
}

impl View {
    /// Reads everything, and watches the machine for as long as `look` to see what it is doing.
    /// A machine with few CPUs needs a second for its steal and busy shares to be told.
    pub fn gather(state_directory: &Path, look: Nanos) -> View {
        let mut watch = Watch::new();
        let facts = Facts::gather(state_directory);
        std::thread::sleep(Duration::from_nanos(look.0.max(0) as u64));
        View::of(facts, watch.read(), state_directory)
    }

    /// The same with facts and context at hand.
    pub fn of(facts: Facts, context: Context, state_directory: &Path) -> View {
        let settings = Settings {
            audit: audit::is_on(),
            open_files_limit: Some(limits::open_files()),
            processes_limit: Some(limits::processes()),
            ..Settings::below(&Tree::machine(), &facts)
        };
        View { settings, context, state: StateDirectory::look_at(state_directory), facts }
    }
}

impl StateDirectory {
    fn look_at(path: &Path) -> StateDirectory {
        let nearest = mounts::real(path);
        StateDirectory {
            path: path.to_owned(),
            writable: nearest.as_deref().and_then(|nearest| filesystem::may_be_written(nearest).ok()),
            left: nearest.as_deref().and_then(|nearest| filesystem::left(nearest).ok()),
        }
    }
}

impl Settings {
    fn below(tree: &Tree, facts: &Facts) -> Settings {
        const CPUS: &str = "/sys/devices/system/cpu";
        let meminfo = tree.text("/proc/meminfo").unwrap_or_default();
        let swap = meminfo_bytes(&meminfo, "SwapTotal").zip(meminfo_bytes(&meminfo, "SwapFree"));
        let sources = tree.line("/sys/devices/system/clocksource/clocksource0/available_clocksource");
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

/// A machine that tells nothing.
#[cfg(test)]
pub(super) fn silent() -> View {
    let empty = tempfile::tempdir().unwrap();
    let tree = Tree::planted(empty.path());
    let facts = Facts::below(&tree);
    let settings = Settings::below(&tree, &facts);
    View { facts, settings, context: Context::default(), state: StateDirectory::default() }
}

/// A quiet, ordinary machine on which nothing is to be mended; tests change one thing in it.
#[cfg(test)]
pub(super) fn planted() -> View {
    use crate::host::cgroups::{CgroupMode, Cgroups, Unified};
    use crate::host::isolation::Containment;
    use crate::host::mounts::Storage;

    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut view = silent();
    let facts = &mut view.facts;
    facts.cpu.sockets = Some(1);
    facts.cpu.cores = Some(4);
    facts.cpu.threads = Some(8);
    facts.cpu.usable = Some(8);
    facts.clock_source = Some("tsc".to_owned());
    facts.containment = Containment::Host;
    facts.virtualisation.guest = Some(false);
    facts.security.modules = Some(strings(&["capability", "apparmor"]));
    facts.kernel.command_line = Some("quiet splash".to_owned());
    facts.pressure_available = true;
    facts.own.user = Some(0);
    facts.own.capabilities = Some(u64::MAX);
    facts.own.no_new_privileges = Some(false);
    facts.own.seccomp_filtered = Some(false);
    facts.own.initial_user_namespace = Some(true);
    facts.own.initial_time_namespace = Some(true);
    facts.cgroups = Cgroups {
        mode: CgroupMode::V2,
        v1: Vec::new(),
        v2: Some(Unified {
            mounted_on: PathBuf::from("/sys/fs/cgroup"),
            controllers: Some(strings(&["cpuset", "cpu", "io", "memory", "pids"])),
            favours_moves: false,
        }),
        disabled: Vec::new(),
    };
    facts.storage = vec![Storage {
        purpose: "state".to_owned(),
        path: PathBuf::from("/var/lib/dunnage"),
        mounted_on: PathBuf::from("/"),
        device: "/dev/sda1".to_owned(),
        filesystem: "ext4".to_owned(),
        options: strings(&["rw", "relatime"]),
    }];
    view.state = StateDirectory {
        path: PathBuf::from("/var/lib/dunnage"),
        writable: Some(true),
        left: Some(Left { bytes: 1 << 30, files: Some(10_000) }),
    };
    view.context = Context {
        window: Nanos::from_millis(1000),
        steal_share: Some(0.01),
        busy_share: Some(0.1),
        cpus: Some(8),
        load_1min: Some(4.0),
        cpu_pressure: Some(0.1),
        io_pressure: Some(0.1),
        containers: Some(0),
        cpu_hertz: Some(3e9),
        available_memory_bytes: Some(512 << 20),
    };
    view.settings = Settings {
        overlay: Some(Overlay::Ready),
        max_user_namespaces: Some(10_000),
        unprivileged_userns_clone: Some(true),
        apparmor_restricts_userns: Some(false),
        perf_event_paranoid: Some(2),
        rcu_expedited: Some(false),
        rcu_normal: Some(false),
        ipv6_present: Some(true),
        ipv6_disabled: Some(false),
        audit: Some(false),
        tracer: Some("nop".to_owned()),
        governors: strings(&["performance"]),
        turbo: Some(Turbo { on: false, off_by: "" }),
        smt: Some(true),
        clock_sources: strings(&["tsc", "hpet"]),
        swapped_bytes: Some(64 << 20),
        open_files_limit: Some(1024),
        processes_limit: Some(u64::MAX),
    };
    view
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
