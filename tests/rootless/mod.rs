//! Programs that root starts as another user, and podman as an ordinary user.

mod identity;
mod mapped;
mod podman;
mod runtimes;
pub mod user;
