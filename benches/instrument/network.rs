//! Are dunnage's loads on a network as fast as the tools that do only this? Both sides use the loopback
//! interface. For round trips client and server share a CPU: to wake an idle one takes several times longer than
//! all the rest and varies as much, on both sides alike. For streams the server has the first CPU and the client
//! the last.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use dunnage::orders::Ask;
use dunnage::orders::network::{Client, Direction, Limit, Protocol, Receive, Serve, Service, Stream, Trip};
use dunnage::outcome::Abort;
use dunnage::resource::ports;
use dunnage::subject::{Container, ContainerRequest, Resident, RunContext, Subject, on_path};
use dunnage::sys::affinity;
use dunnage::units::Nanos;
use serde_json::Value;

use crate::bench::{Bench, explained};
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// sockperf's shortest message, in bytes.
const SIZE: usize = 14;
/// How long each side exchanges messages: sockperf's shortest test.
const WINDOW: Nanos = Nanos::from_millis(1000);
/// Bytes of a transfer.
const BYTES: u64 = 2 << 30;

/// The median round trip over each protocol.
pub fn trips(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    on_path("sockperf").context("`sockperf` is not installed")?;
    let target = Target::Ratio(0.0, 1.02);
    [(Protocol::Tcp, Service::Tcp, "tcp"), (Protocol::Udp, Service::Udp, "udp")]
        .into_iter()
        .map(|(protocol, service, name)| {
            let [_, cpu] = cpus()?;
            let port = port()?;
            let over = if protocol == Protocol::Tcp { &["--tcp"][..] } else { &[] };
            let mut sockperf = pinned(cpu, "sockperf");
            sockperf.args(["server", "-i", "127.0.0.1", "-p", &port]).args(over);
            let _server = Ends(sockperf.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
            let pairs = with_ends(bench, service, cpu, |bench, client, own| {
                let limit = Limit { count: 0, time: WINDOW };
                let (client_end, receive) = (end(own, cpu), Receive::Blocking);
                let order = Trip { client: client_end, protocol, size: SIZE as u64, limit, receive };
                take_turns(
                    bench,
                    rounds,
                    Box::new(|bench| {
                        bench.fall_silent();
                        let mut sockperf = pinned(cpu, "sockperf");
                        sockperf.args(["ping-pong", "--full-rtt", "-i", "127.0.0.1", "-p", &port, "-t", "1"]);
                        sockperf.args(["-m", &SIZE.to_string()]).args(over);
                        median_of(&said(&mut sockperf)?)
                    }),
                    Box::new(|bench| {
                        let done = asked(bench, client, order)?;
                        Ok(done.trip.quantile(0.5).context("no round trip")? as f64 / 1e9)
                    }),
                )
            })?;
            Ok(Row::of_pairs(&format!("{name} round trip, median / sockperf"), bench, &pairs, &target))
        })
        .collect()
}

/// Seconds for a transfer, each way.
pub fn streams(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    on_path("iperf3").context("`iperf3` is not installed")?;
    let [server_cpu, client_cpu] = cpus()?;
    let port = port()?;
    let mut iperf = pinned(server_cpu, "iperf3");
    iperf.args(["-s", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Ends(iperf.spawn()?);
    [(Direction::Up, "up", &[][..]), (Direction::Down, "down", &["--reverse"])]
        .into_iter()
        .map(|(direction, name, way)| {
            let pairs = with_ends(bench, Service::Tcp, server_cpu, |bench, client, own| {
                let order =
                    Stream { client: end(own, client_cpu), direction, bytes: BYTES, streams: 1, seed: 0 };
                take_turns(
                    bench,
                    rounds,
                    Box::new(|bench| {
                        bench.fall_silent();
                        let mut iperf = pinned(client_cpu, "iperf3");
                        iperf
                            .args(["-c", "127.0.0.1", "-p", &port, "-n", &BYTES.to_string(), "-J"])
                            .args(way);
                        seconds_of(&said(&mut iperf)?)
                    }),
                    Box::new(|bench| {
                        let done = asked(bench, client, order)?;
                        ensure!(done.wrong == 0 && done.bytes == BYTES, "{done:?}");
                        Ok(done.took.seconds())
                    }),
                )
            })?;
            let target = Target::Ratio(0.0, 1.05);
            Ok(Row::of_pairs(&format!("2 GiB {name} over one stream / iperf3"), bench, &pairs, &target))
        })
        .collect()
}

/// The first CPU, and the last.
pub fn cpus() -> Result<[usize; 2]> {
    let all = affinity::allowed()?;
    Ok([*all.first().context("no CPU")?, *all.last().context("no CPU")?])
}

fn port() -> Result<String> {
    Ok(ports::free(1)?.first().context("no free port")?.to_string())
}

/// A session of its own, which our processes have too: the scheduler shares CPUs between sessions first, so a switch
/// from one to another takes longer than within one.
pub fn pinned(cpu: usize, program: &str) -> Command {
    let mut command = Command::new("setsid");
    command.args(["taskset", "-c", &cpu.to_string(), program]);
    command
}

/// A client of this server on this CPU.
pub fn end(target: SocketAddr, cpu: usize) -> Client {
    Client { cpu: Some(cpu), ..Client::of(target) }
}

/// Calls `use_them` with a client, and the address of dunnage's server over this protocol.
pub fn with_ends<T>(
    bench: &mut Bench,
    service: Service,
    server_cpu: usize,
    use_them: impl FnOnce(&mut Bench, &mut Container<'_>, SocketAddr) -> Result<T>,
) -> Result<T> {
    let bare = bench.subject("bare")?;
    let run = &bench.another_run()?;
    let mut server = serving(bare.as_ref(), run)?;
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let served = asked(bench, &mut server, Serve { service, address, key: None, cpu: Some(server_cpu) })?;
    let mut client = serving(bare.as_ref(), run)?;
    use_them(bench, &mut client, (Ipv4Addr::LOCALHOST, served.port.context("no port")?).into())
}

pub fn serving<'a>(subject: &'a dyn Subject, run: &'a RunContext) -> Result<Container<'a>> {
    let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
    let mut made = Container::create(subject, &request, run).map_err(explained)?;
    made.start().map_err(explained)?;
    made.ready().map_err(explained)?;
    Ok(made)
}

pub fn asked<O: Ask>(bench: &mut Bench, container: &mut Container<'_>, order: O) -> Result<O::Answer> {
    let answer = container.ask(order, WINDOW);
    bench.interrupted |= matches!(answer, Err(Abort::Interrupted));
    Ok(answer.map_err(explained)?.done)
}

/// A yardstick's server, which ends with the benchmark.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

pub fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}{}", text.trim(), words.trim());
    Ok(text)
}

/// sockperf's median, which is in microseconds.
fn median_of(text: &str) -> Result<f64> {
    let line = text.lines().find(|line| line.contains("percentile 50.000"));
    let number = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<f64>().ok());
    Ok(number.with_context(|| format!("sockperf answered `{}`", text.trim()))? / 1e6)
}

/// iperf3's seconds for all bytes, by the rate at the receiver.
fn seconds_of(text: &str) -> Result<f64> {
    let all: Value = serde_json::from_str(text)?;
    let rate = all["end"]["sum_received"]["bits_per_second"].as_f64().context("iperf3 reports no rate")?;
    Ok(BYTES as f64 * 8.0 / rate)
}
