//! A launch through a command line: starts the command, waits for it, waits until what it made is gone, adds
//! up the CPU time, reads the probe's message and checks the treatment. A bare process, an OCI runtime and an
//! engine's client share this code, so that their numbers mean the same.

use std::io::Read;
use std::path::Path;

use super::account::Account;
use super::treatment::{Expected, Network};
use super::{Cpu, Entrypoint, Launch, RunContext};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{self, Inside, Message, Seen};
use crate::resource::command;
use crate::sys::remains::{Gone, Remains, Tokens};
use crate::sys::spawn::{self, Ended, Program};
use crate::units::{Nanos, Stamp};

/// How long the remains of a launch may take to disappear after the command has returned.
const GOING: Nanos = Nanos::from_millis(20_000);
/// How many bytes are kept of the standard error of a program that the probe started.
const LAST_WORDS: usize = 2000;
/// Bytes of a message: with many distributions it has some hundred thousand.
const LONGEST_MESSAGE: u64 = 16 << 20;

/// A launch that is about to happen.
#[derive(Debug)]
pub struct Call<'a> {
    /// The name under which it makes its container.
    pub name: &'a str,
    /// The daemons that work for it, or why some of them are not known.
    pub daemons: Result<&'a [i32], &'a str>,
    /// What the probe must find inside.
    pub expected: &'a Expected,
    /// The runtime's executable, which must have run, where one is asked for.
    pub runtime: Option<&'a Path>,
    /// Whether there is a terminal between the probe and dunnage.
    pub terminal: Terminal,
    /// What it consists of, which decides whether to look for remains.
    pub holds: Holds,
    /// The other name of its cgroups and processes, where there is one.
    pub bundle: Option<&'a str>,
    /// What the probe inside is to do.
    pub entrypoint: Entrypoint<'a>,
}

impl<'a> Call<'a> {
    /// A call of a client that makes the container without daemons.
    pub fn new(name: &'a str, expected: &'a Expected, entrypoint: Entrypoint<'a>) -> Call<'a> {
        let (terminal, holds) = (Terminal::No, Holds::More);
        Call { name, daemons: Ok(&[]), expected, runtime: None, terminal, holds, bundle: None, entrypoint }
    }
}

/// What a launch consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Only the process that is waited for: once it is reaped nothing is left, and looking for remains would
    /// cool the caches for the next launch.
    OneProcess,
    /// Also other processes, mounts and cgroups.
    More,
}

/// Whether the output went through a terminal, which changes its line endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// It did.
    Yes,
    /// It did not.
    No,
}

/// Carries out a launch with this command.
pub fn launch(run: &RunContext, program: &Program, call: &Call<'_>) -> Result<Launch, Abort> {
    let remains = (call.holds == Holds::More).then(Remains::new);
    let account = Account::begin(run, call.daemons.unwrap_or_default());
    let reading = call.entrypoint.reading();
    let child = spawn::start(program).map_err(|error| command::cannot_start(program, &error))?;
    let (pid, allowed) = (child.pid, call.entrypoint.allowed(run));
    let ended = child
        .read(reading)
        .wait(allowed, Some(&run.interrupts))
        .map_err(|why| command::unfinished(allowed, program, why))?;
    let message = message_in(&program.shown(), &ended, call.terminal, call.entrypoint)?;
    let count = || account.finish(Some(pid), Nanos(0), call.runtime);
    concluded(run, call, &program.shown(), (ended.spawned, ended.returned), message, remains, count)
}

/// The result of a launch once its command or last request, `shown`, has returned: waits until what it made
/// is gone, calls `count` for the CPU time, and checks the treatment.
pub(super) fn concluded(
    run: &RunContext,
    call: &Call<'_>,
    shown: &str,
    (spawned, returned): (Stamp, Stamp),
    message: Message,
    remains: Option<Remains>,
    count: impl FnOnce() -> (Result<Cpu, String>, Option<bool>),
) -> Result<Launch, Abort> {
    let gone = match remains {
        Some(remains) => gone(&remains, call, shown, &message, &run.host, returned)?,
        None => Gone { at: returned, look: Nanos(0), waited_for: Vec::new() },
    };
    let (cpu, ran) = count();
    // Without its daemons, part of an engine's CPU time would pass for the whole.
    let cpu = call.daemons.map_err(str::to_owned).and(cpu);
    if let (Some(runtime), Some(false)) = (call.runtime, ran) {
        let reason = format!("the runtime `{}` did not run", runtime.display());
        return Err(Failure::new(FailureClass::Treatment, reason).into());
    }
    call.expected.check(&message.inside, &run.host)?;
    Ok(Launch {
        parts: Vec::new(),
        spawned,
        returned,
        gone: gone.at,
        look: gone.look,
        treatment: run.treatment(call.expected, &message.inside),
        message,
        cpu,
    })
}

