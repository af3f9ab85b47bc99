//! The documented exit codes, and the errors that have their own.

use thiserror::Error;

/// Success.
pub const FINE: i32 = 0;
/// An error.
pub const ERROR: i32 = 1;
/// The command line was wrong.
pub const USAGE: i32 = 2;
/// A comparison found a regression.
pub const REGRESSION: i32 = 3;
/// Nothing could be measured.
pub const NOTHING: i32 = 4;
/// Interrupted; the samples so far are kept.
pub const INTERRUPTED: i32 = 5;
/// Measured, but a subject that you named, or that works here, has no values at all, lost more than 5 % of its rounds (at
/// least two) in one of its settings, or has too few for verdicts.
pub const INCOMPLETE: i32 = 6;

/// The exit codes, for `--help`.
pub const HELP: &str = "Exit codes: 0 success, 1 error, 2 usage error, 3 regression found by `compare`, \
4 nothing could be measured, 5 interrupted (samples kept), 6 measured, but some requested results are missing";

/// An error whose exit code is not [`ERROR`].
#[derive(Debug, Error)]
pub enum Special {
    /// The command line or an input asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// No subject works here.
    #[error("{0}")]
    Nothing(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

/// A usage error with this text.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Special::Usage(text.into()).into()
}

/// The user stopped it before anything was measured.
pub fn stopped_early() -> anyhow::Error {
    anyhow::Error::from(Special::Interrupted).context("stopped during the trials, so no sample was taken")
}

/// Nothing can be measured, for this reason.
pub fn nothing(text: impl Into<String>) -> anyhow::Error {
    Special::Nothing(text.into()).into()
}

/// The exit code of the first such error in the chain.
pub fn code_of(error: &anyhow::Error) -> i32 {
    match error.chain().find_map(|cause| cause.downcast_ref::<Special>()) {
        Some(Special::Usage(_)) => USAGE,
        Some(Special::Nothing(_)) => NOTHING,
        Some(Special::Interrupted) => INTERRUPTED,
        None => ERROR,
    }
}
