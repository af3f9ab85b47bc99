//! Docker with a storage driver, or with mapped users, that the user's daemon does not have: a private daemon
//! with them, and otherwise set up as the user's, as far as that says how it is. The user's daemon is only asked.
//!
//! Users are mapped to the subordinate ids of a user who has some; docker's own `default` would make a user.
//!
//! A private daemon has a network namespace of its own, with a bridge of its own. So its containers reach
//! each other but not the host, and it does not offer what needs that.

use std::any::Any;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{DEFAULT_RUNTIME, client, daemons, driver, find, is_remapped, over_api};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::resource::daemon::{Daemon, Engine as Program, Setup, set_up};
use crate::resource::filesystem::{Mounted, TYPES, filesystem};
use crate::resource::{Held, tool};
use crate::subject::component::{Client, components, numbers};
use crate::subject::drivers::{CONTAINERD, Storage};
use crate::subject::engine::{self, Engine};
use crate::subject::login::Login;
use crate::subject::private::{Begun, Private, copy_image};
use crate::subject::subordinate::Lists;
use crate::subject::{Description, Facts, Need, RunContext, Spec, Subject, Unavailable, on_path};
use crate::sys::bounds::{Bounds, Refused};
use crate::sys::{filesystem as disk, raw};

/// The most bytes of a filesystem in a file, which occupy space only as they are written.
const MOST: u64 = 64 << 30;
/// The first version whose `daemon.json` says whether to use the containerd image store.
const CHOOSES_STORE: (u32, u32) = (24, 0);

/// The driver where the user's daemon does not say which one it uses.
const USUAL_DRIVER: &str = "overlay2";

/// What a private daemon is asked for.
#[derive(Debug, Clone)]
struct Asked {
    /// The driver that is asked for, or else that of the user's daemon.
    storage: &'static Storage,
    /// To whom users inside are mapped.
    remapped_to: Option<Remapped>,
}

/// The user to whose subordinate ids users inside are mapped.
#[derive(Debug, Clone)]
struct Remapped {
    user: String,
    /// The number of the user's group.
    group: u32,
    /// The group that is root's inside: docker wants to see that it can reach the data root, and looks at no list.
    root: u32,
}

impl Asked {
    fn of(spec: &Spec, users: Option<&Value>) -> Result<Asked, Unavailable> {
        let usual = users.map_or(USUAL_DRIVER, driver);
        let storage = Storage::of(spec).or_else(|| Storage::named("docker", usual)).ok_or_else(|| {
            Unavailable::because(format!(
                "dunnage starts no private daemon with the storage driver `{usual}`"
            ))
            .with_remedy("choose another one with `storage`")
        })?;
        let remapped_to = is_remapped(spec).then(|| a_user(&Lists::read())).transpose()?;
        Ok(Asked { storage, remapped_to })
    }

    /// The same in words.
    fn described(&self) -> String {
        let users = if self.remapped_to.is_some() { " and `userns-remap`" } else { "" };
        format!("the storage driver `{}`{users}", self.storage.name)
    }
}

/// The first user with subordinate ids to whom users can be mapped: a user who can become one of these ids owns files of the container,
/// and some of the daemon's. So it is a user as whom no one logs in, and no other user has the ids.
fn a_user(lists: &Lists) -> Result<Remapped, Unavailable> {
    let suited = |user: &&str| {
        // Docker turns a remapping to root off.
        let is_closed = Login::is_closed(user) && lists.are_its_own(user);
        Login::ids(user).filter(|_| is_closed)
    };
    let found = lists.users().find_map(|user| {
        let ((_, group), root) = (suited(&user)?, lists.first_group(user)?);
        Some(Remapped { user: user.to_owned(), group, root })
    });
    found.ok_or_else(|| {
        let make = "`useradd --system --no-create-home --shell /usr/sbin/nologin dunnage-remap`";
        let remedy = format!("make one: {make} and {}", lists.remedy("dunnage-remap"));
        Unavailable::because(
            "`userns=remap` needs a user other than root, as whom no one can log in, with 65536 subordinate ids in `/etc/subuid` and in \
             `/etc/subgid` that no other user has: a user with these ids could change what is in the container",
        )
        .with_remedy(remedy)
    })
}

