//! Podman with a storage driver that its own store does not use: the same podman with a private store of the
//! run. Networks are shared with podman's own store, so what its containers can reach is the same.

use std::path::PathBuf;

use super::{find, find_with, limits_to_ask_for};
use crate::outcome::Abort;
use crate::resource::store::{MOUNT_PROGRAM, Shared, store};
use crate::resource::tool;
use crate::subject::component::Client;
use crate::subject::drivers::Storage;
use crate::subject::engine::Engine;
use crate::subject::private::{Begun, Private, copy_image};
use crate::subject::treatment::Expected;
use crate::subject::{Place, RunContext, Spec, Subject, Unavailable, api};
use crate::sys::raw;

/// The subject; `why` says why podman's own store does not serve.
pub(super) fn build(spec: &Spec, _: &Place, why: Unavailable) -> Result<Box<dyn Subject>, Unavailable> {
    if spec.get("rootless").is_some() || raw::user_and_group().0 != 0 {
        return Err(why.with_remedy(
            "dunnage makes private stores for root only: choose the driver in the user's \
             `~/.config/containers/storage.conf`, or measure root's podman",
        ));
    }
    let Some(storage) = Storage::of(spec) else { return Err(why) };
    if storage.name == MOUNT_PROGRAM {
        tool::find(MOUNT_PROGRAM, MOUNT_PROGRAM)
            .map_err(|failure| Unavailable::not_installed(failure.reason))?;
    }
    let mut users = find(&without_storage(spec))?;
    let shared = shared(&users)?;
    users.about.spec = spec.clone();
    users.about.expected = Expected { storage: Some(storage), root: &[], ..users.about.expected };
    let spec = spec.clone();
    let begin = move |run: &RunContext| begin(&spec, storage.name, &shared, run);
    Ok(Box::new(Private::new(users.about, Box::new(begin))))
}

fn without_storage(spec: &Spec) -> Spec {
    let mut plain = spec.clone();
    plain.keys.retain(|(key, _)| key != "storage");
    plain
}

/// What a private store shares with this podman's own.
fn shared(users: &Engine) -> Result<Shared, Unavailable> {
    let run = users.client.ask(&["info", "--format", "{{.Store.RunRoot}}"])?;
    let notes = &users.about.facts.notes;
    let backend = notes.iter().find(|(name, _)| *name == "network backend");
    Ok(Shared {
        networks: PathBuf::from(run.trim()).join("networks"),
        backend: backend.map(|(_, backend)| backend.clone()).unwrap_or_default(),
    })
}

/// Makes the store, and finds podman with it.
fn begin(spec: &Spec, driver: &str, shared: &Shared, run: &RunContext) -> Result<Begun, Abort> {
    let store = store(&run.owner, driver, shared)?;
    let engine = find_with(spec, &store)?;
    let users = Client { global: Vec::new(), ..engine.client.clone() };
    copy_image(spec, &users, &engine.client, run)?;
    let subject: Box<dyn Subject> = match spec.get("client") {
        Some("api") => api::of_program(engine, &run.place, limits_to_ask_for(spec))?,
        _ => Box::new(engine),
    };
    let notes = vec![("graph root", "in the state directory".to_owned())];
    Ok(Begun { subject, holds: vec![Box::new(store)], notes })
}
