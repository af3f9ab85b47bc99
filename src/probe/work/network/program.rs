//! A user's program as a server: it gets the working directory and the variables that were asked for, one CPU, and
//! no input; its standard output is discarded, and the last of its standard error told if it ends.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{bind, servers};
use crate::outcome::{Failure, FailureClass, OrEnvironment};
use crate::probe::work::{Report, Words};
use crate::sys::command::collect_children;

/// `program CPU DIRECTORY COUNT NAME=VALUE… WORD…`, without the first word. An empty directory is the current one.
pub fn start(words: Words, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let needs =
        || Failure::new(FailureClass::Unsupported, "`program` needs a CPU, a directory, variables and words");
    let (cpu, directory) = words.number(1).zip(words.get(2)).ok_or_else(needs)?;
    let all = words.from(4);
    let count = words.number(3).map(|count| count as usize).filter(|count| *count < all.len());
    let (variables, words) = all.split_at(count.ok_or_else(needs)?);
    let (name, arguments) = words.split_first().ok_or_else(needs)?;
    let errors =
        memfd_create(c"errors", MemfdFlags::CLOEXEC).or_environment("cannot make a file in memory")?;
    let errors = File::from(errors);
    let writer = errors.try_clone().or_environment("cannot copy a file")?;
    let mut command = Command::new(text(name));
    let arguments = arguments.iter().map(|word| text(word));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer);
    for pair in variables {
        let pair = pair.to_bytes();
        let (name, value) = pair.split_at(pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len()));
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value.get(1..).unwrap_or_default()));
    }
    if !directory.is_empty() {
        command.current_dir(text(directory));
    }
    // What it leaves running is found by the probe.
    drop(
        collect_children()
            .map_err(io::Error::from_raw_os_error)
            .or_environment("cannot wait for children")?,
    );
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).or_environment("cannot make a pipe")?;
    let (mut reader, mut writer) = (File::from(reader), File::from(writer));
    let (pid, count) = servers::begin(|| {
        let error = match bind(Some(cpu)) {
            Ok(()) => command.exec(),
            Err(_) => io::ErrorKind::Unsupported.into(),
        };
        let _ = writer.write_all(&error.raw_os_error().unwrap_or(libc::EINVAL).to_ne_bytes());
    })?;
    drop(writer);
    servers::listen_to(errors);
    let mut errno = [0; 4];
    if reader.read_exact(&mut errno).is_ok() {
        servers::end();
        let name = String::from_utf8_lossy(name.to_bytes());
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        let reason = format!("cannot start `{name}` inside: {error}");
        return Err(Failure::environment(reason));
    }
    report.result("server_pid", pid.into());
    report.result("servers", count as i64);
    Ok(())
}

fn text(word: &CStr) -> &OsStr {
    OsStr::from_bytes(word.to_bytes())
}
