//! Engines with a docker-like command line. What docker and podman have in common is here; what is specific
//! to one engine is in its own file.

mod bundle;
mod export;
mod image;
mod made;
pub(super) mod published;
mod verbs;

use std::path::PathBuf;

use serde_json::Value;

pub use self::image::users_with_images;
use self::verbs::OfEngine;
use super::client::{self, Call, Terminal};
use super::component::Client;
use super::confined::Confined;
use super::draft::{Draft, Verbs, recorded};
use super::drivers::Storage;
use super::limits::Limits;
use super::owners::UserMap;
use super::resources::{Object, ObjectKind, ObjectSpec};
use super::treatment::{Cgroup, Expected, Network, Own};
use super::{
    Access, Broom, Build, Description, Entrypoint, Facts, Launch, Need, Place, Port, RunContext, Spec,
    Subject, Unavailable, context,
};
use crate::image::{self as images, EXECUTABLE, fat};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::probe::PROBE;
use crate::resource::{self, Found, Held};
use crate::sys::{place, raw};

/// The label of every container that dunnage makes; its value is the run.
pub const RUN_LABEL: &str = "dunnage.run";
/// The label with the random name of the state directory that has the run's journal.
pub const STATE_LABEL: &str = "dunnage.state";

/// An engine as found, ready to start containers.
#[derive(Debug)]
pub struct Engine {
    /// Its description.
    pub about: Description,
    /// Its command line.
    pub client: Client,
    /// Arguments after `run` that this host requires, for every specification.
    pub always: Vec<String>,
    /// The daemons that work for the client, or why some of them are not known.
    pub daemons: Result<Vec<i32>, String>,
    /// The runtime's executable, where it is known.
    pub runtime: Option<PathBuf>,
    /// The image to run, once `prepare` has found or loaded it.
    pub image: Option<String>,
    /// The user of this machine as whom containers are made, if that is not the user of this process: the one that podman
    /// runs as, or the one that is root inside.
    pub outside: Option<u32>,
}

