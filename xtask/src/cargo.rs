//! Which cargo runs, and in which profile tests are built.

use std::process::Command;

/// The cargo that runs us, so that the toolchain stays the same.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The profile in which tests are built: optimised, since the probe is, and quick to build.
pub const PROFILE: &str = "tests";
