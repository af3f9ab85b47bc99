//! Decides which test starts next. Knows nothing of processes and clocks.

use super::rules::{Load, Rule};

/// How many tests that wait run for each processor, besides one that computes: at least, and at most where processors are idle.
/// On a busy machine, engines lose the output of containers.
const WAITING: [usize; 2] = [2, 4];
/// With more of the processors' time idle, one more runs, and with less of it one less.
const IDLE: [f64; 2] = [0.1, 0.3];

/// What is to run, by number, and what runs now.
pub struct Schedule<'a> {
    /// The rule of each, and its place in the order.
    rules: Vec<(&'a Rule, usize)>,
    waiting: Vec<usize>,
    running: Vec<usize>,
    processors: usize,
    /// How many tests that wait may run now.
    room: usize,
}

impl<'a> Schedule<'a> {
    /// An empty one, for this many processors.
    pub fn new(processors: usize) -> Schedule<'a> {
        let room = processors * WAITING[0];
        Schedule { rules: Vec::new(), waiting: Vec::new(), running: Vec::new(), processors, room }
    }

    /// The processors were idle for this share of the last second.
    pub fn idled(&mut self, share: f64) {
        let waits = self.running.iter().filter(|number| self.rules[**number].0.load == Load::Waits).count();
        if share > IDLE[1] {
            // One that has not started yet is the next to fill the processors.
            self.room = self.room.max(waits + 1).min(self.processors * WAITING[1]);
        } else if share < IDLE[0] {
            self.room = (self.room - 1).max(self.processors * WAITING[0]);
        }
    }

    /// Adds one, whose number is how many there were before. Those that come first in the order start first, except those that
    /// need the whole machine: they come last, when nothing else is left.
    pub fn add(&mut self, rule: &'a Rule, place: usize) {
        self.waiting.push(self.rules.len());
        self.rules.push((rule, place));
    }

    /// One to start now, if there is one.
    pub fn next(&mut self) -> Option<usize> {
        let may_start = self.waiting.iter().copied().filter(|number| self.may_start(*number));
        let next = may_start.min_by_key(|number| {
            let (rule, place) = self.rules[*number];
            (rule.load == Load::Alone, place, *number)
        })?;
        self.waiting.retain(|other| *other != next);
        self.running.push(next);
        Some(next)
    }

    /// This one has ended.
    pub fn ended(&mut self, number: usize) {
        self.running.retain(|other| *other != number);
    }

    /// How many have not ended.
    pub fn left(&self) -> usize {
        self.waiting.len() + self.running.len()
    }

    fn may_start(&self, number: usize) -> bool {
        let rule = self.rules[number].0;
        let others = || self.running.iter().map(|other| self.rules[*other].0);
        let count = |load| others().filter(|other| other.load == load).count();
        let has_room = match rule.load {
            Load::Computes => count(Load::Computes) < self.processors,
            Load::Waits => count(Load::Waits) < self.room,
            Load::Alone => count(Load::Alone) < self.processors,
        };
        has_room && others().all(|other| rule.agrees_with(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Rule = Rule { beginning: "", load: Load::Alone, owns: &[], shares: &[] };
    const TURN: Rule = Rule { beginning: "", load: Load::Waits, owns: &["door"], shares: &[] };
    const WAITS: Rule = Rule { beginning: "", load: Load::Waits, owns: &[], shares: &[] };
    const COMPUTES: Rule = Rule { beginning: "", load: Load::Computes, owns: &[], shares: &[] };

    fn with(rules: &[&'static Rule]) -> Schedule<'static> {
        let mut schedule = Schedule::new(2);
        rules.iter().for_each(|rule| schedule.add(rule, 0));
        schedule
    }

    fn all(schedule: &mut Schedule<'_>) -> Vec<usize> {
        std::iter::from_fn(|| schedule.next()).collect()
    }

    #[test]
    fn what_computes_fills_the_processors_and_what_waits_runs_besides() {
        let mut schedule = with(&[&COMPUTES, &COMPUTES, &COMPUTES, &WAITS, &WAITS, &WAITS, &WAITS, &WAITS]);
        assert_eq!(all(&mut schedule), [0, 1, 3, 4, 5, 6]);
        schedule.ended(0);
        assert_eq!(all(&mut schedule), [2]);
        schedule.ended(6);
        assert_eq!(all(&mut schedule), [7]);
    }

    #[test]
    fn more_that_wait_run_while_processors_are_idle() {
        let mut schedule = with(&[&WAITS; 20]);
        assert_eq!(all(&mut schedule).len(), 4);
        schedule.idled(0.2);
        assert_eq!(all(&mut schedule).len(), 0);
        schedule.idled(0.5);
        schedule.idled(0.5);
        assert_eq!(all(&mut schedule).len(), 1);
        let more = (0..20).map(|_| {
            schedule.idled(0.5);
            all(&mut schedule).len()
        });
        assert_eq!(more.sum::<usize>(), 3);
        (0..20).for_each(|_| schedule.idled(0.0));
        (0..4).for_each(|number| schedule.ended(number));
        assert_eq!(all(&mut schedule).len(), 0);
        schedule.ended(4);
        assert_eq!(all(&mut schedule).len(), 1);
    }

    #[test]
    fn what_comes_first_in_the_order_starts_first_also_if_it_was_added_later() {
        let mut schedule = with(&[&COMPUTES; 3]);
        assert_eq!(all(&mut schedule), [0, 1]);
        schedule.add(&COMPUTES, 1);
        schedule.add(&ALONE, 0);
        schedule.add(&COMPUTES, 0);
        schedule.ended(0);
        schedule.ended(1);
        assert_eq!(all(&mut schedule), [2, 5]);
        schedule.ended(2);
        schedule.ended(5);
        assert_eq!(all(&mut schedule), [3]);
    }

    #[test]
    fn tests_with_the_same_turn_run_one_after_the_other() {
        let mut schedule = with(&[&TURN, &TURN, &WAITS]);
        assert_eq!(all(&mut schedule), [0, 2]);
        schedule.ended(2);
        assert_eq!(all(&mut schedule), [0; 0]);
        schedule.ended(0);
        assert_eq!(all(&mut schedule), [1]);
    }

    #[test]
    fn what_needs_the_machine_runs_at_the_end_and_alone() {
        let mut schedule = with(&[&ALONE, &ALONE, &WAITS]);
        assert_eq!(all(&mut schedule), [2]);
        schedule.ended(2);
        assert_eq!(all(&mut schedule), [0]);
        schedule.ended(0);
        assert_eq!(all(&mut schedule), [1]);
        assert_eq!(schedule.left(), 1);
        schedule.ended(1);
        assert_eq!(schedule.left(), 0);
    }
}
