//! Parses the bytes of one perf ring into events. Every read is checked against the record's bounds.
//!
//! The layouts are those of `perf_event_open(2)` for `sample_type = TID | TIME` with `sample_id_all`.
//! Deliberately absent: the tree of processes (`tree`), and the ring itself (`ring`).

use anyhow::{Context, Result};

/// The id that perf reports for a task on a CPU which the kernel has already released.
pub const RELEASED: i32 = -1;

/// One thing that the kernel reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time: u64,
    /// The ring, and so the CPU, that reported it.
    pub cpu: usize,
    /// What happened.
    pub kind: Kind,
}

/// What happened. `pid` is a process (thread group), `tid` a thread, as numbered in the opener's PID
/// namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Thread `by_tid` of process `by_pid` made thread `tid` of process `pid`.
    Fork {
        /// The new thread's process.
        pid: i32,
        /// The new thread.
        tid: i32,
        /// The process that called fork or clone, also with `CLONE_PARENT`.
        by_pid: i32,
        /// Its thread that did.
        by_tid: i32,
    },
    /// A process executed a program; its other threads are gone.
    Exec {
        /// The process.
        pid: i32,
    },
    /// A process mapped an executable file.
    Map {
        /// The process.
        pid: i32,
        /// `st_dev` of the file.
        device: u64,
        /// `st_ino` of the file.
        inode: u64,
        /// The path as the process sees it.
        path: String,
    },
    /// A thread was scheduled on this CPU.
    On {
        /// Its process, or [`RELEASED`].
        pid: i32,
        /// The thread; 0 is the idle task, or a thread outside the opener's PID namespace.
        tid: i32,
    },
    /// A thread left this CPU.
    Off {
        /// Its process, or [`RELEASED`].
        pid: i32,
        /// The thread; 0 is the idle task, or a thread outside the opener's PID namespace.
        tid: i32,
        /// The next thread, in the same numbering.
        next: i32,
    },
    /// The ring was full, and records are missing.
    Lost {
        /// How many.
        count: u64,
    },
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const FORK: u32 = 7;
const MMAP2: u32 = 10;
const SWITCH_CPU_WIDE: u32 = 15;
/// `PERF_RECORD_MISC_SWITCH_OUT` on a switch, `PERF_RECORD_MISC_COMM_EXEC` on a name.
const MISC_OUT_OR_EXEC: u16 = 1 << 13;
const HEADER: usize = 8;
/// `pid, tid, time` at the end of every record.
const SAMPLE_ID: usize = 16;

