//! What a bundle asks of an OCI runtime: `config.json` of runtime specification 1.0.2 as Docker would write
//! it, with the changes that a subject's keys ask for.
//!
//! Deliberately absent: files (see `bundle.rs`), the seccomp profile (the caller adds it), a terminal, hooks,
//! and what Docker adds for its networks (`/etc/hosts`, `/etc/resolv.conf`).

use dunnage_analysis::subject::Mount;
use dunnage_analysis::subject::limits::{Ulimit, cpus_text};
use serde_json::{Value, json};

use super::{ENTRYPOINT, PATH_VARIABLE};
use crate::sys::container::{MASKED_PATHS, READ_ONLY_PATHS};

/// Docker's default capabilities, in the order in which Docker writes them, with their bits
/// (linux/capability.h).
pub const DEFAULT_CAPABILITIES: [(&str, u32); 14] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FSETID", 4),
    ("CAP_FOWNER", 3),
    ("CAP_MKNOD", 27),
    ("CAP_NET_RAW", 13),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETFCAP", 31),
    ("CAP_SETPCAP", 8),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_KILL", 5),
    ("CAP_AUDIT_WRITE", 29),
];

/// Docker's defaults without a filter: its capabilities, mounts, masked paths and devices, and all six
/// namespaces new; in addition `no_new_privs`. `arguments` follow the image's entry point. The root is the
/// bundle's.
pub fn like_docker(arguments: &[String], hostname: &str, cgroups_path: &str) -> Value {
    let words: Vec<_> = ENTRYPOINT.into_iter().chain(arguments.iter().map(String::as_str)).collect();
    let capabilities = DEFAULT_CAPABILITIES.map(|(name, _)| name);
    let namespaces = ["mount", "network", "uts", "pid", "ipc", "cgroup"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "args": words,
            "env": [PATH_VARIABLE, format!("HOSTNAME={hostname}")],
            "cwd": "/",
            "capabilities": { "bounding": capabilities, "effective": capabilities, "permitted": capabilities },
            "noNewPrivileges": true,
        },
        "hostname": hostname,
        "mounts": docker_mounts(),
        "linux": {
            "cgroupsPath": cgroups_path,
            "namespaces": namespaces,
            "resources": { "devices": docker_devices() },
            "maskedPaths": MASKED_PATHS,
            "readonlyPaths": READ_ONLY_PATHS,
        },
    })
}

/// Adds a bind mount from the host.
pub fn add_bind(config: &mut Value, mount: &Mount) {
    let (inside, host) = (mount.inside.to_string_lossy(), mount.host.to_string_lossy());
    list(&mut config["mounts"]).push(one_mount(
        &inside,
        "bind",
        &host,
        &["rbind", "rprivate", mount.access.option()],
    ));
}

/// Limits the container's processes, and binds them to these CPUs, lowest first, where any are given.
pub fn confine(config: &mut Value, ulimits: &[Ulimit], cpus: &[usize]) {
    let limit = |one: &Ulimit| {
        let kind = format!("RLIMIT_{}", one.name().to_uppercase());
        json!({ "type": kind, "soft": one.soft, "hard": one.hard })
    };
    if !ulimits.is_empty() {
        config["process"]["rlimits"] = ulimits.iter().map(limit).collect();
    }
    if !cpus.is_empty() {
        config["linux"]["resources"]["cpu"]["cpus"] = json!(cpus_text(cpus));
    }
}

/// Leaves the container in the caller's namespace of this kind.
pub fn share_namespace(config: &mut Value, kind: &str) {
    list(&mut config["linux"]["namespaces"]).retain(|one| one["type"] != kind);
}

/// Asks for a user namespace that maps `count` users and groups, starting with 0 inside and `user` and
/// `group` outside. Call it after the other namespaces are chosen, since two mounts depend on them, as with
/// engines: the terminals' group is left out if it is not mapped, and `/sys` is the host's if the network is.
/// If the caller is not root the cgroup is left to the runtime: it cannot make one, and only then continues.
pub fn add_user_namespace(config: &mut Value, (user, group): (usize, usize), count: usize) {
    let linux = &mut config["linux"];
    let namespaces = list(&mut linux["namespaces"]);
    namespaces.push(json!({ "type": "user" }));
    let own_network = namespaces.iter().any(|one| one["type"] == "network");
    let range = |outside: usize| json!([{ "containerID": 0, "hostID": outside, "size": count }]);
    linux["uidMappings"] = range(user);
    linux["gidMappings"] = range(group);
    for mount in list(&mut config["mounts"]) {
        match mount["type"].as_str() {
            Some("devpts") if count <= TERMINALS => {
                list(&mut mount["options"]).retain(|option| *option != format!("gid={TERMINALS}"));
            }
            // A new sysfs shows the devices of a network namespace, so it needs privileges over that one.
            Some("sysfs") if !own_network => {
                mount["type"] = json!("bind");
                mount["source"] = json!("/sys");
                list(&mut mount["options"]).insert(0, json!("rbind"));
            }
            _ => {}
        }
    }
}

/// A list that every configuration has.
pub(super) fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().expect("it was made as a list")
}

/// The group of terminals.
const TERMINALS: usize = 5;

fn one_mount(destination: &str, kind: &str, source: &str, options: &[&str]) -> Value {
    json!({ "destination": destination, "type": kind, "source": source, "options": options })
}

fn docker_mounts() -> Vec<Value> {
    let terminals =
        ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", &format!("gid={TERMINALS}")];
    vec![
        one_mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
        one_mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        one_mount("/dev/pts", "devpts", "devpts", &terminals),
        one_mount("/sys", "sysfs", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
        one_mount("/sys/fs/cgroup", "cgroup", "cgroup", &["ro", "nosuid", "noexec", "nodev"]),
        one_mount("/dev/mqueue", "mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        one_mount("/dev/shm", "tmpfs", "shm", &["nosuid", "noexec", "nodev", "mode=1777", "size=67108864"]),
    ]
}

/// Docker's device rules: no device except zero, null, urandom, random, tty and console, and explicitly not
/// fuse. The runtimes add those that the specification requires.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Value {
        like_docker(&["--once".to_owned()], "box", "/dunnage/box")
    }

    #[test]
    fn asks_for_what_docker_asks_for() {
        let config = config();
        assert_eq!(config["process"]["args"], json!(["/dunnage", "probe", "--once"]));
        assert_eq!(config["process"]["capabilities"]["bounding"].as_array().unwrap().len(), 14);
        assert_eq!(config["process"]["capabilities"].get("ambient"), None);
        assert_eq!(config["process"]["noNewPrivileges"], true);
        assert_eq!(config["process"].get("rlimits"), None);
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
    fn a_user_namespace_adapts_terminals_and_sys() {
        let mut one = config();
        add_user_namespace(&mut one, (1000, 1000), 1);
        assert_eq!(one["linux"]["gidMappings"], json!([{ "containerID": 0, "hostID": 1000, "size": 1 }]));
        assert_eq!(one["linux"]["namespaces"][6], json!({ "type": "user" }));
        assert!(!one["mounts"][2].to_string().contains("gid="));
        assert_eq!(one["mounts"][3]["type"], "sysfs");

        let mut six = config();
        share_namespace(&mut six, "network");
        add_user_namespace(&mut six, (1000, 1000), 6);
        assert!(six["mounts"][2].to_string().contains("gid=5"));
        assert_eq!(six["mounts"][3]["type"], "bind");
    }
}