impl Engine {
    /// The arguments of a verb that makes a container, from the verb to the probe's order.
    fn making_arguments(
        &self,
        verb: &[&str],
        run: &RunContext,
        name: &str,
        entrypoint: Entrypoint<'_>,
    ) -> Vec<String> {
        let mut all = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(|word| (*word).to_owned()));
        add(verb);
        let labels = Engine::labels(run);
        add(&["--name", name, &labels[0], &labels[1]]);
        for Port { number, transport, at } in entrypoint.ports(&self.about.spec) {
            let at = if at.is_ipv6() { format!("[{at}]") } else { at.to_string() };
            add(&["--publish", &format!("{at}::{number}/{}", transport.name())]);
        }
        if let Some(resolver) = entrypoint.resolver() {
            add(&["--dns", &resolver.to_string()]);
        }
        let joined = entrypoint.network().map(|attachment| attachment.name.as_str());
        if let Some(name) = joined {
            add(&["--network", name]);
        }
        if let Some(namespace) = userns(&self.about.spec) {
            add(&["--userns", namespace]);
        }
        let has_own = joined.is_some() || entrypoint.options().iter().any(|word| word.starts_with("--net"));
        if let Some(network) = self.about.spec.get("net").filter(|_| !has_own) {
            add(&["--network", network]);
        }
        for (option, value) in entrypoint.limits(&self.about.spec).options() {
            add(&[option, &value]);
        }
        let switches: [(&str, &str, &[&str]); 4] = [
            ("seccomp", "off", &["--security-opt", "seccomp=unconfined"]),
            ("pid", "host", &["--pid", "host"]),
            ("log", "none", &["--log-driver", "none"]),
            ("tty", "true", &["--tty"]),
        ];
        switches
            .iter()
            .filter(|(key, value, _)| self.about.spec.get(key) == Some(*value))
            .for_each(|(.., words)| add(words));
        let confined = Confined::of(&self.about.spec);
        add(&confined.options().iter().map(String::as_str).collect::<Vec<_>>());
        add(&self.always.iter().map(String::as_str).collect::<Vec<_>>());
        add(&entrypoint.options().iter().map(String::as_str).collect::<Vec<_>>());
        for mount in entrypoint.mounts() {
            // Unlike `--volume`, `--mount` does not create a missing source directory.
            let access = if mount.access == Access::ReadOnly { ",readonly" } else { "" };
            let (host, inside) = (mount.host.display(), mount.inside.display());
            add(&["--mount", &format!("type=bind,source={host},target={inside}{access}")]);
        }
        for (name, inside) in entrypoint.volumes() {
            add(&["--mount", &format!("type=volume,source={name},target={}", inside.display())]);
        }
        let (image, is_ours) = self.image_for(entrypoint);
        if is_ours && !run.lays_in_the_probe {
            add(&[image]);
        } else {
            let mount = format!("{}:/dunnage:ro", run.place.executable.display());
            add(&["--volume", &mount, "--entrypoint", "/dunnage", image, PROBE]);
        }
        all.extend(entrypoint.words(self.about.expected.detail()));
        all
    }

    /// Lets the user outside reach what is mounted into containers of this order, and nothing else of the state directory.
    pub(super) fn let_reach(&self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<(), Failure> {
        let Some(user) = self.outside else { return Ok(()) };
        let probe = (run.lays_in_the_probe || !self.image_for(entrypoint).1).then_some(&run.place.executable);
        for path in entrypoint.mounts().iter().map(|mount| &mount.host).chain(probe) {
            let above = path.parent().unwrap_or(path);
            place::let_through(user, above, &run.place.state)
                .or_environment(format_args!("cannot let user {user} reach `{}`", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn rm(&self, name: &str) -> Result<Found, Failure> {
        removed(&self.client, &rm(&self.about.spec, name))
    }

    /// The labels of what this run makes, as options of a verb that makes something.
    pub(super) fn labels(run: &RunContext) -> [String; 2] {
        labels(run)
    }

    pub(super) fn terminal(&self) -> Terminal {
        if self.about.spec.get("tty") == Some("true") { Terminal::Yes } else { Terminal::No }
    }

    /// Whether a container remains after a launch.
    pub(super) fn keeps(&self) -> bool {
        self.about.spec.get("rm") == Some("false")
    }

    /// Carries out a launch, and removes the container if the launch does not.
    pub(super) fn recorded(
        &self,
        run: &RunContext,
        name: &str,
        launch: impl FnOnce() -> Result<Launch, Abort>,
        rm: impl Fn() -> Result<Found, Failure>,
    ) -> Result<Launch, Abort> {
        let launch = || {
            let launched = launch()?;
            if self.keeps() {
                rm()?;
            }
            Ok(launched)
        };
        recorded(run, &self.about.spec, name, launch, &rm)
    }

    /// The image to run with this order, and whether it contains the probe.
    pub(super) fn image_for<'a>(&'a self, entrypoint: Entrypoint<'a>) -> (&'a str, bool) {
        if let Some(name) = entrypoint.image().and_then(Object::name) {
            return (name, true);
        }
        let usual = self.image.as_deref().expect("`prepare` provides the image before any launch");
        (usual, self.own_image())
    }

    fn own_image(&self) -> bool {
        matches!(self.about.spec.get("image"), None | Some("small" | fat::NAME))
    }

    /// The description of an engine with these components. `filter` is the seccomp mode where none is
    /// requested, `root` the filesystem types that a container's root can have.
    pub(super) fn description(
        spec: &Spec,
        client: &Client,
        facts: Facts,
        filter: Option<u64>,
        root: &'static [&'static str],
    ) -> Description {
        let is_rootless = spec.name == "podman" && (client.login.is_some() || raw::user_and_group().0 != 0);
        let expected = Expected {
            network: match spec.get("net") {
                Some("host") => Network::Host,
                Some("none") => Network::Loopback,
                _ => Network::Connected,
            },
            pid: if spec.get("pid") == Some("host") { Own::Host } else { Own::Private },
            user: match spec.get("userns") {
                // The engine itself runs in a user namespace; for its containers that one is the host's.
                _ if is_rootless => Own::Private,
                Some("auto" | "keep-id" | "remap") => Own::Private,
                Some("host") => Own::Host,
                _ => Own::Any,
            },
            user_map: user_map(spec, client),
            // Without delegation an ordinary user cannot make cgroups.
            cgroup: if is_rootless { Cgroup::Any } else { Cgroup::Own },
            seccomp: match spec.get("seccomp") {
                Some("off") => Some(0),
                Some(_) => Some(2),
                None => filter,
            },
            root: if spec.get("storage").is_some() { &[] } else { root },
            storage: Storage::of(spec),
            limits: Limits::of(spec),
            confined: Confined::of(spec),
            ..Expected::container()
        };
        Description {
            offers: offers(spec, is_rootless),
            makes: &[ObjectKind::Network, ObjectKind::Volume, ObjectKind::Image],
            ..Description::new(spec, facts, expected)
        }
    }
}

impl Subject for Engine {
    fn about(&self) -> &Description {
        &self.about
    }

    fn daemons(&self) -> Result<&[i32], &str> {
        self.daemons.as_deref().map_err(String::as_str)
    }

    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        self.make_for(asked, run)
    }

    fn unmake(&self, object: ObjectKind, name: &str, run: &str) -> Result<Found, Failure> {
        self.unmake_of(object, name, run)
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        self.let_reach(draft.entrypoint(), draft.run)?;
        Ok(Box::new(OfEngine { engine: self, draft }))
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        self.image = Some(self.provide_image(run)?);
        let note = published::read_back(&*self, self.daemons.as_deref(), run)?;
        self.about.facts.notes.extend(note);
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        self.let_reach(entrypoint, run)?;
        let name = run.next_name();
        let verb: &[&str] = if self.keeps() { &["run"] } else { &["run", "--rm"] };
        let program = self.client.program(&self.making_arguments(verb, run, &name, entrypoint))?;
        let call = Call {
            runtime: self.runtime.as_deref(),
            terminal: self.terminal(),
            ..Call::new(&name, &self.about.expected, entrypoint)
        };
        let part = || client::by_command(run, &program, entrypoint);
        self.recorded(run, &name, || client::launch(run, self.daemons(), &call, part), || self.rm(&name))
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        self.rm(name)
    }

    fn knows(&self, name: &str) -> bool {
        self.client.ask(&["container", "inspect", "--format", "{{.Id}}", name]).is_ok()
    }

    fn free_locks(&self) -> Option<i64> {
        if self.about.spec.name != "podman" {
            return None;
        }
        let told = self.client.ask(&["info", "--format", "{{.Host.FreeLocks}}"]).ok()?;
        told.trim().parse().ok()
    }
}

/// The labels of what a run makes, as options of a verb that makes something.
pub(super) fn labels(run: &RunContext) -> [String; 2] {
    [format!("--label={RUN_LABEL}={}", run.id), format!("--label={STATE_LABEL}={}", run.place.id)]
}

/// The arguments that remove a container at once: podman would wait for a program that ignores SIGTERM, docker kills.
fn rm<'a>(engine: &Spec, name: &'a str) -> Vec<&'a str> {
    let at_once = if engine.name == "podman" { &["--time", "0"][..] } else { &[] };
    [&["rm", "--force", "--volumes"], at_once, &[name]].concat()
}

