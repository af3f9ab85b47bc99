//! Containers as handles, for real: many of one subject alive at once and from several threads, services that
//! carry out orders, containers joined by a network of dunnage's; and nothing left, however that ends.

mod crowd;
mod images;
mod names;
pub mod nested;
mod pairs;
mod published;
mod storage;
mod verbs;
mod visits;
mod watched;
mod web;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::dunnage::Dunnage;
use crate::left::{self, said};
use crate::running::until;
use crate::support::orders::{failure, port};
use crate::support::{Need, Sweeps, lacks};
use ::dunnage::orders::network::{
    self as orders, Client, Connect, Direction, Limit, Protocol, Receive, Serve, Stream, Trip, Usage,
};
use ::dunnage::orders::work::{Spin, Spun, Syscall};
use ::dunnage::outcome::{Abort, Failure, FailureClass};
use ::dunnage::resource::Held;
use ::dunnage::subject::{
    self, Container, ContainerRequest, GRACE, Object, ObjectSpec, Port, Resident, RunContext, Spec, Subject,
    Transport,
};
use ::dunnage::sys::signals::Interrupts;
use ::dunnage::units::Nanos;

/// A run in this state directory, with the program as its probe.
pub fn run_in(state: &Path) -> RunContext {
    std::fs::create_dir_all(state).unwrap();
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_dunnage")).unwrap();
    let place = ::dunnage::session::place_in(state, &bytes).unwrap();
    let id = format!("{:08x}", ::dunnage::session::random_seed().unwrap());
    let mut run = RunContext::begin(place, Interrupts::install().unwrap(), id, 1).unwrap();
    run.host = subject::bare::view(&run).unwrap();
    run.allowed = Nanos::from_millis(30_000);
    run
}

pub fn subject(text: &str, run: &RunContext) -> Box<dyn Subject> {
    let spec = Spec::parse(text).unwrap();
    let kind = subject::kind_of(&spec).unwrap();
    let mut subject = (kind.build)(&spec, &run.place).unwrap();
    subject.prepare(run).unwrap();
    subject
}

/// A container of the subject whose program serves, and is ready.
fn service<'a>(
    subject: &'a dyn Subject,
    network: Option<&Held<Object>>,
    run: &'a RunContext,
) -> Container<'a> {
    let network = network.and_then(|network| network.attachment());
    let request = ContainerRequest { program: Resident::Serves, network, ..ContainerRequest::default() };
    let mut container = Container::create(subject, &request, run).unwrap();
    container.start().unwrap();
    container.ready().unwrap();
    container
}

/// An order without a purpose, which takes next to no time.
const NOTHING: Spin = Spin { millis: 0 };

/// A server of the probe's own.
fn serving(service: orders::Service, address: &str) -> Serve {
    Serve { service, address: address.parse().unwrap(), key: None, cpu: None }
}

/// So many round trips of so many bytes.
fn trips(target: SocketAddr, protocol: Protocol, [size, count]: [u64; 2]) -> Trip {
    let limit = Limit { count, time: Nanos(0) };
    Trip { client: Client::of(target), protocol, size, limit, receive: Receive::Blocking }
}

