//! What a bundle asks of an OCI runtime: a typed description with Docker's defaults, and the
//! `config.json` that it amounts to.
//!
//! Deliberately absent: files (see `bundle.rs`), the seccomp profile (the caller brings it), a
//! terminal, hooks, resource limits of the process, and what Docker adds for its networks
//! (`/etc/hosts`, `/etc/resolv.conf`).

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{ENTRYPOINT, PATH_VARIABLE};

/// Docker's default capabilities, in the order in which Docker writes them.
pub const DEFAULT_CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// What Docker hides: a directory under an empty tmpfs, a file under `/dev/null`. Each one that
/// exists costs a mount. This is the list of Docker 20.10; later ones add paths to it.
pub const MASKED_PATHS: [&str; 10] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];

/// What Docker makes read-only. Each one that exists costs two mount calls.
pub const READONLY_PATHS: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Everything that a bundle asks of the runtime. [`Spec::like_docker`] gives the whole; change
/// the fields that a subject's keys name.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The whole command line of the process.
    pub args: Vec<String>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<String>,
    /// Where the process starts.
    pub directory: String,
    /// The host name inside. Used only with [`Namespace::Uts`].
    pub hostname: String,
    /// Bounding, effective and permitted capabilities alike; none are inheritable or ambient.
    pub capabilities: Vec<String>,
    /// Whether the process is denied new privileges. Docker leaves this off unless asked.
    pub no_new_privileges: bool,
    /// Mounts in order, after the root. See [`Spec::to_json`] for the two that are adapted.
    pub mounts: Vec<Mount>,
    /// Paths under the container's root that are hidden.
    pub masked_paths: Vec<String>,
    /// Paths under the container's root that are read-only.
    pub readonly_paths: Vec<String>,
    /// The namespaces that are made new; the others are the caller's. The user namespace is
    /// not among them, since it needs mappings: see [`Spec::user_namespace`].
    pub namespaces: Vec<Namespace>,
    /// A new user namespace, if any.
    pub user_namespace: Option<UserNamespace>,
    /// The cgroup in the runtime's own notation: with cgroupfs a path that begins with `/`. `None`
    /// leaves the choice to the runtime, which then goes on where it may make no cgroup: a
    /// caller who is not root needs that.
    pub cgroups_path: Option<String>,
    /// A share of CPU time, if limited.
    pub cpu: Option<CpuQuota>,
    /// Bytes of memory, if limited.
    pub memory_limit: Option<u64>,
    /// Kernel settings written inside, such as Docker's two for unprivileged ports and ping.
    pub sysctl: Vec<(String, String)>,
    /// The `linux.seccomp` object. Without it the process runs unfiltered.
    pub seccomp: Option<Value>,
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where, absolute inside the container.
    pub destination: String,
    /// The kind of filesystem, or `bind`.
    pub kind: String,
    /// What: a device, a path on the host for a bind mount, or a name that nothing reads.
    pub source: String,
    /// Options as the runtime specification lists them.
    pub options: Vec<String>,
}

/// What the process may do through a bind mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

/// A kind of namespace that needs no further words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// Process IDs.
    Pid,
    /// A network of its own, with a loopback device and nothing else.
    Network,
    /// System V and POSIX inter-process communication.
    Ipc,
    /// Host and domain name.
    Uts,
    /// Mounts. Every runtime needs it.
    Mount,
    /// The view of the cgroup hierarchies. Docker makes one on cgroup v2 only, unless asked.
    Cgroup,
}

/// The mappings of a new user namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserNamespace {
    /// User IDs.
    pub uids: Vec<IdRange>,
    /// Group IDs.
    pub gids: Vec<IdRange>,
}

/// A range of consecutive IDs inside that stand for others outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The first ID inside.
    pub inside: u32,
    /// The first ID outside.
    pub outside: u32,
    /// How many.
    pub count: u32,
}

/// So much CPU time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// Microseconds of CPU time per period.
    pub quota_us: u64,
    /// Length of a period in microseconds.
    pub period_us: u64,
    /// Microseconds that may be saved up, if any.
    pub burst_us: Option<u64>,
}

impl Spec {
    /// What Docker asks for by default, without a filter and without privileges to gain: its
    /// capabilities, mounts, hidden paths, devices, and all six namespaces new. `arguments` follow
    /// the image's entry point.
    pub fn like_docker(arguments: &[String], hostname: &str, cgroups_path: &str) -> Spec {
        Spec {
            args: ENTRYPOINT.map(str::to_owned).iter().chain(arguments).cloned().collect(),
            env: vec![PATH_VARIABLE.to_owned(), format!("HOSTNAME={hostname}")],
            directory: "/".to_owned(),
            hostname: hostname.to_owned(),
            capabilities: owned(&DEFAULT_CAPABILITIES),
            no_new_privileges: true,
            mounts: docker_mounts(),
            masked_paths: owned(&MASKED_PATHS),
            readonly_paths: owned(&READONLY_PATHS),
            namespaces: vec![
                Namespace::Mount,
                Namespace::Network,
                Namespace::Uts,
                Namespace::Pid,
                Namespace::Ipc,
                Namespace::Cgroup,
            ],
            user_namespace: None,
            cgroups_path: Some(cgroups_path.to_owned()),
            cpu: None,
            memory_limit: None,
            sysctl: Vec::new(),
            seccomp: None,
        }
    }

