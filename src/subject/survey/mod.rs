//! Which engines and runtimes are here, whether they are healthy, and which of their defaults a reader of
//! figures must know. These are the doctor's questions about programs; `host::checks` has those about the
//! machine.
//!
//! One explicit list. A question is a pure function of a [`View`] and of [`Programs`], which are gathered
//! once, so every question is tested on planted programs. Questions are grouped by what a program does, not
//! by kinds of subjects: a new kind needs no line here. Deliberately absent: launches, with which the doctor
//! tries every kind.

mod containerd;
mod docker;
mod gather;
mod habits;
mod podman;
mod runtimes;
mod support;

use std::path::PathBuf;

use crate::host::checks::{Finding, View};
use crate::host::mounts::Storage;
use crate::subject::Unavailable;
use crate::sys::filesystem::Left;

/// Everything that the questions examine, gathered once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Programs {
    /// Programs on the search path.
    pub found: Vec<Program>,
    /// The answer of docker's daemon, or why there is none; `None` without a client.
    pub docker: Asked,
    /// The answer of podman, or why there is none; `None` if it is not installed.
    pub podman: Asked,
    /// Docker's daemons that run here.
    pub daemons: Vec<Daemon>,
    /// Whether the bridge `docker0` exists in dunnage's network namespace; `None` where interfaces cannot be
    /// listed.
    pub bridge: Option<bool>,
    /// dunnage's network namespace.
    pub network: Option<String>,
    /// Sockets of containerd that exist.
    pub sockets: Vec<Socket>,
    /// cgroups named after containerd's namespaces, without processes in them.
    pub left: Vec<PathBuf>,
    /// The day, as `2026-11-23`; empty where it is not known.
    pub today: String,
}

/// A program on the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// The first line of its answer to `--version`, or why there is none.
    pub version: Result<String, String>,
    /// For a runtime: whether it reports support for cgroup version 1 and version 2.
    pub cgroups: Option<(bool, bool)>,
}

/// The result of asking an engine; `None` if it is not installed.
pub type Asked = Option<Result<Engine, Unavailable>>;

/// What an engine reports about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Engine {
    /// Its version, or its daemon's.
    pub version: String,
    /// The runtimes that a daemon knows, by name.
    pub runtimes: Vec<String>,
    /// The storage driver.
    pub driver: String,
    /// The directory of its images and containers.
    pub root: Option<Root>,
}

/// A directory with an engine's images and containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The filesystem that it is on.
    pub storage: Storage,
    /// The free space there.
    pub left: Option<Left>,
}

/// A running `dockerd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// Its process id.
    pub pid: i32,
    /// Its network namespace, if it can be read.
    pub network: Option<String>,
    /// Whether it was started without a bridge.
    pub bridgeless: bool,
}

/// A Unix socket that containerd should listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Its path.
    pub path: PathBuf,
    /// Whether it accepts a connection, or why not.
    pub answers: Result<(), String>,
}

impl Programs {
    /// Gathers everything. Programs that hang are abandoned after the time that `component` allows.
    pub fn gather() -> Programs {
        gather::programs()
    }

    fn find(&self, name: &str) -> Option<&Program> {
        self.found.iter().find(|program| program.name == name)
    }

    /// The question that says why an engine does not answer: a trial of its subjects would take as long again
    /// and fail for the same reason.
    pub fn silent(&self, kind: &str) -> Option<&'static str> {
        let engines = [("docker", &self.docker, "docker-daemon"), ("podman", &self.podman, "podman-answers")];
        let (.., question) = engines
            .into_iter()
            .find(|(engine, asked, _)| *engine == kind && matches!(asked, Some(Err(_))))?;
        Some(question)
    }
}

/// The subject of the questions: their heading in reports.
pub const GROUP: &str = "engines and runtimes";

/// A question about programs.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// Its name in reports.
    pub name: &'static str,
    /// Why it matters for measuring.
    pub matters: &'static str,
    /// Answers it.
    pub run: fn(&View, &Programs) -> Finding,
}

const fn ask(name: &'static str, matters: &'static str, run: fn(&View, &Programs) -> Finding) -> Question {
    Question { name, matters, run }
}

