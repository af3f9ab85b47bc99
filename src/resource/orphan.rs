//! What a run left whose journal is lost, as after a power cut: its own directory tells what it had. What engines hold has
//! labels, and is not found here.

use std::path::{Path, PathBuf};

use super::{
    Found, KINDS, Place, Record, Scope, daemon, filesystem, is_name_of, is_word, journals, mounts, processes,
    remove_tree, store, undo, workspace,
};

/// The runs that have a directory and no journal. A run makes its journal first and removes it last.
pub(crate) fn runs(state: &Path) -> Vec<String> {
    let mut all: Vec<String> = names(&state.join("runs")).into_iter().filter(|name| is_word(name)).collect();
    all.retain(|run| !journals(state).join(format!("{run}.jsonl")).exists());
    all
}

/// Ends what still works in the run's directory, and removes it.
pub(crate) fn remove(place: &Place, run: &str) -> Result<Found, String> {
    let directory = workspace(&place.state, run);
    let scope = Scope { place, run };
    let below: Vec<PathBuf> = names(&directory).into_iter().map(|name| directory.join(name)).collect();
    let volatile: Vec<PathBuf> = names(store::RUN.as_ref())
        .into_iter()
        .filter(|name| is_name_of(run, name))
        .map(|name| Path::new(store::RUN).join(name))
        .collect();
    for record in below.iter().filter_map(|path| record(path, &volatile)) {
        undo(KINDS, &record, &scope)?;
    }
    processes::end(&directory.to_string_lossy(), &[]);
    volatile.iter().chain([&directory]).try_for_each(|path| mounts::unmount(path))?;
    let found = volatile.iter().chain([&directory]).map(|path| remove_tree(path));
    found.collect::<Result<Vec<_>, _>>().map(|all| Found::when(all.contains(&Found::Yes)))
}

/// The record that something in a run's directory must have had, if it needs more than to be removed.
fn record(path: &Path, volatile: &[PathBuf]) -> Option<Record> {
    let (name, id) = (path.file_name()?.to_str()?, path.to_str()?);
    let is_numbered = |letter: char| {
        name.strip_prefix(letter)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if is_numbered('d') {
        return Some(Record::new(&daemon::KIND, id));
    }
    if is_numbered('s') {
        return Some(Record::new(&store::KIND, id).with("run", volatile.first()?.to_str()?));
    }
    let is_image = path.extension().is_some_and(|extension| extension == "img");
    is_image.then(|| {
        Record::new(&filesystem::KIND, id).with("mounted on", path.with_extension("").to_string_lossy())
    })
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
