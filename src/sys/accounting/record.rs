//! From the bytes of one perf ring to events. Every read is checked against the record's bounds.
//!
//! The layouts are those of `perf_event_open(2)` for `sample_type = TID | TIME` with `sample_id_all`.
//! Deliberately absent: who belongs to whom (`tree`), and the ring itself (`ring`).

/// What stands for a task that the kernel has already released, when it is still on a CPU.
pub const RELEASED: i32 = -1;

/// One thing that the kernel reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub time: u64,
    /// Which ring, that is which CPU, reported it.
    pub cpu: usize,
    /// What happened.
    pub kind: Kind,
}

/// What happened. `pid` is a process (thread group), `tid` a thread, as the opener's pid namespace numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Thread `by` of process `by_pid` made thread `tid` of process `pid`.
    Fork {
        /// The new thread's process.
        pid: i32,
        /// The new thread.
        tid: i32,
        /// The process that called fork or clone, which `CLONE_PARENT` does not hide.
        by_pid: i32,
    },
    /// A thread began to exit; it still runs for a while.
    Exit {
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
    },
    /// A process replaced its program; all its other threads are gone.
    Exec {
        /// The process.
        pid: i32,
        /// The new program's name, at most 15 bytes.
        comm: String,
    },
    /// A process mapped a file for executing.
    Map {
        /// The process.
        pid: i32,
        /// `st_dev` of the file.
        device: u64,
        /// `st_ino` of the file.
        inode: u64,
        /// Path as the process sees it.
        path: String,
    },
    /// A thread got onto this CPU.
    On {
        /// Its process, or [`RELEASED`].
        pid: i32,
        /// The thread; 0 is the idle task or one outside the opener's pid namespace.
        tid: i32,
    },
    /// A thread left this CPU.
    Off {
        /// Its process, or [`RELEASED`].
        pid: i32,
        /// The thread; 0 is the idle task or one outside the opener's pid namespace.
        tid: i32,
        /// The thread that comes, with the same meanings.
        next: i32,
    },
    /// The ring was full and records are missing.
    Lost {
        /// How many.
        count: u64,
    },
}

/// The bytes are not what the kernel promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where in the ring's bytes the record begins.
    pub offset: usize,
    /// The record's type.
    pub record: u32,
}

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
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
/// [`Malformed`] when a record is cut or shorter than its type needs; then nothing after it can be trusted.
pub fn parse(cpu: usize, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), Malformed> {
    let mut offset = 0;
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let kind = u32_at(rest, 0).unwrap_or(0);
        let malformed = Malformed { offset, record: kind };
        let misc = u16_at(rest, 4).ok_or(malformed)?;
        let size = usize::from(u16_at(rest, 6).ok_or(malformed)?);
        if size < HEADER {
            return Err(malformed);
        }
        let record = rest.get(..size).ok_or(malformed)?;
        if let Some(kind) = event(kind, misc, record).ok_or(malformed)? {
            let time = record.len().checked_sub(8).and_then(|at| u64_at(record, at)).ok_or(malformed)?;
            events.push(Event { time, cpu, kind });
        }
        offset += size;
    }
    Ok(())
}

/// The outer `None`: too short for its type. The inner `None`: of no interest.
fn event(kind: u32, misc: u16, record: &[u8]) -> Option<Option<Kind>> {
    let flagged = misc & MISC_OUT_OR_EXEC != 0;
    let end = match kind {
        LOST | COMM | EXIT | FORK | MMAP2 | SWITCH_CPU_WIDE => record.len().checked_sub(SAMPLE_ID)?,
        _ => return Some(None),
    };
    let body = record.get(HEADER..end)?;
    Some(match kind {
        LOST => Some(Kind::Lost { count: u64_at(body, 8)? }),
        COMM if !flagged => None,
        COMM => Some(Kind::Exec { pid: i32_at(body, 0)?, comm: text(body.get(8..)?) }),
        FORK => Some(Kind::Fork { pid: i32_at(body, 0)?, by_pid: i32_at(body, 4)?, tid: i32_at(body, 8)? }),
        EXIT => Some(Kind::Exit { pid: i32_at(body, 0)?, tid: i32_at(body, 8)? }),
        MMAP2 => {
            let device = libc::makedev(u32_at(body, 32)?, u32_at(body, 36)?);
            let inode = u64_at(body, 40)?;
            Some(Kind::Map { pid: i32_at(body, 0)?, device, inode, path: text(body.get(64..)?) })
        }
        _ => {
            let (pid, tid) = (i32_at(record, end)?, i32_at(record, end + 4)?);
            let next = i32_at(body, 4)?;
            Some(if flagged { Kind::Off { pid, tid, next } } else { Kind::On { pid, tid } })
        }
    })
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes_at(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    bytes_at(bytes, at).map(i32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_ne_bytes)
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, misc: u16, body: &[u8], pid: i32, tid: i32, time: u64) -> Vec<u8> {
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
        let mut bytes = record(FORK, 0, &words(&[7, 5, 8, 6, 0, 0]), 5, 6, 100);
        bytes.extend(record(COMM, MISC_OUT_OR_EXEC, b"\x07\0\0\0\x07\0\0\0runc\0\0\0\0", 7, 7, 110));
        bytes.extend(record(COMM, 0, b"\x07\0\0\0\x07\0\0\0renamed\0", 7, 7, 111));
        let mut map = words(&[7, 7, 0, 0, 0, 0, 0, 0, 8, 1, 42, 0, 0, 0, 5, 0]);
        map.extend(b"/usr/sbin/runc\0\0");
        bytes.extend(record(MMAP2, 2, &map, 7, 7, 112));
        bytes.extend(record(SWITCH_CPU_WIDE, MISC_OUT_OR_EXEC, &words(&[9, 10]), 7, 8, 120));
        bytes.extend(record(SWITCH_CPU_WIDE, 0, &words(&[0, 0]), -1, -1, 130));
        bytes.extend(record(EXIT, 0, &words(&[7, 5, 8, 6, 0, 0]), 7, 8, 140));
        bytes.extend(record(LOST, 0, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0], 0, 0, 150));
        bytes.extend(record(99, 0, &[], 0, 0, 160));
        let mut events = Vec::new();
        parse(3, &bytes, &mut events).unwrap();
        let kinds: Vec<(u64, Kind)> = events.iter().map(|event| (event.time, event.kind.clone())).collect();
        assert_eq!(
            kinds,
            [
                (100, Kind::Fork { pid: 7, tid: 8, by_pid: 5 }),
                (110, Kind::Exec { pid: 7, comm: "runc".into() }),
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
                (140, Kind::Exit { pid: 7, tid: 8 }),
                (150, Kind::Lost { count: 9 }),
            ]
        );
        assert!(events.iter().all(|event| event.cpu == 3));
    }

    #[test]
    fn a_cut_record_is_refused() {
        let whole = record(FORK, 0, &words(&[7, 5, 8, 6, 0, 0]), 5, 6, 100);
        for length in 1..whole.len() {
            assert!(parse(0, &whole[..length], &mut Vec::new()).is_err(), "{length} bytes");
        }
        let short = record(FORK, 0, &words(&[7]), 5, 6, 100);
        assert_eq!(parse(0, &short, &mut Vec::new()), Err(Malformed { offset: 0, record: FORK }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(0, &bytes, &mut Vec::new());
        }

        #[test]
        fn no_body_makes_the_parser_panic(kind in 0u32..20, misc: u16, body in proptest::collection::vec(any::<u8>(), 0..90)) {
            let _ = parse(0, &record(kind, misc, &body, 1, 1, 1), &mut Vec::new());
        }
    }
}
