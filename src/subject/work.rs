//! What a container is to be, and what its probe is asked to do: to start and end, to stay, or to work. Plain
//! data; how orders are carried out is in `probe::work`, their purpose in the experiments.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use dunnage_analysis::subject::{Mount, Spec};
use dunnage_orders as orders;
use regex_lite::Regex;

use super::RunContext;
use super::limits::Limits;
use super::resources::{Attachment, Object};
use crate::probe::{Detail, Task};
use crate::sys::container::Tied;
use crate::sys::spawn::{Line, Reading};
use crate::units::Nanos;

/// Work for the probe inside a subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Work {
    /// What is asked.
    pub order: orders::Order,
    /// Directories and files of the host that must be visible inside.
    pub mounts: Vec<Mount>,
    /// How long it takes once the probe has started; the time allowed to a launch is added.
    pub takes: Nanos,
    /// The file on the host for the probe's message, where standard output belongs to a program that the
    /// probe starts; it is among the mounts.
    pub message_file: Option<PathBuf>,
    /// The regular expression of the line to wait for in that program's output. When the line has come,
    /// dunnage tells the probe by resetting the permissions of the message file.
    pub line: Option<String>,
}

impl Work {
    /// Work that needs no mounts from the host.
    pub fn new(order: impl Into<orders::Order>, takes: Nanos) -> Work {
        Work { order: order.into(), mounts: Vec::new(), takes, message_file: None, line: None }
    }
}

/// What a container is to be, in addition to its subject's specification.
#[derive(Debug, Clone, Default)]
pub struct ContainerRequest {
    /// Paths of the host that are bound into it.
    pub mounts: Vec<Mount>,
    /// Volumes made by its subject, by name, each with its place in the container.
    pub volumes: Vec<(String, PathBuf)>,
    /// The image made by its subject that it runs instead of its subject's usual one.
    pub image: Option<Object>,
    /// What its program does.
    pub program: Resident,
    /// Whether it goes when its program ends, where the key `rm` says so; otherwise it stays until it is removed.
    pub may_go: bool,
    /// The network made by dunnage that it joins instead of its subject's usual one.
    pub network: Option<Attachment>,
    /// Its ports that are published at the host.
    pub ports: Vec<Port>,
    /// The resolver that its engine is given.
    pub resolver: Option<IpAddr>,
    /// Limits of its cgroup, in addition to those that its subject's keys ask for.
    pub limits: Limits,
    /// More options of its engine, after which nothing is known of how it is treated.
    pub options: Vec<String>,
    /// The path of its channel, if its program serves; set by `Container::create`.
    pub channel: Option<PathBuf>,
}

/// A port inside that is published at a port of the engine's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// The port inside.
    pub number: u16,
    /// What it takes.
    pub transport: Transport,
    /// The address of the host at which it is published.
    pub at: IpAddr,
}

/// The first of the ports that the key `publish` asks for; nothing in dunnage listens there.
const FIRST: u16 = 20_000;

/// The ports that a subject publishes in every container.
pub fn published(spec: &Spec) -> impl Iterator<Item = Port> {
    let port = |number| Port { number, transport: Transport::Tcp, at: Ipv4Addr::LOCALHOST.into() };
    (FIRST..FIRST + spec.published()).map(port)
}

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Transport {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }
}

/// What the probe does in a container that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resident {
    /// It waits for SIGTERM.
    #[default]
    Waits,
    /// It carries out orders from a channel.
    Serves,
}

/// What the probe of one container is to do.
#[derive(Debug, Clone, Copy)]
pub enum Entrypoint<'a> {
    /// A complete task.
    Task(Task),
    /// A work.
    Work(&'a Work),
    /// To stay until it is ended, or to serve, in a container like this.
    Stay(&'a ContainerRequest),
}

impl From<Task> for Entrypoint<'_> {
    fn from(task: Task) -> Self {
        Entrypoint::Task(task)
    }
}

impl<'a> From<&'a Work> for Entrypoint<'a> {
    fn from(work: &'a Work) -> Self {
        Entrypoint::Work(work)
    }
}

impl<'a> Entrypoint<'a> {
    /// The probe's arguments after its name; `detail` names what else it must read back.
    pub fn words(self, detail: Option<&str>) -> Vec<String> {
        match self {
            Entrypoint::Task(Task::Inherit) => {
                let detail = detail.and_then(|word| Detail::of(word.as_bytes())).unwrap_or_default();
                Entrypoint::Task(Task::Start).words(Detail { inherited: true, ..detail }.word())
            }
            Entrypoint::Task(task) => {
                [Some(task.argument()), detail].into_iter().flatten().map(str::to_owned).collect()
            }
            Entrypoint::Stay(request) => match &request.channel {
                None => Entrypoint::Task(Task::Stay).words(detail),
                Some(directory) => {
                    let directory = directory.to_string_lossy().into_owned();
                    vec![crate::probe::SERVE.to_owned(), directory, detail.unwrap_or("-").to_owned()]
                }
            },
            Entrypoint::Work(work) => {
                let order = serde_json::to_string(&work.order).expect("an order can be written");
                vec![crate::probe::WORK.to_owned(), detail.unwrap_or("-").to_owned(), order]
            }
        }
    }

