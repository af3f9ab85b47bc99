//! An initramfs as the kernel unpacks it: the "newc" format of cpio, uncompressed, written in memory.
//!
//! Deliberately absent: owners, times and links; everything belongs to root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive under construction.
#[derive(Clone, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<PathBuf>,
    entries: u32,
}

impl Archive {
    /// Adds an executable file, with its parent directories. `path` has no leading slash.
    pub fn add(&mut self, path: &Path, content: &[u8]) {
        let above: Vec<_> = path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        for directory in above.into_iter().rev() {
            if self.directories.insert(directory.to_owned()) {
                self.entry(&directory.to_string_lossy(), DIRECTORY, &[]);
            }
        }
        self.entry(&path.to_string_lossy(), PROGRAM, content);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = 1;
        let (size, name_size) = (content.len() as u32, name.len() as u32 + 1);
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0]
            .map(|field| format!("{field:08X}"));
        self.bytes.extend(b"070701");
        self.bytes.extend(fields.concat().bytes());
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
