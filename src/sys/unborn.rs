//! Children that share dunnage's memory and have not begun their program: dunnage is suspended meanwhile, deaf to signals and time
//! limits. A user as whom such a child runs may stop it, or let a filesystem of theirs not answer. So a thread looks at them now
//! and then, and kills one that takes too long.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process};

use super::pidfd;
use super::signals::Interrupts;
use crate::units::Nanos;

/// Between two looks. More often would disturb what is measured.
const TICK: Duration = Duration::from_millis(500);
/// More than the calls before a program take on a busy machine with a slow disk.
const LONGEST: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });
/// The same once the user has interrupted.
const INTERRUPTED: Duration = Duration::from_millis(500);

/// A child, and the child that it makes itself.
#[derive(Debug)]
struct Unborn {
    since: Instant,
    /// Their ids, which the kernel writes before they run.
    ids: [AtomicI32; 2],
    was_killed: AtomicBool,
}

static ALL: Mutex<Vec<Arc<Unborn>>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Arc<Unborn>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From before a clone until dunnage goes on. No child is reaped meanwhile, so its id stays its own.
#[derive(Debug)]
pub(in crate::sys) struct Watched(Arc<Unborn>);

impl Watched {
    /// Begins to watch a child that is about to be cloned.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn begin() -> io::Result<Watched> {
        static STARTED: Once = Once::new();
        static FAILED: AtomicBool = AtomicBool::new(false);
        STARTED.call_once(|| {
            let begun = Interrupts::install().and_then(|interrupts| {
                thread::Builder::new().name("unborn".into()).spawn(move || watch(&interrupts))
            });
            FAILED.store(begun.is_err(), Ordering::Relaxed);
        });
        if FAILED.load(Ordering::Relaxed) {
            return Err(io::Error::other("cannot start a thread"));
        }
        let ids = [AtomicI32::new(0), AtomicI32::new(0)];
        let own = Arc::new(Unborn { since: Instant::now(), ids, was_killed: AtomicBool::new(false) });
        all().push(own.clone());
        Ok(Watched(own))
    }

    /// Where the kernel writes the id of the child, or of its child.
    pub fn place(&self, generation: usize) -> *mut i32 {
        self.0.ids.get(generation).map_or(ptr::null_mut(), AtomicI32::as_ptr)
    }

    /// Ends watching, before anything is reaped. Whether they had to be killed, and the id of the child's child; 0 if there is none.
    pub fn end(self) -> (bool, i32) {
        let own = self.0.clone();
        drop(self);
        (own.was_killed.load(Ordering::Acquire), own.ids[1].load(Ordering::Acquire))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        all().retain(|one| !Arc::ptr_eq(one, &self.0));
    }
}

fn watch(interrupts: &Interrupts) {
    loop {
        thread::sleep(TICK);
        // Looked at and not received, as `Interrupts` would: who waits for it must be woken. It stays until dunnage goes on.
        let waiting = pidfd::poll(&mut [PollFd::new(interrupts, PollFlags::IN)], Nanos(0));
        let longest = if waiting { INTERRUPTED } else { LONGEST };
        for one in all().iter().filter(|one| one.since.elapsed() >= longest) {
            one.was_killed.store(true, Ordering::Release);
            // The last one first: its parent is suspended too.
            for id in one.ids.iter().rev().filter_map(|id| Pid::from_raw(id.load(Ordering::Acquire))) {
                let _ = kill_process(id, Signal::KILL);
            }
        }
    }
}
