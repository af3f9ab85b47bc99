//! What a container is given beside its image: files over it, places of the host bound into it, and the
//! layer of mount points that this and the container's own filesystems need.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dunnage_analysis::subject::Mount;

use super::Spec;
use super::pieces::Piece;

/// What a container is given beside its image.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Where its program starts; the root unless given.
    pub directory: Option<PathBuf>,
    /// Files of the host that lie over the image, each under its name in the root directory. Only with an
    /// overlay.
    pub files: Vec<(PathBuf, String)>,
    /// Places of the host that are bound into it: absolute paths there, and paths in the root without links on the way.
    pub binds: Vec<Mount>,
}

/// Mount points and files that the image lacks: a layer of their own under an overlay; else they are made in
/// the image, as runc and crun make them.
pub(super) fn mount_points(spec: &Spec) -> Result<Option<PathBuf>> {
    if !spec.pieces.has(Piece::Filesystems) {
        return Ok(None);
    }
    let lacks = |name: &&str| !spec.rootfs.join(name).is_dir();
    let missing: Vec<_> = ["proc", "dev", "sys"].into_iter().filter(lacks).collect();
    let missing_binds: Vec<_> =
        spec.additions.binds.iter().filter(|bind| is_missing(&spec.rootfs, &bind.inside)).collect();
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
        if std::fs::hard_link(file, &place).is_err() && !place.exists() {
            std::fs::copy(file, &place)
                .with_context(|| format!("cannot copy `{}` to `{}`", file.display(), place.display()))?;
        }
    }
    Ok(spec.pieces.has(Piece::Overlay).then_some(layer))
}

/// Below these the container's own filesystems are mounted, which have what they have.
fn is_missing(rootfs: &Path, inside: &Path) -> bool {
    let mounted = ["proc", "dev", "sys"].iter().any(|name| inside.starts_with(name));
    !mounted && std::fs::symlink_metadata(rootfs.join(inside)).is_err()
}

/// A file for a file and a directory for a directory; directories on the way keep the image's modes, which
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
            false => std::fs::create_dir(&place).and_then(|()| match spec.rootfs.join(&own).metadata() {
                Ok(facts) => std::fs::set_permissions(&place, facts.permissions()),
                Err(_) => Ok(()),
            }),
        };
        made.with_context(|| format!("cannot make the mount point `{}`", place.display()))?;
    }
    Ok(())
}
