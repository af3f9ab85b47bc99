//! The cargo to run, and the profile in which tests are built.

use std::process::Command;

/// The cargo that runs xtask, so that the toolchain stays the same.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The profile in which tests are built, which is quick to build.
pub const PROFILE: &str = "tests";
