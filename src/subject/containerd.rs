//! containerd through `ctr`, its own client: the meaning of the keys, how it is found, and a launch.
//! Everything that dunnage makes is in a containerd namespace of its own.
//!
//! By default `ctr` gives a container no network, keeps no log and filters no system calls. The arguments
//! after the container's name replace the image's entry point. Deliberately absent: `tty`, since `ctr`
//! allocates a terminal only when it has one itself, which a launch does not; and networks, which `ctr`
//! leaves to plug-ins.

mod ctr;
mod sweep;
mod verbs;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use dunnage_analysis::subject::limits::cpus_text;

use self::ctr::{Ctr, NAMESPACE};
use self::verbs::OfContainerd;
use super::client::{self, Call};
use super::component::{Client, components, identified, program};
use super::confined::Confined;
use super::draft::{Draft, Verbs, recorded};
use super::engine::Engine;
use super::limits::Limits;
use super::resources::{self, Object, ObjectKind, ObjectSpec};
use super::treatment::{Expected, Network};
use super::{
    Component, Description, Entrypoint, Facts, Kind, Launch, Need, Place, RunContext, Spec, Subject,
    Unavailable, kinds, on_path,
};
use crate::image::{EXECUTABLE, Image};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::PROBE;
use crate::resource::{Found, Held};
use crate::sys::cgroup::CpuLimit;
use crate::sys::{peer, process};

/// The usual sockets: the system's own, then that of the containerd that dockerd starts.
const SOCKETS: [&str; 2] = ["/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock"];

/// The kind `containerd`.
pub static KIND: Kind = Kind {
    declared: &kinds::CONTAINERD,
    as_installed: &["containerd"],
    // Other engines filter by default; here the filter must be requested.
    equalised: &["containerd:log=none,net=none,seccomp=default"],
    build,
    sweep: sweep::sweep,
};

/// containerd as found, ready to start containers.
struct Containerd {
    about: Description,
    ctr: Ctr,
    daemons: Result<Vec<i32>, String>,
    runtime: Option<PathBuf>,
    image: Option<String>,
}

fn build(spec: &Spec, _: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    find(spec).map(|found| Box::new(found) as Box<dyn Subject>)
}

