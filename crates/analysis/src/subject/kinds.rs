//! Every kind of subject as plain data: its name, its layer, and the keys that it understands. How a subject of the
//! kind is found and started is the program's business, and stands beside its `subject`.

// long: a table.

use super::Layer;
use super::spec::{Key, Spec, SpecError, Values};

/// What can be said of a kind of subject without a machine.
#[derive(Debug)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// One line for people.
    pub meaning: &'static str,
    /// The keys that it understands.
    pub keys: &'static [Key],
}

/// Every kind of subject, the nearest to the kernel first.
pub static ALL: [&Kind; 10] =
    [&BARE, &FLOOR, &CRUN, &RUNC, &YOUKI, &RUNSC, &CONTAINERD, &DOCKER, &PODMAN, &FAKE];

/// The kinds that people are told about.
pub fn shown() -> impl Iterator<Item = &'static Kind> {
    ALL.into_iter().filter(|kind| kind.name != FAKE.name)
}

/// The kind of a specification, after checking its name, runtime and keys.
pub fn of(spec: &Spec) -> Result<&'static Kind, SpecError> {
    let Some(kind) = ALL.into_iter().find(|kind| kind.name == spec.name) else {
        let names: Vec<_> = shown().map(|kind| kind.name).collect();
        return Err(SpecError::UnknownName { name: spec.name.clone(), valid: names.join(", ") });
    };
    if let (Some(runtime), false) = (&spec.runtime, kind.layer == Layer::Engine) {
        return Err(SpecError::NoRuntime { name: spec.name.clone(), runtime: runtime.clone() });
    }
    spec.check_keys(kind.keys)?;
    Ok(kind)
}

/// The levels of a scripted factor.
const LEVELS: Values = Values::OneOf(&["low", "high"]);

/// The key that chooses.
const IMAGE_ROOT: Key = Key {
    name: "image",
    values: Values::Text("small, fat, or an image that docker or podman has"),
    meaning: "`small` (default): the probe and nothing else; `fat`: 10,000 files more, some 440 MB; any other \
              image is exported by docker or podman once",
    default: Some("small"),
};

/// The key for CPU time.
const CPUS: Key = Key {
    name: "cpus",
    values: Values::Cpus,
    meaning: "a CPU limit: so many CPUs' time in each period of 100 ms; `none` (default): no limit",
    default: Some("none"),
};

/// The key for what of it may be saved up.
const BURST: Key = Key {
    name: "burst",
    values: Values::Duration,
    meaning: "with `cpus`: how much CPU time that was not used may be saved up (Linux from 5.14 on), no more than the quota of a period",
    default: None,
};

static BARE_KEYS: [Key; 3] = [
    Key {
        name: "image",
        values: Values::Text("an image that docker or podman has"),
        meaning: "an image whose unpacked root is the process's root, so that it runs the same files as a container; \
                  without it, the host's own",
        default: None,
    },
    CPUS,
    BURST,
];

