//! Network namespaces of this process's threads.

use std::io;

/// Does something on a thread of its own in a new network namespace, in which the loopback interface is up. What
/// is started there stays in it, and it is gone when the last of that has ended.
pub(crate) fn in_a_new_one<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let on_thread = || {
        // SAFETY: changes the namespace of this thread only, which does nothing else before it ends.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        set_loopback_up()?;
        Ok(work())
    };
    on_a_thread(on_thread)
}

fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn set_loopback_up() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = *byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the request is an ifreq with a name and flags, as this ioctl reads it.
    let done = unsafe {
        libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::SIOCSIFFLAGS, &raw const request)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
