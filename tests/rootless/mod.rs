//! Programs that root starts as another user, and podman as an ordinary user.

mod identity;
mod mapped;
mod nested;
mod podman;
mod runtimes;
pub mod user;