/// The probe's message, or what the command `shown` said instead.
pub(super) fn message_in(
    shown: &str,
    ended: &Ended,
    terminal: Terminal,
    entrypoint: Entrypoint<'_>,
) -> Result<Message, Failure> {
    command::ended_well(shown, ended)?;
    let took = ended.returned.since(ended.spawned);
    if let Some(file) = entrypoint.message_file() {
        return message_beside(file, shown, ended, terminal);
    }
    let stdout = match terminal {
        Terminal::Yes => without_carriage_returns(&ended.stdout),
        Terminal::No => ended.stdout.clone(),
    };
    message::parse(&stdout).map_err(|why| {
        let on_the_wrong_stream = message::parse(&ended.stderr).is_ok();
        let reason = match on_the_wrong_stream {
            true => format!("`{shown}` sent the probe's standard output to standard error"),
            false => format!("`{shown}` succeeded, but {why}"),
        };
        let words: &[u8] = if on_the_wrong_stream { b"" } else { &ended.stderr };
        Failure { took, ..Failure::new(FailureClass::WrongOutput, reason).with_words(words) }
    })
}

/// The probe's message in a file, where standard output is that of a program which the probe started.
fn message_beside(file: &Path, shown: &str, ended: &Ended, terminal: Terminal) -> Result<Message, Failure> {
    let is_silent = terminal == Terminal::Yes || ended.stderr.is_empty();
    let written = if is_silent { &ended.stdout } else { &ended.stderr };
    let said = content_of(file).or_environment(format_args!("cannot read `{}`", file.display()))?;
    let mut message = message::parse(&said).map_err(|why| {
        let reason = format!("`{shown}` succeeded, but in `{}`, {why}", file.display());
        let took = ended.returned.since(ended.spawned);
        Failure { took, ..Failure::new(FailureClass::WrongOutput, reason).with_words(written) }
    })?;
    let last = &written[written.len().saturating_sub(LAST_WORDS)..];
    let said = String::from_utf8_lossy(last).into_owned();
    message.seen = Seen { said, written: ended.written, came: ended.came };
    Ok(message)
}

/// The content of the file for a message. The container can write anything to it, of any length.
fn content_of(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut said = Vec::new();
    std::fs::File::open(file)?.take(LONGEST_MESSAGE + 1).read_to_end(&mut said)?;
    if said.len() as u64 > LONGEST_MESSAGE {
        return Err(std::io::Error::other(format!("it is longer than {LONGEST_MESSAGE} bytes")));
    }
    Ok(said)
}

fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|&byte| byte != b'\r').collect()
}

/// When the last process, mount and cgroup of the container had disappeared.
fn gone(
    remains: &Remains,
    call: &Call<'_>,
    shown: &str,
    message: &Message,
    host: &Inside,
    returned: Stamp,
) -> Result<Gone, Failure> {
    let names = [Some(call.name), call.bundle].map(|name| name.map(str::to_owned));
    // Without a name of its own it has the host's, which dunnage's own container may have made of an identity.
    let id = message.inside.container_id().filter(|id| host.host_name.as_ref() != Some(id));
    let names = names.into_iter().chain([id]);
    let tokens = Tokens::new(names.flatten()).map_err(|error| Failure::environment(error.to_string()))?;
    // Engines keep the host's own network namespace open for good, so that one is not waited for; a probe in
    // it fails its treatment.
    let own = message.inside.namespaces.get("net").filter(|inode| host.namespaces.get("net") != Some(inode));
    let tokens = match (call.expected.network, own) {
        (Network::Loopback | Network::Connected, Some(inode)) => tokens.network_namespace(*inode),
        _ => tokens,
    };
    let deadline = Stamp(returned.0 + GOING.0 as u64);
    let gone = remains.watch(&tokens, returned, deadline);
    let gone = gone.or_environment(format_args!("`{shown}` left something behind"));
    gone.map_err(|failure| Failure { took: GOING, ..failure })
}
