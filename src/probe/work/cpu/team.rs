//! One thread for each allowed CPU, each bound to its own: they sleep until called, begin a pass together,
//! and report when they began and ended, for how long they ran, and their result.
//!
//! The caller is one of them. Deliberately absent: the content of a pass, which is the body's.

use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use crate::sys::{affinity, raw};

/// A thread's report of its pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// When it began and ended, on `CLOCK_MONOTONIC` in nanoseconds.
    pub span: [u64; 2],
    /// Its CPU time in between, in nanoseconds.
    pub cpu: u64,
    /// Whether its result was right.
    pub is_right: bool,
}

/// What each thread owns, and its work.
pub trait Body: Sized {
    /// The kind of pass.
    type Task: Copy + Send;

    /// Made by the thread itself, on its CPU.
    fn new() -> io::Result<Self>;
    /// Prepares for such a pass; not timed.
    fn prepare(&mut self, task: Self::Task);
    /// The pass.
    fn pass(&mut self, task: Self::Task) -> u64;
    /// Whether this result is right; the next pass may be of another kind.
    fn judge(&mut self, task: Self::Task, result: u64) -> bool;
}

/// The threads, from the caller's side.
pub struct Team<'a, B: Body> {
    /// The CPU to which the caller is bound.
    pub cpu: usize,
    own: B,
    others: Vec<Sender<B::Task>>,
    told: Receiver<Told>,
    beginning: &'a Beginning,
}

/// Starts a thread for each CPU but the last, to which the caller is bound, waits until each has made its
/// body, and lends them to the caller. They end when it returns.
pub fn lead<B: Body, T>(work: impl FnOnce(&mut Team<'_, B>) -> T) -> io::Result<T> {
    let cpus = affinity::allowed()?;
    let (&cpu, others) = cpus.split_last().ok_or(io::ErrorKind::NotFound)?;
    let beginning = &Beginning { ready: AtomicU32::new(0), size: cpus.len() as u32 };
    thread::scope(|scope| {
        let ((settle, settled), (tell, told)) = (mpsc::channel(), mpsc::channel());
        let mut calls = Vec::new();
        for &cpu in others {
            let (call, tasks) = mpsc::channel();
            let (settle, tell) = (settle.clone(), tell.clone());
            let follow = move || {
                let own = settle_on::<B>(cpu);
                let _ = settle.send(own.as_ref().err().map(io::Error::kind));
                if let Ok(own) = own {
                    live(own, &tasks, &tell, beginning);
                }
            };
            thread::Builder::new().spawn_scoped(scope, follow)?;
            calls.push(call);
        }
        let own = settle_on(cpu)?;
        if let Some(refused) = settled.iter().take(others.len()).flatten().next() {
            return Err(refused.into());
        }
        Ok(work(&mut Team { cpu, own, others: calls, told, beginning }))
    })
}

impl<B: Body> Team<'_, B> {
    /// The number of threads, including the caller.
    pub fn size(&self) -> usize {
        self.others.len() + 1
    }

    /// A pass of the caller alone.
    pub fn alone(&mut self, task: B::Task) -> Told {
        self.own.prepare(task);
        timed(&mut self.own, task)
    }

    /// A pass of all threads, started together.
    pub fn together(&mut self, task: B::Task, mut each: impl FnMut(Told)) {
        for other in &self.others {
            let _ = other.send(task);
        }
        self.own.prepare(task);
        self.beginning.wait();
        each(timed(&mut self.own, task));
        self.told.iter().take(self.others.len()).for_each(each);
    }
}

/// A barrier where all threads wait for the last one.
struct Beginning {
    /// The number of arrivals over all passes; all threads spin on it.
    ready: AtomicU32,
    size: u32,
}

impl Beginning {
    /// How often a thread reads the shared counter before it yields: about ten microseconds, longer than the
    /// last one needs to arrive when every thread has its own CPU.
    const SPINS: u32 = 10_000;

    /// Reports that this thread is ready, and waits until all are.
    fn wait(&self) {
        let due = (self.ready.fetch_add(1, Ordering::AcqRel) / self.size + 1) * self.size;
        let mut spins = 0;
        while self.ready.load(Ordering::Acquire) < due {
            core::hint::spin_loop();
            spins += 1;
            if spins > Self::SPINS {
                thread::yield_now();
            }
        }
    }
}

fn settle_on<B: Body>(cpu: usize) -> io::Result<B> {
    affinity::bind_to(cpu)?;
    B::new()
}

fn timed<B: Body>(own: &mut B, task: B::Task) -> Told {
    let cpu = raw::thread_cpu();
    let began = raw::monotonic();
    let result = own.pass(task);
    let stopped = raw::monotonic();
    let cpu = raw::thread_cpu() - cpu;
    Told { span: [began, stopped], cpu, is_right: own.judge(task, result) }
}

/// The loop of a thread that is called.
fn live<B: Body>(mut own: B, tasks: &Receiver<B::Task>, tell: &Sender<Told>, beginning: &Beginning) {
    for task in tasks {
        own.prepare(task);
        beginning.wait();
        let _ = tell.send(timed(&mut own, task));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Spins for longer than the kernel's time slices, and prepares for a different time in each thread, so
    /// that threads without a barrier would not overlap.
    struct Spinner(Duration);

    static MADE: AtomicU32 = AtomicU32::new(0);

    impl Body for Spinner {
        type Task = u32;

        fn new() -> std::io::Result<Spinner> {
            Ok(Spinner(Duration::from_millis(60) * MADE.fetch_add(1, Ordering::Relaxed)))
        }
        fn prepare(&mut self, _: u32) {
            thread::sleep(self.0);
        }
        fn pass(&mut self, _: u32) -> u64 {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(20) {
                core::hint::spin_loop();
            }
            0
        }
        fn judge(&mut self, task: u32, _: u64) -> bool {
            task != 13
        }
    }

    #[test]
    fn all_begin_before_any_ends_alone_and_each_is_heard() {
        let threads = affinity::allowed().unwrap().len();
        let overlap = |heard: &[Told]| {
            let last_began = heard.iter().map(|told| told.span[0]).max();
            last_began <= heard.iter().map(|told| told.span[1]).min()
        };
        let together = move |team: &mut Team<'_, Spinner>, task| {
            let mut heard = Vec::new();
            team.together(task, |told| heard.push(told));
            assert!(heard.iter().all(|told| told.is_right == (task != 13)), "{heard:?}");
            assert_eq!(heard.len(), threads);
            heard
        };
        // In a separate thread, so that the binding ends with it.
        let done = std::thread::spawn(move || {
            lead(|team: &mut Team<'_, Spinner>| {
                assert!(team.alone(1).is_right);
                together(team, 13);
                // If other programs need the CPUs too, a thread may get its own late, but not each time.
                assert!((0..10).any(|task| overlap(&together(team, task))));
            })
        });
        done.join().unwrap().unwrap();
    }
}
