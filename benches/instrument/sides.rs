//! Two sides in turns: the order within each round is drawn from the seed, and each side measures in the
//! prestate `primed`.

use anyhow::{Context, Result};
use dunnage::stats::{Pairs, Rng};

use crate::bench::Bench;

/// One side of a comparison: primes, measures once, and returns seconds.
pub type Side<'a> = Box<dyn FnMut(&mut Bench) -> Result<f64> + 'a>;

/// A side may fail occasionally; its round then has no pair. One that keeps failing ends the benchmark.
const MOST_FAILURES: usize = 5;

/// Measures both sides in every round. `yardstick` is the baseline of the pairs.
pub fn take_turns(
    bench: &mut Bench,
    rounds: usize,
    yardstick: Side<'_>,
    instrument: Side<'_>,
) -> Result<Pairs> {
    let mut sides = [yardstick, instrument];
    let mut values: [Vec<Option<f64>>; 2] = Default::default();
    let mut failures = 0;
    for round in 0..rounds {
        let mut order = [0, 1];
        Rng::for_stream(bench.seed, round as u64).shuffle(&mut order);
        for side in order {
            let value = match sides[side](bench) {
                Ok(value) => Some(value),
                Err(error) if bench.interrupted => return Err(error),
                Err(error) => {
                    failures += 1;
                    if failures > MOST_FAILURES {
                        return Err(error);
                    }
                    eprintln!("bench: round {round}: {error:#}");
                    None
                }
            };
            values[side].push(value);
        }
    }
    let [yardstick, instrument] = values;
    Pairs::align(&yardstick, &instrument).context("no round has both values")
}
