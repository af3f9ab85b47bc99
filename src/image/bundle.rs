//! The bundle that OCI runtimes start: `config.json` as Docker would write it, beside a root.
//!
//! A runtime makes the mount points that it misses inside the root, and leaves them there. So
//! every bundle has a root of its own, made ready before the first start: the image's files (hard
//! links to the unpacked ones, else copies) and a mount point for each mount. Any number of
//! containers, one after the other or at once, share it, and none finds or leaves a change.
//!
//! Deliberately absent: starting anything, and what stands in `config.json` (see `spec.rs`).

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::rootfs::make_directory;

pub use super::spec::{
    Access, CpuQuota, DEFAULT_CAPABILITIES, IdRange, MASKED_PATHS, Mount, Namespace, READONLY_PATHS, Spec,
    UserNamespace,
};

/// A bundle on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    directory: PathBuf,
}

impl Bundle {
    /// Makes the directory, which must not be there yet, with `config.json` and a root like `image` in it.
    /// The caller removes it; what a failed call has made is removed here.
    pub fn write(directory: &Path, image: &Path, spec: &Spec) -> Result<Bundle> {
        let directory = std::path::absolute(directory)
            .with_context(|| format!("cannot make `{}` absolute", directory.display()))?;
        make_directory(&directory)?;
        let bundle = Bundle { directory };
        bundle.fill(image, spec).inspect_err(|_| {
            // The first error is the one to tell.
            let _ = fs::remove_dir_all(&bundle.directory);
        })?;
        Ok(bundle)
    }

    /// The same around a root that lies elsewhere and is the caller's: the runtime makes
    /// the mount points that it lacks.
    pub fn around(directory: &Path, root: &Path, spec: &Spec) -> Result<Bundle> {
        let directory = std::path::absolute(directory)
            .with_context(|| format!("cannot make `{}` absolute", directory.display()))?;
        make_directory(&directory)?;
        let bundle = Bundle { directory };
        bundle.configure(root, spec).inspect_err(|_| {
            // The first error is the one to tell.
            let _ = fs::remove_dir_all(&bundle.directory);
        })?;
        Ok(bundle)
    }

    /// The absolute path to give to `run --bundle`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The absolute path of the root. Containers see and share it.
    pub fn root(&self) -> PathBuf {
        self.directory.join("rootfs")
    }

    fn fill(&self, image: &Path, spec: &Spec) -> Result<()> {
        let root = self.root();
        make_directory(&root)?;
        link_tree(image, &root)?;
        make_mount_points(&root, &spec.mounts)?;
        self.configure(&root, spec)
    }

    fn configure(&self, root: &Path, spec: &Spec) -> Result<()> {
        let config = self.directory.join("config.json");
        let bytes = serde_json::to_vec(&spec.to_json(root))
            .with_context(|| format!("cannot put `{}` into JSON", config.display()))?;
        fs::write(&config, &bytes)
            .with_context(|| format!("cannot write {} bytes to `{}`", bytes.len(), config.display()))
    }
}

/// Directories are made, files linked. A hard link costs nothing and shares the page cache with the
/// other subjects; a copy does where a link cannot be had, as across filesystems or to somebody else's
/// file. A container that wrote through the link would be found out when the image is next unpacked.
fn link_tree(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("cannot list `{}`", from.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list `{}`", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            make_directory(&target)?;
            link_tree(&source, &target)?;
        } else if fs::hard_link(&source, &target).is_err() {
            fs::copy(&source, &target).with_context(|| {
                format!("cannot link or copy `{}` to `{}`", source.display(), target.display())
            })?;
        }
    }
    Ok(())
}

/// Makes what each mount covers, so that no runtime has to. A destination below an earlier one
/// lies on that filesystem and not in the root.
fn make_mount_points(root: &Path, mounts: &[Mount]) -> Result<()> {
    let mut earlier: Vec<&Path> = Vec::new();
    for mount in mounts {
        let destination = Path::new(&mount.destination);
        let plain = destination.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        ensure!(
            destination.is_absolute() && plain,
            "the mount point `{}` is not a plain absolute path",
            mount.destination
        );
        if earlier.iter().any(|above| destination.starts_with(above)) {
            continue;
        }
        earlier.push(destination);
        make_mount_point(root, destination, mount)?;
    }
    Ok(())
}

fn make_mount_point(root: &Path, destination: &Path, mount: &Mount) -> Result<()> {
    let mut place = root.to_owned();
    let mut parts = destination.components().skip(1).peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        if place.exists() {
            continue;
        }
        let is_file = mount.is_bind() && !Path::new(&mount.source).is_dir();
        if parts.peek().is_none() && is_file {
            File::create(&place)
                .with_context(|| format!("cannot make the mount point `{}`", place.display()))?;
        } else {
            make_directory(&place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use serde_json::Value;

    use super::super::{SmallImage, rootfs};
    use super::*;

    fn spec() -> Spec {
        Spec::like_docker(&["--once".to_owned()], "box", "/dunnage/box")
    }

    /// Every path below the root, directories with a slash at the end.
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
        let image = rootfs::unpack(&SmallImage::new(b"x"), state.path()).unwrap();
        let mut spec = spec();
        let file = state.path().join("file");
        fs::write(&file, b"").unwrap();
        let directory = state.path().to_str().unwrap();
        spec.mounts.push(Mount::bind(file.to_str().unwrap(), "/run/the/file", Access::ReadOnly));
        spec.mounts.push(Mount::bind(directory, "/run/the/directory", Access::ReadWrite));
        spec.mounts.push(Mount::bind(directory, "/dev/shm/below", Access::ReadWrite));
        let bundle = Bundle::write(&state.path().join("bundle"), image.root(), &spec).unwrap();
        assert_eq!(
            tree(&bundle.root()),
            ["dev/", "dunnage", "proc/", "run/", "run/the/", "run/the/directory/", "run/the/file", "sys/",]
        );
        let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(bundle.root().join("dunnage")), inode(image.executable()));
        let config = fs::read(bundle.directory().join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        assert_eq!(config, spec.to_json(&bundle.root()));
        assert_eq!(tree(image.root()), ["dunnage"]);
    }

    #[test]
    fn a_failed_bundle_leaves_nothing_and_a_present_one_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let image = rootfs::unpack(&SmallImage::new(b"x"), state.path()).unwrap();
        let place = state.path().join("bundle");
        let mut bad = spec();
        bad.mounts.push(Mount::bind("/", "/run/../../outside", Access::ReadOnly));
        let error = Bundle::write(&place, image.root(), &bad).unwrap_err();
        assert!(format!("{error:#}").contains("/run/../../outside"), "{error:#}");
        assert!(!place.exists());

        let bundle = Bundle::write(&place, image.root(), &spec()).unwrap();
        let error = Bundle::write(&place, image.root(), &spec()).unwrap_err();
        assert!(format!("{error:#}").contains(place.to_str().unwrap()), "{error:#}");
        assert!(bundle.root().join("dunnage").exists());
    }
}
