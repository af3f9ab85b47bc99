//! Every kind of subject as plain data: its name, its layer, and its keys. How the program finds and starts a
//! subject of the kind is in its own `subject` module.

use super::Layer;
use super::spec::{Key, Spec, SpecError, Values};
use crate::text::{listed, meant};

/// Everything about a kind of subject that needs no machine.
#[derive(Debug)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// One line for users.
    pub meaning: &'static str,
    /// The keys that it has.
    pub keys: &'static [Key],
    /// The programs that it keeps or starts for its containers.
    pub helpers: &'static [Helper],
}

/// A program that an engine keeps or starts for its containers, other than its client.
#[derive(Debug, PartialEq, Eq)]
pub struct Helper {
    /// The beginning of its name.
    pub name: &'static str,
    /// What it does.
    pub duty: Duty,
    /// As whom it runs.
    pub runs: Runs,
}

/// Its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// As the caller of the engine, or as a user of the system.
    AsCaller,
    /// The same, and root's gives up its rights.
    WithoutRights,
    /// For rootless containers alone.
    ForUsers,
}

/// What a helper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// Serves the client, for all containers.
    Daemon,
    /// Is the parent of a container's first process, and tells how it ended.
    Shim,
    /// The same, and holds the sockets of published ports.
    Monitor,
    /// Forwards published ports, and does nothing else.
    Ports,
    /// Is a network in user space.
    Network,
    /// Makes networks.
    Setup,
    /// Answers names.
    Names,
    /// Is a filesystem in user space.
    Storage,
    /// Holds namespaces.
    Namespaces,
    /// Is a kernel in user space, or opens files for one.
    Kernel,
}

impl Duty {
    /// Whether it may carry packets of containers or answer names.
    pub fn is_on_the_way(self) -> bool {
        matches!(self, Duty::Ports | Duty::Network | Duty::Names | Duty::Monitor)
    }

    /// Whether it is the parent of containers.
    pub fn has_containers(self) -> bool {
        matches!(self, Duty::Shim | Duty::Monitor)
    }
}

const fn helper(duty: Duty, name: &'static str) -> Helper {
    Helper { name, duty, runs: Runs::AsCaller }
}

impl Helper {
    const fn runs_as(self, runs: Runs) -> Helper {
        Helper { runs, ..self }
    }
}

impl Kind {
    const fn of(name: &'static str, layer: Layer, keys: &'static [Key], meaning: &'static str) -> Kind {
        Kind { name, layer, meaning, keys, helpers: &[] }
    }

    const fn helped_by(self, helpers: &'static [Helper]) -> Kind {
        Kind { helpers, ..self }
    }
}

/// Every kind of subject, the nearest to the kernel first.
pub static ALL: [&Kind; 10] =
    [&BARE, &FLOOR, &CRUN, &RUNC, &YOUKI, &RUNSC, &CONTAINERD, &DOCKER, &PODMAN, &FAKE];

/// The kinds that users see.
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
            "`{}` does not take a runtime\n\nhint: engines do: `docker+{runtime}`, `podman+{runtime}`; or use `{runtime}` as the subject",
            spec.name
        )));
    }
    spec.check_keys(kind.keys)?;
    if let (Some(net @ ("none" | "host")), 1..) = (spec.get("net"), spec.published()) {
        return Err(SpecError(format!(
            "`{}` cannot publish ports with `net={net}`\n\nhint: leave out `net`, or choose a network with a way out, such as \
             `bridge`",
            spec.name
        )));
    }
    Ok(kind)
}

/// The levels of a scripted factor.
const LEVELS: Values = Values::OneOf(&["low", "high"]);

/// The image of the floor and of runtimes.
const IMAGE_ROOT: Key = Key::of("image", Values::Text("small, fat, or an image of docker or podman"))
    .by_default("small")
    .meaning(
        "`small` (default): only the probe; `fat`: 10,000 more files, about 440 MB; dunnage exports any \
         other image once from docker or podman",
    );

/// The limit of CPU time.
const CPUS: Key = Key::of("cpus", Values::Cpus)
    .by_default("none")
    .meaning("CPU limit: the time of so many CPUs in each period of 100 ms; `none` (default): no limit");

/// How much of the limit can be saved up.
const BURST: Key = Key::of("burst", Values::Duration).meaning(
    "with `cpus`: how much unused CPU time can be saved up (Linux 5.14 or newer), at most the quota of a \
     period",
);

/// Limits of its processes, which it otherwise inherits from its engine's daemon or from dunnage.
const ULIMIT: Key = Key::of("ulimit", Values::Ulimits).meaning(
    "resource limits: a number of open files, or docker's form in double quotes, `NAME=SOFT[:HARD]` with commas between \
     them, as in \"nofile=1024:2048,core=0\"; by default those that it inherits",
);

