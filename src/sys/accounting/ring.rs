//! One perf event per CPU that counts nothing and only reports scheduling, forks, exits and execs, and the
//! ring to which the kernel writes them.
//!
//! Nothing is read while a launch runs: no thread, no wake-up, no signal. Deliberately absent: the meaning of
//! the records (`record`, `tree`).

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{self, MapFlags, ProtFlags};

/// `struct perf_event_attr` in the size `PERF_ATTR_SIZE_VER5` (Linux 4.1), which has all fields used here.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const SOFTWARE: u32 = 1;
const COUNT_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_WATERMARK: u64 = 1 << 14;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_MMAP2: u64 = 1 << 23;
const FLAG_COMM_EXEC: u64 = 1 << 24;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
const FLAG_CONTEXT_SWITCH: u64 = 1 << 26;
const OPEN_CLOEXEC: libc::c_ulong = 8;

/// The offset of `data_head`, `data_tail`, `data_offset` and `data_size` in the ring's first page.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// The largest record: the path of a mapping can have 4,096 bytes.
const LARGEST_RECORD: u64 = 8192;

/// The ring of one CPU.
#[derive(Debug)]
pub struct Ring {
    base: *mut u8,
    page: usize,
    data: usize,
    _event: OwnedFd,
}

impl Ring {
    /// Starts recording on `cpu` into a ring of `data` bytes (a power of two, at least one page).
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without `CAP_PERFMON` (or beyond the limit of locked memory), `ENODEV` for an
    /// offline CPU, `ENOSYS` in a kernel without perf events.
    pub fn open(cpu: usize, data: usize) -> io::Result<Ring> {
        let attr = Attr {
            kind: SOFTWARE,
            size: size_of::<Attr>() as u32,
            config: COUNT_DUMMY,
            sample_type: SAMPLE_TID | SAMPLE_TIME,
            flags: FLAG_MMAP
                | FLAG_COMM
                | FLAG_TASK
                | FLAG_WATERMARK
                | FLAG_SAMPLE_ID_ALL
                | FLAG_MMAP2
                | FLAG_COMM_EXEC
                | FLAG_USE_CLOCKID
                | FLAG_CONTEXT_SWITCH,
            // No thread waits on the ring, so the kernel does not need to wake one.
            wakeup_watermark: u32::MAX,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attr::default()
        };
        // SAFETY: `attr` is a perf_event_attr of the size that it states, valid during the call.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &attr, -1, cpu as libc::c_int, -1, OPEN_CLOEXEC)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let (page, access) = (rustix::param::page_size(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base =
            unsafe { mm::mmap(std::ptr::null_mut(), page + data, access, MapFlags::SHARED, &event, 0)? };
        Ok(Ring { base: base.cast(), page, data, _event: event })
    }

    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: `base` is a live, page-aligned mapping of more than `at + 8` bytes; both counters are
        // 8-byte aligned u64 that the kernel and dunnage access as wholes.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// Discards everything in the ring.
    pub fn discard(&self) {
        let head = self.counter(HEAD_AT).load(Ordering::Acquire);
        self.counter(TAIL_AT).store(head, Ordering::Release);
    }

    /// Takes everything out of the ring, oldest first.
    ///
    /// `None` if so little room was left that the kernel may have dropped a record without having reported it
    /// yet.
    pub fn take(&self) -> Option<Vec<u8>> {
        let head = self.counter(HEAD_AT).load(Ordering::Acquire);
        let tail = self.counter(TAIL_AT).load(Ordering::Relaxed);
        let used = head.wrapping_sub(tail);
        let full = used + LARGEST_RECORD > self.data as u64;
        let length = (used as usize).min(self.data);
        let start = (tail % self.data as u64) as usize;
        let first = length.min(self.data - start);
        let mut bytes = Vec::with_capacity(length);
        // SAFETY: the data area is `data` bytes after the first page; both parts lie inside it, and the
        // kernel does not write between tail and head.
        unsafe {
            let data = self.base.add(self.page);
            bytes.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            bytes.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        self.counter(TAIL_AT).store(head, Ordering::Release);
        (!full).then_some(bytes)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `open` with this length, and nothing borrows it any more.
        let _ = unsafe { mm::munmap(self.base.cast(), self.page + self.data) };
    }
}

// SAFETY: the mapping belongs to no thread, and all access to what the kernel changes is atomic.
unsafe impl Send for Ring {}

/// The CPUs that are online, from `/sys/devices/system/cpu/online`.
///
/// # Errors
/// If the file cannot be read or is not a list of ranges.
pub fn online_cpus() -> io::Result<Vec<usize>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    cpu_list(&text).ok_or_else(|| io::Error::other(format!("not a list of CPUs: {text:?}")))
}

fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::granted::granted;

    #[test]
    fn the_attribute_has_the_size_of_version_five() {
        assert_eq!(size_of::<Attr>(), 112);
    }

    #[test]
    fn a_ring_that_overflows_says_so() {
        let cpus = online_cpus().unwrap();
        let open = |&cpu: &usize| Ring::open(cpu, 4 * rustix::param::page_size());
        let rings: io::Result<Vec<Ring>> = cpus.iter().map(open).collect();
        let Some(rings) = granted("a_ring_that_overflows_says_so", "perf_events", rings) else { return };
        let make = |count: usize| (0..count).for_each(|_| std::thread::spawn(|| {}).join().unwrap());
        rings.iter().for_each(Ring::discard);
        make(300 * cpus.len());
        let full = rings.iter().filter(|ring| ring.take().is_none()).count();
        assert!(full > 0);
        // After an overflow the ring still works. It reports the loss with the next record, and what else the machine starts may
        // fill it again.
        let works = |ring: &Ring| ring.take().is_some_and(|bytes| !bytes.is_empty());
        assert!((0..100).any(|_| {
            make(2);
            rings.iter().any(works)
        }));
    }

    #[test]
    fn cpu_lists_are_read() {
        assert_eq!(cpu_list("0-1\n"), Some(vec![0, 1]));
        assert_eq!(cpu_list("0,2-4,9"), Some(vec![0, 2, 3, 4, 9]));
        assert_eq!(cpu_list("many"), None);
    }
}
