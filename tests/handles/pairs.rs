//! Pairs of a server and a client on every path: packets really go the way that the path says, which is read
//! back; and a delay planted in a proxy is found.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path as File;
use std::sync::Arc;
use std::time::Duration;

use ::dunnage::launch::names::{LISTENER, MTU, OFFLOADS};
use ::dunnage::names::Fact;
use ::dunnage::orders::network::{self as orders, Limit, Protocol, Receive, Trip};
use ::dunnage::outcome::Distribution;
use ::dunnage::subject::pair::{self, Addition, Pair, Server, Service};
use ::dunnage::subject::way::Way;
use ::dunnage::subject::{Path, bare};
use ::dunnage::units::Nanos;
use serde_json::Value;

use super::{PastDocker, ends, run_in, subject};
use crate::dunnage::Dunnage;
use crate::support::{Need, lacks, turn};

/// Round trips of a pair that only shows the way.
const TRIPS: u64 = 500;

/// What on the host decides where packets to a published port go.
fn of_host() -> String {
    let rules = std::process::Command::new("iptables").args(["-t", "nat", "-S"]).output();
    let rules = rules.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    format!("{rules}{:?}", ::dunnage::sys::conntrack::tracked())
}

/// The way of packets on one path.
fn travelled(pair: &mut Pair<'_>, end: (Path, Service)) -> Way {
    let (protocol, service) = match end.1 {
        Service::Udp => (Protocol::Udp, orders::Service::Udp),
        _ => (Protocol::Tcp, orders::Service::Tcp),
    };
    let server = Server::Probe(service);
    pair.serve(end, &server).unwrap_or_else(|why| panic!("{end:?}: serve: {why:?}"));
    let target = pair.end().target;
    let sent = pair.travelled(|pair| {
        let lasts = Nanos::from_millis(3000);
        let limit = Limit { count: TRIPS, time: lasts };
        let trip = Trip { client: pair.end(), protocol, size: 1, limit, receive: Receive::Blocking };
        let done = pair.ask(trip, lasts)?.done;
        // A datagram that is late, as on a busy machine, counts as lost.
        assert!(done.wrong == 0 && done.count + done.lost == TRIPS, "{end:?}: {done:?}");
        assert!(done.lost <= if end.1 == Service::Udp { TRIPS / 10 } else { 0 }, "{end:?}: {done:?}");
        Ok(((), 2 * done.count))
    });
    assert!(pair.server_cpu().unwrap() > Nanos(0), "{end:?}");
    // The same server again.
    pair.serve(end, &server).unwrap();
    assert_eq!(pair.end().target, target, "{end:?}");
    let way = sent.unwrap_or_else(|why| panic!("{end:?}: travel: {why:?}\n{}", of_host())).1;
    // Every interface was asked for both, each where it is.
    for fact in [MTU, OFFLOADS] {
        let told: Vec<_> = way.facts().into_iter().filter(|(name, _)| *name == fact).collect();
        let mut names: Vec<_> = told[0].1.split(',').map(|one| one.split_once(' ').unwrap().0).collect();
        names.dedup();
        assert!(names == way.interfaces && !told[0].1.contains("unknown"), "{end:?}: {way:?}");
    }
    way
}

/// The value of a fact about an interface.
fn of_link(way: &Way, fact: Fact, interface: &str) -> String {
    let told = way.facts().into_iter().find(|(name, _)| *name == fact).unwrap().1;
    let start = format!("{interface} ");
    let own = told.split(',').find_map(|one| one.strip_prefix(&start));
    own.unwrap_or_else(|| panic!("{fact} of {interface}: {told}")).to_owned()
}

