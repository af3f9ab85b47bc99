//! Everything that the checks look at, gathered once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::measured::Measured;
use super::settings::Settings;
use crate::host::context::{Context, Watch};
use crate::host::facts::Facts;
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
    /// What was measured just now.
    pub measured: Measured,
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

impl View {
    /// Reads everything, and watches the machine for as long as `look` to see what it is doing.
    /// A machine with few CPUs needs a second for its steal and busy shares to be told.
    pub fn gather(state_directory: &Path, look: Nanos) -> View {
        let mut watch = Watch::new();
        let facts = Facts::gather(state_directory);
        std::thread::sleep(Duration::from_nanos(look.0.max(0) as u64));
        let measured = Measured::now();
        View { measured, ..View::of(facts, watch.read(), state_directory) }
    }

    /// The same with facts and context at hand, and nothing measured.
    pub fn of(facts: Facts, context: Context, state_directory: &Path) -> View {
        let settings = Settings {
            audit: audit::is_on(),
            open_files_limit: Some(limits::open_files()),
            processes_limit: Some(limits::processes_within_ids()),
            ..Settings::below(&Tree::machine(), &facts)
        };
        let state = StateDirectory::look_at(state_directory);
        View { settings, context, state, facts, measured: Measured::default() }
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

/// A machine that tells nothing.
#[cfg(test)]
pub(super) fn silent() -> View {
    let empty = tempfile::tempdir().unwrap();
    let tree = Tree::planted(empty.path());
    let facts = Facts::below(&tree);
    let settings = Settings::below(&tree, &facts);
    View {
        facts,
        settings,
        context: Context::default(),
        state: StateDirectory::default(),
        measured: Measured::default(),
    }
}

/// A quiet, ordinary machine on which nothing is to be mended; tests change one thing in it.
#[cfg(test)]
pub(crate) fn planted() -> View {
    use crate::host::cgroups::{CgroupMode, Cgroups, Unified};
    use crate::host::checks::{Moves, Node, Overlay, Turbo};
    use crate::host::isolation::Containment;
    use crate::host::mounts::Storage;
    use crate::sys::clock::TimerFloor;

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
    facts.kernel.release = Some("6.1.0".to_owned());
    facts.kernel.mitigations = [
        ("spec_store_bypass", "Mitigation: Speculative Store Bypass disabled via prctl"),
        ("spectre_v2", "Mitigation: Retpolines; STIBP: conditional; RSB filling"),
    ]
    .map(|(name, state)| (name.to_owned(), state.to_owned()))
    .to_vec();
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
        namespace_limits: vec![("max_mnt_namespaces".to_owned(), 10_000)],
        last_capability: Some(40),
        subordinate_ids: Some(1),
        inotify_instances: Some(64),
        tun: Some(Node::OfAll),
        fuse: Some(Node::OfAll),
        max_hertz: Some(3e9),
        own_store_bypass: Some("thread vulnerable".to_owned()),
        own_indirect_branches: Some("conditional enabled".to_owned()),
    };
    view.measured = Measured {
        timer: Some(TimerFloor { step: Nanos(1), cost: Nanos(25) }),
        moves: Some(Moves { quiet: Nanos(20_000), soon: Nanos(5000) }),
    };
    view
}