/// The subject, if such a private daemon can be started here. `users` is what the user's daemon says of itself.
pub(super) fn build(spec: &Spec, users: Option<&Value>) -> Result<Box<dyn Subject>, Unavailable> {
    let asked = Asked::of(spec, users)?;
    let version = check(spec, &asked)?;
    let runtimes = runtimes(spec, users)?;
    let default = users.and_then(|info| info["DefaultRuntime"].as_str()).unwrap_or(DEFAULT_RUNTIME);
    let configuration = configuration(&asked, version, users, &runtimes, default);
    let facts = Facts {
        components: components(None, [("daemon", Some(program("dockerd", "docker.io")?))])?,
        runtime: Some(spec.runtime.clone().unwrap_or_else(|| default.to_owned())),
        notes: vec![("storage driver", asked.storage.name.to_owned()), ("daemon", "private".to_owned())],
    };
    let client = client(spec).unwrap_or_else(|_| Client::of("docker"));
    let about = Description { offers: offers(), ..Engine::description(spec, &client, facts, None, &[]) };
    let spec = spec.clone();
    let containerd = users.and_then(|info| containers_parent(&spec, info));
    let begin = move |run: &RunContext| begin(&spec, &asked, &configuration, &client, containerd, run);
    Ok(Box::new(Private::new(about, Box::new(begin))))
}

/// What its containers can do: nothing that needs a way to the host.
fn offers() -> Vec<Need> {
    [&Need::CONTAINER[..], &[Need::Volumes, Need::Images]].concat()
}

/// Checks what can be known without starting it, and returns the daemon's version.
fn check(spec: &Spec, asked: &Asked) -> Result<Option<(u32, u32)>, Unavailable> {
    if raw::user_and_group().0 != 0 {
        return Err(Unavailable::because(format!(
            "the daemon does not use {}, and a private daemon with it needs root",
            asked.described()
        ))
        .with_remedy("start dunnage as root"));
    }
    if spec.get("net") == Some("host") {
        return Err(Unavailable::because(
            "a private daemon has a network namespace of its own, so `net=host` is not the host's",
        )
        .with_remedy("leave out `net=host`, or choose what the user's daemon has"));
    }
    let dockerd = program("dockerd", "docker.io")?;
    let version = numbers(&Client::of(dockerd).version()?);
    asked.storage.check_version(version)?;
    match asked.storage.name {
        "btrfs" => drop(program("mkfs.btrfs", "btrfs-progs")?),
        "fuse-overlayfs" => drop(program("fuse-overlayfs", "fuse-overlayfs")?),
        "devicemapper" => {
            return Err(Unavailable::because(
                "dunnage starts no private daemon with `devicemapper`, which makes a pool of block devices; docker \
                 deprecated it in version 18.09 and dropped it in version 25.0",
            ));
        }
        _ => {}
    }
    Ok(version)
}

fn program(name: &str, package: &str) -> Result<PathBuf, Unavailable> {
    tool::find(name, package).map_err(|failure| Unavailable::not_installed(failure.reason))
}

/// The runtimes of the user's daemon, and the one that is asked for.
fn runtimes(spec: &Spec, users: Option<&Value>) -> Result<Map<String, Value>, Unavailable> {
    let known = users.and_then(|info| info["Runtimes"].as_object()).into_iter().flatten();
    // The daemon's own, which it refuses to be given.
    let own = |name: &str| name == DEFAULT_RUNTIME || name.starts_with("io.containerd.");
    let mut all: Map<String, Value> =
        known.filter(|(name, _)| !own(name)).map(|(name, how)| (name.clone(), set_up_as(how))).collect();
    let asked = spec.runtime.as_deref().filter(|name| !own(name) && !all.contains_key(*name));
    if let Some(name) = asked {
        let path = on_path(name).ok_or_else(|| {
            let remedy = format!("install the package `{name}`");
            Unavailable::absent(&format!("the runtime `{name}` is "), name, &remedy)
        })?;
        all.insert(name.to_owned(), json!({ "path": path.to_string_lossy() }));
    }
    Ok(all)
}

