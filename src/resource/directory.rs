//! A directory made by dunnage, with everything in it.

use std::path::Path;

use super::{Goes, Keeps, Kind, remove_tree};

pub(crate) static KIND: Kind = Kind {
    name: "directory",
    goes: Goes::AfterClients,
    keeps: Keeps::Process,
    shown: |record| format!("`{}`", record.id),
    look: |record, scope| Ok(scope.look(Path::new(&record.id))),
    undo: |record, _| remove_tree(Path::new(&record.id)),
};
