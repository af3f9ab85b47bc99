//! The work `cpu`: fixed amounts of five kinds of computing, repeated, in one thread and in one thread per
//! CPU, each bound to its own. Every pass is timed separately, and its result is checked.
//!
//! Reported: for each kind and width the wall time of each pass and the longest time that one of its threads
//! spent off its CPU, in nanoseconds; the time of an empty pass; the number of wrong results; for each width,
//! wall and CPU time of the fixed work, and the counters of a CPU limit meanwhile.
//!
//! Deliberately absent: the choice of passes. The host gets all of them.

mod chase;
mod floating;
mod hashing;
mod integer;
mod memory;
mod team;

use dunnage_analysis::experiment::cpu::{KINDS, WIDTHS};
use dunnage_orders::work::{Computed, Cpu, Passes, Whole};

use self::team::{Body, Team, Told};
use super::limit::{counters, fixed_work};
use super::unsupported;
use crate::outcome::Failure;
use crate::sys::cache::Flush;
use crate::sys::cgroup::own::CpuCounters;
use crate::sys::pages;
use crate::sys::raw;
use crate::units::Nanos;

const COMPUTING: [Computing; 3] = [
    Computing { run: integer::run, steps: integer::STEPS, right: integer::RIGHT },
    Computing { run: floating::run, steps: floating::STEPS, right: floating::RIGHT },
    Computing { run: hashing::run, steps: hashing::STEPS, right: hashing::RIGHT },
];
const MEMORY: usize = 3;
/// Not one of the kinds: `integer`, repeated without reading the clock.
const FIXED: usize = 5;

/// A kind of work that needs no memory of its own.
struct Computing {
    run: fn(u64) -> u64,
    steps: u64,
    right: u64,
}

/// The most passes.
const MOST_PASSES: usize = 512;

/// Does the work, and reports it.
pub(super) fn work(order: Cpu) -> Result<Computed, Failure> {
    let count = order.passes.min(MOST_PASSES);
    let counters = counters();
    let done = team::lead(|team| {
        let (passes, wrong) = measure(team, count, order.more);
        let (fixed, also_wrong) = whole(team, order.fixed, counters.as_ref().ok());
        Computed {
            passes,
            fixed: (format!("{} passes of {} steps of integer", order.fixed, integer::STEPS), fixed),
            wrong: wrong + also_wrong,
            empty: Nanos(empty() as i64),
            threads: team.size() as u64,
            cpu: team.cpu,
            huge_pages: pages::huge_bytes(),
            no_counters: counters.as_ref().err().filter(|_| order.fixed > 0).cloned(),
        }
    });
    done.map_err(|error| match error.kind() {
        std::io::ErrorKind::OutOfMemory => {
            unsupported("there is not enough memory for the buffers of all CPUs")
        }
        _ => unsupported("cannot start a thread on each CPU and bind it"),
    })
}

/// All passes, and the number of wrong results.
fn measure(
    team: &mut Team<'_, Own>,
    passes: usize,
    more: u64,
) -> ([[Passes; WIDTHS.len()]; KINDS.len()], u64) {
    let mut series: [[Passes; WIDTHS.len()]; KINDS.len()] = Default::default();
    let mut wrong = 0;
    // The first one warms up pages, caches and clock rate.
    for pass in 0..=passes {
        for (kind, widths) in series.iter_mut().enumerate() {
            let task = Task { kind, more, times: 1 };
            let (mut alone, mut together) = (Pass::NONE, Pass::NONE);
            alone.hear(team.alone(task));
            team.together(task, |told| together.hear(told));
            for (one, heard) in widths.iter_mut().zip([alone, together]) {
                wrong += heard.wrong;
                if pass > 0 {
                    one.wall.push((heard.ended - heard.began) as i64);
                    one.waited.push(heard.waited as i64);
                }
            }
        }
    }
    (series, wrong)
}

/// The fixed work by one thread and by all, whose duration includes a limit and other programs on the CPUs, and the number of
/// wrong results.
fn whole(
    team: &mut Team<'_, Own>,
    times: u64,
    counters: Option<&CpuCounters>,
) -> (Option<[Whole; WIDTHS.len()]>, u64) {
    if times == 0 {
        return (None, 0);
    }
    let task = Task { kind: FIXED, more: 0, times };
    let (mut alone, mut together) = (Pass::NONE, Pass::NONE);
    let one = fixed_work(counters, || {
        alone.hear(team.alone(task));
        alone.used
    });
    let all = fixed_work(counters, || {
        team.together(task, |told| together.hear(told));
        together.used
    });
    (Some([one, all]), alone.wrong + together.wrong)
}

