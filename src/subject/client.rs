//! A launch: watches it from outside, has the kind of subject do its part, reads the probe's message, waits until what was made is
//! gone, and checks the treatment. All kinds share this code, so that their numbers mean the same.

use std::io::Read;
use std::path::Path;

use dunnage_analysis::names::StampName;

use super::account::GOING;
use super::treatment::{Expected, Network};
use super::{Entrypoint, Launch, RunContext};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{self, Inside, Message, Seen};
use crate::resource::command;
use crate::sys::accounting;
use crate::sys::remains::{Gone, Remains, Tokens};
use crate::sys::spawn::{self, Ended, Program};
use crate::units::{Nanos, Stamp};

/// How many bytes are kept of the standard error of a program that the probe started.
const LAST_WORDS: usize = 2000;
/// Bytes of a message: with many distributions it has some hundred thousand.
const LONGEST_MESSAGE: u64 = 16 << 20;

/// A launch that is about to happen.
#[derive(Debug)]
pub struct Call<'a> {
    /// The name under which it makes its container.
    pub name: &'a str,
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
    /// A call without more than these.
    pub fn new(name: &'a str, expected: &'a Expected, entrypoint: Entrypoint<'a>) -> Call<'a> {
        let (terminal, holds) = (Terminal::No, Holds::More);
        Call { name, expected, runtime: None, terminal, holds, bundle: None, entrypoint }
    }
}

/// What a launch may leave for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Nothing that is left once it has returned: a process that is reaped, or what is removed before. Looking for remains would
    /// cool the caches for the next launch.
    NoMore,
    /// Processes, mounts and cgroups.
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

/// What a kind of subject does itself in a launch, once it has returned.
#[derive(Debug)]
pub(super) struct Returned {
    /// The command or request that ended with it.
    pub shown: String,
    /// How it ended, with what the probe wrote.
    pub ended: Ended,
    /// Which processes are the client.
    pub client: accounting::Client,
    /// CPU time of this thread that is the client's.
    pub client_cpu: Nanos,
    /// Ends of its steps, as in a [`Launch`].
    pub parts: Vec<(StampName, Stamp)>,
}

/// One launch: arms the run's observers, has the kind of subject do its part, waits until everything is gone, and checks what the
/// probe found inside.
pub(super) fn launch(
    run: &RunContext,
    daemons: Result<&[i32], &str>,
    call: &Call<'_>,
    part: impl FnOnce() -> Result<Returned, Abort>,
) -> Result<Launch, Abort> {
    let remains = (call.holds == Holds::More).then(Remains::new);
    let watch = run.watch(daemons)?;
    let Returned { shown, ended, client, client_cpu, parts } = part()?;
    let message = message_in(&shown, &ended, call.terminal, call.entrypoint)?;
    let gone = match remains {
        Some(remains) => gone(&remains, call, &shown, &message, &run.host, ended.returned)?,
        None => Gone { at: ended.returned, look: Nanos(0), waited_for: Vec::new() },
    };
    let observed = watch.stop((client, client_cpu), call.runtime)?;
    call.expected.check(&message.inside, &run.host)?;
    let treatment = run.treatment(call.expected, &message.inside);
    Ok(Launch {
        spawned: ended.spawned,
        returned: ended.returned,
        gone: gone.at,
        parts,
        look: gone.look,
        message,
        observed,
        treatment,
    })
}

/// The part of a kind that launches by a command.
pub(super) fn by_command(
    run: &RunContext,
    program: &Program,
    entrypoint: Entrypoint<'_>,
) -> Result<Returned, Abort> {
    let reading = entrypoint.reading();
    let child = spawn::start(program).map_err(|error| command::cannot_start(program, &error))?;
    let (client, allowed) = (accounting::Client::Child(child.pid), entrypoint.allowed(run));
    let ended = child
        .read(reading)
        .wait(allowed, Some(&run.interrupts))
        .map_err(|why| command::unfinished(allowed, program, why))?;
    Ok(Returned { shown: program.shown(), ended, client, client_cpu: Nanos(0), parts: Vec::new() })
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
