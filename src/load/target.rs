//! The target of a load. Since a load is heavy traffic, it goes only to this machine and its containers, unless
//! the user says that the target is their own.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dunnage_orders::network::Whose;

use super::protocol::Key;
use crate::outcome::{Failure, FailureClass, OrEnvironment};
use crate::sys::route::{self, Way};

/// How long a load waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The server of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Its address.
    pub address: SocketAddr,
    /// How long to wait for it in one call.
    pub patience: Duration,
    /// What its requests begin with.
    pub key: Key,
}

impl Target {
    /// The target at this address.
    ///
    /// # Errors
    /// If it may not be one.
    pub fn new(address: SocketAddr, whose: Whose) -> Result<Target, Failure> {
        if whose == Whose::Run && !is_here(address.ip())? {
            let reason = format!("`{address}` is neither this machine nor a container of it");
            return Err(Failure::new(FailureClass::Permission, reason));
        }
        Ok(Target { address, patience: PATIENCE, key: Key::default() })
    }
}

/// Whether an address is this namespace's own, or that of a neighbour without hardware in between.
fn is_here(address: IpAddr) -> Result<bool, Failure> {
    let way = route::to(address).or_environment(format_args!("there is no way to `{address}`"))?;
    Ok(way != Way::Elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_a_target_unless_the_user_says_so() {
        for own in ["127.0.0.1:80", "[::1]:80"] {
            let own = own.parse().unwrap();
            assert_eq!(Target::new(own, Whose::Run).unwrap().address, own);
        }
        // Addresses for documentation. Where there is no route, there is no way either.
        for foreign in ["192.0.2.1:80", "[2001:db8::1]:80"] {
            let foreign = foreign.parse().unwrap();
            let failure = Target::new(foreign, Whose::Run).unwrap_err();
            let is_refused = failure.class == FailureClass::Permission;
            assert!(is_refused || failure.reason.contains("no way"), "{failure}");
            assert!(Target::new(foreign, Whose::User).is_ok());
        }
    }
}
