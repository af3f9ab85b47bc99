//! What a container gets in addition to its image: files over it, paths of the host bound into it, and the
//! layer of mount points that these and the container's own filesystems need.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dunnage_analysis::subject::Mount;

use super::Spec;
use super::pieces::Piece;
use crate::sys::descriptors::link_or_copy;

/// What a container gets in addition to its image.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// The working directory of its program; the root by default.
    pub directory: Option<PathBuf>,
    /// Files of the host that appear over the image, each with its name in the root directory. Only with an
    /// overlay.
    pub files: Vec<(PathBuf, String)>,
    /// Paths of the host that are bound into it: absolute paths there, and paths in the root without links on
    /// the way.
    pub binds: Vec<Mount>,
}

impl Spec {
    /// The layers of the image, uppermost first.
    pub(super) fn layers(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.rootfs).chain(&self.below).map(PathBuf::as_path)
    }

    /// A path in the image, in the uppermost layer that has it.
    fn in_image(&self, inside: &Path) -> Option<PathBuf> {
        self.layers().map(|layer| layer.join(inside)).find(|path| path.symlink_metadata().is_ok())
    }
}

/// Mount points and files that the image lacks: a separate layer under an overlay; otherwise they are made in
/// the image, as runc and crun do.
pub(super) fn mount_points(spec: &Spec) -> Result<Option<PathBuf>> {
    if !spec.pieces.has(Piece::Filesystems) {
        return Ok(None);
    }
    let lacks = |name: &&str| !spec.layers().any(|layer| layer.join(name).is_dir());
    let missing: Vec<_> = ["proc", "dev", "sys"].into_iter().filter(lacks).collect();
    let missing_binds: Vec<_> =
        spec.additions.binds.iter().filter(|bind| is_missing(spec, &bind.inside)).collect();
    if missing.is_empty() && missing_binds.is_empty() && spec.additions.files.is_empty() {
        return Ok(None);
    }
    let layer = match spec.pieces.has(Piece::Overlay) {
        true => spec.scratch.join(".mount-points"),
        false => spec.rootfs.clone(),
    };
    let make = |path: &Path| {
        std::fs::create_dir_all(path).with_context(|| format!("cannot make `{}`", path.display()))
    };
    make(&layer)?;
    for name in missing {
        make(&layer.join(name))?;
    }
    for bind in missing_binds {
        make_mount_point(spec, &layer, bind)?;
    }
    for (file, name) in &spec.additions.files {
        let place = layer.join(name);
        if !place.exists() {
            link_or_copy(file, &place)
                .with_context(|| format!("cannot copy `{}` to `{}`", file.display(), place.display()))?;
        }
    }
    Ok(spec.pieces.has(Piece::Overlay).then_some(layer))
}

/// The container's own filesystems are mounted on these, so nothing can be made below them.
fn is_missing(spec: &Spec, inside: &Path) -> bool {
    let mounted = ["proc", "dev", "sys"].iter().any(|name| inside.starts_with(name));
    !mounted && spec.in_image(inside).is_none()
}

/// A file for a file and a directory for a directory. Directories on the way keep the image's modes, which
/// those of the upper layer would hide.
fn make_mount_point(spec: &Spec, layer: &Path, bind: &Mount) -> Result<()> {
    let mut own = PathBuf::new();
    let mut parts = bind.inside.components().peekable();
    while let Some(part) = parts.next() {
        own.push(part);
        let place = layer.join(&own);
        if place.exists() {
            continue;
        }
        let made = match parts.peek().is_none() && !bind.host.is_dir() {
            true => std::fs::File::create(&place).map(drop),
            false => std::fs::create_dir(&place).and_then(|()| {
                let facts = spec.in_image(&own).and_then(|path| path.metadata().ok());
                facts.map_or(Ok(()), |facts| std::fs::set_permissions(&place, facts.permissions()))
            }),
        };
        made.with_context(|| format!("cannot make the mount point `{}`", place.display()))?;
    }
    Ok(())
}
