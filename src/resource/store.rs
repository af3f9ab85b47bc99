//! A private store of podman with a storage driver of its own: images and containers in a directory of the
//! run, and what does not outlast a boot in one below `/run`. What it holds is removed with it, by podman
//! itself first, which also frees what its containers have outside: networks, addresses, cgroups.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{
    Found, Goes, Held, Keeps, Kind, Look, Owner, Record, command, mounts, processes, remove_tree, tool,
};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::sys::place;
use crate::sys::signals::Interrupts;
use crate::sys::spawn::Reading;
use crate::units::Nanos;

pub(crate) static KIND: Kind = Kind {
    name: "store",
    goes: Goes::First,
    keeps: Keeps::Crash,
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
        // A record is data: another user could have written it, or replaced the program that it names.
        let options = record.attribute("driver").ok().and_then(|driver| driver_options(driver).ok());
        if let (Ok(program), Some(options)) = (tool::find(PODMAN, PODMAN), options) {
            remove_containers(directories, &program, options);
        }
        processes::end(&record.id, &[PODMAN]);
        directories.into_iter().try_for_each(mounts::unmount)?;
        let found = directories.map(remove_tree);
        found.into_iter().collect::<Result<Vec<_>, _>>().map(|all| Found::when(all.contains(&Found::Yes)))
    },
};

/// Where the run roots are: podman allows fifty characters, which a state directory can exceed, and its own is
/// there too.
pub(super) const RUN: &str = "/run";
const PODMAN: &str = "podman";
/// The driver that is a program, which mounts for podman's driver `overlay`.
pub(crate) const MOUNT_PROGRAM: &str = "fuse-overlayfs";
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

/// Makes a store for this podman with this driver, as dunnage calls it; the result is podman's options for it.
pub(crate) fn store(owner: &Arc<Owner>, driver: &str, shared: &Shared) -> Result<Held<Vec<String>>, Abort> {
    let root = owner.workspace().join(format!("s{}", owner.next_number()));
    let run = Path::new(RUN).join(owner.next_name());
    let record =
        Record::new(&KIND, root.to_string_lossy()).with("run", run.to_string_lossy()).with("driver", driver);
    owner.make(&KIND, record, || {
        let make = || {
            place::make(&root)?;
            place::make(&run)?;
            std::fs::create_dir_all(&shared.networks)?;
            std::os::unix::fs::symlink(&shared.networks, run.join("networks"))?;
            std::fs::write(root.join("defaultNetworkBackend"), &shared.backend)
        };
        make().or_environment(format_args!("cannot make `{}` or `{}`", root.display(), run.display()))?;
        Ok(options([&root, &run], driver_options(driver)?))
    })
}

/// Podman's options for a store in these directories, its root and its run root, and those of its driver.
fn options([root, run]: [&Path; 2], driver: Vec<String>) -> Vec<String> {
    let places = [("--root", root), ("--runroot", run)];
    let own = places.into_iter().flat_map(|(option, path)| [option.to_owned(), path.display().to_string()]);
    own.chain(driver).collect()
}

/// Podman's options for a storage driver.
fn driver_options(driver: &str) -> Result<Vec<String>, Failure> {
    let option = |name: &str| vec!["--storage-driver".to_owned(), name.to_owned()];
    if driver != MOUNT_PROGRAM {
        return Ok(option(driver));
    }
    let program = tool::find(MOUNT_PROGRAM, MOUNT_PROGRAM)?;
    let mounts = ["--storage-opt".to_owned(), format!("overlay.mount_program={}", program.display())];
    Ok([option("overlay"), mounts.to_vec()].concat())
}

/// Has podman remove the containers of the store. What it cannot remove is ended and removed afterwards.
fn remove_containers(directories: [&Path; 2], program: &Path, driver: Vec<String>) {
    if !directories[0].join("libpod").exists() {
        return;
    }
    let words = ["rm", "--all", "--force", "--volumes"].map(str::to_owned);
    let arguments = [options(directories, driver), words.to_vec()].concat();
    if let Ok(program) = command::program(program, &arguments) {
        // After an interrupt everything is still removed; before one, it need not be podman that does it.
        let interrupts = Interrupts::install().ok().filter(|interrupts| !interrupts.asked());
        let _ = command::until_it_ends(&program, Reading::Late, REMOVING, interrupts.as_ref());
    }
}
