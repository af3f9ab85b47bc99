//! `dunnage sweep`: removes dunnage's leftovers of killed runs, and its images in engines.

use anyhow::Result;

use crate::cli::Swept;
use crate::subject::Broom;
use crate::{exit, session, sweep};

/// Runs the verb.
pub fn run(what: Swept, dry: bool) -> Result<i32> {
    let place = session::place_without_image()?;
    let broom = Broom { containers: what != Swept::Images, shared: what != Swept::Containers, dry };
    let told = sweep::everything(&place, broom)?;
    for line in &told {
        super::say(line)?;
    }
    if told.is_empty() {
        super::say(if dry { "nothing to remove" } else { "nothing was left to remove" })?;
    }
    let stuck = told.iter().any(|line| line.starts_with("could not"));
    Ok(if stuck { exit::ERROR } else { exit::FINE })
}
