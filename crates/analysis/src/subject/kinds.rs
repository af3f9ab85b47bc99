//! Every kind of subject as plain data: its name, its layer, and the keys that it understands. How a subject of the
//! kind is found and started is the program's business, and stands beside its `subject`.

use super::Layer;
use super::spec::{Key, Spec, SpecError, Values};
use crate::text::{listed, meant};

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

impl Kind {
    const fn of(name: &'static str, layer: Layer, keys: &'static [Key], meaning: &'static str) -> Kind {
        Kind { name, layer, meaning, keys }
    }
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
        let names = || shown().map(|kind| kind.name);
        let (name, meant, valid) = (&spec.name, meant(&spec.name, names()), listed(names(), ", "));
        return Err(SpecError(format!("there is no subject `{name}`\n\nhint: {meant}subjects are {valid}")));
    };
    if let (Some(runtime), false) = (&spec.runtime, kind.layer == Layer::Engine) {
        return Err(SpecError(format!(
            "`{}` does not take a runtime\n\nhint: engines do: `docker+{runtime}`, `podman+{runtime}`; or name `{runtime}` itself",
            spec.name
        )));
    }
    spec.check_keys(kind.keys)?;
    Ok(kind)
}

/// The levels of a scripted factor.
const LEVELS: Values = Values::OneOf(&["low", "high"]);

/// The key that chooses.
const IMAGE_ROOT: Key = Key::of("image", Values::Text("small, fat, or an image that docker or podman has"))
    .by_default("small")
    .meaning(
        "`small` (default): the probe and nothing else; `fat`: 10,000 files more, some 440 MB; any \
         other image is exported by docker or podman once",
    );

/// The key for CPU time.
const CPUS: Key = Key::of("cpus", Values::Cpus)
    .by_default("none")
    .meaning("a CPU limit: so many CPUs' time in each period of 100 ms; `none` (default): no limit");

/// The key for what of it may be saved up.
const BURST: Key = Key::of("burst", Values::Duration).meaning(
    "with `cpus`: how much CPU time that was not used may be saved up (Linux from 5.14 on), no more \
     than the quota of a period",
);

/// The keys for namespaces of the floor and of runtimes alike.
const NET: Key = Key::choice("net", &["none", "host"])
    .meaning("`none` (default): a new network namespace with loopback only");
const PID: Key = Key::choice("pid", &["private", "host"])
    .meaning("`private` (default): a process id namespace of its own");

/// The key for another build of a runtime.
const BIN_OF_RUNTIME: Key = Key::of("bin", Values::Path)
    .meaning("an own build of the runtime; without it the first on the search path");

/// What docker and podman understand alike.
const SECCOMP: Key = Key::choice("seccomp", &["default", "off"]).meaning("the system call filter");
const PID_OF_ENGINE: Key = Key::choice("pid", &["private", "host"]).meaning("the process id namespace");
const TTY: Key = Key::choice("tty", &["true", "false"])
    .by_default("false")
    .meaning("whether the container gets a terminal");
const MEMORY: Key = Key::of("memory", Values::Size).meaning("a memory limit");
const IMAGE_OF_ENGINE: Key = Key::of("image", Values::Text("small, fat, or an image that the engine has"))
    .by_default("small")
    .meaning("`small` (default): the probe and nothing else; `fat`: 13 layers, 10,000 files, some 440 MB");

static BARE_KEYS: [Key; 3] = [
    Key::of("image", Values::Text("an image that docker or podman has")).meaning(
        "an image whose unpacked root is the process's root, so that it runs the same files as a \
         container; without it, the host's own",
    ),
    CPUS,
    BURST,
];

