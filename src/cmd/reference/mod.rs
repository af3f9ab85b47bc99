//! `dunnage reference`: published results, with their sources, their faults and dunnage's counterparts.

mod document;

use std::path::Path;

use anyhow::Result;

use self::document::Collection;
use super::show::{self, Output, show};
use crate::exit::{self, usage};
use crate::reference::{self, Source};
use crate::report::text::{meant, quoted};

/// Runs the verb.
pub fn run(name: Option<&str>, format: &str) -> Result<i32> {
    show::known::<Collection>(format)?;
    let chosen = name.map(source_named).transpose()?;
    show(&Collection::of(chosen), format, Path::new("."), Output::default())?;
    Ok(exit::FINE)
}

fn source_named(name: &str) -> Result<&'static Source> {
    let unknown = || {
        let names = || reference::sources().iter().map(|one| one.name.as_str());
        let (meant, valid) = (meant(name, names()), quoted(names()));
        usage(format!("unknown source `{name}`\n\nhint: {meant}sources are {valid}"))
    };
    reference::find(name).ok_or_else(unknown)
}