/// Every question, in the order of reports.
pub static QUESTIONS: &[Question] = &[
    ask("runtime-crun", "engines and dunnage start containers with it", runtimes::crun),
    ask("runtime-runc", "engines and dunnage start containers with it", runtimes::runc),
    ask("runtime-youki", "supports cgroup version 1 only with a build feature", runtimes::youki),
    ask(
        "runtime-runsc",
        "gVisor runs its own kernel for each container, with its own clocks",
        runtimes::runsc,
    ),
    ask("docker-daemon", "the client can do nothing without its daemon", docker::daemon),
    ask(
        "docker-versions",
        "client and daemon are separate programs, and either can be slow",
        docker::versions,
    ),
    ask("docker-runtimes", "`docker+RUNTIME` needs a runtime that the daemon knows", docker::runtimes),
    ask(
        "docker-bridge",
        "a second daemon in the same network namespace can remove the bridge of the first",
        docker::bridge,
    ),
    ask("docker-storage", "it holds images, and the roots and logs of containers", |_, programs| {
        of_engine(&programs.docker, "docker-daemon", storage)
    }),
    ask("podman-answers", "podman has no daemon: each command starts from scratch", podman::answers),
    ask("podman-limits", "podman raises limits by default, which needs CAP_SYS_RESOURCE", podman::limits),
    ask(
        "podman-volatile",
        "writes in a root that is mounted `volatile` may never reach the disk",
        podman::volatile,
    ),
    ask("podman-storage", "it holds images, and the roots and logs of containers", |_, programs| {
        of_engine(&programs.podman, "podman-answers", storage)
    }),
    ask("rootless-helpers", "rootless engines map users and make networks with helpers", podman::helpers),
    ask("containerd-socket", "engines and `ctr` start containers through it", containerd::sockets),
    ask("containerd-leftovers", "`ctr` leaves cgroups named after its namespaces", containerd::leftovers),
    ask("support-ended", "figures of an unsupported stack say little about today's", support::ended),
    ask("stats-formulas", "`docker stats` and `podman stats` define memory differently", habits::stats),
    ask("image-archive", "one archive is loaded into every engine", habits::archive),
];

/// Every question with its answer.
pub fn run(view: &View, programs: &Programs) -> Vec<(&'static Question, Finding)> {
    QUESTIONS.iter().map(|question| (question, (question.run)(view, programs))).collect()
}

/// Answers a question about an engine that answers; otherwise refers to `daemon`.
fn of_engine(asked: &Asked, daemon: &str, question: impl FnOnce(&Engine) -> Finding) -> Finding {
    match asked {
        None => Finding::not_applicable("not installed"),
        Some(Err(_)) => Finding::not_applicable(format!("it does not answer; see `{daemon}`")),
        Some(Ok(engine)) => question(engine),
    }
}

/// The minimum for a run of one engine, with images and logs.
const NEEDED_BYTES: u64 = 256 << 20;
const WANTED_BYTES: u64 = 1 << 30;

