//! A private store of podman with a storage driver of its own: images and containers in a directory of the
//! run, and what does not outlast a boot in one below `/run`. What it holds is removed with it, by podman
//! itself first, which also frees what its containers have outside: networks, addresses, cgroups.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Found, Goes, Held, Kind, Look, Owner, Record, command, mounts, processes, remove_tree};
use crate::outcome::{Abort, OrEnvironment};
use crate::sys::place;
use crate::sys::spawn::Reading;
use crate::units::Nanos;

pub(crate) static KIND: Kind = Kind {
    name: "store",
    goes: Goes::First,
    shown: |record| format!("the private store in `{}`", record.id),
    look: |record, scope| {
        let run = Path::new(record.attribute("run")?);
        let name = run.file_name().unwrap_or_default().to_string_lossy();
        let is_named = name.starts_with(&format!("dunnage-{}-", scope.run));
        if run.parent() != Some(Path::new(RUN)) || !is_named {
            return Ok(Look::Foreign(format!("`{}` is not one of dunnage's", run.display())));
        }
        Ok(scope.look(Path::new(&record.id)))
    },
    undo: |record, _| {
        let directories = [record.id.as_str(), record.attribute("run")?].map(Path::new);
        let program = Path::new(record.attribute("program")?);
        remove_containers(directories, program, record.attribute("storage")?);
        processes::end(&record.id, &[&program.file_name().unwrap_or_default().to_string_lossy()]);
        directories.into_iter().try_for_each(mounts::unmount)?;
        let found = directories.map(remove_tree);
        found.into_iter().collect::<Result<Vec<_>, _>>().map(|all| Found::when(all.contains(&Found::Yes)))
    },
};

/// Where the run roots are: podman allows fifty characters, which a state directory can exceed, and its own is
/// there too.
const RUN: &str = "/run";
/// How long podman may take to remove its containers; it waits ten seconds for each before it kills it.
const REMOVING: Nanos = Nanos::from_millis(60_000);

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
    let root = owner.workspace().join(format!("s{}", owner.next_number()));
    let run = Path::new(RUN).join(owner.next_name());
    let record = Record::new(&KIND, root.to_string_lossy())
        .with("run", run.to_string_lossy())
        .with("program", program.to_string_lossy())
        .with("storage", storage.join(" "));
    owner.make(&KIND, record, || {
        let make = || {
            place::make(&root)?;
            place::make(&run)?;
            std::fs::create_dir_all(&shared.networks)?;
            std::os::unix::fs::symlink(&shared.networks, run.join("networks"))?;
            std::fs::write(root.join("defaultNetworkBackend"), &shared.backend)
        };
        make().or_environment(format_args!("cannot make `{}` or `{}`", root.display(), run.display()))?;
        Ok(options([&root, &run], &storage.join(" ")))
    })
}

/// Podman's options for a store in these directories, its root and its run root.
fn options([root, run]: [&Path; 2], storage: &str) -> Vec<String> {
    let places = [("--root", root), ("--runroot", run)];
    let own = places.into_iter().flat_map(|(option, path)| [option.to_owned(), path.display().to_string()]);
    own.chain(storage.split(' ').map(str::to_owned)).collect()
}

/// Has podman remove the containers of the store. What it cannot remove is ended and removed afterwards.
fn remove_containers(directories: [&Path; 2], program: &Path, storage: &str) {
    if !directories[0].join("libpod").exists() {
        return;
    }
    let words = ["rm", "--all", "--force", "--volumes"].map(str::to_owned);
    let arguments = [options(directories, storage), words.to_vec()].concat();
    if let Ok(program) = command::program(program, &arguments) {
        let _ = command::until_it_ends(&program, Reading::Late, REMOVING, None);
    }
}
