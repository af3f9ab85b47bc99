//! Experiments about storage, and what they share: where the files are, how they are synced, and the size of what is
//! written.

pub mod class;
pub mod disk;
pub mod layers;
pub mod owners;
pub mod suspects;

use super::question::{Metric, each};
use super::setting::fits;
use crate::names::{Counter, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::spec::parse_size;
use crate::units::{Better, Nanos, Unit};

names! {
    Counter { DEVICE_BYTES = "device_bytes", OTHERS_BYTES = "others_bytes", }
    Fact {
        MOUNT = "mount", FILESYSTEM = "filesystem", DEVICE = "device", DURABILITY = "durability", BACKING = "backing",
    }
}

/// A gigabyte, as rates count it.
const GB: f64 = 1e9;
/// What a sample takes in addition to its bytes: syncs, orders, small files.
const AROUND: Nanos = Nanos::from_millis(100);

fn is_size(value: &str) -> Result<(), String> {
    fits(parse_size(value).is_some_and(|bytes| BOUNDS.contains(&bytes)), "a size from 1MiB to 64GiB")
}

/// The fewest and the most bytes that a sample writes at once.
const BOUNDS: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 30;

/// A share that only describes.
const fn share(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Share, Margin::fixed(0.01, 0.0)).with(Better::Neither).context()
}

/// Seconds of a gigabyte: this counter of nanoseconds for the bytes in that one.
fn of_a_gigabyte(sample: &Sample, took: Counter, bytes: Counter) -> Option<f64> {
    Some(each(sample, took, bytes)? * GB)
}
