//! Did the bytes really reach the disk? The class of what was written: durable, volatile, in the page cache, or in
//! memory; and if the device's own counters do not prove it, why not.
//!
//! Deliberately absent: trust in a return value. A sync that does nothing returns 0 as well.

use super::names::{DEVICE, DEVICE_BYTES, DURABILITY, OTHERS_BYTES};
use crate::experiment::question::quotient;
use crate::names::{Counter, Fact};
use crate::outcome::Sample;
use crate::text::percent;

/// Of the bytes that were synced, at least this share must have arrived at the device.
const LEAST: f64 = 0.95;
/// More than this share shows another writer: journals and metadata of a large file are far less.
const MOST: f64 = 1.5;
/// What others wrote in the quiet time before, as a share of the bytes to come, above which the window proves nothing.
const NOISE: f64 = 0.2;

/// How safe bytes were when their sync returned.
#[derive(Debug, Clone, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Class {
    /// The device's counters say that they arrived.
    Durable,
    /// The mount makes syncs do nothing; this share arrived at the device all the same.
    Volatile(Option<f64>),
    /// No sync was asked for.
    #[strum(serialize = "page cache")]
    Cached,
    /// The filesystem has no device.
    Memory,
    /// Why the counters do not prove that they arrived.
    Unproven(String),
    /// They were synced, and did not arrive: this share did.
    #[strum(serialize = "not durable")]
    Lost(f64),
}

/// What was seen of a sample's bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen<'a> {
    /// `synced`, `direct` or `cached`, as in the setting.
    pub sync: &'a str,
    /// Whether the mount is volatile, as read inside.
    pub is_volatile: bool,
    /// The device, `none` for a filesystem in memory; nothing if it was not found.
    pub device: Option<&'a str>,
    /// Bytes that arrived at the device, as a share of those that were synced.
    pub arrived: Option<f64>,
    /// Bytes that others would have written meanwhile, by what they wrote before, likewise.
    pub others: Option<f64>,
}

impl Class {
    /// The class of what a sample wrote, as this counter says, with the facts that were read back.
    pub(super) fn of_sample(
        sync: &str,
        sample: &Sample,
        facts: &[(String, String)],
        written: Counter,
    ) -> Class {
        let fact =
            |name: Fact| facts.iter().find(|(own, _)| own == name.text()).map(|(_, fact)| fact.as_str());
        Class::of(&Seen {
            sync,
            is_volatile: fact(DURABILITY) == Some("volatile"),
            device: fact(DEVICE),
            arrived: quotient(sample, DEVICE_BYTES, written),
            others: quotient(sample, OTHERS_BYTES, written),
        })
    }

    /// The class of what was seen.
    pub fn of(seen: &Seen<'_>) -> Class {
        if seen.device == Some("none") {
            return Class::Memory;
        }
        if seen.sync == "cached" {
            return Class::Cached;
        }
        if seen.is_volatile {
            return Class::Volatile(seen.arrived);
        }
        let (Some(_), Some(arrived)) = (seen.device, seen.arrived) else {
            return Class::Unproven("the device has no counters".to_owned());
        };
        match seen.others {
            Some(others) if others > NOISE => Class::Unproven(format!(
                "others wrote to the device, {} of as many bytes before it began",
                percent(others)
            )),
            _ if arrived < LEAST => Class::Lost(arrived),
            _ if arrived > MOST => {
                Class::Unproven(format!("{} of the bytes arrived: others wrote as well", percent(arrived)))
            }
            _ => Class::Durable,
        }
    }

    /// The word used in tables and files.
    pub fn word(&self) -> &'static str {
        self.into()
    }

    /// What makes numbers of this class wrong as those of a disk, with the mechanism; nothing if they are right, or do not
    /// claim to be.
    pub fn fault(&self) -> Option<(String, &'static str)> {
        let shown =
            |share: &f64| format!("{} of the bytes that it synced arrived at the device", percent(*share));
        match self {
            Class::Volatile(arrived) => Some((
                arrived.as_ref().map_or_else(|| "its mount is volatile".to_owned(), shown),
                "its root is mounted volatile: fsync does nothing there",
            )),
            Class::Lost(arrived) => Some((
                shown(arrived),
                "a layer between the program and the device does not pass on its syncs",
            )),
            Class::Durable | Class::Cached | Class::Memory | Class::Unproven(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVEN: Seen<'_> = Seen {
        sync: "synced",
        is_volatile: false,
        device: Some("vda"),
        arrived: Some(1.0),
        others: Some(0.0),
    };

    fn word(seen: Seen<'_>) -> &'static str {
        Class::of(&seen).word()
    }

    #[test]
    fn only_the_devices_own_counters_make_bytes_durable() {
        assert_eq!(word(PROVEN), "durable");
        assert_eq!(word(Seen { arrived: Some(0.96), ..PROVEN }), "durable");
        assert_eq!(word(Seen { arrived: Some(0.94), ..PROVEN }), "not durable");
        assert_eq!(word(Seen { arrived: Some(1.49), ..PROVEN }), "durable");
        assert_eq!(word(Seen { arrived: Some(1.51), ..PROVEN }), "unproven");
        assert_eq!(word(Seen { arrived: None, ..PROVEN }), "unproven");
        assert_eq!(word(Seen { device: None, ..PROVEN }), "unproven");
        assert_eq!(word(Seen { others: Some(0.21), ..PROVEN }), "unproven");
        assert_eq!(word(Seen { others: Some(0.19), ..PROVEN }), "durable");
    }

    #[test]
    fn a_volatile_mount_is_named_even_if_nothing_is_counted() {
        let seen = Seen { is_volatile: true, arrived: Some(0.0), ..PROVEN };
        assert_eq!(word(seen), "volatile");
        let (evidence, mechanism) = Class::of(&seen).fault().unwrap();
        assert!(evidence.starts_with("0") && mechanism.contains("volatile"), "{evidence}, {mechanism}");
        assert_eq!(word(Seen { arrived: None, ..seen }), "volatile");
        assert!(Class::of(&PROVEN).fault().is_none());
        assert!(Class::of(&Seen { arrived: Some(0.5), ..PROVEN }).fault().is_some());
    }

    #[test]
    fn nobody_expects_bytes_at_the_device_without_a_sync_or_a_device() {
        for is_volatile in [false, true] {
            assert_eq!(
                word(Seen { sync: "cached", is_volatile, arrived: Some(0.0), ..PROVEN }),
                "page cache"
            );
            assert_eq!(word(Seen { device: Some("none"), is_volatile, ..PROVEN }), "memory");
        }
    }
}
