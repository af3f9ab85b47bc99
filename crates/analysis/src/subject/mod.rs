//! Subjects as plain data: how one is written, the kinds and their keys, the layers between each and the
//! kernel, and what one supports. Deliberately absent: finding and starting them.

pub mod kinds;
pub mod spec;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use spec::{Key, Spec, SpecError, Values};

/// What is between the command and the kernel.
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
    /// Unknown: a command that someone else measured.
    #[strum(serialize = "")]
    None,
}

impl Layer {
    /// The word used in tables and files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What an experiment needs a subject to support, beyond being found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Need {
    /// Launches that end on their own.
    Launch,
    /// A container that is created, started, stopped and removed by separate verbs.
    Lifecycle,
    /// A container that keeps running and can be entered.
    Exec,
    /// A container that is made of pieces, each of which can be left out.
    Pieces,
    /// A program inside that works for a while and reports results.
    Work,
    /// A program inside that serves others over a network.
    Network,
}

impl Need {
    /// All of them.
    pub const ALL: [Need; 6] =
        [Need::Launch, Need::Lifecycle, Need::Exec, Need::Pieces, Need::Work, Need::Network];
    /// What everything that makes containers supports.
    pub const CONTAINER: [Need; 4] = [Need::Launch, Need::Lifecycle, Need::Exec, Need::Work];
    /// The same for what also joins them by networks.
    pub const JOINED: [Need; 5] = [Need::Launch, Need::Lifecycle, Need::Exec, Need::Work, Need::Network];

    /// The word used in files.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Why a subject without it has no cells.
    pub const fn lacking(self) -> &'static str {
        match self {
            Need::Launch => "it does not start anything",
            Need::Lifecycle => "it has no container that is created, started, stopped and removed separately",
            Need::Exec => "it has no running container to enter",
            Need::Pieces => "it has no pieces that can be left out",
            Need::Work => "no work can run in it",
            Need::Network => "it cannot be reached over a network",
        }
    }
}

/// A path of the host that is mounted into the container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mount {
    /// Its absolute path on the host.
    pub host: PathBuf,
    /// The absolute path inside.
    pub inside: PathBuf,
    /// The access to it.
    pub access: Access,
}

/// The access to a mount.
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
