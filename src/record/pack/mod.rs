//! A pack: one compressed file with everything that a run needs to be analysed again, and nothing that tells
//! whose machine it was. A tar archive in gzip, so that anybody can look into one without dunnage.
//!
//! `clean` and `samples` name what is kept of the files of a run, `label` and `words` what is kept of subjects, commands
//! and texts; `proof` looks for what was missed, `write` puts the archive together, and `read` takes one apart without
//! trusting it.

mod clean;
mod label;
mod proof;
mod read;
mod samples;
mod vocabulary;
mod words;
mod write;

use std::collections::BTreeMap;

use crate::image::Summed;
use dunnage_analysis::record::kernel::HOST;
use serde::{Deserialize, Serialize};

pub use read::unpack;
pub(super) use read::unpacked;
pub use write::{Contents, Options, Present, look, write};

/// What a pack calls itself in its first entry.
const FORMAT_NAME: &str = "dunnage-pack";
/// The version of the archive's own form; a reader refuses newer ones. The files inside have their own.
pub const VERSION: u32 = 1;
/// The first entry of the archive.
const MANIFEST: &str = "pack.json";
/// The ending of packs that are not named.
pub const ENDING: &str = "dunnage";

/// The first entry: what the archive holds, and how much was taken out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// Always `dunnage-pack`.
    format: String,
    /// The version of the form.
    version: u32,
    /// The version of dunnage that packed.
    dunnage: String,
    /// The run.
    run: String,
    /// The other entries, in their order.
    files: Vec<Listed>,
    /// How many different texts of each kind were taken out, by the name of the kind; never the texts.
    removed: BTreeMap<String, usize>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// Its sum.
    sha256: String,
}

impl Listed {
    /// What has passed, under this name.
    fn of<T>(name: &str, summed: Summed<T>) -> Listed {
        let (digest, bytes) = summed.end();
        Listed { name: name.to_owned(), bytes, sha256: digest.hex() }
    }
}
