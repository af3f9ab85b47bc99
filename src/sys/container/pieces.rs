//! The pieces of a container that can be left out, so that each can be priced by its absence, and the
//! alternative ways to make some of them.

use super::super::cgroup::Way;

/// One piece of an engine's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Piece {
    /// A mount namespace with its own root and filesystems; without it the program runs on the host's root.
    Mounts = 1 << 0,
    /// A UTS namespace and a host name.
    Uts = 1 << 1,
    /// An IPC namespace.
    Ipc = 1 << 2,
    /// A network namespace whose loopback is up.
    Network = 1 << 3,
    /// A PID namespace.
    Pid = 1 << 4,
    /// A cgroup namespace.
    CgroupNamespace = 1 << 5,
    /// A user namespace in which dunnage is root; added automatically where it is needed.
    User = 1 << 6,
    /// A cgroup in every hierarchy of the plan.
    Cgroup = 1 << 7,
    /// An overlay over the image as root; without it the image itself, writable.
    Overlay = 1 << 8,
    /// proc, dev and its contents, sys, and the cgroup filesystems.
    Filesystems = 1 << 9,
    /// Paths that Docker hides.
    MaskedPaths = 1 << 10,
    /// Paths that Docker makes read-only.
    ReadOnlyPaths = 1 << 11,
    /// Docker's 14 capabilities instead of all.
    Capabilities = 1 << 12,
    /// `no_new_privs`.
    NoNewPrivileges = 1 << 13,
    /// The seccomp filter, if the container has one.
    Seccomp = 1 << 14,
}

impl Piece {
    /// The flag of clone for a namespace made at birth. The cgroup namespace is not: its root is the cgroup
    /// of its maker, so the container makes it after it has entered its own cgroup.
    pub const fn namespace(self) -> Option<i32> {
        match self {
            Piece::Mounts => Some(libc::CLONE_NEWNS),
            Piece::Uts => Some(libc::CLONE_NEWUTS),
            Piece::Ipc => Some(libc::CLONE_NEWIPC),
            Piece::Network => Some(libc::CLONE_NEWNET),
            Piece::Pid => Some(libc::CLONE_NEWPID),
            Piece::User => Some(libc::CLONE_NEWUSER),
            _ => None,
        }
    }
}

/// Every piece with its name, in the order in which a container gets them.
pub const ALL: [(&str, Piece); 15] = [
    ("user", Piece::User),
    ("mount", Piece::Mounts),
    ("uts", Piece::Uts),
    ("ipc", Piece::Ipc),
    ("net", Piece::Network),
    ("pid", Piece::Pid),
    ("cgroup", Piece::Cgroup),
    ("cgroup_ns", Piece::CgroupNamespace),
    ("overlay", Piece::Overlay),
    ("filesystems", Piece::Filesystems),
    ("masked", Piece::MaskedPaths),
    ("read_only", Piece::ReadOnlyPaths),
    ("capabilities", Piece::Capabilities),
    ("no_new_privs", Piece::NoNewPrivileges),
    ("seccomp", Piece::Seccomp),
];

/// A set of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pieces(u32);

impl Pieces {
    /// No pieces: a process.
    pub const NONE: Pieces = Pieces(0);

    /// The pieces that an engine makes as root: all but a user namespace.
    pub fn engine() -> Pieces {
        ALL.into_iter().fold(Pieces::NONE, |all, (_, piece)| all.with(piece)).without(Piece::User)
    }

    /// This set and `piece`.
    pub const fn with(self, piece: Piece) -> Pieces {
        Pieces(self.0 | piece as u32)
    }

    /// This set without `piece`.
    pub const fn without(self, piece: Piece) -> Pieces {
        Pieces(self.0 & !(piece as u32))
    }

    /// Whether `piece` is among them.
    pub const fn has(self, piece: Piece) -> bool {
        self.0 & piece as u32 != 0
    }

    /// This set and all of `others`.
    pub const fn and(self, others: Pieces) -> Pieces {
        Pieces(self.0 | others.0)
    }

    /// The flags of clone for the namespaces among them.
    pub fn namespaces(self) -> u64 {
        let flags =
            ALL.into_iter().filter(|(_, piece)| self.has(*piece)).filter_map(|(_, piece)| piece.namespace());
        flags.fold(0, |all, flag| all | flag as u64)
    }
}

/// The system calls that make mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mounts {
    /// `mount`, in a copy of the host's mounts.
    #[default]
    Mount,
    /// The same with `fsopen`, `fsmount`, `move_mount`, `open_tree` and `mount_setattr`.
    Fsmount,
    /// `mount`, in a namespace that starts with only the root (`OPEN_TREE_NAMESPACE`).
    OpenTree,
}

/// The pieces of a container, and how they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Making {
    /// The pieces.
    pub pieces: Pieces,
    /// How it enters its cgroups.
    pub way: Way,
    /// The calls that make its mounts.
    pub mounts: Mounts,
    /// Whether the clock is read between the pieces. Then each namespace is made by a separate call instead
    /// of all by the clone.
    pub stamped: bool,
}

impl From<Pieces> for Making {
    fn from(pieces: Pieces) -> Making {
        Making { pieces, way: Way::default(), mounts: Mounts::default(), stamped: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_switched_one_by_one() {
        let set = Pieces::engine();
        assert!(set.has(Piece::Overlay) && !set.has(Piece::User));
        assert!(!set.without(Piece::Overlay).has(Piece::Overlay));
        assert_eq!(set.without(Piece::Pid).with(Piece::Pid), set);
        assert_eq!(Pieces::NONE.with(Piece::Uts).namespaces(), libc::CLONE_NEWUTS as u64);
        assert_eq!(set.namespaces() & libc::CLONE_NEWCGROUP as u64, 0);
    }
}
