//! Podman through its command line or its API: what is specific to an engine without a daemon.

mod private;

use std::path::PathBuf;

use serde_json::Value;

use super::api;
use super::component::{Client, components, program};
use super::confined::Confined;
use super::drivers::Storage;
use super::engine::{self, Engine};
use super::login::Login;
use super::subordinate::Lists;
use super::{Broom, Cause, Facts, Kind, Place, Spec, Subject, Unavailable, kinds, on_path};
use crate::sys::limits;

/// The kind `podman`.
pub static KIND: Kind = Kind {
    declared: &kinds::PODMAN,
    as_installed: &["podman", "podman+runc"],
    equalised: &["podman:log=none,net=none", "podman+runc:log=none,net=none"],
    build,
    sweep,
};

/// Podman as asked for: with a private store if its own uses another storage driver.
fn build(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    match engine::build(spec, place, find, over_api) {
        Err(why) if why.cause == Cause::OtherStorage => private::build(spec, place, why),
        built => built,
    }
}

/// Podman's own service, with dunnage as the client.
fn over_api(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    if spec.get("rootless").is_some() {
        return Err(Unavailable::because(
            "`client=api` runs podman as the user who starts dunnage, and `rootless` names another one",
        )
        .with_remedy("leave out `rootless` and start dunnage as that user, or choose `client=cli`"));
    }
    api::of_program(find(spec)?, place, limits_to_ask_for(spec))
}

/// Sweeps the current user's podman, and as root that of every user whose storage has an image from dunnage.
/// The storage of a deleted user is gone too.
fn sweep(place: &Place, broom: Broom) -> Vec<String> {
    let swept = |spec: &Spec| engine::sweep(spec, &client(spec)?, place, broom);
    let mut told = swept(&Spec::plain("podman")).unwrap_or_default();
    let users = std::fs::read_dir(engine::users_with_images(&place.state)).into_iter().flatten().flatten();
    let users = users.filter_map(|entry| entry.file_name().into_string().ok());
    for user in users.filter(|user| Login::exists(user)) {
        let spec = Spec::plain("podman").with(&[("rootless", &user)]);
        let failed = |why: Unavailable| vec![format!("cannot list the images of `{user}`: {}", why.reason)];
        told.extend(swept(&spec).unwrap_or_else(failed));
    }
    told
}

/// Finds podman and asks for its facts.
pub fn find(spec: &Spec) -> Result<Engine, Unavailable> {
    find_with(spec, &[])
}

/// The client of a specification.
fn client(spec: &Spec) -> Result<Client, Unavailable> {
    let mut client = Client::of(program(spec, "podman", "install the package `podman`")?);
    client.login = spec.get("rootless").map(Login::of).transpose()?.flatten();
    Ok(client)
}

/// The same with these options before every verb.
fn find_with(spec: &Spec, options: &[String]) -> Result<Engine, Unavailable> {
    let mut client = client(spec)?;
    if let Some(runtime) = &spec.runtime {
        if on_path(runtime).is_none() {
            let remedy = format!("install the package `{runtime}`");
            return Err(Unavailable::absent(&format!("the runtime `{runtime}` is "), runtime, &remedy));
        }
        client.global.extend(["--runtime".to_owned(), runtime.clone()]);
    }
    client.global.extend_from_slice(options);
    let (info, words) = info(&client)?;
    let storage = Storage::of(spec);
    if let Some(asked) = storage.filter(|asked| asked.name != driver(&info)) {
        return Err(Unavailable::other_storage(format!(
            "podman's store uses the storage driver `{}`, not `{}`",
            driver(&info),
            asked.name
        )));
    }
    if let Some(user) = spec.get("rootless") {
        check_mapping(user, &info, &words)?;
    }
    let text = |pointer: &str| info.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let runtime_path = Some(text("/host/ociRuntime/path")).filter(|path| !path.is_empty()).map(PathBuf::from);

    let backend = text("/host/networkBackend");
    let parts = [
        ("client", Some(client.path.clone())),
        ("runtime", runtime_path.clone()),
        ("monitor", Some(PathBuf::from(text("/host/conmon/path")))),
        ("network", on_path(&backend).or_else(|| library_program(&backend))),
    ];
    let parts = parts.map(|(role, path)| (role, path.filter(|path| path.is_file())));
    let components = components(client.login.as_ref(), parts)?;
    let notes = [
        ("storage driver", text("/store/graphDriverName")),
        ("cgroup manager", text("/host/cgroupManager")),
        ("network backend", backend),
        ("graph root", text("/store/graphRoot")),
        ("rootless", info.pointer("/host/security/rootless").map(Value::to_string).unwrap_or_default()),
    ];
    let own =
        storage.map(|_| ("store", if options.is_empty() { "the user's" } else { "private" }.to_owned()));
    let notes = notes
        .into_iter()
        .chain(own)
        .chain(client.login.as_ref().map(Login::notes).into_iter().flatten())
        .collect();
    let driver = text("/store/graphDriverName");
    let filter = (info.pointer("/host/security/seccompEnabled") == Some(&Value::Bool(true))).then_some(2);
    let root: &[_] = if driver == "overlay" { &["overlay", "fuse.fuse-overlayfs", "fuse"] } else { &[] };
    let facts = Facts { components, runtime: Some(text("/host/ociRuntime/name")), notes };
    let outside = client.login.as_ref().map(Login::user);
    Ok(Engine {
        about: Engine::description(spec, &client, facts, filter, root),
        always: if client.login.is_some() { Vec::new() } else { as_options(&limits_to_ask_for(spec)) },
        client,
        daemons: Ok(Vec::new()),
        runtime: runtime_path,
        image: None,
        outside,
    })
}

