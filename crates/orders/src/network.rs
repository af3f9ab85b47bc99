//! Orders about a network: servers that stay, and loads on the servers of others.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use dunnage_analysis::outcome::Distribution;
use dunnage_analysis::units::{Nanos, whole_nanos};
use serde::{Deserialize, Serialize};

pub use crate::files::Limit;

/// A transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// How a side waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receive {
    /// It sleeps in the kernel until they come.
    Blocking,
    /// It asks again and again, and so keeps a CPU busy.
    Busy,
}

/// Whose a target may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// This machine's or its containers'.
    Run,
    /// Any: the user says that it is their own.
    User,
}

/// Who asks, and whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Client {
    /// The server.
    pub target: SocketAddr,
    /// Whose it may be.
    pub whose: Whose,
    /// How long to wait for an answer, in nanoseconds; without it as long as usual.
    pub patience: Option<u64>,
    /// What only server and clients know.
    pub key: Option<u64>,
    /// The CPU that the client is bound to.
    pub cpu: Option<usize>,
}

impl Client {
    /// A client of this machine's or a container's server, without anything special.
    pub fn of(target: SocketAddr) -> Client {
        Client { target, whose: Whose::Run, patience: None, key: None, cpu: None }
    }
}

/// Starts a server of the probe's own, as a process of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Serve {
    /// What it serves.
    pub service: Service,
    /// Where it listens; port 0 is any that is free.
    pub address: SocketAddr,
    /// What only server and clients know: without it nothing is served.
    pub key: Option<u64>,
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
}

/// What a server does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Returns bytes, or counts them.
    Tcp,
    /// Returns datagrams.
    Udp,
    /// Answers requests over HTTP.
    Http(Settings),
    /// Answers names, each after a delay.
    Names {
        /// The delay.
        #[serde(with = "whole_nanos")]
        delay: Nanos,
    },
}

/// How a web server works.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Settings {
    /// The number of threads; none stands for that of the CPUs that it may use.
    pub workers: Option<usize>,
    /// More connections than this are closed at once.
    pub connections: usize,
    /// Where `/disk-io` writes; none means that there is no such path.
    pub directory: Option<PathBuf>,
    /// The first part of all paths, if only those who know it are served.
    pub key: Option<u64>,
    /// How much it writes.
    pub bytes: usize,
    /// Whether the file is synced before it is read back.
    pub sync: bool,
    /// How many hashes `/cpu` computes, each of the one before.
    pub hashes: u64,
    /// How long the server does not answer at the beginning of every second.
    #[serde(with = "whole_nanos")]
    pub stall: Nanos,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: None,
            connections: usize::MAX,
            directory: None,
            key: None,
            bytes: 1 << 20,
            sync: false,
            hashes: 100_000,
            stall: Nanos(0),
        }
    }
}

/// Starts a user's program as a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StartProgram {
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
    /// Its working directory; empty for the current one.
    pub directory: String,
    /// Its variables, each `NAME=VALUE`.
    pub variables: Vec<String>,
    /// Its words.
    pub words: Vec<String>,
}

/// A server that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The port at which the probe's own server listens.
    pub port: Option<u16>,
    /// Its process id.
    pub pid: i32,
    /// How many servers this probe has now.
    pub servers: usize,
}

/// Ends all servers of the probe, with the processes that they started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndServers {}

/// Reads the CPU time used so far; fails if a server has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {}

/// CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Of the servers, with the processes that they started and that still run.
    #[serde(with = "whole_nanos")]
    pub server: Nanos,
    /// Of the probe itself.
    #[serde(with = "whole_nanos")]
    pub client: Nanos,
}

/// Reads facts about interfaces: `mtu` and `offloads` of each.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Links {
    /// Their names.
    pub interfaces: Vec<String>,
}

/// Facts by name.
pub type Facts = Vec<(String, String)>;

/// Makes full round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Trip {
    /// Who and whom.
    pub client: Client,
    /// Over what.
    pub protocol: Protocol,
    /// Bytes of a message.
    pub size: u64,
    /// When it ends.
    pub limit: Limit,
    /// How both sides wait.
    pub receive: Receive,
}

/// The result of round trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trips {
    /// Trips that were timed and came back.
    pub count: u64,
    /// Exchanges before the first timed one.
    pub warm_up: u64,
    /// From the beginning of the first to the end of the last.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// Bytes that came back changed.
    pub wrong: u64,
    /// Datagrams that did not come back.
    pub lost: u64,
    /// The time of each, in nanoseconds.
    pub trip: Distribution,
}

/// Makes connections, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Connect {
    /// Who and whom.
    pub client: Client,
    /// When it ends.
    pub limit: Limit,
}