static FLOOR_KEYS: [Key; 15] = [
    IMAGE_ROOT,
    CPUS,
    BURST,
    NET,
    Key::choice("seccomp", &["default", "off"]).meaning(
        "`default`: the verdicts of the profile that the engine here hands to its runtime, else of \
         Docker's default one",
    ),
    PID,
    Key::choice("userns", &["host", "private"]).meaning(
        "`host` (default): no user namespace, where we are root; `private`: one in which we are root \
         and nobody else exists",
    ),
    Key::choice("mounts", &["private", "fsmount", "open_tree", "host"]).meaning(
        "`private` (default): a mount namespace with a root and filesystems of its own, by `mount` and `pivot_root`; `fsmount`: \
         the same by `fsopen`, `fsmount` and `move_mount` (Linux from 5.12 on); `open_tree`: in a namespace that begins with its \
         root alone, by `OPEN_TREE_NAMESPACE` (Linux from 7.0 on); `host`: none of these, the program runs on the host's root",
    ),
    Key::choice("uts", &["private", "host"]).meaning("`private` (default): a host name of its own"),
    Key::choice("ipc", &["private", "host"])
        .meaning("`private` (default): a namespace of inter-process communication of its own"),
    Key::choice("cgroup", &["own", "procs", "tasks", "born", "host"]).meaning(
        "`own` (default): a cgroup in every hierarchy, entered in the cheapest way: through `tasks` in version 1, by birth \
         (`CLONE_INTO_CGROUP`) in version 2; `procs`: by a write to `cgroup.procs` in both, as runtimes do; `tasks`, `born`: \
         only the one of these, and a write to `cgroup.procs` in the other version; `host`: it stays in the cgroups of whoever \
         starts it",
    ),
    Key::choice("cgroupns", &["private", "host"])
        .meaning("`private` (default): a cgroup namespace of its own"),
    Key::choice("overlay", &["on", "off"]).meaning(
        "`on` (default): an overlay over the image as root; `off`: a plain directory with what the \
         small image holds, or a larger image itself",
    ),
    Key::choice("capabilities", &["default", "all"])
        .meaning("`default`: Docker's fourteen; `all`: those of whoever starts it"),
    Key::choice("no_new_privs", &["on", "off"])
        .meaning("`on` (default): no program gains privileges by being executed"),
];

static RUNTIME_KEYS: [Key; 7] = [
    IMAGE_ROOT,
    CPUS,
    BURST,
    BIN_OF_RUNTIME,
    NET,
    Key::choice("seccomp", &["default", "off"]).meaning(
        "`default`: the profile that the engine here hands to its runtime, else Docker's default one",
    ),
    PID,
];

static RUNSC_KEYS: [Key; 3] = [
    BIN_OF_RUNTIME,
    Key::choice("net", &["none"]).meaning("`none` (default): loopback only, of gVisor's own network stack"),
    Key::choice("seccomp", &["default", "off"])
        .meaning("`default`: the same as of `crun`, applied by the kernel inside"),
];

static CONTAINERD_KEYS: [Key; 10] = [
    Key::choice("net", &["none", "host"]).meaning(
        "`none` (default): a new network namespace with loopback only, which is all that `ctr` gives",
    ),
    Key::choice("log", &["none"]).meaning("`none` (default): `ctr` has no log driver and keeps no log"),
    Key::choice("seccomp", &["default", "off"])
        .by_default("off")
        .meaning("the system call filter; `off` (default): `ctr` applies none unless it is asked to"),
    Key::choice("snapshotter", &["overlayfs", "native"])
        .meaning("what makes the root; `native` copies files"),
    CPUS,
    MEMORY,
    Key::of("image", Values::Text("small, or an image in containerd's namespace `dunnage`"))
        .by_default("small")
        .meaning("`small` (default): the probe and nothing else"),
    Key::of("bin", Values::Path).meaning("an own build of `ctr`"),
    Key::of("host", Values::Text("a socket such as /run/containerd/containerd.sock"))
        .meaning("another daemon; without it the system's own, else the one that a dockerd started"),
    Key::choice("client", &["ctr"]).meaning("how containerd is asked: its own command line"),
];

static DOCKER_KEYS: [Key; 13] = [
    Key::choice("net", &["none", "bridge", "host"])
        .without_default()
        .meaning("the network; `bridge` unless the daemon says otherwise"),
    Key::choice("log", &["default", "none"])
        .meaning("the log driver; `json-file` unless the daemon says otherwise"),
    SECCOMP,
    PID_OF_ENGINE,
    Key::choice("userns", &["host"]).without_default().meaning("`host` switches a daemon-wide remapping off"),
    Key::choice("rm", &["true", "false"]).meaning(
        "`true` (default): the command itself removes the container; with `client=api` its last request \
         does",
    ),
    TTY,
    CPUS,
    MEMORY,
    IMAGE_OF_ENGINE,
    Key::of("bin", Values::Path).meaning("an own build of the client"),
    Key::of("host", Values::Text("a socket in double quotes, such as \"unix:///run/docker.sock\""))
        .meaning("another daemon"),
    Key::choice("client", &["cli", "api"])
        .meaning("how the engine is asked: by its command line, or by dunnage itself over its API"),
];

