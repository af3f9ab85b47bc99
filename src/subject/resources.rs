//! Resources of subjects that outlive a process: containers, networks, volumes, images. `makes` says which
//! ones a subject makes; the code that turns a record into the subject that can remove it is here. A subject
//! in a private daemon needs none of this after a kill: everything disappears with the daemon.

use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::login::Login;
use super::{RunContext, Spec, Subject, kind_of};
use crate::image::{self, Image, fat};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::report::text::in_shell;
use crate::resource::{Found, Goes, Held, Keeps, Kind, Look, Record, Scope, is_name_of};
use crate::sys::bridge::Bridge;
use crate::sys::remains::{self, Tokens};
use crate::sys::{clock, place, process};

/// All of them.
pub(crate) static KINDS: &[&Kind] = &[&CONTAINER, &NETWORK, &VOLUME, &IMAGE];

/// Something that a subject can make other than containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A network that its containers can join.
    Network,
    /// A named volume.
    Volume,
    /// An image with layers made by dunnage.
    Image,
}

impl ObjectKind {
    /// The word used in messages and records.
    pub fn name(self) -> &'static str {
        self.resource().name
    }

    pub(super) fn resource(self) -> &'static Kind {
        match self {
            ObjectKind::Network => &NETWORK,
            ObjectKind::Volume => &VOLUME,
            ObjectKind::Image => &IMAGE,
        }
    }
}

/// A request to a subject for something other than a container.
#[derive(Debug, Clone, Copy)]
pub enum ObjectSpec<'a> {
    /// A network.
    Network,
    /// A named volume.
    Volume,
    /// An image with this executable, and files with these paths and sizes in each layer, lowest first.
    Image(&'a [u8], &'a [Vec<(String, u64)>]),
}

impl ObjectSpec<'_> {
    /// What kind of object it is.
    pub fn kind(self) -> ObjectKind {
        match self {
            ObjectSpec::Network => ObjectKind::Network,
            ObjectSpec::Volume => ObjectKind::Volume,
            ObjectSpec::Image(..) => ObjectKind::Image,
        }
    }
}

/// What a subject made.
#[derive(Debug, Clone)]
pub enum Object {
    /// A volume, or an image, that the engine knows by this name.
    Named(String),
    /// A network.
    Network(Attachment),
    /// An image without an engine, as one directory for each of its layers, lowest first. All are in the same
    /// directory, under short names.
    Layers(Vec<PathBuf>),
}

impl Object {
    /// What a container needs to know to join it, if it is a network.
    pub fn attachment(&self) -> Option<Attachment> {
        match self {
            Object::Network(attachment) => Some(attachment.clone()),
            Object::Named(_) | Object::Layers(_) => None,
        }
    }

    /// Its name, if an engine knows it by one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Object::Named(name) => Some(name),
            Object::Network(_) | Object::Layers(_) => None,
        }
    }

    /// The directories of its layers, lowest first, if it is an image without an engine.
    pub(super) fn layers(&self) -> Option<&[PathBuf]> {
        match self {
            Object::Layers(all) => Some(all),
            Object::Named(_) | Object::Network(_) => None,
        }
    }
}

/// A network, as containers that join it know it.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Its name.
    pub(super) name: String,
    /// The bridge, where no engine keeps it: it disappears with the last container.
    pub(super) bridge: Option<Arc<Bridge>>,
    end: End,
}

/// Where a process joins a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// At a port of its own, as a container does.
    Port,
    /// At the bridge itself, as the host does.
    Bridge,
}

impl Attachment {
    pub(super) fn new(name: String, bridge: Option<Bridge>) -> Attachment {
        Attachment { name, bridge: bridge.map(Arc::new), end: End::Port }
    }

    /// The same network for a process that stands for the host: it joins at the bridge and not at a port. The
    /// host itself is already in a network that an engine keeps.
    pub fn as_its_host(self) -> Attachment {
        Attachment { end: End::Bridge, ..self }
    }