/// The result of connecting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Connects {
    /// Connections that were made.
    pub count: u64,
    /// From the first socket to the last close.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// The time of each, in nanoseconds.
    pub connect: Distribution,
}

/// Moves random bytes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stream {
    /// Who and whom.
    pub client: Client,
    /// Which way.
    pub direction: Direction,
    /// How many, in all streams.
    pub bytes: u64,
    /// Streams at once.
    pub streams: u64,
    /// Chooses the bytes.
    pub seed: u64,
}

/// The direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// The result of moving bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Bytes that the receiver counted, in all streams.
    pub bytes: u64,
    /// From the first request until the client has all bytes, or the server's last confirmation.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// Chunks of 128 KiB that arrived changed.
    pub wrong: u64,
}

/// Makes requests over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Who and whom.
    pub client: Client,
    /// What is asked, and how often.
    pub load: Load,
}

/// A load of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Load {
    /// The target of each request; a key comes before it.
    pub path: String,
    /// Connections at once.
    pub connections: usize,
    /// Threads that share them.
    pub threads: usize,
    /// When it ends. Requests that are due until then are answered, or fail.
    pub limit: Limit,
    /// Requests a second over all connections: an open loop. None is a closed one.
    pub rate: Option<u64>,
    /// The status that answers must have.
    pub status: u16,
    /// The bytes that their bodies must have.
    pub body: Option<usize>,
    /// How much CPU time each thread spends after an answer, before it goes on.
    #[serde(with = "whole_nanos")]
    pub computes: Nanos,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// There was no connection.
    Refused,
    /// The connection ended before the answer was complete.
    Closed,
    /// The answer did not come in time.
    Timeout,
    /// The answer is not one of HTTP/1.
    Malformed,
    /// It has another status.
    Status,
    /// Its body has another length.
    Body,
}

impl Wrong {
    /// All of them with their names, in the order of [`Requests::wrong`].
    pub const ALL: [(&str, Wrong); 6] = [
        ("refused", Wrong::Refused),
        ("closed", Wrong::Closed),
        ("timeout", Wrong::Timeout),
        ("malformed", Wrong::Malformed),
        ("status", Wrong::Status),
        ("body", Wrong::Body),
    ];
}

/// The result of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests that were answered as they must be.
    pub requests: u64,
    /// From the beginning until the last answer, and at least the time that was asked for unless the count ended it.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// The sum of all latencies. Divided by `took` it is the mean number of requests on their way, which is also the
    /// rate times the mean latency (Little's law).
    #[serde(with = "whole_nanos")]
    pub in_flight: Nanos,
    /// Bytes of all answers, with their heads.
    pub bytes: u64,
    /// Connections that were open at the beginning.
    pub opened: u64,
    /// Requests that failed, by [`Wrong::ALL`].
    pub wrong: [u64; Wrong::ALL.len()],
    /// From when a request was due, in a closed loop from when its connection was free, until its answer was complete.
    /// A new connection where the server closes it after an answer is included. In nanoseconds.
    pub latency: Distribution,
}

/// Waits until a server answers over HTTP at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AwaitAnswer {
    /// Who and whom.
    pub client: Client,
    /// The target of the request.
    pub path: String,
}

/// A server's first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// How long it took to come.
    #[serde(with = "whole_nanos")]
    pub waited: Nanos,
    /// Its status.
    pub status: u16,
}

/// Resolves names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resolve {
    /// Who is asked.
    pub resolver: Resolver,
    /// Which names.
    pub which: Which,
    /// When it ends.
    pub limit: Limit,
    /// The CPU that the client is bound to.
    pub cpu: Option<usize>,
}

/// Who is asked for names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resolver {
    /// dunnage's own.
    pub own: SocketAddr,
    /// The file that names the one to ask instead.
    pub file: Option<PathBuf>,
    /// Whether that one must not be dunnage's.
    pub is_engines: bool,
}

/// Which names are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// A new one each time, which no cache knows.
    Fresh,
    /// The same one each time.
    Repeated,
    /// This one each time, which another resolver than dunnage's knows, with its address.
    Given(String, Ipv4Addr),
}

/// The result of resolving names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Names {
    /// Who was asked.
    pub resolver: SocketAddr,
    /// Names that were resolved.
    pub count: u64,
    /// Names before the first timed one.
    pub warm_up: u64,
    /// From the beginning of the first to the end of the last.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// Of them, those with another answer than their address.
    pub wrong: u64,
    /// Queries without an answer.
    pub lost: u64,
    /// The time of each, in nanoseconds.
    pub name: Distribution,
}

/// Asks dunnage's resolver how many names it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Queries {
    /// The resolver.
    pub resolver: SocketAddr,
}
