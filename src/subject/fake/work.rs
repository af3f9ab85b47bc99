//! What a scripted subject reports of its work, by kind: in the types of the probe's answers, from the
//! scripted time, so that a planted effect is in every pass.

use dunnage_analysis::experiment::cpu::{KINDS, WIDTHS};
use dunnage_orders::Order;
use dunnage_orders::work::{Cached, Command, Computed, End, Ended, Mode, Passes, Ran, Spent, Took, Whole};
use serde_json::Value;

use crate::outcome::Distribution;
use crate::stats::Rng;
use crate::units::Nanos;

/// The time that one container's orders take.
pub struct Clock<'a> {
    /// What its launch took, in seconds.
    pub time: f64,
    pub rng: &'a mut Rng,
    /// How much has passed.
    pub passed: Nanos,
}

impl Clock<'_> {
    /// So many nanoseconds for each second of the script, and by chance a little more.
    pub fn nanos(&mut self, for_each: f64) -> Nanos {
        let took = Nanos((self.time * for_each * (1.0 + 0.003 * self.rng.standard_normal().abs())) as i64);
        self.passed = self.passed + took;
        took
    }

    /// So many times, and all of them.
    pub fn many(&mut self, count: u64, for_each: f64) -> (Distribution, Nanos) {
        let all: Vec<u64> = (0..count).map(|_| self.nanos(for_each).0 as u64).collect();
        let took = Nanos(all.iter().sum::<u64>() as i64);
        (Distribution::of(all), took)
    }
}

/// The scripted answer to an order whose work takes `time` seconds; none for a kind without a script.
pub fn done(order: &Order, time: f64, rng: &mut Rng) -> Option<Value> {
    let answer = match order {
        Order::Cpu(order) => serde_json::to_value(cpu((order.passes, order.fixed), time, rng)),
        Order::Command(order) => serde_json::to_value(command(order, time)),
        _ => return None,
    };
    Some(answer.expect("an answer can be written"))
}

/// Passes that are slower than the scripted time by chance, never faster. Several at once are a little slower
/// than one alone. The fixed work is as long as a pass and uses CPU time only.
fn cpu((count, fixed): (usize, u64), time: f64, rng: &mut Rng) -> Computed {
    const FACTORS: [f64; WIDTHS.len()] = [1.0, 1.02];
    let mut pass = |factor: f64| (time * factor * (1.0 + 0.0005 * rng.standard_normal().abs()) * 1e9) as i64;
    let mut whole = |factor: f64, threads: i64| {
        let took = pass(factor);
        Whole { took: Nanos(took), cpu: Nanos(took * threads), limit: None }
    };
    let whole = [whole(FACTORS[0], 1), whole(FACTORS[1], 2)];
    let mut passes: [[Passes; WIDTHS.len()]; KINDS.len()] = Default::default();
    for widths in &mut passes {
        for (one, factor) in widths.iter_mut().zip(FACTORS) {
            let wall = (0..count).map(|_| pass(factor) + 100).collect();
            *one = Passes { wall, waited: vec![0; count] };
        }
    }
    Computed {
        passes,
        fixed: (format!("{fixed} scripted passes"), Some(whole)),
        wrong: 0,
        empty: Nanos(100),
        threads: 2,
        cpu: 0,
        huge_pages: None,
        no_counters: None,
    }
}

/// The report of a command that used a small part of it, mostly in user mode.
fn command(order: &Command, time: f64) -> Ran {
    let nothing = Ran { program: None, sha256: None, cached: None, charged: None, end: End::NotAsked };
    if order.words.is_empty() {
        return nothing;
    }
    let nothing = Ran { program: Some("/script".to_owned()), ..nothing };
    if order.mode == Mode::Identify {
        return Ran { sha256: Some("0".repeat(64)), ..nothing };
    }
    let part = |share: f64| Nanos((time * share * 1e9) as i64);
    let took = Took::Command(Spent {
        took: part(0.04),
        user: part(0.03),
        system: part(0.005),
        most_memory: 2 << 20,
        own_memory: 1 << 19,
    });
    let cached = (order.mode == Mode::Cold).then_some(Cached { pages: Some(0), bytes: 4096 });
    Ran {
        cached,
        end: End::Ended(Ended { status: 0, said: String::new(), left_running: 0, took }),
        ..nothing
    }
}
