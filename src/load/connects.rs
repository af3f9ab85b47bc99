//! Connections, one after the other. A connection's time is from `connect` until the server's greeting has
//! arrived, since a proxy accepts connections before it reaches the server. The socket is made before that. It
//! is closed with a reset, so that thousands of closed connections do not use up the ports.

use std::net::TcpStream;

use dunnage_orders::network::Connects;
use rustix::net::sockopt::set_socket_linger;

use super::protocol::be_greeted;
use super::{Limit, Target, failure, tcp_socket};
use crate::outcome::{Distribution, Failure};
use crate::sys::clock;
use crate::units::Nanos;

/// Makes connections until the limit.
///
/// # Errors
/// What ended the load early, with the number of connections until then.
pub fn connects(target: &Target, limit: Limit) -> Result<Connects, Failure> {
    let mut done = Connects { count: 0, took: Nanos(0), connect: Distribution::of_durations() };
    let began = clock::now();
    while done.count == 0 || !limit.is_reached(done.count, done.took) {
        let spent = one(target).map_err(|error| {
            let failure = failure(target.address, &error);
            Failure { reason: format!("{} after {} connections", failure.reason, done.count), ..failure }
        })?;
        done.connect.record(spent);
        done.count += 1;
        done.took = clock::now().since(began);
    }
    Ok(done)
}

fn one(target: &Target) -> std::io::Result<u64> {
    let mut stream: TcpStream = tcp_socket(target.address, target.patience)?;
    set_socket_linger(&stream, Some(std::time::Duration::ZERO))?;
    let before = clock::now();
    rustix::net::connect(&stream, &target.address)?;
    be_greeted(&mut stream)?;
    Ok(clock::now().since(before).0 as u64)
}