static FLOOR_KEYS: [Key; 15] = [
    IMAGE_ROOT,
    CPUS,
    BURST,
    Key {
        name: "net",
        values: Values::OneOf(&["none", "host"]),
        meaning: "`none` (default): a new network namespace with loopback only",
        default: Some("none"),
    },
    Key {
        name: "seccomp",
        values: Values::OneOf(&["default", "off"]),
        meaning: "`default`: the verdicts of the profile that the engine here hands to its runtime, else of Docker's default one",
        default: Some("default"),
    },
    Key {
        name: "pid",
        values: Values::OneOf(&["private", "host"]),
        meaning: "`private` (default): a process id namespace of its own",
        default: Some("private"),
    },
    Key {
        name: "userns",
        values: Values::OneOf(&["host", "private"]),
        meaning: "`host` (default): no user namespace, where we are root; `private`: one in which we are root and nobody \
                  else exists",
        default: Some("host"),
    },
    Key {
        name: "mounts",
        values: Values::OneOf(&["private", "host"]),
        meaning: "`private` (default): a mount namespace with a root and filesystems of its own; `host`: none of these, \
                  the program runs on the host's root",
        default: Some("private"),
    },
    Key {
        name: "uts",
        values: Values::OneOf(&["private", "host"]),
        meaning: "`private` (default): a host name of its own",
        default: Some("private"),
    },
    Key {
        name: "ipc",
        values: Values::OneOf(&["private", "host"]),
        meaning: "`private` (default): a namespace of inter-process communication of its own",
        default: Some("private"),
    },
    Key {
        name: "cgroup",
        values: Values::OneOf(&["own", "host"]),
        meaning: "`own` (default): a cgroup in every hierarchy; `host`: it stays in those of whoever starts it",
        default: Some("own"),
    },
    Key {
        name: "cgroupns",
        values: Values::OneOf(&["private", "host"]),
        meaning: "`private` (default): a cgroup namespace of its own",
        default: Some("private"),
    },
    Key {
        name: "overlay",
        values: Values::OneOf(&["on", "off"]),
        meaning: "`on` (default): an overlay over the image as root; `off`: a plain directory with what the small image holds, or a larger image itself",
        default: Some("on"),
    },
    Key {
        name: "capabilities",
        values: Values::OneOf(&["default", "all"]),
        meaning: "`default`: Docker's fourteen; `all`: those of whoever starts it",
        default: Some("default"),
    },
    Key {
        name: "no_new_privs",
        values: Values::OneOf(&["on", "off"]),
        meaning: "`on` (default): no program gains privileges by being executed",
        default: Some("on"),
    },
];

static RUNTIME_KEYS: [Key; 7] = [
    IMAGE_ROOT,
    CPUS,
    BURST,
    Key {
        name: "bin",
        values: Values::Path,
        meaning: "an own build of the runtime; without it the first on the search path",
        default: None,
    },
    Key {
        name: "net",
        values: Values::OneOf(&["none", "host"]),
        meaning: "`none` (default): a new network namespace with loopback only",
        default: Some("none"),
    },
    Key {
        name: "seccomp",
        values: Values::OneOf(&["default", "off"]),
        meaning: "`default`: the profile that the engine here hands to its runtime, else Docker's default one",
        default: Some("default"),
    },
    Key {
        name: "pid",
        values: Values::OneOf(&["private", "host"]),
        meaning: "`private` (default): a process id namespace of its own",
        default: Some("private"),
    },
];

static RUNSC_KEYS: [Key; 3] = [
    Key {
        name: "bin",
        values: Values::Path,
        meaning: "an own build of the runtime; without it the first on the search path",
        default: None,
    },
    Key {
        name: "net",
        values: Values::OneOf(&["none"]),
        meaning: "`none` (default): loopback only, of gVisor's own network stack",
        default: Some("none"),
    },
    Key {
        name: "seccomp",
        values: Values::OneOf(&["default", "off"]),
        meaning: "`default`: the same as of `crun`, applied by the kernel inside",
        default: Some("default"),
    },
];

