//! Finds the container to watch: a container of docker or podman by its name or the beginning of its id, or a cgroup by its
//! path. Every failure has a hint.
//!
//! Deliberately absent: other users' podman containers and engines on other machines, whose usage no local file shows.

use std::os::fd::OwnedFd;

use anyhow::{Result, anyhow};
use serde_json::Value;

use super::group::{Group, Lacking};
use crate::exit::{nothing, usage};
use crate::report::text::listed;
use crate::subject::component::Client;
use crate::subject::unavailable::silent_docker;
use crate::subject::{Unavailable, docker, on_path};
use crate::sys::pidfd;

/// The engine of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Engine {
    /// In the order in which they are asked.
    pub const ALL: [Engine; 2] = [Engine::Docker, Engine::Podman];

    /// Its name, which is also the name of its client.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Docker => "docker",
            Engine::Podman => "podman",
        }
    }
}

/// The thing to watch.
#[derive(Debug)]
pub struct Target {
    /// The container's name, or the path of the cgroup.
    pub name: String,
    /// The container's engine; none for a plain cgroup.
    pub engine: Option<Engine>,
    /// The container's id.
    pub id: Option<String>,
    /// Its cgroup.
    pub group: Group,
    /// The container's first process.
    pub process: Option<OwnedFd>,
}

/// A container as described by its engine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Container {
    engine: Engine,
    id: String,
    name: String,
    pid: i32,
    status: String,
}

/// An engine's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Has(Container),
    HasNone,
    HasSeveral,
    Silent(Unavailable),
}

/// Finds the container or cgroup, among all engines unless one is given.
///
/// # Errors
/// A message with a hint, and exit code 2 if it does not exist, 4 if it cannot be watched here, and 1 otherwise.
pub fn find(wanted: &str, engine: Option<Engine>) -> Result<Target> {
    if wanted.is_empty() {
        let text = "the name of the container is empty\n\nhint: list running containers with `docker ps` or `podman ps`";
        return Err(usage(text));
    }
    if wanted.contains('/') {
        let group = Group::at(wanted).map_err(|why| of_group(why, wanted))?;
        return Ok(Target { name: wanted.to_owned(), engine: None, id: None, group, process: None });
    }
    let engines: Vec<Engine> = match engine {
        Some(one) => vec![one],
        None => Engine::ALL.into_iter().filter(|one| on_path(one.name()).is_some()).collect(),
    };
    let answers: Vec<(Engine, Answer)> = engines.iter().map(|&one| (one, asked(one, wanted))).collect();
    let container = chosen(wanted, answers)?;
    let name = container.name.clone();
    if container.status != "running" {
        let (engine, status) = (container.engine.name(), &container.status);
        let verb = if status == "paused" { "unpause" } else { "start" };
        return Err(anyhow!(
            "the container `{name}` is not running but {status}\n\nhint: run `{engine} {verb} {name}`, then watch it"
        ));
    }
    let process = pidfd::open(container.pid).map_err(|error| elsewhere(&container, &error.to_string()))?;
    let group = Group::of_container(container.pid, &container.id).map_err(|why| match why {
        Lacking::Stranger { .. } => elsewhere(&container, &why.to_string()),
        why => of_group(why, wanted),
    })?;
    Ok(Target { name, engine: Some(container.engine), id: Some(container.id), group, process: Some(process) })
}

/// The one container that the name refers to.
fn chosen(wanted: &str, answers: Vec<(Engine, Answer)>) -> Result<Container> {
    if answers.is_empty() {
        let text = "neither docker nor podman is installed\n\nhint: give the path of a cgroup, such as `/sys/fs/cgroup/system.slice/NAME.service`";
        return Err(nothing(text));
    }
    let asked = listed(answers.iter().map(|(engine, _)| engine.name()), " or ");
    let (mut found, mut silent, mut has_several) = (Vec::<Container>::new(), Vec::new(), false);
    for (engine, answer) in answers {
        match answer {
            // A `docker` command that is really podman has the same containers.
            Answer::Has(one) if found.iter().any(|other| other.id == one.id) => {}
            Answer::Has(one) => found.push(one),
            Answer::HasNone => {}
            Answer::HasSeveral => has_several = true,
            Answer::Silent(why) => silent.push((engine, why)),
        }
    }
    // If only one of them is running, that one is meant.
    if found.len() > 1 && found.iter().filter(|one| one.status == "running").count() == 1 {
        found.retain(|one| one.status == "running");
    }
    Err(match (found.len(), silent.is_empty()) {
        (1, _) if !has_several => return Ok(found.remove(0)),
        (2.., _) => usage(format!(
            "both docker and podman have a container `{wanted}`\n\nhint: choose one with `--engine`"
        )),
        _ if has_several => usage(format!(
            "`{wanted}` matches several ids\n\nhint: give the name or more of the id, as shown by `docker ps` and `podman ps`"
        )),
        (_, true) => usage(format!(
            "no container `{wanted}` in {asked}\n\nhint: list running containers with `docker ps` or `podman ps`; each user has their own in podman"
        )),
        _ => {
            let reason = |(engine, why): &(Engine, Unavailable)| format!("{}: {}", engine.name(), why.reason);
            let reasons = listed(silent.iter().map(reason), "; ");
            let hints = silent.iter().filter_map(|(_, why)| why.remedy.as_ref());
            let hints: String = hints.map(|remedy| format!("\n\nhint: {remedy}")).collect();
            nothing(format!("cannot look for the container `{wanted}`: {reasons}{hints}"))
        }
    })
}

