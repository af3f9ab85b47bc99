//! Requests to an engine: each gives a successful answer, or a failure of the right class with the engine's
//! own words.

use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::http::{Answer, Connection, Fault, Request, Stream};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::command;
use crate::sys::socket::{Patience, Stopped};

/// The address of an engine.
#[derive(Debug, Clone)]
pub struct Address {
    /// Its name, for messages.
    pub engine: &'static str,
    /// Its socket.
    pub socket: PathBuf,
}

impl std::fmt::Display for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "unix://{}", self.socket.display())
    }
}

/// A sequence of requests on one connection.
#[derive(Debug)]
pub struct Client {
    address: Address,
    connection: Connection,
}

impl Client {
    /// Connects.
    pub fn begin(address: &Address, patience: &mut Patience<'_>) -> Result<Client, Abort> {
        Ok(Client { address: address.clone(), connection: connect(address, patience)? })
    }

    /// Sends a request that must succeed. If the engine has closed the connection after an answer, as it may,
    /// connects again.
    pub fn ask(
        &mut self,
        request: &Request,
        patience: &mut Patience<'_>,
        output: Option<&mut Stream>,
    ) -> Result<Answer, Abort> {
        accepted(self.exchange(request, patience, output)?, request)
    }

    /// Sends a request that may be refused.
    pub fn exchange(
        &mut self,
        request: &Request,
        patience: &mut Patience<'_>,
        output: Option<&mut Stream>,
    ) -> Result<Answer, Abort> {
        if self.connection.is_over() {
            self.connection = connect(&self.address, patience)?;
        }
        let answered = self.connection.exchange(request, patience, output);
        answered.map_err(|fault| unanswered(fault, request, patience))
    }

    /// Turns a new connection into the stream that the request asks for.
    pub fn stream(
        address: &Address,
        request: &Request,
        patience: &mut Patience<'_>,
    ) -> Result<Stream, Abort> {
        let hijacked = connect(address, patience)?.hijack(request, patience);
        match hijacked.map_err(|fault| unanswered(fault, request, patience))? {
            Ok(stream) => Ok(stream),
            Err(answer) => Err(refused(&answer, request).into()),
        }
    }
}

/// Sends one request on a connection of its own.
pub fn ask_once(address: &Address, request: &Request, patience: &mut Patience<'_>) -> Result<Answer, Abort> {
    Client::begin(address, patience)?.ask(request, patience, None)
}

/// The JSON in an answer.
pub fn parsed(answer: &Answer, request: &Request) -> Result<Value, Failure> {
    serde_json::from_slice(&answer.body).map_err(|error| {
        let reason = format!("the answer to `{}` is not JSON: {error}", request.shown);
        Failure::new(FailureClass::WrongOutput, reason).with_words(&answer.body)
    })
}

fn connect(address: &Address, patience: &mut Patience<'_>) -> Result<Connection, Abort> {
    Connection::open(&address.socket, patience).map_err(|stopped| match stopped {
        Stopped::Interrupted => Abort::Interrupted,
        Stopped::Late => {
            let reason = format!("`{address}` did not accept a connection within {}", patience.allowed());
            Failure { took: patience.allowed(), ..Failure::new(FailureClass::Timeout, reason) }.into()
        }
        Stopped::Failed(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let reason = format!("permission denied while trying to connect to `{address}`");
            Failure::new(FailureClass::Permission, reason).into()
        }
        Stopped::Failed(error) => {
            let daemon = address.engine;
            let reason = format!("cannot connect to the {daemon} daemon at `{address}`: {error}");
            Failure::new(FailureClass::Environment, reason).into()
        }
    })
}

/// Turns a missing answer into a failure.
fn unanswered(fault: Fault, request: &Request, patience: &Patience<'_>) -> Abort {
    let shown = &request.shown;
    let failure = |class, reason: String| Abort::Failed(Failure::new(class, reason));
    match fault {
        Fault::Stopped(Stopped::Interrupted) => Abort::Interrupted,
        Fault::Stopped(Stopped::Late) => {
            let reason = format!("`{shown}` was not answered within {}", patience.allowed());
            Failure { took: patience.allowed(), ..Failure::new(FailureClass::Timeout, reason) }.into()
        }
        Fault::Stopped(Stopped::Failed(error)) => {
            failure(FailureClass::Environment, format!("cannot send `{shown}`: {error}"))
        }
        Fault::Closed(when) => failure(
            FailureClass::Crash,
            format!("the engine closed the connection {when} its answer to `{shown}`"),
        ),
        Fault::Garbage(why) => failure(FailureClass::WrongOutput, format!("`{shown}`: {why}")),
    }
}

fn accepted(answer: Answer, request: &Request) -> Result<Answer, Abort> {
    match answer.status {
        200..=299 => Ok(answer),
        _ => Err(refused(&answer, request).into()),
    }
}

/// A refusal, in the engine's own words.
pub fn refused(answer: &Answer, request: &Request) -> Failure {
    let message = serde_json::from_slice(&answer.body).ok();
    let message = message.as_ref().and_then(|value: &Value| value["message"].as_str());
    let words = message.map_or(answer.body.as_slice(), str::as_bytes);
    let reason = format!("`{}` was answered with {} {}", request.shown, answer.status, answer.reason);
    Failure::new(class(answer.status, words), reason.trim_end()).with_words(words)
}

/// The words are more specific than the status; the status decides where they are not recognised.
fn class(status: u16, words: &[u8]) -> FailureClass {
    match (command::class_of(words), status) {
        (FailureClass::Crash, 401 | 403) => FailureClass::Permission,
        (FailureClass::Crash, 404 | 409 | 503) => FailureClass::Environment,
        (FailureClass::Crash, 400 | 405 | 501) => FailureClass::Unsupported,
        (class, _) => class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no(status: u16, body: &str) -> Failure {
        let answer = Answer { status, reason: "Reason".into(), body: body.as_bytes().to_vec() };
        refused(&answer, &Request::plain("POST", "/containers/create"))
    }

    #[test]
    fn a_no_has_a_class_and_the_words_of_the_engine() {
        let failure = no(404, r#"{"message":"No such image: nosuch:latest"}"#);
        assert_eq!(failure.class, FailureClass::Environment);
        assert_eq!(
            failure.to_string(),
            "environment: `POST /containers/create` was answered with 404 Reason: No such image: nosuch:latest"
        );
        assert_eq!(no(400, r#"{"message":"invalid runtime \"x\""}"#).class, FailureClass::Unsupported);
        assert_eq!(no(500, r#"{"message":"no space left on device"}"#).class, FailureClass::Environment);
        assert_eq!(no(500, r#"{"message":"it is broken"}"#).class, FailureClass::Crash);
        assert_eq!(no(403, "no").class, FailureClass::Permission);
        assert_eq!(no(500, "plain words").words.as_deref(), Some("plain words"));
        assert_eq!(no(500, "").words, None);
    }
}