    /// The `config.json` of runtime specification 1.0.2 for a root at this absolute path.
    ///
    /// Two mounts are adapted to a user namespace, as engines do: the terminals' group is left
    /// out where it is not mapped, and `/sys` is the host's where the network is.
    pub fn to_json(&self, root: &Path) -> Value {
        let namespaces = self.namespaces.iter().map(|namespace| namespace.name());
        let namespaces = namespaces.chain(self.user_namespace.iter().map(|_| "user"));
        let mut linux = json!({
            "namespaces": namespaces.map(|kind| json!({ "type": kind })).collect::<Vec<_>>(),
            "resources": self.resources(),
            "maskedPaths": self.masked_paths,
            "readonlyPaths": self.readonly_paths,
        });
        if let Some(path) = &self.cgroups_path {
            linux["cgroupsPath"] = json!(path);
        }
        if let Some(user) = &self.user_namespace {
            linux["uidMappings"] = user.uids.iter().copied().map(IdRange::to_json).collect();
            linux["gidMappings"] = user.gids.iter().copied().map(IdRange::to_json).collect();
        }
        if !self.sysctl.is_empty() {
            let pairs = self.sysctl.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), json!(value)));
            linux["sysctl"] = Value::Object(pairs.collect::<Map<_, _>>());
        }
        if let Some(profile) = &self.seccomp {
            linux["seccomp"] = profile.clone();
        }
        json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": { "uid": 0, "gid": 0 },
                "args": self.args,
                "env": self.env,
                "cwd": self.directory,
                "capabilities": {
                    "bounding": self.capabilities,
                    "effective": self.capabilities,
                    "permitted": self.capabilities,
                },
                "noNewPrivileges": self.no_new_privileges,
            },
            "root": { "path": root, "readonly": false },
            "hostname": self.hostname,
            "mounts": self.adapted_mounts().iter().map(Mount::to_json).collect::<Vec<_>>(),
            "linux": linux,
        })
    }

    fn resources(&self) -> Value {
        let mut resources = json!({ "devices": docker_devices() });
        if let Some(cpu) = self.cpu {
            resources["cpu"] = json!({ "quota": cpu.quota_us, "period": cpu.period_us });
            if let Some(burst) = cpu.burst_us {
                resources["cpu"]["burst"] = json!(burst);
            }
        }
        if let Some(bytes) = self.memory_limit {
            resources["memory"] = json!({ "limit": bytes });
        }
        resources
    }

    fn adapted_mounts(&self) -> Vec<Mount> {
        let mut mounts = self.mounts.clone();
        let Some(user) = &self.user_namespace else {
            return mounts;
        };
        let own_network = self.namespaces.contains(&Namespace::Network);
        for mount in &mut mounts {
            match mount.kind.as_str() {
                "devpts" => mount.options.retain(|option| {
                    let group = option.strip_prefix("gid=").and_then(|group| group.parse().ok());
                    group.is_none_or(|group| user.gids.iter().any(|range| range.covers(group)))
                }),
                // A new sysfs shows the devices of a network, so it needs power over that network.
                "sysfs" if !own_network => {
                    mount.kind = "bind".to_owned();
                    mount.source = "/sys".to_owned();
                    mount.options.insert(0, "rbind".to_owned());
                }
                _ => {}
            }
        }
        mounts
    }
}

impl Mount {
    fn new(destination: &str, kind: &str, source: &str, options: &[&str]) -> Mount {
        Mount {
            destination: destination.to_owned(),
            kind: kind.to_owned(),
            source: source.to_owned(),
            options: owned(options),
        }
    }

    /// A file or directory of the host, absolute on both sides.
    pub fn bind(source: &str, destination: &str, access: Access) -> Mount {
        let access = match access {
            Access::ReadOnly => "ro",
            Access::ReadWrite => "rw",
        };
        Mount::new(destination, "bind", source, &["rbind", "rprivate", access])
    }

    pub(super) fn is_bind(&self) -> bool {
        self.options.iter().any(|option| option == "bind" || option == "rbind")
    }

    fn to_json(&self) -> Value {
        json!({
            "destination": self.destination,
            "type": self.kind,
            "source": self.source,
            "options": self.options,
        })
    }
}

impl Namespace {
    fn name(self) -> &'static str {
        match self {
            Namespace::Pid => "pid",
            Namespace::Network => "network",
            Namespace::Ipc => "ipc",
            Namespace::Uts => "uts",
            Namespace::Mount => "mount",
            Namespace::Cgroup => "cgroup",
        }
    }
}

