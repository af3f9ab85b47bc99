//! One test in a process of its own: its output, its time, and how it ended.

use std::fs::{self, File};
use std::io::ErrorKind;
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
        let skips = match fs::read_to_string(&skips) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            skips => skips?,
        };
        Ok(judge(status, said, skips))
    });
    for file in [&output, &skips] {
        let _ = fs::remove_file(file);
    }
    outcome.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}\n")))
}

fn start(test: &Test, root: &Path, required: &str, output: &Path, skips: &Path) -> Result<Child> {
    let file = File::create(output).with_context(|| format!("cannot create `{}`", output.display()))?;
    Command::new(&test.executable)
        // What a test prints is known also if it hangs or aborts.
        .args(["--nocapture", "--exact", &test.path])
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
            let started = descendants(child.id());
            child.kill().context("cannot kill a test")?;
            // What it started would run next to the tests that follow.
            let _ = Command::new("kill").arg("-KILL").args(started.iter().map(u32::to_string)).status();
            child.wait().context("cannot wait for a test")?;
            return Ok(None);
        }
        sleep(look);
        look = (look * 2).min(LONGEST_LOOK);
    }
}

/// The processes below this one.
fn descendants(above: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents = processes.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        Some((entry.file_name().to_str()?.parse().ok()?, fields.split(' ').nth(1)?.parse().ok()?))
    });
    let parents: Vec<(u32, u32)> = parents.collect();
    let mut found = vec![above];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, own)| *own == parent).map(|(process, _)| process));
        at += 1;
    }
    found.split_off(1)
}

fn judge(status: Option<ExitStatus>, said: String, skips: String) -> Outcome {
    match status {
        None => Outcome::Failed(format!("{said}\nkilled, because it had not ended after {DEADLINE:?}\n")),
        Some(status) if !status.success() => Outcome::Failed(format!("{said}\n{status}\n")),
        // Under a wrong name nothing runs, and that is a success for libtest.
        Some(_) if !has_passed(&said) => Outcome::Failed(format!("{said}\nno test has run\n")),
        Some(_) if skips.lines().any(|line| line.starts_with("skipped: ")) => Outcome::Skipped(skips),
        Some(_) if !skips.is_empty() => Outcome::Noted(skips),
        Some(_) => Outcome::Passed,
    }
}

/// By the last verdict, since a test may print one too.
fn has_passed(said: &str) -> bool {
    let verdict = said.lines().rev().find(|line| line.starts_with("test result: "));
    verdict.is_some_and(|line| line.starts_with("test result: ok. 1 passed;"))
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
        let none = "echo 'test result: ok. 0 passed; 0 failed'";
        for script in [none, "exit 3", &format!("{OK}; kill -9 $$"), &format!("{OK}; {none}")] {
            assert!(matches!(judged(script, "why\n"), Outcome::Failed(_)), "{script}");
        }
        assert!(matches!(judge(None, String::new(), String::new()), Outcome::Failed(_)));
    }

    #[test]
    fn processes_below_one_are_found_at_any_depth() {
        let mut child = Command::new("sh").args(["-c", "sh -c 'sleep 99; :' & wait"]).spawn().expect("sh");
        let began = Instant::now();
        while descendants(child.id()).len() < 2 && began.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(5));
        }
        let all = descendants(child.id());
        child.kill().expect("our child");
        let killed = Command::new("kill").arg("-KILL").args(all.iter().map(u32::to_string)).status();
        assert!(killed.expect("kill").success() && all.len() == 2, "{all:?}");
        child.wait().expect("our child");
    }
}
