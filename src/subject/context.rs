//! The context of a run for its subjects, shared by all threads: names, the journal, interrupts, the listener
//! for CPU time, the image, and what a bare process sees of the host.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Made, Place, Subject, treatment};
use crate::outcome::{Abort, OrEnvironment};
use crate::probe::message::Inside;
use crate::resource::{self, Held, Owner, journals};
use crate::sys::accounting::Listener;
use crate::sys::cgroup;
use crate::sys::seccomp::Profile;
use crate::sys::signals::Interrupts;
use crate::units::{Nanos, Stamp, counted};

/// The context of a run.
#[derive(Debug)]
pub struct RunContext {
    /// The user's requests to stop.
    pub interrupts: Interrupts,
    /// Counts the CPU time of whole launches, or the reason why it cannot.
    pub listener: Result<Mutex<Listener>, String>,
    /// What a bare process sees of itself.
    pub host: Inside,
    /// How long one launch may take before it counts as hung.
    pub allowed: Nanos,
    /// The seed of everything that is random in the run.
    pub seed: u64,
    /// Whether the probe is mounted into every container from the host, as an image not made by dunnage
    /// needs: then every subject of the run is treated alike.
    pub lays_in_the_probe: bool,
    /// Tells the user about something slow, before and after it.
    pub tell: fn(&str),
    /// The clock of scripted subjects.
    scripted: AtomicU64,
    /// The owner of the run's resources.
    pub owner: Arc<Owner>,
    /// Set by `filter` when the first subject that needs it is prepared.
    pub(super) filter: OnceLock<Filter>,
    kept: Kept,
}

/// What samples of a run share, until the run ends.
#[derive(Debug, Default)]
struct Kept {
    images: Mutex<Vec<(Owned, Held<Made>)>>,
    directories: Mutex<Vec<(Owned, Held<PathBuf>)>>,
}

/// Whose it is, and what: a specification, a store of its own, and words.
type Owned = (String, Option<usize>, String);

/// The thing of this owner among those kept; made if there is none.
fn kept<T: Clone>(
    all: &Mutex<Vec<(Owned, Held<T>)>>,
    owner: Owned,
    make: impl FnOnce() -> Result<Held<T>, Abort>,
) -> Result<T, Abort> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = all.iter().find(|(own, _)| *own == owner) {
        return Ok((**known).clone());
    }
    let made = make()?;
    let thing = (*made).clone();
    all.push((owner, made));
    Ok(thing)
}

fn owned(subject: &dyn Subject, what: &str) -> Owned {
    (subject.about().spec.to_string(), subject.own_store(), what.to_owned())
}

/// A system call filter and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// Its source, in words.
    pub origin: String,
    /// SHA-256 of the profile.
    pub sha256: String,
    /// In the form of a bundle's `linux.seccomp`.
    pub oci: Value,
    /// The same, parsed.
    pub profile: Profile,
}

/// Whether a run may still be alive: its journal, in whichever state directory the label names, is locked. A
/// journal that cannot be inspected may belong to another user's run.
pub fn may_be_alive(state: &Path, run: &str) -> bool {
    match File::open(journals(state).join(format!("{run}.jsonl"))) {
        Ok(journal) => journal.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
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
            kept: Kept::default(),
        })
    }

    /// The system call filter of the floor and the runtimes, where one was needed.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.get()
    }

    /// The treatment of a subject as it is recorded.
    pub fn treatment(&self, inside: &Inside) -> Vec<(&'static str, String)> {
        let mut facts = treatment::facts(inside, &self.host);
        let is_laid_in = self.lays_in_the_probe && facts.contains(&("mnt", "private".to_owned()));
        facts.extend(is_laid_in.then(|| ("probe", "laid in".to_owned())));
        facts
    }

    /// An image that lasts until the run ends; made when its subject first needs one that these words describe.
    pub fn kept_image(
        &self,
        subject: &dyn Subject,
        what: &str,
        make: impl FnOnce() -> Result<Held<Made>, Abort>,
    ) -> Result<Made, Abort> {
        kept(&self.kept.images, owned(subject, what), make)
    }

    /// An empty directory of a subject for this purpose that lasts until the run ends.
    pub fn kept_directory(&self, subject: &dyn Subject, what: &str) -> Result<PathBuf, Abort> {
        kept(&self.kept.directories, owned(subject, what), || self.empty_directory())
    }

    /// A new directory, which is removed with the result.
    pub fn empty_directory(&self) -> Result<Held<PathBuf>, Abort> {
        self.owner.directory(|path| {
            std::fs::create_dir(path).or_environment(format_args!("cannot make `{}`", path.display()))?;
            Ok(path.to_owned())
        })
    }

    /// Advances the clock of scripted subjects by this much, and returns the time before.
    pub fn pass(&self, time: Nanos) -> Stamp {
        Stamp(self.scripted.fetch_add(time.0.max(0) as u64, Ordering::Relaxed))
    }

    /// Waits this long and does nothing, for `prestate=idle`.
    pub fn quiet(&self, time: Nanos) -> Result<(), Abort> {
        if self.interrupts.sleep(time.0 as u64) { Err(Abort::Interrupted) } else { Ok(()) }
    }
}

/// The run makes and names things through its owner.
impl std::ops::Deref for RunContext {
    type Target = Owner;

    fn deref(&self) -> &Owner {
        &self.owner
    }
}

/// Ends the run, also after an error or a panic. The parent of dunnage's cgroups stays while another dunnage is
/// running, since its runtime may be about to make a cgroup in it.
impl Drop for RunContext {
    fn drop(&mut self) {
        drop(std::mem::take(&mut self.kept));
        let left = self.owner.left();
        if let Some(first) = left.first() {
            let first = resource::shown(resource::KINDS, first);
            let things = counted(left.len(), "thing");
            (self.tell)(&format!(
                "{things} of this run could not be removed, first: {first}; run `dunnage sweep` later"
            ));
        }
        if resource::another_dunnage().is_none() {
            cgroup::retire();
        }
    }
}

/// The hint of an error about the state directory.
pub const CHOOSE_STATE: &str = "\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to";

/// The state directory: `$DUNNAGE_STATE`, else `/var/lib/dunnage` for root, else the user's data directory.
/// Engines keep their storage in such places too, on a disk, so that every subject uses the same filesystem.
pub fn state_directory() -> Result<PathBuf> {
    if let Some(own) = std::env::var_os("DUNNAGE_STATE").filter(|path| !path.is_empty()) {
        return std::path::absolute(own).context("cannot make `$DUNNAGE_STATE` absolute");
    }
    if crate::sys::raw::user_and_group().0 == 0 {
        return Ok(PathBuf::from("/var/lib/dunnage"));
    }
    let data = std::env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let base = data.or_else(home);
    let base = base.with_context(|| format!("neither `$XDG_DATA_HOME` nor `$HOME` is set{CHOOSE_STATE}"))?;
    Ok(base.join("dunnage"))
}
