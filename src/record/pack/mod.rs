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

use dunnage_analysis::record::kernel::HOST;
use serde::{Deserialize, Serialize};

pub use read::unpack;
pub(super) use read::{Unpacked, unpacked};
pub use words::{Kind, Replaced};
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
    removed: std::collections::BTreeMap<String, usize>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Listed {
    name: String,
    bytes: u64,
    sha256: String,
}
