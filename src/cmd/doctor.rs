//! `dunnage doctor`: what can be measured here, what would distort it, and how to mend it.

use anyhow::Result;

use crate::exit;

/// Runs the verb.
pub fn run() -> Result<i32> {
    Ok(exit::FINE)
}
