//! Where a process keeps its files: a state directory that no other user can change, with the image in it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::exit::stopped_early;
use crate::host::checks::storage;
use crate::image::{Digest, EXECUTABLE, Image};
use crate::resource;
use crate::subject::Place;
use crate::subject::context::{self, CHOOSE_STATE};
use crate::sys::place as directory;
use crate::sys::signals::Interrupts;

/// The state directory by its path without links, made if needed; an error if another user could change it.
fn state() -> Result<PathBuf> {
    let state = context::state_directory()?;
    let context = || format!("cannot use the state directory `{}`{CHOOSE_STATE}", state.display());
    let verified = directory::verified(&state).with_context(context)?;
    // An older version may have let others into what it made there.
    for name in ["runs", "journal", "images"] {
        let below = verified.join(name);
        if below.exists() {
            directory::verified(&below).with_context(context)?;
        }
    }
    Ok(verified)
}

/// Where this process keeps its files, without the image: enough to look for leftovers and remove them, even on a full disk.
pub fn place_without_image() -> Result<Place> {
    let state = state()?;
    Ok(Place {
        // Without a name no label is this directory's, so nothing is removed by its label.
        id: resource::identity(&state).unwrap_or_default(),
        state,
        executable: std::env::current_exe().context("cannot find dunnage's own executable")?,
        rootfs: PathBuf::new(),
        reference: String::new(),
        digest: String::new(),
    })
}

/// Where this process keeps its files, with the image in it; an error if the user stops it before.
pub fn place(interrupts: &Interrupts) -> Result<Place> {
    let state = state()?;
    let own = std::fs::read("/proc/self/exe").context("cannot read `/proc/self/exe`")?;
    let placed = place_while(&state, &own, &|| !interrupts.pending());
    if placed.is_err() && interrupts.asked() {
        return Err(stopped_early());
    }
    placed.with_context(|| {
        format!(
            "cannot unpack the image in the state directory `{}`{CHOOSE_STATE}, with {} MiB free",
            state.display(),
            storage::NEEDED_BYTES >> 20
        )
    })
}

/// The hash of this executable, which identifies a run's probe.
pub fn own_digest() -> Result<String> {
    let own = std::fs::File::open("/proc/self/exe").and_then(|mut own| Digest::of_reader(&mut own));
    Ok(own.context("cannot read `/proc/self/exe`")?.hex())
}

/// A state directory with an image of this executable in it.
pub fn place_in(state: &Path, executable: &[u8]) -> Result<Place> {
    place_while(state, executable, &|| true)
}

fn place_while(state: &Path, executable: &[u8], go_on: &(dyn Fn() -> bool + Sync)) -> Result<Place> {
    let image = Image::small(executable);
    let rootfs = image.unpack(state, &|| (), go_on)?;
    let id = resource::identity(state)
        .with_context(|| format!("cannot give the state directory `{}` a name", state.display()))?;
    Ok(Place {
        state: state.to_owned(),
        id,
        executable: rootfs.join(EXECUTABLE.trim_start_matches('/')),
        rootfs,
        reference: image.reference.clone(),
        digest: image.executable_digest.hex(),
    })
}
