//! `dunnage unpack`: turns a pack back into a run directory.

use std::path::Path;

use anyhow::{Context, Result};

use super::tell;
use crate::exit::{self, usage};
use crate::record::{self, pack};
use crate::report::text::in_shell;

/// Runs the verb. The unpacked run is read once, so that a run that cannot be analysed is reported immediately.
pub fn run(file: &Path, output: Option<&Path>) -> Result<i32> {
    if file.is_dir() {
        return Err(usage(format!("`{}` is a directory, not a pack", file.display())));
    }
    let own = file.file_stem().context("a pack has a name")?;
    let directory = output.unwrap_or(Path::new(own));
    pack::unpack(file, directory)?;
    let shown = in_shell([directory.to_string_lossy()]);
    let run =
        record::load(directory).with_context(|| format!("`{shown}` was unpacked, but cannot be analysed"))?;
    tell(&format!(
        "unpacked run {} into `{shown}`\nshow it with `dunnage report {shown}`",
        crate::report::text::clean(&run.run)
    ));
    Ok(exit::FINE)
}
