//! The commands of `ctr` outside a measurement: they import images and remove containers, all in dunnage's
//! containerd namespace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::Unavailable;
use super::super::component::Client;
use crate::image::archive::IMAGE_LABEL;
use crate::outcome::Failure;
use crate::resource::Found;
use crate::sys::process;

/// The containerd namespace for everything that dunnage makes.
pub const NAMESPACE: &str = "dunnage";

/// Where `ctr` makes the pipes of its containers.
const PIPES: &str = "/run/containerd/fifo";

/// `ctr` for one daemon, in dunnage's namespace.
#[derive(Debug)]
pub struct Ctr(Client);

impl std::ops::Deref for Ctr {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.0
    }
}

impl Ctr {
    /// `ctr` at this path, for the daemon that listens on this socket.
    pub fn new(program: PathBuf, address: &str) -> Ctr {
        let global = ["--address", address, "--namespace", NAMESPACE].map(str::to_owned).to_vec();
        Ctr(Client { global, ..Client::of(program) })
    }

    /// The lines of its answer.
    pub fn lines(&self, verb: &[&str]) -> Result<Vec<String>, Unavailable> {
        let text = self.ask(verb)?;
        Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// The snapshotters that the daemon knows, each with its state: `ok`, or why it does not serve in a word.
    pub fn snapshotters(&self) -> Result<Vec<(String, String)>, Unavailable> {
        Ok(self.lines(&["plugins", "ls"])?.iter().filter_map(|line| snapshotter(line)).collect())
    }

    /// Whether dunnage's namespace holds this image.
    pub fn has_image(&self, reference: &str) -> Result<bool, Unavailable> {
        Ok(self.lines(&["images", "ls", "--quiet"])?.iter().any(|line| line == reference))
    }

    /// Imports an archive and gives its image dunnage's label.
    pub fn import(&self, archive: &Path, reference: &str, snapshotter: Option<&str>) -> Result<(), String> {
        let path = archive.to_string_lossy();
        let with = snapshotter.map(|name| ["--snapshotter", name]);
        let import = |by: &[&str]| {
            let verb = ["images", "import"].iter().chain(by).copied();
            self.ask(&verb.chain(with.into_iter().flatten()).chain([&*path]).collect::<Vec<_>>())
        };
        let (label, value) = IMAGE_LABEL;
        // From version 2.0 on the daemon unpacks images, but only for snapshotters of its configuration.
        let is_for_the_client = |why: &Unavailable| why.reason.contains("no unpack platforms defined");
        import(&[])
            .or_else(|why| if is_for_the_client(&why) { import(&["--local"]) } else { Err(why) })
            .and_then(|_| self.ask(&["images", "label", reference, &format!("{label}={value}")]))
            .map(drop)
            .map_err(|why| why.reason)
    }

    /// Removes everything with this name: the task with its processes, the container, and the snapshot of a
    /// client that was killed early.
    pub fn remove(&self, name: &str, snapshotter: Option<&str>) -> Result<Found, Failure> {
        let snapshotter = snapshotter.unwrap_or("overlayfs");
        let verbs: [&[&str]; 3] = [
            &["tasks", "delete", "--force", name],
            &["containers", "delete", name],
            &["snapshots", "--snapshotter", snapshotter, "delete", name],
        ];
        let mut found = Found::No;
        for verb in verbs {
            if self.removed(verb)? == Found::Yes {
                found = Found::Yes;
            }
        }
        end_stray_shim(name);
        remove_pipes(name);
        Ok(found)
    }

    /// Removes something with these arguments.
    pub fn removed(&self, words: &[&str]) -> Result<Found, Failure> {
        match self.insist(words) {
            Ok(_) => Ok(Found::Yes),
            Err(why) if why.reason.contains("not found") => Ok(Found::No),
            Err(why) => Err(why.into()),
        }
    }
}

/// A snapshotter and its state in a line about a plug-in.
fn snapshotter(line: &str) -> Option<(String, String)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let ["io.containerd.snapshotter.v1", name, .., state] = words[..] else { return None };
    Some((name.to_owned(), state.to_owned()))
}

/// Ends a shim that containerd has lost track of: if a client dies while the daemon makes a task, its shim
/// can remain. containerd then cleans up after it.
fn end_stray_shim(name: &str) {
    let shims = process::named(&["containerd-shim"]);
    let programs: BTreeSet<_> = shims.into_iter().filter_map(|shim| shim.executable).collect();
    for program in programs {
        process::kill_clients(&program, name, None);
    }
}

/// Removes the pipes of a container whose client was killed. They are in a directory of their own with a
/// random name.
fn remove_pipes(name: &str) {
    let directories = std::fs::read_dir(PIPES).into_iter().flatten().flatten();
    for directory in directories.map(|entry| entry.path()) {
        let files = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let ours = files.filter(|file| file.file_name().to_string_lossy().starts_with(&format!("{name}-")));
        if ours.filter(|file| std::fs::remove_file(file.path()).is_ok()).count() > 0 {
            let _ = std::fs::remove_dir(&directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshotters_are_found_among_the_plug_ins() {
        let found = |line: &str| snapshotter(line);
        let line = "io.containerd.snapshotter.v1    erofs                    linux/amd64    skip      ";
        assert_eq!(found(line), Some(("erofs".to_owned(), "skip".to_owned())));
        assert_eq!(found("io.containerd.differ.v1         erofs    linux/amd64    ok"), None);
        assert_eq!(found("TYPE                            ID       PLATFORMS      STATUS"), None);
    }
}
