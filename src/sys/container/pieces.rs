//! The pieces of a container that can be left out, so that each can be priced by its absence, and the other ways in which some
//! of them can be made.

use super::super::cgroup::Way;

/// One piece of what an engine makes a container of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Piece {
    /// A mount namespace with a root of its own and the filesystems in it; without it the program
    /// runs on the host's root.
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
    /// A user namespace in which we are root; added by itself where we may not do without.
    User = 1 << 6,
    /// A cgroup in every hierarchy of the plan.
    Cgroup = 1 << 7,
    /// An overlay over the image as root; without it the image itself, writable.
    Overlay = 1 << 8,
    /// proc, dev and what lies in it, sys, and the cgroup filesystems.
    Filesystems = 1 << 9,
    /// Paths that Docker hides.
    MaskedPaths = 1 << 10,
    /// Paths that Docker makes read-only.
    ReadOnlyPaths = 1 << 11,
    /// Docker's 14 capabilities instead of all.
    Capabilities = 1 << 12,
    /// `no_new_privs`.
    NoNewPrivileges = 1 << 13,
    /// The seccomp filter, where the container is to have one at all.
    Seccomp = 1 << 14,
}

impl Piece {
    /// The flag of clone for a namespace that is made at birth. The cgroup namespace is not: its
    /// root is the cgroup that its maker is in, so the container makes it after it entered its own.
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
    /// None: a process.
    pub const NONE: Pieces = Pieces(0);

    /// All that an engine run by root makes: everything but a user namespace.
    pub fn engine() -> Pieces {
        ALL.into_iter().fold(Pieces::NONE, |all, (_, piece)| all.with(piece)).without(Piece::User)
    }

    /// This set and `piece`.
    pub const fn with(self, piece: Piece) -> Pieces {
        Pieces(self.0 | piece as u32)
    }

    /// This set less `piece`.
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

/// By which calls mounts are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mounts {
    /// By `mount`, in a copy of the host's mounts.
    #[default]
    Mount,
    /// The same by `fsopen`, `fsmount`, `move_mount`, `open_tree` and `mount_setattr`.
    Fsmount,
    /// By `mount`, in a namespace that begins with the root alone (`OPEN_TREE_NAMESPACE`).
    OpenTree,
}

/// Of which pieces a container is made, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Making {
    /// The pieces.
    pub pieces: Pieces,
    /// How it enters its cgroups.
    pub way: Way,
    /// By which calls its mounts are made.
    pub mounts: Mounts,
    /// Whether the clock is read between the pieces. Then each namespace is made by a call of its own, and not all of them by
    /// the clone.
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
