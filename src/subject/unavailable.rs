//! Why a subject cannot be used here, and what would mend it.
//!
//! What code decides by is the cause; the words are for people. Words of programs are looked through for one thing
//! only: a remedy for what we have met before.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// What keeps a subject from being used, where code goes on differently by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A program of it is not installed.
    NotInstalled,
    /// A program of it hangs when it is asked.
    NoAnswer,
    /// Anything else.
    Other,
}

/// Why a kind or a runtime cannot be used here, with the remedy where one is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// What kind of reason that is.
    pub cause: Cause,
    /// In its own words where it has any.
    pub reason: String,
    /// What would mend it.
    pub remedy: Option<String>,
}

impl Unavailable {
    /// Without a remedy.
    pub fn because(reason: impl Into<String>) -> Unavailable {
        // Programs say what they like; in a line of ours it controls no terminal.
        let reason: String = reason.into();
        let reason = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Unavailable { cause: Cause::Other, reason, remedy: None }
    }

    /// A program is not installed: `not installed`, or which one is not.
    pub(crate) fn not_installed(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::NotInstalled, ..Unavailable::because(reason) }
    }

    /// A program hangs when it is asked.
    pub(super) fn no_answer(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::NoAnswer, ..Unavailable::because(reason) }
    }

    /// With a remedy.
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Unavailable {
        self.remedy = Some(remedy.into());
        self
    }

    /// With the remedy for a failure that we have met before, where it has none of its own.
    pub(crate) fn with_known_remedy(self) -> Unavailable {
        let reason = self.reason.to_lowercase();
        let known = KNOWN.iter().find(|(words, _)| self.remedy.is_none() && reason.contains(words));
        known.map(|(_, remedy)| self.clone().with_remedy(*remedy)).unwrap_or(self)
    }
}

/// What mends docker's silence at this address, by what the kernel says of connecting to its socket: clients
/// of each version say it in other words. Nothing where somebody listens there, or where it is no socket of
/// this machine.
pub(crate) fn remedy_for_docker(address: &str) -> Option<&'static str> {
    let error = UnixStream::connect(Path::new(address.strip_prefix("unix://")?)).err()?;
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some(JOIN_THE_GROUP),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Some(START_DOCKER),
        _ => None,
    }
}

/// What to do where the socket is not for us.
pub(crate) const JOIN_THE_GROUP: &str = "join the group `docker`, or run as root";
/// What to do where nobody listens.
pub(crate) const START_DOCKER: &str = "start the daemon: `systemctl start docker`, or `dockerd &` as root";

const TOO_FEW_FILES: &str = "the limit of open files is too low: for a user raise it in `/etc/security/limits.conf`, as in \
    `USER hard nofile 4096`; for this shell with `ulimit -n`";

const KNOWN: [(&str, &str); 12] = [
    (
        "drop all controllers",
        "crun refuses a host whose cgroup v2 hierarchy still has controllers beside v1: mount each one left as v1, \
         as in `mkdir /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb cgroup /sys/fs/cgroup/hugetlb`",
    ),
    (
        "rlimit",
        "the engine may not raise limits here (CAP_SYS_RESOURCE is missing): start it with the host's own",
    ),
    // So netavark, and so Go's runtime.
    ("unable to execute nft", INSTALL_NFT),
    ("\"nft\": executable file not found", INSTALL_NFT),
    (
        "/dev/net/tun",
        "slirp4netns and pasta need the tunnel device: `chmod 666 /dev/net/tun` as root, or choose `net=none`",
    ),
    (
        // `userns=auto`; in podman's log the name stands in escaped quotes.
        "cannot find mappings for user \\\"containers",
        "podman takes the ids of `userns=auto` from those of the user `containers`, who need not exist, and none are \
         given: `echo containers:2147483647:2147483648 | tee -a /etc/subuid /etc/subgid` as root",
    ),
    ("too many open files", TOO_FEW_FILES),
    // So Go's runtime, which podman is written in, says that a process has no descriptor left.
    ("failed with 24", TOO_FEW_FILES),
    (
        "resource temporarily unavailable",
        "the limit of processes may be too low: for a user raise it in `/etc/security/limits.conf`, as in \
         `USER hard nproc 4096`; for this shell with `ulimit -u`",
    ),
    (
        "range of cpus",
        "docker takes no limit beyond the CPUs that there are: ask for no more, or for `cpus=none`",
    ),
    (
        "cpu.cfs_quota_us",
        "the kernel takes no such limit: ask for less, and for no more than the cgroup above has",
    ),
    ("no space left", "free some disk space under the engine's storage"),
];
const INSTALL_NFT: &str =
    "podman's network needs `nft`: install the package `nftables`, or choose `net=none` or `net=host`";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_remedy_for_docker_follows_from_the_socket() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("docker.sock");
        let address = format!("unix://{}", socket.display());
        assert_eq!(remedy_for_docker(&address), Some(START_DOCKER));
        let listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(remedy_for_docker(&address), None);
        // Nobody listens any more, and the file stays.
        drop(listener);
        assert_eq!(remedy_for_docker(&address), Some(START_DOCKER));
        assert_eq!(remedy_for_docker("tcp://127.0.0.1:1"), None);
    }

    #[test]
    fn a_program_that_podmans_network_lacks_has_a_remedy_and_a_remedy_of_its_own_wins() {
        let words =
            "Error: netavark: nftables error: unable to execute nft: No such file or directory (os error 2)";
        let why = Unavailable::because(words).with_known_remedy();
        assert!(why.remedy.unwrap().contains("`nftables`"));
        let own = Unavailable::because(words).with_remedy("own").with_known_remedy();
        assert_eq!(own.remedy.as_deref(), Some("own"));
        assert_eq!(Unavailable::because("odd").with_known_remedy().remedy, None);
    }
}
