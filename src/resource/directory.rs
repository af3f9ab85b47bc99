//! A directory made by dunnage, with everything in it.

use std::path::Path;

use super::{Goes, Kind, Look, is_inside, remove_tree};

pub(crate) static KIND: Kind = Kind {
    name: "directory",
    goes: Goes::AfterClients,
    shown: |record| format!("`{}`", record.id),
    look: |record, scope| {
        let (path, state) = (Path::new(&record.id), &scope.place.state);
        Ok(match is_inside(path, state) {
            true => Look::Ours,
            false => Look::Foreign(format!("it is not in `{}`", state.display())),
        })
    },
    undo: |record, _| remove_tree(Path::new(&record.id)),
};
