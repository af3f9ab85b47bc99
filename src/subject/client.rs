//! A launch through a command line: starts the command, waits for it, waits until what it made is
//! gone, adds up the CPU, reads the probe's message and checks the treatment. The same for a bare
//! process, an OCI runtime and an engine's client, so that their numbers mean the same.

use std::path::Path;

use super::account::Account;
use super::limits::Limits;
use super::treatment::{self, Expected, Network};
use super::{Launch, RunContext};
use crate::outcome::{self, Abort, Failure, FailureClass};
use crate::probe::message::{self, Inside, Message};
use crate::sys::remains::{Gone, Remains, Tokens};
use crate::sys::spawn::{self, Ended, Program, Status, Unfinished};
use crate::units::{Nanos, Stamp};

/// How long what is left of a launch may take to go away after the command has returned.
const GOING: Nanos = Nanos::from_millis(20_000);

/// A launch that is about to happen.
#[derive(Debug)]
pub struct Call<'a> {
    /// The command.
    pub program: &'a Program,
    /// The name under which it makes its container.
    pub name: &'a str,
    /// The daemons that work for it; why they are not known, where there are some that are not.
    pub daemons: Result<&'a [i32], &'a str>,
    /// What the probe must find inside.
    pub expected: &'a Expected,
    /// The runtime's executable, which must have run, where one is asked for.
    pub runtime: Option<&'a Path>,
    /// Whether a terminal stands between the probe and us.
    pub terminal: Terminal,
    /// What it consists of, and so whether to look for remains of it.
    pub holds: Holds,
    /// Another name that its cgroups and processes bear, where it has one.
    pub bundle: Option<&'a str>,
    /// How long it may take.
    pub allowed: Nanos,
    /// The limits that must be found inside, where any were asked for.
    pub limits: Option<Limits>,
}

/// What a launch consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The one process that is waited for: once reaped, nothing is left, and to look for remains
    /// would only cool the caches for the next launch.
    OneProcess,
    /// Other processes, mounts and cgroups too.
    More,
}

/// Whether the output went through a terminal, which ends its lines differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// It did.
    Yes,
    /// It did not.
    No,
}

/// Carries a launch out.
pub fn launch(run: &RunContext, call: &Call<'_>) -> Result<Launch, Abort> {
    let remains = (call.holds == Holds::More).then(Remains::new);
    let account = Account::begin(run, call.daemons.unwrap_or_default());
    let child = spawn::start(call.program).map_err(|error| cannot_start(call.program, &error))?;
    let pid = child.pid;
    let ended = child
        .wait(call.allowed, Some(&run.interrupts))
        .map_err(|why| unfinished(call.allowed, call.program, why))?;
    let message = message_in(&call.program.shown(), &ended, call.terminal)?;
    let gone = match remains {
        Some(remains) => {
            let trace = Trace {
                names: [Some(call.name), call.bundle],
                network: call.expected.network,
                shown: &call.program.shown(),
            };
            gone(&remains, &trace, &message, &run.host, ended.returned)?
        }
        None => Gone { at: ended.returned, look: Nanos(0), waited_for: Vec::new() },
    };
    let (cpu, ran) = account.finish(pid, call.runtime);
    // Without its daemons the CPU time of an engine would be a part shown as the whole.
    let cpu = call.daemons.map_err(str::to_owned).and(cpu);
    if let (Some(runtime), Some(false)) = (call.runtime, ran) {
        let reason = format!("`{}` was asked for and did not run", runtime.display());
        return Err(Failure::new(FailureClass::Treatment, reason).into());
    }
    call.expected.check(&message.inside, &run.host)?;
    if let Some(limits) = &call.limits {
        limits.check(&message.inside)?;
    }
    Ok(Launch {
        parts: Vec::new(),
        spawned: ended.spawned,
        returned: ended.returned,
        gone: gone.at,
        look: gone.look,
        treatment: treatment::facts(&message.inside, &run.host),
        message,
        cpu,
    })
}

pub(super) fn cannot_start(program: &Program, error: &std::io::Error) -> Failure {
    let class = match error.kind() {
        std::io::ErrorKind::PermissionDenied => FailureClass::Permission,
        _ => FailureClass::Environment,
    };
    Failure::new(class, format!("cannot start `{}`: {error}", program.shown()))
}

pub(super) fn unfinished(allowed: Nanos, program: &Program, why: Unfinished) -> Abort {
    match why {
        Unfinished::Interrupted => Abort::Interrupted,
        Unfinished::TimedOut { stderr, .. } => {
            let reason = format!("`{}` did not end within {}", program.shown(), allowed);
            let failure = Failure::new(FailureClass::Timeout, reason).with_words(&stderr);
            Abort::Failed(Failure { took: allowed, ..failure })
        }
        Unfinished::Failed(error) => {
            let reason = format!("cannot wait for `{}`: {error}", program.shown());
            Abort::Failed(Failure::new(FailureClass::Environment, reason))
        }
    }
}

/// Whether the command `shown` ended as it should; else its own words.
pub(super) fn ended_well(shown: &str, ended: &Ended) -> Result<(), Failure> {
    if ended.status == Status::Exited(0) {
        return Ok(());
    }
    let words = if ended.stderr.is_empty() { &ended.stdout } else { &ended.stderr };
    let reason = format!("`{shown}` ended with {}", ended.status);
    let failure = Failure::new(class_of(words), reason).with_words(words);
    Err(Failure { took: ended.returned.since(ended.spawned), ..failure })
}

