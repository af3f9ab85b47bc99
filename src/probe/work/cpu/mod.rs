//! The work `cpu`: fixed amounts of five kinds of computing, again and again, by one thread and by one on
//! each CPU, each bound to its own. Every pass is timed by itself, and its result is checked.
//!
//! Words: how many passes count, and (for benchmarks only) by how many thousandths more each pass is to do.
//! Reported: for each kind and width the wall time of each pass and the longest time that a thread of it
//! spent off its CPU, in nanoseconds; what an empty pass takes; how many results were wrong.
//!
//! Deliberately absent: which pass is the one to believe. The host sees all of them.

mod chase;
mod floating;
mod hashing;
mod integer;
mod memory;
mod team;

use self::team::{Body, Done, Team, Told};
use super::{Report, Words};
use crate::sys::cache::Flush;
use crate::sys::pages::{self, Size};
use crate::sys::raw;

/// The kinds, in the order in which each pass goes through them.
const KINDS: [&str; 5] = ["integer", "floating", "hashing", "memory", "chase"];
const COMPUTING: [Computing; 3] = [
    Computing { run: integer::run, steps: integer::STEPS, right: integer::RIGHT },
    Computing { run: floating::run, steps: floating::STEPS, right: floating::RIGHT },
    Computing { run: hashing::run, steps: hashing::STEPS, right: hashing::RIGHT },
];
const MEMORY: usize = 3;

/// A kind of work that needs no memory of its own.
struct Computing {
    run: fn(u64) -> u64,
    steps: u64,
    right: u64,
}

/// More passes are not done.
const MOST_PASSES: usize = 512;

static TEAM: Team = Team::new();

/// Does it, and reports.
pub(super) fn work(words: Words, report: &mut Report<'_>) {
    let passes = (words.number(0).unwrap_or(1) as usize).min(MOST_PASSES);
    let more = words.number(1).unwrap_or(0) as u32;
    let mut own = match TEAM.gather::<Own>() {
        Ok(own) => own,
        Err(libc::ENOMEM) => return report.refuse("there is no memory for the buffers of each CPU"),
        Err(_) => return report.refuse("no thread can be started on each of the CPUs and bound to it"),
    };
    let mut series = [[Series::EMPTY; 2]; KINDS.len()];
    let mut wrong = 0;
    // The first one brings pages, caches and clock rate to where they will be.
    for pass in 0..=passes {
        for (kind, widths) in series.iter_mut().enumerate() {
            let task = Task { kind, more }.packed();
            let (mut alone, mut together) = (Pass::NONE, Pass::NONE);
            alone.hear(TEAM.alone(&mut own, task));
            TEAM.together(&mut own, task, |told| together.hear(told));
            wrong += alone.wrong + together.wrong;
            if let Some(at) = pass.checked_sub(1) {
                widths[0].put(at, &alone);
                widths[1].put(at, &together);
            }
        }
    }
    for (kind, widths) in KINDS.into_iter().zip(&series) {
        for (width, one) in ["_one", "_all"].into_iter().zip(widths) {
            report.series(Name::of(&[kind, width]).text(), &one.wall[..passes]);
            report.series(Name::of(&[kind, width, "_waited"]).text(), &one.waited[..passes]);
        }
    }
    report.result("wrong", wrong);
    report.result("empty", empty() as i64);
    report.result("threads", TEAM.size() as i64);
    report.result("cpu", TEAM.own_cpu() as i64);
    report.result("huge_pages", pages::huge_bytes().map_or(-1, |bytes| bytes as i64));
}

/// The wall time of a pass in which nothing is done: that of reading the clock. The shortest there is.
fn empty() -> u64 {
    const TRIES: usize = 200;
    let spans = (0..TRIES).map(|_| {
        let began = raw::monotonic();
        raw::monotonic() - began
    });
    spans.min().unwrap_or(0)
}

/// What the threads are asked for, as one word.
struct Task {
    kind: usize,
    /// Thousandths of the work that are done beside it.
    more: u32,
}

