//! The machine as the checks see it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::measured::Measured;
use crate::host::context::Watch;
use crate::host::facts::Facts;
use crate::host::mounts;
use crate::host::tree::Tree;
use crate::record::RoundContext;
use crate::sys::filesystem::{self, Left};
use crate::sys::place::{self, Unsafe};
use crate::units::Nanos;

/// One machine at one moment.
#[derive(Debug, Clone)]
pub struct View {
    /// Its files in `/proc`, `/sys`, `/dev` and `/etc`.
    pub(crate) tree: Tree,
    /// Its fixed facts.
    pub facts: Facts,
    /// Its current activity.
    pub context: RoundContext,
    /// The directory for dunnage's own files.
    pub state: StateDirectory,
    /// The results of quick trials.
    pub measured: Measured,
}

/// The directory for dunnage's own files, including bundles and images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateDirectory {
    /// As configured; it may not exist yet.
    pub path: PathBuf,
    /// Whether files can be created in it, or the directory itself can be.
    pub writable: Option<bool>,
    /// Why another user could change it.
    pub objection: Option<String>,
    /// The free space on its filesystem.
    pub left: Option<Left>,
}

impl View {
    /// Reads everything, and watches the machine's activity for `look`. A machine with few CPUs needs a second for its steal and
    /// busy shares.
    pub fn gather(state_directory: &Path, look: Nanos) -> View {
        let mut watch = Watch::default();
        let facts = Facts::gather(state_directory);
        std::thread::sleep(Duration::from_nanos(look.0.max(0) as u64));
        let nearest = mounts::real(state_directory);
        let state = StateDirectory {
            path: state_directory.to_owned(),
            objection: match place::is_safe(state_directory) {
                Err(why @ Unsafe::Others { .. }) => Some(why.to_string()),
                _ => None,
            },
            writable: nearest.as_deref().and_then(|nearest| filesystem::may_be_written(nearest).ok()),
            left: nearest.as_deref().and_then(|nearest| filesystem::left(nearest).ok()),
        };
        let measured = Measured::now();
        View { tree: Tree::machine(), facts, context: watch.read(), state, measured }
    }
}

/// A machine that reports nothing.
#[cfg(test)]
pub(super) fn silent() -> View {
    let tree = Tree::planted(&[]);
    View {
        facts: Facts::below(&tree),
        tree,
        context: RoundContext::default(),
        state: StateDirectory::default(),
        measured: Measured::default(),
    }
}

/// A quiet, ordinary machine without anything to fix; tests change one thing in it.
#[cfg(test)]
pub(crate) fn planted() -> View {
    use crate::host::cgroups::{CgroupMode, Cgroups, Hierarchy};
    use crate::host::checks::Moves;
    use crate::host::isolation::Containment;
    use crate::host::mounts::{Mount, Storage};
    use crate::sys::clock::TimerFloor;

    let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut view = silent();
    for (path, text) in [
        ("/proc/filesystems", "nodev\toverlay\n"),
        ("/proc/sys/user/max_user_namespaces", "10000"),
        ("/proc/sys/user/max_mnt_namespaces", "10000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "1"),
        ("/proc/sys/kernel/sched_autogroup_enabled", "1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0"),
        ("/proc/sys/kernel/perf_event_paranoid", "2"),
        ("/proc/sys/kernel/cap_last_cap", "40"),
        ("/proc/sys/fs/inotify/max_user_instances", "64"),
        ("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0"),
        ("/proc/pressure/cpu", ""),
        ("/proc/meminfo", "SwapTotal: 65536 kB\nSwapFree: 0 kB\n"),
        (
            "/proc/self/status",
            "Speculation_Store_Bypass:\tthread vulnerable\nSpeculationIndirectBranch:\tconditional enabled\n",
        ),
        ("/etc/subuid", "a:100000:65536\n"),
        ("/dev/net/tun", ""),
        ("/dev/fuse", ""),
        ("/sys/kernel/rcu_normal", "0"),
        ("/sys/kernel/rcu_expedited", "0"),
        ("/sys/kernel/tracing/current_tracer", "nop\n"),
        ("/sys/kernel/security/lsm", "capability,apparmor\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
        ("/sys/devices/system/cpu/cpufreq/boost", "0"),
        ("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3000000"),
        ("/sys/devices/system/cpu/smt/active", "1"),
        ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ] {
        view.tree.plant(path, text);
    }
    for device in ["/dev/net/tun", "/dev/fuse"] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(view.tree.at(device), std::fs::Permissions::from_mode(0o666)).unwrap();
    }
    let facts = &mut view.facts;
    facts.cpu.sockets = Some(1);
    facts.cpu.cores = Some(4);
    facts.cpu.threads = Some(8);
    facts.cpu.usable = Some(8);
    facts.containment = Containment::Host;
    facts.virtualisation.guest = Some(false);
    facts.kernel.command_line = Some("quiet splash".to_owned());
    facts.kernel.release = Some("6.1.0".to_owned());
    facts.kernel.mitigations = [
        ("spec_store_bypass", "Mitigation: Speculative Store Bypass disabled via prctl"),
        ("spectre_v2", "Mitigation: Retpolines; STIBP: conditional; RSB filling"),
    ]
    .map(|(name, state)| (name.to_owned(), state.to_owned()))
    .to_vec();
    facts.own.user = Some(0);
    facts.own.capabilities = Some(u64::MAX);
    facts.own.no_new_privileges = Some(false);
    facts.own.seccomp_filtered = Some(false);
    facts.own.initial_user_namespace = Some(true);
    facts.own.initial_time_namespace = Some(true);
    facts.cgroups = Cgroups {
        mode: CgroupMode::V2,
        v1: Vec::new(),
        v2: Some(Hierarchy {
            mounted_on: PathBuf::from("/sys/fs/cgroup"),
            controllers: strings(&["cpuset", "cpu", "io", "memory", "pids"]),
            favours_moves: false,
        }),
        disabled: Vec::new(),
    };
    facts.storage = Some(Storage {
        path: PathBuf::from("/var/lib/dunnage"),
        mount: Mount {
            point: PathBuf::from("/"),
            source: "/dev/sda1".to_owned(),
            filesystem: "ext4".to_owned(),
            options: strings(&["rw", "relatime"]),
            ..Mount::default()
        },
    });
    view.state = StateDirectory {
        objection: None,
        path: PathBuf::from("/var/lib/dunnage"),
        writable: Some(true),
        left: Some(Left { bytes: 1 << 30, files: Some(10_000) }),
    };
    view.context = RoundContext {
        steal: Some(0.01),
        busy: Some(0.1),
        load: Some(4.0),
        cpu_pressure: Some(0.1),
        io_pressure: Some(0.1),
        containers: Some(0),
        frequency: Some(3e9),
        available_memory: Some(512 << 20),
        ..RoundContext::default()
    };
    view.measured = Measured {
        timer: Some(TimerFloor { step: Nanos(1), cost: Nanos(25) }),
        moves: Some(Moves { quiet: Nanos(20_000), soon: Nanos(5000) }),
        audit: Some(false),
        open_files: Some(1024),
        processes: Some(u64::MAX),
    };
    view
}
