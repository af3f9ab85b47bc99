//! A program that runs inside until it ends: what it says is kept in memory, so that what it leaves running can hold its output open.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use dunnage_orders::work::{Execute, Executed};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

use super::unsupported;
use crate::outcome::{Failure, FailureClass, OrEnvironment};
use crate::sys::{pidfd, process, raw};
use crate::units::{Nanos, Stamp};

/// Bytes at the end of what a program says that are kept.
const KEPT: u64 = 48 << 10;
/// More than this is no answer, and would take memory of the host.
const MOST: u64 = 64 << 20;
/// How often its length is looked at.
const LOOK: Nanos = Nanos::from_millis(100);

/// Runs it.
pub fn work(order: &Execute) -> Result<Executed, Failure> {
    let (name, arguments) = order.words.split_first().ok_or_else(|| unsupported("a program has no words"))?;
    let in_memory = || memfd_create(c"said", MemfdFlags::CLOEXEC).map(File::from);
    let made = || Ok::<_, io::Error>((in_memory()?, in_memory()?));
    let (mut output, mut errors) = made().or_environment("cannot make a file in memory")?;
    let copies = || Ok::<_, io::Error>((output.try_clone()?, errors.try_clone()?));
    let (out, err) = copies().or_environment("cannot copy a file")?;
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    if !order.inherits {
        command.env_clear();
    }
    command.envs(order.variables.iter().map(|pair| pair.split_once('=').unwrap_or((pair, ""))));
    let began = Stamp(raw::monotonic());
    let mut child = command.spawn().or_environment(format_args!("cannot start `{name}` inside"))?;
    let pid = child.id() as i32;
    let says_too_much = || [&output, &errors].iter().any(|file| length(file) > MOST);
    let watched = pidfd::open(pid).map(|own| {
        let mut left = order.allowed;
        loop {
            let slice = left.min(LOOK);
            left = Nanos(left.0 - slice.0);
            match process::await_end(&own, slice) {
                true => break true,
                false if left.0 <= 0 || says_too_much() => break false,
                false => {}
            }
        }
    });
    let ended = Stamp(raw::monotonic());
    if !matches!(watched, Ok(true)) {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait().or_environment("cannot wait for a program")?;
    if says_too_much() {
        return Err(Failure::new(
            FailureClass::WrongOutput,
            format!("`{name}` said more than {} MB", MOST >> 20),
        ));
    }
    let timed_out = !watched.or_environment("cannot watch a program")?;
    Ok(Executed {
        began,
        ended,
        code: status.code(),
        timed_out,
        output: end_of(&mut output),
        errors: end_of(&mut errors),
    })
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |facts| facts.len())
}

/// The end of what was written.
fn end_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(length(file).saturating_sub(KEPT)))
        .and_then(|_| file.take(KEPT).read_to_end(&mut bytes));
    drop(read);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str, millis: i64) -> Executed {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let variables = vec!["WORD=hello".to_owned()];
        work(&Execute { inherits: false, variables, words, allowed: Nanos::from_millis(millis) }).unwrap()
    }

    #[test]
    fn what_a_program_says_is_kept_and_what_it_leaves_running_is_not_waited_for() {
        let done = ran("echo $WORD; echo no >&2; sleep 5 & exit 3", 4000);
        assert_eq!((done.code, done.output.as_str(), done.errors.as_str()), (Some(3), "hello\n", "no\n"));
        assert!(done.ended.since(done.began).0 < 4_000_000_000);
        let long = ran("head -c 100000 /dev/zero | tr '\\0' x; echo end", 4000);
        assert!(long.output.len() == KEPT as usize && long.output.ends_with("xend\n"));
    }

    #[test]
    fn a_program_that_says_too_much_is_stopped() {
        let words = ["/bin/sh", "-c", "yes"].map(str::to_owned).to_vec();
        let order =
            Execute { inherits: true, variables: Vec::new(), words, allowed: Nanos::from_millis(60_000) };
        let why = work(&order).unwrap_err();
        assert_eq!(why.class, FailureClass::WrongOutput, "{why:?}");
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let hung = ran("sleep 600 & echo begun; wait", 300);
        assert_eq!((hung.code, hung.timed_out, hung.output.as_str()), (None, true, "begun\n"));
        let killed = ran("kill -9 $$", 4000);
        assert_eq!((killed.code, killed.timed_out), (None, false));
    }
}
