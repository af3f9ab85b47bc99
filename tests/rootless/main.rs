//! Programs that root starts as another user, and podman as an ordinary user.

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/left.rs"]
mod left;
#[path = "../support/mod.rs"]
mod support;

mod identity;
mod mapped;
mod podman;
mod user;