/// Removes something with these arguments; an engine prints the name of what it has removed.
fn removed(client: &Client, words: &[&str]) -> Result<Found, Failure> {
    match client.insist(words) {
        Ok(words) if words.is_empty() => Ok(Found::No),
        Ok(_) => Ok(Found::Yes),
        Err(why) if is_about_nothing(&why.reason) => Ok(Found::No),
        Err(why) => Err(why.into()),
    }
}

/// The user namespace that a container asks for; a remapping is the daemon's.
pub(super) fn userns(spec: &Spec) -> Option<&str> {
    spec.get("userns").filter(|name| *name != "remap")
}

/// How users must be mapped. For a rootless podman, root inside is the user, unless that is asked for
/// otherwise; the ids outside of `keep-id` are those of the podman that the user started.
fn user_map(spec: &Spec, client: &Client) -> Option<UserMap> {
    let user = client.login.as_ref().map_or(raw::user_and_group().0, |login| login.user() as usize);
    match spec.get("userns") {
        Some("auto" | "remap") => Some(UserMap::Moved),
        Some("keep-id") if user == 0 => Some(UserMap::Same),
        Some("keep-id") => Some(UserMap::Has(format!("{user} 0 1"))),
        _ => client.login.as_ref().map(|login| UserMap::Has(format!("0 {} 1", login.user()))),
    }
}

