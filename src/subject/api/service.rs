//! An engine without a daemon, made to serve its API for one subject: started when the subject is
//! prepared, ended when it is finished. It says itself when it is ready (`NOTIFY_SOCKET`).

use std::path::{Path, PathBuf};

use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::journal::Entry;
use crate::resource::service::service;
use crate::subject::RunContext;
use crate::sys::clock;
use crate::sys::signals::Interrupts;
use crate::sys::socket::{Mailbox, Patience, Stopped};
use crate::sys::spawn::{self, Child, Program, Unfinished};
use crate::units::Nanos;

/// How long it may take to get ready.
const START: Nanos = Nanos::from_millis(20_000);
/// How long it may take to end when it is asked to.
const END: Nanos = Nanos::from_millis(5_000);

/// A service that is ready.
#[derive(Debug)]
pub struct Service {
    child: Child,
    entry: Entry,
    /// Where it listens.
    pub socket: PathBuf,
    /// The processes that serve: the one that was started, and the one that says it is ready,
    /// which is another where the engine first makes itself a user namespace.
    pub processes: Vec<i32>,
    /// From right before it was started until it said that it was ready.
    pub start_up: Nanos,
}

fn environment(reason: String) -> Failure {
    Failure::new(FailureClass::Environment, reason)
}

impl Service {
    /// Starts `program` with these arguments and, as the last one, where to listen.
    pub fn start(
        run: &RunContext,
        program: &Path,
        arguments: &[String],
        name: &str,
    ) -> Result<Service, Abort> {
        let directory = run.workspace();
        let socket = directory.join(format!("{name}.socket"));
        let address = format!("unix://{}", socket.display());
        let resource = service(program, &address);
        let entry = run.note(resource)?;
        let ready = directory.join(format!("{name}.ready"));
        let started = std::fs::create_dir_all(&directory)
            .map_err(|error| environment(format!("cannot make `{}`: {error}", directory.display())))
            .and_then(|()| {
                let mailbox = Mailbox::at(&ready);
                mailbox
                    .map_err(|error| environment(format!("cannot listen at `{}`: {error}", ready.display())))
            })
            .map_err(Abort::from)
            .and_then(|mailbox| {
                let arguments = arguments.iter().cloned().chain([address]);
                begin(program, arguments, &ready, &mailbox, &run.interrupts)
            });
        let _ = std::fs::remove_file(&ready);
        match started {
            Ok((child, processes, start_up)) => Ok(Service { child, entry, socket, processes, start_up }),
            Err(abort) => {
                // Whatever was started has been ended.
                run.cross_out(entry);
                Err(abort)
            }
        }
    }

    /// Takes what it has written so far.
    pub fn drain(&mut self) {
        self.child.drain();
    }

    /// Ends it.
    pub fn end(self, run: &RunContext) {
        if !matches!(self.child.end(END), Err(Unfinished::Failed(_))) {
            run.cross_out(self.entry);
        }
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Starts it and waits until it says that it is ready; one that does not is ended.
fn begin(
    program: &Path,
    arguments: impl Iterator<Item = String>,
    ready: &Path,
    mailbox: &Mailbox,
    interrupts: &Interrupts,
) -> Result<(Child, Vec<i32>, Nanos), Abort> {
    let broken =
        |error: std::io::Error| environment(format!("cannot start `{}`: {error}", program.display()));
    let program = Program::new(program, arguments).map_err(broken)?;
    let shown = program.shown();
    let entries = std::env::vars_os().filter(|(name, _)| name != "NOTIFY_SOCKET").map(|(name, value)| {
        let mut entry = name;
        entry.push("=");
        entry.push(value);
        entry
    });
    let mut notify = std::ffi::OsString::from("NOTIFY_SOCKET=");
    notify.push(ready);
    let entries: Vec<_> = entries.chain([notify]).collect();
    let program = program.with_environment(&entries).map_err(broken)?;
    let child =
        spawn::start(&program).map_err(|error| environment(format!("cannot start `{shown}`: {error}")))?;
    let mut patience = Patience::new(START, Some(interrupts));
    let (waited, message) = loop {
        let waited = patience.wait_for_either(mailbox, &child);
        let message = mailbox.message();
        // A service may have other things to say first.
        if waited.is_err() || !matches!(&message, Some(text) if !says_ready(text)) {
            break (waited, message);
        }
    };
    let start_up = clock::now().since(child.spawned);
    if let (Ok(()), Some(message)) = (&waited, &message) {
        let mut processes = vec![child.pid];
        processes.extend(main_process(message).filter(|pid| *pid != child.pid));
        return Ok((child, processes, start_up));
    }
    let ended = child.end(if waited.is_ok() { END } else { Nanos(0) });
    let stderr = match &ended {
        Ok(ended) => &ended.stderr[..],
        Err(Unfinished::TimedOut { stderr, .. }) => stderr,
        Err(_) => b"",
    };
    Err(match waited {
        Ok(()) => environment(format!("`{shown}` ended before it was ready")).with_words(stderr).into(),
        Err(Stopped::Interrupted) => Abort::Interrupted,
        Err(Stopped::Late) => {
            let reason = format!("`{shown}` did not say within {START} that it was ready");
            let failure = Failure::new(FailureClass::Timeout, reason).with_words(stderr);
            Failure { took: START, ..failure }.into()
        }
        Err(Stopped::Failed(error)) => environment(format!("cannot wait for `{shown}`: {error}")).into(),
    })
}

fn says_ready(message: &str) -> bool {
    message.lines().any(|line| line == "READY=1")
}

/// The process that does the work, as the message names it.
fn main_process(message: &str) -> Option<i32> {
    message.lines().find_map(|line| line.strip_prefix("MAINPID="))?.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(script: &str) -> Result<(Child, Vec<i32>, Nanos), Abort> {
        let place = tempfile::tempdir().unwrap();
        let ready = place.path().join("ready");
        let mailbox = Mailbox::at(&ready).unwrap();
        let interrupts = Interrupts::install().unwrap();
        let arguments = ["-c".to_owned(), script.to_owned()].into_iter();
        begin(Path::new("/bin/sh"), arguments, &ready, &mailbox, &interrupts)
    }

    #[test]
    fn a_service_that_ends_is_not_waited_for_and_its_words_are_kept() {
        let Err(Abort::Failed(failure)) = begun("echo 'no such thing' >&2; exit 3") else {
            panic!("it was taken for ready")
        };
        assert_eq!(failure.class, FailureClass::Environment);
        assert!(failure.to_string().ends_with("ended before it was ready: no such thing"), "{failure}");
    }

    #[test]
    fn the_message_names_the_process_that_serves() {
        assert_eq!(main_process("MAINPID=42\nREADY=1"), Some(42));
        assert!(says_ready("MAINPID=42\nREADY=1"));
        assert_eq!(main_process("READY=1"), None);
        assert!(!says_ready("STATUS=getting READY=1"));
    }
}
