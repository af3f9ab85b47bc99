//! Collects the facts: asks programs for their versions, and reads what their daemons have made.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Daemon, Engine, Program, Programs, Root, Socket};
use crate::host::mounts::{self, Storage};
use crate::subject::component::Client;
use crate::subject::{Unavailable, docker, on_path, podman};
use crate::sys::{cgroup, filesystem, process};

/// Programs whose version is asked.
const ASKED: [&str; 8] = ["docker", "podman", "ctr", "containerd", "crun", "runc", "youki", "runsc"];
/// Those that are also asked for their features (`features` of the OCI runtime specification).
const FEATURED: [&str; 3] = ["crun", "runc", "youki"];
/// Programs that are only searched for.
const SOUGHT: [&str; 4] = ["newuidmap", "newgidmap", "slirp4netns", "pasta"];

pub(super) fn programs() -> Programs {
    let found: Vec<Program> = ASKED.into_iter().chain(SOUGHT).filter_map(program).collect();
    let client = |name: &str| found.iter().find(|one| one.name == name).map(|one| Client::of(&*one.path));
    Programs {
        docker: client("docker").map(ask_docker),
        podman: client("podman").map(ask_podman),
        daemons: process::named(&["dockerd"]).iter().map(|one| daemon(one.pid)).collect(),
        bridge: interfaces().map(|names| names.iter().any(|name| name == "docker0")),
        network: network("self"),
        sockets: SOCKETS.iter().filter_map(|path| socket(Path::new(path))).collect(),
        left: left(),
        today: jiff::Timestamp::now().strftime("%F").to_string(),
        found,
    }
}

fn program(name: &'static str) -> Option<Program> {
    let client = Client::of(on_path(name)?);
    let version = match SOUGHT.contains(&name) {
        true => Ok(String::new()),
        false => client.version().map_err(|why| why.reason),
    };
    let is_featured = FEATURED.contains(&name) && version.is_ok();
    let cgroups = is_featured.then(|| features(&client)).flatten();
    Some(Program { name, path: client.path, version, cgroups })
}

/// Which cgroup versions a runtime supports; older ones do not have the verb `features`.
fn features(runtime: &Client) -> Option<(bool, bool)> {
    let answer: Value = serde_json::from_str(&runtime.ask(&["features"]).ok()?).ok()?;
    let has = |version: &str| answer.pointer("/linux/cgroup")?.get(version)?.as_bool();
    Some((has("v1")?, has("v2")?))
}

fn ask_docker(client: Client) -> Result<Engine, Unavailable> {
    let info = docker::info(&client)?;
    let runtimes = info["Runtimes"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    Ok(Engine {
        // Without the daemon's own names for the runtimes that containerd brings.
        runtimes: runtimes.filter(|name| !name.starts_with("io.containerd.")).collect(),
        ..engine(&info, ["/ServerVersion", "/Driver", "/DockerRootDir"])
    })
}

fn ask_podman(client: Client) -> Result<Engine, Unavailable> {
    let (info, _) = podman::info(&client)?;
    Ok(engine(&info, ["/version/Version", "/store/graphDriverName", "/store/graphRoot"]))
}

/// An engine from its own answer, in which these fields hold version, storage driver and image directory.
fn engine(info: &Value, places: [&str; 3]) -> Engine {
    let text = |at: &str| info.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let [version, driver, root_directory] = places.map(text);
    Engine { version, driver, root: root(&root_directory), runtimes: Vec::new() }
}

fn root(path: &str) -> Option<Root> {
    let path = Some(path).filter(|path| !path.is_empty()).map(Path::new)?;
    let left = mounts::real(path).and_then(|real| filesystem::left(&real).ok());
    Some(Root { storage: Storage::under(path)?, left })
}

fn network(process: &str) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn daemon(pid: i32) -> Daemon {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> =
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Daemon { pid, network: network(&pid.to_string()), bridgeless: is_bridgeless(&words) }
}

fn is_bridgeless(words: &[String]) -> bool {
    let apart = words.windows(2).any(|two| matches!(two[0].as_str(), "--bridge" | "-b") && two[1] == "none");
    apart || words.iter().any(|word| matches!(word.as_str(), "--bridge=none" | "-b=none" | "-bnone"))
}

fn interfaces() -> Option<Vec<String>> {
    let entries = std::fs::read_dir("/sys/class/net").ok()?;
    Some(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// The usual sockets of containerd: the system's, docker's, k3s's.
const SOCKETS: [&str; 3] = [
    "/run/containerd/containerd.sock",
    "/run/docker/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
];

fn socket(path: &Path) -> Option<Socket> {
    match UnixStream::connect(path) {
        Ok(_) => Some(Socket { path: path.to_owned(), answers: Ok(()) }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        // Other users than root see only that the directory exists.
        Err(_) if path.symlink_metadata().is_err() => None,
        Err(error) => Some(Socket { path: path.to_owned(), answers: Err(error.to_string()) }),
    }
}

/// containerd namespaces whose names become directories in every hierarchy.
const NAMESPACES: [&str; 2] = ["default", "example"];

fn left() -> Vec<PathBuf> {
    let hierarchies = cgroup::mounted().unwrap_or_default();
    let candidates =
        hierarchies.iter().flat_map(|one| NAMESPACES.iter().map(|namespace| one.mount.join(namespace)));
    candidates.filter(|path| path.is_dir() && is_empty(path)).collect()
}

/// Whether no process is in a cgroup or in any below it.
fn is_empty(group: &Path) -> bool {
    let procs = std::fs::read_to_string(group.join("cgroup.procs"));
    let below = std::fs::read_dir(group).into_iter().flatten().flatten();
    procs.is_ok_and(|procs| procs.trim().is_empty())
        && below.map(|entry| entry.path()).filter(|path| path.is_dir()).all(|path| is_empty(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_can_be_refused_in_each_way_of_writing() {
        let told = |line: &str| is_bridgeless(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(
            told("dockerd --bridge none") && told("dockerd -b none --debug") && told("dockerd --bridge=none")
        );
        assert!(!told("dockerd --bridge br0 none") && !told("dockerd --log-driver none") && !told("dockerd"));
    }

    #[test]
    fn a_group_is_empty_when_all_below_it_are() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("one");
        std::fs::create_dir(&below).unwrap();
        std::fs::write(place.path().join("cgroup.procs"), "").unwrap();
        std::fs::write(below.join("cgroup.procs"), "\n").unwrap();
        assert!(is_empty(place.path()));
        std::fs::write(below.join("cgroup.procs"), "12\n").unwrap();
        assert!(!is_empty(place.path()));
    }

    #[test]
    fn a_program_that_is_not_there_is_no_program() {
        assert_eq!(program("dunnage-has-no-such-program"), None);
    }
}