/// What a container can do in the network that is asked for. A network in user space, as ordinary users have,
/// gives it no address that the host reaches. IPv6 addresses and names depend on the engine.
fn offers(spec: &Spec, is_rootless: bool) -> Vec<Need> {
    let more = match spec.get("net") {
        Some("none") => &[][..],
        Some("host") => &[Need::Resolver],
        Some("slirp4netns" | "pasta") => &[Need::Ports, Need::Resolver],
        _ if is_rootless => &[Need::Ports, Need::Resolver, Need::Names],
        _ => &[Need::Ports, Need::Address, Need::Joined, Need::Resolver, Need::Names],
    };
    // As a user's, an engine can give no more than the user has.
    let nests = match spec.name.as_str() {
        _ if raw::user_and_group().0 != 0 => &[][..],
        "docker" => &[Need::Nests, Need::NestsByDaemon],
        "podman" if is_rootless => &[Need::Nests, Need::NestsByUsers, Need::NestsInUsers],
        "podman" => &[Need::Nests, Need::NestsByUsers],
        _ => &[],
    };
    [&Need::CONTAINER[..], &[Need::Volumes, Need::Images], more, nests].concat()
}

/// The subject of a specification: the engine by its command line, or over its API.
pub(super) fn build(
    spec: &Spec,
    place: &Place,
    find: fn(&Spec) -> Result<Engine, Unavailable>,
    over_api: Build,
) -> Result<Box<dyn Subject>, Unavailable> {
    match spec.get("client") {
        Some("api") => over_api(spec, place),
        _ => Ok(Box::new(find(spec)?)),
    }
}

/// Whether an engine's error means that what it should remove does not exist.
pub(super) fn is_about_nothing(words: &str) -> bool {
    let words = words.to_lowercase();
    [
        "no such container",
        "no such image",
        "no such volume",
        "image not known",
        "no container with name",
        "is already in progress",
        "no such network",
        "network not found",
        "unable to find network",
    ]
    .iter()
    .any(|part| words.contains(part))
}

/// The names of the images with dunnage's label that this engine holds.
const OUR_IMAGES: [&str; 5] =
    ["images", "--filter", "label=dunnage.image", "--format", "{{.Repository}}:{{.Tag}}"];

/// An image that a run began to use meanwhile belongs to that run.
fn unless_taken(removed: Result<Found, Failure>) -> Result<Found, Failure> {
    removed.or_else(|why| if resource::another_dunnage().is_some() { Ok(Found::No) } else { Err(why) })
}

