//! An engine without a daemon, started to serve its API on a socket of dunnage's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ready::{self, Ready};
use super::{Found, Goes, Held, Keeps, Kind, Owner, Record, command, processes, unless_gone};
use crate::outcome::{Abort, OrEnvironment};
use crate::sys::place;
use crate::sys::signals::Interrupts;

pub(crate) static KIND: Kind = Kind {
    name: "service",
    goes: Goes::First,
    keeps: Keeps::Process,
    shown: |record| format!("the service at `{}`", record.id),
    look: |record, scope| Ok(scope.look(Path::new(&record.id))),
    undo: |record, _| {
        // It removes its socket itself if it ends normally.
        let found = Found::when(Path::new(&record.id).exists());
        processes::end(&record.id, &[record.attribute("program")?]);
        unless_gone(std::fs::remove_file(&record.id)).map(|_| found)
    },
};

/// A service that is ready.
#[derive(Debug)]
pub struct Service {
    /// Its socket.
    pub socket: PathBuf,
    /// The program.
    pub ready: Ready,
}

/// Starts `program` with these arguments and, as the last one, the address to listen on.
pub(crate) fn serve(
    owner: &Arc<Owner>,
    interrupts: &Interrupts,
    program: &Path,
    arguments: &[String],
) -> Result<Held<Service>, Abort> {
    let directory = owner.workspace();
    let name = owner.next_name();
    let socket = directory.join(format!("{name}.socket"));
    let path = socket.display().to_string();
    let called = program.file_name().unwrap_or_default().to_string_lossy();
    let record = Record::new(&KIND, &path).with("program", called);
    owner.make(&KIND, record, || {
        place::make(&directory).or_environment(format_args!("cannot make `{}`", directory.display()))?;
        let program = command::program(program, &[arguments, &[format!("unix://{path}")]].concat())?;
        let message = directory.join(format!("{name}.ready"));
        Ok(Service { ready: ready::start(program, &message, &Vec::new, interrupts)?, socket })
    })
}
