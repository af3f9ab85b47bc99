//! axe-core, with which tests check the accessibility of the html report: a pinned package, installed by npm under
//! `target/axe`, where npm checks it against the hash in the lock file. None of its scripts run.
//!
//! npm itself is not installed, because it brings hundreds of packages. Without npm, one test is skipped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs it if it is missing or has another version. Returns whether it is there; a failure is only reported.
pub fn ensure() -> bool {
    let installed = install();
    if let Err(error) = &installed {
        eprintln!("xtask: warning: the page will not be checked with axe-core: {error:#}");
    }
    installed.is_ok()
}

fn install() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (pinned, target) = (root.join("tests/html/axe"), root.join("target/axe"));
    let is_known = FILES.iter().all(|file| same(&pinned.join(file), &target.join(file)));
    if is_known && target.join("node_modules/axe-core/axe.min.js").is_file() {
        return Ok(());
    }
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let status = copy(&pinned, &target).and_then(|()| npm(&target))?;
    ensure!(status.success(), "`npm ci` in {}: {status}", target.display());
    Ok(())
}

fn same(one: &Path, other: &PathBuf) -> bool {
    fs::read(one).ok().is_some_and(|text| fs::read(other).is_ok_and(|own| own == text))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in FILES {
        fs::copy(from.join(file), to.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}

fn npm(directory: &Path) -> Result<std::process::ExitStatus> {
    eprintln!("xtask: npm ci in target/axe");
    Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .context("cannot run `npm`")
}
