//! Identifies the programs that a subject consists of: path, version, hash. No number is taken of
//! a program that is not identified.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, Result};

use super::login::Login;
use super::{Component, Unavailable};
use crate::image::Digest;
use crate::sys::signals::Interrupts;
use crate::sys::spawn::{self, Ended, Program, Status, Unfinished};
use crate::units::Nanos;

/// How a program is described that hangs when it is asked.
pub(super) const NO_ANSWER: &str = "gave no answer";
/// How long a program may take to answer a question about itself, in nanoseconds.
static ANSWER: AtomicI64 = AtomicI64::new(20_000_000_000);

/// Sets how long programs may take to answer from now on, for a verb whose person waits.
pub fn answer_within(time: Nanos) {
    ANSWER.store(time.0, Ordering::Relaxed);
}

impl Component {
    /// A program in this file, with the version that it claims.
    pub fn of_file(role: &'static str, path: &Path, version: &str) -> Result<Component> {
        let mut file =
            std::fs::File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let digest =
            Digest::of_reader(&mut file).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(Component { role, path: path.to_owned(), version: version.to_owned(), hash: digest.hex() })
    }

    /// A program that says its version when asked with `--version`; the first line counts.
    pub fn asked(role: &'static str, path: &Path) -> Result<Component, Unavailable> {
        Component::asked_as(None, role, path)
    }

    /// The same, asked as this user.
    pub fn asked_as(
        login: Option<&Login>,
        role: &'static str,
        path: &Path,
    ) -> Result<Component, Unavailable> {
        let answer = ask_as(login, path, &["--version"])?;
        let version = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().trim().to_owned();
        Component::of_file(role, path, &version).map_err(|error| Unavailable::because(format!("{error:#}")))
    }
}

/// What a program answers on standard output to these arguments; its own words where it fails. Ends
/// at once when the person wants to stop.
pub fn ask(path: &Path, arguments: &[&str]) -> Result<Vec<u8>, Unavailable> {
    ask_as(None, path, arguments)
}

/// The same for what must be done even while stopping: removing things.
pub fn insist(path: &Path, arguments: &[&str]) -> Result<Vec<u8>, Unavailable> {
    insist_as(None, path, arguments)
}

/// What a program answers this user.
pub fn ask_as(login: Option<&Login>, path: &Path, arguments: &[&str]) -> Result<Vec<u8>, Unavailable> {
    words_as(login, path, arguments).map(|(answer, _)| answer)
}

/// The same for what must be done even while stopping.
pub fn insist_as(login: Option<&Login>, path: &Path, arguments: &[&str]) -> Result<Vec<u8>, Unavailable> {
    answer(&question(login, path, arguments)?, None).map(|ended| ended.stdout)
}

/// The same with what the program says on standard error, although it did well.
pub fn words_as(
    login: Option<&Login>,
    path: &Path,
    arguments: &[&str],
) -> Result<(Vec<u8>, String), Unavailable> {
    let interrupts = Interrupts::install().ok();
    let ended = answer(&question(login, path, arguments)?, interrupts.as_ref())?;
    Ok((ended.stdout, String::from_utf8_lossy(&ended.stderr).trim().to_owned()))
}

/// The program of a question.
pub fn question(login: Option<&Login>, path: &Path, arguments: &[&str]) -> Result<Program, Unavailable> {
    let program = Program::new(path, arguments);
    let dressed = match login {
        Some(login) => program.and_then(|program| login.dress(program)),
        None => program,
    };
    dressed.map_err(|error| Unavailable::because(error.to_string()))
}

/// Runs a program that is to answer soon.
pub fn answer(program: &Program, interrupts: Option<&Interrupts>) -> Result<Ended, Unavailable> {
    run_within(Nanos(ANSWER.load(Ordering::Relaxed)), program, interrupts)
}

/// Runs a program that may take this long.
pub fn run_within(
    allowed: Nanos,
    program: &Program,
    interrupts: Option<&Interrupts>,
) -> Result<Ended, Unavailable> {
    let shown = program.shown();
    let started = spawn::start(program);
    let child = started.map_err(|error| Unavailable::because(format!("cannot start `{shown}`: {error}")))?;
    match child.wait(allowed, interrupts) {
        Ok(ended) if ended.status == Status::Exited(0) => Ok(ended),
        Ok(ended) => {
            let words = if ended.stderr.is_empty() { &ended.stdout } else { &ended.stderr };
            let words = String::from_utf8_lossy(words);
            Err(Unavailable::in_words(&format!("`{shown}` ended with {}", ended.status), &words))
        }
        Err(Unfinished::TimedOut { .. }) => {
            Err(Unavailable::no_answer(format!("`{shown}` {NO_ANSWER} within {allowed}")))
        }
        Err(Unfinished::Interrupted) => Err(Unavailable::because("interrupted")),
        Err(why) => Err(Unavailable::because(format!("`{shown}`: {why:?}"))),
    }
}
