//! Seccomp filters: what they answer, worked out without loading them.
//!
//! - `interpret`: runs and checks programs in classic BPF.

mod action;
pub mod interpret;

pub use action::Action;
