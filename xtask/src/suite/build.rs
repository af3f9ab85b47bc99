//! Builds the test executables and asks them for their tests.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{PROFILE, cargo};

/// A test of an executable.
#[derive(Clone, Debug)]
pub struct Test {
    /// The executable that has it.
    pub executable: PathBuf,
    /// Its path in that executable.
    pub path: String,
    /// `EXECUTABLE::PATH`.
    pub name: String,
}

/// Builds the executables that cargo chooses by these words, and lists every test of them.
pub fn tests(root: &Path, words: &[&str]) -> Result<Vec<Test>> {
    let mut all = Vec::new();
    for executable in executables(root, words)? {
        all.extend(list(&executable)?);
    }
    Ok(all)
}

fn executables(root: &Path, words: &[&str]) -> Result<Vec<PathBuf>> {
    let mut child = cargo()
        .args(["test", "--no-run", "--workspace", "--profile", PROFILE])
        .args(words)
        .current_dir(root)
        // The lines that name the executables have this form, also where the user prefers another.
        .envs([("CARGO_TERM_COLOR", "never"), ("CARGO_TERM_QUIET", "false"), ("CARGO_TERM_VERBOSE", "false")])
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run `cargo test --no-run`")?;
    let mut found = Vec::new();
    // Cargo names each executable on standard error, where its progress goes too.
    for line in BufReader::new(child.stderr.take().context("no standard error")?).split(b'\n') {
        let line = line.context("cannot read the output of `cargo test --no-run`")?;
        let line = String::from_utf8_lossy(&line);
        // The reader may have gone.
        let _ = writeln!(std::io::stderr(), "{line}");
        found.extend(named(&line).map(|path| root.join(path)));
    }
    let status = child.wait().context("cannot wait for `cargo test --no-run`")?;
    ensure!(status.success(), "`cargo test --no-run`: {status}");
    ensure!(!found.is_empty(), "`cargo test --no-run` named no executable");
    Ok(found)
}

/// The path in `  Executable tests/quick.rs (target/tests/deps/quick-1a2b3c)`.
fn named(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Executable ")?;
    rest.rsplit_once(" (")?.1.strip_suffix(')')
}

/// The name of an executable without cargo's hash.
fn short(executable: &Path) -> String {
    let stem = executable.file_name().unwrap_or_default().to_string_lossy();
    stem.rsplit_once('-').map_or(stem.to_string(), |(name, _)| name.to_owned())
}

fn list(executable: &Path) -> Result<Vec<Test>> {
    let output = Command::new(executable)
        .args(["--list", "--format", "terse"])
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", executable.display()))?;
    if !output.status.success() {
        let _ = std::io::stderr().write_all(&output.stderr);
        bail!("`{} --list`: {}", executable.display(), output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let test = |path: &str| Test {
        executable: executable.to_owned(),
        path: path.to_owned(),
        name: format!("{}::{path}", short(executable)),
    };
    let tests: Vec<_> = paths.map(test).collect();
    ensure!(!tests.is_empty(), "`{} --list` names no test", executable.display());
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_in_what_cargo_says() {
        let line = "  Executable unittests src/lib.rs (target/x86_64/tests/deps/dunnage_report-0a1b)";
        let path = named(line).expect("a path");
        assert_eq!(path, "target/x86_64/tests/deps/dunnage_report-0a1b");
        assert_eq!(short(Path::new(path)), "dunnage_report");
        assert_eq!(named("   Compiling tempfile v3.2 (/somewhere)"), None);
    }
}
