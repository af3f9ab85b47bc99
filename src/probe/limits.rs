//! The limits of the probe's own cgroup, wherever it sees it: in a container under `/sys/fs/cgroup`, on the
//! host by its path.

use core::ffi::CStr;

use super::Message;
use crate::sys::cgroup::own::{Controller, Membership};

/// The files of both versions; those that are not there have no lines.
pub(super) const FILES: [(&str, Controller, &CStr); 7] = [
    ("cpu.max", Controller::Cpu, c"cpu.max"),
    ("cpu.max.burst", Controller::Cpu, c"cpu.max.burst"),
    ("cpu.cfs_quota_us", Controller::Cpu, c"cpu.cfs_quota_us"),
    ("cpu.cfs_period_us", Controller::Cpu, c"cpu.cfs_period_us"),
    ("cpu.cfs_burst_us", Controller::Cpu, c"cpu.cfs_burst_us"),
    ("memory.max", Controller::Memory, c"memory.max"),
    ("memory.limit_in_bytes", Controller::Memory, c"memory.limit_in_bytes"),
];

/// Writes them down, a file's name and its line each.
pub(super) fn read<const ROOM: usize>(message: &mut Message<ROOM>) {
    let Ok(own) = Membership::read() else { return };
    let mut buffer = [0u8; 64];
    for (name, controller, file) in FILES {
        if let Ok(text) = own.file(controller, file, &mut buffer) {
            message.push(name.as_bytes());
            message.push(b" ");
            message.push(text.trim_ascii());
            message.push(b"\n");
        }
    }
}
