//! Programs that are needed to make a resource: finds them, or names the package that has them; and runs
//! them.

use std::path::{Path, PathBuf};

use super::command;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::sys::process::on_path;
use crate::sys::signals::Interrupts;
use crate::units::Nanos;

/// How long a tool may take.
const WORKING: Nanos = Nanos::from_millis(60_000);

/// The tool with this name; administrators' tools may not be on the search path.
pub(crate) fn find(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let beside = ["/usr/sbin", "/sbin"].map(|directory| Path::new(directory).join(name));
    on_path(name).or_else(|| beside.into_iter().find(|path| path.exists())).ok_or_else(|| {
        let reason = format!("`{name}` is not installed: install the package `{package}`");
        Failure::new(FailureClass::Unsupported, reason)
    })
}

/// Runs a tool to its end.
pub(super) fn run(path: &Path, arguments: &[&str], interrupts: &Interrupts) -> Result<(), Abort> {
    command::carry_out(&command::program(path, arguments)?, WORKING, interrupts).map(drop)
}
