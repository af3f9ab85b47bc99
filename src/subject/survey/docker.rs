//! Docker: its daemon, its runtimes, its bridge, its storage.

use super::{Daemon, Program, Programs, of_engine};
use crate::host::checks::{Finding, View};
use crate::subject::component::numbers;
use crate::subject::unavailable::JOIN_THE_GROUP;

pub(super) fn daemon(_: &View, programs: &Programs) -> Finding {
    match &programs.docker {
        None => Finding::not_applicable("not installed"),
        Some(Ok(docker)) => Finding::ok(format!("{} answers", docker.version)),
        Some(Err(why)) => {
            let finding = Finding::problem(why.reason.clone());
            match why.remedy.as_deref() {
                Some(JOIN_THE_GROUP) => {
                    finding.command("sudo usermod --append --groups docker \"$USER\" && newgrp docker")
                }
                Some(remedy) => finding.advice(remedy),
                None => finding.advice("the daemon runs but does not answer: read its log, then restart it"),
            }
        }
    }
}

pub(super) fn versions(_: &View, programs: &Programs) -> Finding {
    of_engine(&programs.docker, "docker-daemon", |docker| {
        let client = programs.find("docker").and_then(|program| program.version.as_ref().ok());
        let client = client.and_then(|version| numbers(version));
        let (Some(client), Some(server)) = (client, numbers(&docker.version)) else {
            return Finding::not_applicable("cannot read a version");
        };
        let what = format!("client {}.{}, daemon {}.{}", client.0, client.1, server.0, server.1);
        if client == server {
            return Finding::ok(what);
        }
        Finding::note(format!("{what}: the versions differ, so figures belong to the pair"))
            .advice("install both from the same packages, or name both versions with the figures")
    })
}

/// Runtimes that dunnage can start through an engine.
const KNOWN: [&str; 4] = ["crun", "runc", "youki", "runsc"];

pub(super) fn runtimes(_: &View, programs: &Programs) -> Finding {
    of_engine(&programs.docker, "docker-daemon", |docker| {
        let is_known = |name: &str| docker.runtimes.iter().any(|known| known == name);
        let untold = programs.found.iter().filter(|one| KNOWN.contains(&one.name) && !is_known(one.name));
        let untold: Vec<_> = untold.collect();
        let what = format!("the daemon knows {}", docker.runtimes.join(", "));
        if untold.is_empty() {
            return Finding::ok(what);
        }
        let entry = |one: &&Program| format!("\"{}\": {{\"path\": \"{}\"}}", one.name, one.path.display());
        let entries = untold.iter().map(entry).collect::<Vec<_>>().join(", ");
        let names = untold.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
        Finding::note(format!("{what}, but not {names}")).advice(format!(
            "put `{{\"runtimes\": {{{entries}}}}}` into /etc/docker/daemon.json and run `sudo systemctl reload docker`"
        ))
    })
}

