//! One thread for each CPU that is allowed, each bound to its own: they sleep until called, begin a pass
//! together, and say when they began and ended, for how long they ran, and what came out.
//!
//! The caller is one of them. Deliberately absent: what a pass does; that is the body's.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::sys::affinity::{self, CpuSet};
use crate::sys::{raw, threads};

/// More CPUs are left out.
pub const MOST: usize = 1024;

/// How one thread got on with its pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// When it began and ended, on `CLOCK_MONOTONIC` in nanoseconds.
    pub span: [u64; 2],
    /// Its CPU time in between, in nanoseconds.
    pub cpu: u64,
    /// What came out.
    pub result: Done,
}

/// Whether a pass came to what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It did.
    Right,
    /// It did not.
    Wrong,
}

/// What the threads share.
pub struct Team {
    /// Counts the calls; the threads sleep on it.
    call: AtomicU32,
    /// What is asked for at this call.
    asked: AtomicU32,
    /// Threads that are ready to begin, over all calls; all spin on it.
    ready: AtomicU32,
    /// Threads that have ended, over all calls; the caller sleeps on it.
    ended: AtomicU32,
    /// How many there are, the caller among them.
    size: AtomicU32,
    told: [Slot; MOST],
}

/// What one thread tells, on a line of its own.
#[repr(align(64))]
struct Slot {
    cpu_number: AtomicU64,
    began: AtomicU64,
    stopped: AtomicU64,
    cpu: AtomicU64,
    wrong: AtomicU64,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            cpu_number: AtomicU64::new(0),
            began: AtomicU64::new(0),
            stopped: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        }
    }
}

/// What each thread owns, and does when called.
pub trait Body: Sized {
    /// Made by the thread itself, on its CPU.
    fn new() -> Result<Self, i32>;
    /// Gets ready for a pass of this kind; not timed.
    fn prepare(&mut self, kind: u32);
    /// The pass.
    fn pass(&mut self, kind: u32) -> u64;
    /// Whether that is what it should come to; the next pass may do something else.
    fn judge(&mut self, kind: u32, result: u64) -> Done;
}

/// Asks a thread to make what it owns and nothing else.
const SETTLE: u32 = u32::MAX;
/// Readings of the common counter before a thread lets others run: about ten microseconds, longer than
/// the last one needs to come where every thread has its CPU for itself.
const SPINS: u32 = 10_000;

impl Team {
    /// A team without threads.
    pub const fn new() -> Team {
        Team {
            call: AtomicU32::new(0),
            asked: AtomicU32::new(0),
            ready: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            size: AtomicU32::new(0),
            told: [const { Slot::new() }; MOST],
        }
    }

    /// Starts a thread for each CPU but the last, to which the caller is bound, and waits until each has
    /// made what it owns. Returns the caller's own.
    pub fn gather<B: Body>(&'static self) -> Result<B, i32> {
        let allowed = affinity::allowed()?;
        let cpus = allowed.count().min(MOST);
        for (index, cpu) in allowed.iter().take(cpus).enumerate() {
            self.told[index].cpu_number.store(cpu as u64, Ordering::Relaxed);
        }
        let last = cpus.checked_sub(1).ok_or(libc::EINVAL)?;
        for index in 0..last {
            // They live as long as the process; their end is nobody's concern.
            let _ = threads::start(live::<B>, self, index)?;
        }
        self.size.store(cpus as u32, Ordering::Relaxed);
        self.bind(last)?;
        let own = B::new()?;
        self.call_all(SETTLE);
        self.await_all();
        let refused = self.told[..last].iter().map(|slot| slot.wrong.load(Ordering::Relaxed));
        match refused.max() {
            None | Some(0) => Ok(own),
            Some(error) => Err(error as i32),
        }
    }