fn asked(engine: Engine, wanted: &str) -> Answer {
    let Some(client) = on_path(engine.name()).map(Client::of) else {
        return Answer::Silent(Unavailable::absent("", engine.name(), &format!("install {}", engine.name())));
    };
    let mut socket = None;
    if engine == Engine::Docker {
        let context = client.ask(&["context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]).ok();
        let context = context.map(|answer| answer.trim().to_owned());
        let address = std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()).or(context);
        let address = address.filter(|address| !address.is_empty());
        if let Some(address) = address.as_ref().filter(|address| !address.starts_with("unix://")) {
            return Answer::Silent(remote(address));
        }
        socket = Some(address.unwrap_or_else(|| docker::address(None)));
    }
    match client.ask(&["container", "inspect", "--", wanted]) {
        Ok(answer) => described(engine, &answer),
        Err(why) => match of_words(why) {
            // The client's message differs between versions; the kernel's error does not.
            Answer::Silent(why) => Answer::Silent(match &socket {
                Some(address) => silent_docker(address, why),
                None => why,
            }),
            Answer::HasSeveral => the_one_that_runs(engine, &client, wanted),
            other => other,
        },
    }
}

/// The only running one among several containers whose ids begin in the same way.
fn the_one_that_runs(engine: Engine, client: &Client, wanted: &str) -> Answer {
    let Ok(listed) = client.ask(&["ps", "--no-trunc", "--format", "{{.ID}}"]) else {
        return Answer::HasSeveral;
    };
    let running: Vec<&str> = listed.lines().map(str::trim).filter(|id| id.starts_with(wanted)).collect();
    let [id] = running[..] else { return Answer::HasSeveral };
    client
        .ask(&["container", "inspect", "--", id])
        .map_or(Answer::HasSeveral, |answer| described(engine, &answer))
}

fn remote(address: &str) -> Unavailable {
    Unavailable::because(format!(
        "its daemon is at `{address}`, but usage is read from files of this machine"
    ))
    .with_remedy(
        "run dunnage on the machine where the container runs, or unset `DOCKER_HOST` and `DOCKER_CONTEXT`",
    )
}

/// Interprets a client's error message about the container.
fn of_words(why: Unavailable) -> Answer {
    let words = why.reason.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if says(&["no such container", "no such object", "no container with name or id"]) {
        return Answer::HasNone;
    }
    if says(&["multiple ids found", "more than one", "matches multiple"]) {
        return Answer::HasSeveral;
    }
    Answer::Silent(why)
}

/// Reads an engine's description of a container; both engines use the same format.
fn described(engine: Engine, answer: &str) -> Answer {
    let nonsense = || Answer::Silent(Unavailable::because("its description of the container cannot be read"));
    let Ok(Value::Array(all)) = serde_json::from_str(answer) else { return nonsense() };
    let [one] = all.as_slice() else {
        return if all.is_empty() { Answer::HasNone } else { Answer::HasSeveral };
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let status = text(&one["State"]["Status"]);
    match (text(&one["Id"]), text(&one["Name"]), one["State"]["Pid"].as_i64(), status) {
        (Some(id), Some(name), Some(pid), Some(status)) => Answer::Has(Container {
            engine,
            id,
            name: name.trim_start_matches('/').to_owned(),
            pid: i32::try_from(pid).unwrap_or(0),
            status,
        }),
        _ => nonsense(),
    }
}

/// The engine is on another machine, or in other namespaces of this one.
fn elsewhere(container: &Container, why: &str) -> anyhow::Error {
    let Container { engine, name, pid, .. } = container;
    nothing(format!(
        "{} reports `{name}` as process {pid}, which does not match this machine: {why}\n\nhint: run dunnage on the engine's machine, outside of containers; a container without its own cgroup cannot be watched",
        engine.name()
    ))
}

fn of_group(why: Lacking, wanted: &str) -> anyhow::Error {
    let hint = match &why {
        Lacking::Controller => {
            "mount one with `mount -t cgroup -o cpuacct none /sys/fs/cgroup/cpuacct`, or boot with version 2"
        }
        Lacking::Hidden(_) | Lacking::Stranger { .. } => "run dunnage outside of containers",
        Lacking::NoSuchGroup(_) => {
            return usage(format!(
                "{why}\n\nhint: `{wanted}` is read as the path of a cgroup, as in `/proc/PID/cgroup`; give a container by its name or id"
            ));
        }
        Lacking::Unreadable { .. } => "run dunnage as root",
    };
    nothing(format!("cannot read the usage of `{wanted}`: {why}\n\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    fn container(engine: Engine, id: &str) -> Answer {
        let description = format!(
            r#"[{{"Id": "{id}", "Name": "/web", "State": {{"Status": "running", "Pid": 7, "Running": true}}}}]"#
        );
        described(engine, &description)
    }

    fn silent(reason: &str) -> Answer {
        Answer::Silent(Unavailable::because(reason).with_remedy("fix it"))
    }

    #[test]
    fn the_one_container_is_chosen_and_one_under_two_names_is_one() {
        let Answer::Has(one) = container(Engine::Docker, "ab12") else { panic!() };
        assert_eq!((one.name.as_str(), one.pid, one.status.as_str()), ("web", 7, "running"));
        let has = || container(Engine::Docker, "ab12");
        let choose = |answers: [Answer; 2]| chosen("web", Engine::ALL.into_iter().zip(answers).collect());
        for other in [Answer::HasNone, silent("gone"), container(Engine::Podman, "ab12")] {
            assert_eq!(choose([has(), other]).unwrap(), one);
        }
    }

    #[test]
    fn what_cannot_be_chosen_is_told_with_its_exit_code_and_a_hint() {
        let choose = |answers: Vec<Answer>| {
            let error = chosen("web", Engine::ALL.into_iter().zip(answers).collect()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("\n\nhint: "), "{text}");
            (exit::code_of(&error), text)
        };
        let (docker, podman) = (container(Engine::Docker, "ab12"), container(Engine::Podman, "cd34"));
        let (code, text) = choose(vec![docker.clone(), podman]);
        assert!(code == exit::USAGE && text.contains("--engine"), "{text}");
        let (code, text) = choose(vec![Answer::HasNone, Answer::HasNone]);
        assert!(code == exit::USAGE && text.contains("no container `web` in docker or podman"), "{text}");
        let (code, text) = choose(vec![docker, Answer::HasSeveral]);
        assert!(code == exit::USAGE && text.contains("several ids"), "{text}");
        let (code, text) = choose(vec![silent("the daemon sleeps"), Answer::HasNone]);
        assert!(
            code == exit::NOTHING && text.contains("docker: the daemon sleeps") && text.ends_with("fix it"),
            "{text}"
        );
        let (code, text) = choose(vec![]);
        assert!(code == exit::NOTHING && text.contains("neither docker nor podman"), "{text}");
    }

    #[test]
    fn clients_complaints_are_understood() {
        let of = |words: &str| of_words(Unavailable::because(words));
        let none = [
            "Error: No such container: web",
            "Error: inspecting object: no such container web",
            "Error: no container with name or ID \"web\" found: no such container",
        ];
        none.into_iter().for_each(|words| assert_eq!(of(words), Answer::HasNone));
        let several = [
            "Error response from daemon: Multiple IDs found with provided prefix: a",
            "Error: more than one result for container name or ID \"a\"",
        ];
        several.into_iter().for_each(|words| assert_eq!(of(words), Answer::HasSeveral));
        assert!(matches!(of("something else"), Answer::Silent(_)));
    }

    #[test]
    fn what_makes_no_sense_is_no_container() {
        for text in ["", "{}", "[{}]", r#"[{"Id": "a"}]"#] {
            assert!(matches!(described(Engine::Docker, text), Answer::Silent(_)), "{text}");
        }
        assert_eq!(described(Engine::Podman, "[]"), Answer::HasNone);
    }
}
