//! A pack: one compressed file with everything to analyse a run again, and nothing that identifies the machine or its users.
//! It is a gzipped tar archive, so that it can be inspected without dunnage.
//!
//! The type of each field declares what becomes of its text, and `clean` obeys. `head` and `samples` apply it to a run's files; `label`,
//! `facts` and `words` define what is kept of subjects, settings and commands, of facts, and of texts.
//! `proof` searches for anything missed, `write` creates the archive, and `read` unpacks one without trusting it.

mod clean;
mod facts;
mod head;
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
pub use write::{Contents, Options, look, write};

/// The format's name in the first entry.
const FORMAT_NAME: &str = "dunnage-pack";
/// The version of the archive's format; a reader refuses newer ones. The files inside have their own versions.
pub const VERSION: u32 = 1;
/// The first entry of the archive.
const MANIFEST: &str = "pack.json";
/// The default file extension of packs.
pub const ENDING: &str = "dunnage";

/// The first entry: what the archive contains, and how much was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// Always `dunnage-pack`.
    format: String,
    /// The version of the format.
    version: u32,
    /// The version of dunnage that wrote the pack.
    dunnage: String,
    /// The run's id.
    run: String,
    /// The other entries, in order.
    files: Vec<Listed>,
    /// The number of different texts removed, by kind; never the texts.
    removed: BTreeMap<String, usize>,
}

/// An entry of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 digest.
    sha256: String,
}

impl Listed {
    /// An entry of this name for the summed bytes.
    fn of<T>(name: &str, summed: Summed<T>) -> Listed {
        let (digest, bytes) = summed.end();
        Listed { name: name.to_owned(), bytes, sha256: digest.hex() }
    }
}
