//! The system call filter of the floor and of runtimes started without an engine. It is the one that the
//! engine here hands to its runtime, so that dunnage's containers and the engine's do not differ in it. It is
//! read from the bundle of a container that is started for this purpose, once in a run and before anything is
//! measured. Without an engine it is the built-in one.
//!
//! Deliberately absent: what engines filter in their own containers, which they choose themselves.

use std::path::PathBuf;

use rustix::process::geteuid;
use serde_json::Value;

use super::context::Filter;
use super::engine::Engine;
use super::unavailable::remedy_for_docker;
use super::{RunContext, Spec, Subject, Unavailable, docker, on_path, podman};
use crate::image::Digest;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::sys::directory::{Access, Directory};
use crate::sys::process::Held;
use crate::sys::seccomp::{BUILT_IN, Profile, built_in};

/// Chooses the filter of a run when the first subject that needs it is prepared.
pub(super) fn choose(run: &RunContext) -> Result<(), Abort> {
    if run.filter.get().is_none() {
        let chosen = chosen(run)?;
        run.filter.get_or_init(|| chosen);
    }
    Ok(())
}

/// An engine's filter, else the built-in one. Its origin says why an engine's could not be read.
fn chosen(run: &RunContext) -> Result<Filter, Abort> {
    let mut failed = String::new();
    for find in [find_docker, find_podman] {
        let read = match find() {
            None => continue,
            Some(Err(why)) => Err(why.reason),
            Some(Ok((engine, version))) => match read(engine, run) {
                Err(Abort::Interrupted) => return Err(Abort::Interrupted),
                Err(Abort::Failed(failure)) => Err(failure.to_string()),
                Ok(oci) => understood(format!("{version}, from a bundle of its own{failed}"), oci),
            },
        };
        match read {
            Ok(filter) => return Ok(filter),
            Err(why) => failed = format!("{failed}; not an engine's: {why}"),
        }
    }
    understood(format!("built in: {BUILT_IN}{failed}"), built_in())
        .map_err(|why| Failure::environment(why).into())
}

fn understood(origin: String, oci: Value) -> Result<Filter, String> {
    let profile = Profile::from_oci(&oci).map_err(|strange| strange.to_string())?;
    let sha256 = Digest::of(oci.to_string().as_bytes()).hex();
    Ok(Filter { origin, sha256, oci, profile })
}

/// An installed engine with its version, or why it cannot be used.
type Found = Option<Result<(Engine, String), Unavailable>>;

fn plain(name: &str) -> Spec {
    Spec::plain(name).with(&[("net", "none"), ("log", "none")])
}

/// Docker, where its socket accepts a connection.
fn find_docker() -> Found {
    on_path("docker").filter(|_| remedy_for_docker(&docker::address(None)).is_none())?;
    Some(docker::find(&plain("docker")).map(|engine| {
        let server = engine.about.facts.notes.iter().find(|(name, _)| *name == "server");
        let version = format!("docker {}", server.map_or("", |(_, version)| version));
        (engine, version)
    }))
}

/// Podman. An ordinary user's leaves a process that holds the user namespace, so it is asked only where that runs already, as after
/// a look at a subject of podman.
fn find_podman() -> Found {
    on_path("podman")?;
    let user = geteuid().as_raw();
    if user != 0 && !holds_a_namespace(user) {
        return Some(Err(Unavailable::because(
            "podman would leave a process of this user, and none is there",
        )));
    }
    Some(podman::find(&plain("podman")).map(|engine| {
        let version = engine.about.facts.components.first().map(|one| one.version.clone());
        (engine, version.unwrap_or_default())
    }))
}

/// Whether the process that rootless podman leaves is there. Where its id is recorded depends on the version.
fn holds_a_namespace(user: u32) -> bool {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let others =
        [format!("/run/user/{user}"), format!("/tmp/podman-run-{user}"), format!("/tmp/storage-run-{user}")];
    let recorded = |place: PathBuf| {
        // In `/tmp`, another user could have made it.
        let own = Directory::open(&place.join("libpod/tmp")).ok()?;
        let said = std::io::read_to_string(own.open_own("pause.pid", Access::Reading).ok()?).ok()?;
        Held::of(said.trim().parse().ok()?).filter(|one| one.user == user)
    };
    runtime.into_iter().chain(others.map(PathBuf::from)).any(|place| recorded(place).is_some())
}

/// Starts a container, reads its bundle, and removes it.
fn read(mut engine: Engine, run: &RunContext) -> Result<Value, Abort> {
    let read = engine.prepare(run).and_then(|()| engine.bundle(run));
    let profile = read?.pointer("/linux/seccomp").cloned();
    let none =
        || Failure::new(FailureClass::Unsupported, format!("{} filters no system calls", engine.about.spec));
    Ok(profile.filter(Value::is_object).ok_or_else(none)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_that_is_built_in_is_understood() {
        let filter = understood("built in".into(), built_in()).unwrap();
        assert_eq!(filter.profile, Profile::from_oci(&filter.oci).unwrap());
        assert_eq!(filter.sha256.len(), 64);
        assert!(understood("odd".into(), serde_json::json!({"defaultAction": "SCMP_ACT_DANCE"})).is_err());
    }
}
