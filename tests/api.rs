//! Engines over their API compared with the same engines by their command line: containers must be alike, and
//! a service that dunnage starts must end with dunnage.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Map, Value};

use crate::dunnage::Dunnage;
use crate::left;
use crate::server::{Reply, Server};
use crate::support::{Need, lacks};

/// The meaning of a value for an engine: a missing one means the same as empty, zero and false.
fn telling(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(all) => {
            let all: Vec<_> = all.iter().filter_map(telling).collect();
            (!all.is_empty()).then_some(Value::Array(all))
        }
        Value::Object(all) => {
            let all: Map<_, _> =
                all.iter().filter_map(|(key, value)| Some((key.clone(), telling(value)?))).collect();
            (!all.is_empty()).then_some(Value::Object(all))
        }
        other => Some(other.clone()),
    }
}

/// The last request to make a container that passed through a socket in front of the real daemon.
fn made_by(subject: &str, socket: &Path) -> Map<String, Value> {
    let server = Server::start(socket, Some(Path::new("/var/run/docker.sock")), |_, _| Reply::Usual);
    let dunnage = Dunnage::new();
    let separator = if subject.contains(':') { ',' } else { ':' };
    let subject = format!("{subject}{separator}host=\"unix://{}\"", socket.display());
    let ran = dunnage.run(&format!("check start -s {subject}"));
    assert_eq!(ran.code, 0, "{ran}");
    let bodies: Vec<_> =
        server.requests().iter().filter(|shown| shown.contains("/containers/create?")).cloned().collect();
    let body = server.bodies(bodies.last().expect("a container was made")).remove(0);
    let Some(Value::Object(mut body)) = telling(&serde_json::from_str(&body).expect("JSON")) else {
        panic!("{body}")
    };
    // The labels name the run and its directory; the client sends the others without effect.
    for key in ["Labels", "NetworkingConfig"] {
        body.remove(key);
    }
    body
}

#[test]
fn docker_is_asked_for_the_same_container_over_its_api_as_by_its_client() {
    const TEST: &str = "docker_is_asked_for_the_same_container_over_its_api_as_by_its_client";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let socket = place.path().join("docker.sock");
    let mut wanted = vec!["docker", "docker:net=host,userns=host", "docker:tty=true,pid=host"];
    wanted.push("docker:net=none,log=none,seccomp=off,cpus=0.5,memory=64MiB");
    if !lacks(TEST, Need::DockerCrun) {
        wanted.push("docker+crun:net=none");
    }
    for subject in wanted {
        let mut by_client = made_by(subject, &socket);
        let separator = if subject.contains(':') { ',' } else { ':' };
        let mut by_api = made_by(&format!("{subject}{separator}client=api"), &socket);
        // The one intended difference: here the container is removed by a separate request.
        let host = by_client.get_mut("HostConfig").and_then(Value::as_object_mut).expect("a host");
        assert_eq!(host.remove("AutoRemove"), Some(Value::Bool(true)), "{subject}");
        let (client, api) = (by_client.remove("HostConfig"), by_api.remove("HostConfig"));
        assert_eq!(client, api, "{subject}");
        assert_eq!(by_client, by_api, "{subject}");
    }
}

/// The processes that serve podman's API from this state directory.
fn services(dunnage: &Dunnage) -> Vec<i32> {
    let token = format!("unix://{}/runs/", dunnage.state().display());
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let serves = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&token)
    };
    pids.filter(serves).collect()
}

/// A run over podman's API that has reached its second round, and its process.
fn begun(dunnage: &Dunnage) -> std::process::Child {
    let arguments = "run start -s podman:client=api --rounds 200 --set prestate=idle --events json -o DIR";
    let mut child = dunnage.command(arguments).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut events = BufReader::new(child.stdout.as_mut().expect("a pipe"));
    let mut line = String::new();
    for _ in 0..6 {
        line.clear();
        assert!(events.read_line(&mut line).is_ok_and(|length| length > 0), "it ended early");
    }
    child
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: signals a process that this test made.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn lacks_podman(test: &str) -> bool {
    lacks(test, Need::Podman) || lacks(test, Need::Root)
}

#[test]
fn the_service_of_podman_ends_with_the_run_and_says_how_long_it_took_to_start() {
    const TEST: &str = "the_service_of_podman_ends_with_the_run_and_says_how_long_it_took_to_start";
    if lacks_podman(TEST) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s podman:client=api --rounds 1 --set prestate=idle -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = ::dunnage::record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(recorded.failures, Vec::new());
    let notes = &recorded.environment.subjects["podman:client=api"].notes;
    assert!(notes.contains_key("service start-up") && notes.contains_key("api version"), "{notes:?}");
    assert_eq!(services(&dunnage), Vec::<i32>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

/// podman would keep the monitor of each entered process for five minutes.
#[test]
fn the_monitors_of_podman_end_with_their_container() {
    const TEST: &str = "the_monitors_of_podman_end_with_their_container";
    if lacks_podman(TEST) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run exec -s podman:client=api --rounds 1 --set prestate=primed -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = ::dunnage::record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(recorded.failures, Vec::new());
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new());
}

#[test]
fn the_service_of_podman_ends_when_the_run_is_stopped() {
    const TEST: &str = "the_service_of_podman_ends_when_the_run_is_stopped";
    if lacks_podman(TEST) {
        return;
    }
    let dunnage = Dunnage::new();
    let mut child = begun(&dunnage);
    assert!(!services(&dunnage).is_empty());
    kill(child.id() as i32, libc::SIGINT);
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(5));
    assert_eq!(services(&dunnage), Vec::<i32>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn the_service_of_podman_ends_with_a_check_that_cannot_go_on() {
    const TEST: &str = "the_service_of_podman_ends_with_a_check_that_cannot_go_on";
    if lacks_podman(TEST) {
        return;
    }
    let dunnage = Dunnage::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let status =
        dunnage.command("check start -s podman:client=api").stdout(full).status().expect("it starts");
    assert_eq!(status.code(), Some(1));
    assert_eq!(services(&dunnage), Vec::<i32>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn the_service_of_podman_is_swept_when_dunnage_was_killed() {
    const TEST: &str = "the_service_of_podman_is_swept_when_dunnage_was_killed";
    if lacks_podman(TEST) {
        return;
    }
    let dunnage = Dunnage::new();
    let mut child = begun(&dunnage);
    kill(child.id() as i32, libc::SIGKILL);
    child.wait().expect("it ends");
    assert!(!services(&dunnage).is_empty(), "nothing outlived it, so nothing is tested");
    let next = dunnage.run("check start -s bare");
    assert!(next.code == 0 && next.stderr.contains("removed the service at `"), "{next}");
    assert_eq!(services(&dunnage), Vec::<i32>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn a_service_of_podman_that_dies_is_rows() {
    const TEST: &str = "a_service_of_podman_that_dies_is_rows";
    if lacks_podman(TEST) {
        return;
    }
    let dunnage = Dunnage::new();
    let mut child = begun(&dunnage);
    services(&dunnage).into_iter().for_each(|pid| kill(pid, libc::SIGKILL));
    let events = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(events.take(40).any(|line| line.contains("cannot connect to the podman daemon")));
    kill(child.id() as i32, libc::SIGINT);
    child.wait().expect("it ends");
    assert_eq!(dunnage.run("check start -s bare").code, 0);
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}