/// Ends the run and checks that nothing of it is left.
pub fn ends(dunnage: &Dunnage, subject: Box<dyn Subject>, run: RunContext) {
    let id = run.id.clone();
    drop((subject, run));
    assert_eq!(left::of_run(&id), Vec::<String>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

fn serves(text: &str, orders: usize) {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject(text, &run);
    let mut container = service(subject.as_ref(), None, &run);
    let mut before = None;
    for order in 0..orders {
        let answer = container
            .ask(NOTHING, Nanos(0))
            .unwrap_or_else(|abort| panic!("{text}, order {order}: {abort:?}"));
        assert!(before.is_none_or(|before| before <= answer.began) && answer.began <= answer.ended);
        before = Some(answer.ended);
    }
    // Orders may be sent before earlier ones are answered.
    (0..3).for_each(|_| container.send(NOTHING, Nanos(0)).unwrap());
    for _ in 0..3 {
        container.answer::<Spun>().unwrap();
    }
    let refused = failure(&mut container, Syscall { window: Nanos(0), fixed: 0, calls: Vec::new() });
    assert_eq!(refused.class, FailureClass::Unsupported);
    assert!(container.cpu().unwrap() > Nanos(0));
    assert!(!container.cgroups().unwrap().is_empty());
    assert!(container.mounts().is_empty());
    let stop = container.stop(GRACE).unwrap();
    assert!(stop.took() < Nanos::from_millis(8_000), "{text}: {}", stop.took());
    container.remove().unwrap();
    ends(&dunnage, subject, run);
}

#[test]
fn a_service_of_the_floor_answers_ten_thousand_orders() {
    serves("floor", 10_000);
}

#[test]
fn a_peer_on_the_host_answers_too() {
    serves("bare", 1000);
}

#[test]
fn services_of_runtimes_and_engines_answer() {
    const TEST: &str = "services_of_runtimes_and_engines_answer";
    for (need, text) in [
        (Need::Crun, "crun"),
        (Need::Runc, "runc"),
        (Need::Containerd, "containerd"),
        (Need::Docker, "docker:net=none"),
        (Need::Docker, "docker:client=api,net=none"),
        (Need::Podman, "podman:net=none"),
        (Need::Podman, "podman:client=api,net=none"),
    ] {
        if !lacks(TEST, need) {
            serves(text, 100);
        }
    }
}

#[test]
fn many_containers_live_at_once_started_from_several_threads() {
    const TEST: &str = "many_containers_live_at_once_started_from_several_threads";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let floor = subject("floor", &run);
    let start = || (0..8).map(|_| service(floor.as_ref(), None, &run)).collect::<Vec<_>>();
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // The threads that started them have ended; the containers have not.
    let mut firsts: Vec<_> = all.iter_mut().map(|container| container.first_process().unwrap()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 32);
    for container in &mut all {
        container.ask(NOTHING, Nanos(0)).unwrap();
    }
    drop(all);
    for first in firsts {
        assert!(!Path::new(&format!("/proc/{first}")).exists(), "process {first} is still there");
    }
    ends(&dunnage, floor, run);
}

#[test]
fn a_container_that_dies_is_a_failure_and_no_hang() {
    const TEST: &str = "a_container_that_dies_is_a_failure_and_no_hang";
    if lacks(TEST, Need::Root) {
        return;
    }
    let mut subjects = vec!["bare", "floor"];
    subjects.extend((!lacks(TEST, Need::Docker)).then_some("docker:net=none"));
    for text in subjects {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let mut container = service(subject.as_ref(), None, &run);
        let first = container.first_process().unwrap();
        container.send(Spin { millis: 20_000 }, Nanos(0)).unwrap();
        let began = Instant::now();
        // SAFETY: signals the first process of a container of this test, which has not been reaped.
        unsafe { libc::kill(first, libc::SIGKILL) };
        let Err(Abort::Failed(Failure { class, reason, .. })) = container.answer::<Spun>() else {
            panic!("{text}: the dead answer");
        };
        assert_eq!(class, FailureClass::Crash, "{reason}");
        assert!(began.elapsed() < Duration::from_secs(10), "{text}");
        drop(container);
        ends(&dunnage, subject, run);
    }
}

#[test]
fn a_program_that_ends_before_it_is_ready_is_a_failure_and_no_hang() {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
    let mut container = Container::create(bare.as_ref(), &request, &run).unwrap();
    let socket = dunnage.state().join("runs").join(&run.id).join(container.name()).join("channel/socket");
    std::fs::remove_file(socket).unwrap();
    container.start().unwrap();
    let Err(Abort::Failed(failure)) = container.ready() else { panic!("it is ready") };
    assert_eq!(failure.class, FailureClass::Crash, "{failure}");
    assert!(failure.to_string().contains("cannot connect to its channel"), "{failure}");
    drop(container);
    ends(&dunnage, bare, run);
}

/// Moves bytes to the server at this address and back, which all come unchanged.
fn assert_exchanged(client: &mut Container<'_>, target: SocketAddr) {
    for direction in [Direction::Up, Direction::Down] {
        let own = Client::of(target);
        let order = Stream { client: own, direction, bytes: 3_000_000, streams: 2, seed: 0 };
        let there = client.ask(order, Nanos(0)).unwrap().done;
        assert_eq!((there.bytes, there.wrong), (3_000_000, 0), "{there:?}");
    }
}

/// Two containers of the subject, joined by a network of dunnage's, and what they exchanged.
fn joined<'a>(subject: &'a dyn Subject, run: &'a RunContext) -> (Held<Object>, [Container<'a>; 2]) {
    let network = subject.make(ObjectSpec::Network, run).unwrap();
    let [mut one, mut other] = [(); 2].map(|()| service(subject, Some(&network), run));
    let address = one.addresses().unwrap().into_iter().find(|address| address.is_ipv4()).expect("an address");
    assert!(!other.addresses().unwrap().contains(&address));
    let target = SocketAddr::new(address, port(&mut one, serving(orders::Service::Tcp, "0.0.0.0:0")).port());
    assert_exchanged(&mut other, target);
    // So does a process on the host.
    let host = subject::bare::peer(&run.place);
    let mut peer = service(&host, Some(&network), run);
    assert_exchanged(&mut peer, target);
    drop(peer);
    (network, [one, other])
}

