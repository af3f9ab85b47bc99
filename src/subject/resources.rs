//! What lies with subjects and outlives a process: containers, networks, volumes, images. What each subject makes it says in
//! `makes`; how a record becomes the subject that can remove it stands here. A subject in a private daemon needs none of
//! this after a kill: with the daemon goes all that it holds.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{RunContext, Spec, Subject, kind_of};
use crate::image::{Image, fat};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::resource::{Found, Goes, Held, Kind, Look, Record, Scope};
use crate::sys::bridge::Bridge;
use crate::sys::{clock, process};

/// All of them.
pub(crate) static KINDS: &[&Kind] = &[&CONTAINER, &NETWORK, &VOLUME, &IMAGE];

/// Something that a subject can make beside containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A network that its containers can join.
    Network,
    /// A named volume.
    Volume,
    /// An image of layers of ours.
    Image,
}

impl Offer {
    /// The word used in messages and records.
    pub fn name(self) -> &'static str {
        self.kind().name
    }

    pub(super) fn kind(self) -> &'static Kind {
        match self {
            Offer::Network => &NETWORK,
            Offer::Volume => &VOLUME,
            Offer::Image => &IMAGE,
        }
    }
}

/// What is asked of a subject beside containers.
#[derive(Debug, Clone, Copy)]
pub enum Wish<'a> {
    /// A network.
    Network,
    /// A named volume.
    Volume,
    /// An image around this executable, with files of these paths and sizes in each layer, the lowest first.
    Image(&'a [u8], &'a [Vec<(String, u64)>]),
}

impl Wish<'_> {
    /// What it is a wish for.
    pub fn offer(self) -> Offer {
        match self {
            Wish::Network => Offer::Network,
            Wish::Volume => Offer::Volume,
            Wish::Image(..) => Offer::Image,
        }
    }
}

/// What came of a wish.
#[derive(Debug)]
pub enum Made {
    /// Something that the engine knows by this name.
    Named(String),
    /// A network.
    Network(Joint),
    /// An image as the directory `rootfs` in this one.
    Directory(PathBuf),
}

impl Made {
    /// What a container is told of the network that it is to join, where this is one.
    pub fn joint(&self) -> Option<Joint> {
        match self {
            Made::Network(joint) => Some(joint.clone()),
            Made::Named(_) | Made::Directory(_) => None,
        }
    }
}

/// A network, as containers know it that join it.
#[derive(Debug, Clone)]
pub struct Joint {
    /// Its name.
    pub(super) name: String,
    /// The bridge, where nobody else keeps it: it goes with the last container.
    pub(super) bridge: Option<Arc<Bridge>>,
}

/// A container, or whatever stands in its place.
static CONTAINER: Kind = Kind {
    name: "container",
    goes: Goes::AfterClients,
    shown,
    look,
    undo: |record, scope| {
        let built = subject(record, scope)?;
        for client in built.about().facts.components.iter().take(1) {
            process::kill_clients(client.path.as_ref(), &record.id);
        }
        match built.remove(&record.id) {
            Err(failure) if failure.class == FailureClass::Unsupported => Ok(Found::No),
            removed => removed.map_err(|failure| failure.to_string()),
        }
    },
};

static NETWORK: Kind = made("network", |record, scope| unmake(Offer::Network, record, scope));
static VOLUME: Kind = made("volume", |record, scope| unmake(Offer::Volume, record, scope));
static IMAGE: Kind = made("image", |record, scope| unmake(Offer::Image, record, scope));

const fn made(name: &'static str, undo: fn(&Record, &Scope<'_>) -> Result<Found, String>) -> Kind {
    Kind { name, goes: Goes::AfterClients, shown, look, undo }
}

fn unmake(offer: Offer, record: &Record, scope: &Scope<'_>) -> Result<Found, String> {
    subject(record, scope)?.unmake(offer, &record.id, scope.run).map_err(|failure| failure.to_string())
}

/// A container of this name that is about to be made by the subject with this specification.
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

fn spec(record: &Record) -> Result<Spec, String> {
    Spec::parse(record.attribute("subject")?).map_err(|error| error.to_string())
}

fn look(record: &Record, scope: &Scope<'_>) -> Result<Look, String> {
    if !["dunnage-", "dunnage.local/"].iter().any(|prefix| record.id.starts_with(prefix)) {
        return Ok(Look::Foreign("its name is not one of ours".into()));
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
    (kind.build)(&spec, scope.place).map_err(|why| why.reason)
}

/// An image that no other run has, not even one with the same layers.
pub(super) fn layered<'a>(
    executable: &'a [u8],
    layers: &[Vec<(String, u64)>],
    run: &RunContext,
) -> Image<'a> {
    let tag = format!("{}-{}", run.id, run.owner.next_number());
    Image::of_layers(executable, &tag, layers)
}

/// Writes an image as an archive, has it loaded for this subject, and removes the archive. How long that takes is told of
/// the fat one.
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
            std::fs::create_dir(directory)?;
            let mut file = std::io::BufWriter::new(std::fs::File::create(&archive)?);
            image.write_archive(&mut file, &|| !run.interrupts.pending())?;
            std::io::Write::flush(&mut file)
        };
        write()
            .map_err(|error| format!("cannot write the image to `{}`: {error}", archive.display()))
            .and_then(|()| load(&archive))
            .or_environment(format_args!("{} does not take the image", spec.name))?;
        Ok(())
    });
    drop(loaded?);
    if is_fat {
        (run.tell)(&format!("made the image {} in {}", fat::NAME, clock::now().since(began)));
    }
    Ok(())
}

/// What a subject says that does not make such things.
pub(super) fn not_made(spec: &Spec, offer: Offer) -> Failure {
    Failure::new(FailureClass::Unsupported, format!("{spec} makes no {}", offer.name()))
}

/// An image without an engine: its root on disk.
pub(super) fn unpacked(
    executable: &[u8],
    layers: &[Vec<(String, u64)>],
    run: &RunContext,
) -> Result<Held<Made>, Abort> {
    let image = layered(executable, layers, run);
    run.owner.directory(|place| {
        let made = image
            .check_space(&run.workspace())
            .and_then(|()| image.write_root(place, &|| !run.interrupts.pending()));
        made.map_err(|error| Failure::environment(format!("{error:#}")))?;
        Ok(Made::Directory(place.to_owned()))
    })
}
