//! The bundle that OCI runtimes start: `config.json` as Docker would write it, next to a root.
//!
//! A runtime makes missing mount points inside the root, and leaves them there. So every bundle has its own
//! root, prepared before the first start: the image's files (hard links to the unpacked ones, else copies)
//! and a mount point for each mount. Any number of containers, in sequence or at once, share it, and none
//! finds or leaves a change.
//!
//! Deliberately absent: starting anything, and the content of `config.json` (see `spec.rs`).

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::rootfs::{absolute, make_directory};
use crate::sys::descriptors::link_or_copy;

/// A bundle on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    directory: PathBuf,
}

impl Bundle {
    /// Makes the directory, which must not exist yet, with `config.json` and a root like `image` in it. The
    /// caller removes it; after a failure, it is removed here.
    pub fn write(directory: &Path, image: &Path, config: &Value) -> Result<Bundle> {
        Bundle::filled(directory, |bundle| {
            let root = bundle.root();
            make_directory(&root)?;
            link_tree(image, &root)?;
            make_mount_points(&root, config["mounts"].as_array().into_iter().flatten())?;
            bundle.configure(&root, config)
        })
    }

    /// The same with a root elsewhere that belongs to the caller: the runtime makes the mount points that it
    /// lacks.
    pub fn around(directory: &Path, root: &Path, config: &Value) -> Result<Bundle> {
        Bundle::filled(directory, |bundle| bundle.configure(root, config))
    }

    fn filled(directory: &Path, fill: impl FnOnce(&Bundle) -> Result<()>) -> Result<Bundle> {
        let bundle = Bundle { directory: absolute(directory)? };
        make_directory(&bundle.directory)?;
        fill(&bundle).inspect_err(|_| {
            // The first error is the one to report.
            let _ = fs::remove_dir_all(&bundle.directory);
        })?;
        Ok(bundle)
    }

    /// The absolute path for `run --bundle`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The absolute path of the root, which containers see and share.
    pub fn root(&self) -> PathBuf {
        self.directory.join("rootfs")
    }

    fn configure(&self, root: &Path, config: &Value) -> Result<()> {
        let mut whole = config.clone();
        whole["root"] = json!({ "path": root, "readonly": false });
        let path = self.directory.join("config.json");
        fs::write(&path, whole.to_string()).with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// Makes directories and links files. A hard link costs nothing and shares the page cache with the other
/// subjects; where it is not possible, as across filesystems or to another user's file, the file is copied. A
/// container that wrote through the link would be detected when the image is next unpacked.
fn link_tree(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("cannot list `{}`", from.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list `{}`", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            make_directory(&target)?;
            link_tree(&source, &target)?;
        } else {
            link_or_copy(&source, &target).with_context(|| {
                format!("cannot link or copy `{}` to `{}`", source.display(), target.display())
            })?;
        }
    }
    Ok(())
}

/// Makes the mount point of each mount, so that the runtime does not have to. A destination below an earlier
/// one is on that filesystem and not in the root.
fn make_mount_points<'a>(root: &Path, mounts: impl Iterator<Item = &'a Value>) -> Result<()> {
    let mut earlier: Vec<&Path> = Vec::new();
    for mount in mounts {
        let text = |key: &str| mount[key].as_str().unwrap_or_default();
        let destination = Path::new(text("destination"));
        let plain = destination.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        ensure!(
            destination.is_absolute() && plain,
            "the mount point `{}` is not a plain absolute path",
            destination.display()
        );
        if earlier.iter().any(|above| destination.starts_with(above)) {
            continue;
        }
        earlier.push(destination);
        let place = root.join(destination.strip_prefix("/").unwrap_or(destination));
        let is_file = text("type") == "bind" && !Path::new(text("source")).is_dir();
        let directory = if is_file { place.parent().unwrap_or(root) } else { &place };
        make_below(root, directory)?;
        if is_file && !place.exists() {
            File::create(&place)
                .with_context(|| format!("cannot make the mount point `{}`", place.display()))?;
        }
    }
    Ok(())
}

/// Makes a directory below the root with all missing parents, each with its full mode despite the umask.
fn make_below(root: &Path, directory: &Path) -> Result<()> {
    if directory == root || directory.exists() {
        return Ok(());
    }
    make_below(root, directory.parent().unwrap_or(root))?;
    make_directory(directory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use dunnage_analysis::subject::{Access, Mount};

    use super::super::{Image, spec};
    use super::*;

    fn config() -> Value {
        spec::like_docker(&["--once".to_owned()], "box", "/dunnage/box")
    }

    fn bind(config: &mut Value, host: &Path, inside: &str, access: Access) {
        spec::add_bind(config, &Mount { host: host.into(), inside: inside.into(), access });
    }

    fn small(state: &Path) -> PathBuf {
        Image::small(b"x").unpack(state, &|| (), &|| true).unwrap()
    }

    /// Every path below the root, directories with a trailing slash.
    fn tree(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![root.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    found.push(format!("{name}/"));
                    open.push(path);
                } else {
                    found.push(name);
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn the_root_is_ready_for_every_mount() {
        let state = tempfile::tempdir().unwrap();
        let image = small(state.path());
        let mut config = config();
        let file = state.path().join("file");
        fs::write(&file, b"").unwrap();
        bind(&mut config, &file, "/run/the/file", Access::ReadOnly);
        bind(&mut config, state.path(), "/run/the/directory", Access::ReadWrite);
        bind(&mut config, state.path(), "/dev/shm/below", Access::ReadWrite);
        let bundle = Bundle::write(&state.path().join("bundle"), &image, &config).unwrap();
        assert_eq!(
            tree(&bundle.root()),
            ["dev/", "dunnage", "proc/", "run/", "run/the/", "run/the/directory/", "run/the/file", "sys/",]
        );
        let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(bundle.root().join("dunnage")), inode(image.join("dunnage")));
        let written = fs::read(bundle.directory().join("config.json")).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written["root"], json!({ "path": bundle.root(), "readonly": false }));
        assert_eq!(written["mounts"], config["mounts"]);
        assert_eq!(tree(&image), ["dunnage"]);
    }

    #[test]
    fn a_failed_bundle_leaves_nothing_and_a_present_one_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let image = small(state.path());
        let place = state.path().join("bundle");
        let mut bad = config();
        bind(&mut bad, Path::new("/"), "/run/../../outside", Access::ReadOnly);
        let error = Bundle::write(&place, &image, &bad).unwrap_err();
        assert!(format!("{error:#}").contains("/run/../../outside"), "{error:#}");
        assert!(!place.exists());

        let bundle = Bundle::write(&place, &image, &config()).unwrap();
        let error = Bundle::write(&place, &image, &config()).unwrap_err();
        assert!(format!("{error:#}").contains(place.to_str().unwrap()), "{error:#}");
        assert!(bundle.root().join("dunnage").exists());
    }
}
