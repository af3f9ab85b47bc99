//! "Gone": when the last process, mount and cgroup of one container has disappeared.
//!
//! They are recognised by tokens that only this container has (its 64-digit id, a name with the run's id): in
//! command lines (conmon, containerd-shim, the runtime, network helpers), in dunnage's mount table, in the
//! names of cgroups. Anything without a token is neither counted nor waited for, and nothing is ever removed
//! here.
//!
//! Limits: mounts in other mount namespaces cannot be seen (a rootless engine has its own there; they
//! disappear with its processes). With `hidepid` a user sees only their own processes.

mod look;
mod wait;

use std::collections::HashSet;
use std::io;

use self::wait::Watch;
use super::clock;
use crate::units::{Nanos, Stamp};

/// Fewer characters could be part of an unrelated name.
pub const SHORTEST_TOKEN: usize = 12;

/// The tokens that identify one container.
#[derive(Clone, Debug)]
pub struct Tokens {
    parts: Vec<String>,
    network_namespace: Option<u64>,
}

/// A token that matches, or might match, something unrelated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a token: it must have at least {SHORTEST_TOKEN} printable characters, without spaces and backslashes"
)]
pub struct BadToken(pub String);

impl Tokens {
    /// Strings that occur, as a whole, only in what belongs to this container.
    ///
    /// # Errors
    /// [`BadToken`] if one is too short or could be written differently in the mount table.
    pub fn new(parts: impl IntoIterator<Item = impl Into<String>>) -> Result<Tokens, BadToken> {
        let parts: Vec<String> = parts.into_iter().map(Into::into).collect();
        let bad = |part: &&String| {
            part.len() < SHORTEST_TOKEN || part.bytes().any(|byte| !byte.is_ascii_graphic() || byte == b'\\')
        };
        match parts.iter().find(bad) {
            Some(part) => Err(BadToken(part.clone())),
            None => Ok(Tokens { parts, network_namespace: None }),
        }
    }

    /// Also includes mounts that hold this network namespace.
    #[must_use]
    pub fn network_namespace(mut self, inode: u64) -> Tokens {
        self.network_namespace = Some(inode);
        self
    }

    fn match_bytes(&self, bytes: &[u8]) -> bool {
        self.parts.iter().any(|part| bytes.windows(part.len()).any(|window| window == part.as_bytes()))
    }
}

/// The kind of a remnant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A process that has not ended.
    Process,
    /// A mount in dunnage's mount namespace.
    Mount,
    /// A cgroup directory, v1 or v2.
    Cgroup,
}

/// A remnant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its kind.
    pub kind: Kind,
    /// `PID: command line`, mount point, or path.
    pub name: String,
}

impl Item {
    /// The id of a process.
    pub fn pid(&self) -> Option<i32> {
        self.name.split_once(':')?.0.parse().ok()
    }
}

impl std::fmt::Display for Item {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Process => "process",
            Kind::Mount => "mount",
            Kind::Cgroup => "cgroup",
        };
        write!(formatter, "{kind} `{}`", self.name)
    }
}

/// Nothing is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// When: at the client's return if the first look found nothing, else at the event after which nothing
    /// was left.
    pub at: Stamp,
    /// How long the first look took, from the client's return. What disappeared during it counts as gone at
    /// the return.
    pub look: Nanos,
    /// What was still there after the client's return.
    pub waited_for: Vec<Item>,
}

/// Why it is not known to be gone.
#[derive(Debug, thiserror::Error)]
pub enum NotGone {
    /// The deadline passed.
    #[error("still there: {}", list(.0))]
    StillThere(Vec<Item>),
    /// Looking failed.
    #[error("cannot look for what is left of the container: {0}")]
    Look(#[from] io::Error),
}

fn list(items: &[Item]) -> String {
    items.iter().map(Item::to_string).collect::<Vec<_>>().join(", ")
}

/// Everything that contains one of the tokens now.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn find(tokens: &Tokens) -> io::Result<Vec<Item>> {
    Ok(look::look(tokens, &look::ourselves())?.into_iter().map(|found| found.item).collect())
}

/// Looks for remains repeatedly. Made before the launch, so that after it only the look itself is left to do.
#[derive(Debug)]
pub struct Remains {
    ourselves: HashSet<i32>,
    last: i32,
}

impl Default for Remains {
    fn default() -> Remains {
        Remains::new()
    }
}

impl Remains {
    /// Finds dunnage's own processes.
    pub fn new() -> Remains {
        Remains { ourselves: look::ourselves(), last: look::last_pid() }
    }

