//! Why a subject cannot be used here, and what would fix it.
//!
//! Code branches on the cause; the words are for people. The words of programs are searched for one purpose
//! only: to find the remedy for a known problem.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::outcome::{self, Abort, Failure};
use crate::report::text::clean;

/// Causes that code treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// One of its programs is not installed.
    NotInstalled,
    /// One of its programs hangs.
    NoAnswer,
    /// The daemon does not know the runtime.
    UnknownRuntime,
    /// The daemon or store uses another storage driver.
    OtherStorage,
    /// Anything else.
    Other,
}

/// Why a kind or a runtime cannot be used here, with a remedy if one is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// The cause.
    pub cause: Cause,
    /// The whole reason, in the program's own words where it has any.
    pub reason: String,
    /// The same in one line, if the words are a program's output, and the line of it that names the cause.
    short: Option<(String, String)>,
    /// What would fix it.
    pub remedy: Option<String>,
}

/// Bytes of a reason that are kept: programs may say anything.
const LONGEST: usize = 8000;

impl Unavailable {
    /// Without a remedy.
    pub fn because(reason: impl Into<String>) -> Unavailable {
        // The output of programs may contain control characters, which must not reach the terminal.
        let reason: String = reason.into();
        let reason = clean(&reason[..reason.floor_char_boundary(LONGEST)]);
        Unavailable { cause: Cause::Other, reason, short: None, remedy: None }
    }

    /// A reason in the words of a program, one line of which names the cause.
    pub(crate) fn in_words(reason: &str, words: &str) -> Unavailable {
        let words = words.trim();
        if words.is_empty() {
            return Unavailable::because(reason);
        }
        let line = Unavailable::because(outcome::cause_in(words)).reason;
        let short = Unavailable::because(format!("{reason}: {line}")).reason;
        Unavailable { short: Some((short, line)), ..Unavailable::because(format!("{reason}: {words}")) }
    }

    /// A trial launch failed.
    pub(crate) fn failed(failure: &Failure) -> Unavailable {
        let reason = format!("{}: {}", failure.class, failure.reason);
        Unavailable::in_words(&reason, failure.words.as_deref().unwrap_or_default())
    }

    /// The reason in one line, without the rest of a program's output.
    pub(crate) fn in_short(&self) -> &str {
        self.short.as_ref().map_or(&self.reason, |(short, _)| short)
    }

    /// A program is not installed: `not installed`, or a sentence that names the program.
    pub(crate) fn not_installed(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::NotInstalled, ..Unavailable::because(reason) }
    }

    /// A daemon does not know the runtime.
    pub(super) fn unknown_runtime(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::UnknownRuntime, ..Unavailable::because(reason) }
    }

    /// A daemon or store uses another storage driver.
    pub(super) fn other_storage(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::OtherStorage, ..Unavailable::because(reason) }
    }

    /// A program is not on the search path: it is not installed, or it is in a usual directory that is not on
    /// that path. `which` begins the sentence.
    pub(crate) fn absent(which: &str, name: &str, remedy: &str) -> Unavailable {
        const USUAL: [&str; 4] = ["/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin"];
        match USUAL.into_iter().find(|directory| Path::new(directory).join(name).is_file()) {
            Some(directory) => {
                Unavailable::not_installed(format!("{which}not installed in `$PATH`, but in `{directory}`"))
                    .with_remedy(format!("add it: `export PATH=\"$PATH:{directory}\"`"))
            }
            None => Unavailable::not_installed(format!("{which}not installed")).with_remedy(remedy),
        }
    }

    /// A program hangs.
    pub(super) fn no_answer(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::NoAnswer, ..Unavailable::because(reason) }
    }

    /// With a remedy.
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Unavailable {
        self.remedy = Some(remedy.into());
        self
    }

    /// Adds the remedy for a known problem, if it has none of its own.
    pub(crate) fn with_known_remedy(self) -> Unavailable {
        let reason = self.reason.to_lowercase();
        let known = KNOWN.iter().find(|(words, _)| self.remedy.is_none() && reason.contains(words));
        known.map(|(_, remedy)| self.clone().with_remedy(*remedy)).unwrap_or(self)
    }
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Failure {
        Failure::environment(why.reason)
    }
}

