//! A user's program as a server: it gets the working directory and the variables that were asked for, one CPU, and
//! no input; its standard output is discarded, and the last of its standard error told if it ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use dunnage_orders::network::{StartProgram, Started};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{bind, servers};
use crate::outcome::{Failure, OrEnvironment};
use crate::probe::work::unsupported;
use crate::sys::command::collect_children;

/// Starts it, and waits until it has begun to execute.
pub fn start(order: &StartProgram) -> Result<Started, Failure> {
    let (name, arguments) = order.words.split_first().ok_or_else(|| unsupported("a program has no words"))?;
    let errors =
        memfd_create(c"errors", MemfdFlags::CLOEXEC).or_environment("cannot make a file in memory")?;
    let errors = File::from(errors);
    let writer = errors.try_clone().or_environment("cannot copy a file")?;
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer);
    command.envs(order.variables.iter().map(|pair| pair.split_once('=').unwrap_or((pair, ""))));
    if !order.directory.is_empty() {
        command.current_dir(&order.directory);
    }
    // What it leaves running is found by the probe.
    drop(
        collect_children()
            .map_err(io::Error::from_raw_os_error)
            .or_environment("cannot wait for children")?,
    );
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).or_environment("cannot make a pipe")?;
    let (mut reader, mut writer) = (File::from(reader), File::from(writer));
    let (pid, servers) = servers::begin(|| {
        let error = match bind(order.cpu) {
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
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        let reason = format!("cannot start `{name}` inside: {error}");
        return Err(Failure::environment(reason));
    }
    Ok(Started { port: None, pid, servers })
}