/// The wall time of an empty pass, which is that of reading the clock. The shortest of several.
fn empty() -> u64 {
    const TRIES: usize = 200;
    let spans = (0..TRIES).map(|_| {
        let began = raw::monotonic();
        raw::monotonic() - began
    });
    spans.min().unwrap_or(0)
}

/// What the threads are to do.
#[derive(Clone, Copy)]
struct Task {
    kind: usize,
    /// Additional work, in thousandths.
    more: u64,
    /// The number of repetitions, for the fixed work.
    times: u64,
}

impl Task {
    /// The additional steps for this many steps.
    fn beside(&self, steps: u64) -> u64 {
        steps * self.more / 1000
    }
}

/// What each thread owns.
struct Own {
    window: &'static [u64],
    cycle: &'static [u64],
    flush: Flush,
    /// Where in the cycle the next pass begins.
    place: usize,
}

impl Body for Own {
    type Task = Task;

    fn new() -> std::io::Result<Own> {
        let window = pages::map(memory::STEPS as usize)?;
        memory::prepare(window);
        let cycle = pages::map(chase::WORDS)?;
        chase::prepare(cycle);
        Ok(Own { window, cycle, flush: Flush::find(), place: 0 })
    }

    fn prepare(&mut self, task: Task) {
        match task.kind.checked_sub(MEMORY) {
            None => {}
            Some(0) => self.flush.all(self.window),
            Some(_) if task.kind == FIXED => {}
            Some(_) => {
                let loads = chase::STEPS + task.beside(chase::STEPS);
                chase::take_out(self.flush, self.cycle, self.place, loads);
            }
        }
    }

    fn pass(&mut self, task: Task) -> u64 {
        if task.kind == FIXED {
            let is_wrong = |_: &u64| integer::run(integer::STEPS) != integer::RIGHT;
            return (0..task.times).filter(is_wrong).count() as u64;
        }
        if let Some(one) = COMPUTING.get(task.kind) {
            let result = (one.run)(one.steps);
            core::hint::black_box((one.run)(task.beside(one.steps)));
            return result;
        }
        if task.kind == MEMORY {
            let result = memory::run(self.window);
            let beside = task.beside(memory::STEPS) as usize;
            core::hint::black_box(memory::run(&self.window[..beside]));
            return result;
        }
        let result = chase::run(self.cycle, chase::word_at(self.cycle, self.place), chase::STEPS);
        core::hint::black_box(chase::run(self.cycle, result, task.beside(chase::STEPS)));
        result
    }

    fn judge(&mut self, task: Task, result: u64) -> bool {
        let right = match COMPUTING.get(task.kind) {
            Some(one) => one.right,
            None if task.kind == FIXED => 0,
            None if task.kind == MEMORY => memory::right(memory::STEPS),
            None => {
                let right = chase::word_at(self.cycle, self.place + chase::STEPS as usize);
                self.place += (chase::STEPS + task.beside(chase::STEPS)) as usize;
                right
            }
        };
        result == right
    }
}

/// One pass of one or all threads.
struct Pass {
    began: u64,
    ended: u64,
    waited: u64,
    used: u64,
    wrong: u64,
}

impl Pass {
    const NONE: Pass = Pass { began: u64::MAX, ended: 0, waited: 0, used: 0, wrong: 0 };

    /// Adds a thread: the span is from the first start to the last end; the longest wait of a thread, and the
    /// sum of CPU time.
    fn hear(&mut self, told: Told) {
        let [began, ended] = told.span;
        self.began = self.began.min(began);
        self.ended = self.ended.max(ended);
        self.waited = self.waited.max((ended - began).saturating_sub(told.cpu));
        self.used += told.cpu;
        self.wrong += u64::from(!told.is_right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three per cent must be at least one step, or benchmarks would look for an effect that does not exist.
    #[test]
    fn three_per_cent_of_each_kind_is_work() {
        let task = Task { kind: 0, more: 30, times: 1 };
        let steps = COMPUTING.map(|one| one.steps).into_iter().chain([memory::STEPS, chase::STEPS]);
        for steps in steps {
            let share = task.beside(steps) as f64 / steps as f64;
            assert!((share - 0.03).abs() < 0.001, "{share} of {steps} steps");
        }
    }
}
