//! Programs that making a resource takes: found, or told with the package that has them; and run.

use std::path::{Path, PathBuf};

use crate::outcome::{Abort, Failure, FailureClass};
use crate::sys::process::on_path;
use crate::sys::signals::Interrupts;
use crate::sys::spawn::{self, Program, Status, Unfinished};
use crate::units::Nanos;

/// How long a tool may work.
const WORKING: Nanos = Nanos::from_millis(60_000);

/// A failure of the machine or of what we made on it.
pub(super) fn environment(reason: String) -> Failure {
    Failure::new(FailureClass::Environment, reason)
}

/// The tool with this name; administrators' tools are not on the path of everybody.
pub(super) fn find(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let beside = ["/usr/sbin", "/sbin"].map(|directory| Path::new(directory).join(name));
    on_path(name).or_else(|| beside.into_iter().find(|path| path.exists())).ok_or_else(|| {
        let reason = format!("`{name}` is not installed; install the package `{package}`");
        Failure::new(FailureClass::Unsupported, reason)
    })
}

/// Runs a tool to its end.
pub(super) fn run(path: &Path, arguments: &[&str], interrupts: &Interrupts) -> Result<(), Abort> {
    let cannot = |error: std::io::Error| environment(format!("cannot start `{}`: {error}", path.display()));
    let program = Program::new(path, arguments).map_err(cannot)?;
    let shown = program.shown();
    match spawn::start(&program).map_err(cannot)?.wait(WORKING, Some(interrupts)) {
        Ok(ended) if ended.status == Status::Exited(0) => Ok(()),
        Ok(ended) => {
            let reason = format!("`{shown}` ended with {}", ended.status);
            Err(environment(reason).with_words(&ended.stderr).into())
        }
        Err(Unfinished::Interrupted) => Err(Abort::Interrupted),
        Err(Unfinished::TimedOut { stderr, .. }) => {
            let reason = format!("`{shown}` did not end within {WORKING}");
            Err(Failure::new(FailureClass::Timeout, reason).with_words(&stderr).into())
        }
        Err(Unfinished::Failed(error)) => {
            Err(environment(format!("cannot wait for `{shown}`: {error}")).into())
        }
    }
}