static PODMAN_KEYS: [Key; 13] = [
    Key::choice("net", &["none", "bridge", "host", "slirp4netns", "pasta"])
        .without_default()
        .meaning("the network; `bridge` for root, `slirp4netns` or `pasta` for others"),
    Key::choice("log", &["default", "none"]).meaning("the log driver"),
    SECCOMP,
    PID_OF_ENGINE,
    Key::choice("userns", &["host", "auto"]).without_default().meaning("the user namespace"),
    Key::of("rootless", Values::Text("a user other than root")).meaning(
        "an ordinary user as whom podman is started, with the limits and environment of a login of \
         theirs; needs root. Started by an ordinary user, dunnage runs podman as that user anyway",
    ),
    Key::choice("rm", &["true", "false"]).meaning(
        "`true` (default): the command itself removes the container, and the root is mounted volatile; \
         with `client=api` its last request does, and it is not",
    ),
    TTY,
    CPUS,
    MEMORY,
    IMAGE_OF_ENGINE,
    Key::of("bin", Values::Path).meaning("an own build of podman"),
    Key::choice("client", &["cli", "api"]).meaning(
        "how the engine is asked: by its command line, or by dunnage itself over the API of `podman \
         system service`",
    ),
];

static FAKE_KEYS: [Key; 12] = [
    Key::of("a", LEVELS).meaning("a factor"),
    Key::of("b", LEVELS).meaning("a factor"),
    Key::of("c", LEVELS).meaning("a factor"),
    Key::of("effects", Values::Text("times such as a=20ms;bc=-5ms"))
        .meaning("what `returned` takes more when all of the named factors are high"),
    Key::of("time", Values::Duration).meaning("the median of `returned`"),
    Key::of("noise", Values::Number).meaning("the spread of its logarithm, in percent"),
    Key::of("settles", Values::Number)
        .meaning("in how many launches, the first ones, that spread is ten times as wide"),
    Key::of("drift", Values::Number)
        .meaning("how much slower each launch is than the one before, in percent"),
    Key::of("spike", Values::Number).meaning("every so many launches take ten times as long"),
    Key::of("fail", Values::Number).meaning("every so many launches fail"),
    Key::choice("treatment", &["wrong"]).without_default().meaning("every launch fails its treatment"),
    Key::of("hang", Values::Number).meaning("this launch and all after it time out"),
];

/// The kind `bare`.
pub static BARE: Kind = Kind::of("bare", Layer::Bare, &BARE_KEYS, "the probe as a process on the host");

/// The kind `floor`.
pub static FLOOR: Kind = Kind::of(
    "floor",
    Layer::Floor,
    &FLOOR_KEYS,
    "a container made of bare system calls: what the kernel alone charges",
);

/// The kind `crun`.
pub static CRUN: Kind =
    Kind::of("crun", Layer::Runtime, &RUNTIME_KEYS, "the OCI runtime crun, from a bundle");

/// The kind `runc`.
pub static RUNC: Kind =
    Kind::of("runc", Layer::Runtime, &RUNTIME_KEYS, "the OCI runtime runc, from a bundle");

/// The kind `youki`.
pub static YOUKI: Kind =
    Kind::of("youki", Layer::Runtime, &RUNTIME_KEYS, "the OCI runtime youki, from a bundle");

/// The kind `runsc`.
pub static RUNSC: Kind = Kind::of(
    "runsc",
    Layer::Runtime,
    &RUNSC_KEYS,
    "gVisor's OCI runtime, from a bundle: the container runs on a kernel of its own; it takes no `cpus`, \
     since inside no quota is to be seen that could be read back",
);

/// The kind `containerd`.
pub static CONTAINERD: Kind = Kind::of(
    "containerd",
    Layer::Engine,
    &CONTAINERD_KEYS,
    "containerd through `ctr`; `containerd+RUNTIME` for any installed runtime that behaves as runc does",
);

/// The kind `docker`.
pub static DOCKER: Kind = Kind::of(
    "docker",
    Layer::Engine,
    &DOCKER_KEYS,
    "Docker through its command line or API; `docker+RUNTIME` for a runtime that the daemon knows",
);

/// The kind `podman`.
pub static PODMAN: Kind = Kind::of(
    "podman",
    Layer::Engine,
    &PODMAN_KEYS,
    "Podman through its command line or API; `podman+RUNTIME` for any runtime that is installed",
);

/// The kind `fake`.
pub static FAKE: Kind = Kind::of("fake", Layer::Engine, &FAKE_KEYS, "follows a script");
