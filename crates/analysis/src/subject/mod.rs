//! Subjects as plain data: how one is written, the kinds and their keys, the layers between each and the
//! kernel, and what one supports. Deliberately absent: finding and starting them.

pub mod defaults;
pub mod inherited;
pub mod instruments;
pub mod kinds;
pub mod limits;
pub mod room;
pub mod spec;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use spec::{Key, Spec, SpecError, Values};

/// What is between the command and the kernel.
#[derive(Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
#[derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A program inside that stays and serves others over a network, if only its own.
    Network,
    /// An address of its own that a process on the host reaches.
    Address,
    /// Containers on one network that reach each other by address.
    Joined,
    /// Ports inside that are published at addresses of the host.
    Ports,
    /// The same at its IPv6 addresses.
    Ports6,
    /// A program inside that asks a resolver on the host.
    Resolver,
    /// Networks that have a resolver, which knows containers by their names.
    Names,
    /// Named volumes.
    Volumes,
    /// Images with layers made by dunnage.
    Images,
    /// Containers in which an engine can be started.
    Nests,
    /// The ways of nesting of an engine with a daemon.
    NestsByDaemon,
    /// The ways of nesting of an engine without one, most of which use a user namespace inside.
    NestsByUsers,
    /// Those of nesting in a user's engine.
    NestsInUsers,
}

impl Need {
    /// All of them.
    pub const ALL: &[Need] = <Need as strum::VariantArray>::VARIANTS;
    /// What everything that makes containers supports.
    pub const CONTAINER: [Need; 5] = [Need::Launch, Need::Lifecycle, Need::Exec, Need::Work, Need::Network];

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
            Need::Network => "no program that stays can serve in it",
            Need::Address => "it has no address of its own that the host reaches",
            Need::Joined => "its containers are not joined by a network",
            Need::Ports => "it does not publish ports",
            Need::Ports6 => "it does not publish ports at IPv6 addresses",
            Need::Resolver => "it does not reach a resolver on the host",
            Need::Names => "its networks have no resolver",
            Need::Volumes => "it has no volumes",
            Need::Images => "it has no image with layers",
            Need::Nests => "engines are started in containers of docker and podman, by root",
            Need::NestsByDaemon => "it is a way of engines with a daemon",
            Need::NestsByUsers => "it is a way of engines without a daemon",
            Need::NestsInUsers => "it is a way of a user's engine",
        }
    }
}

/// Where the client of a network experiment is, as seen from the server in a subject's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Path {
    /// In the same network namespace.
    Inside,
    /// On the host, and connects to the container's own address.
    Bridge,
    /// On the host, and connects to a port published at its IPv4 loopback address.
    Published,
    /// The same at an address that others reach the host by.
    PublishedHost,
    /// The same at its IPv6 loopback address.
    Published6,
    /// In another container on the same network.
    Peer,
}

impl Path {
    /// The word used in settings.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it needs of a subject in addition to a server.
    pub const fn need(self) -> Need {
        match self {
            Path::Inside => Need::Network,
            Path::Bridge => Need::Address,
            Path::Published | Path::PublishedHost => Need::Ports,
            Path::Published6 => Need::Ports6,
            Path::Peer => Need::Joined,
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
    /// Everything, and it belongs to the user outside that the container's program is, once that is ready.
    Given,
    /// Nothing may be changed.
    ReadOnly,
}

impl Access {
    /// As an option of mount(8).
    pub const fn option(self) -> &'static str {
        match self {
            Access::ReadWrite | Access::Given => "rw",
            Access::ReadOnly => "ro",
        }
    }
}