    /// The network namespace to start in, where no engine provides it.
    pub(super) fn namespace(&self) -> Result<Option<OwnedFd>, Failure> {
        let own = self.bridge.as_ref().map(|bridge| match self.end {
            End::Port => bridge.port(),
            End::Bridge => bridge.host(),
        });
        own.transpose().or_environment("cannot join a network")
    }
}

/// The name of the kind of containers. None of them depends on another.
pub const CONTAINERS: &str = "container";

/// A container, or a subject's substitute for one.
static CONTAINER: Kind = Kind {
    name: CONTAINERS,
    goes: Goes::AfterClients,
    keeps: Keeps::Process,
    shown,
    look,
    undo: |record, scope| {
        let removed = subject(record, scope).and_then(|built| {
            for client in built.about().facts.components.iter().take(1) {
                let user = built.about().spec.get("rootless").and_then(|name| Login::of(name).ok().flatten());
                let user = user.map(|login| login.user());
                process::kill_clients(client.path.as_ref(), &record.id, user);
            }
            match built.remove(&record.id) {
                Err(failure) if failure.class == FailureClass::Unsupported => Ok(Found::No),
                removed => removed.map_err(|failure| failure.to_string()),
            }
        });
        match build_of(record) {
            Some(build) if removed != Ok(Found::Yes) => unless_running(record, &build),
            _ => removed,
        }
    },
};

/// The build of its program that the record names.
fn build_of(record: &Record) -> Option<String> {
    Spec::parse(record.attribute("subject").ok()?).ok()?.get("bin").map(str::to_owned)
}

/// A container of another build than the one on the search path, which that one does not know. A record's program is never
/// started, since another user could have written the record or replaced the program: what runs is reported.
fn unless_running(record: &Record, build: &str) -> Result<Found, String> {
    let tokens = Tokens::new([record.id.clone()]).map_err(|error| error.to_string())?;
    let left = remains::find(&tokens).map_err(|error| error.to_string())?;
    // Any user's process can have the name among its arguments.
    let is_possible = |item: &&remains::Item| {
        item.kind != remains::Kind::Process || item.pid().is_some_and(process::is_ours_or_roots)
    };
    match left.iter().find(is_possible) {
        None => Ok(Found::No),
        Some(left) => Err(format!(
            "{left} is there, and dunnage starts no program that a record names: if you trust it, run `{} delete --force {}`",
            in_shell([build]),
            record.id
        )),
    }
}

static NETWORK: Kind = made("network", |record, scope| unmake(ObjectKind::Network, record, scope));
static VOLUME: Kind = made("volume", |record, scope| unmake(ObjectKind::Volume, record, scope));
static IMAGE: Kind = made("image", |record, scope| unmake(ObjectKind::Image, record, scope));

const fn made(name: &'static str, undo: fn(&Record, &Scope<'_>) -> Result<Found, String>) -> Kind {
    Kind { name, goes: Goes::AfterClients, keeps: Keeps::Crash, shown, look, undo }
}

fn unmake(object: ObjectKind, record: &Record, scope: &Scope<'_>) -> Result<Found, String> {
    subject(record, scope)?.unmake(object, &record.id, scope.run).map_err(|failure| failure.to_string())
}

/// The record of a container with this name that this subject is about to make.
pub fn container(subject: &impl Display, name: &str) -> Record {
    of_subject(&CONTAINER, subject, name)
}

pub(super) fn of_subject(kind: &Kind, subject: &impl Display, name: &str) -> Record {
    Record::new(kind, name).with("subject", subject.to_string())
}

fn shown(record: &Record) -> String {
    let subject = record.attribute("subject").unwrap_or("unknown");
    match record.kind.as_str() {
        "container" => format!("`{}` ({subject})", record.id),
        kind => format!("the {kind} `{}` ({subject})", record.id),
    }
}

