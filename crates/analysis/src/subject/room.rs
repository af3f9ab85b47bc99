//! What a machine has a fixed number of, and containers use: so many fit, and then something happens.

/// A resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Resource {
    /// Memory of the machine.
    Memory,
    /// Threads of the whole machine, or of a cgroup in which all containers or their daemons are.
    Tasks,
    /// Open files of a daemon.
    Files,
    /// Instances of inotify of a user.
    Inotify,
    /// Keys of a user.
    Keys,
    /// Mounts of a mount namespace.
    Mounts,
    /// Memory cgroups, removed ones that are still charged included.
    Cgroups,
    /// Ports of a bridge.
    Ports,
    /// Addresses of a network.
    Addresses,
    /// Locks of an engine.
    Locks,
    /// Bytes of the filesystem that holds the containers.
    Disk,
    /// Files that can be made there.
    Inodes,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 12] = [
        Resource::Memory,
        Resource::Tasks,
        Resource::Files,
        Resource::Inotify,
        Resource::Keys,
        Resource::Mounts,
        Resource::Cgroups,
        Resource::Ports,
        Resource::Addresses,
        Resource::Locks,
        Resource::Disk,
        Resource::Inodes,
    ];

    /// The name under which users ask for it.
    pub fn key(self) -> &'static str {
        self.into()
    }

    /// The one with this name.
    pub fn named(key: &str) -> Option<Resource> {
        Resource::ALL.into_iter().find(|one| one.key() == key)
    }

    /// Whether it is the whole machine's, so that others would be left without any.
    pub fn is_everyones(self) -> bool {
        matches!(
            self,
            Resource::Disk | Resource::Inodes | Resource::Keys | Resource::Mounts | Resource::Cgroups
        )
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Resource::Files => "open files",
            Resource::Inotify => "inotify instances",
            Resource::Cgroups => "memory cgroups",
            Resource::Ports => "bridge ports",
            Resource::Inodes => "files on disk",
            other => other.key(),
        }
    }

    /// Whether it is counted in bytes.
    pub fn is_in_bytes(self) -> bool {
        matches!(self, Resource::Memory | Resource::Disk)
    }

    /// What happens once nothing is left, and what helps. From the kernel's and the engines' source and their issues.
    pub fn at_the_end(self) -> &'static str {
        match self {
            Resource::Memory => "the kernel kills processes; limit containers, or add memory",
            Resource::Tasks => {
                "refused: `resource temporarily unavailable`; raise TasksMax of the daemon's service, kernel.pid_max, kernel.threads-max"
            }
            Resource::Files => "refused: `too many open files`; raise the daemon's LimitNOFILE",
            Resource::Inotify => {
                "silent: no more OOM events and `logs --follow`; raise fs.inotify.max_user_instances"
            }
            Resource::Keys => {
                "refused: `disk quota exceeded`; raise kernel.keys.maxkeys, for root kernel.keys.root_maxkeys"
            }
            Resource::Mounts => "refused: `no space left on device`; raise fs.mount-max",
            Resource::Cgroups => "refused: `no space left on device`; 65,535 is the kernel's limit",
            Resource::Ports => "refused: `exchange full`; use a second network",
            Resource::Addresses => "refused: `no available IPv4 addresses`; use a larger network",
            Resource::Locks => {
                "refused: `allocation failed; exceeded num_locks`; raise num_locks, then `podman system renumber`"
            }
            Resource::Disk | Resource::Inodes => "refused: `no space left on device`",
        }
    }

    /// How much of this limit is left to others. The machine's memory: 512 MiB, or 5 % if that is more.
    pub fn reserve(self, limit: i64) -> i64 {
        if self == Resource::Memory { (512 << 20).max(limit / 20) } else { 0 }
    }
}
