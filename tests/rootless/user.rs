//! A user for one test, made and removed with everything that podman keeps for them.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::fs;
use std::os::unix::fs::MetadataExt;
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
        for _ in 0..200 {
            let own = processes(self.number);
            if own.is_empty() {
                break;
            }
            for process in own {
                let _ = said("kill", &["-9", &process]);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        for path in &self.files {
            let _ = fs::remove_file(path);
        }
        let _alone = database();
        let _ = said("userdel", &["--remove", "--force", &self.name]);
        for name in ["podman-run", "storage-run", "containers-user"] {
            let _ = fs::remove_dir_all(format!("/tmp/{name}-{}", self.number));
        }
    }
}

/// The ids of a user's processes that have not ended.
fn processes(user: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let runs = |entry: &fs::DirEntry| fs::read(entry.path().join("cmdline")).is_ok_and(|all| !all.is_empty());
    let is_own = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|facts| facts.uid() == user);
    let own = entries.filter(|entry| is_own(entry) && runs(entry));
    let names = own.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
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