static CONTAINERD_KEYS: [Key; 10] = [
    Key {
        name: "net",
        values: Values::OneOf(&["none", "host"]),
        meaning: "`none` (default): a new network namespace with loopback only, which is all that `ctr` gives",
        default: Some("none"),
    },
    Key {
        name: "log",
        values: Values::OneOf(&["none"]),
        meaning: "`none` (default): `ctr` has no log driver and keeps no log",
        default: Some("none"),
    },
    Key {
        name: "seccomp",
        values: Values::OneOf(&["default", "off"]),
        meaning: "the system call filter; `off` (default): `ctr` applies none unless it is asked to",
        default: Some("off"),
    },
    Key {
        name: "snapshotter",
        values: Values::OneOf(&["overlayfs", "native"]),
        meaning: "what makes the root; `native` copies files",
        default: Some("overlayfs"),
    },
    CPUS,
    Key { name: "memory", values: Values::Size, meaning: "a memory limit", default: None },
    Key {
        name: "image",
        values: Values::Text("small, or an image in containerd's namespace `dunnage`"),
        meaning: "`small` (default): the probe and nothing else",
        default: Some("small"),
    },
    Key { name: "bin", values: Values::Path, meaning: "an own build of `ctr`", default: None },
    Key {
        name: "host",
        values: Values::Text("a socket such as /run/containerd/containerd.sock"),
        meaning: "another daemon; without it the system's own, else the one that a dockerd started",
        default: None,
    },
    Key {
        name: "client",
        values: Values::OneOf(&["ctr"]),
        meaning: "how containerd is asked: its own command line",
        default: Some("ctr"),
    },
];

static DOCKER_KEYS: [Key; 13] = [
    Key {
        name: "net",
        values: Values::OneOf(&["none", "bridge", "host"]),
        meaning: "the network; `bridge` unless the daemon says otherwise",
        default: None,
    },
    Key {
        name: "log",
        values: Values::OneOf(&["default", "none"]),
        meaning: "the log driver; `json-file` unless the daemon says otherwise",
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
        values: Values::OneOf(&["host"]),
        meaning: "`host` switches a daemon-wide remapping off",
        default: None,
    },
    Key {
        name: "rm",
        values: Values::OneOf(&["true", "false"]),
        meaning: "`true` (default): the command itself removes the container; with `client=api` its last request does",
        default: Some("true"),
    },
    Key {
        name: "tty",
        values: Values::OneOf(&["true", "false"]),
        meaning: "whether the container gets a terminal",
        default: Some("false"),
    },
    CPUS,
    Key { name: "memory", values: Values::Size, meaning: "a memory limit", default: None },
    Key {
        name: "image",
        values: Values::Text("small, fat, or an image that the engine has"),
        meaning: "`small` (default): the probe and nothing else; `fat`: 13 layers, 10,000 files, some 440 MB",
        default: Some("small"),
    },
    Key { name: "bin", values: Values::Path, meaning: "an own build of the client", default: None },
    Key {
        name: "host",
        values: Values::Text("a socket such as unix:///run/docker.sock"),
        meaning: "another daemon",
        default: None,
    },
    Key {
        name: "client",
        values: Values::OneOf(&["cli", "api"]),
        meaning: "how the engine is asked: by its command line, or by dunnage itself over its API",
        default: Some("cli"),
    },
];

static PODMAN_KEYS: [Key; 13] = [
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
        name: "rootless",
        values: Values::Text("a user other than root"),
        meaning: "an ordinary user as whom podman is started, with the limits and environment of a login of theirs; needs root. Started by an ordinary user, dunnage runs podman as that user anyway",
        default: None,
    },
    Key {
        name: "rm",
        values: Values::OneOf(&["true", "false"]),
        meaning: "`true` (default): the command itself removes the container, and the root is mounted volatile; with `client=api` its last request does, and it is not",
        default: Some("true"),
    },
    Key {
        name: "tty",
        values: Values::OneOf(&["true", "false"]),
        meaning: "whether the container gets a terminal",
        default: Some("false"),
    },
    CPUS,
    Key { name: "memory", values: Values::Size, meaning: "a memory limit", default: None },
    Key {
        name: "image",
        values: Values::Text("small, fat, or an image that the engine has"),
        meaning: "`small` (default): the probe and nothing else; `fat`: 13 layers, 10,000 files, some 440 MB",
        default: Some("small"),
    },
    Key { name: "bin", values: Values::Path, meaning: "an own build of podman", default: None },
    Key {
        name: "client",
        values: Values::OneOf(&["cli", "api"]),
        meaning: "how the engine is asked: by its command line, or by dunnage itself over the API of `podman system service`",
        default: Some("cli"),
    },
];

