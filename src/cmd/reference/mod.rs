//! `dunnage reference`: what others published, with its sources, its faults and what of ours is the same.

mod document;

use std::path::Path;

use anyhow::Result;

use self::document::Collection;
use super::show::{self, Output, show};
use crate::exit::{self, usage};
use crate::reference::{self, Source};
use crate::report::text::quoted;

/// Runs the verb.
pub fn run(name: Option<&str>, format: &str) -> Result<i32> {
    show::known::<Collection>(format)?;
    let chosen = name.map(source_named).transpose()?;
    show(&Collection::of(chosen), format, Path::new("."), Output::default())?;
    Ok(exit::FINE)
}

fn source_named(name: &str) -> Result<&'static Source> {
    let unknown = || {
        let names = quoted(reference::sources().iter().map(|one| &one.name));
        usage(format!("there is no source `{name}`\n\nhint: sources are {names}"))
    };
    reference::find(name).ok_or_else(unknown)
}
