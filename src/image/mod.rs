//! The test images `small` and `fat` in the three forms that subjects need: an archive that every engine
//! loads, an unpacked root on disk, and a bundle for OCI runtimes.
//!
//! Everything here is made from one executable, offline and reproducibly: the same executable gives the same
//! archive and digests on every machine of one architecture.
//!
//! Deliberately absent: engines (a subject loads the archive and refers to it by name), registries,
//! compression, other images, and the clean-up journal (the caller records a directory before it is made
//! here).

pub mod archive;
pub mod bundle;
mod digest;
pub mod export;
pub mod fat;
mod layered;
mod rootfs;
pub mod spec;

pub use digest::{Digest, Summed};
pub use layered::Image;

/// The path of the executable in every image and root that is made here.
pub const EXECUTABLE: &str = "/dunnage";

/// Whether an image has one of dunnage's names; its label alone proves nothing, since an image can have any.
pub fn is_ours(reference: &str) -> bool {
    reference.strip_prefix("dunnage.local/").is_some_and(|rest| !rest.is_empty())
}

/// The arguments that run the executable as the probe. The image's entry point and a bundle's process both
/// begin with them.
pub const ENTRYPOINT: [&str; 2] = [EXECUTABLE, "probe"];

/// The search path that Docker sets for an image without one. The image and the bundle set it explicitly, so
/// that every subject gives the probe the same one.
pub const PATH_VARIABLE: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Mode of the executable and of every directory: readable by all, because in a user namespace the
/// container's root may not be their owner.
const MODE: u32 = 0o755;
