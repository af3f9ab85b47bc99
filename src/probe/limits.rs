//! The limits of the probe's own cgroup, wherever it sees it: in a container under `/sys/fs/cgroup`, on the
//! host by its path.

use super::Message;
use crate::sys::cgroup::{mounted, own};

/// The files of both versions, with their controllers; those that are not there have no lines.
pub(super) const FILES: [(&str, &str); 7] = [
    ("cpu.max", "cpu"),
    ("cpu.max.burst", "cpu"),
    ("cpu.cfs_quota_us", "cpu"),
    ("cpu.cfs_period_us", "cpu"),
    ("cpu.cfs_burst_us", "cpu"),
    ("memory.max", "memory"),
    ("memory.limit_in_bytes", "memory"),
];

/// Writes them down, a file's name and its line each.
pub(super) fn read(message: &mut Message<'_>) {
    let hierarchies = mounted().unwrap_or_default();
    for (name, controller) in FILES {
        let directory = own::directory(&hierarchies, controller);
        if let Some(Ok(text)) = directory.map(|(_, directory)| std::fs::read(directory.join(name))) {
            message.named(name, text.trim_ascii());
        }
    }
}
