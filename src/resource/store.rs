//! A private store of podman: images and containers below a directory of the run, with a storage driver of
//! its own. What it holds is removed with it, by podman itself first, which also frees what its containers
//! have outside: networks, addresses, cgroups.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Goes, Held, Kind, Owner, Record, command, mounts, processes, remove_tree};
use crate::outcome::{Abort, OrEnvironment};
use crate::sys::spawn::Reading;
use crate::units::Nanos;

pub(crate) static KIND: Kind = Kind {
    name: "store",
    goes: Goes::First,
    shown: |record| format!("the private store in `{}`", record.id),
    look: |record, scope| Ok(scope.look(Path::new(&record.id))),
    undo: |record, _| {
        let directory = Path::new(&record.id);
        remove_containers(directory, record.attribute("program")?, record.attribute("storage")?);
        let program = Path::new(record.attribute("program")?).file_name().unwrap_or_default();
        processes::end(&record.id, &[&program.to_string_lossy()]);
        mounts::unmount(directory)?;
        remove_tree(directory)
    },
};

/// How long podman may take to remove its containers; it waits ten seconds for each before it kills it.
const REMOVING: Nanos = Nanos::from_millis(60_000);
/// The directories in it: what stays over a boot, and what does not.
const PARTS: [&str; 2] = ["root", "run"];

/// What the new store shares with the user's own.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    /// Where the user's store keeps the addresses that containers have: a second list would give one address
    /// to two containers of one bridge.
    pub networks: PathBuf,
    /// The network backend; a new store could choose another one.
    pub backend: String,
}

/// Makes a store for this podman with these options, which choose its driver; the result is podman's options
/// for it.
pub(crate) fn store(
    owner: &Arc<Owner>,
    program: &Path,
    storage: &[&str],
    shared: &Shared,
) -> Result<Held<Vec<String>>, Abort> {
    let directory = owner.workspace().join(format!("s{}", owner.next_number()));
    let record = Record::new(&KIND, directory.to_string_lossy())
        .with("program", program.to_string_lossy())
        .with("storage", storage.join(" "));
    owner.make(&KIND, record, || {
        let [root, run] = PARTS.map(|part| directory.join(part));
        let make = || {
            std::fs::create_dir_all(&root)?;
            std::fs::create_dir_all(&run)?;
            std::fs::create_dir_all(&shared.networks)?;
            std::os::unix::fs::symlink(&shared.networks, run.join("networks"))?;
            std::fs::write(root.join("defaultNetworkBackend"), &shared.backend)
        };
        make().or_environment(format_args!("cannot make `{}`", directory.display()))?;
        Ok(options(&directory, &storage.join(" ")))
    })
}

/// Podman's options for a store in this directory.
fn options(directory: &Path, storage: &str) -> Vec<String> {
    let [root, run] = PARTS.map(|part| directory.join(part).to_string_lossy().into_owned());
    let own = ["--root".to_owned(), root, "--runroot".to_owned(), run];
    own.into_iter().chain(storage.split(' ').map(str::to_owned)).collect()
}

/// Has podman remove the containers of the store. What it cannot remove is ended and removed afterwards.
fn remove_containers(directory: &Path, program: &str, storage: &str) {
    if !directory.join(PARTS[0]).join("libpod").exists() {
        return;
    }
    let words = ["rm", "--all", "--force", "--volumes"].map(str::to_owned);
    let arguments = [options(directory, storage), words.to_vec()].concat();
    if let Ok(program) = command::program(Path::new(program), &arguments) {
        let _ = command::until_it_ends(&program, Reading::Late, REMOVING, None);
    }
}
