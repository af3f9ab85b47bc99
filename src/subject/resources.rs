//! What lies with subjects and outlives a process: containers, networks, volumes, images. What each subject makes it says in
//! `makes`; how a record becomes the subject that can remove it stands here. A subject in a private daemon needs none of
//! this after a kill: with the daemon goes all that it holds.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::{RunContext, Spec, Subject, kind_of};
use crate::image::LayeredImage;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::{self, Goes, Held, Kind, Look, Record, Scope};
use crate::sys::process;

/// All of them.
pub(crate) static KINDS: &[&Kind] = &[&CONTAINER, &NETWORK, &VOLUME, &IMAGE];

/// Something that a subject can make beside containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// A named volume.
    Volume,
    /// An image of layers of ours.
    Image,
}

impl Offer {
    /// The word used in messages and records.
    pub const fn name(self) -> &'static str {
        match self {
            Offer::Volume => "volume",
            Offer::Image => "image",
        }
    }

    pub(super) fn kind(self) -> &'static Kind {
        match self {
            Offer::Volume => &VOLUME,
            Offer::Image => &IMAGE,
        }
    }
}

/// What is asked of a subject beside containers.
#[derive(Debug, Clone, Copy)]
pub enum Wish<'a> {
    /// A named volume.
    Volume,
    /// An image around this executable, with files of these paths and sizes in each layer, the lowest first.
    Image(&'a [u8], &'a [Vec<(String, u64)>]),
}

impl Wish<'_> {
    /// What it is a wish for.
    pub fn offer(self) -> Offer {
        match self {
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
    /// An image as the directory `rootfs` in this one.
    Directory(PathBuf),
}

/// A container, or whatever stands in its place.
static CONTAINER: Kind = Kind {
    name: "container",
    goes: Goes::AfterClients,
    shown,
    look,
    undo: |record, scope| {
        let built = subject(record, scope)?;
        for client in built.facts().components.iter().take(1) {
            process::kill_clients(&client.path, &record.id);
        }
        match built.remove(&record.id) {
            Err(failure) if failure.class != FailureClass::Unsupported => Err(failure.to_string()),
            _ => Ok(()),
        }
    },
};

/// A network of an engine's, or of the floor.
static NETWORK: Kind = Kind {
    name: "network",
    goes: Goes::AfterClients,
    shown,
    look,
    undo: |record, scope| {
        subject(record, scope)?.remove_network(&record.id).map_err(|failure| failure.to_string())
    },
};

/// A network of this name that is about to be made by the subject with this specification.
pub(super) fn network(subject: &impl Display, name: &str) -> Record {
    Record::new(&NETWORK, name).with("subject", subject.to_string())
}

static VOLUME: Kind = made("volume", |record, scope| unmake(Offer::Volume, record, scope));
static IMAGE: Kind = made("image", |record, scope| unmake(Offer::Image, record, scope));

const fn made(name: &'static str, undo: fn(&Record, &Scope<'_>) -> Result<(), String>) -> Kind {
    Kind { name, goes: Goes::AfterClients, shown, look, undo }
}

fn unmake(offer: Offer, record: &Record, scope: &Scope<'_>) -> Result<(), String> {
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
) -> LayeredImage<'a> {
    let tag = format!("{}-{}", run.owner.run(), run.owner.next_number());
    LayeredImage::of_layers(executable, &tag, layers)
}

/// Writes an image as an archive, has it loaded, and removes the archive.
pub(super) fn with_layers(
    image: &LayeredImage<'_>,
    run: &RunContext,
    load: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), Abort> {
    let archive = run.workspace().join(format!("{}.tar", run.next_name()));
    let written = (|| {
        std::fs::create_dir_all(run.workspace())?;
        let mut file = std::io::BufWriter::new(std::fs::File::create_new(&archive)?);
        image.write_archive(&mut file, &|| !run.interrupts.pending())?;
        std::io::Write::flush(&mut file)
    })();
    let loaded = written
        .map_err(|error| format!("cannot write the image to `{}`: {error}", archive.display()))
        .and_then(|()| load(&archive));
    let _ = std::fs::remove_file(&archive);
    Ok(loaded.map_err(|reason| Failure::new(FailureClass::Environment, reason))?)
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
    let place = run.workspace().join(run.next_name());
    let record = resource::directory(&place);
    run.owner.make(&resource::directory::KIND, record, || {
        let cannot = |error: String| Failure::new(FailureClass::Environment, error);
        std::fs::create_dir_all(run.workspace()).map_err(|error| cannot(error.to_string()))?;
        image.check_space(&run.workspace()).map_err(|error| cannot(format!("{error:#}")))?;
        let written = image.write_root(&place, &|| !run.interrupts.pending());
        written.map_err(|error| cannot(format!("{error:#}")))?;
        Ok(Made::Directory(place.clone()))
    })
}
