//! The servers of this probe: child processes that die with it. So their CPU time is separate from that of the
//! probe, and the probe can carry out other orders.

use std::sync::Mutex;

use crate::outcome::{Failure, FailureClass, OrEnvironment};
use crate::sys::{clock, command};
use crate::units::Nanos;

/// Their process ids.
static ALL: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Starts a server. Returns its process id, and how many there are now.
pub fn begin(serve: impl FnOnce()) -> Result<(i32, usize), Failure> {
    let pid = command::fork_to(serve)
        .map_err(std::io::Error::from_raw_os_error)
        .or_environment("cannot start a server")?;
    let mut all = ALL.lock().expect("no thread panics while it holds the lock");
    all.push(pid);
    Ok((pid, all.len()))
}

/// The CPU time that they have used so far.
///
/// # Errors
/// If one of them has ended.
pub fn cpu() -> Result<Nanos, Failure> {
    let all = ALL.lock().expect("no thread panics while it holds the lock");
    let of = |pid: &i32| match command::reap(*pid, libc::WNOHANG) {
        Ok(None) => {
            clock::process_cpu(*pid).map(|used| used.0).or_environment("cannot read the CPU time of a server")
        }
        _ => Err(Failure::new(FailureClass::Crash, format!("the server with process id {pid} has ended"))),
    };
    all.iter().map(of).sum::<Result<i64, _>>().map(Nanos)
}