/// The ways of a subject on these paths, by both protocols, to one container, or to two where some are in a
/// network made for them. One subject after the other, so that no helper of another pair is counted.
fn ways(text: &str, paths: &[Path]) -> Vec<(Path, Way)> {
    let _alone = turn("pairs");
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject(text, &run);
    let host = bare::peer(&run.place);
    let (joined, others): (Vec<Path>, Vec<Path>) =
        paths.iter().partition(|path| pair::is_joined(subject.as_ref(), **path));
    let mut all = Vec::new();
    for own in [joined, others] {
        let ends: Vec<_> =
            own.iter().flat_map(|path| [(*path, Service::Tcp), (*path, Service::Udp)]).collect();
        if ends.is_empty() {
            continue;
        }
        let mut pair = Pair::begin((subject.as_ref(), &host), &ends, Addition::default(), &run)
            .unwrap_or_else(|why| panic!("{text}: begin: {why:?}"));
        all.extend(ends.iter().map(|end| (end.0, travelled(&mut pair, *end))));
    }
    ends(&dunnage, subject, run);
    all
}

#[test]
fn a_process_on_the_host_exchanges_through_loopback() {
    for (_, way) in ways("bare", &[Path::Inside]) {
        assert_eq!((way.interfaces, way.helpers), (vec!["lo".to_owned()], Vec::new()));
    }
}

#[test]
fn packets_to_the_floor_pass_a_bridge_and_a_veth_pair() {
    if lacks("packets_to_the_floor_pass_a_bridge_and_a_veth_pair", Need::Root) {
        return;
    }
    for (path, way) in ways("floor", &[Path::Inside, Path::Bridge, Path::Peer]) {
        let interfaces = way.interfaces.join(",");
        match path {
            Path::Inside => assert_eq!(interfaces, "lo"),
            Path::Bridge => assert_eq!(interfaces, "bridge,eth0,port1", "{way:?}"),
            _ => assert_eq!(interfaces, "eth0", "the bridge is in a namespace of its own: {way:?}"),
        }
        assert!(way.helpers.is_empty() && way.helper_cpu == Nanos(0), "{way:?}");
    }
}

#[test]
fn a_container_without_a_network_is_reached_from_inside_only() {
    const TEST: &str = "a_container_without_a_network_is_reached_from_inside_only";
    for (need, text) in
        [(Need::Crun, "crun"), (Need::Docker, "docker:net=none"), (Need::Podman, "podman:net=none")]
    {
        if lacks(TEST, need) {
            continue;
        }
        for (_, way) in ways(text, &[Path::Inside]) {
            assert_eq!(way.interfaces, ["lo"], "{text}");
        }
    }
}

/// Docker leaves connections to 127.0.0.0/8 to its proxy and translates those to other addresses.
#[test]
fn packets_to_docker_pass_its_bridge_its_rules_or_its_proxy() {
    if lacks("packets_to_docker_pass_its_bridge_its_rules_or_its_proxy", Need::Docker) {
        return;
    }
    let paths = [Path::Bridge, Path::Published, Path::PublishedHost, Path::Published6, Path::Peer];
    for (path, way) in ways("docker", &paths) {
        let passed = |name: &str| way.interfaces.iter().any(|own| own.starts_with(name));
        assert!(passed("veth"), "{path:?}: {way:?}");
        if path == Path::Bridge {
            let known = std::fs::read_to_string("/sys/class/net/docker0/mtu").unwrap();
            assert_eq!(of_link(&way, MTU, "docker0"), known.trim());
            assert!(of_link(&way, OFFLOADS, "eth0").starts_with("rx tx tso gso"), "{way:?}");
        }
        let is_proxied = matches!(path, Path::Published | Path::Published6);
        assert_eq!(way.helpers.contains(&"docker-proxy".to_owned()), is_proxied, "{path:?}: {way:?}");
        // Other tests may start helpers meanwhile.
        assert!(way.helper_cpu > Nanos(0) || !is_proxied, "{path:?}: {way:?}");
        match path {
            Path::Published | Path::Published6 => assert_eq!(way.listener.as_deref(), Some("docker-proxy")),
            Path::PublishedHost => {
                assert!(way.translation.as_ref().unwrap().starts_with("dnat 172."), "{way:?}");
            }
            _ => assert_eq!(way.translation.as_deref(), Ok("none"), "{path:?}: {way:?}"),
        }
    }
}