/// Finds `ctr` and asks its daemon for its facts.
fn find(spec: &Spec) -> Result<Containerd, Unavailable> {
    let client = program(spec, "ctr", "install the package `containerd`")?;
    let address = address(spec.get("host"))?;
    let ctr = Ctr::new(client, &address);
    let runtime = runtime(spec.runtime.as_deref())?;
    let confined = Confined::of(spec);
    if !confined.is_empty() {
        check_confined(&confined, &ctr.ask(&["run", "--help"])?)?;
    }
    let version = ctr.ask(&["version"])?;
    let server = version.split_once("Server:").and_then(|(_, server)| line_after(server, "Version:"));
    if let Some(asked) = spec.get("snapshotter") {
        check_snapshotter(asked, &ctr.snapshotters()?, server.as_deref().unwrap_or("of an unknown version"))?;
    }

    let daemon = peer::listening_on(address.as_ref()).and_then(process::read);
    let daemon = daemon.filter(|one| one.name == "containerd" && process::is_genuine(one));
    let executable = daemon.as_ref().and_then(|daemon| daemon.executable.clone());
    let shim = executable.as_deref().map(shim).transpose()?.flatten();
    let parts = [("client", Some(ctr.path.clone())), ("daemon", executable)];
    let mut components = components(None, parts.into_iter().chain([("runtime", runtime.clone())]))?;
    components.extend(shim);
    let started_by = daemon.as_ref().and_then(|daemon| process::read(daemon.parent));
    let notes = [
        ("server", server),
        ("socket", Some(address)),
        ("namespace", Some(NAMESPACE.to_owned())),
        ("snapshotter", Some(spec.get("snapshotter").unwrap_or("overlayfs").to_owned())),
        ("daemon started by", started_by.map(|parent| parent.name)),
        ("daemon started", daemon.as_ref().map(|daemon| daemon.started().to_string())),
        ("daemon uptime", daemon.as_ref().map(|daemon| daemon.uptime().to_string())),
    ];
    let known = |(key, value): (&'static str, Option<String>)| Some((key, value?));
    let facts = Facts {
        components,
        runtime: Some(spec.runtime.clone().unwrap_or_else(|| "runc".into())),
        notes: notes.into_iter().filter_map(known).collect(),
    };
    Ok(Containerd {
        about: description(spec, facts),
        ctr,
        daemons: match &daemon {
            Some(daemon) => Ok(vec![daemon.pid]),
            None => Err("the daemon's process is not known".into()),
        },
        runtime,
        image: None,
    })
}

/// Refuses a snapshotter that the daemon of this version does not have, or that does not serve.
fn check_snapshotter(asked: &str, known: &[(String, String)], version: &str) -> Result<(), Unavailable> {
    let is_of_files = asked == "erofs";
    match known.iter().find(|(name, _)| name == asked) {
        Some((_, state)) if state == "ok" => Ok(()),
        Some((_, state)) => {
            let why =
                Unavailable::because(format!("containerd's snapshotter `{asked}` does not serve: `{state}`"));
            let remedy = "it needs the kernel's `erofs` (`modprobe erofs`) and `mkfs.erofs`, from the package `erofs-utils`, before \
                          containerd starts";
            Err(if is_of_files { why.with_remedy(remedy) } else { why })
        }
        None => {
            let since = if is_of_files { ", which came with containerd 2.1" } else { "" };
            let reason = format!("containerd {version} has no snapshotter `{asked}`{since}");
            Err(Unavailable::because(reason)
                .with_remedy("leave out `snapshotter`, or use a newer containerd"))
        }
    }
}

/// What `ctr` calls a limit of open files, and the CPUs of a container; older versions have neither.
const OPTIONS: [&str; 2] = ["--rlimit-nofile", "--cpuset-cpus"];

/// Refuses limits that this `ctr` cannot ask for.
fn check_confined(confined: &Confined, help: &str) -> Result<(), Unavailable> {
    let [limit, cpus] = OPTIONS;
    let lacking = |key: &str, option: &str| {
        Unavailable::because(format!("this `ctr` cannot ask for `{key}`: it has no option `{option}`"))
            .with_remedy(
                "measure `docker`, `podman` or the runtime itself with it, or name another `ctr` with `bin=`",
            )
    };
    if let Some(other) = confined.ulimits.iter().find(|one| one.name() != "nofile" || one.soft != one.hard) {
        return Err(Unavailable::because(format!(
            "`ctr` sets one limit of open files, soft and hard alike, and `{}={}` was asked for",
            other.name(),
            other.value()
        ))
        .with_remedy("measure `docker`, `podman` or the runtime itself with it"));
    }
    if !confined.ulimits.is_empty() && !help.contains(limit) {
        return Err(lacking("ulimit", limit));
    }
    if !confined.cpus.is_empty() && !help.contains(cpus) {
        return Err(lacking("cpuset", cpus));
    }
    Ok(())
}

fn description(spec: &Spec, facts: Facts) -> Description {
    let expected = Expected {
        network: if spec.get("net") == Some("host") { Network::Host } else { Network::Loopback },
        seccomp: Some(if spec.get("seccomp") == Some("default") { 2 } else { 0 }),
        root: if spec.get("snapshotter") == Some("native") { &[] } else { &["overlay"] },
        snapshotter: spec.get("snapshotter").map(str::to_owned),
        // Its cgroup is visible only where it is mounted, which dunnage has `ctr` do for limits alone.
        limits: Limits::of(spec),
        confined: Confined::of(spec),
        ..Expected::container()
    };
    let mut offers = [&Need::CONTAINER[..], &[Need::Images]].concat();
    offers.retain(|need| *need != Need::Lifecycle || verbs::is_created_apart(spec));
    Description { offers, makes: &[ObjectKind::Image], ..Description::new(spec, facts, expected) }
}

/// The socket: the one named, else `$CONTAINERD_ADDRESS` as for `ctr` itself, else the first one that accepts
/// a connection. `ctr` waits ten seconds on a dead socket; this check is immediate.
fn address(named: Option<&str>) -> Result<String, Unavailable> {
    let variable = std::env::var("CONTAINERD_ADDRESS").ok().filter(|address| !address.is_empty());
    let named = named.map(str::to_owned).or(variable);
    let candidates = match &named {
        Some(address) => vec![address.strip_prefix("unix://").unwrap_or(address)],
        None => SOCKETS.to_vec(),
    };
    let mut refusals = Vec::new();
    for address in candidates {
        match UnixStream::connect(address) {
            Ok(_) => return Ok(address.to_owned()),
            Err(error) => refusals.push((address, error)),
        }
    }
    let is_denied = |error: &std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    let remedy = match refusals.iter().any(|(_, error)| is_denied(error)) {
        true => "run as root: containerd's socket belongs to root",
        false => "start the daemon: `systemctl start containerd`, or `containerd &` as root",
    };
    let told: Vec<_> = refusals.iter().map(|(address, error)| format!("`{address}`: {error}")).collect();
    Err(Unavailable::because(format!("containerd does not answer: {}", told.join("; "))).with_remedy(remedy))
}

/// The runtime's executable, where it is known; an error if a named runtime is not found.
fn runtime(asked: Option<&str>) -> Result<Option<PathBuf>, Unavailable> {
    match asked {
        None => Ok(on_path("runc")),
        Some("runsc") => Err(Unavailable::because(
            "containerd cannot run `runsc` in place of runc: it starts `runsc` through a separate shim",
        )
        .with_remedy("measure the runtime itself: `runsc`")),
        Some(name) => on_path(name).map(Some).ok_or_else(|| {
            let remedy = format!("install the package `{name}`");
            Unavailable::absent(&format!("the runtime `{name}` is "), name, &remedy)
        }),
    }
}

/// The shim that the daemon starts for each container, in the daemon's directory or on the search path.
fn shim(daemon: &Path) -> Result<Option<Component>, Unavailable> {
    let name = "containerd-shim-runc-v2";
    let beside = daemon.parent().map(|directory| directory.join(name)).filter(|path| path.is_file());
    let Some(path) = beside.or_else(|| on_path(name)) else { return Ok(None) };
    let version = line_after(&Client::of(&*path).ask(&["-v"])?, "Version:").unwrap_or_default();
    identified("shim", &path, &version).map(Some)
}

fn line_after(text: &str, word: &str) -> Option<String> {
    text.split_once(word)?.1.lines().next().map(|line| line.trim().to_owned())
}

impl Containerd {
    fn key(&self, key: &str) -> Option<&str> {
        self.about.spec.get(key)
    }

    /// The arguments of a verb that makes a container, from the verb to the probe's order.
    fn making(&self, verb: &[&str], run: &RunContext, name: &str, entrypoint: Entrypoint<'_>) -> Vec<String> {
        let own = entrypoint.image().and_then(Object::name);
        let usual = || self.image.as_deref().expect("`prepare` provides the image before any launch");
        let image = own.unwrap_or_else(usual);
        let mut all = Vec::new();
        let mut add = |words: &[&str]| all.extend(words.iter().map(|word| (*word).to_owned()));
        let [id, state] = &Engine::labels(run);
        add(verb);
        add(&[id, state]);
        if self.key("net") == Some("host") {
            add(&["--net-host"]);
        }
        if self.key("seccomp") == Some("default") {
            add(&["--seccomp"]);
        }
        let limits = entrypoint.limits(&self.about.spec).of_cgroup();
        if let Some(CpuLimit { quota_us, period_us, .. }) = limits.cpu {
            add(&["--cpu-quota", &quota_us.to_string(), "--cpu-period", &period_us.to_string()]);
        }
        if let Some(bytes) = limits.memory {
            add(&["--memory-limit", &bytes.to_string()]);
        }
        let Confined { ulimits, cpus } = &self.about.expected.confined;
        if let Some(files) = ulimits.first() {
            add(&[OPTIONS[0], &files.value()]);
        }
        if !cpus.is_empty() {
            add(&[OPTIONS[1], &cpus_text(cpus)]);
        }
        if let Some(snapshotter) = self.key("snapshotter") {
            add(&["--snapshotter", snapshotter]);
        }
        if let (Some(_), Some(path)) = (&self.about.spec.runtime, &self.runtime) {
            add(&["--runc-binary", &path.to_string_lossy()]);
        }
        if self.about.expected.limits.is_some() {
            // Limits are read back from the cgroup itself, which `ctr` does not mount by default.
            add(&["--mount", "type=cgroup,src=cgroup,dst=/sys/fs/cgroup,options=ro:nosuid:noexec:nodev"]);
        }
        let lacks_the_probe = own.is_none() && self.key("image").is_some_and(|image| image != "small");
        if run.lays_in_the_probe || lacks_the_probe {
            let source = run.place.executable.display();
            add(&["--mount", &format!("type=bind,src={source},dst={EXECUTABLE},options=rbind:ro")]);
        }
        for mount in entrypoint.mounts() {
            let (host, inside, access) =
                (mount.host.display(), mount.inside.display(), mount.access.option());
            add(&["--mount", &format!("type=bind,src={host},dst={inside},options=rbind:{access}")]);
        }
        add(&[image, name, EXECUTABLE, PROBE]);
        all.extend(entrypoint.words(self.about.expected.detail()));
        all
    }

    /// The image to run; dunnage's own is imported if it is missing.
    fn provide_image(&self, run: &RunContext) -> Result<String, Abort> {
        let wanted = match self.key("image") {
            None | Some("small") => run.place.reference.clone(),
            Some(named) => named.to_owned(),
        };
        if self.ctr.has_image(&wanted)? {
            return Ok(wanted);
        }
        if wanted != run.place.reference {
            return Err(Failure::environment(format!(
                "no image `{wanted}` in containerd's namespace `{NAMESPACE}`: import it with `ctr --namespace {NAMESPACE} images \
                 import`; dunnage never pulls images"
            ))
            .into());
        }
        let bytes = std::fs::read(&run.place.executable)
            .or_environment(format_args!("cannot read `{}`", run.place.executable.display()))?;
        self.import(&Image::small(&bytes), run)?;
        Ok(wanted)
    }

    fn import(&self, image: &Image<'_>, run: &RunContext) -> Result<(), Abort> {
        let import = |archive: &Path| self.ctr.import(archive, &image.reference, self.key("snapshotter"));
        resources::load_image(image, &self.about.spec, run, import)
    }
}

impl Subject for Containerd {
    fn about(&self) -> &Description {
        &self.about
    }

    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        let ObjectSpec::Image(executable, layers) = asked else {
            return Err(resources::not_made(&self.about.spec, asked.kind()).into());
        };
        let image = resources::layered(executable, layers, run);
        let name = image.reference.clone();
        let record = resources::of_subject(ObjectKind::Image.resource(), &self.about.spec, &name);
        run.owner.make(ObjectKind::Image.resource(), record, || {
            self.import(&image, run)?;
            Ok(Object::Named(name.clone()))
        })
    }

    fn unmake(&self, object: ObjectKind, name: &str, _: &str) -> Result<Found, Failure> {
        if object == ObjectKind::Image && self.ctr.has_image(name)? {
            self.ctr.insist(&["images", "delete", "--sync", name])?;
            return Ok(Found::Yes);
        }
        Ok(Found::No)
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        if draft.request.limits.pids.is_some() {
            let reason =
                "`ctr` has no option for a limit of processes: take `docker`, `podman` or the runtime itself";
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        Ok(Box::new(OfContainerd { containerd: self, draft, first: None, entries: 0 }))
    }

    fn daemons(&self) -> Result<&[i32], &str> {
        self.daemons.as_deref().map_err(String::as_str)
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        self.image = Some(self.provide_image(run)?);
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        let name = run.next_name();
        let program = self.ctr.program(&self.making(&["run", "--rm"], run, &name, entrypoint))?;
        let call =
            Call { runtime: self.runtime.as_deref(), ..Call::new(&name, &self.about.expected, entrypoint) };
        let discard = || self.ctr.remove(&name, self.key("snapshotter"));
        let part = || client::by_command(run, &program, entrypoint);
        recorded(run, &self.about.spec, &name, || client::launch(run, self.daemons(), &call, part), discard)
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        self.ctr.remove(name, self.key("snapshotter"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshotter_that_does_not_serve_is_refused_with_what_it_needs() {
        let refused = |asked: &str, state: &str| {
            let known = [("overlayfs".to_owned(), "ok".to_owned()), ("erofs".to_owned(), state.to_owned())];
            check_snapshotter(asked, &known, "2.1.9").err()
        };
        assert_eq!((refused("overlayfs", "ok"), refused("erofs", "ok")), (None, None));
        let skipped = refused("erofs", "skip").unwrap();
        assert!(skipped.reason.contains("does not serve: `skip`"), "{skipped:?}");
        assert!(skipped.remedy.unwrap().contains("mkfs.erofs"));
        assert!(refused("native", "ok").unwrap().reason.contains("2.1.9 has no snapshotter `native`"));
        let old = check_snapshotter("erofs", &[], "1.6.20").unwrap_err();
        assert!(
            old.reason.contains("1.6.20 has no snapshotter `erofs`, which came with containerd 2.1"),
            "{old:?}"
        );
    }
}
