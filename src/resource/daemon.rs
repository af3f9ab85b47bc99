//! A private daemon, docker's or containerd's, with its own data root, exec root, socket, pid file,
//! configuration, containerd and network namespace. The user's daemon is never asked, changed or restarted;
//! in its network namespace, another daemon without a bridge would remove `docker0`.
//!
//! Everything is in one directory of the run, whose path is in the command lines of the daemon and of its
//! containers' monitors. What the daemon holds is removed with it: containers, images, volumes, networks.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ready::{self, Ready};
use super::tool;
use super::{Found, Goes, Held, Keeps, Kind, Owner, Record, Scope, mounts, processes, remove_tree};
use crate::image::Digest;
use crate::outcome::{Abort, OrEnvironment};
use crate::sys::bounds::Bounds;
use crate::sys::remains::{self, Tokens};
use crate::sys::signals::Interrupts;
use crate::sys::{network, place, spawn::Program};
use crate::units::Nanos;

pub(crate) static KIND: Kind = Kind {
    name: "daemon",
    goes: Goes::First,
    keeps: Keeps::Crash,
    shown: |record| format!("the private daemon in `{}`", record.id),
    look: |record, scope| Ok(scope.look(Path::new(&record.id))),
    undo,
};

/// The kind of daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// `dockerd`, with its own `containerd`.
    Docker,
    /// `containerd` alone.
    Containerd,
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    /// Its socket.
    pub socket: PathBuf,
    /// From the start of its first program until the last one reported that it was ready.
    pub start_up: Nanos,
    /// The last one is dropped first.
    _programs: Vec<Ready>,
}

/// The number of lines from the end of a log that a message quotes.
const QUOTED_LINES: usize = 5;
/// Bytes at the end of a log in which these lines are looked for.
const QUOTED_BYTES: u64 = 1 << 16;
/// Docker's data root in the daemon's directory, unless it is elsewhere.
const DATA_ROOT: &str = "root";
/// The directory of the sockets of containerd's monitors, for every daemon.
const MONITORS: &str = "/run/containerd/s";
/// A containerd's tasks, below its own state directory.
const TASKS: &str = "c/io.containerd.runtime.v2.task";
/// The Kubernetes plug-in would listen on a port, and needs networks that dunnage does not make.
const CONTAINERD_CONFIG: &str = "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n";

/// How a daemon is set up.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The kind.
    pub engine: Engine,
    /// Additional options.
    pub options: &'a [&'a str],
    /// Docker's `daemon.json`.
    pub configuration: &'a str,
    /// Docker's data root, if it is not to be in the daemon's own directory. What is in it is not removed.
    pub data_root: Option<&'a Path>,
    /// A group that must be able to pass through its directory.
    pub let_through: Option<u32>,
    /// Limits that its programs, and so its containers, get instead of dunnage's.
    pub bounds: Option<&'a Bounds>,
}

/// Starts a daemon with these additional options; all its data is in the run's directory.
pub fn daemon(
    owner: &Arc<Owner>,
    interrupts: &Interrupts,
    engine: Engine,
    options: &[&str],
) -> Result<Held<Daemon>, Abort> {
    set_up(
        owner,
        interrupts,
        Setup { engine, options, configuration: "{}", data_root: None, let_through: None, bounds: None },
    )
}

/// Starts a daemon that is set up in this way.
pub fn set_up(owner: &Arc<Owner>, interrupts: &Interrupts, setup: Setup<'_>) -> Result<Held<Daemon>, Abort> {
    let Setup { engine, options, configuration, data_root, let_through, bounds } = setup;
    let containerd = tool::find("containerd", "containerd")?;
    let dockerd = match engine {
        Engine::Docker => Some(tool::find("dockerd", "docker.io")?),
        Engine::Containerd => None,
    };
    // The path of a socket in it is limited to 107 bytes.
    let directory = owner.workspace().join(format!("d{}", owner.next_number()));
    let data_root_above = data_root;
    let data_root = data_root.map_or_else(|| directory.join(DATA_ROOT), Path::to_owned).display().to_string();
    let record = Record::new(&KIND, directory.to_string_lossy()).with("data root", &*data_root);
    owner.make(&KIND, record, || {
        let within = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let write = |name: &str, text: &str| {
            let written = place::make(&directory).and_then(|()| fs::write(within(name), text));
            written.or_environment(format_args!("cannot write `{}`", within(name)))
        };
        write("containerd.toml", CONTAINERD_CONFIG)?;
        write("daemon.json", configuration)?;
        if let Some(group) = let_through {
            let place = data_root_above.unwrap_or(&directory);
            [&*directory, place]
                .into_iter()
                .try_for_each(|path| place::let_group_through(group, path, &owner.place.state))
                .or_environment(format_args!("cannot let group {group} reach `{}`", directory.display()))?;
        }
        let start = |program: &Path, words: &[&str]| start(program, words, &directory, bounds, interrupts);
        let (config, address) = (within("containerd.toml"), within("containerd.sock"));
        let (root, state) = (within("containerd"), within("c"));
        let mut arguments =
            vec!["--config", &config, "--address", &address, "--root", &root, "--state", &state];
        let more = if dockerd.is_some() { &[] } else { options };
        arguments.extend(more);
        let both = || -> Result<Daemon, Abort> {
            let first = start(&containerd, &arguments)?;
            let Some(dockerd) = &dockerd else {
                return Ok(Daemon {
                    socket: address.clone().into(),
                    start_up: first.start_up,
                    _programs: vec![first],
                });
            };
            let socket = directory.join("docker.sock");
            let host = format!("unix://{}", socket.display());
            let place = match let_through {
                Some(_) => {
                    passable(&directory).or_environment("cannot make a directory for docker's sockets")?
                }
                None => directory.join("exec"),
            };
            let own = [place.to_string_lossy().into_owned(), within("pid"), within("daemon.json")];
            let mut arguments = vec!["--host", &host, "--data-root", &data_root, "--exec-root", &own[0]];
            arguments.extend(["--pidfile", &own[1], "--config-file", &own[2], "--containerd", &address]);
            arguments.extend(["--shutdown-timeout", "5"]);
            arguments.extend(options);
            let second = start(dockerd, &arguments)?;
            let start_up = Nanos(first.start_up.0 + second.start_up.0);
            Ok(Daemon { socket, start_up, _programs: vec![second, first] })
        };
        network::in_a_new_one(both).or_environment("cannot make a network namespace")?
    })
}

