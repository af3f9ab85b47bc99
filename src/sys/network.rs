//! Network namespaces for threads of this process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::link::loopback_up;
use super::steps::run_all;

/// Runs `work` on a separate thread in a new network namespace with the loopback interface up. What is
/// started there stays in the namespace, which disappears with its last process.
pub(crate) fn in_a_new_one<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(|| {
        // SAFETY: changes the namespace of this thread only, which does nothing else before it ends.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        run_all(&loopback_up()).1.map_err(io::Error::other)?;
        Ok(work())
    })
}

/// Runs `work` on a separate thread in this network namespace. What is started there stays in it.
pub(crate) fn within<T: Send>(
    namespace: &OwnedFd,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    on_a_thread(|| {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    })
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