    /// How long a launch with it may take before it counts as hung.
    pub fn allowed(self, run: &RunContext) -> Nanos {
        match self {
            Entrypoint::Work(work) => run.allowed + work.takes,
            Entrypoint::Task(_) | Entrypoint::Stay(_) => run.allowed,
        }
    }

    /// The file for the probe's message, if not standard output.
    pub fn message_file(self) -> Option<&'a Path> {
        match self {
            Entrypoint::Work(work) => work.message_file.as_deref(),
            Entrypoint::Task(_) | Entrypoint::Stay(_) => None,
        }
    }

    /// When its standard output is read: a program's as it arrives, a message at the end.
    pub fn reading(self) -> Reading {
        let Some(told) = self.message_file().map(Path::to_owned) else { return Reading::Late };
        let line = if let Entrypoint::Work(work) = self { work.line.as_deref() } else { None };
        let pattern = line.and_then(|line| Regex::new(line).ok());
        pattern.map_or(Reading::AtOnce, |pattern| Reading::For(Line { pattern, told }))
    }

    /// The process or thread whose death ends its container. A service ends when its channel is closed, and
    /// may outlive the thread that started it.
    pub fn tied(self) -> Tied {
        match self {
            Entrypoint::Stay(ContainerRequest { channel: Some(_), .. }) => Tied::ToNobody,
            _ => Tied::ToThread,
        }
    }

    /// The network made by dunnage that its container joins.
    pub fn network(self) -> Option<&'a Attachment> {
        match self {
            Entrypoint::Stay(request) => request.network.as_ref(),
            Entrypoint::Task(_) | Entrypoint::Work(_) => None,
        }
    }

    /// The ports of its container to publish: those that its subject has in every container, and its own.
    pub fn ports(self, spec: &Spec) -> Vec<Port> {
        let own = match self {
            Entrypoint::Stay(request) => &request.ports[..],
            Entrypoint::Task(_) | Entrypoint::Work(_) => &[],
        };
        published(spec).chain(own.iter().copied()).collect()
    }

    /// Limits of the container's cgroup: those that its subject's keys ask for, and its own.
    pub fn limits(self, spec: &Spec) -> Limits {
        let keys = Limits::of(spec).unwrap_or_default();
        match self {
            Entrypoint::Stay(request) => request.limits.or(keys),
            Entrypoint::Task(_) | Entrypoint::Work(_) => keys,
        }
    }

    /// The resolver to give to its engine.
    pub fn resolver(self) -> Option<IpAddr> {
        match self {
            Entrypoint::Stay(request) => request.resolver,
            Entrypoint::Task(_) | Entrypoint::Work(_) => None,
        }
    }

    /// The volumes of its container, by name, each with its place.
    pub fn volumes(self) -> &'a [(String, PathBuf)] {
        match self {
            Entrypoint::Stay(request) => &request.volumes,
            Entrypoint::Task(_) | Entrypoint::Work(_) => &[],
        }
    }

    /// More options of its engine.
    pub fn options(self) -> &'a [String] {
        match self {
            Entrypoint::Stay(request) => &request.options,
            Entrypoint::Task(_) | Entrypoint::Work(_) => &[],
        }
    }

    /// The image made by dunnage that its container runs instead of its subject's usual one.
    pub fn image(self) -> Option<&'a Object> {
        match self {
            Entrypoint::Stay(request) => request.image.as_ref(),
            Entrypoint::Task(_) | Entrypoint::Work(_) => None,
        }
    }

    /// What to bind into the container.
    pub fn mounts(self) -> &'a [Mount] {
        match self {
            Entrypoint::Task(_) => &[],
            Entrypoint::Work(work) => &work.mounts,
            Entrypoint::Stay(request) => &request.mounts,
        }
    }
}

#[cfg(test)]
mod tests {
    use dunnage_orders::work::Spin;

    use super::*;

    #[test]
    fn a_work_names_what_is_read_back_before_its_order() {
        let work = Work::new(Spin { millis: 10 }, Nanos(0));
        let order = r#"{"spin":{"millis":10}}"#;
        assert_eq!(Entrypoint::from(&work).words(None), ["work", "-", order]);
        assert_eq!(Entrypoint::from(&work).words(Some("limits")), ["work", "limits", order]);
        assert_eq!(Entrypoint::from(Task::Start).words(None), ["start"]);
        assert_eq!(Entrypoint::from(Task::Enter).words(Some("limits")), ["enter", "limits"]);
    }
}