/// A daemon started without a bridge removes an existing `docker0`.
pub(super) fn bridge(_: &View, programs: &Programs) -> Finding {
    let here: Vec<&Daemon> = programs
        .daemons
        .iter()
        .filter(|daemon| daemon.network.is_some() && daemon.network == programs.network)
        .collect();
    if here.is_empty() {
        return Finding::not_applicable("no dockerd runs in this network namespace");
    }
    let fix = "stop the others and restart the daemon that needs the bridge: `sudo systemctl restart docker`; \
                start a private daemon with `ip netns exec`, with data root, exec root, pid file and socket of its own";
    let meant = here.iter().filter(|daemon| !daemon.bridgeless).count();
    match (here.len(), programs.bridge) {
        (_, None) => Finding::not_applicable("cannot list the interfaces"),
        (1, Some(true)) => Finding::ok("one daemon in this network namespace, and its bridge `docker0` exists"),
        (1, Some(false)) if meant == 0 => Finding::note("the daemon makes no bridge: `docker` has no default network")
            .advice("compare with `net=none` or `net=host`, or start the daemon without `--bridge none`"),
        (1, Some(false)) => {
            Finding::problem("`docker0` is missing: containers with the default network cannot start")
                .command("sudo systemctl restart docker")
        }
        (count, Some(false)) if meant > 0 => Finding::problem(format!(
            "{count} daemons in one network namespace, and `docker0` is missing: one removed the other's bridge"
        ))
        .advice(fix),
        (count, Some(false)) => Finding::note(format!("{count} daemons, none with a bridge")).advice(fix),
        (count, Some(true)) => Finding::warning(format!(
            "{count} daemons in one network namespace: they share `docker0` and its firewall rules"
        ))
        .advice(fix),
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::host::checks::State::{self, *};
    use crate::subject::Unavailable;
    use crate::subject::unavailable::START_DOCKER;

    fn found(question: fn(&View, &Programs) -> Finding, change: impl Fn(&mut Programs)) -> Finding {
        let mut programs = planted::all();
        change(&mut programs);
        question(&crate::host::checks::planted(), &programs)
    }

    fn state(question: fn(&View, &Programs) -> Finding, change: impl Fn(&mut Programs)) -> State {
        found(question, change).state
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_the_one_problem() {
        let fails =
            |why: Unavailable| move |programs: &mut Programs| programs.docker = Some(Err(why.clone()));
        let silent = fails(Unavailable::because("`docker info` gave no answer"));
        assert_eq!(state(daemon, |_| ()), Ok);
        assert!(found(daemon, &silent).fix.unwrap().contains("the daemon runs but"));
        // The words do not matter: the socket decided.
        let with = |remedy: &str| fails(Unavailable::because("odd words").with_remedy(remedy));
        assert!(found(daemon, with(START_DOCKER)).fix.unwrap().contains("start the daemon"));
        assert!(found(daemon, with(JOIN_THE_GROUP)).fix.unwrap().contains("usermod"));
        for question in [versions, runtimes] {
            assert_eq!((state(question, &silent), state(question, |_| ())), (NotApplicable, Ok));
        }
    }

    fn with_server(version: &'static str) -> impl Fn(&mut Programs) {
        move |programs| {
            if let Some(Result::Ok(docker)) = &mut programs.docker {
                docker.version = version.to_owned();
            }
        }
    }

    #[test]
    fn client_and_daemon_of_one_release_differ_in_patches_only() {
        assert_eq!(state(versions, with_server("20.10.24+dfsg1")), Note);
        assert_eq!(state(versions, with_server("28.0.9")), Ok);
    }

    #[test]
    fn a_runtime_that_the_daemon_was_not_told_of_is_named_with_the_file() {
        let untold = |programs: &mut Programs| programs.found.push(planted::program("runsc", "1"));
        let finding = found(runtimes, untold);
        assert_eq!(finding.state, Note);
        assert!(finding.fix.unwrap().contains("{\"runtimes\": {\"runsc\": {\"path\": \"/usr/bin/runsc\"}}}"));
        assert_eq!(
            state(runtimes, |programs| programs.found.push(planted::program("fuse-overlayfs", "1"))),
            Ok
        );
    }

    #[test]
    fn a_second_daemon_in_the_same_network_namespace_is_told() {
        let second = |programs: &mut Programs, bridge, network: &str| {
            let network = Some(network.to_owned());
            programs.daemons.push(Daemon { pid: 8, network, bridgeless: true });
            programs.bridge = Some(bridge);
        };
        const OWN: &str = "net:[4026531840]";
        assert_eq!(state(bridge, |programs| second(programs, false, OWN)), Problem);
        assert_eq!(state(bridge, |programs| second(programs, true, OWN)), Warning);
        assert_eq!(state(bridge, |programs| second(programs, true, "net:[1]")), Ok);
        assert_eq!(state(bridge, |programs| programs.bridge = Some(false)), Problem);
        let meant = |programs: &mut Programs| {
            programs.bridge = Some(false);
            programs.daemons[0].bridgeless = true;
        };
        assert_eq!((state(bridge, meant), state(bridge, |_| ())), (Note, Ok));
        assert_eq!(state(bridge, |programs| programs.daemons.clear()), NotApplicable);
    }
}
