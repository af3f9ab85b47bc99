//! What a scripted container answers to orders about a network. A round trip, a name and a request take a thousandth of the
//! scripted time, a gigabyte a thousand times as long as it; a client that is not the server itself, or a resolver between,
//! takes as long again.

use std::net::SocketAddr;

use dunnage_orders::Order;
use dunnage_orders::network::{Connects, Names, Requests, Started, Streams, Trips, Used, Wrong};
use serde_json::Value;

use super::work::Clock;
use crate::units::Nanos;

/// Nanoseconds of a round trip and of a byte for each second of the script.
const TRIP: f64 = 1e6;
const BYTE: f64 = 1e3;
/// How often anything is done.
const COUNT: u64 = 200;

/// What scripted servers have done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Served {
    /// Names that the resolver was asked for.
    names: u32,
    /// CPU time.
    cpu: Nanos,
}

/// One end of connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct End {
    /// Whether it has servers, and so is in their network namespace.
    serves: bool,
}

impl End {
    /// The answer to an order; none to one that is not about a network.
    pub fn answer(&mut self, order: &Order, clock: &mut Clock<'_>, served: &mut Served) -> Option<Value> {
        let factor = if self.serves { 1.0 } else { 2.0 };
        let answer = match order {
            Order::Serve(order) => {
                self.serves = true;
                let port = Some(order.address.port().max(1));
                serde_json::to_value(Started { port, pid: 1, servers: 1 })
            }
            Order::EndServers(_) => Ok(Value::Null),
            Order::Usage(_) => serde_json::to_value(Used { server: served.cpu, client: Nanos(0) }),
            Order::Queries(_) => serde_json::to_value(served.names),
            Order::Trip(_) => {
                let (trip, took) = clock.many(COUNT, TRIP * factor);
                serde_json::to_value(Trips { count: COUNT, warm_up: 0, took, wrong: 0, lost: 0, trip })
            }
            Order::Connect(_) => {
                let (connect, took) = clock.many(COUNT, 3.0 * TRIP * factor);
                serde_json::to_value(Connects { count: COUNT, took, connect })
            }
            Order::Stream(order) => {
                let took = clock.nanos(BYTE * factor * order.bytes as f64);
                serde_json::to_value(Streams { bytes: order.bytes, took, wrong: 0 })
            }
            Order::Request(order) => {
                let more = match order.load.path.as_str() {
                    "/disk-io" => 1.0,
                    "/cpu" => 10.0,
                    _ => 0.0,
                };
                let (latency, took) = clock.many(COUNT, TRIP * (factor + more));
                serde_json::to_value(Requests {
                    requests: COUNT,
                    took,
                    in_flight: took,
                    bytes: 0,
                    opened: order.load.connections as u64,
                    wrong: [0; Wrong::ALL.len()],
                    latency,
                })
            }
            Order::Resolve(order) => {
                let between = if order.resolver.is_engines { 2.0 } else { 1.0 };
                let (name, took) = clock.many(COUNT, TRIP * between);
                served.names += COUNT as u32 + 1;
                let resolver: SocketAddr = order.resolver.own;
                let (count, warm_up, wrong, lost) = (COUNT, 0, 0, 0);
                serde_json::to_value(Names { resolver, count, warm_up, took, wrong, lost, name })
            }
            _ => return None,
        };
        served.cpu = served.cpu + Nanos(clock.passed.0 / 4);
        Some(answer.expect("an answer can be written"))
    }
}