    /// How many threads there are, the caller among them.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed) as usize
    }

    /// The CPU to which the caller is bound.
    pub fn own_cpu(&self) -> u64 {
        self.told[self.size().saturating_sub(1)].cpu_number.load(Ordering::Relaxed)
    }

    /// A pass of the caller alone.
    pub fn alone<B: Body>(&self, own: &mut B, kind: u32) -> Told {
        own.prepare(kind);
        timed(own, kind)
    }

    /// A pass of all threads, begun together; from the first beginning to the last end.
    pub fn together<B: Body>(&self, own: &mut B, kind: u32, mut each: impl FnMut(Told)) {
        self.call_all(kind);
        own.prepare(kind);
        self.await_beginning();
        each(timed(own, kind));
        self.await_all();
        for slot in &self.told[..self.size() - 1] {
            let [began, stopped, cpu, wrong] =
                [&slot.began, &slot.stopped, &slot.cpu, &slot.wrong].map(|one| one.load(Ordering::Relaxed));
            let result = if wrong == 0 { Done::Right } else { Done::Wrong };
            each(Told { span: [began, stopped], cpu, result });
        }
    }

    fn bind(&self, index: usize) -> Result<(), i32> {
        let cpu = self.told[index].cpu_number.load(Ordering::Relaxed);
        affinity::bind(&CpuSet::only(cpu as usize)).map(drop)
    }

    fn call_all(&self, kind: u32) {
        self.asked.store(kind, Ordering::Relaxed);
        self.call.fetch_add(1, Ordering::Release);
        threads::wake_all(&self.call);
    }

    /// Waits until all others have ended as often as they were called.
    fn await_all(&self) {
        let due = self.call.load(Ordering::Relaxed).wrapping_mul(self.size() as u32 - 1);
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            if ended == due {
                return;
            }
            threads::wait_while(&self.ended, ended);
        }
    }

    /// Says that this thread is ready, and waits until all are. The call that made them own something had
    /// no beginning.
    fn await_beginning(&self) {
        let due = (self.call.load(Ordering::Relaxed) - 1).wrapping_mul(self.size() as u32);
        self.ready.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0;
        while self.ready.load(Ordering::Acquire) != due {
            core::hint::spin_loop();
            spins += 1;
            if spins > SPINS {
                threads::let_others_run();
            }
        }
    }
}

fn timed<B: Body>(own: &mut B, kind: u32) -> Told {
    let cpu = threads::cpu_time();
    let began = raw::monotonic();
    let result = own.pass(kind);
    let stopped = raw::monotonic();
    let cpu = threads::cpu_time() - cpu;
    Told { span: [began, stopped], cpu, result: own.judge(kind, result) }
}

/// The life of a thread that is called.
fn live<B: Body>(team: &'static Team, index: usize) {
    let slot = &team.told[index];
    let mut own: Result<B, i32> = Err(0);
    let mut calls = 0;
    loop {
        while team.call.load(Ordering::Acquire) == calls {
            threads::wait_while(&team.call, calls);
        }
        calls += 1;
        let kind = team.asked.load(Ordering::Relaxed);
        if kind == SETTLE {
            own = team.bind(index).and_then(|()| B::new());
            let refused = own.as_ref().err().copied().unwrap_or(0);
            slot.wrong.store(refused as u64, Ordering::Relaxed);
        } else if let Ok(own) = &mut own {
            own.prepare(kind);
            team.await_beginning();
            let told = timed(own, kind);
            slot.began.store(told.span[0], Ordering::Relaxed);
            slot.stopped.store(told.span[1], Ordering::Relaxed);
            slot.cpu.store(told.cpu, Ordering::Relaxed);
            slot.wrong.store(u64::from(told.result == Done::Wrong), Ordering::Relaxed);
        }
        team.ended.fetch_add(1, Ordering::Release);
        threads::wake_all(&team.ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Adder(u64);

    impl Body for Adder {
        fn new() -> Result<Adder, i32> {
            Ok(Adder(0))
        }
        fn prepare(&mut self, task: u32) {
            self.0 += u64::from(task);
        }
        fn pass(&mut self, _: u32) -> u64 {
            (0..20_000).fold(self.0, |sum, one| core::hint::black_box(sum ^ one))
        }
        fn judge(&mut self, task: u32, _: u64) -> Done {
            if task == 13 { Done::Wrong } else { Done::Right }
        }
    }

    #[test]
    fn all_begin_before_any_ends_alone_and_each_is_heard() {
        static TEAM: Team = Team::new();
        // In a thread of its own, which takes its binding with it.
        let done = std::thread::spawn(|| {
            let mut own: Adder = TEAM.gather().unwrap();
            assert_eq!(TEAM.alone(&mut own, 1).result, Done::Right);
            let mut heard = Vec::new();
            for task in [1, 2, 13] {
                heard.clear();
                TEAM.together(&mut own, task, |told| heard.push(told));
                let is_right = task != 13;
                assert!(heard.iter().all(|told| (told.result == Done::Right) == is_right), "{heard:?}");
            }
            heard
        });
        let heard = done.join().unwrap();
        assert_eq!(heard.len(), affinity::allowed().unwrap().count().min(MOST));
        for Told { span: [began, ended], .. } in heard {
            assert!(began <= ended);
        }
    }
}
