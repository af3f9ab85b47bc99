//! The context of a run, as its subjects use it, from any thread: names, the journal, the interrupts, the listener for CPU
//! time, the image, and the host's own view of itself.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Place, treatment};
use crate::outcome::Abort;
use crate::probe::message::Inside;
use crate::resource::{self, Owner, journals};
use crate::sys::accounting::Listener;
use crate::sys::cgroup;
use crate::sys::seccomp::Profile;
use crate::sys::signals::Interrupts;
use crate::units::{Nanos, Stamp};

/// The context of a run.
#[derive(Debug)]
pub struct RunContext {
    /// The person's wish to stop.
    pub interrupts: Interrupts,
    /// Counts CPU time of whole launches, or says why it cannot.
    pub listener: Result<Mutex<Listener>, String>,
    /// What a bare process sees of itself.
    pub host: Inside,
    /// How long one launch may take before it counts as hung.
    pub allowed: Nanos,
    /// The seed of everything that is random in the run.
    pub seed: u64,
    /// Whether every container gets the probe from the host, as one of somebody else's image must: so all of the run are
    /// given the same.
    pub lays_in_the_probe: bool,
    /// Tells the person what takes long, before it does and when it is done.
    pub tell: fn(&str),
    /// The clock of scripted subjects.
    scripted: AtomicU64,
    /// Whose resources they are.
    pub owner: Arc<Owner>,
    /// Chosen by `filter` when the first subject that wants it is prepared.
    pub(super) filter: OnceLock<Filter>,
}

/// A system call filter, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Whose it is, in words.
    pub origin: String,
    /// SHA-256 of the profile.
    pub sha256: String,
    /// As `linux.seccomp` of a bundle.
    pub oci: Value,
    /// The same, understood.
    pub profile: Profile,
}

/// Whether a run may still be going on: as long as its journal is there, in whatever state directory
/// that is. What cannot be looked at is somebody else's.
pub fn may_be_alive(state: &Path, run: &str) -> bool {
    journals(state).join(format!("{run}.jsonl")).try_exists().unwrap_or(true)
}

impl RunContext {
    /// Begins a run in this place.
    pub fn begin(place: Place, interrupts: Interrupts, id: String, seed: u64) -> Result<RunContext> {
        Ok(RunContext {
            owner: Owner::begin(place, id)?,
            listener: Listener::open().map(Mutex::new).map_err(|error| error.to_string()),
            interrupts,
            host: Inside::default(),
            allowed: Nanos::from_millis(60_000),
            seed,
            lays_in_the_probe: false,
            tell: |_| (),
            scripted: AtomicU64::new(1_000_000_000),
            filter: OnceLock::new(),
        })
    }

    /// The system call filter of the floor and of runtimes, where one was wanted.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.get()
    }

    /// What a subject's treatment was, as it is recorded.
    pub(super) fn treatment(&self, inside: &Inside) -> Vec<(&'static str, String)> {
        let mut facts = treatment::facts(inside, &self.host);
        let is_laid_in = self.lays_in_the_probe && facts.contains(&("mnt", "private".to_owned()));
        facts.extend(is_laid_in.then(|| ("probe", "laid in".to_owned())));
        facts
    }

    /// Lets so much time pass on the clock of scripted subjects, and says when that began.
    pub fn pass(&self, time: Nanos) -> Stamp {
        Stamp(self.scripted.fetch_add(time.0.max(0) as u64, Ordering::Relaxed))
    }

    /// Leaves the kernel alone for this long.
    pub fn quiet(&self, time: Nanos) -> Result<(), Abort> {
        if self.interrupts.sleep(time.0 as u64) { Err(Abort::Interrupted) } else { Ok(()) }
    }
}

/// A run makes and names its things as their owner does.
impl std::ops::Deref for RunContext {
    type Target = Owner;

    fn deref(&self) -> &Owner {
        &self.owner
    }
}

/// Ends the run, also after an error or a panic. What holds all cgroups of ours stays while somebody else's runtime may be
/// about to make one in it.
impl Drop for RunContext {
    fn drop(&mut self) {
        if !resource::another_dunnage() {
            cgroup::retire();
        }
    }
}

/// The state directory: `$DUNNAGE_STATE`, else `/var/lib/dunnage` for root, else the user's own
/// data directory. It lies where engines keep theirs, on a disk, so that the same filesystem
/// stands under all.
pub fn state_directory() -> Result<PathBuf> {
    if let Some(own) = std::env::var_os("DUNNAGE_STATE").filter(|path| !path.is_empty()) {
        return std::path::absolute(own).context("cannot make `$DUNNAGE_STATE` absolute");
    }
    if crate::sys::raw::user_and_group().0 == 0 {
        return Ok(PathBuf::from("/var/lib/dunnage"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let base = data.or_else(home).context("neither `$XDG_DATA_HOME` nor `$HOME` is set\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to")?;
    Ok(base.join("dunnage"))
}
