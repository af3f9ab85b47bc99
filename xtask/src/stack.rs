//! Runs a command in another Debian release's container stack, on this machine's kernel; see `xtask/stack.sh`.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

fn script(release: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("stack.sh")).arg(release);
    command
}

/// Runs a command in a release's stack.
pub fn run(release: &str, command: &[String]) -> Result<ExitCode> {
    let status = script(release).args(command).status().context("cannot run `bash`")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
