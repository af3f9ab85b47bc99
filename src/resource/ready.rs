//! Starts a service and waits until it reports that it is ready (`NOTIFY_SOCKET`), without polling.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::sys::clock;
use crate::sys::signals::Interrupts;
use crate::sys::socket::{Patience, Stopped};
use crate::sys::spawn::{self, Child, Program, Unfinished};
use crate::units::Nanos;

/// How long it may take to get ready.
const START: Nanos = Nanos::from_millis(30_000);
/// How long it may take to end after SIGTERM.
const END: Nanos = Nanos::from_millis(5_000);

/// A running service.
#[derive(Debug)]
pub struct Ready {
    child: Option<Child>,
    /// The processes of the service: the one that was started, and the one that reported that it is ready,
    /// which differs if the program first makes a user namespace.
    pub processes: Vec<i32>,
    /// From right before its start until it reported that it was ready.
    pub start_up: Nanos,
}

impl Ready {
    /// Reads what it has written so far.
    pub fn drain(&mut self) {
        self.child.iter_mut().for_each(Child::drain);
    }
}

/// Reaps it; its owner has ended it before.
impl Drop for Ready {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let _ = child.wait(END, None);
        }
    }
}

/// Starts it and waits until it reports that it is ready; otherwise it is ended. `ready` is the path for its
/// message, and `log` returns what it wrote if its output does not come to dunnage.
pub(super) fn start(
    program: Program,
    ready: &Path,
    log: &dyn Fn() -> Vec<u8>,
    interrupts: &Interrupts,
) -> Result<Ready, Abort> {
    let mailbox = UnixDatagram::bind(ready)
        .and_then(|mailbox| mailbox.set_nonblocking(true).map(|()| mailbox))
        .or_environment(format_args!("cannot listen on `{}`", ready.display()))?;
    let program = program.with_variable("NOTIFY_SOCKET", ready.as_os_str());
    let program = program.or_environment("cannot start a program")?;
    let started = begin(&program, &mailbox, log, interrupts);
    let _ = std::fs::remove_file(ready);
    started
}

fn begin(
    program: &Program,
    mailbox: &UnixDatagram,
    log: &dyn Fn() -> Vec<u8>,
    interrupts: &Interrupts,
) -> Result<Ready, Abort> {
    let shown = program.shown();
    let child = spawn::start(program).or_environment(format_args!("cannot start `{shown}`"))?;
    let mut patience = Patience::new(START, Some(interrupts));
    let (waited, message) = loop {
        let waited = patience.wait_for_either(mailbox, &child);
        let mut bytes = [0u8; 4096];
        let message = mailbox.recv(&mut bytes).ok();
        let message = message.map(|count| String::from_utf8_lossy(&bytes[..count]).into_owned());
        // A service may send other messages first.
        if waited.is_err() || !matches!(&message, Some(text) if !says_ready(text)) {
            break (waited, message);
        }
    };
    let start_up = clock::now().since(child.spawned);
    if let (Ok(()), Some(message)) = (&waited, &message) {
        let mut processes = vec![child.pid];
        processes.extend(main_process(message).filter(|pid| *pid != child.pid));
        return Ok(Ready { child: Some(child), processes, start_up });
    }
    let ended = child.end(if waited.is_ok() { END } else { Nanos(0) });
    let stderr = match &ended {
        Ok(ended) => &ended.stderr[..],
        Err(Unfinished::TimedOut { stderr, .. }) => stderr,
        Err(_) => b"",
    };
    let stderr = &[stderr, &log()[..]].concat()[..];
    Err(match waited {
        Ok(()) => {
            Failure::environment(format!("`{shown}` ended before it was ready")).with_words(stderr).into()
        }
        Err(Stopped::Interrupted) => Abort::Interrupted,
        Err(Stopped::Late) => {
            let reason = format!("`{shown}` was not ready within {START}");
            let failure = Failure::new(FailureClass::Timeout, reason).with_words(stderr);
            Failure { took: START, ..failure }.into()
        }
        Err(Stopped::Failed(error)) => {
            Failure::environment(format!("cannot wait for `{shown}`: {error}")).into()
        }
    })
}

fn says_ready(message: &str) -> bool {
    message.lines().any(|line| line == "READY=1")
}

/// The process that serves, as the message names it.
fn main_process(message: &str) -> Option<i32> {
    message.lines().find_map(|line| line.strip_prefix("MAINPID="))?.parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(script: &str) -> Result<Ready, Abort> {
        let place = tempfile::tempdir().unwrap();
        let interrupts = Interrupts::install().unwrap();
        let program = Program::new(Path::new("/bin/sh"), ["-c", script]).unwrap();
        start(program, &place.path().join("ready"), &Vec::new, &interrupts)
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