    /// Waits until nothing is left, at most until `deadline`. To be called right after the client returned,
    /// at `returned`.
    ///
    /// [`Gone::at`] is never earlier than the end of something that was waited for, and later only by the
    /// time to wake up and read the mount table.
    ///
    /// # Errors
    /// [`NotGone::StillThere`] with everything left at the deadline.
    pub fn watch(&self, tokens: &Tokens, returned: Stamp, deadline: Stamp) -> Result<Gone, NotGone> {
        self.watch_for(|_| true, tokens, returned, deadline)
    }

    /// The same for these kinds.
    fn watch_for(
        &self,
        is_meant: fn(Kind) -> bool,
        tokens: &Tokens,
        returned: Stamp,
        deadline: Stamp,
    ) -> Result<Gone, NotGone> {
        let look_again = || -> io::Result<Vec<look::Found>> {
            let mut found = look::look(tokens, &self.ourselves)?;
            found.retain(|found| is_meant(found.item.kind));
            Ok(found)
        };
        let mut watch = Watch::new()?;
        // What cleans up after a client often ends within a millisecond after it, and before a whole look does.
        let mut found = look::processes_since(self.last, tokens, &self.ourselves)?;
        if found.is_empty() {
            found = look_again()?;
        }
        let look = Nanos(clock::now().0 as i64 - returned.0 as i64);
        let mut waited_for: Vec<Item> = found.iter().map(|found| found.item.clone()).collect();
        if found.is_empty() {
            return Ok(Gone { at: returned, look, waited_for });
        }
        watch.add(found, tokens)?;
        let mut at = clock::now();
        loop {
            while !watch.is_empty() {
                match watch.next(deadline, tokens)? {
                    Some(woken) => at = woken,
                    None => return Err(NotGone::StillThere(watch.items())),
                }
            }
            // The last of several may have disappeared after the wake-up, while the previous one was removed
            // from the list.
            if watch.next(Stamp(0), tokens)?.is_some() {
                at = clock::now();
            }
            // What was waited for may have left something new.
            let found = look_again()?;
            if found.is_empty() {
                return Ok(Gone { at, look, waited_for });
            }
            for item in found.iter().map(|found| &found.item) {
                if !waited_for.contains(item) {
                    waited_for.push(item.clone());
                }
            }
            if clock::now() >= deadline {
                return Err(NotGone::StillThere(found.into_iter().map(|found| found.item).collect()));
            }
            watch.add(found, tokens)?;
            at = clock::now();
        }
    }
}

/// How long to wait for clients and monitors that outlive their container, in nanoseconds.
const SURVIVORS: u64 = 10_000_000_000;

/// How long until a request to stop is noticed, in nanoseconds.
const NOTICED: u64 = 250_000_000;

/// Waits until no process contains one of the tokens, at most ten seconds, and only while it should `go_on`: any user's process
/// can contain one.
///
/// # Errors
/// As [`Remains::watch`].
pub fn outlive_processes(tokens: &Tokens, go_on: &dyn Fn() -> bool) -> Result<Gone, NotGone> {
    let last = Stamp(clock::now().0 + SURVIVORS);
    loop {
        let now = clock::now();
        let deadline = last.min(Stamp(now.0 + NOTICED));
        match Remains::new().watch_for(|kind| kind == Kind::Process, tokens, now, deadline) {
            Err(NotGone::StillThere(_)) if deadline < last && go_on() => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn a_process_that_stays_is_waited_for_only_while_it_is_asked_to() {
        let token = format!("dunnage-stays-{:06}", std::process::id());
        let tokens = Tokens::new([token.clone()]).unwrap();
        let mut command = std::process::Command::new("sh");
        let mut child = command.args(["-c", "sleep 60; :", &token]).process_group(0).spawn().unwrap();
        let asked = std::cell::Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 1;
        let waited = outlive_processes(&tokens, &go_on);
        let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(matches!(waited, Err(NotGone::StillThere(_))), "{waited:?}");
        assert_eq!(asked.get(), 2);
        assert!(outlive_processes(&tokens, &|| false).is_ok());
    }

    #[test]
    fn tokens_that_could_be_somebody_elses_are_refused() {
        assert_eq!(Tokens::new(["short"]).unwrap_err(), BadToken("short".into()));
        assert!(Tokens::new(["0123456789ab", "0123456789a"]).is_err());
        assert!(Tokens::new(["with a space in it"]).is_err());
        assert!(Tokens::new(["0123456789ab"]).is_ok());
    }

    #[test]
    fn a_token_matches_as_a_whole_only() {
        let tokens = Tokens::new(["dunnage-1234-run"]).unwrap();
        assert!(tokens.match_bytes(b"--name\0dunnage-1234-run\0"));
        assert!(!tokens.match_bytes(b"--name\0dunnage-1234-ru\0n"));
        assert!(!tokens.match_bytes(b""));
    }
}