static FAKE_KEYS: [Key; 11] = [
    Key { name: "a", values: LEVELS, meaning: "a factor", default: None },
    Key { name: "b", values: LEVELS, meaning: "a factor", default: None },
    Key { name: "c", values: LEVELS, meaning: "a factor", default: None },
    Key {
        name: "effects",
        values: Values::Text("times such as a=20ms;bc=-5ms"),
        meaning: "what `returned` takes more when all of the named factors are high",
        default: None,
    },
    Key { name: "time", values: Values::Duration, meaning: "the median of `returned`", default: None },
    Key {
        name: "noise",
        values: Values::Number,
        meaning: "the spread of its logarithm, in percent",
        default: None,
    },
    Key {
        name: "drift",
        values: Values::Number,
        meaning: "how much slower each launch is than the one before, in percent",
        default: None,
    },
    Key {
        name: "spike",
        values: Values::Number,
        meaning: "every so many launches take ten times as long",
        default: None,
    },
    Key { name: "fail", values: Values::Number, meaning: "every so many launches fail", default: None },
    Key {
        name: "treatment",
        values: Values::OneOf(&["wrong"]),
        meaning: "every launch fails its treatment",
        default: None,
    },
    Key {
        name: "hang",
        values: Values::Number,
        meaning: "this launch and all after it time out",
        default: None,
    },
];

/// The kind `bare`.
pub static BARE: Kind = Kind {
    name: "bare",
    layer: Layer::Bare,
    meaning: "the probe as a process on the host",
    keys: &BARE_KEYS,
};

/// The kind `floor`.
pub static FLOOR: Kind = Kind {
    name: "floor",
    layer: Layer::Floor,
    meaning: "a container made of bare system calls: what the kernel alone charges",
    keys: &FLOOR_KEYS,
};

/// The kind `crun`.
pub static CRUN: Kind = Kind {
    name: "crun",
    layer: Layer::Runtime,
    meaning: "the OCI runtime crun, from a bundle",
    keys: &RUNTIME_KEYS,
};

/// The kind `runc`.
pub static RUNC: Kind = Kind {
    name: "runc",
    layer: Layer::Runtime,
    meaning: "the OCI runtime runc, from a bundle",
    keys: &RUNTIME_KEYS,
};

/// The kind `youki`.
pub static YOUKI: Kind = Kind {
    name: "youki",
    layer: Layer::Runtime,
    meaning: "the OCI runtime youki, from a bundle",
    keys: &RUNTIME_KEYS,
};

/// The kind `runsc`.
pub static RUNSC: Kind = Kind {
    name: "runsc",
    layer: Layer::Runtime,
    meaning: "gVisor's OCI runtime, from a bundle: the container runs on a kernel of its own; it takes no `cpus`, since inside no quota is to be seen that could be read back",
    keys: &RUNSC_KEYS,
};

/// The kind `containerd`.
pub static CONTAINERD: Kind = Kind {
    name: "containerd",
    layer: Layer::Engine,
    meaning: "containerd through `ctr`; `containerd+RUNTIME` for any installed runtime that behaves as runc does",
    keys: &CONTAINERD_KEYS,
};

/// The kind `docker`.
pub static DOCKER: Kind = Kind {
    name: "docker",
    layer: Layer::Engine,
    meaning: "Docker through its command line or API; `docker+RUNTIME` for a runtime that the daemon knows",
    keys: &DOCKER_KEYS,
};

/// The kind `podman`.
pub static PODMAN: Kind = Kind {
    name: "podman",
    layer: Layer::Engine,
    meaning: "Podman through its command line or API; `podman+RUNTIME` for any runtime that is installed",
    keys: &PODMAN_KEYS,
};

/// The kind `fake`.
pub static FAKE: Kind =
    Kind { name: "fake", layer: Layer::Engine, meaning: "follows a script", keys: &FAKE_KEYS };
