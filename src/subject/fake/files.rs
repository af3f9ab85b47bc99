//! What a scripted container answers to orders about files. A gigabyte takes a thousand times the scripted time, and half of
//! that to be read from its device; what changes a file of an image first copies all of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dunnage_orders::Order;
use dunnage_orders::files::{
    Action, Appends, Cleared, EachTime, Forgotten, Modified, Moved, Operation, Random, Single,
};
use serde_json::Value;

use super::work::Clock;
use crate::outcome::Distribution;
use crate::sys::block_device::Counters;
use crate::units::Nanos;

/// Nanoseconds of a byte, of a call that changes a file, of one that opens it, and of a synced record, for each second of the
/// script.
const BYTE: f64 = 1e3;
const CHANGE: f64 = 1e8;
const OPEN: f64 = 1e6;
const RECORD: f64 = 1e6;
/// By how much each layer above a file makes opening it longer.
const LAYER: f64 = 0.1;
/// The most that is done at random places or appended.
const MOST: u64 = 1000;

/// The files of a container.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// By how much writing and reading are slower than in a directory of the host's.
    pub factor: f64,
    /// Whether they are an image's, so that a change copies.
    pub copies: bool,
    /// Whether bytes arrive at a device.
    pub arrive: bool,
    /// The layers of the image.
    pub layers: usize,
    /// Bytes by path.
    pub sizes: BTreeMap<PathBuf, u64>,
    /// Whether they are out of the page cache.
    is_cold: bool,
    is_open: bool,
}

impl Files {
    /// The answer to an order; none to one that is not about files.
    pub fn answer(&mut self, order: &Order, clock: &mut Clock<'_>, device: &mut Counters) -> Option<Value> {
        let none = || Distribution::of([]);
        let answer = match order {
            Order::Write(order) => {
                let files = order.files;
                let own = (0..files.count).map(|number| (order.path.join(number.to_string()), files.bytes));
                self.sizes.extend(own);
                let bytes = files.count * files.bytes;
                self.arrived(device, bytes);
                let took = clock.nanos(BYTE * self.factor * bytes as f64);
                let cpu = Nanos(took.0 / 2);
                serde_json::to_value(Moved { bytes, took, cpu, wrong: 0, block: none() })
            }
            Order::Read(order) => {
                let bytes = self.bytes_in(&order.path, order.count);
                let share = if std::mem::take(&mut self.is_cold) { 0.5 } else { 0.1 };
                let took = clock.nanos(BYTE * self.factor * share * bytes as f64);
                serde_json::to_value(Moved { bytes, took, cpu: took, wrong: 0, block: none() })
            }
            Order::Forget(_) => {
                self.is_cold = true;
                serde_json::to_value(Forgotten { resident: 0, pages: 1 })
            }
            Order::Append(order) => {
                let count = order.limit.count.min(MOST);
                self.arrived(device, count * order.size);
                device.flushes = device.flushes.map(|before| before + count);
                let (append, took) = clock.many(count, RECORD * self.factor);
                serde_json::to_value(Appends { count, took, cpu: Nanos(0), append })
            }
            Order::Scatter(order) => {
                let operations = order.asked.limit.count.min(MOST);
                let (random, took) = clock.many(operations, RECORD * self.factor);
                serde_json::to_value(Random { operations, took, cpu: Nanos(0), random })
            }
            Order::Each(order) => {
                let one = match order.operation {
                    Operation::Open if self.is_open => OPEN,
                    Operation::Open => {
                        let above =
                            if order.path.iter().any(|part| part == "first") { self.layers } else { 0 };
                        self.is_open = true;
                        OPEN * (1.0 + LAYER * above.saturating_sub(1) as f64)
                    }
                    _ => self.change(self.bytes_in(&order.path, 1)),
                };
                let (each, took) = clock.many(order.count, one);
                serde_json::to_value(EachTime { all: Single { took, cpu: Nanos(0) }, each })
            }
            Order::Modify(order) => {
                let bytes = self.sizes.get(&order.file).copied().unwrap_or(0);
                self.arrived(device, if self.copies { bytes } else { 0 });
                let all = Single { took: clock.nanos(self.change(bytes)), cpu: Nanos(0) };
                serde_json::to_value(Modified { all, opened: all.took })
            }
            Order::Change(order) => {
                let bytes = self.sizes.get(&order.file).copied().unwrap_or(0);
                let nanos = match order.action {
                    Action::Truncate(bytes) => BYTE * bytes as f64,
                    Action::Delete => CHANGE,
                    _ => self.change(bytes),
                };
                serde_json::to_value(Single { took: clock.nanos(nanos), cpu: Nanos(0) })
            }
            Order::Touch(_) => Ok(Value::Null),
            Order::Prepare(order) => {
                self.sizes.extend(order.files.iter().map(|(file, bytes)| (order.path.join(file), *bytes)));
                Ok(Value::Null)
            }
            Order::Clear(_) => serde_json::to_value(Cleared::default()),
            _ => return None,
        };
        Some(answer.expect("an answer can be written"))
    }

    fn arrived(&self, device: &mut Counters, bytes: u64) {
        device.bytes_written += if self.arrive { bytes } else { 0 };
    }

    /// Of so many numbered files in a directory.
    fn bytes_in(&self, path: &Path, count: u64) -> u64 {
        (0..count).filter_map(|number| self.sizes.get(&path.join(number.to_string()))).sum()
    }

    fn change(&self, bytes: u64) -> f64 {
        CHANGE + if self.copies { BYTE * bytes as f64 } else { 0.0 }
    }
}
