//! The kinds of resources that lie with subjects: how a record of one becomes the subject that can
//! remove it. A subject in a private daemon needs none of this: with the daemon goes all that it holds.

use std::fmt::Display;
use std::path::Path;

use super::{Spec, Subject, kind_of};
use crate::outcome::FailureClass;
use crate::resource::{Goes, Kind, Look, Record, Scope};
use crate::sys::process;

/// All of them.
pub(crate) static KINDS: &[&Kind] = &[&CONTAINER, &NETWORK];

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

/// A container of this name that is about to be made by the subject with this specification.
pub fn container(subject: &impl Display, name: &str) -> Record {
    Record::new(&CONTAINER, name).with("subject", subject.to_string())
}

fn shown(record: &Record) -> String {
    format!("`{}` ({})", record.id, record.attribute("subject").unwrap_or("unknown"))
}

fn spec(record: &Record) -> Result<Spec, String> {
    Spec::parse(record.attribute("subject")?).map_err(|error| error.to_string())
}

fn look(record: &Record, scope: &Scope<'_>) -> Result<Look, String> {
    if !record.id.starts_with("dunnage-") {
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
