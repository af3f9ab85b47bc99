//! The life of a container by requests: each verb connects anew, as a command of its own would.
//! To enter is three requests: one makes the process, one starts it and becomes the stream of its
//! output, and when that has ended one asks how it ended.

use serde_json::json;

use super::http::Request;
use super::launch::{ended, streams};
use super::requests::Life;
use super::talk::{Address, Talk, json};
use super::{Api, Found};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::{LIMITS, PROBE};
use crate::subject::verbs::{self, Entered, Span, Standing, Verbs};
use crate::subject::{Mount, Order, RunContext};
use crate::sys::clock;
use crate::sys::process;
use crate::sys::socket::Patience;
use crate::units::{Nanos, Stamp};

impl Api {
    /// The requests about the container that stands.
    fn life(&self) -> Result<Life, Failure> {
        let standing = self.engine.standing.as_ref().ok_or_else(verbs::nothing_stands)?;
        Ok(Life::of(&self.version, &standing.name))
    }

    /// Ends the monitors of processes that entered a container which is removed: podman's service has
    /// them wait five minutes for somebody who asks once more how such a process ended.
    fn end_monitors(&self, name: &str) {
        for monitor in self.engine.facts.components.iter().filter(|one| one.role == "monitor") {
            process::kill_clients(&monitor.path, name);
        }
    }
}

/// A verb that is one request.
fn carry_out(run: &RunContext, address: &Address, request: &Request) -> Result<Span, Abort> {
    let mut patience = Patience::new(run.allowed, Some(&run.interrupts));
    let began = clock::now();
    let answered =
        Talk::begin(address, &mut patience).and_then(|mut talk| talk.ask(request, &mut patience, None));
    let span = Span { began, ended: clock::now() };
    answered.map_err(|abort| taking(abort, span.took()))?;
    Ok(span)
}

/// A failure that says how long it took.
fn taking(abort: Abort, took: Nanos) -> Abort {
    match abort {
        Abort::Failed(failure) => Failure { took, ..failure }.into(),
        Abort::Interrupted => Abort::Interrupted,
    }
}

/// What a second process wrote, how it ended, and when that was known.
struct Visit {
    output: Vec<u8>,
    status: i64,
    returned: Stamp,
}

fn visit(
    address: &Address,
    life: &Life,
    make: &Request,
    tty: bool,
    patience: &mut Patience<'_>,
) -> Result<Visit, Abort> {
    let mut talk = Talk::begin(address, patience)?;
    let made = json(&talk.ask(make, patience, None)?, make)?;
    let Some(id) = made["Id"].as_str() else {
        let reason = format!("the answer to `{}` names no process", make.shown);
        return Err(Failure::new(FailureClass::WrongOutput, reason).into());
    };
    let start = life.start_exec(id, &json!({ "Detach": false, "Tty": tty }));
    let stream = Talk::stream(address, &start, patience)?;
    let output = stream.into_bytes(patience).map_err(|stopped| super::launch::endless(stopped, &start))?;
    let inspect = life.inspect_exec(id);
    let told = talk.ask(&inspect, patience, None)?;
    let returned = clock::now();
    let told = json(&told, &inspect)?;
    match told["ExitCode"].as_i64() {
        Some(status) => Ok(Visit { output, status, returned }),
        None => {
            let reason = format!("the answer to `{}` does not say how the process ended", inspect.shown);
            Err(Failure::new(FailureClass::WrongOutput, reason).into())
        }
    }
}

impl Verbs for Api {
    fn create_for(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<Span, Abort> {
        let image = self.engine.image.clone().expect("`prepare` provides the image before any verb");
        let standing = Standing::announce(run, &self.engine.spec)?;
        let life = Life::of(&self.version, &standing.name);
        let request = life.create(&self.wish(run, &image).body(Order::Stay(mounts)));
        self.engine.standing = Some(standing);
        let made = carry_out(run, &self.address(), &request);
        // A request that was answered made nothing any more; one that was given up may have.
        if matches!(&made, Err(Abort::Failed(failure)) if failure.class != FailureClass::Timeout)
            && let Some(standing) = self.engine.standing.take()
            && self.rm(&standing.name).is_ok()
        {
            run.cross_out(standing.entry);
        }
        made
    }

    fn start(&mut self, run: &RunContext) -> Result<Span, Abort> {
        carry_out(run, &self.address(), &self.life()?.start())
    }

    fn enter(&mut self, order: Order<'_>, run: &RunContext) -> Result<Entered, Abort> {
        let life = self.life()?;
        let tty = self.engine.spec.get("tty") == Some("true");
        let words = order.words(self.engine.limits().map(|_| LIMITS));
        let mut command = vec![EXECUTABLE, PROBE];
        command.extend(words.iter().map(String::as_str));
        let make = life
            .make_exec(&json!({ "AttachStdout": true, "AttachStderr": true, "Tty": tty, "Cmd": command }));
        let address = self.address();
        let mut patience = Patience::new(order.allowed(run), Some(&run.interrupts));
        let spawned = clock::now();
        let visited = visit(&address, &life, &make, tty, &mut patience)
            .map_err(|abort| taking(abort, clock::now().since(spawned)))?;
        let (outputs, terminal) = streams(visited.output, tty, &make)?;
        let ended = ended((spawned, visited.returned), visited.status, outputs);
        let entered = verbs::entered(run, &make.shown, &ended, &self.engine.expected(), terminal)?;
        if let Some(limits) = self.engine.limits() {
            limits.check(&entered.message.inside)?;
        }
        Ok(entered)
    }

    fn stop(&mut self, run: &RunContext) -> Result<Span, Abort> {
        carry_out(run, &self.address(), &self.life()?.stop())
    }

    fn delete(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let span = carry_out(run, &self.address(), &self.life()?.remove())?;
        if let Some(standing) = self.engine.standing.take() {
            self.end_monitors(&standing.name);
            run.cross_out(standing.entry);
        }
        Ok(span)
    }

    fn discard(&mut self, run: &RunContext) {
        let Some(standing) = self.engine.standing.take() else { return };
        // A daemon that was not waited for may still make the container that is not there yet: then
        // the journal keeps it for whoever comes next.
        let removed = self.rm(&standing.name);
        self.end_monitors(&standing.name);
        if matches!(removed, Ok(Found::Yes)) {
            run.cross_out(standing.entry);
        }
    }
}