impl Task {
    fn packed(&self) -> u32 {
        self.more << 8 | self.kind as u32
    }

    fn of(packed: u32) -> Task {
        Task { kind: (packed & 0xff) as usize, more: packed >> 8 }
    }

    /// How much is done beside so much.
    fn beside(&self, steps: u64) -> u64 {
        steps * u64::from(self.more) / 1000
    }
}

/// What each thread has for itself.
struct Own {
    window: &'static [u64],
    cycle: &'static [u64],
    flush: Flush,
    /// Where on the cycle the next pass begins.
    place: usize,
}

impl Body for Own {
    fn new() -> Result<Own, i32> {
        let window = pages::map(memory::STEPS as usize, Size::Small)?;
        memory::prepare(window);
        let cycle = pages::map(chase::WORDS, Size::Small)?;
        chase::prepare(cycle);
        Ok(Own { window, cycle, flush: Flush::find(), place: 0 })
    }

    fn prepare(&mut self, task: u32) {
        let task = Task::of(task);
        match task.kind.checked_sub(MEMORY) {
            None => {}
            Some(0) => self.flush.all(self.window),
            Some(_) => {
                let loads = chase::STEPS + task.beside(chase::STEPS);
                chase::take_out(self.flush, self.cycle, self.place, loads);
            }
        }
    }

    fn pass(&mut self, task: u32) -> u64 {
        let task = Task::of(task);
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

    fn judge(&mut self, task: u32, result: u64) -> Done {
        let task = Task::of(task);
        let right = match COMPUTING.get(task.kind) {
            Some(one) => one.right,
            None if task.kind == MEMORY => memory::right(memory::STEPS),
            None => {
                let right = chase::word_at(self.cycle, self.place + chase::STEPS as usize);
                self.place += (chase::STEPS + task.beside(chase::STEPS)) as usize;
                right
            }
        };
        if result == right { Done::Right } else { Done::Wrong }
    }
}

/// One pass of one or all threads.
struct Pass {
    began: u64,
    ended: u64,
    waited: u64,
    wrong: i64,
}

impl Pass {
    const NONE: Pass = Pass { began: u64::MAX, ended: 0, waited: 0, wrong: 0 };

    /// From the first beginning to the last end; the longest that one of them waited.
    fn hear(&mut self, told: Told) {
        let [began, ended] = told.span;
        self.began = self.began.min(began);
        self.ended = self.ended.max(ended);
        self.waited = self.waited.max((ended - began).saturating_sub(told.cpu));
        self.wrong += i64::from(told.result == Done::Wrong);
    }
}

/// The passes of one kind and width.
#[derive(Clone, Copy)]
struct Series {
    wall: [u64; MOST_PASSES],
    waited: [u64; MOST_PASSES],
}

impl Series {
    const EMPTY: Series = Series { wall: [0; MOST_PASSES], waited: [0; MOST_PASSES] };

    fn put(&mut self, at: usize, pass: &Pass) {
        self.wall[at] = pass.ended - pass.began;
        self.waited[at] = pass.waited;
    }
}

/// A name put together without allocation.
struct Name {
    bytes: [u8; 32],
    length: usize,
}

impl Name {
    fn of(parts: &[&str]) -> Name {
        let mut name = Name { bytes: [0; 32], length: 0 };
        for part in parts {
            name.bytes[name.length..name.length + part.len()].copy_from_slice(part.as_bytes());
            name.length += part.len();
        }
        name
    }

    fn text(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three per cent of no step would plant nothing, and a benchmark would look for it in vain.
    #[test]
    fn three_per_cent_of_each_kind_is_work() {
        let task = Task { kind: 0, more: 30 };
        let steps = COMPUTING.map(|one| one.steps).into_iter().chain([memory::STEPS, chase::STEPS]);
        for steps in steps {
            let share = task.beside(steps) as f64 / steps as f64;
            assert!((share - 0.03).abs() < 0.001, "{share} of {steps} steps");
        }
    }
}
