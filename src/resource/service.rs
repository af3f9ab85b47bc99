//! A program that serves us at a socket until it is ended.

use std::path::Path;

use super::{Goes, Kind, Look, Record};
use crate::sys::process;

pub(crate) static KIND: Kind = Kind {
    name: "service",
    goes: Goes::First,
    shown: |record| format!("the service at `{}`", record.id),
    look: |record, scope| {
        let socket = record.id.strip_prefix("unix://").unwrap_or_default();
        Ok(match scope.holds(Path::new(socket)) {
            true => Look::Ours,
            false => Look::Foreign("it does not listen where the run kept its things".into()),
        })
    },
    undo: |record, _| {
        process::kill_clients(Path::new(record.attribute("program")?), &record.id);
        Ok(())
    },
};

/// A program that is about to be started with `address` as an argument that no other process has.
pub(crate) fn service(program: &Path, address: &str) -> Record {
    Record::new(&KIND, address).with("program", program.to_string_lossy())
}
