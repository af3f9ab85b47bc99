//! Checks the format and the lints.

use std::io;
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::cargo::{PROFILE, cargo};

/// How strict to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lint {
    /// Skip the checks.
    Skip,
    /// Report a component that is not installed.
    IfInstalled,
    /// Fail if a component is not installed.
    Required,
}

/// The result.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum Lints {
    /// Nothing was found, or nothing was checked.
    #[default]
    Clean,
    /// Something was found and printed.
    Dirty,
}

/// Checks the format and then the lints, with warnings as errors; the second check runs even if the first fails.
pub fn run(lint: Lint) -> Result<Lints> {
    if lint == Lint::Skip {
        return Ok(Lints::Clean);
    }
    // With the profile of the tests, so that procedural macros are built only once.
    let clippy = ["clippy", "--workspace", "--all-targets", "--profile", PROFILE, "--", "-D", "warnings"];
    let mut found = Lints::Clean;
    for args in [&["fmt", "--all", "--check"][..], &clippy[..]] {
        if check(lint, args)? == Lints::Dirty {
            eprintln!("xtask: `cargo {}` found problems", args.join(" "));
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
        eprintln!("xtask: skipping `cargo {}`, which is not installed", args[0]);
        return Ok(if lint == Lint::Required { Lints::Dirty } else { Lints::Clean });
    }
    let status = cargo().args(args).stdout(io::stderr()).status().context("cannot run `cargo`")?;
    Ok(if status.success() { Lints::Clean } else { Lints::Dirty })
}