impl From<Unavailable> for Abort {
    fn from(why: Unavailable) -> Abort {
        Abort::Failed(why.into())
    }
}

/// A reason with all subjects that it applies to.
pub(crate) struct Told<'a> {
    /// The subjects, separated by commas.
    pub names: String,
    /// In one line.
    pub reason: &'a str,
    /// What would fix it, without duplicates.
    pub remedies: Vec<&'a str>,
}

/// The reasons, one line per cause: subjects of one engine fail for the same reason with different commands.
pub(crate) fn by_cause(unavailable: &[(String, Unavailable)]) -> Vec<Told<'_>> {
    let mut all: Vec<(&str, Told<'_>)> = Vec::new();
    for (name, why) in unavailable {
        let cause = why.short.as_ref().map_or(why.reason.as_str(), |(_, line)| line);
        let index = all.iter().position(|(own, _)| *own == cause).unwrap_or(all.len());
        match all.get_mut(index) {
            Some((_, told)) => told.names.push_str(&format!(", {name}")),
            None => {
                let told = Told { names: name.clone(), reason: why.in_short(), remedies: Vec::new() };
                all.push((cause, told));
            }
        }
        let known = &mut all[index].1.remedies;
        known.extend(why.remedy.as_deref().filter(|remedy| !known.contains(remedy)));
    }
    all.into_iter().map(|(_, told)| told).collect()
}

/// The remedy when docker does not answer at this address, from the kernel's error on connecting to its
/// socket: clients word it differently in each version. `None` where the socket accepts connections, or where
/// it is not a socket of this machine.
pub(crate) fn remedy_for_docker(address: &str) -> Option<&'static str> {
    let error = UnixStream::connect(Path::new(address.strip_prefix("unix://")?)).err()?;
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some(JOIN_THE_GROUP),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Some(START_DOCKER),
        _ => None,
    }
}

/// Why docker at this address cannot be used, with a remedy if the socket's error suggests one.
pub(crate) fn silent_docker(address: &str, why: Unavailable) -> Unavailable {
    match remedy_for_docker(address) {
        Some(remedy) => why.with_remedy(remedy),
        None => why,
    }
}

/// The remedy when the socket denies access.
pub(crate) const JOIN_THE_GROUP: &str = "join the group `docker`, or run as root";
/// The remedy when no daemon listens.
pub(crate) const START_DOCKER: &str = "start the daemon: `systemctl start docker`, or `dockerd &` as root";

const TOO_FEW_FILES: &str = "the limit of open files is too low: for a user raise it in `/etc/security/limits.conf`, as in \
    `USER hard nofile 4096`; for this shell with `ulimit -n`";

