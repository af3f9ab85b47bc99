//! A user for one test, made and removed with everything that podman keeps for them.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{self, Need};

/// Programs that change the user database lock it, and a second one fails at once.
fn database() -> fs::File {
    support::turn("users")
}

pub struct User {
    pub name: String,
    pub number: u32,
    files: Vec<String>,
}

/// The ids that a new user has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    Subordinate,
    Own,
}

impl User {
    /// A new user of podman; `None` if none can be made, which is reported as a skip.
    pub fn new(test: &str, letter: char, ids: Ids) -> Option<User> {
        if support::lacks(test, Need::Podman) { None } else { User::ordinary(test, letter, ids) }
    }

    /// A new user with subordinate ids, as whom no one can log in.
    pub fn closed(test: &str, letter: char) -> Option<User> {
        let user = User::ordinary(test, letter, Ids::Subordinate)?;
        let _alone = database();
        assert_eq!(said("usermod", &["--shell", "/usr/sbin/nologin", &user.name]), Ok(String::new()));
        Some(user)
    }

    /// A new user, whether or not there is podman.
    pub fn ordinary(test: &str, letter: char, ids: Ids) -> Option<User> {
        for need in [Need::Root, Need::Useradd] {
            if support::lacks(test, need) {
                return None;
            }
        }
        let name = format!("dunnage-{letter}{}", std::process::id());
        let _alone = database();
        assert_eq!(said("useradd", &["--create-home", "--shell", "/bin/sh", &name]), Ok(String::new()));
        let number = said("id", &["-u", &name]).unwrap().trim().parse().unwrap();
        let user = User { name, number, files: Vec::new() };
        if ids == Ids::Own {
            for list in ["/etc/subuid", "/etc/subgid"] {
                let own = format!("/^{}:/d", user.name);
                assert_eq!(said("sed", &["-i", &own, list]), Ok(String::new()));
            }
        }
        Some(user)
    }

    /// Sets the limits that PAM gives to a login of this user.
    pub fn limit(&mut self, limits: &str) {
        let path = format!("/etc/security/limits.d/{}.conf", self.name);
        let lines: Vec<_> = limits.lines().map(|line| format!("{} {line}\n", self.name)).collect();
        fs::write(&path, lines.concat()).unwrap();
        self.files.push(path);
    }

    /// A shell's command as this user: whether it succeeded, with what it said.
    pub fn shell(&self, command: &str) -> Result<String, String> {
        said(
            "setpriv",
            &[
                &format!("--reuid={}", self.number),
                &format!("--regid={}", self.number),
                "--clear-groups",
                "sh",
                "-c",
                command,
            ],
        )
    }

    /// Podman as this user, started in another way than the program does.
    pub fn podman(&self, arguments: &[&str]) -> Result<String, String> {
        let mut all = vec!["-u", &self.name, "--", "podman"];
        all.extend(arguments);
        said("runuser", &all)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // Podman leaves a process that holds the user namespace, which the next user with this id would get.
        // Where it records that process depends on its version.
        let states = ["podman-run", "storage-run"].map(|name| format!("/tmp/{name}-{}", self.number));
        for state in &states {
            if let Ok(pause) = fs::read_to_string(format!("{state}/libpod/tmp/pause.pid")) {
                let _ = said("kill", &["-9", pause.trim()]);
            }
        }
        for path in &self.files {
            let _ = fs::remove_file(path);
        }
        let _alone = database();
        let _ = said("userdel", &["--remove", "--force", &self.name]);
        for path in states.into_iter().chain([format!("/tmp/containers-user-{}", self.number)]) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Standard output of a command, or its error.
pub fn said(program: &str, arguments: &[&str]) -> Result<String, String> {
    // Root's working directory may be inaccessible to the user.
    let output = Command::new(program).args(arguments).current_dir("/").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
