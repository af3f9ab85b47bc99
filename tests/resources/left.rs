//! Remains of a run on the machine: files, mounts, loop devices, interfaces, addresses, processes, and what engines
//! hold.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::left::{listed, said};
use crate::support::Need;

/// Everything that contains the run's name or is in its directory, also in these engines.
pub fn left_of(state: &Path, run: &str, engines: &[(&str, Need)]) -> Vec<String> {
    let directory = state.join("runs").join(run).display().to_string();
    let mut left = Vec::new();
    let files = fs::read_dir(&directory).into_iter().flatten().flatten();
    left.extend(files.map(|entry| format!("file {}", entry.path().display())));
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("our mounts");
    left.extend(mounts.lines().filter(|line| line.contains(&directory)).map(|line| format!("mount {line}")));
    for device in entries("/sys/block") {
        let backing =
            fs::read_to_string(format!("/sys/block/{device}/loop/backing_file")).unwrap_or_default();
        if backing.contains(&directory) {
            left.push(format!("{device} {backing}"));
        }
    }
    let interfaces = fs::read_to_string("/proc/self/net/dev").expect("our interfaces");
    left.extend(interfaces.lines().filter(|line| line.contains(run)).map(|line| format!("interface {line}")));
    let addresses = said("ip", &["-oneline", "address", "show", "dev", "lo"]);
    left.extend(addresses.lines().filter(|line| line.contains(run)).map(|line| format!("address {line}")));
    for pid in entries("/proc") {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&directory) {
            left.push(format!("process {pid} {line}"));
        }
    }
    let label = format!("label=dunnage.run={run}");
    for (engine, need) in engines.iter().copied() {
        for what in ["network", "volume"] {
            let found = listed((engine, need), &[what, "ls", "--quiet", "--filter", &label]);
            left.extend(found.lines().map(|name| format!("{engine} {what} {name}")));
        }
        let found = listed((engine, need), &["images", "--format", "{{.Repository}}:{{.Tag}}"]);
        left.extend(
            found.lines().filter(|name| name.contains(run)).map(|name| format!("{engine} image {name}")),
        );
    }
    left
}

/// The cgroups of containers in private daemons of the run.
pub fn cgroups_of(state: &Path, run: &str) -> Vec<PathBuf> {
    let directory = state.join("runs").join(run);
    let daemons = fs::read_dir(directory).into_iter().flatten().flatten();
    let ids: Vec<String> = daemons
        .flat_map(|daemon| entries(&daemon.path().join("root/containers").display().to_string()))
        .collect();
    let (mut open, mut found) = (vec![PathBuf::from("/sys/fs/cgroup")], Vec::new());
    while let Some(directory) = open.pop().filter(|_| !ids.is_empty()) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
                let name = entry.file_name();
                if ids.iter().any(|id| name.to_string_lossy().contains(id)) {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}

fn entries(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
