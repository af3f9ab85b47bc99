//! One launch over an engine's API: create, attach to the output, start, wait, remove; the end of each
//! request is stamped. Everything possible is prepared before the first stamp.

use dunnage_analysis::launch::names;
use dunnage_analysis::names::StampName;
use serde_json::Value;

use super::client::{Client, parsed};
use super::http::{KEPT_OUTPUT, Request, Written, demultiplexed};
use super::requests::Container;
use super::{Address, Api};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::command;
use crate::subject::client::{self, Call, Returned, Terminal};
use crate::subject::{Entrypoint, Launch, RunContext, Subject};
use crate::sys::socket::{Patience, Stopped};
use crate::sys::spawn::{Ended, Reading, Status};
use crate::sys::{accounting, clock};
use crate::units::{Nanos, Stamp};

/// The requests of a launch, ready to be sent.
struct Requests {
    create: Request,
    attach: Request,
    start: Request,
    wait: Request,
    remove: Option<Request>,
    reading: Reading,
}

/// The results of the requests.
struct Answered {
    parts: Vec<(StampName, Stamp)>,
    /// The container's exit status as reported by the engine.
    status: i64,
    /// What the container wrote.
    output: Written,
    /// CPU time of this thread, from the first stamp to the last.
    own_cpu: Nanos,
}

/// Carries out a launch. If it fails, the caller removes what it leaves behind.
pub(super) fn launch(
    run: &RunContext,
    api: &Api,
    name: &str,
    entrypoint: Entrypoint<'_>,
) -> Result<Launch, Abort> {
    let container = Container::named(&api.version, name);
    let requests = Requests {
        create: container.create(&api.config(run, entrypoint).body(entrypoint)),
        attach: container.attach(),
        start: container.request("POST", "/start"),
        wait: container.request("POST", "/wait"),
        remove: (!api.engine.keeps()).then(|| container.remove()),
        reading: entrypoint.reading(),
    };
    let address = api.address();
    let terminal = api.engine.terminal();
    let call = Call {
        runtime: api.engine.runtime.as_deref(),
        terminal,
        ..Call::new(name, &api.engine.about.expected, entrypoint)
    };
    let part = || {
        let mut patience = Patience::new(entrypoint.allowed(run), Some(&run.interrupts));
        let spawned = clock::now();
        let answered = carry_out(&requests, &address, &mut patience)
            .map_err(|abort| taking(abort, clock::now().since(spawned)))?;
        let Answered { parts, status, output, own_cpu: client_cpu } = answered;
        let span = (spawned, parts.last().map_or(spawned, |(_, at)| *at));
        let ended = ended(span, status, output, terminal, &requests.attach)?;
        let (shown, client) = (requests.start.shown.clone(), accounting::Client::Launcher);
        Ok(Returned { shown, ended, client, client_cpu, parts })
    };
    client::launch(run, api.daemons(), &call, part)
}

/// Adds how long it took to a failure.
pub(super) fn taking(abort: Abort, took: Nanos) -> Abort {
    match abort {
        Abort::Failed(failure) => Failure { took, ..failure }.into(),
        Abort::Interrupted => Abort::Interrupted,
    }
}

/// Sends the requests one after the other. Connecting is part of the interval: the first connection counts to
/// the first request, the one for the output to its own.
fn carry_out(requests: &Requests, address: &Address, patience: &mut Patience<'_>) -> Result<Answered, Abort> {
    let before = clock::thread_cpu();
    let mut parts = Vec::with_capacity(5);
    let mut client = Client::begin(address, patience)?;
    client.ask(&requests.create, patience, None)?;
    parts.push((names::CREATED, clock::now()));
    let mut output = Client::stream(address, &requests.attach, patience)?;
    output.reading = requests.reading.clone();
    parts.push((names::ATTACHED, clock::now()));
    client.ask(&requests.start, patience, Some(&mut output))?;
    parts.push((names::STARTED, clock::now()));
    let waited = client.ask(&requests.wait, patience, Some(&mut output))?;
    parts.push((names::WAITED, clock::now()));
    if let Some(remove) = &requests.remove {
        client.ask(remove, patience, Some(&mut output))?;
        parts.push((names::REMOVED, clock::now()));
    }
    let own_cpu = Nanos(clock::thread_cpu().0 - before.0);
    let output = output.into_bytes(patience).map_err(|stopped| endless(stopped, &requests.attach))?;
    let said = parsed(&waited, &requests.wait)?;
    let Some(status) = said["StatusCode"].as_i64() else {
        let reason = format!("the answer to `{}` does not say how the container ended", requests.wait.shown);
        return Err(Failure::new(FailureClass::WrongOutput, reason).with_words(&waited.body).into());
    };
    if let Some(words) = said["Error"].get("Message").and_then(Value::as_str).filter(|text| !text.is_empty())
    {
        let reason = format!("`{}` reported that the container failed", requests.wait.shown);
        return Err(Failure::new(command::class_of(words.as_bytes()), reason)
            .with_words(words.as_bytes())
            .into());
    }
    Ok(Answered { parts, status, output, own_cpu })
}

/// A stream that does not end.
pub(super) fn endless(stopped: Stopped, request: &Request) -> Abort {
    match stopped {
        Stopped::Interrupted => Abort::Interrupted,
        _ => {
            let reason = format!("the stream of `{}` did not end with the process", request.shown);
            Failure::new(FailureClass::Timeout, reason).into()
        }
    }
}

/// Presents an engine's process like a child of dunnage. In a terminal's stream, standard output and standard
/// error are one.
pub(super) fn ended(
    (spawned, returned): (Stamp, Stamp),
    status: i64,
    (output, came): Written,
    terminal: Terminal,
    request: &Request,
) -> Result<Ended, Failure> {
    let output_is_whole = output.len() < KEPT_OUTPUT;
    let (stdout, stderr) = match terminal {
        Terminal::Yes => (output, Vec::new()),
        Terminal::No => demultiplexed(&output).ok_or_else(|| {
            let reason =
                format!("the stream of `{}` mixes standard output and standard error", request.shown);
            Failure::new(FailureClass::WrongOutput, reason).with_words(&output)
        })?,
    };
    let status = Status::Exited(i32::try_from(status).unwrap_or(-1));
    // Beyond the kept part it is not known how many bytes belong to which stream.
    let written = output_is_whole.then_some(stdout.len() as u64);
    Ok(Ended { spawned, returned, status, stdout, stderr, written, came })
}