const KNOWN: [(&str, &str); 14] = [
    (" has no image ", GET_IT),
    (
        "drop all controllers",
        "crun does not work on a hybrid host where cgroup v2 still has controllers: mount each of them as v1, \
         as in `mkdir /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb cgroup /sys/fs/cgroup/hugetlb`",
    ),
    (
        "rlimit",
        "the engine cannot raise limits here (CAP_SYS_RESOURCE is missing): start it with the limits of the host",
    ),
    // The words of netavark, then those of Go's runtime.
    ("unable to execute nft", INSTALL_NFT),
    ("\"nft\": executable file not found", INSTALL_NFT),
    (
        "/dev/net/tun",
        "slirp4netns and pasta need the tunnel device: `chmod 666 /dev/net/tun` as root, or choose `net=none`",
    ),
    (
        // From `userns=auto`; podman's log escapes the quotes around the name.
        "cannot find mappings for user \\\"containers",
        "for `userns=auto` podman needs subordinate ids of the user `containers`, who need not exist: \
         run `echo containers:2147483647:2147483648 | tee -a /etc/subuid /etc/subgid` as root",
    ),
    (
        // From docker's `userns-remap`.
        "restricts access to the remapped root",
        "root inside cannot reach the private daemon's directory: set `$DUNNAGE_STATE` to a directory that all users can \
         enter",
    ),
    ("too many open files", TOO_FEW_FILES),
    // Go's runtime, in which podman is written, reports a process without free descriptors like this.
    ("failed with 24", TOO_FEW_FILES),
    (
        "resource temporarily unavailable",
        "the limit of processes may be too low: for a user raise it in `/etc/security/limits.conf`, as in \
         `USER hard nproc 4096`; for this shell with `ulimit -u`",
    ),
    ("range of cpus", "docker allows at most as many CPUs as there are: lower `cpus`, or use `cpus=none`"),
    (
        "cpu.cfs_quota_us",
        "the kernel does not allow this limit: lower it, at most to that of the cgroup above",
    ),
    (
        "no space left",
        "free disk space, 100 MiB or more, in the engine's storage and in dunnage's state directory",
    ),
];
const GET_IT: &str = "dunnage never pulls images: get it with `docker pull` or `podman pull`, or name one that `docker images` or \
     `podman images` lists";
const INSTALL_NFT: &str =
    "podman's network needs `nft`: install the package `nftables`, or choose `net=none` or `net=host`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_on_the_search_path_may_be_installed() {
        let there = Unavailable::absent("", "env", "install it");
        assert_eq!(
            (there.cause, there.reason.as_str()),
            (Cause::NotInstalled, "not installed in `$PATH`, but in `/usr/bin`")
        );
        assert_eq!(there.remedy.as_deref(), Some("add it: `export PATH=\"$PATH:/usr/bin\"`"));
        let absent = Unavailable::absent("`no-such` is ", "no-such", "install it");
        assert_eq!(
            (absent.cause, absent.reason.as_str()),
            (Cause::NotInstalled, "`no-such` is not installed")
        );
    }
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_remedy_for_docker_follows_from_the_socket() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("docker.sock");
        let address = format!("unix://{}", socket.display());
        assert_eq!(remedy_for_docker(&address), Some(START_DOCKER));
        let listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(remedy_for_docker(&address), None);
        // The socket file remains, but nothing listens on it.
        drop(listener);
        assert_eq!(remedy_for_docker(&address), Some(START_DOCKER));
        assert_eq!(remedy_for_docker("tcp://127.0.0.1:1"), None);
    }

    #[test]
    fn an_output_of_many_lines_is_one_line_and_a_cause_of_several_subjects_is_told_once() {
        let output = |number: usize| {
            let log: String =
                (0..30).map(|line| format!("time={number} level=info msg=\"step {line}\"\n")).collect();
            let failure = Failure::new(
                outcome::FailureClass::Crash,
                format!("`podman run {number}` ended with exit code 126"),
            );
            Unavailable::failed(&failure.with_words(format!("{log}Error: it is broken\n").as_bytes()))
        };
        let first = "crash: `podman run 1` ended with exit code 126: Error: it is broken";
        assert_eq!(output(1).in_short(), first);
        assert!(output(1).reason.contains("step 29") && !output(1).reason.contains('\n'));
        let absent = |remedy: &str| Unavailable::not_installed("not installed").with_remedy(remedy);
        let all =
            [("podman", output(1)), ("crun", absent("a")), ("podman+runc", output(2)), ("runc", absent("b"))];
        let all = all.map(|(name, why)| (name.to_owned(), why));
        let told: Vec<_> = by_cause(&all)
            .into_iter()
            .map(|one| (one.names, one.reason.to_owned(), one.remedies.join(" ")))
            .collect();
        let expected = [("podman, podman+runc", first, ""), ("crun, runc", "not installed", "a b")];
        assert_eq!(
            told,
            expected.map(|(names, reason, remedies)| (names.into(), reason.into(), remedies.into()))
        );
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