/// The subject of a record with programs of this machine's own search path, and only on this machine.
fn spec(record: &Record) -> Result<Spec, String> {
    let spec = Spec::parse(record.attribute("subject")?).map_err(|error| error.to_string())?;
    match spec.get("host").filter(|host| !host.starts_with("unix://")) {
        Some(host) => {
            Err(format!("it is at `{host}`, and dunnage connects to no address that a record names"))
        }
        None => Ok(spec.without("bin")),
    }
}

fn look(record: &Record, scope: &Scope<'_>) -> Result<Look, String> {
    let is_image = record.kind == IMAGE.name && image::is_ours(&record.id);
    if !is_image && !is_name_of(scope.run, &record.id) {
        return Ok(Look::Foreign("its name is not one of dunnage's".into()));
    }
    let spec = spec(record)?;
    let private = |address: &str| {
        let socket = Path::new(address.strip_prefix("unix://").unwrap_or(address));
        scope.holds(socket) && !socket.exists()
    };
    Ok(if spec.get("host").is_some_and(private) { Look::Gone } else { Look::Ours })
}

fn subject(record: &Record, scope: &Scope<'_>) -> Result<Box<dyn Subject>, String> {
    let spec = spec(record)?;
    let kind = kind_of(&spec).map_err(|error| error.to_string())?;
    (kind.build)(&spec, scope.place).map_err(|why| {
        let why = why.with_known_remedy();
        let remedy = why.remedy.map(|remedy| format!(" ({remedy})")).unwrap_or_default();
        format!("{}: {}{remedy}", spec.name, why.reason)
    })
}

/// An image of this run alone, even if another run has one with the same layers.
pub(super) fn layered<'a>(
    executable: &'a [u8],
    layers: &[Vec<(String, u64)>],
    run: &RunContext,
) -> Image<'a> {
    let tag = format!("{}-{}", run.id, run.owner.next_number());
    Image::of_layers(executable, &tag, layers)
}

/// Writes an image as an archive, has this subject load it, and removes the archive. For the image `fat` it
/// reports how long that took.
pub(super) fn load_image(
    image: &Image<'_>,
    spec: &Spec,
    run: &RunContext,
    load: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), Abort> {
    let began = clock::now();
    let is_fat = fat::is_named(spec.get("image")) && image.name == fat::NAME;
    if is_fat {
        (run.tell)(&fat::announcement(image, &spec.to_string()));
    }
    let loaded = run.owner.directory(|directory| {
        let archive = directory.join("image.tar");
        let write = || {
            place::make(directory)?;
            let mut file = std::io::BufWriter::new(std::fs::File::create(&archive)?);
            image.write_archive(&mut file, &|| !run.interrupts.pending())?;
            std::io::Write::flush(&mut file)
        };
        write()
            .map_err(|error| format!("cannot write the image to `{}`: {error}", archive.display()))
            .and_then(|()| load(&archive))
            .or_environment(format_args!("{} cannot load the image", spec.name))?;
        Ok(())
    });
    drop(loaded?);
    if is_fat {
        (run.tell)(&format!("made the image {} in {}", fat::NAME, clock::now().since(began)));
    }
    Ok(())
}

/// The failure of a subject that does not make such things.
pub(super) fn not_made(spec: &Spec, object: ObjectKind) -> Failure {
    Failure::new(FailureClass::Unsupported, format!("{spec} cannot make {}s", object.name()))
}

/// An image without an engine: its layers on disk.
pub(super) fn unpacked(
    executable: &[u8],
    layers: &[Vec<(String, u64)>],
    run: &RunContext,
) -> Result<Held<Object>, Abort> {
    let image = layered(executable, layers, run);
    run.owner.directory(|place| {
        let made = image
            .check_space(&run.workspace())
            .and_then(|()| image.write_layers(place, &|| !run.interrupts.pending()));
        Ok(Object::Layers(made.map_err(|error| Failure::environment(format!("{error:#}")))?))
    })
}
