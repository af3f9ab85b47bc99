//! Podman through its command line: what is particular to an engine without a daemon.

use std::path::PathBuf;

use serde_json::Value;

use super::component::ask;
use super::engine::{self, Engine};
use super::spec::{Key, Values};
use super::{Component, Defaults, Facts, Kind, Layer, Place, Spec, Subject, Unavailable, on_path};
use crate::sys::limits;

static KEYS: [Key; 12] = [
    Key {
        name: "net",
        values: Values::OneOf(&["none", "bridge", "host", "slirp4netns", "pasta"]),
        meaning: "the network; `bridge` for root, `slirp4netns` or `pasta` for others",
        default: None,
    },
    Key {
        name: "log",
        values: Values::OneOf(&["default", "none"]),
        meaning: "the log driver",
        default: Some("default"),
    },
    Key {
        name: "seccomp",
        values: Values::OneOf(&["default", "off"]),
        meaning: "the system call filter",
        default: Some("default"),
    },
    Key {
        name: "pid",
        values: Values::OneOf(&["private", "host"]),
        meaning: "the process id namespace",
        default: Some("private"),
    },
    Key {
        name: "userns",
        values: Values::OneOf(&["host", "auto"]),
        meaning: "the user namespace",
        default: None,
    },
    Key {
        name: "rm",
        values: Values::OneOf(&["true", "false"]),
        meaning: "`true` (default): the command itself removes the container; the root is then mounted volatile",
        default: Some("true"),
    },
    Key {
        name: "tty",
        values: Values::OneOf(&["true", "false"]),
        meaning: "whether the container gets a terminal",
        default: Some("false"),
    },
    Key { name: "cpus", values: Values::Number, meaning: "a CPU limit", default: None },
    Key { name: "memory", values: Values::Size, meaning: "a memory limit", default: None },
    Key {
        name: "image",
        values: Values::Text("small, or an image that the engine has"),
        meaning: "`small` (default): the probe and nothing else",
        default: Some("small"),
    },
    Key { name: "bin", values: Values::Path, meaning: "an own build of podman", default: None },
    Key {
        name: "client",
        values: Values::OneOf(&["cli"]),
        meaning: "how the engine is asked: its command line",
        default: Some("cli"),
    },
];

/// The kind `podman`.
pub static KIND: Kind = Kind {
    name: "podman",
    layer: Layer::Engine,
    meaning: "Podman through its command line; `podman+RUNTIME` for any runtime that is installed",
    keys: &KEYS,
    defaults,
    build,
    sweep: |_, company| engine::sweep(find(&Spec::plain("podman")), company),
};

fn defaults() -> Defaults {
    let with_runc = Spec { runtime: Some("runc".into()), ..Spec::plain("podman") };
    let as_installed = vec![Spec::plain("podman"), with_runc];
    let equalised = as_installed.iter().map(|spec| spec.with(&[("net", "none"), ("log", "none")])).collect();
    Defaults { as_installed, equalised }
}

fn build(spec: &Spec, _: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    find(spec).map(|engine| Box::new(engine) as Box<dyn Subject>)
}

/// Finds podman and asks it what it is.
pub fn find(spec: &Spec) -> Result<Engine, Unavailable> {
    let client = match spec.get("bin") {
        Some(path) => PathBuf::from(path),
        None => on_path("podman").ok_or_else(|| {
            Unavailable::because("not installed").with_remedy("install the package `podman`")
        })?,
    };
    let mut global = Vec::new();
    if let Some(runtime) = &spec.runtime {
        if on_path(runtime).is_none() {
            return Err(Unavailable::because(format!("the runtime `{runtime}` is not installed"))
                .with_remedy(format!("install the package `{runtime}`")));
        }
        global.extend(["--runtime".to_owned(), runtime.clone()]);
    }
    let mut arguments: Vec<&str> = global.iter().map(String::as_str).collect();
    arguments.extend(["info", "--format", "json"]);
    let info: Value = serde_json::from_slice(&ask(&client, &arguments)?)
        .map_err(|error| Unavailable::because(format!("`podman info` answered nonsense: {error}")))?;
    let text = |pointer: &str| info.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let runtime_path = Some(text("/host/ociRuntime/path")).filter(|path| !path.is_empty()).map(PathBuf::from);

    let mut components = vec![Component::asked("client", &client)?];
    let parts = [
        ("runtime", runtime_path.clone()),
        ("monitor", Some(PathBuf::from(text("/host/conmon/path")))),
        (
            "network",
            on_path(&text("/host/networkBackend")).or_else(|| library_program(&text("/host/networkBackend"))),
        ),
    ];
    for (role, path) in parts {
        if let Some(path) = path.filter(|path| path.is_file()) {
            components.push(Component::asked(role, &path)?);
        }
    }
    let notes = [
        ("storage driver", text("/store/graphDriverName")),
        ("cgroup manager", text("/host/cgroupManager")),
        ("network backend", text("/host/networkBackend")),
        ("graph root", text("/store/graphRoot")),
        ("rootless", info.pointer("/host/security/rootless").map(Value::to_string).unwrap_or_default()),
    ];
    let driver = text("/store/graphDriverName");
    Ok(Engine {
        spec: spec.clone(),
        client,
        global,
        always: limits_that_podman_may_set(),
        daemons: Ok(Vec::new()),
        runtime: runtime_path,
        seccomp_by_default: info.pointer("/host/security/seccompEnabled") == Some(&Value::Bool(true)),
        root: if driver == "overlay" { &["overlay", "fuse.fuse-overlayfs", "fuse"] } else { &[] },
        facts: Facts {
            components,
            runtime: Some(text("/host/ociRuntime/name")),
            notes: notes.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        },
        image: None,
        standing: None,
    })
}

/// Network backends lie beside podman's other helpers, not on the search path.
fn library_program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/lib/podman", "/usr/libexec/podman", "/usr/local/libexec/podman"];
    places.iter().map(|place| PathBuf::from(place).join(name)).find(|path| path.is_file())
}

/// Podman raises the limits of open files and processes by default, which fails for root without
/// CAP_SYS_RESOURCE. There the limits in force are asked for instead; for processes no more than
/// the kernel has ids, to which podman lowers its own limit before it calls the runtime.
fn limits_that_podman_may_set() -> Vec<String> {
    let is_root = crate::sys::raw::user_and_group().0 == 0;
    if !is_root || limits::may_be_raised() {
        return Vec::new();
    }
    let option = |name: &str, hard: u64| ["--ulimit".to_owned(), format!("{name}={hard}:{hard}")];
    [option("nofile", limits::open_files()), option("nproc", limits::processes().min(limits::process_ids()))]
        .concat()
}
