//! The documented exit codes, and the errors that have one of their own.

use thiserror::Error;

/// All is well.
pub const FINE: i32 = 0;
/// An error.
pub const ERROR: i32 = 1;
/// The command line was wrong.
pub const USAGE: i32 = 2;
/// A comparison found a regression.
pub const REGRESSION: i32 = 3;
/// Nothing could be measured.
pub const NOTHING: i32 = 4;
/// Interrupted; the samples taken so far are kept.
pub const INTERRUPTED: i32 = 5;
/// Measured, but a subject that was asked for by name, or found working, gave nothing, or too little for verdicts.
pub const INCOMPLETE: i32 = 6;

/// What `--help` says about exit codes.
pub const HELP: &str = "Exit codes: 0 fine, 1 error, 2 wrong usage, 3 a comparison found a regression, \
4 nothing could be measured, 5 interrupted (samples kept), 6 measured, but part of what was asked for is missing";

/// An error whose exit code is not [`ERROR`].
#[derive(Debug, Error)]
pub enum Special {
    /// The person asked for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// No subject works here.
    #[error("{0}")]
    Nothing(String),
    /// The person stopped it.
    #[error("interrupted")]
    Interrupted,
}

/// What was asked for does not exist or cannot be had.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Special::Usage(text.into()).into()
}

/// Nothing can be measured, for this reason.
pub fn nothing(text: impl Into<String>) -> anyhow::Error {
    Special::Nothing(text.into()).into()
}

/// The exit code of an error, found anywhere in its chain.
pub fn code_of(error: &anyhow::Error) -> i32 {
    match error.chain().find_map(|cause| cause.downcast_ref::<Special>()) {
        Some(Special::Usage(_)) => USAGE,
        Some(Special::Nothing(_)) => NOTHING,
        Some(Special::Interrupted) => INTERRUPTED,
        None => ERROR,
    }
}
