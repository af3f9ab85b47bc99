//! What the login of an ordinary user gives to a program: the user's ids, limits and environment. It is asked
//! once, outside everything that is measured; then dunnage, as root, starts programs with it directly, so
//! that no `sudo`, `su` or `runuser` is part of an interval.
//!
//! Deliberately absent: a systemd session, a keyring, the settings of a shell's profile, and root's
//! variables.

mod user;

use std::io;
use std::sync::Arc;

use crate::sys::identity::Identity;
use crate::sys::spawn::Program;

/// An ordinary user that programs are started as.
#[derive(Debug, Clone)]
pub struct Login {
    name: String,
    identity: Arc<Identity>,
    environment: Vec<String>,
    limits: String,
}

impl Login {
    /// The user id.
    pub fn user(&self) -> u32 {
        self.identity.user
    }

    /// The same program as this user, with only the environment of a login.
    pub fn dress(&self, program: Program) -> io::Result<Program> {
        Ok(program.with_environment(&self.environment)?.with_identity(&self.identity))
    }

    /// Facts for the record.
    pub fn notes(&self) -> [(&'static str, String); 3] {
        let files = self.identity.limits.iter().find(|limit| limit.resource == libc::RLIMIT_NOFILE);
        let files = files.map_or_else(|| "dunnage's own".into(), |own| format!("{} {}", own.soft, own.hard));
        [
            ("user", format!("{} ({})", self.name, self.user())),
            ("limits", self.limits.clone()),
            ("open files", files),
        ]
    }
}