/// The CPUs that it may use.
const CPUSET: Key = Key::of("cpuset", Values::CpuSet)
    .meaning("the CPUs that it may use, by number, as in `0-1` or \"0,2\"; by default all that it inherits");

/// Keys for namespaces of the floor and of runtimes.
const NET: Key = Key::choice("net", &["none", "host"])
    .meaning("`none` (default): a new network namespace with loopback only");
const PID: Key =
    Key::choice("pid", &["private", "host"]).meaning("`private` (default): a new process id namespace");

/// Another build of a runtime.
const BIN_OF_RUNTIME: Key = Key::of("bin", Values::Path)
    .meaning("path of another build of the runtime; by default the first on the search path");

/// Each port can be a process of the engine.
const PUBLISH: Key = Key::of("publish", Values::UpTo(1000)).by_default("0").meaning(
    "how many TCP ports of every container are published at 127.0.0.1, at ports that the engine chooses; `0` \
     (default): none",
);

/// Keys of docker and podman.
const SECCOMP: Key = Key::choice("seccomp", &["default", "off"]).meaning("the system call filter");
const PID_OF_ENGINE: Key = Key::choice("pid", &["private", "host"]).meaning("the process id namespace");
const TTY: Key = Key::choice("tty", &["true", "false"])
    .by_default("false")
    .meaning("whether the container gets a terminal");
const MEMORY: Key = Key::of("memory", Values::Size).meaning("a memory limit");
const IMAGE_OF_ENGINE: Key = Key::of("image", Values::Text("small, fat, or an image of the engine"))
    .by_default("small")
    .meaning("`small` (default): only the probe; `fat`: 13 layers, 10,000 files, about 440 MB");

static BARE_KEYS: [Key; 5] = [
    Key::of("image", Values::Text("an image of docker or podman")).meaning(
        "an image whose unpacked root becomes the process's root, so that it runs the same files as a \
         container; by default the host's root",
    ),
    CPUS,
    BURST,
    CPUSET,
    ULIMIT,
];

static FLOOR_KEYS: [Key; 17] = [
    IMAGE_ROOT,
    CPUS,
    BURST,
    CPUSET,
    ULIMIT,
    NET,
    Key::choice("seccomp", &["default", "off"]).meaning(
        "`default`: a filter with the same effect as the profile that this machine's engine gives its runtime, \
         or else as Docker's default profile",
    ),
    PID,
    Key::choice("userns", &["host", "private"]).meaning(
        "`host` (default): no user namespace, if started by root; `private`: one with root as its only user",
    ),
    Key::choice("mounts", &["private", "fsmount", "open_tree", "host"]).meaning(
        "`private` (default): a mount namespace with its own root and filesystems, by `mount` and `pivot_root`; `fsmount`: \
         the same by `fsopen`, `fsmount` and `move_mount` (Linux 5.12 or newer); `open_tree`: in a namespace that starts with \
         only its root, by `OPEN_TREE_NAMESPACE` (Linux 7.0 or newer); `host`: none of these, the program runs on the host's root",
    ),
    Key::choice("uts", &["private", "host"]).meaning("`private` (default): its own host name"),
    Key::choice("ipc", &["private", "host"])
        .meaning("`private` (default): its own namespace for inter-process communication"),
    Key::choice("cgroup", &["own", "procs", "tasks", "born", "host"]).meaning(
        "`own` (default): a cgroup in every hierarchy, entered in the cheapest way: through `tasks` in version 1, at creation \
         (`CLONE_INTO_CGROUP`) in version 2; `procs`: by writing to `cgroup.procs` in both, as runtimes do; `tasks`, `born`: \
         only one of the cheap ways, and writing to `cgroup.procs` in the other version; `host`: it stays in the cgroups of the \
         process that starts it",
    ),
    Key::choice("cgroupns", &["private", "host"])
        .meaning("`private` (default): its own cgroup namespace"),
    Key::choice("overlay", &["on", "metacopy", "off"]).meaning(
        "`on` (default): an overlay over the image as root; `off`: a plain directory with the contents of \
         the small image, or a larger image itself; `metacopy`: an overlay in which a change of mode or owner copies no data",
    ),
    Key::choice("capabilities", &["default", "all"])
        .meaning("`default`: Docker's fourteen; `all`: those of the process that starts it"),
    Key::choice("no_new_privs", &["on", "off"])
        .meaning("`on` (default): executing a program never adds privileges"),
];

static RUNTIME_KEYS: [Key; 9] = [
    IMAGE_ROOT,
    CPUS,
    BURST,
    CPUSET,
    ULIMIT,
    BIN_OF_RUNTIME,
    NET,
    Key::choice("seccomp", &["default", "off"]).meaning(
        "`default`: the profile that this machine's engine gives its runtime, or else Docker's default profile",
    ),
    PID,
];

