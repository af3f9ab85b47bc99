//! What the kernel says about memory: how much of the machine's is in use (here), what is charged to cgroups (`charged`), and what
//! processes have of it (`resident`). All sizes are bytes.
//!
//! Deliberately absent: whose memory it is, which `subject::weighing` decides.

pub mod charged;
pub mod resident;

use std::io;

use super::page_cache::bytes_in;

/// The size of a page; the kernel counts in pages.
pub const PAGE: i64 = 4096;

/// The machine's memory at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// What is neither free nor page cache of files: memory of processes, shared memory, kernel memory of every kind.
    pub used: i64,
    /// Kernel memory that the kernel counts by kind: slabs, per-CPU memory, page tables, and what is mapped page by page, such as
    /// stacks.
    pub kernel: i64,
    /// What programs could still have, as the kernel estimates it: `free` shows the rest as used.
    pub available: i64,
    /// All of it.
    pub total: i64,
}

/// Reads it.
///
/// # Errors
/// If `/proc` lacks a field.
pub fn machine() -> io::Result<Machine> {
    let memory = std::fs::read_to_string("/proc/meminfo")?;
    let zones = std::fs::read_to_string("/proc/zoneinfo").unwrap_or_default();
    machine_in(&memory, &zones).ok_or_else(|| io::Error::other("`/proc/meminfo` lacks a field"))
}

fn machine_in(memory: &str, zones: &str) -> Option<Machine> {
    let bytes = |key: &str| bytes_in(memory, key).map(|bytes| bytes as i64);
    let optional = |key: &str| bytes(key).unwrap_or(0);
    let cache = bytes("Cached:")? + bytes("Buffers:")? + optional("SwapCached:") - bytes("Shmem:")?;
    let free = bytes("MemFree:")? + on_lists(zones);
    // Where stacks are mapped page by page, which is usual, they are in `VmallocUsed` as well.
    let mapped = bytes("VmallocUsed:")?.max(bytes("KernelStack:")?);
    let kernel =
        bytes("Slab:")? + bytes("PageTables:")? + optional("SecPageTables:") + optional("Percpu:") + mapped;
    let total = bytes("MemTotal:")?;
    Some(Machine { used: total - free - cache, kernel, available: bytes("MemAvailable:")?, total })
}

/// How many processes the kernel has killed for want of memory, in all cgroups and outside of any. From Linux 4.13 on.
pub fn killed() -> Option<i64> {
    let counters = std::fs::read_to_string("/proc/vmstat").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("oom_kill "))?.parse().ok()
}

/// Free pages on the lists that each CPU keeps, which the kernel does not count as free.
fn on_lists(zones: &str) -> i64 {
    let counts = zones.lines().filter_map(|line| line.trim_start().strip_prefix("count:"));
    counts.filter_map(|count| count.trim().parse::<i64>().ok()).sum::<i64>() * PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: &str = "MemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 550 kB\nBuffers: 20 kB\nCached: 200 kB\nSwapCached: 0 kB\nShmem: 50 kB\n\
        Slab: 60 kB\nKernelStack: 8 kB\nPageTables: 5 kB\nVmallocUsed: 12 kB\nPercpu: 3 kB\n";

    #[test]
    fn free_pages_on_the_lists_of_cpus_are_not_in_use() {
        let zones = "  pagesets\n    cpu: 0\n              count:    2\n              high:     9\n    cpu: 1\n              count:    3\n";
        let found = machine_in(MEMORY, zones).unwrap();
        assert_eq!(found.used, (1000 - 400 - 20 - 200 + 50) * 1024 - 5 * PAGE);
        assert_eq!(found.kernel, (60 + 5 + 3 + 12) * 1024);
        assert_eq!((found.available, found.total), (550 * 1024, 1000 * 1024));
        assert_eq!(machine_in("MemTotal: 1000 kB\n", zones), None);
    }

    #[test]
    fn this_machine_says_it() {
        let found = machine().unwrap();
        assert!(found.kernel > 0 && found.kernel < found.used, "{found:?}");
        assert!(killed().is_some());
    }
}
