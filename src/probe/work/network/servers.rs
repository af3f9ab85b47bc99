//! The servers of this probe: child processes that die with it, dunnage's own or a user's program. So their CPU time is separate from that of the
//! probe, and the probe can carry out other orders.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Mutex;

use super::super::command::end_what_is_left;
use crate::outcome::{Failure, FailureClass, OrEnvironment};
use crate::sys::command::Reaped;
use crate::sys::{clock, command};
use crate::units::Nanos;

/// Their process ids.
static ALL: Mutex<Vec<i32>> = Mutex::new(Vec::new());
/// What a user's program wrote to its standard error.
static SAID: Mutex<Option<File>> = Mutex::new(None);
/// How many of its last bytes are read.
const LAST: u64 = 2000;

/// Starts a server. Returns its process id, and how many there are now.
pub fn begin(serve: impl FnOnce()) -> Result<(i32, usize), Failure> {
    let pid = command::fork_to(serve)
        .map_err(std::io::Error::from_raw_os_error)
        .or_environment("cannot start a server")?;
    let mut all = ALL.lock().expect("no thread panics while it holds the lock");
    all.push(pid);
    Ok((pid, all.len()))
}

/// Keeps where a user's program writes its errors.
pub fn listen_to(errors: File) {
    *SAID.lock().expect("no thread panics while it holds the lock") = Some(errors);
}

/// Ends all of them, with the processes that they started.
pub fn end() {
    ALL.lock().expect("no thread panics while it holds the lock").clear();
    end_what_is_left();
}

/// The CPU time that they have used so far, with the processes that they started and that still run.
///
/// # Errors
/// If one of them has ended.
pub fn cpu() -> Result<Nanos, Failure> {
    let all = ALL.lock().expect("no thread panics while it holds the lock");
    let of = |pid: &i32| match command::reap(*pid, libc::WNOHANG) {
        Ok(None) => with_children(*pid).or_environment("cannot read the CPU time of a server"),
        ended => Err(told(ended.ok().flatten())),
    };
    all.iter().map(of).sum::<Result<i64, _>>().map(Nanos)
}

fn with_children(pid: i32) -> std::io::Result<i64> {
    let own = clock::process_cpu(pid)?.0;
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|word| word.parse().ok());
    Ok(own + children.map(|child| with_children(child).unwrap_or(0)).sum::<i64>())
}

/// That a server has ended, and its last words.
fn told(reaped: Option<Reaped>) -> Failure {
    let status = reaped.map_or(0, |reaped| reaped.status);
    let how = match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code) => format!("exit code {code}"),
        (false, _) => format!("signal {}", libc::WTERMSIG(status)),
    };
    let mut words = Vec::new();
    if let Some(said) = SAID.lock().expect("no thread panics while it holds the lock").as_mut() {
        let length = said.metadata().map_or(0, |about| about.len());
        let _ = said.seek(SeekFrom::Start(length.saturating_sub(LAST)));
        let _ = said.read_to_end(&mut words);
    }
    let words = String::from_utf8_lossy(&words);
    let last = words.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map(|line| format!(": {}", line.trim())).unwrap_or_default();
    Failure::new(FailureClass::Crash, format!("the server has ended with {how}{last}"))
}
