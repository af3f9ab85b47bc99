//! Engines asked over their API instead of their command line (`client=api`): dunnage itself is the client,
//! speaks HTTP over the engine's Unix socket, and so sees how long each request takes.
//!
//! Deliberately absent: TCP, TLS and SSH, an async runtime, threads, and an engine's client library.

mod client;
mod http;
mod launch;
pub mod requests;
mod verbs;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::client::{Address, ask_once, parsed, refused};
use self::http::Request;
use self::requests::{Container, ContainerConfig};
use self::verbs::OfApi;
use super::component::{identified, unavailable};
use super::draft::{Draft, Verbs};
use super::engine::{Engine, RUN_LABEL, STATE_LABEL, is_about_nothing, published};
use super::resources::{Attachment, Object, layered, load_image, of_subject};
use super::unavailable::silent_docker;
use super::{
    Component, Description, Entrypoint, Launch, ObjectKind, ObjectSpec, Place, RunContext, Subject,
    Unavailable,
};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::service::{Service, serve};
use crate::resource::{Found, Held};
use crate::sys::signals::Interrupts;
use crate::sys::socket::Patience;
use crate::units::Nanos;

/// The newest supported version of the API; with an older engine, the engine's version is used.
const NEWEST: (u32, u32) = (1, 51);
/// The oldest version that has all requests used here.
const OLDEST: (u32, u32) = (1, 24);
/// How long an engine may take to answer a question about itself.
const ANSWER: Nanos = Nanos::from_millis(20_000);
/// How long it may take to load an image; some are large.
const LOADING: Nanos = Nanos::from_millis(600_000);

/// What can be made by requests, other than containers.
const MADE: &[ObjectKind] = &[ObjectKind::Network, ObjectKind::Volume, ObjectKind::Image];

/// The server of the API.
#[derive(Debug)]
enum Server {
    /// A running daemon.
    Daemon(Address),
    /// The engine's own program, once it is started.
    Own(Option<Box<Held<Service>>>),
}

