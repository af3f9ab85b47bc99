//! An address of the host on its loopback interface, at which containers reach a server of the run and no port
//! is taken. It is one that RFC 2544 sets aside for benchmarks, and its label names the run.

use std::net::Ipv4Addr;
use std::sync::Arc;

use super::{Found, Goes, Held, Keeps, Kind, Look, Owner, Record, is_word};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::sys::own_address;
use crate::sys::route::{self, Way};

pub(crate) static KIND: Kind = Kind {
    name: "address",
    goes: Goes::AfterClients,
    keeps: Keeps::Process,
    shown: |record| format!("the address `{}` of the loopback interface", record.id),
    look: |record, scope| match record.id.parse() {
        Ok(address) if is_ours(address) && is_word(scope.run) => Ok(Look::Ours),
        _ => Ok(Look::Foreign("it is not one of dunnage's addresses".into())),
    },
    undo: |record, scope| {
        let address = record.id.parse().map_err(|error| format!("`{}`: {error}", record.id))?;
        match own_address::remove(address, &label(scope.run)) {
            Ok(()) => Ok(Found::Yes),
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => Ok(Found::No),
            Err(error) => Err(error.to_string()),
        }
    },
};

/// The first two bytes of every one.
const PREFIX: [u8; 2] = [198, 19];
/// How many are tried, since another run may have some of them.
const TRIES: u64 = 64;

/// Adds an address that the host does not have yet.
pub fn address(owner: &Arc<Owner>) -> Result<Held<Ipv4Addr>, Abort> {
    // Runs begin at different places.
    let first = owner.id.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut candidates = (0..TRIES).map(|_| {
        let [low, high, ..] = first.wrapping_add(owner.next_number()).to_le_bytes();
        Ipv4Addr::new(PREFIX[0], PREFIX[1], high, low)
    });
    let is_free = |address: &Ipv4Addr| route::to((*address).into()).ok() != Some(Way::Own);
    let Some(address) = candidates.find(is_free) else {
        return Err(Failure::environment("the host has all of dunnage's addresses already").into());
    };
    owner.make(&KIND, Record::new(&KIND, address.to_string()), || {
        own_address::add(address, &label(&owner.id)).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) => Failure::new(
                FailureClass::Permission,
                "only root may add an address to the loopback interface; hint: run dunnage as root",
            ),
            _ => Failure::environment(format!("cannot add `{address}` to the loopback interface: {error}")),
        })?;
        Ok(address)
    })
}

fn label(run: &str) -> String {
    format!("lo:{run}")
}

fn is_ours(address: Ipv4Addr) -> bool {
    address.octets()[..2] == PREFIX
}