/// Parses all records in `bytes`, which came from the ring of `cpu`, and appends them to `events`.
///
/// # Errors
/// If a record is truncated or shorter than its type requires; then nothing after it can be trusted.
pub fn parse(cpu: usize, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<()> {
    while !bytes.is_empty() {
        let kind = number(bytes, 0, u32::from_ne_bytes).unwrap_or(0);
        let (event, size) = record(cpu, bytes, kind)
            .with_context(|| format!("a record of type {kind} on CPU {cpu} is malformed"))?;
        events.extend(event);
        bytes = &bytes[size..];
    }
    Ok(())
}

/// The first record, if it is relevant, and its size; `None` if it is malformed.
fn record(cpu: usize, bytes: &[u8], kind: u32) -> Option<(Option<Event>, usize)> {
    let misc = number(bytes, 4, u16::from_ne_bytes)?;
    let size = usize::from(number(bytes, 6, u16::from_ne_bytes)?);
    let record = bytes.get(..size).filter(|_| size >= HEADER)?;
    let event = match event(kind, misc, record)? {
        Some(kind) => {
            Some(Event { time: number(record, size.checked_sub(8)?, u64::from_ne_bytes)?, cpu, kind })
        }
        None => None,
    };
    Some((event, size))
}

/// The outer `None`: too short for its type. The inner `None`: not relevant.
fn event(kind: u32, misc: u16, record: &[u8]) -> Option<Option<Kind>> {
    let flagged = misc & MISC_OUT_OR_EXEC != 0;
    let end = match kind {
        LOST | COMM | FORK | MMAP2 | SWITCH_CPU_WIDE => record.len().checked_sub(SAMPLE_ID)?,
        _ => return Some(None),
    };
    let body = record.get(HEADER..end)?;
    let (id, long) = (|at| number(body, at, i32::from_ne_bytes), |at| number(body, at, u64::from_ne_bytes));
    Some(match kind {
        LOST => Some(Kind::Lost { count: long(8)? }),
        COMM if !flagged => None,
        COMM => Some(Kind::Exec { pid: id(0)? }),
        FORK => Some(Kind::Fork { pid: id(0)?, by_pid: id(4)?, tid: id(8)?, by_tid: id(12)? }),
        MMAP2 => {
            let device = libc::makedev(id(32)? as u32, id(36)? as u32);
            Some(Kind::Map { pid: id(0)?, device, inode: long(40)?, path: text(body.get(64..)?) })
        }
        _ => {
            let of_task = |at| number(record, at, i32::from_ne_bytes);
            let (pid, tid, next) = (of_task(end)?, of_task(end + 4)?, id(4)?);
            Some(if flagged { Kind::Off { pid, tid, next } } else { Kind::On { pid, tid } })
        }
    })
}

fn number<T, const N: usize>(bytes: &[u8], at: usize, of: fn([u8; N]) -> T) -> Option<T> {
    Some(of(bytes.get(at..at.checked_add(N)?)?.try_into().ok()?))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(kind: u32, misc: u16, body: &[u8], pid: i32, tid: i32, time: u64) -> Vec<u8> {
        let size = (HEADER + body.len() + SAMPLE_ID) as u16;
        let mut bytes = Vec::new();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        bytes.extend(pid.to_ne_bytes());
        bytes.extend(tid.to_ne_bytes());
        bytes.extend(time.to_ne_bytes());
        bytes
    }

    fn words(words: &[i32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn each_record_becomes_its_event() {
        let mut bytes = written(FORK, 0, &words(&[7, 5, 8, 6, 0, 0]), 5, 6, 100);
        bytes.extend(written(COMM, MISC_OUT_OR_EXEC, b"\x07\0\0\0\x07\0\0\0runc\0\0\0\0", 7, 7, 110));
        bytes.extend(written(COMM, 0, b"\x07\0\0\0\x07\0\0\0renamed\0", 7, 7, 111));
        let mut map = words(&[7, 7, 0, 0, 0, 0, 0, 0, 8, 1, 42, 0, 0, 0, 5, 0]);
        map.extend(b"/usr/sbin/runc\0\0");
        bytes.extend(written(MMAP2, 2, &map, 7, 7, 112));
        bytes.extend(written(SWITCH_CPU_WIDE, MISC_OUT_OR_EXEC, &words(&[9, 10]), 7, 8, 120));
        bytes.extend(written(SWITCH_CPU_WIDE, 0, &words(&[0, 0]), -1, -1, 130));
        bytes.extend(written(LOST, 0, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0], 0, 0, 150));
        bytes.extend(written(99, 0, &[], 0, 0, 160));
        let mut events = Vec::new();
        parse(3, &bytes, &mut events).unwrap();
        let kinds: Vec<(u64, Kind)> = events.iter().map(|event| (event.time, event.kind.clone())).collect();
        assert_eq!(
            kinds,
            [
                (100, Kind::Fork { pid: 7, tid: 8, by_pid: 5, by_tid: 6 }),
                (110, Kind::Exec { pid: 7 }),
                (
                    112,
                    Kind::Map {
                        pid: 7,
                        device: libc::makedev(8, 1),
                        inode: 42,
                        path: "/usr/sbin/runc".into()
                    }
                ),
                (120, Kind::Off { pid: 7, tid: 8, next: 10 }),
                (130, Kind::On { pid: RELEASED, tid: RELEASED }),
                (150, Kind::Lost { count: 9 }),
            ]
        );
        assert!(events.iter().all(|event| event.cpu == 3));
    }

    #[test]
    fn a_cut_record_is_refused() {
        let whole = written(FORK, 0, &words(&[7, 5, 8, 6, 0, 0]), 5, 6, 100);
        for length in 1..whole.len() {
            assert!(parse(0, &whole[..length], &mut Vec::new()).is_err(), "{length} bytes");
        }
        let short = written(FORK, 0, &words(&[7]), 5, 6, 100);
        let refused = parse(0, &short, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.to_string(), "a record of type 7 on CPU 0 is malformed");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(0, &bytes, &mut Vec::new());
        }

        #[test]
        fn no_body_makes_the_parser_panic(kind in 0u32..20, misc: u16, body in proptest::collection::vec(any::<u8>(), 0..90)) {
            let _ = parse(0, &written(kind, misc, &body, 1, 1, 1), &mut Vec::new());
        }
    }
}
