//! Why a subject cannot be used here, and what would fix it.
//!
//! What code decides by is the cause; the words are for people. Words of programs are looked through for one thing
//! only: a remedy for what we have met before.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::outcome::{self, Abort, Failure};

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
    /// In its own words where it has any, all of them.
    pub reason: String,
    /// The same in one line, where the words are a program's output, and the line of it that names the cause.
    short: Option<(String, String)>,
    /// What would fix it.
    pub remedy: Option<String>,
}

impl Unavailable {
    /// Without a remedy.
    pub fn because(reason: impl Into<String>) -> Unavailable {
        // Programs say what they like; in a line of ours it controls no terminal.
        let reason: String = reason.into();
        let reason = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Unavailable { cause: Cause::Other, reason, short: None, remedy: None }
    }

    /// In the words of a program, of which one line names the cause.
    pub(crate) fn in_words(reason: &str, words: &str) -> Unavailable {
        let words = words.trim();
        if words.is_empty() {
            return Unavailable::because(reason);
        }
        let line = Unavailable::because(outcome::cause_in(words)).reason;
        let short = Unavailable::because(format!("{reason}: {line}")).reason;
        Unavailable { short: Some((short, line)), ..Unavailable::because(format!("{reason}: {words}")) }
    }

    /// It failed when it was tried.
    pub(crate) fn failed(failure: &Failure) -> Unavailable {
        let reason = format!("{}: {}", failure.class, failure.reason);
        Unavailable::in_words(&reason, failure.words.as_deref().unwrap_or_default())
    }

    /// The reason in one line, without what else a program put out.
    pub(crate) fn in_short(&self) -> &str {
        self.short.as_ref().map_or(&self.reason, |(short, _)| short)
    }

    /// A program is not installed: `not installed`, or which one is not.
    pub(crate) fn not_installed(reason: impl Into<String>) -> Unavailable {
        Unavailable { cause: Cause::NotInstalled, ..Unavailable::because(reason) }
    }

    /// A program is not on the search path: because it is not installed, or because it lies in a usual directory that is
    /// not on that path. `which` begins the sentence.
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

/// A reason with all that it holds for.
pub(crate) struct Told<'a> {
    /// The subjects, separated by commas.
    pub names: String,
    /// In one line.
    pub reason: &'a str,
    /// What would fix it, each once.
    pub remedies: Vec<&'a str>,
}

/// Why these cannot be used, each cause once: subjects of one engine fail by the same, each with a command of its own.
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

/// What fixes docker's silence at this address, by what the kernel says of connecting to its socket: clients
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

/// Why docker at this address cannot be used, with what fixes that, where the socket tells.
pub(crate) fn silent_docker(address: &str, why: Unavailable) -> Unavailable {
    match remedy_for_docker(address) {
        Some(remedy) => why.with_remedy(remedy),
        None => why,
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
        // Nobody listens any more, and the file stays.
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
