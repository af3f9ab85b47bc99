//! What of the kernel is there, asked without the code under test.

use std::fs;
use std::io;

const CAP_IPC_LOCK: u64 = 14;
const CAP_SYS_ADMIN: u64 = 21;
const CAP_PERFMON: u64 = 38;

/// Sets up a ring and closes it.
pub fn io_uring_ready() -> Result<(), String> {
    // `struct io_uring_params`, in which zero asks for the defaults.
    let mut parameters = [0u64; 15];
    // SAFETY: the parameters are as long as the kernel's structure, which it reads and writes during the call.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    if ring >= 0 {
        // SAFETY: the kernel has just returned this descriptor, and nothing else has it.
        unsafe { libc::close(ring as i32) };
        return Ok(());
    }
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => Err(format!("io_uring_setup: {error}")),
        _ => panic!("io_uring_setup: {error}"),
    }
}

/// Whether the kernel has perf events, and this process may read those of all CPUs.
pub fn perf_events_ready() -> Result<(), String> {
    // This file is how the kernel says so (perf_event_open(2)).
    fs::metadata("/proc/sys/kernel/perf_event_paranoid")
        .map_err(|error| format!("/proc/sys/kernel/perf_event_paranoid: {error}"))?;
    let capable = |capability: u64| capabilities() & 1 << capability != 0;
    let may = (capable(CAP_PERFMON) || capable(CAP_SYS_ADMIN)) && capable(CAP_IPC_LOCK);
    may.then_some(()).ok_or("CAP_PERFMON or CAP_IPC_LOCK is missing".to_owned())
}

/// The effective capabilities of this process.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("our status");
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("our capabilities");
    u64::from_str_radix(set.trim(), 16).expect("a set in hexadecimal digits")
}
