//! One launch over an engine's API: create, attach to the output, start, wait, remove, each a
//! request whose end is stamped. Everything that can be made ready before the first stamp is.

use serde_json::Value;

use super::client::{Client, json};
use super::http::{Request, demultiplexed};
use super::requests::Life;
use super::{Address, Api};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::subject::account::Account;
use crate::subject::client::{self, Terminal, Trace};
use crate::subject::{Launch, Order, RunContext, treatment};
use crate::sys::clock;
use crate::sys::remains::Remains;
use crate::sys::socket::{Patience, Stopped};
use crate::sys::spawn::{Ended, Status};
use crate::units::{Nanos, Stamp};

/// The requests of a launch, ready to be sent.
struct Requests {
    create: Request,
    attach: Request,
    start: Request,
    wait: Request,
    remove: Option<Request>,
}

/// What the requests gave.
struct Answered {
    parts: Vec<(&'static str, Stamp)>,
    /// How the container ended, as the engine says.
    status: i64,
    /// What the container wrote, as it came.
    output: Vec<u8>,
    /// CPU time of this thread, from the first stamp to the last.
    own_cpu: Nanos,
}

/// Carries a launch out. What it leaves behind when it fails is the caller's to remove.
pub(super) fn launch(run: &RunContext, api: &Api, name: &str, order: Order<'_>) -> Result<Launch, Abort> {
    let image = api.engine.image.as_deref().expect("`prepare` provides the image before any launch");
    let life = Life::of(&api.version, name);
    let requests = Requests {
        create: life.create(&api.wish(run, image).body(order)),
        attach: life.attach(),
        start: life.start(),
        wait: life.wait(),
        remove: (api.engine.spec.get("rm") != Some("false")).then(|| life.remove()),
    };
    let address = api.address();
    let remains = Remains::new();
    let account = Account::begin(run, api.daemons().unwrap_or_default());
    let mut patience = Patience::new(order.allowed(run), Some(&run.interrupts));
    let spawned = clock::now();
    let answered = carry_out(&requests, &address, &mut patience).map_err(|abort| match abort {
        Abort::Failed(failure) => Failure { took: clock::now().since(spawned), ..failure }.into(),
        Abort::Interrupted => Abort::Interrupted,
    })?;
    let returned = answered.parts.last().map_or(spawned, |(_, at)| *at);
    let tty = api.engine.spec.get("tty") == Some("true");
    let (outputs, terminal) = streams(answered.output, tty, &requests.attach)?;
    let ended = ended((spawned, returned), answered.status, outputs);
    let message = client::message_in(&requests.start.shown, &ended, terminal)?;
    let expected = api.engine.expected();
    let trace = Trace {
        names: [Some(name), None],
        network: expected.network,
        shown: &requests.remove.as_ref().unwrap_or(&requests.wait).shown,
    };
    let gone = client::gone(&remains, &trace, &message, &run.host, returned)?;
    let runtime = api.engine.runtime.as_deref();
    let (cpu, ran) = account.finish_alone(answered.own_cpu, runtime);
    let cpu = api.daemons().map_err(str::to_owned).and(cpu);
    if let (Some(runtime), Some(false)) = (runtime, ran) {
        let reason = format!("`{}` was asked for and did not run", runtime.display());
        return Err(Failure::new(FailureClass::Treatment, reason).into());
    }
    expected.check(&message.inside, &run.host)?;
    if let Some(limits) = &api.engine.limits() {
        limits.check(&message.inside)?;
    }
    Ok(Launch {
        spawned,
        returned,
        gone: gone.at,
        look: gone.look,
        parts: answered.parts,
        treatment: treatment::facts(&message.inside, &run.host),
        message,
        cpu,
    })
}

/// Sends the requests one after the other. The connections are made within: the first belongs to
/// the first request, the one for the output to its own.
fn carry_out(requests: &Requests, address: &Address, patience: &mut Patience<'_>) -> Result<Answered, Abort> {
    let before = clock::thread_cpu();
    let mut parts = Vec::with_capacity(5);
    let mut client = Client::begin(address, patience)?;
    client.ask(&requests.create, patience, None)?;
    parts.push(("created", clock::now()));
    let mut output = Client::stream(address, &requests.attach, patience)?;
    parts.push(("attached", clock::now()));
    client.ask(&requests.start, patience, Some(&mut output))?;
    parts.push(("started", clock::now()));
    let waited = client.ask(&requests.wait, patience, Some(&mut output))?;
    parts.push(("waited", clock::now()));
    if let Some(remove) = &requests.remove {
        client.ask(remove, patience, Some(&mut output))?;
        parts.push(("removed", clock::now()));
    }
    let own_cpu = Nanos(clock::thread_cpu().0 - before.0);
    let output = output.into_bytes(patience).map_err(|stopped| endless(stopped, &requests.attach))?;
    let said = json(&waited, &requests.wait)?;
    let Some(status) = said["StatusCode"].as_i64() else {
        let reason = format!("the answer to `{}` does not say how the container ended", requests.wait.shown);
        return Err(Failure::new(FailureClass::WrongOutput, reason).with_words(&waited.body).into());
    };
    if let Some(words) = said["Error"].get("Message").and_then(Value::as_str).filter(|text| !text.is_empty())
    {
        let reason = format!("`{}` says that the container failed", requests.wait.shown);
        return Err(Failure::new(client::class_of(words.as_bytes()), reason)
            .with_words(words.as_bytes())
            .into());
    }
    Ok(Answered { parts, status, output, own_cpu })
}

/// A stream that did not end.
pub(super) fn endless(stopped: Stopped, request: &Request) -> Abort {
    match stopped {
        Stopped::Interrupted => Abort::Interrupted,
        _ => {
            let reason = format!("the stream of `{}` does not end with the process", request.shown);
            Failure::new(FailureClass::Timeout, reason).into()
        }
    }
}

/// Standard output and standard error out of a stream, and whether they are one, as of a terminal.
pub(super) fn streams(
    output: Vec<u8>,
    tty: bool,
    request: &Request,
) -> Result<([Vec<u8>; 2], Terminal), Failure> {
    if tty {
        return Ok(([output, Vec::new()], Terminal::Yes));
    }
    match demultiplexed(&output) {
        Some((stdout, stderr)) => Ok(([stdout, stderr], Terminal::No)),
        None => {
            let reason = format!("the stream of `{}` does not say what is which", request.shown);
            Err(Failure::new(FailureClass::WrongOutput, reason).with_words(&output))
        }
    }
}

/// A process of the engine's as if it had been one of ours.
pub(super) fn ended(
    (spawned, returned): (Stamp, Stamp),
    status: i64,
    [stdout, stderr]: [Vec<u8>; 2],
) -> Ended {
    let status = Status::Exited(i32::try_from(status).unwrap_or(-1));
    Ended { spawned, returned, status, waited_cpu: Nanos(0), stdout, stderr }
}
