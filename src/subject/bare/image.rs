//! The arguments that make a bare probe enter the root of an image, and the mount points that it needs there.

use std::path::Path;

use crate::outcome::{Failure, OrEnvironment};
use crate::probe::INSIDE;
use crate::subject::roots::{self, Root};
use crate::subject::{Access, Mount};

/// The arguments that make the probe enter this root of the image first: the working directory, and the
/// mounts with their targets, which are made here.
pub(super) fn inside_words(image: &Root, root: &Path, mounts: &[Mount]) -> Result<Vec<String>, Failure> {
    let host = |path: &str, access| Mount { host: path.into(), inside: path.into(), access };
    let of_host = [
        host("/proc", Access::ReadWrite),
        // These directories are the host's and stay as they are; the filesystems mounted below them are the
        // kernel's.
        host("/dev", Access::ReadOnly),
        host("/sys", Access::ReadOnly),
    ];
    let all = of_host.iter().chain(mounts);
    let mut words = vec![
        INSIDE.to_owned(),
        root.display().to_string(),
        image.directory().to_owned(),
        (of_host.len() + mounts.len()).to_string(),
    ];
    for mount in all {
        let target = root.join(roots::inside(root, mount)?);
        make_target(mount, &target)
            .or_environment(format_args!("cannot make the mount point `{}`", target.display()))?;
        let access = mount.access.option().to_owned();
        words.extend([mount.host.display().to_string(), target.display().to_string(), access]);
    }
    Ok(words)
}

fn make_target(mount: &Mount, target: &Path) -> std::io::Result<()> {
    if target.symlink_metadata().is_ok() {
        return Ok(());
    }
    match (mount.host.is_dir(), target.parent()) {
        (true, _) => std::fs::create_dir_all(target),
        (false, Some(above)) => {
            std::fs::create_dir_all(above).and_then(|()| std::fs::File::create(target).map(drop))
        }
        (false, None) => Ok(()),
    }
}
