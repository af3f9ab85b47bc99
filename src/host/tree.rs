//! Reads small text files below a root directory: `/` on a real machine, a planted tree in tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A root directory to read from. Its paths are absolute, as on the machine itself.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
    /// Keeps a planted tree until its last user is gone.
    #[cfg(test)]
    _kept: Option<std::sync::Arc<tempfile::TempDir>>,
}

impl Tree {
    /// The machine itself.
    pub fn machine() -> Tree {
        Tree {
            root: PathBuf::from("/"),
            #[cfg(test)]
            _kept: None,
        }
    }

    /// A planted machine with these files.
    #[cfg(test)]
    pub fn planted(files: &[(&str, &str)]) -> Tree {
        let directory = tempfile::tempdir().unwrap();
        let tree = Tree { root: directory.path().to_owned(), _kept: Some(directory.into()) };
        files.iter().for_each(|(path, text)| tree.plant(path, text));
        tree
    }

    /// Writes a file into the tree.
    #[cfg(test)]
    pub fn plant(&self, path: &str, text: &str) {
        let place = self.at(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    /// Removes a file or directory from the tree.
    #[cfg(test)]
    pub fn clear(&self, path: &str) {
        let place = self.at(path);
        let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir_all(&place));
    }

    /// The real location of the machine's `path`.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The whole text, if readable; bytes that are not UTF-8 are replaced.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.at(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text without surrounding white space; `None` if empty.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let line = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The value of the row `NAME: VALUE` in a file.
    pub fn row(&self, path: impl AsRef<Path>, name: &str) -> Option<String> {
        let text = self.text(path)?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.trim().to_owned())
    }

    /// A row of `/proc/meminfo`, converted from KiB to bytes.
    pub fn memory(&self, row: &str) -> Option<u64> {
        let kib: u64 = self.row("/proc/meminfo", row)?.split(' ').next()?.parse().ok()?;
        Some(kib * 1024)
    }

    /// The number in a file.
    pub fn number<N: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<N> {
        self.line(path)?.parse().ok()
    }

    /// The switch in a file, as `0` or another number.
    pub fn switch(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.number::<i64>(path).map(|value| value != 0)
    }

    /// The names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Whether the path exists.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// The target of a symbolic link.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.at(path)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }
}
