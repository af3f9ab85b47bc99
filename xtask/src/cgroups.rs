//! Fixes a hybrid cgroup host that crun refuses.
//!
//! On a host with version 1 hierarchies, crun requires that the version 2 hierarchy has no controllers ("drop all controllers
//! from cgroupv2"). Mounting each remaining one as version 1 removes it from there.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Mounts the remaining controllers as version 1. A failure is only reported.
pub fn mend() {
    mend_under(Path::new("/sys/fs/cgroup"));
}

fn mend_under(root: &Path) {
    // Only a hybrid host has this file; with only version 2 it is one directory higher.
    let Ok(left) = fs::read_to_string(root.join("unified/cgroup.controllers")) else {
        return;
    };
    for controller in left.split_whitespace().map(name_in_version_1) {
        match mount(root, controller) {
            Ok(()) => {
                eprintln!("xtask: mounted cgroup controller `{controller}` as version 1, for crun")
            }
            Err(error) => eprintln!(
                "xtask: warning: crun will fail on this host: cgroup controller `{controller}`: {error:#}"
            ),
        }
    }
}

fn name_in_version_1(controller: &str) -> &str {
    match controller {
        "io" => "blkio",
        same => same,
    }
}

fn mount(root: &Path, controller: &str) -> Result<()> {
    let target = root.join(controller);
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    let output = Command::new("mount")
        .args(["-t", "cgroup", "-o", controller, "cgroup"])
        .arg(&target)
        .output()
        .context("cannot run `mount`")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_for_block_devices_has_another_name_in_version_1() {
        assert_eq!(name_in_version_1("io"), "blkio");
        assert_eq!(name_in_version_1("hugetlb"), "hugetlb");
    }
}
