//! The verbs as requests: each opens a new connection, as a separate command would. An entry is three
//! requests: make the process; start it, which turns the connection into its output; and, when that has
//! ended, ask for its exit status.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::{Address, Client, parsed};
use super::http::{Answer, Request, Written};
use super::launch::{ended, taking};
use super::requests::Container;
use super::{Api, Server};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::PROBE;
use crate::resource::Found;
use crate::subject::Entrypoint;
use crate::subject::client::Terminal;
use crate::subject::draft::{Draft, Entered, Published, Said, Span, Verbs, seconds};
use crate::subject::limits::Limits;
use crate::sys::clock;
use crate::sys::process;
use crate::sys::socket::Patience;
use crate::sys::spawn::Reading;
use crate::units::{Nanos, Stamp};

/// A container of an engine asked over its API.
pub(super) struct OfApi<'a> {
    pub api: &'a Api,
    pub draft: Draft<'a>,
    pub container: Container,
}

impl OfApi<'_> {
    /// A verb that is one request.
    fn carry_out(&self, request: &Request) -> Result<Span, Abort> {
        self.answered(self.draft.run.allowed, request).map(|(span, _)| span)
    }

    /// One that may take this long, and its answer.
    fn answered(&self, allowed: Nanos, request: &Request) -> Result<(Span, Answer), Abort> {
        let mut patience = Patience::new(allowed, Some(&self.draft.run.interrupts));
        let began = clock::now();
        let answered = Client::begin(&self.api.address(), &mut patience)
            .and_then(|mut client| client.ask(request, &mut patience, None));
        let span = Span { began, ended: clock::now() };
        Ok((span, answered.map_err(|abort| taking(abort, span.took()))?))
    }

    /// The engine's description of it.
    fn inspected(&self) -> Result<Value, Failure> {
        let run = self.draft.run;
        let request = self.container.request("GET", "/json");
        let mut patience = Patience::new(run.allowed, Some(&run.interrupts));
        match super::ask_once(&self.api.address(), &request, &mut patience) {
            Ok(answer) => parsed(&answer, &request),
            Err(Abort::Failed(failure)) => Err(failure),
            Err(Abort::Interrupted) => Err(Failure::environment("interrupted")),
        }
    }

    /// Ends the monitors of processes that entered a container which is removed: podman's service has them
    /// wait five minutes in case a client asks again how such a process ended.
    fn end_monitors(&self) {
        for monitor in self.api.engine.about.facts.components.iter().filter(|one| one.role == "monitor") {
            process::kill_clients(monitor.path.as_ref(), &self.draft.name, None);
        }
    }
}

/// What a second process wrote, how it ended, and when that was known.
fn visit(
    address: &Address,
    container: &Container,
    make: &Request,
    tty: bool,
    reading: Reading,
    patience: &mut Patience<'_>,
) -> Result<(Written, i64, Stamp), Abort> {
    let mut client = Client::begin(address, patience)?;
    let made = parsed(&client.ask(make, patience, None)?, make)?;
    let Some(id) = made["Id"].as_str() else {
        let reason = format!("the answer to `{}` names no process", make.shown);
        return Err(Failure::new(FailureClass::WrongOutput, reason).into());
    };
    let start = container.start_exec(id, &json!({ "Detach": false, "Tty": tty }));
    let mut stream = Client::stream(address, &start, patience)?;
    stream.reading = reading;
    let output = stream.into_bytes(patience).map_err(|stopped| super::launch::endless(stopped, &start))?;
    let inspect = container.inspect_exec(id);
    let told = client.ask(&inspect, patience, None)?;
    let returned = clock::now();
    let told = parsed(&told, &inspect)?;
    match told["ExitCode"].as_i64() {
        Some(status) => Ok((output, status, returned)),
        None => {
            let reason = format!("the answer to `{}` does not say how the process ended", inspect.shown);
            Err(Failure::new(FailureClass::WrongOutput, reason).into())
        }
    }
}

