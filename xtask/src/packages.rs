//! Finds and installs the packages that the tests need and that are missing here.
//!
//! It uses only Debian's archive and never removes anything: an engine from elsewhere, such as docker-ce, counts as present.

use std::collections::HashSet;
use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::machine::find_executable;

struct Package {
    name: &'static str,
    /// An executable that is enough if it came from elsewhere.
    or: Option<&'static str>,
    /// Some releases do not have it, so its absence alone is not a reason to update the package lists.
    in_every_release: bool,
}

const fn package(name: &'static str, or: &'static str) -> Package {
    Package { name, or: Some(or), in_every_release: true }
}

const PACKAGES: &[Package] = &[
    package("docker.io", "dockerd"),
    // Debian 13 moved the client out of docker.io, which only recommends it.
    Package { name: "docker-cli", or: Some("docker"), in_every_release: false },
    package("containerd", "containerd"),
    package("podman", "podman"),
    package("crun", "crun"),
    package("runc", "runc"),
    package("fuse-overlayfs", "fuse-overlayfs"),
    package("slirp4netns", "slirp4netns"),
    Package { name: "passt", or: Some("pasta"), in_every_release: false },
    Package { name: "netavark", or: None, in_every_release: false },
    Package { name: "aardvark-dns", or: None, in_every_release: false },
    package("uidmap", "newuidmap"),
    package("iptables", "iptables"),
    // Used instead by Debian 13's netavark.
    package("nftables", "nft"),
    package("e2fsprogs", "mkfs.ext4"),
    package("xfsprogs", "mkfs.xfs"),
    package("btrfs-progs", "mkfs.btrfs"),
    package("hyperfine", "hyperfine"),
    package("strace", "strace"),
    package("gcc", "gcc"),
    package("debootstrap", "debootstrap"),
    Package { name: "libc6-dev", or: None, in_every_release: true },
    package("iproute2", "ip"),
    package("groff-base", "groff"),
    package("chromium", "chromium"),
    package("bash", "bash"),
    package("zsh", "zsh"),
    package("fish", "fish"),
    package("qemu-system-x86", "qemu-system-x86_64"),
    Package { name: "ca-certificates", or: None, in_every_release: true },
];

/// Installs what is missing and reports it. A failure of apt-get is only reported; the tests that need the package then say so.
pub fn install_missing() -> Result<()> {
    let missing = missing()?;
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let must_ask = missing.iter().any(|package| package.in_every_release);
    if !must_ask && in_archive(&names)?.is_empty() {
        eprintln!("xtask: all packages for the tests are installed");
        return Ok(());
    }
    eprintln!("xtask: missing packages: {}", names.join(" "));
    apt_get(&["update"])?;
    let known = in_archive(&names)?;
    let (wanted, unknown): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| known.contains(**name));
    if !unknown.is_empty() {
        eprintln!("xtask: not in this distribution's archive: {}", unknown.join(" "));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    apt_get(&[&["install", "--yes", "--no-install-recommends", "--no-remove"], &wanted[..]].concat())
}

fn missing() -> Result<Vec<&'static Package>> {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat", "${Package} ${db:Status-Status}\\n"]);
    query.args(PACKAGES.iter().map(|package| package.name));
    // For an unknown name it exits with 1, after printing the others.
    let installed = installed(&output_of(&mut query)?);
    Ok(PACKAGES
        .iter()
        .filter(|package| !installed.contains(package.name))
        .filter(|package| package.or.is_none_or(|name| find_executable(name).is_none()))
        .collect())
}

fn installed(dpkg_query: &str) -> HashSet<String> {
    dpkg_query
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| *status == "installed")
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn in_archive(names: &[&str]) -> Result<HashSet<String>> {
    if names.is_empty() {
        return Ok(HashSet::new());
    }
    Ok(with_candidate(&output_of(Command::new("apt-cache").arg("policy").args(names))?))
}

/// The names in the output of `apt-cache policy` that have a version to install.
fn with_candidate(policy: &str) -> HashSet<String> {
    let mut current = "";
    let mut known = HashSet::new();
    for line in policy.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            current = name;
        } else if let Some(version) = line.trim().strip_prefix("Candidate: ")
            && version != "(none)"
        {
            known.insert(current.to_owned());
        }
    }
    known
}

fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .env("LC_ALL", "C")
        .stderr(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", command.get_program().display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `apt-get`. A failure is only reported.
pub fn apt_get(args: &[&str]) -> Result<()> {
    eprintln!("xtask: apt-get {}", args.join(" "));
    let status = Command::new("apt-get")
        .args(["-qq", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .context("cannot run `apt-get`")?;
    if !status.success() {
        // Without an init system, a package may be unpacked and only fail to start its service, which the tests do not need.
        eprintln!("xtask: warning: `apt-get {}`: {status}; continuing", args.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_installed_package_counts() {
        let told = "crun installed\nrunc config-files\npodman half-configured\n";
        assert_eq!(installed(told), HashSet::from(["crun".to_owned()]));
    }

    #[test]
    fn a_package_without_candidate_is_not_in_the_archive() {
        let policy = "passt:\n  Installed: (none)\n  Candidate: 0.1\n  Version table:\n     0.1 500\n\
                      docker-cli:\n  Installed: (none)\n  Candidate: (none)\n";
        assert_eq!(with_candidate(policy), HashSet::from(["passt".to_owned()]));
    }
}
