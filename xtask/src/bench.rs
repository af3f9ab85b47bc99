//! Builds and runs the benchmarks of the instrument itself, in the release profile. They are in `benches/instrument`, where they
//! can use the program's own launches.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cargo::cargo;

/// Passes on names and options.
pub fn run(arguments: &[&str]) -> Result<ExitCode> {
    let mut command = cargo();
    command.args(["bench", "--package", "dunnage", "--bench", "instrument", "--"]).args(arguments);
    let status = command.status().context("cannot run `cargo bench`")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
