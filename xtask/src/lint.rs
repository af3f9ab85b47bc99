//! Is the code formatted, and is clippy content?

use std::io;
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::cargo::{PROFILE, cargo};

/// How strictly to ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lint {
    /// Not at all.
    Skip,
    /// A component that is not installed is told and passed over.
    IfInstalled,
    /// A component that is not installed is a failure.
    Required,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lints {
    /// Nothing found, or nothing asked.
    Clean,
    /// Something found, and already printed.
    Dirty,
}

/// Checks the format, then the lints, with warnings as errors; both even when the first fails.
pub fn run(lint: Lint) -> Result<Lints> {
    if lint == Lint::Skip {
        return Ok(Lints::Clean);
    }
    // The profile of the tests, so that procedural macros are built once for both.
    let clippy = ["clippy", "--workspace", "--all-targets", "--profile", PROFILE, "--", "-D", "warnings"];
    let mut found = Lints::Clean;
    for args in [&["fmt", "--all", "--check"][..], &clippy[..]] {
        if check(lint, args)? == Lints::Dirty {
            eprintln!("xtask: `cargo {}` found something", args.join(" "));
            found = Lints::Dirty;
        }
    }
    Ok(found)
}

fn check(lint: Lint, args: &[&str]) -> Result<Lints> {
    let installed = cargo()
        .args([args[0], "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run `cargo`")?
        .success();
    if !installed {
        eprintln!("xtask: `cargo {}` is not installed, so it is not asked", args[0]);
        return Ok(if lint == Lint::Required { Lints::Dirty } else { Lints::Clean });
    }
    let status = cargo().args(args).stdout(io::stderr()).status().context("cannot run `cargo`")?;
    Ok(if status.success() { Lints::Clean } else { Lints::Dirty })
}
