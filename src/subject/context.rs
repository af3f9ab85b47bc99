//! The context of a run for its subjects, shared by all threads: names, the journal, interrupts, the listener
//! for CPU time, the image, and what a bare process sees of the host.

use std::any::Any;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::{Context, Result};
use serde_json::Value;

use super::account::Account;
use super::observer::{Make, Watch};
use super::treatment::{self, Expected};
use super::{Place, Subject};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::probe::message::Inside;
use crate::resource::{self, Held, Owner, journals};
use crate::sys::accounting::Listener;
use crate::sys::cgroup::{self, CgroupPlan, Established};
use crate::sys::place;
use crate::sys::seccomp::Profile;
use crate::sys::signals::Interrupts;
use crate::units::{Nanos, Stamp, counted};
use crate::variables::Variables;

/// The context of a run.
#[derive(Debug)]
pub struct RunContext {
    /// The user's requests to stop.
    pub interrupts: Interrupts,
    /// Counts the CPU time of whole launches, or the reason why it cannot.
    pub listener: Result<Listener, String>,
    /// What watches each launch, in the order in which it is armed; it is stopped in the opposite order.
    pub observers: Vec<Make>,
    /// What a bare process sees of itself.
    pub host: Inside,
    /// How long one launch may take before it counts as hung.
    pub allowed: Nanos,
    /// The seed of everything that is random in the run.
    pub seed: u64,
    /// Whether the probe is mounted into every container from the host, as an image not made by dunnage
    /// needs: then every subject of the run is treated alike.
    pub lays_in_the_probe: bool,
    /// The values of variables of commands.
    pub variables: Variables,
    /// Tells the user about something slow, before and after it.
    pub tell: fn(&str),
    /// The clock of scripted subjects.
    scripted: AtomicU64,
    /// The owner of the run's resources.
    pub owner: Arc<Owner>,
    /// Set by `filter` when the first subject that needs it is prepared.
    pub(super) filter: OnceLock<Filter>,
    /// dunnage's directories for cgroups, which stay until the run ends.
    cgroups: Mutex<Option<(CgroupPlan, Established)>>,
    /// What samples share until the run ends, by its owner.
    kept: Mutex<Vec<(Kept, Box<dyn Any + Send>)>>,
}

/// What something is kept for: a specification, a store of its own, and words.
type Kept = (String, Option<usize>, String);

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

/// Whether a run of this state directory may still be alive: its journal is locked, or cannot be inspected.
pub fn may_be_alive(state: &Path, run: &str) -> bool {
    if !resource::is_word(run) {
        return true;
    }
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
            listener: Listener::open().map_err(|error| error.to_string()),
            observers: vec![|_| Box::new(Account::default())],
            interrupts,
            host: Inside::default(),
            allowed: Nanos::from_millis(60_000),
            seed,
            lays_in_the_probe: false,
            variables: Variables::default(),
            tell: |_| (),
            scripted: AtomicU64::new(1_000_000_000),
            filter: OnceLock::new(),
            cgroups: Mutex::default(),
            kept: Mutex::default(),
        })
    }

    /// The system call filter of the floor and the runtimes, where one was needed.
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.get()
    }

    /// The treatment of a subject of which this is expected, as it is recorded.
    pub fn treatment(&self, expected: &Expected, inside: &Inside) -> Vec<(&'static str, String)> {
        let mut facts = treatment::facts(inside, &self.host);
        let is_laid_in = self.lays_in_the_probe && facts.contains(&("mnt", "private".to_owned()));
        facts.extend(is_laid_in.then(|| ("probe", "laid in".to_owned())));
        facts.extend(expected.found(inside));
        facts
    }

    /// The places for dunnage's cgroups on this host. They are made when they are first needed, and no other
    /// run removes them before this one ends.
    pub fn cgroups(&self) -> Result<CgroupPlan, Failure> {
        let mut known = self.cgroups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((plan, _)) = &*known {
            return Ok(plan.clone());
        }
        let plan = CgroupPlan::here().or_environment("cannot find the cgroups")?;
        let established = plan.establish().map_err(|error| Failure::environment(error.to_string()))?;
        Ok(known.insert((plan, established)).0.clone())
    }

    /// Something of a subject that lasts until the run ends; made when it is first needed, under these words.
    pub fn kept<T: Clone + Send + 'static>(
        &self,
        subject: &dyn Subject,
        what: &str,
        make: impl FnOnce() -> Result<Held<T>, Abort>,
    ) -> Result<T, Abort> {
        let owner = (subject.about().spec.to_string(), subject.own_store(), what.to_owned());
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().filter(|(own, _)| *own == owner);
        if let Some(known) = known.filter_map(|(_, thing)| thing.downcast_ref::<Held<T>>()).next() {
            return Ok((**known).clone());
        }
        let made = make()?;
        let thing = (*made).clone();
        all.push((owner, Box::new(made)));
        Ok(thing)
    }

    /// A new directory, which is removed with the result.
    pub fn empty_directory(&self) -> Result<Held<PathBuf>, Abort> {
        self.owner.directory(|path| {
            place::make(path).or_environment(format_args!("cannot make `{}`", path.display()))?;
            Ok(path.to_owned())
        })
    }

    /// Watches what this thread starts from now on, and what these daemons do.
    pub fn watch<'a>(&'a self, daemons: Result<&'a [i32], &'a str>) -> Result<Watch<'a>, Abort> {
        let listener = self.listener.as_ref().map_err(String::as_str);
        Watch::arm(&self.observers, (listener, &self.interrupts), daemons)
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

/// Ends the run, also after an error or a panic.
impl Drop for RunContext {
    fn drop(&mut self) {
        self.kept.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        let left = self.owner.left();
        if let Some(first) = left.first() {
            let first = resource::shown(resource::KINDS, first);
            let things = counted(left.len(), "thing");
            (self.tell)(&format!(
                "{things} of this run could not be removed, first: {first}; run `dunnage sweep` later"
            ));
        }
        *self.cgroups.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        cgroup::retire();
    }
}

/// The hint of an error about the state directory.
pub const CHOOSE_STATE: &str = "\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to and others cannot, \
     below directories of which the same is true, such as `/var/lib/NAME` for root or `~/NAME`";

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
