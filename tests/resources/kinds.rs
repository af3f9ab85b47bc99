//! The kinds of resources, each with a way to make one.

use std::sync::OnceLock;

use dunnage::outcome::Abort;
use dunnage::resource::Held;
use dunnage::resource::address::address;
use dunnage::resource::daemon::{Daemon, Engine, daemon};
use dunnage::resource::filesystem::{TYPES, filesystem};
use dunnage::resource::mounts::{Source, mount};
use dunnage::subject::{Container, ContainerRequest, ObjectSpec, RunContext, Spec, Subject, kind_of};

use crate::left::ENGINES;
use crate::support::Need;

type Make = for<'a> fn(&'a RunContext) -> Result<Box<dyn Finish + 'a>, Abort>;

/// A way to make one.
pub struct Case {
    pub name: &'static str,
    /// Its name in the journal.
    pub kind: &'static str,
    pub needs: &'static [Need],
    pub make: Make,
}

impl Case {
    /// The engines that may hold it.
    pub fn engines(&self) -> Vec<(&'static str, Need)> {
        ENGINES.into_iter().filter(|(_, need)| self.needs.contains(need)).collect()
    }
}

/// A held resource of any type.
pub trait Finish {
    fn finish(self: Box<Self>) -> Result<(), String>;
}

impl<T> Finish for Held<T> {
    fn finish(self: Box<Self>) -> Result<(), String> {
        Held::finish(*self)
    }
}

fn boxed<T: 'static>(held: Held<T>) -> Box<dyn Finish> {
    Box::new(held)
}

pub fn cases() -> Vec<Case> {
    let case = |name, kind, needs, make| Case { name, kind, needs, make };
    vec![
        case("tmpfs", "mount", &[Need::Root], |run| {
            mount(&run.owner, Source::Filesystem("tmpfs", "size=1m", None)).map(boxed)
        }),
        case("bind", "mount", &[Need::Root], |run| {
            mount(&run.owner, Source::Bind("/usr".as_ref())).map(boxed)
        }),
        case("ext4", "filesystem", &[Need::Ext4], |run| {
            filesystem(&run.owner, &run.interrupts, TYPES[0], 64 << 20).map(boxed)
        }),
        case("xfs", "filesystem", &[Need::Xfs], |run| {
            filesystem(&run.owner, &run.interrupts, TYPES[1], 0).map(boxed)
        }),
        case("btrfs", "filesystem", &[Need::Btrfs], |run| {
            filesystem(&run.owner, &run.interrupts, TYPES[2], 0).map(boxed)
        }),
        case("containerd", "daemon", &[Need::Dockerd], |run| {
            daemon(&run.owner, &run.interrupts, Engine::Containerd, &[]).map(boxed)
        }),
        case("dockerd", "daemon", &[Need::Dockerd], |run| private(run).map(boxed)),
        case("container in dockerd", "daemon", &[Need::Dockerd, Need::Docker], container_in_a_private_daemon),
        case("store", "store", &[Need::Podman, Need::Root], |run| prepared("podman:storage=vfs", run)),
        case("address", "address", &[Need::Root], |run| address(&run.owner).map(boxed)),
        case("floor image", "directory", &[Need::Root], |run| made("floor", image(), run)),
        case("docker network", "network", &[Need::Docker], |run| made("docker", ObjectSpec::Network, run)),
        case("docker volume", "volume", &[Need::Docker], |run| made("docker", ObjectSpec::Volume, run)),
        case("docker image", "image", &[Need::Docker], |run| made("docker", image(), run)),
        case("docker api volume", "volume", &[Need::Docker], |run| {
            made("docker:client=api", ObjectSpec::Volume, run)
        }),
        case("docker api image", "image", &[Need::Docker], |run| made("docker:client=api", image(), run)),
        case("podman network", "network", &[Need::Podman], |run| made("podman", ObjectSpec::Network, run)),
        case("podman volume", "volume", &[Need::Podman], |run| made("podman", ObjectSpec::Volume, run)),
        case("podman image", "image", &[Need::Podman], |run| made("podman", image(), run)),
    ]
}

fn private(run: &RunContext) -> Result<Held<Daemon>, Abort> {
    daemon(&run.owner, &run.interrupts, Engine::Docker, &["--storage-driver", "vfs"])
}

pub fn subject(spec: &str, run: &RunContext) -> Box<dyn Subject> {
    let spec = Spec::parse(spec).expect("a subject");
    let kind = kind_of(&spec).expect("a kind");
    (kind.build)(&spec, &run.place).unwrap_or_else(|why| panic!("{spec}: {}", why.reason))
}

fn made(spec: &str, wish: ObjectSpec<'_>, run: &RunContext) -> Result<Box<dyn Finish>, Abort> {
    let subject = subject(spec, run);
    assert!(subject.about().makes.contains(&wish.kind()), "{spec} offers what it makes");
    subject.make(wish, run).map(boxed)
}

struct Prepared(Box<dyn Subject>);

impl Finish for Prepared {
    fn finish(self: Box<Self>) -> Result<(), String> {
        drop(self.0);
        Ok(())
    }
}

/// A subject with what it makes for itself.
fn prepared(spec: &str, run: &RunContext) -> Result<Box<dyn Finish>, Abort> {
    let mut subject = subject(spec, run);
    subject.prepare(run)?;
    Ok(Box::new(Prepared(subject)))
}

/// Twelve layers with two files each.
pub fn image() -> ObjectSpec<'static> {
    static LAYERS: OnceLock<Vec<Vec<(String, u64)>>> = OnceLock::new();
    let layers = LAYERS.get_or_init(|| {
        let file = |layer: usize, name: &str| (format!("data/{layer}/{name}"), 1000);
        (0..12)
            .map(|layer| vec![file(layer, "a"), ("data/same".to_owned(), layer as u64), file(layer, "b")])
            .collect()
    });
    ObjectSpec::Image(b"an executable that is never started", layers)
}

struct Running<'a>(Container<'a>, Held<Daemon>);

impl Finish for Running<'_> {
    fn finish(self: Box<Self>) -> Result<(), String> {
        drop(self.0);
        self.1.finish()
    }
}

/// A running container, in a daemon of the run.
fn container_in_a_private_daemon<'a>(run: &'a RunContext) -> Result<Box<dyn Finish + 'a>, Abort> {
    let daemon = private(run)?;
    let spec = format!("docker:host=\"unix://{}\",net=none", daemon.socket.display());
    let subject: &'static mut dyn Subject = Box::leak(subject(&spec, run));
    subject.prepare(run)?;
    let mut container = Container::create(subject, &ContainerRequest::default(), run)?;
    container.start()?;
    Ok(Box::new(Running(container, daemon)))
}
