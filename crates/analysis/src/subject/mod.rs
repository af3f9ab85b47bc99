//! Subjects as plain data: how one is written, which kinds there are and which keys they understand, how much
//! lies between each and the kernel, and what one can offer. Deliberately absent: finding and starting them.

pub mod kinds;
pub mod spec;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use spec::{Key, Spec, SpecError, Values};

/// How much lies between the command and the kernel.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Layer {
    /// A process on the host.
    Bare,
    /// A container made of bare system calls.
    Floor,
    /// An OCI runtime.
    Runtime,
    /// An engine, which calls a runtime.
    Engine,
    /// Not known: a command that somebody else measured.
    #[strum(serialize = "")]
    None,
}

impl Layer {
    /// The word used in tables and files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What an experiment needs of a subject beyond being found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Need {
    /// Starts that end by themselves.
    Launch,
    /// A container made, started, stopped and removed by verbs of their own.
    Lifecycle,
    /// A place that runs and can be entered.
    Exec,
    /// A container that is made of pieces, each of which can be left out.
    Pieces,
    /// A program inside that works for a while and says what came of it.
    Work,
    /// A program inside that serves, and that others reach over a network.
    Network,
}

impl Need {
    /// All of them.
    pub const ALL: [Need; 6] =
        [Need::Launch, Need::Lifecycle, Need::Exec, Need::Pieces, Need::Work, Need::Network];
    /// What whoever makes containers can do with them as a whole.
    pub const CONTAINER: [Need; 4] = [Need::Launch, Need::Lifecycle, Need::Exec, Need::Work];
    /// The same of whoever joins them by networks, too.
    pub const JOINED: [Need; 5] = [Need::Launch, Need::Lifecycle, Need::Exec, Need::Work, Need::Network];

    /// The word used in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Why a subject without it has no cells.
    pub const fn lacking(self) -> &'static str {
        match self {
            Need::Launch => "it starts nothing",
            Need::Lifecycle => "it has no container that is created, started, stopped and removed apart",
            Need::Exec => "nothing stays running in it that could be entered",
            Need::Pieces => "it cannot be taken apart",
            Need::Work => "nothing works in it",
            Need::Network => "nothing in it can be reached over a network",
        }
    }
}

/// A place of the host that is bound into the container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mount {
    /// Its absolute path on the host.
    pub host: PathBuf,
    /// The absolute path inside.
    pub inside: PathBuf,
    /// What may be done with it.
    pub access: Access,
}

/// What may be done with a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Everything.
    ReadWrite,
    /// Nothing may be changed.
    ReadOnly,
}

impl Access {
    /// As an option of mount(8).
    pub const fn option(self) -> &'static str {
        match self {
            Access::ReadWrite => "rw",
            Access::ReadOnly => "ro",
        }
    }
}
