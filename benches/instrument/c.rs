//! The yardsticks in C: compiled when they are needed, and run one launch at a time.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/xtask/c");
const FLAGS: [&str; 3] = ["-std=c11", "-O2", "-static"];
const WITHOUT_LIBC: [&str; 3] = ["-nostdlib", "-ffreestanding", "-fno-stack-protector"];

/// Whether a yardstick is linked with libc.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Libc {
    With,
    Without,
}

/// Compiles `xtask/c/NAME.c` into a directory.
pub fn compile(name: &str, libc: Libc, directory: &Path) -> Result<PathBuf> {
    let executable = directory.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(FLAGS);
    if libc == Libc::Without {
        compiler.args(WITHOUT_LIBC);
    }
    compiler.arg("-o").arg(&executable).arg(format!("{SOURCES}/{name}.c"));
    let status = compiler.status().context("cannot run `cc`")?;
    ensure!(status.success(), "`cc` cannot compile `{name}.c`");
    Ok(executable)
}

/// A yardstick that launches once for every line of input.
pub struct Coprocess {
    process: Child,
    /// Closed first, which ends the yardstick.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Coprocess {
    /// Starts it.
    pub fn start(mut command: Command) -> Result<Coprocess> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Coprocess { process, input, output })
    }

    /// Makes it launch once; returns the numbers of its answer.
    pub fn go<const N: usize>(&mut self) -> Result<[i64; N]> {
        let input = self.input.as_mut().context("the yardstick has been ended")?;
        input.write_all(b"go\n").context("the yardstick no longer reads")?;
        let mut line = String::new();
        self.output.read_line(&mut line).context("the yardstick does not answer")?;
        let numbers: Vec<i64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().ok().with_context(|| format!("the yardstick answered `{}`", line.trim()))
    }
}

impl Drop for Coprocess {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.process.wait();
    }
}
