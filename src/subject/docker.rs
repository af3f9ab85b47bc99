//! Docker through its command line or its API: what is specific to its daemon and its options.

mod private;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::api;
use super::component::{Client, components, program};
use super::drivers::{self, Storage};
use super::engine::{self, Engine};
use super::unavailable::silent_docker;
use super::{Broom, Cause, Component, Facts, Kind, Need, Place, Spec, Subject, Unavailable, kinds, on_path};
use crate::sys::peer;
use crate::sys::process::{self, Process};

/// The client's default socket.
const DEFAULT_SOCKET: &str = "unix:///var/run/docker.sock";

/// The kind `docker`.
pub static KIND: Kind = Kind {
    declared: &kinds::DOCKER,
    as_installed: &["docker", "docker+crun"],
    equalised: &["docker:log=none,net=none", "docker+crun:log=none,net=none"],
    build,
    sweep: |place, broom| sweep(place, broom).unwrap_or_default(),
};

/// Sweeps the daemon that the client asks by default, if it answers.
fn sweep(place: &Place, broom: Broom) -> Result<Vec<String>, Unavailable> {
    let spec = Spec::plain("docker");
    engine::sweep(&spec, &client(&spec)?, place, broom)
}

/// The runtime of a daemon that is not configured otherwise.
const DEFAULT_RUNTIME: &str = "runc";

/// Docker as asked for. If a storage driver or a remapping of users is asked for and the user's daemon does not
/// have it, a private daemon does, unless a daemon is named.
fn build(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    if (Storage::of(spec).is_none() && !is_remapped(spec)) || spec.get("host").is_some() {
        return engine::build(spec, place, find, over_api);
    }
    let users = match spec.get("client") {
        Some("api") => api::info("docker", &address(None)),
        _ => client(spec).and_then(|client| info(&client)),
    };
    match users.as_ref() {
        Ok(info) if lacking(spec, info).is_none() => engine::build(spec, place, find, over_api),
        // Without the client there is nothing to start containers with.
        Err(why) if why.cause == Cause::NotInstalled => Err(why.clone()),
        _ => private::build(spec, users.as_ref().ok()),
    }
}

/// Whether a remapping of users is asked for.
fn is_remapped(spec: &Spec) -> bool {
    spec.get("userns") == Some("remap")
}

/// What is asked for that a daemon does not have.
fn lacking(spec: &Spec, info: &Value) -> Option<String> {
    let other = Storage::of(spec).filter(|asked| asked.name != driver(info));
    if let Some(asked) = other {
        return Some(format!("the daemon uses the storage driver `{}`, not `{}`", driver(info), asked.name));
    }
    let remaps = security_options(info).any(|option| option.starts_with("name=userns"));
    (is_remapped(spec) && !remaps).then(|| "the daemon does not remap users (`userns-remap`)".to_owned())
}

/// Who is root inside, of a daemon that remaps users: its data are in a directory named after that user and group.
fn root_inside(data_root: &str) -> Option<u32> {
    data_root.rsplit('/').next()?.split_once('.')?.0.parse().ok()
}