impl Verbs for OfApi<'_> {
    fn is_its_own_client(&self) -> bool {
        true
    }

    fn create(&mut self) -> Result<Span, Abort> {
        let entrypoint = self.draft.entrypoint();
        let asked = self.api.config(self.draft.run, entrypoint);
        self.carry_out(&self.container.create(&asked.body(entrypoint)))
    }

    fn start(&mut self) -> Result<Span, Abort> {
        self.carry_out(&self.container.request("POST", "/start"))
    }

    fn exec(&mut self, entrypoint: Entrypoint<'_>) -> Result<Entered, Abort> {
        let (engine, run) = (&self.api.engine, self.draft.run);
        let terminal = engine.terminal();
        let tty = terminal == Terminal::Yes;
        let words = entrypoint.words(self.draft.expected.detail());
        let mut command = vec![EXECUTABLE, PROBE];
        command.extend(words.iter().map(String::as_str));
        let make = self
            .container
            .make_exec(&json!({ "AttachStdout": true, "AttachStderr": true, "Tty": tty, "Cmd": command }));
        let mut patience = Patience::new(entrypoint.allowed(run), Some(&run.interrupts));
        let before = clock::thread_cpu();
        let spawned = clock::now();
        let (output, status, returned) =
            visit(&self.api.address(), &self.container, &make, tty, entrypoint.reading(), &mut patience)
                .map_err(|abort| taking(abort, clock::now().since(spawned)))?;
        let client_cpu = Nanos(clock::thread_cpu().0 - before.0);
        let ended = ended((spawned, returned), status, output, terminal, &make)?;
        let entered = self.draft.entered(&make.shown, &ended, terminal, entrypoint)?;
        Ok(Entered { client_cpu, ..entered })
    }

    fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        let request = self.container.request("POST", &format!("/stop?t={grace}"));
        self.answered(self.draft.run.allowed + seconds(grace), &request).map(|(span, _)| span)
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        let span = self.carry_out(&self.container.remove())?;
        self.end_monitors();
        Ok(span)
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        let said = self.inspected()?;
        let pid = said["State"]["Pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let runs = pid.filter(|pid| *pid > 0);
        runs.ok_or_else(|| Failure::environment(format!("`{}` does not run", self.draft.name)))
    }

    fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        let said = self.inspected()?;
        let own = said["NetworkSettings"]["Ports"].as_object().into_iter().flatten();
        let published = |(port, bindings): (&String, &Value)| {
            let inside = port.split('/').next()?.parse().ok()?;
            let binding = bindings.as_array()?.first()?;
            // Podman names no address where a port is published at all of them.
            let address = binding["HostIp"].as_str().filter(|address| !address.is_empty());
            let address = address.unwrap_or("0.0.0.0").parse().ok()?;
            let host = SocketAddr::new(address, binding["HostPort"].as_str()?.parse().ok()?);
            Some(Published { inside, host })
        };
        Ok(own.filter_map(published).collect())
    }

    fn logs(&mut self) -> Result<Said, Abort> {
        let request = self.container.request("GET", "/logs?stdout=1&stderr=1");
        let (span, Answer { body, .. }) = self.answered(self.draft.run.allowed, &request)?;
        let written = (body, None);
        let ended = ended((span.began, span.ended), 0, written, self.api.engine.terminal(), &request)?;
        Ok(Said::of(&ended, &[&ended.stdout, &ended.stderr]))
    }

    fn stats(&mut self) -> Result<Said, Abort> {
        let request = self.container.request("GET", "/stats?stream=false&one-shot=true");
        let (span, answer) = self.answered(self.draft.run.allowed, &request)?;
        Ok(Said { span, text: String::from_utf8_lossy(&answer.body).into_owned() })
    }

    fn update(&mut self, limits: &Limits) -> Result<Span, Abort> {
        self.carry_out(&match self.api.server {
            Server::Daemon(_) => self.container.update(limits),
            Server::Own(_) => self.container.update_of_podman(limits),
        })
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        let removed = self.api.rm(&self.draft.name);
        self.end_monitors();
        removed
    }
}
