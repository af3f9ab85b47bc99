//! What a login of an ordinary user would give to a program: who the user is, their limits, their
//! environment. Asked once, outside of everything that is measured; dunnage, being root, then starts
//! programs with it directly, so that no `sudo`, `su` or `runuser` lies in an interval.
//!
//! Deliberately absent: a session of systemd, a keyring, what a shell's profile would set, and all
//! variables of root's.

mod user;

use std::io;
use std::sync::Arc;

use crate::sys::identity::Identity;
use crate::sys::spawn::Program;

/// An ordinary user as whom programs are started.
#[derive(Debug, Clone)]
pub struct Login {
    name: String,
    identity: Arc<Identity>,
    environment: Vec<String>,
    limits: String,
}

impl Login {
    /// The user's number.
    pub fn user(&self) -> u32 {
        self.identity.user
    }

    /// The same program as this user, with the environment of a login and no other.
    pub fn dress(&self, program: Program) -> io::Result<Program> {
        Ok(program.with_environment(&self.environment)?.with_identity(&self.identity))
    }

    /// Facts for the record.
    pub fn notes(&self) -> [(&'static str, String); 3] {
        let files = self.identity.limits.iter().find(|limit| limit.resource == libc::RLIMIT_NOFILE);
        let files = files.map_or_else(|| "as dunnage's".into(), |own| format!("{} {}", own.soft, own.hard));
        [
            ("user", format!("{} ({})", self.name, self.user())),
            ("limits", self.limits.clone()),
            ("open files", files),
        ]
    }
}