fn security_options(info: &Value) -> impl Iterator<Item = &str> {
    info["SecurityOptions"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The storage driver of a daemon, as the key `storage` calls it.
fn driver(info: &Value) -> &str {
    let driver = info["Driver"].as_str().unwrap_or_default();
    let status = info["DriverStatus"].as_array().into_iter().flatten();
    let mut types = status.filter(|pair| pair[0] == "driver-type").filter_map(|pair| pair[1].as_str());
    let is_of_containerd = types.any(|kind| kind.starts_with("io.containerd.snapshotter."));
    if is_of_containerd && driver == "overlayfs" { drivers::CONTAINERD } else { driver }
}

/// The client of a specification.
fn client(spec: &Spec) -> Result<Client, Unavailable> {
    let mut client = Client::of(program(spec, "docker", "install the package `docker.io` or Docker's own")?);
    if let Some(host) = spec.get("host") {
        client.global.extend(["--host", host].map(str::to_owned));
    }
    Ok(client)
}

/// The daemon over its API, with dunnage as the client.
fn over_api(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    if spec.get("bin").is_some() {
        return Err(Unavailable::because(
            "`bin` names a build of the client, and `client=api` does not use the client",
        )
        .with_remedy("leave out `bin`, or choose `client=cli`"));
    }
    api::of_daemon(("docker", &address(spec.get("host"))), place, |info, client| {
        of_info(spec, info, Client::of(&*place.executable), client)
    })
}

/// Finds the client and asks its daemon for its facts.
pub fn find(spec: &Spec) -> Result<Engine, Unavailable> {
    let client = client(spec)?;
    let info = info(&client)?;
    let component = client.component("client")?;
    of_info(spec, &info, client, component)
}

/// Docker as its daemon describes it, for either client.
fn of_info(spec: &Spec, info: &Value, client: Client, component: Component) -> Result<Engine, Unavailable> {
    let text = |key: &str| info[key].as_str().unwrap_or_default().to_owned();
    if let Some(reason) = lacking(spec, info) {
        let key = if is_remapped(spec) { "userns" } else { "storage" };
        return Err(Unavailable::other_storage(reason).with_remedy(format!("leave out `host` or `{key}`")));
    }
    let runtime = spec.runtime.clone().unwrap_or_else(|| text("DefaultRuntime"));
    let Some(known) = info["Runtimes"].get(&runtime) else {
        return Err(unknown_runtime(&runtime, info));
    };
    let runtime_path = known["path"].as_str().filter(|path| !path.is_empty()).unwrap_or(&runtime);
    let runtime_path =
        if runtime_path.contains('/') { Some(PathBuf::from(runtime_path)) } else { on_path(runtime_path) };

    let daemons = daemons(spec.get("host"), &text("DockerRootDir"));
    let role = |daemon: &Process| if daemon.name == "dockerd" { "daemon" } else { "containerd" };
    let parts = daemons.iter().map(|daemon| (role(daemon), daemon.executable.clone()));
    let mut components = components(None, parts.chain([("runtime", runtime_path.clone())]))?;
    components.insert(0, component);
    let mut always = Vec::new();
    if spec.runtime.is_some() {
        always.extend(["--runtime".to_owned(), runtime.clone()]);
    }
    let mut notes = vec![
        ("server", text("ServerVersion")),
        ("storage driver", text("Driver")),
        ("log driver", text("LoggingDriver")),
        ("cgroup driver", text("CgroupDriver")),
        ("data root", text("DockerRootDir")),
        ("containers", info["Containers"].to_string()),
        ("daemon started", daemons.first().map(|daemon| daemon.started().to_string()).unwrap_or_default()),
        ("daemon uptime", daemons.first().map(|daemon| daemon.uptime().to_string()).unwrap_or_default()),
    ];
    notes.extend(Storage::of(spec).map(|storage| ("image store", storage.kept_by().to_owned())));
    if spec.get("storage").is_some() || is_remapped(spec) {
        notes.push(("daemon", "the user's".to_owned()));
    }
    let filter = security_options(info).any(|option| option.starts_with("name=seccomp")).then_some(2);
    let root: &[_] = if text("Driver").starts_with("overlay") { &["overlay"] } else { &[] };
    let facts = Facts { components, runtime: Some(runtime), notes };
    let mut about = Engine::description(spec, &client, facts, filter, root);
    if about.offers.contains(&Need::Joined) {
        // Its proxy takes connections over IPv6 for containers without such an address too.
        about.offers.push(Need::Ports6);
    }
    Ok(Engine {
        about,
        client,
        always,
        daemons: match daemons.is_empty() {
            false => Ok(daemons.iter().map(|daemon| daemon.pid).collect()),
            true => Err("the daemon's process is not known".into()),
        },
        runtime: runtime_path,
        image: None,
        outside: security_options(info)
            .any(|option| option.starts_with("name=userns"))
            .then(|| root_inside(&text("DockerRootDir")))
            .flatten(),
    })
}

/// The daemon's answer to `docker info`.
pub(super) fn info(client: &Client) -> Result<Value, Unavailable> {
    // Without a daemon some clients exit with 1, others with 0 and the error in their answer.
    let silent = |why| silent_docker(&address(client.global.last().map(String::as_str)), why);
    let answer = client.ask(&["info", "--format", "{{json .}}"]).map_err(silent)?;
    let info: Value = serde_json::from_str(&answer).map_err(|error| {
        Unavailable::because(format!("cannot parse the answer of `docker info`: {error}"))
    })?;
    let errors: Vec<_> =
        info["ServerErrors"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if errors.is_empty() && info["ServerVersion"].is_string() {
        return Ok(info);
    }
    let reason =
        if errors.is_empty() { "the daemon did not identify itself".to_owned() } else { errors.join("; ") };
    Err(silent(Unavailable::because(reason)))
}

fn unknown_runtime(runtime: &str, info: &Value) -> Unavailable {
    let known: Vec<_> =
        info["Runtimes"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    let path = on_path(runtime).unwrap_or_else(|| PathBuf::from(format!("/usr/bin/{runtime}")));
    let config = format!("{{\"runtimes\": {{\"{runtime}\": {{\"path\": \"{}\"}}}}}}", path.display());
    let reason = format!("the daemon does not know the runtime `{runtime}`, only {}", known.join(", "));
    Unavailable::unknown_runtime(reason)
        .with_remedy(format!("put `{config}` into /etc/docker/daemon.json and run `systemctl reload docker`, or start `dockerd --add-runtime {runtime}={}`", path.display()))
}

/// The address of the daemon.
pub fn address(host: Option<&str>) -> String {
    let address = host.map(str::to_owned).or_else(|| std::env::var("DOCKER_HOST").ok());
    address.filter(|address| !address.is_empty()).unwrap_or_else(|| DEFAULT_SOCKET.to_owned())
}

/// The daemons that work for the client: the dockerd that listens on its socket, and the containerd that
/// dockerd started, or the system's. Processes that other users call so are not among them. If another process (systemd, a proxy) holds the socket, it is the only
/// dockerd; if there are several, the one that has files open below its data root.
fn daemons(host: Option<&str>, root: &str) -> Vec<Process> {
    let address = address(host);
    let Some(socket) = address.strip_prefix("unix://") else { return Vec::new() };
    let mut all = process::named(&["dockerd", "containerd"]);
    all.retain(process::is_genuine);
    let dockerds: Vec<_> = all.iter().filter(|one| one.name == "dockerd").collect();
    let of_id = |id| dockerds.iter().copied().find(|one| one.pid == id);
    let own = peer::listening_on(Path::new(socket)).and_then(of_id).or_else(|| match dockerds[..] {
        [only] => Some(only),
        _ => process::holding(&|path| !root.is_empty() && path.starts_with(root)).find_map(of_id),
    });
    let Some(own) = own else { return Vec::new() };
    let mut containerds = all.iter().filter(|one| one.name == "containerd");
    let its = match containerd_of(own.pid) {
        Some(named) => containerds.find(|one| one.pid == named),
        None => containerds.clone().find(|one| one.parent == own.pid).or_else(|| {
            let systems = peer::listening_on(Path::new(SYSTEMS_CONTAINERD));
            containerds.find(|one| Some(one.pid) == systems)
        }),
    };
    std::iter::once(own.clone()).chain(its.cloned()).collect()
}

/// The socket at which dockerd expects the containerd of the system, if it does not start one.
const SYSTEMS_CONTAINERD: &str = "/run/containerd/containerd.sock";

/// The containerd at the address that a dockerd was started with, if it was given one.
fn containerd_of(dockerd: i32) -> Option<i32> {
    let line = std::fs::read_to_string(format!("/proc/{dockerd}/cmdline")).ok()?;
    let mut words = line.split('\0').skip_while(|word| !word.starts_with("--containerd"));
    let first = words.next()?;
    let address = first.strip_prefix("--containerd=").or_else(|| words.next())?;
    peer::listening_on(Path::new(address.strip_prefix("unix://").unwrap_or(address)))
}
