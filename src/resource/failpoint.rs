//! Kills this process at a chosen write of the journal, so that tests can look at what a kill there leaves.
//!
//! Only where debug assertions are compiled in, which are the profiles of development and of the tests. `DUNNAGE_KILL_AT_WRITE=3`
//! kills at the third write, and `DUNNAGE_WRITES=FILE` appends each line to a file.

use serde::Serialize;

/// This line was written, and nothing made yet, or is about to be written, and everything is undone.
#[cfg(debug_assertions)]
pub(super) fn reached(line: &impl Serialize) {
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    static WRITES: AtomicUsize = AtomicUsize::new(0);

    let number = WRITES.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(path) = std::env::var_os("DUNNAGE_WRITES") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // One write, since several threads may have reached one.
        let line = serde_json::to_string(line).unwrap_or_default();
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
    if std::env::var("DUNNAGE_KILL_AT_WRITE").is_ok_and(|at| at == number.to_string()) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

#[cfg(not(debug_assertions))]
pub(super) fn reached(_: &impl Serialize) {}