static RUNSC_KEYS: [Key; 3] = [
    BIN_OF_RUNTIME,
    Key::choice("net", &["none"]).meaning("`none` (default): only loopback, in gVisor's own network stack"),
    Key::choice("seccomp", &["default", "off"])
        .meaning("`default`: the same as for `crun`, applied by the kernel inside"),
];

static CONTAINERD_KEYS: [Key; 12] = [
    Key::choice("net", &["none", "host"])
        .meaning("`none` (default): a new network namespace with loopback only, all that `ctr` offers"),
    Key::choice("log", &["none"]).meaning("`none` (default): `ctr` has no log driver and keeps no log"),
    Key::choice("seccomp", &["default", "off"])
        .by_default("off")
        .meaning("the system call filter; `off` (default): `ctr` applies none unless asked"),
    Key::choice("snapshotter", &["overlayfs", "native", "erofs"]).meaning(
        "how the root is made; `native` copies files; `erofs`: an overlay over layers that are read-only filesystems in \
         files (containerd 2.1 or newer)",
    ),
    CPUS,
    MEMORY,
    CPUSET,
    ULIMIT,
    Key::of("image", Values::Text("small, or an image in containerd's namespace `dunnage`"))
        .by_default("small")
        .meaning("`small` (default): only the probe"),
    Key::of("bin", Values::Path).meaning("path of another build of `ctr`"),
    Key::of("host", Values::Text("a socket such as /run/containerd/containerd.sock"))
        .meaning("another daemon; by default the system's own, or else the one that a dockerd started"),
    Key::choice("client", &["ctr"]).meaning("how to reach containerd: its own command line"),
];

static DOCKER_KEYS: [Key; 17] = [
    Key::choice(
        "storage",
        &[
            "overlay2",
            "fuse-overlayfs",
            "vfs",
            "btrfs",
            "zfs",
            "containerd",
            "overlay",
            "aufs",
            "devicemapper",
        ],
    )
    .without_default()
    .meaning(
        "the storage driver; by default the daemon's own. If the daemon uses another one, or none runs, root \
         gets a private daemon with this one; `containerd`: the containerd image store (docker 24 or newer); \
         `btrfs`: on a filesystem in a file; the last three are old: docker dropped them in 24.0 or 25.0",
    ),
    Key::choice("net", &["none", "bridge", "host"])
        .without_default()
        .meaning("the network; `bridge` unless the daemon is configured otherwise"),
    PUBLISH,
    Key::choice("log", &["default", "none"])
        .meaning("the log driver; `json-file` unless the daemon is configured otherwise"),
    SECCOMP,
    PID_OF_ENGINE,
    Key::choice("userns", &["host", "remap"]).without_default().meaning(
        "the user namespace; `remap`: root inside is a subordinate id of a user outside (`userns-remap`). If the \
         daemon does not do that, root gets a private daemon that does; `host`: without the daemon's remapping",
    ),
    Key::choice("rm", &["true", "false"]).meaning(
        "`true` (default): the command itself removes the container; with `client=api`, the last request \
         does",
    ),
    TTY,
    CPUS,
    MEMORY,
    CPUSET,
    ULIMIT,
    IMAGE_OF_ENGINE,
    Key::of("bin", Values::Path).meaning("path of another build of the client"),
    Key::of("host", Values::Text("a socket in double quotes, such as \"unix:///run/docker.sock\""))
        .meaning("another daemon"),
    Key::choice("client", &["cli", "api"])
        .meaning("how to reach the engine: through its command line, or from dunnage directly over its API"),
];

static PODMAN_KEYS: [Key; 17] = [
    Key::choice("storage", &["overlay", "fuse-overlayfs", "vfs"]).without_default().meaning(
        "the storage driver; by default that of podman's own store. If the store uses another one, root gets \
         a private store with this one; `overlay` is the kernel's",
    ),
    Key::choice("net", &["none", "bridge", "host", "slirp4netns", "pasta"])
        .without_default()
        .meaning("the network; `bridge` for root, `slirp4netns` or `pasta` for others"),
    PUBLISH,
    Key::choice("log", &["default", "none"]).meaning("the log driver"),
    SECCOMP,
    PID_OF_ENGINE,
    Key::choice("userns", &["host", "auto", "keep-id"]).without_default().meaning(
        "the user namespace; `auto`: one with subordinate ids that no other container has; `keep-id`: the user \
         who starts podman is the same user inside, which some versions refuse to root",
    ),
    Key::of("rootless", Values::Text("a user other than root")).meaning(
        "start podman as this ordinary user, with the limits and environment of a login; needs root. If an \
         ordinary user starts dunnage, podman always runs as that user",
    ),
    Key::choice("rm", &["true", "false"]).meaning(
        "`true` (default): the command itself removes the container, and the root is mounted volatile; \
         with `client=api`, the last request removes it, and the root is not volatile",
    ),
    TTY,
    CPUS,
    MEMORY,
    CPUSET,
    ULIMIT,
    IMAGE_OF_ENGINE,
    Key::of("bin", Values::Path).meaning("path of another build of podman"),
    Key::choice("client", &["cli", "api"]).meaning(
        "how to reach the engine: through its command line, or from dunnage directly over the API of \
         `podman system service`",
    ),
];