/// The state of an engine's storage directory.
fn storage(Engine { driver, root, .. }: &Engine) -> Finding {
    let Some(Root { storage, left }) = root else {
        return Finding::not_applicable("the engine does not report where its images are");
    };
    let place =
        format!("`{}` on {} (`{}`)", storage.path.display(), storage.mount.filesystem, storage.mount.source);
    let room = left.map_or(u64::MAX, |left| left.bytes);
    let what = match left {
        Some(left) => format!("{driver} in {place}, {:.1} GiB left", left.bytes as f64 / f64::from(1 << 30)),
        None => format!("{driver} in {place}"),
    };
    let fix = format!("free space below `{}`", storage.path.display());
    if room < NEEDED_BYTES {
        return Finding::problem(what).advice(fix);
    }
    if room < WANTED_BYTES {
        return Finding::warning(what).advice(fix);
    }
    match (driver.as_str(), storage.mount.filesystem.as_str()) {
        ("vfs", _) => Finding::warning(format!("{what}: every container gets a full copy of its image"))
            .advice("use the storage driver overlay2 (docker) or overlay (podman)"),
        (_, "tmpfs" | "ramfs") => {
            Finding::warning(format!("{what}: nothing in it reaches a disk")).advice("keep images on a disk")
        }
        _ => Finding::ok(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::checks::State;

    #[test]
    fn names_are_unique_also_among_the_checks_of_the_machine() {
        let machine = crate::host::checks::CHECKS.iter().flat_map(|(_, all)| *all).map(|check| check.name);
        let mut names: Vec<_> = QUESTIONS.iter().map(|question| question.name).chain(machine).collect();
        names.extend(crate::subject::KINDS.iter().map(|kind| kind.name));
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn a_machine_without_engines_is_not_accused() {
        let view = crate::host::checks::planted();
        for (question, finding) in run(&view, &Programs::default()) {
            assert!(finding.state <= State::Ok, "{}: {finding:?}", question.name);
        }
    }

    #[test]
    fn roots_of_engines_want_room_and_a_disk() {
        let state = |bytes: u64, filesystem: &str, driver: &str| {
            let root = Some(planted::root(bytes, filesystem));
            storage(&Engine { driver: driver.into(), root, ..Engine::default() }).state
        };
        assert_eq!(state(WANTED_BYTES, "ext4", "overlay2"), State::Ok);
        assert_eq!(state(WANTED_BYTES - 1, "ext4", "overlay2"), State::Warning);
        assert_eq!(state(NEEDED_BYTES - 1, "ext4", "overlay2"), State::Problem);
        assert_eq!(state(WANTED_BYTES, "tmpfs", "overlay2"), State::Warning);
        assert_eq!(state(WANTED_BYTES, "ext4", "vfs"), State::Warning);
        assert_eq!(storage(&Engine::default()).state, State::NotApplicable);
    }

    #[test]
    fn an_engine_that_does_not_answer_is_told_by_its_question() {
        let broken =
            Programs { docker: Some(Err(Unavailable::because("permission denied"))), ..planted::all() };
        assert_eq!((broken.silent("docker"), broken.silent("podman")), (Some("docker-daemon"), None));
        let absent = Programs::default();
        assert_eq!((absent.silent("docker"), absent.silent("podman")), (None, None));
        let questions: Vec<_> = QUESTIONS.iter().map(|question| question.name).collect();
        let broken = Programs { podman: Some(Err(Unavailable::because("gone"))), ..broken };
        for kind in ["docker", "podman"] {
            assert!(broken.silent(kind).is_some_and(|question| questions.contains(&question)), "{kind}");
        }
    }
}

/// Programs for tests: a machine with everything installed.
#[cfg(test)]
mod planted {
    use super::*;
    use crate::host::mounts::Mount;

    pub(super) fn program(name: &'static str, version: &str) -> Program {
        let path = PathBuf::from(format!("/usr/bin/{name}"));
        Program { name, path, version: Ok(version.to_owned()), cgroups: Some((true, true)) }
    }

    pub(super) fn root(bytes: u64, filesystem: &str) -> Root {
        let storage = Storage {
            path: "/var/lib/engine".into(),
            mount: Mount {
                point: "/".into(),
                source: "/dev/sda1".into(),
                filesystem: filesystem.into(),
                ..Mount::default()
            },
        };
        Root { storage, left: Some(Left { bytes, files: None }) }
    }

    pub(super) fn all() -> Programs {
        let network = Some("net:[4026531840]".to_owned());
        let docker = Engine {
            version: "28.0.1".into(),
            runtimes: ["crun", "runc", "youki"].map(str::to_owned).to_vec(),
            driver: "overlay2".into(),
            root: Some(root(8 << 30, "ext4")),
        };
        let podman = Engine {
            version: "4.3.1".into(),
            driver: "overlay".into(),
            runtimes: Vec::new(),
            ..docker.clone()
        };
        Programs {
            found: vec![
                program("docker", "Docker version 28.0.1, build 1"),
                program("podman", "podman version 4.3.1"),
                program("crun", "crun version 1.8.1"),
                program("runc", "runc version 1.1.5"),
                program("youki", "youki version: 0.5.7"),
                program("ctr", "ctr containerd.io 1.6.20"),
                program("newuidmap", "?"),
                program("newgidmap", "?"),
                program("slirp4netns", "slirp4netns version 1.2.0"),
            ],
            docker: Some(Ok(docker)),
            podman: Some(Ok(podman)),
            daemons: vec![Daemon { pid: 7, network: network.clone(), bridgeless: false }],
            bridge: Some(true),
            network,
            sockets: vec![Socket { path: "/run/containerd/containerd.sock".into(), answers: Ok(()) }],
            left: Vec::new(),
            today: "2022-01-01".into(),
        }
    }
}
