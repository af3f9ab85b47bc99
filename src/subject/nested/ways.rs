//! The ways themselves: what is asked of the outer engine, and of the inner one.

/// The engine inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    /// A daemon and its client.
    Docker,
    /// The client alone, which talks to the daemon outside.
    Socket,
    /// An engine without a daemon, set up as `quay.io/podman/stable` is: everything but mounts and process ids is the host's.
    Podman,
}

/// A way.
#[derive(Debug)]
pub struct Way {
    /// Its name, as the experiment knows it.
    pub name: &'static str,
    /// The engine outside.
    pub outer: &'static str,
    /// The engine inside.
    pub inner: Inner,
    /// Options of the outer start.
    pub(super) options: &'static [&'static str],
    /// Whether cgroups are made writable first.
    pub(super) remounts: bool,
    /// Whether the client looks for a daemon elsewhere, as the entry point of `docker:dind` has every command but `dockerd` do.
    pub(super) looks_elsewhere: bool,
    /// Whether storage is set up as in `quay.io/podman/stable`: an overlay in user space, without fsync.
    pub(super) in_user_space: bool,
    /// Whether all inside is done by an ordinary user, as `quay.io/podman/stable` has one.
    pub(super) by_user: bool,
    /// Whether the daemon is one that makes no cgroups, as that of a user.
    pub(super) without_cgroups: bool,
    /// Whether clients reach the daemon at a port, with certificates, as they do where it is a service of a job.
    pub(super) over_tls: bool,
    /// The storage driver that the inner engine gets.
    pub(super) storage: Option<&'static str>,
    /// Options of the inner start.
    pub(super) run: &'static [&'static str],
    /// What can be used instead.
    pub instead: &'static str,
}

const PLAIN: Way = Way {
    name: "",
    outer: "docker",
    inner: Inner::Docker,
    options: &[],
    remounts: false,
    looks_elsewhere: false,
    in_user_space: false,
    by_user: false,
    without_cgroups: false,
    over_tls: false,
    storage: None,
    run: &[],
    instead: "",
};
const RELAXED: [&str; 4] = ["--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"];
/// Both because the inner engine makes a user namespace: a new /proc may not be mounted where parts of the outer one are covered, nor the
/// queues of an IPC namespace that is the outer container's.
const OWN_PROC: [&str; 4] = ["--volume", "/proc:/proc", "--ipc", "private"];
/// The least with which docker's daemon runs in docker.
const RELAXED_NETWORK: Way = Way {
    options: &[
        RELAXED[0],
        RELAXED[1],
        RELAXED[2],
        RELAXED[3],
        "--cap-add",
        "SYS_ADMIN",
        "--cap-add",
        "NET_ADMIN",
        "--volume",
        "/var/lib/docker",
    ],
    remounts: true,
    instead: SERVICE,
    ..PLAIN
};
const SERVICE: &str = "a daemon of its own machine; for builds buildah or rootless BuildKit";
const ROOTLESS: &str = "a rootless engine outside: then root inside is an ordinary user";

/// All ways.
pub(super) static ALL: [Way; 18] = [
    Way { name: "privileged", options: &["--privileged"], looks_elsewhere: true, instead: SERVICE, ..PLAIN },
    Way {
        name: "privileged-own-socket",
        options: &["--privileged", "--volume", "/var/lib/docker"],
        instead: SERVICE,
        ..PLAIN
    },
    Way {
        name: "almost-privileged",
        options: &[
            "--cap-add",
            "ALL",
            "--cap-drop",
            "SYS_RESOURCE",
            RELAXED[0],
            RELAXED[1],
            RELAXED[2],
            RELAXED[3],
            "--volume",
            "/var/lib/docker",
        ],
        remounts: true,
        instead: SERVICE,
        ..PLAIN
    },
    Way { name: "socket", inner: Inner::Socket, instead: SERVICE, ..PLAIN },
    Way {
        name: "relaxed",
        options: &[RELAXED[0], RELAXED[1], RELAXED[2], RELAXED[3], "--cap-add", "SYS_ADMIN"],
        looks_elsewhere: true,
        instead: SERVICE,
        ..PLAIN
    },
    Way { name: "relaxed-network", ..RELAXED_NETWORK },
    Way { name: "service-tls", over_tls: true, ..RELAXED_NETWORK },
    Way {
        name: "daemonless-inside",
        inner: Inner::Podman,
        options: &[
            "--security-opt",
            "seccomp=/usr/share/containers/seccomp.json",
            RELAXED[2],
            RELAXED[3],
            "--volume",
            "/var/lib/containers",
        ],
        run: &OWN_PROC,
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "fuse",
        outer: "podman",
        inner: Inner::Podman,
        in_user_space: true,
        options: &["--device", "/dev/fuse", "--security-opt", "label=disable"],
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "fuse-own-proc",
        outer: "podman",
        inner: Inner::Podman,
        in_user_space: true,
        options: &["--device", "/dev/fuse", "--security-opt", "label=disable", RELAXED[2], RELAXED[3]],
        run: &OWN_PROC,
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "privileged",
        outer: "podman",
        inner: Inner::Podman,
        in_user_space: true,
        options: &["--privileged"],
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "copies",
        outer: "podman",
        inner: Inner::Podman,
        in_user_space: true,
        storage: Some("vfs"),
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "copies-own-proc",
        outer: "podman",
        inner: Inner::Podman,
        in_user_space: true,
        storage: Some("vfs"),
        options: &[RELAXED[2], RELAXED[3]],
        run: &OWN_PROC,
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "daemon-inside",
        outer: "podman",
        options: &[
            "--cap-add",
            "sys_admin,net_admin,mknod,net_raw,audit_write",
            RELAXED[2],
            RELAXED[3],
            "--device",
            "/dev/net/tun",
            "--volume",
            "/var/lib/docker",
        ],
        remounts: true,
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "user-inside",
        outer: "podman",
        inner: Inner::Podman,
        by_user: true,
        options: &[
            "--user",
            "podman",
            RELAXED[2],
            RELAXED[3],
            "--mount",
            "type=volume,destination=/home/podman,U=true",
            "--tmpfs",
            "/tmp",
            "--tmpfs",
            "/run",
            "--tmpfs",
            "/var/tmp",
        ],
        run: &OWN_PROC,
        instead: ROOTLESS,
        ..PLAIN
    },
    Way {
        name: "daemon-of-user",
        outer: "podman",
        without_cgroups: true,
        options: &[
            "--cap-add",
            "sys_admin,net_admin,mknod,net_raw,audit_write",
            RELAXED[2],
            RELAXED[3],
            "--volume",
            "/var/lib/docker",
        ],
        instead: "the same engine inside, without a daemon",
        ..PLAIN
    },
    Way { name: OWN, instead: ROOTLESS, ..PLAIN },
    Way { name: OWN, outer: "podman", inner: Inner::Podman, instead: ROOTLESS, ..PLAIN },
];
/// The user's own way: all that is special in it is the user's.
pub(super) const OWN: &str = "own";
