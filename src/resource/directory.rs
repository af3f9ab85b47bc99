//! A directory of ours, with everything in it.

use std::path::Path;

use super::{Goes, Kind, Look, Record, is_inside, remove_tree};

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
    undo: |record, _| remove_tree(Path::new(&record.id)),
};

/// A directory that is about to be made in the state directory.
pub fn directory(path: &Path) -> Record {
    Record::new(&KIND, path.to_string_lossy())
}