#[test]
fn packets_to_podman_pass_its_bridge_and_its_rules() {
    if lacks("packets_to_podman_pass_its_bridge_and_its_rules", Need::Podman) {
        return;
    }
    let _open = PastDocker::begin();
    for (path, way) in ways("podman", &[Path::Bridge, Path::Published, Path::PublishedHost, Path::Peer]) {
        let is_published = matches!(path, Path::Published | Path::PublishedHost);
        let is_translated = way.translation.as_ref().is_ok_and(|told| told.starts_with("dnat 10."));
        assert_eq!(is_translated, is_published, "{path:?}: {way:?}");
        assert!(way.interfaces.iter().any(|own| own.starts_with("veth")), "{path:?}: {way:?}");
        assert!(!way.helpers.contains(&"rootlessport".to_owned()), "{path:?}: {way:?}");
    }
}

/// A proxy that delays what the client sends by at least this much, and reads its own target from a file when it
/// accepts.
fn proxy(target: Arc<File>, delay: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(client) = client else { return };
            let Ok(text) = std::fs::read_to_string(&target) else { return };
            let Ok(server) = TcpStream::connect(text.trim()) else { continue };
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || pass(&mut from, &mut to, delay));
            std::thread::spawn(move || pass(&mut { server }, &mut { client }, Duration::ZERO));
        }
    });
    port
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, delay: Duration) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        std::thread::sleep(delay);
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// A client of docker that says that a published port is behind a proxy of this delay.
fn through_a_proxy(directory: &File, name: &str, delay: Duration) -> String {
    let target = directory.join(format!("{name}.target"));
    let port = proxy(target.as_path().into(), delay);
    // Each path of a round has a port of its own, in the order of the round.
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = port ]; then\n  told=$(docker \"$@\")\n  echo \"${{told##*-> }}\" > {}\n  echo \"${{told%%-> *}}-> 127.0.0.1:{port}\"\nelse\n  exec docker \"$@\"\nfi\n",
        target.display()
    );
    let path = directory.join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_delay_in_a_proxy_is_found() {
    const PLANTED: Duration = Duration::from_millis(5);
    if lacks("a_delay_in_a_proxy_is_found", Need::Docker) {
        return;
    }
    let dunnage = Dunnage::new();
    let place = tempfile::tempdir().unwrap();
    let quick = through_a_proxy(place.path(), "quick", Duration::ZERO);
    let slow = through_a_proxy(place.path(), "slow", PLANTED);
    let settings = "--set path=published --set protocol=tcp --no-vary --rounds 2";
    let ran = dunnage.run(&format!(
        "run net-latency -s quick=docker:bin={quick} -s slow=docker:bin={slow} {settings} -o DIR"
    ));
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = ::dunnage::record::load(&dunnage.directory()).unwrap();
    let samples = std::fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    let samples: Vec<Value> = samples.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The quickest hundredth of the quietest round of each: others may use the machine, and only add to a time.
    let least = |label: &str| {
        let is_it = |cell: &usize| {
            let setting = &recorded.plan.cells[*cell].setting;
            recorded.plan.entry(*cell).label == label && setting.get("path") == Some("published")
        };
        let cell = (0..recorded.plan.cells.len()).find(is_it).unwrap();
        let own = samples.iter().filter(|sample| sample["cell"] == cell);
        let trips =
            own.filter_map(|sample| Distribution::from_text(sample["distributions"]["trip"].as_str()?));
        trips.map(|trips| trips.quantile(0.01).unwrap()).min().map(Duration::from_nanos).unwrap()
    };
    let (quick, slow) = (least("quick"), least("slow"));
    assert!(quick < PLANTED && (PLANTED..2 * PLANTED).contains(&slow), "{quick:?}, {slow:?}: {ran}");
    // The listener that was read back is the proxy.
    let cell =
        recorded.plan.cells.iter().position(|cell| cell.setting.get("path") == Some("published")).unwrap();
    let listener = recorded.facts(cell, LISTENER).flatten().next().unwrap();
    assert!(!["none", "docker-proxy"].contains(&listener), "{listener}");
}
