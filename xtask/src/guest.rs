//! Prepares what the tests' guest boots: a kernel, its modules, a shell and what loads AppArmor's profiles, extracted from Debian packages.
//!
//! Nothing is installed, so this machine's boot loader, hooks and initramfs are not affected. The files are kept, so that only
//! the first call downloads packages. Deliberately absent: booting (`tests/support/guest`), and the emulator, which is an
//! ordinary package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::packages::apt_get;

/// Debian's package that depends on the newest kernel.
const KERNEL: &str = "linux-image-amd64";
const BUSYBOX: &str = "busybox-static";
const APPARMOR: &str = "apparmor";
/// What is taken last, so that it is only there where everything is.
const PARSER: &str = "apparmor_parser";
/// The parts of the kernel package that a guest may need, as patterns for `tar`; of the drivers, only those of virtual devices.
const WANTED: &[&str] = &[
    "*/boot/vmlinuz-*",
    "*/kernel/arch/*",
    "*/kernel/block/*",
    "*/kernel/crypto/*",
    "*/kernel/drivers/block/*",
    "*/kernel/drivers/md/*",
    "*/kernel/drivers/net/*.ko*",
    "*/kernel/drivers/virtio/*",
    "*/kernel/fs/*",
    "*/kernel/lib/*",
    "*/kernel/mm/*",
    "*/kernel/net/*",
];

/// Extracts it if it is missing. A failure is only reported.
pub fn ensure() {
    if directory().join(PARSER).is_file() {
        return;
    }
    // Missing or old package lists are noticed only when a download fails.
    let made = make().or_else(|_| apt_get(&["update"]).and_then(|()| make()));
    match made {
        Ok(kernel) => {
            eprintln!(
                "xtask: extracted {kernel}, {BUSYBOX} and {APPARMOR} for the tests' guest; nothing was installed"
            )
        }
        Err(error) => eprintln!("xtask: warning: there is no guest for the tests: {error:#}"),
    }
}

/// Where `tests/support/guest` looks for the files.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/guest")
}

/// Creates the directory, completely or not at all, and returns the kernel package's name.
fn make() -> Result<String> {
    let kernel = kernel_package()?;
    let scratch = directory().with_extension("new");
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let made = fill(&scratch, &kernel);
    if made.is_ok() {
        let _ = fs::remove_dir_all(directory());
        fs::rename(scratch.join("guest"), directory()).context("cannot name the directory")?;
    }
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    made.map(|()| kernel)
}

/// The package that the generic one depends on: `Depends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)`.
fn kernel_package() -> Result<String> {
    let told = run(Command::new("apt-cache").args(["show", "--no-all-versions", KERNEL]))?;
    depended_on(&told).with_context(|| format!("`apt-cache show {KERNEL}` names no kernel"))
}

fn depended_on(told: &str) -> Option<String> {
    let depends = told.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    let name = depends.split([',', ' ']).find(|name| name.starts_with("linux-image-"))?;
    Some(name.to_owned())
}

fn fill(scratch: &Path, kernel: &str) -> Result<()> {
    run(Command::new("apt-get").args(["-qq", "download", kernel, BUSYBOX, APPARMOR]).current_dir(scratch))?;
    let root = scratch.join("root");
    fs::create_dir(&root).context("cannot create a directory")?;
    extract(&package(scratch, "busybox-static_")?, &root, &["*/bin/busybox"])?;
    extract(&package(scratch, &format!("{APPARMOR}_"))?, &root, &["*/sbin/apparmor_parser"])?;
    extract(&package(scratch, kernel)?, &root, WANTED)?;

    let guest = scratch.join("guest");
    fs::create_dir(&guest).context("cannot create a directory")?;
    let take = |found: Option<PathBuf>, name: &str| {
        let found = found.with_context(|| format!("no {name} in the packages"))?;
        fs::rename(&found, guest.join(name)).with_context(|| format!("cannot move {}", found.display()))
    };
    let all = files_and_directories(&root)?;
    let called = |name: &str| all.iter().find(|path| path.ends_with(name)).cloned();
    let image = all.iter().find(|path| path.to_string_lossy().contains("/boot/vmlinuz-")).cloned();
    take(called("bin/busybox"), "busybox")?;
    take(image, "vmlinuz")?;
    // Debian 13 has them compressed and under `/usr`.
    take(called("kernel"), "modules")?;
    let compressed = files_and_directories(&guest.join("modules"))?;
    let compressed: Vec<_> =
        compressed.iter().filter(|path| path.extension().is_some_and(|end| end == "xz")).collect();
    if !compressed.is_empty() {
        run(Command::new(guest.join("busybox")).arg("unxz").args(compressed))?;
    }
    take(called("sbin/apparmor_parser"), PARSER)?;
    Ok(())
}

/// The downloaded file of a package; its name begins with the package's.
fn package(directory: &Path, name: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let found =
        paths.find(|path| path.file_name().is_some_and(|own| own.to_string_lossy().starts_with(name)));
    found.with_context(|| format!("`apt-get download` did not download {name}"))
}

/// Unpacks the files that match one of the patterns.
fn extract(package: &Path, to: &Path, patterns: &[&str]) -> Result<()> {
    let mut unpacker = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run `dpkg-deb`")?;
    let archive = unpacker.stdout.take().context("no standard output")?;
    // GNU tar exits with 2 if a pattern has no match, which is normal, because kernels differ in what is built in.
    let status = Command::new("tar")
        .args(["-x", "--no-same-owner", "--wildcards", "-C"])
        .arg(to)
        .args(patterns)
        .stdin(archive)
        .stderr(Stdio::null())
        .status()
        .context("cannot run `tar`")?;
    let unpacked = unpacker.wait().context("cannot wait for `dpkg-deb`")?;
    ensure!(unpacked.success(), "`dpkg-deb --fsys-tarfile {}`: {unpacked}", package.display());
    match status.code() {
        Some(0 | 2) => Ok(()),
        _ => bail!("`tar` on {}: {status}", package.display()),
    }
}

fn files_and_directories(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", directory.display()))?;
        all.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(files_and_directories(&entry.path())?);
        }
    }
    Ok(all)
}

/// The standard output of a command, which must succeed.
fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{program}`"))?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = complaint.trim().lines().last().unwrap_or_default();
    ensure!(output.status.success(), "`{program}`: {}: {last}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_package_that_the_nameless_one_depends_on() {
        let told = "Package: linux-image-amd64\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n";
        assert_eq!(depended_on(told).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(depended_on("Package: linux-image-amd64\nDepends: other\n"), None);
    }
}