/// Set for a test that starts itself once more, to hold two joined containers of this subject until it is killed.
const HOLDS: &str = "DUNNAGE_TEST_HOLDS";

/// Holds two joined containers until it is killed, or its parent ends.
fn hold(text: &str) -> ! {
    let state = PathBuf::from(std::env::var_os("DUNNAGE_STATE").expect("a state directory"));
    let run = run_in(&state);
    let subject = subject(text, &run);
    let _held = joined(subject.as_ref(), &run);
    println!("\nholding {}", run.id);
    let _ = std::io::stdin().read_line(&mut String::new());
    panic!("the test has ended");
}

/// Kills a process that holds two joined containers, and returns the id of its run.
fn killed_while_holding(test: &str, text: &str, dunnage: &Dunnage) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("handles::{test}"), "--nocapture"]);
    command.env(HOLDS, text).env("DUNNAGE_STATE", dunnage.state());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let id = lines.filter_map(|line| line.strip_prefix("holding ").map(str::to_owned)).next();
    child.kill().unwrap();
    child.wait().unwrap();
    id.expect("it held two containers")
}

/// A sweep with another state directory cannot see whether the run is over: it removes nothing, and says what there is.
fn nothing_is_swept_elsewhere(id: &str) {
    let elsewhere = Dunnage::new();
    let label = format!("label=dunnage.run={id}");
    let containers = || said("docker", &["ps", "--all", "--quiet", "--filter", &label]).lines().count();
    assert_eq!(containers(), 2);
    let swept = elsewhere.run("sweep containers");
    assert_eq!((swept.code, containers()), (0, 2), "{swept}");
    let told =
        swept.stdout.lines().filter(|line| line.starts_with(&format!("left container `dunnage-{id}-")));
    assert_eq!(told.count(), 2, "{swept}");
}

