//! Programs that root starts as somebody else, and what podman does as an ordinary user.

#[path = "../support/dunnage.rs"]
mod dunnage;
#[path = "../support/mod.rs"]
mod support;

mod identity;
mod podman;
mod user;