/// The probe's message, or what the command `shown` said in its stead.
pub(super) fn message_in(shown: &str, ended: &Ended, terminal: Terminal) -> Result<Message, Failure> {
    ended_well(shown, ended)?;
    let took = ended.returned.since(ended.spawned);
    let stdout = match terminal {
        Terminal::Yes => without_carriage_returns(&ended.stdout),
        Terminal::No => ended.stdout.clone(),
    };
    message::parse(&stdout).map_err(|why| {
        let on_the_wrong_stream = message::parse(&ended.stderr).is_ok();
        let reason = match on_the_wrong_stream {
            true => format!("`{shown}` passed the probe's standard output on to standard error"),
            false => format!("`{shown}` ended well, but {why}"),
        };
        let words: &[u8] = if on_the_wrong_stream { b"" } else { &ended.stderr };
        Failure { took, ..Failure::new(FailureClass::WrongOutput, reason).with_words(words) }
    })
}

fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|&byte| byte != b'\r').collect()
}

/// The class of a failure that the command explained in its own words: of the one line that names the cause, by the
/// error's number where it has one.
pub(super) fn class_of(words: &[u8]) -> FailureClass {
    let text = String::from_utf8_lossy(words);
    let cause = outcome::cause_in(&text).to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| cause.contains(part));
    if let Some(class) = error_number(&cause).and_then(class_of_number) {
        class
    } else if says(&[
        "cannot connect to the docker daemon",
        "failed to dial",
        "connection refused",
        "no space left",
        "too many open files",
        "resource temporarily unavailable",
        "no such image",
        "unable to find image",
        "image not known",
        "no such file or directory",
        "error during connect",
    ]) {
        FailureClass::Environment
    } else if says(&["permission denied", "operation not permitted", "must be root", "rootless"]) {
        FailureClass::Permission
    } else if says(&[
        "unknown runtime",
        "not supported",
        "unsupported",
        "unknown or invalid runtime",
        "invalid runtime",
        "drop all controllers",
        // A limit on CPU time that the engine or the kernel does not take.
        "range of cpus",
        "cpu.cfs_quota_us",
        "cpu.max",
        "cpu.cfs_burst_us",
    ]) {
        FailureClass::Unsupported
    } else {
        FailureClass::Crash
    }
}

/// The number of the kernel's error in a line, as the runtimes of Go and Rust write it.
fn error_number(line: &str) -> Option<i32> {
    ["errno=", "failed with ", "(os error "].iter().find_map(|before| {
        let (_, rest) = line.rsplit_once(before)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

fn class_of_number(number: i32) -> Option<FailureClass> {
    match number {
        libc::EACCES | libc::EPERM => Some(FailureClass::Permission),
        libc::ENOENT
        | libc::ENOSPC
        | libc::EMFILE
        | libc::ENFILE
        | libc::EAGAIN
        | libc::ENOMEM
        | libc::ECONNREFUSED => Some(FailureClass::Environment),
        libc::ENOSYS | libc::EOPNOTSUPP => Some(FailureClass::Unsupported),
        _ => None,
    }
}

/// How a container's remains are recognised, and what made them.
pub(super) struct Trace<'a> {
    /// Names that its cgroups and processes bear.
    pub names: [Option<&'a str>; 2],
    /// The network that it was to have.
    pub network: Network,
    /// What was asked for it, for messages.
    pub shown: &'a str,
}

/// When the last process, mount and cgroup of the container was away.
pub(super) fn gone(
    remains: &Remains,
    trace: &Trace<'_>,
    message: &Message,
    host: &Inside,
    returned: Stamp,
) -> Result<Gone, Failure> {
    let environment = |reason: String| Failure::new(FailureClass::Environment, reason);
    let names = trace.names.iter().map(|name| name.map(str::to_owned)).chain([message.inside.container_id()]);
    let tokens = Tokens::new(names.flatten()).map_err(|error| environment(error.to_string()))?;
    // Engines hold the host's own network namespace for good; a probe in it fails its treatment.
    let own = message.inside.namespaces.get("net").filter(|inode| host.namespaces.get("net") != Some(inode));
    let tokens = match (trace.network, own) {
        (Network::Loopback | Network::Connected, Some(inode)) => tokens.network_namespace(*inode),
        _ => tokens,
    };
    let deadline = Stamp(returned.0 + GOING.0 as u64);
    remains.watch(&tokens, returned, deadline).map_err(|error| {
        let reason = format!("after `{}` returned, something of it stayed: {error}", trace.shown);
        Failure { took: GOING, ..environment(reason) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_of_the_cause_and_not_of_words_anywhere() {
        let class = |words: &str| class_of(words.as_bytes());
        let warned = "time=\"1\" level=warning msg=\"cannot set quota: permission denied\"\n\
            time=\"2\" level=error msg=\"no such file or directory\"\nError: OCI runtime error: it is broken\n";
        assert_eq!(class(warned), FailureClass::Crash);
        let stack = "runtime: epollcreate failed with 24\nfatal error: netpollinit\n\tpermission denied\n";
        assert_eq!(class(stack), FailureClass::Environment);
        assert_eq!(
            class("runtime: failed to create new OS thread (have 5 already; errno=11)"),
            FailureClass::Environment
        );
        assert_eq!(class("Error: no such file or directory: denied (os error 13)"), FailureClass::Permission);
        assert_eq!(class("docker: permission denied.\nSee 'docker run --help'."), FailureClass::Permission);
        assert_eq!(class("Error: exited: failed with 7 of 9"), FailureClass::Crash);
        assert_eq!(class("Error: unknown runtime x"), FailureClass::Unsupported);
        assert_eq!(class(""), FailureClass::Crash);
    }
}