fn joins(test: &str, text: &str, networks: impl Fn() -> String) {
    if let Ok(held) = std::env::var(HOLDS) {
        hold(&held);
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject(text, &run);
    let (network, containers) = joined(subject.as_ref(), &run);
    drop(containers);
    network.finish().unwrap();
    ends(&dunnage, subject, run);

    let _turn = Sweeps::begin();
    let id = killed_while_holding(test, text, &dunnage);
    let of_run = format!(" of run {id}");
    let images = dunnage.run("sweep images --dry-run");
    assert!(images.code == 0 && !images.stdout.contains(&of_run), "{images}");
    let foretold = dunnage.run("sweep containers --dry-run");
    assert!(foretold.code == 0 && !foretold.stdout.contains("image"), "{foretold}");
    if text == "docker" {
        nothing_is_swept_elsewhere(&id);
    }
    let swept = dunnage.run("sweep");
    assert_eq!(swept.code, 0, "{swept}");
    let removed: Vec<_> = swept.stdout.lines().filter(|line| line.ends_with(&of_run)).collect();
    assert!(!removed.is_empty(), "{foretold}\n{swept}");
    for line in removed {
        assert!(
            foretold.stdout.contains(&format!("would remove {}", &line["removed ".len()..])),
            "{foretold}\n{swept}"
        );
    }
    assert_eq!(left::of_run(&id), Vec::<String>::new(), "{swept}");
    assert!(!networks().contains(&format!("dunnage-{id}-")), "{swept}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{swept}");
}

#[test]
fn two_containers_of_the_floor_exchange_bytes_and_leave_nothing() {
    const TEST: &str = "two_containers_of_the_floor_exchange_bytes_and_leave_nothing";
    if !lacks(TEST, Need::Root) {
        joins(TEST, "floor", String::new);
    }
}

fn listed(engine: &str) -> String {
    said(engine, &["network", "ls", "--format", "{{.Name}}"])
}

#[test]
fn two_containers_of_docker_exchange_bytes_and_leave_nothing() {
    const TEST: &str = "two_containers_of_docker_exchange_bytes_and_leave_nothing";
    if !lacks(TEST, Need::Docker) {
        joins(TEST, "docker", || listed("docker"));
        joins(TEST, "docker:client=api", || listed("docker"));
    }
}

/// Lets what podman's bridges forward pass docker's filter while it lives. A docker daemon drops what its
/// chains do not accept, so the rules that netavark keeps in an nftables table have no effect.
struct PastDocker(bool);

impl PastDocker {
    /// A process that is killed while it holds containers leaves the rule to the one that kills it.
    fn begin() -> PastDocker {
        PastDocker(std::env::var_os(HOLDS).is_none() && PastDocker::rule("-I"))
    }

    fn rule(change: &str) -> bool {
        let words = [change, "DOCKER-USER", "-i", "podman+", "-j", "ACCEPT"];
        Command::new("iptables").args(words).output().is_ok_and(|said| said.status.success())
    }
}

impl Drop for PastDocker {
    fn drop(&mut self) {
        if self.0 {
            PastDocker::rule("-D");
        }
    }
}

#[test]
fn two_containers_of_podman_exchange_bytes_and_leave_nothing() {
    const TEST: &str = "two_containers_of_podman_exchange_bytes_and_leave_nothing";
    if !lacks(TEST, Need::Podman) {
        let _open = PastDocker::begin();
        joins(TEST, "podman", || listed("podman"));
    }
}

#[test]
fn a_sweep_elsewhere_leaves_the_images_of_a_run() {
    if lacks("a_sweep_elsewhere_leaves_the_images_of_a_run", Need::Docker) {
        return;
    }
    let (dunnage, elsewhere) = (Dunnage::new(), Dunnage::new());
    let run = run_in(&dunnage.state());
    let docker = subject("docker:net=none", &run);
    let swept = elsewhere.run("sweep");
    assert!(
        swept.code == 0 && swept.to_string().contains("because another dunnage is running as process "),
        "{swept}"
    );
    let held = Command::new("docker").args(["image", "inspect", &run.place.reference]).output().unwrap();
    assert!(held.status.success(), "{swept}");
    ends(&dunnage, docker, run);
}

/// A service behind a published port, which a peer on the host calls.
fn publishes(text: &str) {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let (subject, bare) = (subject(text, &run), subject("bare", &run));
    let port = Port { number: 7000, transport: Transport::Tcp, at: Ipv4Addr::LOCALHOST.into() };
    let request =
        ContainerRequest { program: Resident::Serves, ports: vec![port], ..ContainerRequest::default() };
    let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
    container.start().unwrap();
    container.ready().unwrap();
    let ports = container.ports().unwrap();
    let port = ports.iter().find(|port| port.inside == 7000).unwrap_or_else(|| panic!("{text}: {ports:?}"));
    container.ask(serving(orders::Service::Tcp, "0.0.0.0:7000"), Nanos(0)).unwrap();
    let mut peer = service(bare.as_ref(), None, &run);
    let answer = peer.ask(trips(port.host, Protocol::Tcp, [65_536, 10]), Nanos(0)).unwrap();
    assert_eq!((answer.done.count, answer.done.wrong), (10, 0), "{text}: {answer:?}");
    // Its CPU time is in the peer's own account.
    assert!(answer.cpu > Nanos(0) && answer.cpu <= peer.cpu().unwrap(), "{answer:?}");
    drop((container, peer));
    ends(&dunnage, subject, run);

    let run = run_in(&dunnage.state());
    let refused = Container::create(bare.as_ref(), &request, &run).err();
    let Some(Abort::Failed(failure)) = refused else { panic!("the host publishes its own ports") };
    assert_eq!(failure.class, FailureClass::Unsupported);
}

#[test]
fn a_peer_on_the_host_reaches_published_ports() {
    const TEST: &str = "a_peer_on_the_host_reaches_published_ports";
    for (need, text) in
        [(Need::Docker, "docker"), (Need::Docker, "docker:client=api"), (Need::Podman, "podman")]
    {
        if !lacks(TEST, need) {
            publishes(text);
        }
    }
}

#[test]
fn servers_count_their_own_cpu_time_and_die_with_their_probe() {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let mut container = service(bare.as_ref(), None, &run);
    let mut begin = |order: Serve| container.ask(order, Nanos(0)).unwrap().done;
    let served = begin(serving(orders::Service::Tcp, "127.0.0.1:0"));
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, served.port.unwrap()));
    let datagrams = begin(Serve { cpu: Some(0), ..serving(orders::Service::Udp, "[::]:0") });
    assert_eq!(datagrams.servers, 2);
    let taken = failure(&mut container, Serve { address: target, ..serving(orders::Service::Tcp, "[::]:0") });
    assert!(taken.class == FailureClass::Environment && taken.reason.contains("taken"), "{taken}");

    let mut peer = service(bare.as_ref(), None, &run);
    let before = container.ask(Usage {}, Nanos(0)).unwrap().done;
    let mut order = trips(target, Protocol::Tcp, [100, 2000]);
    order.client.cpu = Some(0);
    let answer = peer.ask(order, Nanos(0)).unwrap().done;
    assert_eq!(answer.trip.count(), 2000);
    let took = answer.took.0;
    assert!(answer.trip.quantile(0.5).unwrap() * 1000 <= took as u64, "{answer:?}");
    let spent = container.ask(Usage {}, Nanos(0)).unwrap().done.server.0 - before.server.0;
    assert!(spent > 0 && spent < took, "{spent} of {took}");
    for target in
        ["127.0.0.1", "::1"].map(|own| SocketAddr::new(own.parse().unwrap(), datagrams.port.unwrap()))
    {
        let order = Trip { receive: Receive::Busy, ..trips(target, Protocol::Udp, [1, 100]) };
        let there = peer.ask(order, Nanos(0)).unwrap().done;
        assert!(there.count + there.lost == 100 && there.count >= 90 && there.wrong == 0, "{there:?}");
    }
    let connect =
        |target, count| Connect { client: Client::of(target), limit: Limit { count, time: Nanos(0) } };
    assert_eq!(peer.ask(connect(target, 50), Nanos(0)).unwrap().done.count, 50);
    let elsewhere = failure(&mut peer, connect("192.0.2.1:80".parse().unwrap(), 1));
    assert_ne!(elsewhere.class, FailureClass::Timeout, "{elsewhere}");
    let endless = failure(&mut peer, connect(target, 0));
    assert_eq!(endless.class, FailureClass::Unsupported, "{endless}");

    // SAFETY: ends a server of this test, which has not been reaped.
    unsafe { libc::kill(datagrams.pid, libc::SIGKILL) };
    let ended = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    };
    until("the server is dead", || ended(datagrams.pid));
    let dead = failure(&mut container, Usage {});
    assert_eq!(dead.class, FailureClass::Crash, "{dead}");
    drop((container, peer));
    let place = format!("/proc/{}", served.pid);
    until("the server ends with its probe", || !Path::new(&place).exists());
    ends(&dunnage, bare, run);
}
