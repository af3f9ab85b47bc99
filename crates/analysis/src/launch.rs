//! The names of what launches and entries give for any question: when their process, its steps and its end were, and what CPU
//! time was spent, and what subjects find.

use crate::names::names;

names! {
    StampName {
        SPAWN = "spawn", FIRST = "first", MAIN = "main", READY = "ready", RETURNED = "returned", GONE = "gone",
        // Of a single piece.
        BEGAN = "began", MADE = "made", UNDO = "undo", UNDONE = "undone",
        // Requests to an engine.
        CREATED = "created", ATTACHED = "attached", STARTED = "started", WAITED = "waited", REMOVED = "removed",
        // Pieces of a container: the piece, and the part of it.
        CLONE = "clone", PID_MAKE = "pid.make", SESSION_MAKE = "session.make", SESSION_STREAMS = "session.streams",
        SESSION_UMASK = "session.umask", USER_MAP = "user.map", CGROUP_CREATE = "cgroup.create",
        CGROUP_LIMIT = "cgroup.limit", CGROUP_OPEN = "cgroup.open", CGROUP_ENTER = "cgroup.enter",
        CGROUP_REMOVE = "cgroup.remove", NET_MAKE = "net.make", IPC_MAKE = "ipc.make",
        CGROUP_NS_MAKE = "cgroup_ns.make", UTS_MAKE = "uts.make", MOUNT_MAKE = "mount.make", MOUNT_BIND = "mount.bind",
        MOUNT_PIVOT = "mount.pivot", OVERLAY_DIRECTORIES = "overlay.directories", OVERLAY_MOUNT = "overlay.mount",
        OVERLAY_REMOVE = "overlay.remove", FILESYSTEMS_MOUNT = "filesystems.mount", MASKED_MOUNT = "masked.mount",
        READ_ONLY_MOUNT = "read_only.mount", CAPABILITIES_DROP = "capabilities.drop",
        NO_NEW_PRIVS_SET = "no_new_privs.set", SECCOMP_LOAD = "seccomp.load", EXEC = "exec", EXIT = "exit",
    }
    Counter {
        LOOK = "look", CLIENT_CPU = "client_cpu", ENGINE_CPU = "engine_cpu", PROCESSES = "processes",
        PORT_HELPERS = "port_helpers", SHARED_CPU = "shared_cpu", CACHED_BEFORE = "cached_before", CACHED_AFTER = "cached_after",
    }
    Fact {
        ROOT = "root", ROOT_DURABILITY = "root_durability", NETWORK = "network", SECCOMP = "seccomp",
        SECCOMP_INSTRUCTIONS = "seccomp_instructions", USER = "user", USER_MAPPING = "user_mapping", STORAGE = "storage",
        // Of packets between a container and another process.
        WAY = "way", LISTENER = "listener", INTERFACES = "interfaces", MTU = "mtu", OFFLOADS = "offloads",
        HELPERS = "helpers",
    }
}
