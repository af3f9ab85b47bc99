//! The test images `small` and `fat` in the three forms that the subjects need: an archive that every engine
//! loads, an unpacked root on disk, and a bundle for OCI runtimes.
//!
//! Everything here is made from the bytes of one executable, offline and reproducibly: the same
//! bytes give the same archive and the same digests on every machine of one architecture.
//!
//! Deliberately absent: engines (a subject loads the archive and asks for it by its reference),
//! registries, compression, images of other people, and the clean-up journal (the caller writes
//! down a directory before it has it made here).

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

/// Where the executable lies inside every image and root that is made here.
pub const EXECUTABLE: &str = "/dunnage";

/// The arguments that make the executable the probe. The image's entry point and a bundle's
/// process both begin with them.
pub const ENTRYPOINT: [&str; 2] = [EXECUTABLE, "probe"];

/// The search path that Docker gives to a container whose image names none. The image and the
/// bundle name it themselves, so that every subject hands the probe the same one.
pub const PATH_VARIABLE: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Mode of the executable and of every directory: readable by all, because a user namespace can
/// make the container's root somebody who does not own them.
const MODE: u32 = 0o755;
