//! Builds and runs the tests, shows their output as it comes, and reports the totals.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{PROFILE, cargo};
use crate::daemon::Docker;
use crate::guest::Guest;
use crate::lint::Lints;
use crate::machine::Machine;
use crate::totals::Totals;

/// Comma-separated needs; a test fails instead of skipping if one of these is missing.
const REQUIRE: &str = "DUNNAGE_TEST_REQUIRE";
/// The file to which a skipping test appends its line.
const SKIPS: &str = "DUNNAGE_TEST_SKIPS";

/// A new directory for the daemon's log and the list of skips.
pub fn scratch() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("dunnage-test-{}", std::process::id()));
    fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path)
}

/// Runs every test.
pub fn run(required: String, scratch: &Path, for_cargo: &[String]) -> Result<Totals> {
    let mut child = cargo()
        .args(["test", "--workspace", "--profile", PROFILE, "--no-fail-fast"])
        .args(for_cargo)
        .env(REQUIRE, required)
        .env(SKIPS, skips(scratch))
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `cargo test`")?;
    let mut totals = Totals::default();
    for line in BufReader::new(child.stdout.take().context("no standard output")?).split(b'\n') {
        let line = line.context("cannot read the output of `cargo test`")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        totals.add_line(&line);
    }
    let status = child.wait().context("cannot wait for `cargo test`")?;
    if !status.success() && totals.failed == 0 {
        println!("cargo test: {status}: a build failed, or a test executable ended without a result");
        totals.failed = 1;
    }
    Ok(totals)
}

/// Prints the skips, and the totals in the last line.
pub fn conclude(totals: &Totals, lints: Lints, scratch: &Path) -> Result<ExitCode> {
    let lines = fs::read_to_string(skips(scratch)).unwrap_or_default();
    let mut totals = *totals;
    totals.take_out_skipped(&lines);
    println!("\n{lines}{} skip(s) with a reason", lines.lines().count());
    let fine = totals.failed == 0 && lints == Lints::Clean;
    if fine {
        fs::remove_dir_all(scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    } else {
        println!("logs are kept in {}", scratch.display());
    }
    if lints == Lints::Dirty {
        println!("format or lints have problems, see above");
    }
    println!("{totals}");
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The needs whose absence fails a test, comma-separated. The environment variable takes precedence, even if it is empty.
pub fn required(machine: &Machine, docker: &Docker, guest: Guest) -> String {
    if let Ok(asked) = std::env::var(REQUIRE) {
        return asked;
    }
    let Machine::Ours = machine else { return String::new() };
    let mut needs = vec!["docker", "podman", "runc", "crun"];
    // A daemon that xtask did not start may not know crun: then the test skips with that reason.
    if docker.knows_crun {
        needs.push("docker+crun");
    }
    // Debian's archive may be unreachable, and other distributions do not have this kernel.
    if guest == Guest::Ready {
        needs.push("guest");
    }
    needs.join(",")
}

fn skips(scratch: &Path) -> PathBuf {
    scratch.join("skips")
}
