//! A directory of ours, with everything in it.

use std::io;
use std::path::Path;

use super::{Goes, Kind, Look, Record, is_inside};

pub(crate) static KIND: Kind = Kind {
    name: "directory",
    goes: Goes::AfterClients,
    shown: |record| format!("`{}`", record.id),
    look: |record, scope| {
        let (path, state) = (Path::new(&record.id), &scope.place.state);
        Ok(match is_inside(path, state) {
            true => Look::Ours,
            false => Look::Foreign(format!("it does not lie in `{}`", state.display())),
        })
    },
    undo: |record, _| match std::fs::remove_dir_all(&record.id) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    },
};

/// A directory that is about to be made in the state directory.
pub fn directory(path: &Path) -> Record {
    Record::new(&KIND, path.to_string_lossy())
}
