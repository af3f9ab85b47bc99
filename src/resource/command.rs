//! Runs commands to their end, and classifies a failure by the command's own words.

use crate::outcome::{self, Abort, Failure, FailureClass, OrEnvironment};
use crate::sys::signals::Interrupts;
use crate::sys::spawn::{self, Ended, Program, Reading, Status, Unfinished};
use crate::units::Nanos;

/// Starts a command and waits until it ends, with any result.
pub(crate) fn until_it_ends(
    program: &Program,
    reading: Reading,
    allowed: Nanos,
    interrupts: Option<&Interrupts>,
) -> Result<Ended, Abort> {
    let child = spawn::start(program).map_err(|error| cannot_start(program, &error))?;
    child.read(reading).wait(allowed, interrupts).map_err(|why| unfinished(allowed, program, why))
}

/// The same for a command that must succeed.
pub(crate) fn carry_out(program: &Program, allowed: Nanos, interrupts: &Interrupts) -> Result<Ended, Abort> {
    let ended = until_it_ends(program, Reading::Late, allowed, Some(interrupts))?;
    ended_well(&program.shown(), &ended)?;
    Ok(ended)
}

/// A command to run.
pub(crate) fn program(
    path: &std::path::Path,
    arguments: &[impl AsRef<std::ffi::OsStr>],
) -> Result<Program, Failure> {
    Program::new(path, arguments).or_environment(format_args!("cannot start `{}`", path.display()))
}

pub(crate) fn cannot_start(program: &Program, error: &std::io::Error) -> Failure {
    let class = match error.kind() {
        std::io::ErrorKind::PermissionDenied => FailureClass::Permission,
        _ => FailureClass::Environment,
    };
    Failure::new(class, format!("cannot start `{}`: {error}", program.shown()))
}

pub(crate) fn unfinished(allowed: Nanos, program: &Program, why: Unfinished) -> Abort {
    match why {
        Unfinished::Interrupted => Abort::Interrupted,
        Unfinished::TimedOut { stderr, .. } => {
            let reason = format!("`{}` did not end within {}", program.shown(), allowed);
            let failure = Failure::new(FailureClass::Timeout, reason).with_words(&stderr);
            Abort::Failed(Failure { took: allowed, ..failure })
        }
        Unfinished::Failed(error) => {
            Failure::environment(format!("cannot wait for `{}`: {error}", program.shown())).into()
        }
    }
}

/// Whether the command `shown` succeeded; else its own words.
pub(crate) fn ended_well(shown: &str, ended: &Ended) -> Result<(), Failure> {
    if ended.status == Status::Exited(0) {
        return Ok(());
    }
    let words = if ended.stderr.is_empty() { &ended.stdout } else { &ended.stderr };
    let reason = format!("`{shown}` ended with {}", ended.status);
    let failure = Failure::new(class_of(words), reason).with_words(words);
    Err(Failure { took: ended.returned.since(ended.spawned), ..failure })
}

/// The class of a failure from the command's own words: from the line that names the cause, by its error
/// number if it has one.
pub(crate) fn class_of(words: &[u8]) -> FailureClass {
    let text = String::from_utf8_lossy(words);
    let cause = outcome::cause_in(&text).to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| cause.contains(part));
    if let Some(class) = error_number(&cause).and_then(class_of_number) {
        class
    } else if says(&[
        "cannot connect to the docker daemon",
        "failed to dial",
        "connection refused",
        "no space left",
        "too many open files",
        "resource temporarily unavailable",
        "no such image",
        "unable to find image",
        "image not known",
        "no such file or directory",
        "error during connect",
    ]) {
        FailureClass::Environment
    } else if says(&["permission denied", "operation not permitted", "must be root", "rootless"]) {
        FailureClass::Permission
    } else if says(&[
        "unknown runtime",
        "not supported",
        "unsupported",
        "unknown or invalid runtime",
        "unknown flag",
        "invalid runtime",
        "drop all controllers",
        // A limit on CPU time that the engine or the kernel refuses.
        "range of cpus",
        "cpu.cfs_quota_us",
        "cpu.max",
        "cpu.cfs_burst_us",
    ]) {
        FailureClass::Unsupported
    } else {
        FailureClass::Crash
    }
}

/// The kernel's error number in a line, as the runtimes of Go and Rust write it.
fn error_number(line: &str) -> Option<i32> {
    ["errno=", "failed with ", "(os error "].iter().find_map(|before| {
        let (_, rest) = line.rsplit_once(before)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

fn class_of_number(number: i32) -> Option<FailureClass> {
    match number {
        libc::EACCES | libc::EPERM => Some(FailureClass::Permission),
        libc::ENOENT
        | libc::ENOSPC
        | libc::EMFILE
        | libc::ENFILE
        | libc::EAGAIN
        | libc::ENOMEM
        | libc::ECONNREFUSED => Some(FailureClass::Environment),
        libc::ENOSYS | libc::EOPNOTSUPP => Some(FailureClass::Unsupported),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_of_the_cause_and_not_of_words_anywhere() {
        let class = |words: &str| class_of(words.as_bytes());
        let warned = "time=\"1\" level=warning msg=\"cannot set quota: permission denied\"\n\
            time=\"2\" level=error msg=\"no such file or directory\"\nError: OCI runtime error: it is broken\n";
        assert_eq!(class(warned), FailureClass::Crash);
        let stack = "runtime: epollcreate failed with 24\nfatal error: netpollinit\n\tpermission denied\n";
        assert_eq!(class(stack), FailureClass::Environment);
        assert_eq!(
            class("runtime: failed to create new OS thread (have 5 already; errno=11)"),
            FailureClass::Environment
        );
        assert_eq!(class("Error: no such file or directory: denied (os error 13)"), FailureClass::Permission);
        assert_eq!(class("docker: permission denied.\nSee 'docker run --help'."), FailureClass::Permission);
        assert_eq!(class("Error: exited: failed with 7 of 9"), FailureClass::Crash);
        assert_eq!(class("Error: unknown runtime x"), FailureClass::Unsupported);
        let older = "Error: unknown flag: --pids-limit\nSee 'podman update --help'";
        assert_eq!(class(older), FailureClass::Unsupported);
        assert_eq!(class(""), FailureClass::Crash);
    }
}
