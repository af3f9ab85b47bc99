//! One test in a process of its own: its output, its time, and how it ended.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::build::Test;

/// After this long a test is killed and has failed.
const DEADLINE: Duration = Duration::from_secs(600);
const LONGEST_LOOK: Duration = Duration::from_millis(20);

/// How a test ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It ran to its end.
    Passed,
    /// It ran to its end, and says these lines besides.
    Noted(String),
    /// It lacked something, in these lines.
    Skipped(String),
    /// It did not pass, with its output.
    Failed(String),
}

/// Runs it. Its files get this name in the directory and are removed.
pub fn run(test: &Test, root: &Path, required: &str, scratch: &Path, name: &str) -> Outcome {
    let [output, skips] = ["output", "skips"].map(|kind| scratch.join(format!("{name}.{kind}")));
    let outcome = start(test, root, required, &output, &skips).and_then(|mut child| {
        let status = wait(&mut child)?;
        // A process that it left may still write to the file, so this is a file and not a pipe.
        let said = String::from_utf8_lossy(&fs::read(&output)?).into_owned();
        Ok(judge(status, said, fs::read_to_string(&skips).unwrap_or_default()))
    });
    for file in [&output, &skips] {
        let _ = fs::remove_file(file);
    }
    outcome.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}\n")))
}

fn start(test: &Test, root: &Path, required: &str, output: &Path, skips: &Path) -> Result<Child> {
    let file = File::create(output).with_context(|| format!("cannot create `{}`", output.display()))?;
    Command::new(&test.executable)
        .args(["--exact", &test.path])
        .current_dir(root)
        .env(super::REQUIRE, required)
        .env(super::SKIPS, skips)
        .stdin(Stdio::null())
        .stdout(file.try_clone().context("cannot duplicate a descriptor")?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot run `{}`", test.executable.display()))
}

/// `None` if it had to be killed.
fn wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    let mut look = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a test")? {
            return Ok(Some(status));
        }
        if began.elapsed() > DEADLINE {
            child.kill().context("cannot kill a test")?;
            child.wait().context("cannot wait for a test")?;
            return Ok(None);
        }
        sleep(look);
        look = (look * 2).min(LONGEST_LOOK);
    }
}

fn judge(status: Option<ExitStatus>, said: String, skips: String) -> Outcome {
    match status {
        None => Outcome::Failed(format!("{said}\nkilled, because it had not ended after {DEADLINE:?}\n")),
        Some(status) if !status.success() => Outcome::Failed(format!("{said}\n{status}\n")),
        // Under a wrong name nothing runs, and that is a success for libtest.
        Some(_) if !said.contains("test result: ok. 1 passed;") => {
            Outcome::Failed(format!("{said}\nno test has run\n"))
        }
        Some(_) if skips.lines().any(|line| line.starts_with("skipped: ")) => Outcome::Skipped(skips),
        Some(_) if !skips.is_empty() => Outcome::Noted(skips),
        Some(_) => Outcome::Passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(script: &str, skips: &str) -> Outcome {
        let output = Command::new("sh").args(["-c", script]).output().expect("sh");
        judge(Some(output.status), String::from_utf8_lossy(&output.stdout).into_owned(), skips.to_owned())
    }

    #[test]
    fn a_test_passes_only_if_it_ran() {
        const OK: &str = "echo 'test result: ok. 1 passed; 0 failed'";
        assert_eq!(judged(OK, ""), Outcome::Passed);
        assert_eq!(judged(OK, "skipped: why\n"), Outcome::Skipped("skipped: why\n".to_owned()));
        assert_eq!(judged(OK, "note: why\n"), Outcome::Noted("note: why\n".to_owned()));
        for script in ["echo 'test result: ok. 0 passed; 0 failed'", "exit 3", &format!("{OK}; kill -9 $$")] {
            assert!(matches!(judged(script, "why\n"), Outcome::Failed(_)), "{script}");
        }
        assert!(matches!(judge(None, String::new(), String::new()), Outcome::Failed(_)));
    }
}