/// The storage driver of podman's store, as the key `storage` calls it.
fn driver(info: &Value) -> &str {
    let driver = info.pointer("/store/graphDriverName").and_then(Value::as_str).unwrap_or_default();
    let helped = info.pointer("/store/graphOptions/overlay.mount_program").is_some();
    if driver == "overlay" && helped { "fuse-overlayfs" } else { driver }
}

/// The answer of `podman info`, and its complaints on standard error.
pub(super) fn info(client: &Client) -> Result<(Value, String), Unavailable> {
    let (answer, words) =
        client.words(&["info", "--format", "json"]).map_err(|why| match std::env::var("HOME") {
            Ok(home) if client.login.is_none() => with_remedy_for_home(why, &home),
            _ => why,
        })?;
    let info = serde_json::from_str(&answer).map_err(|error| {
        Unavailable::because(format!("cannot parse the answer of `podman info`: {error}"))
    })?;
    Ok((info, words))
}

/// Adds a remedy where podman cannot read the home directory, where it looks for its settings.
fn with_remedy_for_home(why: Unavailable, home: &str) -> Unavailable {
    let settings = why.reason.contains(&format!("{home}/.config/containers"));
    let closed = ["permission denied", "not a directory"].iter().any(|words| why.reason.contains(words));
    if (settings && closed) || why.reason.contains(&format!("cannot resolve {home}:")) {
        return why.with_remedy(format!(
            "podman cannot use the home directory `{home}`: set `HOME` to a directory that belongs to this user"
        ));
    }
    why
}

/// Refuses a user without subordinate ids: most images need more than one id, and a rootless engine that is
/// not set up is not what was asked for.
fn check_mapping(user: &str, info: &Value, words: &str) -> Result<(), Unavailable> {
    let sizes = |kind: &str| -> u64 {
        let ranges = info.pointer(&format!("/host/idMappings/{kind}")).and_then(Value::as_array);
        ranges.into_iter().flatten().filter_map(|range| range["size"].as_u64()).sum()
    };
    if sizes("uidmap") > 1 && sizes("gidmap") > 1 {
        return Ok(());
    }
    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
    Err(Unavailable::because(format!(
        "podman has no subordinate user and group ids for `{user}`, so it maps only the user's own{said}"
    ))
    .with_remedy(format!("{}; then, as that user, `podman system migrate`", Lists::read().remedy(user))))
}

/// Network backends are installed with podman's other helpers, not on the search path.
fn library_program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/lib/podman", "/usr/libexec/podman", "/usr/local/libexec/podman"];
    places.iter().map(|place| PathBuf::from(place).join(name)).find(|path| path.is_file())
}

/// Podman raises the limits of open files and processes by default, which fails for root without
/// CAP_SYS_RESOURCE. There dunnage requests the limits in force instead; for processes at most the kernel's
/// number of ids, to which podman lowers its own limit before it calls the runtime. A limit that the subject asks for itself is left
/// out.
pub fn limits_to_ask_for(spec: &Spec) -> Vec<(&'static str, u64)> {
    let is_root = crate::sys::raw::user_and_group().0 == 0;
    if !is_root || limits::may_be_raised() {
        return Vec::new();
    }
    let asked = Confined::of(spec).ulimits;
    let mut all =
        vec![("nofile", limits::open_files()), ("nproc", limits::processes().min(limits::process_ids()))];
    all.retain(|(name, _)| asked.iter().all(|one| one.name() != *name));
    all
}

fn as_options(limits: &[(&str, u64)]) -> Vec<String> {
    let option = |(name, limit): &(&str, u64)| ["--ulimit".to_owned(), format!("{name}={limit}:{limit}")];
    limits.iter().flat_map(option).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_home_that_podman_cannot_use_has_a_remedy_and_other_trouble_in_it_has_none() {
        let remedy = |reason: &str| with_remedy_for_home(Unavailable::because(reason), "/root").remedy;
        for unusable in [
            "msg=\"stat /root/.config/containers/storage.conf: permission denied\"",
            "lstat /root/.config/containers/registries.conf.d: not a directory",
            "cannot resolve /root: lstat /root: no such file or directory",
        ] {
            assert!(remedy(unusable).is_some_and(|remedy| remedy.contains("set `HOME`")), "{unusable}");
        }
        for other in [
            "/root/.config/containers/storage.conf: toml: line 1: expected a key",
            "open /etc/containers/policy.json: permission denied",
        ] {
            assert_eq!(remedy(other), None, "{other}");
        }
    }

    #[test]
    fn a_user_who_maps_only_themselves_is_refused_with_podmans_words() {
        let one = json!([{"container_id": 0, "host_id": 1003, "size": 1}]);
        let both = json!([{"size": 1}, {"size": 65536}]);
        let info = |maps: &Value| json!({"host": {"idMappings": {"uidmap": maps, "gidmap": maps}}});
        assert_eq!(check_mapping("ann", &info(&both), ""), Ok(()));
        let why = check_mapping("ann", &info(&one), "no subuid ranges found").unwrap_err();
        assert!(why.reason.ends_with("only the user's own: no subuid ranges found"), "{why:?}");
        assert!(why.remedy.unwrap().contains("usermod --add-subuids "));
    }
}
