//! Namespaces made one by one with clock readings in between, instead of all by the clone.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::super::steps::{Descriptor, Step, StepError, number};
use super::{NOTHING, Piece, Prepared};

impl Prepared {
    /// The namespaces that the clone makes. With stamps each is made separately; but other users than root
    /// can do so only in a user namespace, and a PID namespace affects only children.
    pub(super) fn namespaces_at_birth(&self) -> u64 {
        let all = self.spec.pieces.namespaces();
        match (self.spec.stamped, self.spec.pieces.has(Piece::User)) {
            (false, _) => all,
            (true, true) => all & (libc::CLONE_NEWUSER | libc::CLONE_NEWPID) as u64,
            (true, false) => 0,
        }
    }

    /// dunnage's own PID namespace, if a launch makes another one for this thread's next child.
    pub(super) fn own_processes(&self) -> io::Result<Option<File>> {
        let has = |piece| self.spec.pieces.has(piece);
        let apart = self.spec.stamped && has(Piece::Pid) && !has(Piece::User);
        apart.then(|| File::open("/proc/self/ns/pid")).transpose()
    }
}

/// Puts the next children of this thread into this PID namespace again.
pub(super) fn back_among(own: &File) -> Result<(), StepError> {
    let namespace = [number(own.as_raw_fd()), number(libc::CLONE_NEWPID)];
    let back = Step::call("return to PID namespace", NOTHING, libc::SYS_setns, namespace);
    back.run(&mut Descriptor::none()).map(drop).map_err(|errno| back.failed(errno))
}
