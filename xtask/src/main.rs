//! Chores of the repository: `cargo xtask test`.
fn main() {}
