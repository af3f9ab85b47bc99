//! The process at the other end of a Unix socket, as the kernel recorded it at the call to `connect` or `listen`, and whether it
//! belongs to a container.
//!
//! Its id may be another process's by the time it is read. So the process is held by a pidfd, of the socket itself where the kernel
//! has that (6.5), and what `/proc` says of the id counts only if the process is still there afterwards.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::{pidfd, process};

/// From `asm-generic/socket.h`.
const SO_PEERPIDFD: libc::c_int = 77;
/// The first PID namespace, in which every process of the machine has an id.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// More parents than a process has.
const GENERATIONS: usize = 64;

/// A process at the other end.
#[derive(Debug)]
pub struct Peer {
    /// Its id, if it has one in the PID namespace of this process.
    pub pid: Option<i32>,
    /// Its user, as seen from the user namespace of this process.
    pub user: u32,
    /// Its group.
    pub group: u32,
    held: Option<OwnedFd>,
}

impl Peer {
    /// The peer of a connection.
    ///
    /// # Errors
    /// If it is gone.
    pub fn of(stream: &UnixStream) -> io::Result<Peer> {
        let peer = credentials(stream)?;
        let mut held: RawFd = -1;
        let held = match option(stream, SO_PEERPIDFD, &mut held) {
            // SAFETY: the kernel has just made this descriptor for this process.
            Ok(()) => Some(unsafe { OwnedFd::from_raw_fd(held) }),
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) && peer.pid > 0 => {
                Some(pidfd::open(peer.pid)?)
            }
            Err(error) if peer.pid > 0 => return Err(error),
            Err(_) => None,
        };
        Ok(Peer { pid: Some(peer.pid).filter(|pid| *pid > 0), user: peer.uid, group: peer.gid, held })
    }

    /// Whether it is a container's first process, one of its descendants, or in its cgroup. A process without an id here cannot be
    /// judged, and belongs to it where there can be such: not in the first PID namespace, in which every process has one.
    pub fn belongs_to(&self, first: Option<i32>) -> bool {
        match (self.pid, &self.held, first) {
            (Some(pid), Some(held), Some(first)) => {
                (descends(pid, first) || shares_cgroup(pid, first)) && !process::has_ended(held)
            }
            (None, ..) => !sees_all(),
            _ => false,
        }
    }
}

/// Whether every process has an id here.
pub fn sees_all() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|own| own.as_os_str() == FIRST_NAMESPACE)
}

fn option<T>(stream: &UnixStream, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` and `size` have the type and the size that these options write.
    let done = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, name, (&raw mut *value).cast(), &mut size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The process that listens on a Unix socket, as the kernel recorded it at the call to `listen`.
pub fn listening_on(socket: &Path) -> Option<i32> {
    credentials(&UnixStream::connect(socket).ok()?).ok().map(|peer| peer.pid).filter(|pid| *pid > 0)
}

fn credentials(stream: &UnixStream) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    option(stream, libc::SO_PEERCRED, &mut peer)?;
    Ok(peer)
}

fn descends(pid: i32, first: i32) -> bool {
    let parent = |pid: &i32| process::read(*pid).map(|found| found.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(pid), parent).take(GENERATIONS).any(|one| one == first)
}

/// Whether both are in the same cgroups and these are not dunnage's own, as those of a container without a cgroup are. A runtime with
/// a kernel of its own connects by a helper that is not a descendant of the first process.
fn shares_cgroup(pid: i32, first: i32) -> bool {
    let of = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
    let (own, others) = (of(&first.to_string()), of(&pid.to_string()));
    own.is_some() && own == others && own != of("self")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    /// A process that connects, and its connection.
    fn connected(listener: &UnixListener, place: &Path) -> (Child, UnixStream) {
        let mut command = Command::new("sleep");
        let place = place.to_owned();
        let connect = move || {
            // It stays open with the program.
            let stream = UnixStream::connect(&place)?;
            rustix::io::fcntl_setfd(&stream, rustix::io::FdFlags::empty())?;
            std::mem::forget(stream);
            Ok(())
        };
        // SAFETY: the closure makes system calls, and allocates in a child of a thread that holds no lock of the allocator.
        unsafe { command.pre_exec(connect) };
        (command.arg("60").spawn().unwrap(), listener.accept().unwrap().0)
    }

    #[test]
    fn a_process_belongs_to_itself_and_its_ancestors_while_it_is_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let (mut child, stream) = connected(&listener, &path);
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let peer = Peer::of(&stream).unwrap();
        let own = std::process::id() as i32;
        assert_eq!((peer.pid, peer.user), (Some(child.id() as i32), rustix::process::geteuid().as_raw()));
        let belongs = [child.id() as i32, own, other.id() as i32].map(|first| peer.belongs_to(Some(first)));
        child.kill().unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        // It is a zombie: its id is still its own, and it can answer nothing.
        process::await_end(peer.held.as_ref().unwrap(), crate::units::Nanos::from_millis(10_000));
        let gone = peer.belongs_to(Some(child.id() as i32));
        child.wait().unwrap();
        assert_eq!((belongs, gone), ([true, true, false], false));
        assert!(
            Peer::of(&stream).is_err() || !Peer::of(&stream).unwrap().belongs_to(Some(child.id() as i32))
        );
    }
}
