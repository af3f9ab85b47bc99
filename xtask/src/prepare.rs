//! Prepares this machine for the tests: packages, a daemon, cgroups, a guest, another release.

use std::path::Path;
use std::process::Child;

use anyhow::Result;

use crate::daemon::{self, Docker};
use crate::guest;
use crate::machine::Machine;
use crate::suite::REQUIRE;
use crate::{axe, cgroups, packages, stack};

/// What is there after the machine was prepared, and so is required: names of needs in `tests/support`.
const NEEDS: &[&str] = &[
    "root",
    "docker",
    "podman",
    "runc",
    "crun",
    "containerd",
    "dockerd",
    "fuse-overlayfs",
    "ext4",
    "xfs",
    "btrfs",
    "hyperfine",
    "strace",
    "cc",
    "groff",
    "bash",
    "zsh",
    "fish",
    "script",
    "useradd",
    "chromium",
];

/// What the tests find here.
pub struct Prepared {
    docker: Docker,
    /// Whether axe-core is there; without npm it is not.
    has_axe: bool,
    /// Another release, which is still being made.
    stack: Option<Child>,
}

/// Prepares it, or looks what there is.
pub fn machine(machine: &Machine, scratch: &Path) -> Result<Prepared> {
    match machine {
        Machine::Ours { .. } => {
            packages::install_missing()?;
            let stack = Some(stack::begin(scratch)?);
            cgroups::mend();
            let has_axe = axe::ensure();
            let docker = daemon::ensure(scratch);
            guest::ensure();
            Ok(Prepared { docker, has_axe, stack })
        }
        Machine::Foreign(why) => {
            eprintln!("xtask: not installing or starting anything: {why}");
            Ok(Prepared { docker: Docker::look(), has_axe: false, stack: None })
        }
    }
}

impl Prepared {
    /// The needs whose absence fails a test, comma-separated. The environment variable takes precedence, even if it is empty.
    pub fn required(&self, machine: &Machine) -> String {
        if let Ok(asked) = std::env::var(REQUIRE) {
            return asked;
        }
        let Machine::Ours { is_debian } = machine else { return String::new() };
        let mut needs = NEEDS.to_vec();
        // A daemon that xtask did not start may not know crun: then the test skips with that reason.
        if self.docker.knows_crun {
            needs.push("docker+crun");
        }
        // Other distributions have neither this kernel nor this release in their archives.
        if *is_debian {
            needs.extend(["guest", "stack"]);
        }
        if self.has_axe {
            needs.push("axe");
        }
        needs.join(",")
    }

    /// Ends what was started.
    pub fn end(self) -> Result<()> {
        self.docker.end();
        if let Some(mut stack) = self.stack {
            stack.wait()?;
        }
        Ok(())
    }
}