static FAKE_KEYS: [Key; 14] = [
    Key::of("a", LEVELS).meaning("a factor"),
    Key::of("b", LEVELS).meaning("a factor"),
    Key::of("c", LEVELS).meaning("a factor"),
    Key::of("effects", Values::Text("times such as a=20ms;bc=-5ms"))
        .meaning("how much `returned` increases if all of the named factors are high"),
    Key::of("time", Values::Duration).meaning("the median of `returned`"),
    PUBLISH,
    Key::of("per_port", Values::Duration).meaning("how much each published port adds to `returned`"),
    Key::of("noise", Values::Number).meaning("the spread of its logarithm, in percent"),
    Key::of("settles", Values::Number)
        .meaning("for how many launches, the first ones, the spread is ten times as wide"),
    Key::of("drift", Values::Number)
        .meaning("how much slower each launch is than the one before, in percent"),
    Key::of("spike", Values::Number).meaning("every n-th launch takes ten times as long"),
    Key::of("fail", Values::Number).meaning("every n-th launch fails"),
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
    "a container made with bare system calls: the cost of the kernel alone",
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
    "gVisor's OCI runtime, from a bundle: the container runs on its own kernel; it does not take `cpus`, \
     since a quota cannot be read back inside",
)
.helped_by(&[helper(Duty::Kernel, "runsc")]);

/// The kind `containerd`.
pub static CONTAINERD: Kind = Kind::of(
    "containerd",
    Layer::Engine,
    &CONTAINERD_KEYS,
    "containerd through `ctr`; `containerd+RUNTIME` for any installed runtime that behaves as runc does",
)
.helped_by(&[helper(Duty::Daemon, "containerd"), helper(Duty::Shim, "containerd-shim")]);

/// The kind `docker`.
pub static DOCKER: Kind = Kind::of(
    "docker",
    Layer::Engine,
    &DOCKER_KEYS,
    "Docker through its command line or API; `docker+RUNTIME` for a runtime that the daemon knows",
)
.helped_by(&[
    helper(Duty::Daemon, "dockerd"),
    helper(Duty::Daemon, "containerd"),
    helper(Duty::Shim, "containerd-shim"),
    helper(Duty::Ports, "docker-proxy"),
    helper(Duty::Ports, "rootlesskit-docker-proxy").runs_as(Runs::ForUsers),
    helper(Duty::Network, "rootlesskit").runs_as(Runs::ForUsers),
    helper(Duty::Network, "slirp4netns").runs_as(Runs::ForUsers),
    helper(Duty::Storage, "fuse-overlayfs").runs_as(Runs::ForUsers),
]);

/// The kind `podman`.
pub static PODMAN: Kind = Kind::of(
    "podman",
    Layer::Engine,
    &PODMAN_KEYS,
    "Podman through its command line or API; `podman+RUNTIME` for any runtime that is installed",
)
.helped_by(&[
    helper(Duty::Monitor, "conmon"),
    helper(Duty::Ports, "rootlessport"),
    helper(Duty::Network, "pasta").runs_as(Runs::WithoutRights),
    helper(Duty::Network, "passt").runs_as(Runs::WithoutRights),
    helper(Duty::Network, "slirp4netns"),
    helper(Duty::Setup, "netavark"),
    helper(Duty::Names, "aardvark-dns"),
    helper(Duty::Storage, "fuse-overlayfs"),
    helper(Duty::Namespaces, "catatonit"),
]);

/// The kind `fake`.
pub static FAKE: Kind = Kind::of("fake", Layer::Engine, &FAKE_KEYS, "follows a script");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_need_a_network_at_which_they_can_be_published() {
        let error = |text: &str| of(&Spec::parse(text).unwrap()).err().map(|error| error.to_string());
        for net in ["none", "host"] {
            let refused = error(&format!("docker:net={net},publish=1")).unwrap();
            assert!(
                refused.contains(&format!("`docker` cannot publish ports with `net={net}`")),
                "{refused}"
            );
            assert_eq!(error(&format!("podman:net={net},publish=0")), None);
        }
        for text in ["docker:publish=32", "docker:net=bridge,publish=1000", "podman:net=pasta,publish=1"] {
            assert_eq!(error(text), None);
        }
        assert!(error("containerd:publish=1").unwrap().contains("has no key `publish`"));
    }
}