/// A runtime as `daemon.json` has it, from what a daemon says of it.
fn set_up_as(how: &Value) -> Value {
    let parts = ["path", "runtimeArgs", "runtimeType", "options"];
    let given = |name: &&str| !how[*name].is_null() && how[*name] != "";
    parts
        .into_iter()
        .filter(given)
        .map(|name| (name.to_owned(), how[name].clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// Its `daemon.json`, like the user's daemon apart from what is asked for.
fn configuration(
    asked: &Asked,
    version: Option<(u32, u32)>,
    users: Option<&Value>,
    runtimes: &Map<String, Value>,
    default: &str,
) -> Value {
    let is_of_containerd = asked.storage.name == CONTAINERD;
    // The snapshotter, which containerd calls by the filesystem's name.
    let driver = if is_of_containerd { "overlayfs" } else { asked.storage.name };
    let mut all = json!({ "storage-driver": driver, "runtimes": runtimes, "default-runtime": default });
    if version.is_some_and(|version| version >= CHOOSES_STORE) {
        all["features"] = json!({ "containerd-snapshotter": is_of_containerd });
    }
    if let Some(Remapped { user, group, .. }) = &asked.remapped_to {
        all["userns-remap"] = format!("{user}:{group}").into();
    }
    let said = |key: &str| users.and_then(|info| info[key].as_str()).filter(|text| !text.is_empty());
    if let Some(driver) = said("CgroupDriver").filter(|driver| *driver != "none") {
        all["exec-opts"] = json!([format!("native.cgroupdriver={driver}")]);
    }
    if let Some(driver) = said("LoggingDriver") {
        all["log-driver"] = driver.into();
    }
    let options = users.and_then(|info| info["SecurityOptions"].as_array()).into_iter().flatten();
    let profile = options.filter_map(|option| option.as_str()?.strip_prefix("name=seccomp,profile=")).next();
    // The daemon's own profile has either name.
    if let Some(profile) = profile.filter(|name| !["default", "builtin"].contains(name)) {
        all["seccomp-profile"] = profile.into();
    }
    all
}

/// Starts the daemon, and finds docker with it.
fn begin(
    spec: &Spec,
    asked: &Asked,
    configuration: &Value,
    client: &Client,
    users: Option<i32>,
    run: &RunContext,
) -> Result<Begun, Abort> {
    let disk = if asked.storage.name == "btrfs" { Some(on_btrfs(run)?) } else { None };
    let point = disk.as_ref().map(|mounted| mounted.point.as_path());
    let (bounds, unlike) = bounds_of(users)?;
    if let Some(unlike) = &unlike {
        (run.tell)(&format!("the private daemon of `{}` has {unlike}", spec.shown()));
    }
    let (daemon, bridge) = started(spec, asked, configuration, (point, bounds.as_ref()), run)?;
    let host = format!("unix://{}", daemon.socket.display());
    let mut spec = spec.with(&[("host", &host)]);
    if bridge == Bridge::None {
        spec = spec.with(&[("net", "none")]);
    }
    let own = Client { global: vec!["--host".to_owned(), host], ..client.clone() };
    copy_image(&spec, client, &own, run)?;
    let subject = engine::build(&spec, &run.place, find, over_api)?;
    let data_root = match &disk {
        Some(_) => "on btrfs, in a file in the state directory",
        None => "in the state directory",
    };
    let mut notes = vec![
        ("daemon", "private".to_owned()),
        ("daemon start-up", daemon.start_up.to_string()),
        ("data root", data_root.to_owned()),
        ("network", bridge.described().to_owned()),
    ];
    notes.extend(unlike.map(|unlike| ("limits", unlike)));
    let user = asked.remapped_to.as_ref();
    notes.extend(
        user.map(|Remapped { user, .. }| ("users", format!("mapped to the subordinate ids of `{user}`"))),
    );
    let mut holds: Vec<Box<dyn Any + Send + Sync>> = vec![Box::new(daemon) as _];
    holds.extend(disk.map(|mounted| Box::new(mounted) as _));
    Ok(Begun { subject, holds, notes })
}

/// The process from which the containers of the user's daemon descend, and from which they inherit: its containerd, else itself.
fn containers_parent(spec: &Spec, users: &Value) -> Option<i32> {
    let root = users["DockerRootDir"].as_str().unwrap_or_default();
    daemons(spec.get("host"), root).last().map(|one| one.pid)
}

/// The limits of the user's daemon as far as a private one may have them, and in words how it differs.
fn bounds_of(users: Option<i32>) -> Result<(Option<Bounds>, Option<String>), Failure> {
    let Some(pid) = users else { return Ok((None, None)) };
    // A daemon keeps files of its own, which others must not be able to change, as its user's daemon may let them.
    let safe = |mask: u32| mask | 0o022;
    let wanted = || Bounds::of(pid).map(|wanted| Bounds { umask: wanted.umask.map(safe), ..wanted });
    let read = || wanted().and_then(|wanted| wanted.attainable());
    let (bounds, refused) = read().or_environment(format_args!("cannot read the limits of process {pid}"))?;
    let one = |one: &Refused| format!("{} {} where the user's daemon has {}", one.what, one.got, one.wanted);
    let told: Vec<String> = refused.iter().map(one).collect();
    let hard = |one: &Refused| one.wanted.rsplit(':').next().unwrap_or_default().to_owned();
    let unlike = refused.first().map(|first| {
        format!(
            "{}, since dunnage may not raise it; start dunnage with CAP_SYS_RESOURCE, or from a shell with a hard limit of {}",
            told.join(", "),
            hard(first)
        )
    });
    Ok((Some(bounds), unlike))
}

/// The bridge of a private daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bridge {
    /// Its own.
    Own,
    /// It cannot make one.
    None,
}

impl Bridge {
    fn described(self) -> &'static str {
        match self {
            Bridge::Own => "a bridge in a network namespace of the private daemon",
            Bridge::None => "none: the private daemon cannot make a bridge",
        }
    }
}

/// Starts the daemon, without a bridge if it cannot make one and none is asked for.
fn started(
    spec: &Spec,
    asked: &Asked,
    configuration: &Value,
    (data_root, bounds): (Option<&Path>, Option<&Bounds>),
    run: &RunContext,
) -> Result<(Held<Daemon>, Bridge), Abort> {
    let start = |configuration: &Value| {
        let configuration = &configuration.to_string();
        let let_through = asked.remapped_to.as_ref().map(|remapped| remapped.root);
        let setup =
            Setup { engine: Program::Docker, options: &[], configuration, data_root, let_through, bounds };
        set_up(&run.owner, &run.interrupts, setup)
    };
    let failure = match start(configuration) {
        Err(Abort::Failed(failure)) => failure,
        done => return Ok((done?, Bridge::Own)),
    };
    if is_about_the_network(&failure) && spec.get("net") != Some("bridge") {
        let mut without = configuration.clone();
        (without["bridge"], without["iptables"]) = ("none".into(), false.into());
        return Ok((start(&without)?, Bridge::None));
    }
    let mut reason = format!("a private daemon with {} did not start", asked.described());
    if failure.words.is_none() {
        reason = format!("{reason}: {}", failure.reason);
    }
    Err(Failure { reason, ..failure }.into())
}

/// Whether a daemon did not start because it could not make its bridge.
fn is_about_the_network(failure: &Failure) -> bool {
    let words = failure.words.as_deref().unwrap_or_default().to_lowercase();
    ["network controller", "iptables", "docker0"].iter().any(|part| words.contains(part))
}

/// A filesystem for the data root, no larger than the free space.
fn on_btrfs(run: &RunContext) -> Result<Held<Mounted>, Abort> {
    let kind = TYPES.into_iter().find(|kind| kind.name == "btrfs").expect("btrfs is among the types");
    let state = &run.place.state;
    let left = disk::left(state).or_environment(format_args!("cannot look at `{}`", state.display()))?;
    filesystem(&run.owner, &run.interrupts, kind, left.bytes.min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        Spec::parse(text).unwrap()
    }

    #[test]
    fn a_private_daemon_is_set_up_like_the_users() {
        let spec = spec("docker+crun:storage=containerd");
        let info = json!({
            "DefaultRuntime": "crun", "CgroupDriver": "systemd", "LoggingDriver": "journald",
            "SecurityOptions": ["name=apparmor", "name=seccomp,profile=/etc/own.json"],
            "Runtimes": {
                "runc": {"path": "runc"}, "io.containerd.runc.v2": {"path": "runc"},
                "crun": {"path": "/usr/bin/crun", "status": {"a": "b"}},
                "gvisor": {"runtimeType": "io.containerd.runsc.v1", "path": ""},
            },
        });
        let known = runtimes(&spec, Some(&info)).unwrap();
        let asked = Asked::of(&spec, Some(&info)).unwrap();
        let made = configuration(&asked, Some((26, 1)), Some(&info), &known, "crun");
        let expected = json!({
            "storage-driver": "overlayfs", "features": {"containerd-snapshotter": true},
            "runtimes": {"crun": {"path": "/usr/bin/crun"}, "gvisor": {"runtimeType": "io.containerd.runsc.v1"}},
            "default-runtime": "crun", "exec-opts": ["native.cgroupdriver=systemd"], "log-driver": "journald",
            "seccomp-profile": "/etc/own.json",
        });
        assert_eq!(made, expected);
    }

    #[test]
    fn without_the_users_daemon_it_is_as_installed() {
        let spec = spec("docker:storage=vfs");
        let known = runtimes(&spec, None).unwrap();
        let mut asked = Asked::of(&spec, None).unwrap();
        let made = configuration(&asked, Some((20, 10)), None, &known, "runc");
        assert_eq!(made, json!({ "storage-driver": "vfs", "runtimes": {}, "default-runtime": "runc" }));
        asked.remapped_to = Some(Remapped { user: "ann".to_owned(), group: 1000, root: 100_000 });
        let remapped = configuration(&asked, Some((20, 10)), None, &known, "runc");
        assert_eq!(remapped["userns-remap"], "ann:1000");
    }

    #[test]
    fn without_subordinate_ids_the_remedy_says_how_a_user_gets_some() {
        let why = a_user(&Lists::default()).unwrap_err();
        assert!(why.reason.contains("other than root"), "{why:?}");
        assert!(why.remedy.unwrap().contains("usermod --add-subuids 100000-165535"));
    }

    #[test]
    fn a_bridge_that_cannot_be_made_is_not_a_broken_driver() {
        let failure = |words: &str| Failure::environment("it ended").with_words(words.as_bytes());
        let bridge = "failed to start daemon: Error initializing network controller: iptables failed";
        assert!(is_about_the_network(&failure(bridge)));
        assert!(!is_about_the_network(&failure("error initializing graphdriver: driver not supported")));
    }
}
