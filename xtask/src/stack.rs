//! Another Debian release's container stack on this machine's kernel: `xtask/stack.sh`, which says how, and the same
//! made ready beside other work for the test that needs one.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};

/// The release whose stack the tests try.
const TRIED: &str = "trixie";

fn script(release: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("stack.sh")).arg(release);
    command
}

/// Runs a command in the stack of a release.
pub fn run(release: &str, command: &[String]) -> Result<ExitCode> {
    let status = script(release).args(command).status().context("cannot run `bash`")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Begins to make the root of the release that the tests try, if it is not there: it takes a minute of waiting for
/// the archive, while others compile. The test waits for it, and skips where it cannot be made.
pub fn begin(scratch: &Path) -> Result<Child> {
    let log = File::create(scratch.join("stack.log")).context("cannot create a log")?;
    let mut command = script(TRIED);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().context("cannot run `bash`")
}