impl IdRange {
    fn covers(self, id: u32) -> bool {
        id.checked_sub(self.inside).is_some_and(|offset| offset < self.count)
    }

    fn to_json(self) -> Value {
        json!({ "containerID": self.inside, "hostID": self.outside, "size": self.count })
    }
}

fn docker_mounts() -> Vec<Mount> {
    vec![
        Mount::new("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
        Mount::new("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        Mount::new(
            "/dev/pts",
            "devpts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        ),
        Mount::new("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
        Mount::new("/sys/fs/cgroup", "cgroup", "cgroup", &["ro", "nosuid", "noexec", "nodev"]),
        Mount::new("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        Mount::new("/dev/shm", "tmpfs", "shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=67108864"]),
    ]
}

/// Docker's device rules: no device but zero, null, urandom, random, tty and console, and
/// explicitly not fuse. The runtimes add those that the specification demands.
fn docker_devices() -> Value {
    let rule = |allow: bool, major: u32, minor: u32| json!({ "allow": allow, "type": "c", "major": major, "minor": minor, "access": "rwm" });
    json!([
        { "allow": false, "access": "rwm" },
        rule(true, 1, 5),
        rule(true, 1, 3),
        rule(true, 1, 9),
        rule(true, 1, 8),
        rule(true, 5, 0),
        rule(true, 5, 1),
        rule(false, 10, 229),
    ])
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec::like_docker(&["--once".to_owned()], "box", "/dunnage/box")
    }

    #[test]
    fn asks_for_what_docker_asks_for() {
        let config = spec().to_json(Path::new("/some/root"));
        assert_eq!(config["process"]["args"], json!(["/dunnage", "probe", "--once"]));
        assert_eq!(config["process"]["capabilities"]["bounding"].as_array().unwrap().len(), 14);
        assert_eq!(config["process"]["capabilities"].get("ambient"), None);
        assert_eq!(config["process"]["noNewPrivileges"], true);
        assert_eq!(config["process"].get("rlimits"), None);
        assert_eq!(config["root"], json!({ "path": "/some/root", "readonly": false }));
        assert_eq!(config["linux"]["cgroupsPath"], "/dunnage/box");
        assert_eq!(config["linux"]["resources"].as_object().unwrap().len(), 1);
        for absent in ["seccomp", "sysctl", "uidMappings"] {
            assert_eq!(config["linux"].get(absent), None, "{absent}");
        }
        let kinds = config["linux"]["namespaces"].as_array().unwrap().iter();
        let kinds: Vec<_> = kinds.map(|kind| kind["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["mount", "network", "uts", "pid", "ipc", "cgroup"]);
    }

    #[test]
    fn optional_parts_appear_when_asked_for() {
        let mut spec = spec();
        spec.seccomp = Some(json!({ "defaultAction": "SCMP_ACT_ERRNO" }));
        spec.cpu = Some(CpuQuota { quota_us: 50_000, period_us: 100_000, burst_us: Some(20_000) });
        spec.memory_limit = Some(64 << 20);
        spec.sysctl = vec![("net.ipv4.ip_unprivileged_port_start".to_owned(), "0".to_owned())];
        let linux = &spec.to_json(Path::new("/"))["linux"];
        assert_eq!(linux["seccomp"]["defaultAction"], "SCMP_ACT_ERRNO");
        assert_eq!(linux["resources"]["cpu"], json!({ "quota": 50_000, "period": 100_000, "burst": 20_000 }));
        assert_eq!(linux["resources"]["memory"]["limit"], 67_108_864);
        assert_eq!(linux["sysctl"]["net.ipv4.ip_unprivileged_port_start"], "0");
    }

    #[test]
    fn a_user_namespace_adapts_terminals_and_sys() {
        let range = |count| IdRange { inside: 0, outside: 1000, count };
        let mut spec = spec();
        spec.user_namespace = Some(UserNamespace { uids: vec![range(1)], gids: vec![range(1)] });
        let config = spec.to_json(Path::new("/"));
        assert_eq!(config["linux"]["gidMappings"], json!([{ "containerID": 0, "hostID": 1000, "size": 1 }]));
        assert_eq!(config["linux"]["namespaces"][6], json!({ "type": "user" }));
        assert!(!config["mounts"][2].to_string().contains("gid="));
        assert_eq!(config["mounts"][3]["type"], "sysfs");

        spec.user_namespace = Some(UserNamespace { uids: vec![range(6)], gids: vec![range(6)] });
        spec.namespaces.retain(|namespace| *namespace != Namespace::Network);
        let config = spec.to_json(Path::new("/"));
        assert!(config["mounts"][2].to_string().contains("gid=5"));
        assert_eq!(config["mounts"][3]["type"], "bind");
    }
}
