//! The key `publish` on real engines: every container has the ports, they are read back, and their helpers are counted.

use std::fs;

use serde_json::Value;

use super::*;
use crate::support::skip;

/// Launches until no other test starts a port's helper meanwhile.
const TRIES: usize = 12;

fn is_read_back(test: &str, text: &str, helpers: i64) {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let (mut subject, bare) = (subject(text, &run), subject("bare", &run));
    let notes = &subject.about().facts.notes;
    assert!(notes.contains(&("published ports", "3 at 127.0.0.1".to_owned())), "{text}: {notes:?}");
    // A daemon may start more of them meanwhile, for the containers of other tests.
    match &run.listener {
        Err(reason) => skip(test, Need::Root, reason),
        Ok(_) => {
            let mut count = || {
                let launch = subject.launch(&run).unwrap_or_else(|abort| panic!("{text}: {abort:?}"));
                launch.observed.cpu.unwrap_or_else(|why| panic!("{text}: {why:?}")).port_helpers
            };
            let mut counts = Vec::new();
            while counts.last() != Some(&helpers) && counts.len() < TRIES {
                counts.push(count());
            }
            assert_eq!(counts.last(), Some(&helpers), "{text}: {counts:?}");
            assert!(counts.iter().all(|one| *one >= helpers), "{text}: {counts:?}");
        }
    }
    // A container that stays has them in addition to its own, and connections reach it through them.
    let own = Port { number: 20_500, transport: Transport::Tcp, at: Ipv4Addr::LOCALHOST.into() };
    let request =
        ContainerRequest { program: Resident::Serves, ports: vec![own], ..ContainerRequest::default() };
    let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
    container.start().unwrap();
    container.ready().unwrap();
    let mut ports = container.ports().unwrap();
    ports.sort_unstable_by_key(|port| port.inside);
    let inside: Vec<u16> = ports.iter().map(|port| port.inside).collect();
    assert_eq!(inside, [20_000, 20_001, 20_002, 20_500], "{text}: {ports:?}");
    assert!(ports.iter().all(|port| port.host.ip().is_loopback() && port.host.port() > 0), "{ports:?}");
    container.ask(serving(orders::Service::Tcp, "0.0.0.0:20001"), Nanos(0)).unwrap();
    let mut peer = service(bare.as_ref(), None, &run);
    let answer = peer.ask(trips(ports[1].host, Protocol::Tcp, [64, 10]), Nanos(0)).unwrap().done;
    assert_eq!((answer.count, answer.wrong), (10, 0), "{text}: {answer:?}");
    drop((container, peer));
    ends(&dunnage, subject, run);
}

#[test]
fn published_ports_are_read_back_and_their_helpers_counted() {
    const TEST: &str = "published_ports_are_read_back_and_their_helpers_counted";
    for (need, text, helpers) in [
        (Need::Docker, "docker:publish=3", 3),
        (Need::Docker, "docker:client=api,publish=3", 3),
        (Need::Podman, "podman:publish=3", 0),
        (Need::Podman, "podman:client=api,publish=3", 0),
    ] {
        if !lacks(TEST, need) {
            is_read_back(TEST, text, helpers);
        }
    }
}

#[test]
fn the_ports_of_a_run_are_a_line_in_its_report() {
    if lacks("the_ports_of_a_run_are_a_line_in_its_report", Need::Docker) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run(
        "run start -s docker -s docker:publish=2 -s docker:publish=4 --rounds 2 --set prestate=idle -o DIR",
    );
    assert_eq!(ran.code, 0, "{ran}");
    let facts: Value =
        serde_json::from_str(&fs::read_to_string(dunnage.directory().join("env.json")).unwrap()).unwrap();
    let note = &facts["subjects"]["docker:publish=4"]["notes"]["published ports"];
    assert_eq!(note, "4 at 127.0.0.1", "{facts}");
    let report: Value = serde_json::from_str(&dunnage.run("report DIR --format json").stdout).unwrap();
    let tables = report["experiments"][0]["experiment_tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["name"] == "published-ports").expect("a table");
    let counted = |column: usize| -> Vec<f64> {
        table["rows"].as_array().unwrap().iter().filter_map(|row| row[column].as_f64()).collect()
    };
    assert_eq!(counted(1), [0.0, 2.0, 4.0], "{table}");
}
