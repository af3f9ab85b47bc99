//! Reads small text files below a root directory: `/` on a real machine, a planted tree in tests.

use std::fs;
use std::path::{Path, PathBuf};

/// A root directory to read from; paths given to it are absolute, as on the machine itself.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The machine itself.
    pub fn machine() -> Tree {
        Tree { root: PathBuf::from("/") }
    }

    /// A planted machine.
    #[cfg(test)]
    pub fn planted(root: &Path) -> Tree {
        Tree { root: root.to_owned() }
    }

    /// Where `path` of the machine lies.
    pub fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The whole text, if it can be read; bytes that are no UTF-8 are replaced.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.at(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text without white space around it; `None` when nothing is left.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let line = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// The number that the file holds.
    pub fn number<N: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<N> {
        self.line(path)?.parse().ok()
    }

    /// The switch that the file holds as `0` or as another number.
    pub fn switch(&self, path: impl AsRef<Path>) -> Option<bool> {
        self.number::<i64>(path).map(|value| value != 0)
    }

    /// The names in a directory, sorted; none when it cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Whether something is there.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// Where a symbolic link points to.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.at(path)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }
}
