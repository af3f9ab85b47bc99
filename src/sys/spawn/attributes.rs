//! What `posix_spawn` does between clone and exec: streams, signals, session.

use std::io;
use std::os::fd::RawFd;

/// The attributes of a spawn, freed when dropped.
pub struct Attributes(pub libc::posix_spawnattr_t);

impl Attributes {
    /// A session of its own, so that the terminal's Ctrl-C reaches only dunnage, and so that the child has
    /// the same share of the CPUs as a container: the kernel divides them among sessions (autogroups) and
    /// cgroups, and in dunnage's session other processes would slow down `bare` alone. No signal is blocked
    /// except this one, and SIGPIPE has its default action.
    pub fn new(blocked: Option<i32>) -> io::Result<Attributes> {
        // SAFETY: posix_spawnattr_init initialises the zeroed storage before anything else uses it;
        // sigemptyset initialises the signal sets.
        unsafe {
            let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
            check(libc::posix_spawnattr_init(&mut attributes))?;
            let mut this = Attributes(attributes);
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut none);
            let mut broken_pipe = none;
            libc::sigaddset(&mut broken_pipe, libc::SIGPIPE);
            let mut mask = none;
            if let Some(signal) = blocked {
                libc::sigaddset(&mut mask, signal);
            }
            check(libc::posix_spawnattr_setsigmask(&mut this.0, &mask))?;
            check(libc::posix_spawnattr_setsigdefault(&mut this.0, &broken_pipe))?;
            let flags = (libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF) as libc::c_short;
            check(libc::posix_spawnattr_setflags(&mut this.0, flags | libc::POSIX_SPAWN_SETSID))?;
            Ok(this)
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

/// What happens to descriptors between clone and exec, freed when dropped.
pub struct Actions(pub libc::posix_spawn_file_actions_t);

impl Actions {
    pub fn new(streams: [RawFd; 3]) -> io::Result<Actions> {
        // SAFETY: posix_spawn_file_actions_init initialises the zeroed storage first.
        unsafe {
            let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
            check(libc::posix_spawn_file_actions_init(&mut actions))?;
            let mut this = Actions(actions);
            for (from, to) in streams.into_iter().zip(0..) {
                check(libc::posix_spawn_file_actions_adddup2(&mut this.0, from, to))?;
            }
            Ok(this)
        }
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

/// The result of a function that returns an error number.
pub fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}
