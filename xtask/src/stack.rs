//! Runs a command in another Debian release's container stack, on this machine's kernel; see `xtask/stack.sh`.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};

/// The release that the tests use.
const TRIED: &str = "trixie";

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

/// Starts to make the root of the release that the tests use, unless it exists: this takes a minute, mostly of waiting for the
/// archive, while cargo compiles. The test waits for it, and is skipped if the release cannot be made.
pub fn begin(scratch: &Path) -> Result<Child> {
    let log = File::create(scratch.join("stack.log")).context("cannot create a log")?;
    let mut command = script(TRIED);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().context("cannot run `bash`")
}
