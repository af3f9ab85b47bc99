//! Whether the set-up may install packages and start a daemon on this machine.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What the set-up may do.
pub enum Machine {
    /// Root on Debian or Ubuntu: install, start and repair.
    Ours {
        /// Debian itself, with its archive.
        is_debian: bool,
    },
    /// Anything else, with the reason: change nothing.
    Foreign(String),
}

impl Machine {
    /// Reads the user and the distribution.
    pub fn read() -> Machine {
        // The owner of /proc/self is the effective user, for which std has no function.
        if fs::metadata("/proc/self").map_or(true, |meta| meta.uid() != 0) {
            return Machine::Foreign("not root".to_owned());
        }
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        if is_debian_like(&release) {
            Machine::Ours { is_debian: release.lines().any(|line| line == "ID=debian") }
        } else {
            Machine::Foreign("`/etc/os-release` names neither Debian nor Ubuntu".to_owned())
        }
    }
}

fn is_debian_like(os_release: &str) -> bool {
    os_release
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .flat_map(|(_, value)| value.trim_matches(['"', '\'']).split_whitespace())
        .any(|id| matches!(id, "debian" | "ubuntu"))
}

/// Finds an executable on PATH, or in the directories of daemons, which only root has on PATH.
pub fn find_executable(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_ubuntu_and_their_children_are_known() {
        assert!(is_debian_like("NAME=x\nID=debian\n"));
        assert!(is_debian_like("ID=ubuntu\nID_LIKE=debian\n"));
        assert!(is_debian_like("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian_like("ID=fedora\nHOME_URL=debian\n"));
        assert!(!is_debian_like(""));
    }

    #[test]
    fn an_executable_is_found_and_a_missing_one_is_not() {
        assert!(find_executable("sh").is_some());
        assert!(find_executable("no-such-program-of-anybody").is_none());
    }
}