/// Where the exec root of a daemon with mapped users is. Containers' root must reach it, and where another user may not enter a
/// directory above it docker makes one next to that, which belongs to root inside, wherever that is.
fn exec_root(directory: &Path) -> PathBuf {
    let name = Digest::of(directory.as_os_str().as_encoded_bytes()).short();
    Path::new("/run").join(format!("dunnage-{name}"))
}

/// Makes that directory: anyone may pass, and only root changes or lists it. In a sticky directory others cannot replace it.
fn passable(directory: &Path) -> io::Result<PathBuf> {
    let path = exec_root(directory);
    let above = fs::symlink_metadata("/run")?;
    let is_open = above.mode() & 0o022 != 0 && above.mode() & 0o1000 == 0;
    if !above.is_dir() || above.uid() != 0 || is_open {
        return Err(io::Error::other("others may change `/run`"));
    }
    fs::create_dir(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o711))?;
    Ok(path)
}

/// Removes it, if there is one.
fn remove_exec_root(directory: &Path) -> Result<(), String> {
    let path = exec_root(directory);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() && found.uid() == 0 => {
            mounts::unmount(&path)?;
            remove_tree(&path).map(drop)
        }
        _ => Ok(()),
    }
}

/// Starts a daemon's program with its output in a file, since nothing would drain a pipe.
fn start(
    program: &Path,
    arguments: &[&str],
    directory: &Path,
    bounds: Option<&Bounds>,
    interrupts: &Interrupts,
) -> Result<Ready, Abort> {
    let log = directory.join(format!("{}.log", program.file_name().unwrap_or_default().to_string_lossy()));
    let (program, path) = (program.to_string_lossy(), log.to_string_lossy());
    let script = ["-c", "exec 2>\"$0\" >&2 \"$@\"", &path, &program];
    let words = script.iter().chain(arguments);
    let program =
        Program::new(Path::new("/bin/sh"), words).or_environment(format_args!("cannot start `{program}`"))?;
    let program = match bounds {
        Some(bounds) => program.bounded(bounds),
        None => program,
    };
    let said = || last_lines(&end_of(&log).unwrap_or_default()).into_bytes();
    ready::start(program, &directory.join("ready"), &said, interrupts)
}

/// The last bytes of a log, which may have any length.
fn end_of(log: &Path) -> io::Result<String> {
    let mut file = fs::File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(QUOTED_BYTES)))?;
    let mut end = Vec::new();
    file.take(QUOTED_BYTES).read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n")
}

/// Ends it with its containers and their monitors, and removes what they leave: mounts, cgroups, sockets,
/// files.
fn undo(record: &Record, _: &Scope<'_>) -> Result<Found, String> {
    let directory = Path::new(&record.id);
    let data_root = record.attribute("data root").map_or_else(|_| directory.join(DATA_ROOT), PathBuf::from);
    let held = containers(directory, &data_root);
    processes::end(&record.id, &["dockerd", "containerd"]);
    mounts::unmount(directory)?;
    let ids = held.iter().map(|(_, id)| id.clone());
    if let Ok(tokens) = Tokens::new(ids) {
        let left = remains::find(&tokens).map_err(|error| error.to_string())?;
        // Without processes they are empty; one that is not belongs to another program.
        for item in left.iter().filter(|item| item.kind == remains::Kind::Cgroup) {
            let _ = fs::remove_dir(&item.name);
        }
    }
    for (namespace, id) in &held {
        let address = directory.join("containerd.sock").join(namespace).join(id);
        let name = Digest::of(address.to_string_lossy().as_bytes()).hex();
        let _ = fs::remove_file(Path::new(MONITORS).join(name));
    }
    remove_exec_root(directory)?;
    remove_tree(directory)
}

/// The containers of a daemon in this directory, each with its containerd namespace.
fn containers(directory: &Path, data_root: &Path) -> Vec<(String, String)> {
    let names = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    // With mapped users everything is in a directory named after root's ids, and the namespace is too.
    let remapped = names(data_root).into_iter().filter(|name| {
        let is_number = |part: &str| part.parse::<u32>().is_ok();
        name.split_once('.').is_some_and(|(user, group)| is_number(user) && is_number(group))
    });
    let roots = remapped.map(|ids| (format!("moby-{ids}"), data_root.join(ids)));
    let roots = std::iter::once(("moby".to_owned(), data_root.to_owned())).chain(roots);
    let of_docker = roots.flat_map(|(namespace, root)| {
        let ids = names(&root.join("containers"));
        ids.into_iter().map(move |id| (namespace.clone(), id))
    });
    let tasks = directory.join(TASKS);
    let of_containerd = names(&tasks).into_iter().flat_map(|namespace| {
        let ids = names(&tasks.join(&namespace));
        ids.into_iter().map(move |id| (namespace.clone(), id))
    });
    let mut all: Vec<_> = of_docker.chain(of_containerd).collect();
    all.sort();
    all.dedup();
    // Shorter ones could be part of an unrelated name.
    all.retain(|(_, id)| id.len() >= remains::SHORTEST_TOKEN);
    all
}
