//! Programs that root starts as somebody else, and what podman does as an ordinary user.

#[path = "../support/mod.rs"]
mod support;

mod identity;
