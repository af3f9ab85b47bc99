//! What scripted containers weigh, and with how little they start.

use crate::outcome::{Failure, FailureClass};
use crate::subject::weight::Weight;
use crate::sys::memory::charged::{Charged, Pressure};
use crate::sys::memory::resident::Resident;

/// What the machine uses without any, and has.
const BEFORE: i64 = 1 << 30;
const TOTAL: i64 = 1 << 40;
/// What the daemon has without any.
const OF_DAEMON: i64 = 40 << 20;

/// Each container has a mebibyte for each millisecond of its subject's time, and a helper somewhat more, which is noisy.
pub fn weight(time: f64, noise: f64, containers: i64) -> Weight {
    let of_each = |share: f64| (time * 1e3 * share * f64::from(1 << 20)).round() as i64 * containers;
    let own =
        Charged { anon: of_each(1.0), kernel: of_each(0.25), charged: of_each(1.5), ..Charged::default() };
    let shims = Resident { anon: of_each(1.5 + noise), file: of_each(0.5), shmem: 0, rss: of_each(4.0) };
    let of_helpers = Resident { anon: shims.anon + OF_DAEMON, rss: shims.rss + OF_DAEMON, ..shims };
    let (caller, uncharged) = (of_each(0.1), of_each(0.05));
    let machine = BEFORE + own.own() + of_helpers.own() + caller + uncharged;
    Weight {
        containers,
        own,
        helpers: containers + 1,
        of_helpers,
        caller: Some(caller),
        uncharged,
        machine,
        available: TOTAL - machine,
        dying: Some(0),
        ..Weight::default()
    }
}

/// A container that starts within this time, in seconds, needs a mebibyte for each millisecond, and half as much again to be left alone.
pub fn pressure(time: f64, limit: Option<u64>) -> Result<Pressure, Failure> {
    let needs = time * 1e3 * f64::from(1 << 20);
    let limit = limit.map_or(f64::INFINITY, |bytes| bytes as f64);
    if limit < needs {
        return Err(Failure::new(FailureClass::Crash, "more memory than its limit, by its script"));
    }
    let comfort = 1.5 * needs;
    Ok(Pressure { hits: i64::from(limit < comfort), killed: 0, peak: Some(comfort as i64) })
}