/// Removes containers of runs that are no longer alive, and images; both only if they are dunnage's by name and label, and
/// containers only if they belong to this state directory: a run elsewhere, such as in another mount namespace, cannot be seen.
/// An image that another container uses stays, and this is reported. An engine that does not answer is an error. The engine is
/// only asked what it has: to ask podman for its facts makes it ask the system's package manager, for longer than the sweep takes.
pub(super) fn sweep(
    name: &Spec,
    client: &Client,
    place: &Place,
    broom: Broom,
) -> Result<Vec<String>, Unavailable> {
    let mut told = Vec::new();
    let filter = format!("label={RUN_LABEL}");
    let listed = client.ask(&["ps", "--all", "--no-trunc", "--quiet", "--filter", &filter])?;
    let mut is_used_elsewhere = false;
    for container in described(client, &listed) {
        let shown = container.name.escape_default();
        match container.owner(place) {
            Owned::Elsewhere => {
                is_used_elsewhere = true;
                told.push(format!(
                    "left container `{shown}` in {name}: it belongs to another state directory, whose runs cannot be seen from here; \
                     if its run is over, remove it with `{} rm --force --volumes {shown}`",
                    name.name
                ));
            }
            Owned::Here if broom.containers && !context::may_be_alive(&place.state, &container.run) => {
                let what = format!("container `{shown}` from {name}");
                told.extend(broom.take(what, || removed(client, &rm(name, &container.id))));
            }
            Owned::Here | Owned::No => {}
        }
    }
    if !broom.shared {
        return Ok(told);
    }
    for image in client.ask(&OUR_IMAGES).unwrap_or_default().lines().filter(|image| images::is_ours(image)) {
        if is_used_elsewhere {
            told.push(format!("left image `{image}` in {name}: runs of another state directory may need it"));
            continue;
        }
        let what = format!("image `{image}` from {name}");
        told.extend(broom.take(what, || unless_taken(removed(client, &["rmi", image]))));
    }
    Ok(told)
}

/// A container as an engine describes it.
struct Labelled {
    id: String,
    name: String,
    run: String,
    state: String,
    program: String,
}

/// Whose a labelled container is.
enum Owned {
    /// A run's of this state directory.
    Here,
    /// A run's of another state directory, or one that says so.
    Elsewhere,
    /// None of dunnage's: an image can have any label.
    No,
}

impl Labelled {
    fn of(described: &Value) -> Option<Labelled> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let label = |name: &str| text(&described["Config"]["Labels"][name]);
        let name = described["Name"].as_str()?;
        Some(Labelled {
            id: text(&described["Id"])?,
            name: name.strip_prefix('/').unwrap_or(name).to_owned(),
            run: label(RUN_LABEL)?,
            state: label(STATE_LABEL).unwrap_or_default(),
            program: text(&described["Path"]).unwrap_or_default(),
        })
    }

    /// By its name, its labels and its program, which dunnage all gives to a container itself.
    fn owner(&self, place: &Place) -> Owned {
        let is_dunnages = resource::is_name_of(&self.run, &self.name) && self.program == EXECUTABLE;
        match (is_dunnages, !place.id.is_empty() && self.state == place.id) {
            (true, true) => Owned::Here,
            (true, false) => Owned::Elsewhere,
            (false, _) => Owned::No,
        }
    }
}

/// The containers with these ids, a line each. One that disappears meanwhile makes the whole answer a failure, so then each is
/// asked for alone.
fn described(client: &Client, ids: &str) -> Vec<Labelled> {
    let is_id = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ids: Vec<&str> = ids.lines().map(str::trim).filter(is_id).collect();
    let ask = |ids: &[&str]| -> Option<Vec<Value>> {
        let answer = client.ask(&[&["container", "inspect"], ids].concat()).ok()?;
        serde_json::from_str(&answer).ok()
    };
    let all = match ids.is_empty() {
        true => Vec::new(),
        false => ask(&ids).unwrap_or_else(|| ids.iter().filter_map(|id| ask(&[id])).flatten().collect()),
    };
    all.iter().filter_map(Labelled::of).collect()
}