/// An engine that is asked over its API.
#[derive(Debug)]
struct Api {
    engine: Engine,
    server: Server,
    /// The version of the API that both sides support.
    version: String,
    /// The kernel's limits, which must be given to the engine explicitly.
    ulimits: Vec<(&'static str, u64)>,
}

/// An engine whose daemon listens at this address; `describe` makes an engine from its answer and this
/// program, which is the client.
pub(super) fn of_daemon(
    (name, address): (&'static str, &str),
    place: &Place,
    describe: impl FnOnce(&Value, Component) -> Result<Engine, Unavailable>,
) -> Result<Box<dyn Subject>, Unavailable> {
    let address = Address { engine: name, socket: socket_of(address)? };
    let (info, version) = asked(&address)?;
    let mut engine = describe(&info, own_component(place)?)?;
    engine.about.facts.notes.push(("api version", version.clone()));
    engine.about.makes = MADE;
    Ok(Box::new(Api { engine, server: Server::Daemon(address), version, ulimits: Vec::new() }))
}

/// What the daemon at this address says of itself.
pub(super) fn info(engine: &'static str, address: &str) -> Result<Value, Unavailable> {
    asked(&Address { engine, socket: socket_of(address)? }).map(|(info, _)| info)
}

/// What a daemon says of itself, and the version of the API to use with it.
fn asked(address: &Address) -> Result<(Value, String), Unavailable> {
    let interrupts = Interrupts::install().ok();
    let mut patience = Patience::new(ANSWER, interrupts.as_ref());
    let silent = |abort| silent_docker(&address.to_string(), unavailable(abort));
    let version = negotiated(address, &mut patience).map_err(silent)?;
    let request = Request::plain("GET", &format!("/v{version}/info"));
    let answered = ask_once(address, &request, &mut patience).map_err(silent)?;
    let info = parsed(&answered, &request).map_err(|failure| unavailable(failure.into()))?;
    if !info["ServerVersion"].is_string() {
        return Err(Unavailable::because("the daemon did not identify itself"));
    }
    Ok((info, version))
}

/// An engine whose own program serves the API, once the subject is prepared.
pub(super) fn of_program(
    mut engine: Engine,
    place: &Place,
    ulimits: Vec<(&'static str, u64)>,
) -> Result<Box<dyn Subject>, Unavailable> {
    for component in &mut engine.about.facts.components {
        if component.role == "client" {
            component.role = "daemon".into();
        }
    }
    engine.about.facts.components.insert(0, own_component(place)?);
    engine.about.makes = MADE;
    Ok(Box::new(Api { engine, server: Server::Own(None), version: String::new(), ulimits }))
}

/// This program, which is the client.
fn own_component(place: &Place) -> Result<Component, Unavailable> {
    let version = concat!("dunnage ", env!("CARGO_PKG_VERSION"));
    identified("client", &place.executable, version)
}

fn socket_of(address: &str) -> Result<PathBuf, Unavailable> {
    let Some(path) = address.strip_prefix("unix://").filter(|path| path.starts_with('/')) else {
        let reason = format!("`client=api` needs a Unix socket, and `{address}` is not one");
        return Err(Unavailable::because(reason)
            .with_remedy("give a socket, as in `host=\"unix:///run/docker.sock\"`, or choose `client=cli`"));
    };
    Ok(PathBuf::from(path))
}

/// The newest version of the API that both sides support.
fn negotiated(address: &Address, patience: &mut Patience<'_>) -> Result<String, Abort> {
    let request = Request::plain("GET", "/version");
    let answered = parsed(&ask_once(address, &request, patience)?, &request)?;
    common_version(&answered).map_err(|reason| Failure::new(FailureClass::Unsupported, reason).into())
}

fn common_version(answered: &Value) -> Result<String, String> {
    let told = |key: &str| answered[key].as_str().and_then(parse_version);
    let Some(newest) = told("ApiVersion") else {
        return Err("the engine does not report its API version".into());
    };
    let oldest = told("MinAPIVersion").unwrap_or(OLDEST).max(OLDEST);
    let (major, minor) = newest.min(NEWEST);
    if (major, minor) < oldest {
        let shown = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        return Err(format!(
            "the engine supports API versions {} to {}, and dunnage {} to {}",
            answered["MinAPIVersion"].as_str().unwrap_or("?"),
            shown(newest),
            shown(OLDEST),
            shown(NEWEST)
        ));
    }
    Ok(format!("{major}.{minor}"))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Sends a request; a refusal is an error with the engine's words.
fn told(address: &Address, request: &Request, allowed: Nanos) -> Result<(), String> {
    let interrupts = Interrupts::install().ok();
    let mut patience = Patience::new(allowed, interrupts.as_ref());
    ask_once(address, request, &mut patience).map(drop).map_err(|abort| match abort {
        Abort::Failed(failure) => failure.words.unwrap_or(failure.reason),
        Abort::Interrupted => "interrupted".into(),
    })
}

impl Api {
    fn address(&self) -> Address {
        match &self.server {
            Server::Daemon(address) => address.clone(),
            Server::Own(service) => Address {
                engine: "podman",
                socket: service.as_ref().map(|service| service.socket.clone()).unwrap_or_default(),
            },
        }
    }

    fn config<'a>(&'a self, run: &'a RunContext, entrypoint: Entrypoint<'a>) -> ContainerConfig<'a> {
        let (image, is_ours) = self.engine.image_for(entrypoint);
        ContainerConfig {
            spec: &self.engine.about.spec,
            image,
            executable: (run.lays_in_the_probe || !is_ours).then_some(&run.place.executable),
            detail: self.engine.about.expected.detail(),
            ulimits: &self.ulimits,
            run: &run.id,
            state: &run.place.id,
        }
    }

    /// Starts the service, where the engine has no daemon.
    fn serve(&mut self, run: &RunContext) -> Result<(), Abort> {
        let Server::Own(service @ None) = &mut self.server else { return Ok(()) };
        let verb = ["system", "service", "--time=0"].map(str::to_owned);
        let client = &self.engine.client;
        let arguments = [client.global.as_slice(), &verb].concat();
        let served = serve(&run.owner, &run.interrupts, &client.path, &arguments)?;
        let start_up = service.insert(Box::new(served)).ready.start_up.to_string();
        let address = self.address();
        let mut patience = Patience::new(ANSWER, Some(&run.interrupts));
        self.version = negotiated(&address, &mut patience)?;
        let notes = &mut self.engine.about.facts.notes;
        notes.push(("service start-up", start_up));
        notes.push(("api version", self.version.clone()));
        Ok(())
    }

    /// The image to run. A daemon loads it over its socket; an engine without a daemon loads it by its
    /// command line, which uses the same storage.
    fn provide_image(&self, run: &RunContext) -> Result<String, Abort> {
        let Server::Daemon(address) = &self.server else { return self.engine.provide_image(run) };
        let holds = |reference: &str| {
            let request = Request::plain("GET", &format!("/v{}/images/{reference}/json", self.version));
            told(address, &request, ANSWER)
        };
        self.engine.provide_image_by(run, &holds, &|archive| self.load(address, archive))
    }

    /// Has a daemon load an archive.
    fn load(&self, address: &Address, archive: &Path) -> Result<(), String> {
        let target = format!("/v{}/images/load?quiet=1", self.version);
        let request = Request::with_file("POST", &target, "application/x-tar", archive);
        let request = request.map_err(|error| format!("cannot read `{}`: {error}", archive.display()))?;
        told(address, &request, LOADING)
    }

    /// Makes an image in the same way as the usual one gets there.
    fn make_image(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        let (ObjectSpec::Image(executable, layers), Server::Daemon(address)) = (asked, &self.server) else {
            return self.engine.make(asked, run);
        };
        let spec = &self.engine.about.spec;
        let image = layered(executable, layers, run);
        let name = image.reference.clone();
        let record = of_subject(ObjectKind::Image.resource(), spec, &name);
        run.owner.make(ObjectKind::Image.resource(), record, || {
            load_image(&image, spec, run, |archive| self.load(address, archive))?;
            Ok(Object::Named(name.clone()))
        })
    }

    /// Removes a container by force, also after an interrupt.
    fn rm(&self, name: &str) -> Result<Found, Failure> {
        let Server::Daemon(address) = &self.server else { return self.engine.rm(name) };
        let request = Container::named(&self.version, name).request("DELETE", "?v=1&force=1");
        let mut patience = Patience::new(ANSWER, None);
        let answered = client::Client::begin(address, &mut patience)
            .and_then(|mut client| client.exchange(&request, &mut patience, None));
        let answer = match answered {
            Ok(answer) => answer,
            Err(Abort::Failed(failure)) => return Err(failure),
            Err(Abort::Interrupted) => unreachable!("interrupts are ignored here"),
        };
        match answer.status {
            200..=299 => Ok(Found::Yes),
            404 => Ok(Found::No),
            _ => match refused(&answer, &request) {
                failure if failure.words.as_deref().is_some_and(is_about_nothing) => Ok(Found::No),
                failure => Err(failure),
            },
        }
    }
}

impl Subject for Api {
    fn about(&self) -> &Description {
        &self.engine.about
    }

    fn daemons(&self) -> Result<&[i32], &str> {
        match &self.server {
            Server::Daemon(_) => self.engine.daemons(),
            Server::Own(service) => Ok(service.as_ref().map_or(&[], |service| &service.ready.processes)),
        }
    }

    fn free_locks(&self) -> Option<i64> {
        self.engine.free_locks()
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        self.engine.let_reach(draft.entrypoint(), draft.run)?;
        let container = Container::named(&self.version, &draft.name);
        Ok(Box::new(OfApi { api: self, draft, container }))
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        self.engine.image = Some(self.provide_image(run)?);
        self.serve(run)?;
        let note = published::read_back(&*self, self.daemons(), run)?;
        self.engine.about.facts.notes.extend(note);
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        self.engine.let_reach(entrypoint, run)?;
        let name = run.next_name();
        let launch = || launch::launch(run, self, &name, entrypoint);
        let launched = self.engine.recorded(run, &name, launch, || self.rm(&name));
        if let Server::Own(Some(service)) = &mut self.server {
            service.ready.drain();
        }
        launched
    }

    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        let object = asked.kind();
        if object == ObjectKind::Image {
            return self.make_image(asked, run);
        }
        let name = run.next_name();
        let record = of_subject(object.resource(), &self.engine.about.spec, &name);
        run.owner.make(object.resource(), record, || {
            let target = format!("/v{}/{}s/create", self.version, object.name());
            let labels = json!({ RUN_LABEL: run.id, STATE_LABEL: run.place.id });
            let request = Request::with_json(&target, &json!({ "Name": name, "Labels": labels }));
            ask_once(&self.address(), &request, &mut Patience::new(run.allowed, Some(&run.interrupts)))?;
            Ok(match object {
                ObjectKind::Network => Object::Network(Attachment::new(name.clone(), None)),
                ObjectKind::Volume | ObjectKind::Image => Object::Named(name.clone()),
            })
        })
    }

    fn unmake(&self, object: ObjectKind, name: &str, run: &str) -> Result<Found, Failure> {
        let Server::Daemon(address) = &self.server else { return self.engine.unmake(object, name, run) };
        let request = Request::plain("DELETE", &format!("/v{}/{}s/{name}", self.version, object.name()));
        match told(address, &request, ANSWER) {
            Ok(_) => Ok(Found::Yes),
            Err(why) if is_about_nothing(&why) => Ok(Found::No),
            Err(why) => Err(Failure::environment(why)),
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.engine.knows(name)
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        self.rm(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_version_that_both_speak_is_chosen() {
        let of = |newest: &str, oldest: &str| {
            common_version(&json!({ "ApiVersion": newest, "MinAPIVersion": oldest }))
        };
        assert_eq!(of("1.41", "1.12").as_deref(), Ok("1.41"));
        assert_eq!(of("1.99", "1.24").as_deref(), Ok("1.51"));
        assert!(of("1.99", "1.60").unwrap_err().contains("versions 1.60 to 1.99"));
        assert!(of("1.18", "1.12").is_err());
        assert!(common_version(&json!({})).is_err());
        assert_eq!(common_version(&json!({ "ApiVersion": "1.40" })).as_deref(), Ok("1.40"));
    }

    #[test]
    fn only_unix_sockets_are_spoken_to() {
        assert_eq!(socket_of("unix:///run/docker.sock"), Ok(PathBuf::from("/run/docker.sock")));
        for other in ["tcp://127.0.0.1:2375", "ssh://host", "/run/docker.sock", "unix://relative"] {
            let why = socket_of(other).unwrap_err();
            assert!(why.reason.contains(other) && why.remedy.is_some());
        }
    }
}
