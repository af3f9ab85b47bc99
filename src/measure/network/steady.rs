//! When a user's service is warm. A program may compile what it runs often, fill its caches or grow its heap, and is slow until
//! then; what it does in the first moments after its start says nothing about the path to it.
//!
//! The rule is fixed beforehand: short loads follow each other until the mean rates of the last few and of as many before them are
//! within 5 % of each other. A start has a least duration in addition, since a rate can be constant for a while before it rises.

use std::collections::VecDeque;

use crate::experiment::network::http;
use crate::outcome::{Abort, Failure};
use crate::units::Nanos;

/// How far the means may be apart, as a part of the later one.
const APART: f64 = 0.05;
/// How many short loads have each mean.
const EACH: usize = 10;

/// How long to load.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Of one short load.
    pub lasts: Nanos,
    /// Of all at least.
    pub least: Nanos,
    /// So many requests at least, unless `enough` has passed: just-in-time compilers count calls.
    pub requests: i64,
    /// When the number of requests does not matter any more.
    pub enough: Nanos,
    /// When it is given up.
    pub most: Nanos,
}

/// In a container that has just started, for so long at least.
pub fn started(least: Nanos) -> Rule {
    Rule {
        lasts: Nanos(least.0 / (2 * EACH as i64)),
        least,
        requests: 20_000,
        enough: Nanos(least.0 * 3),
        most: Nanos(least.0 * 20),
    }
}

/// On a path to a service that is warm.
pub const ON_A_PATH: Rule = Rule {
    lasts: Nanos(http::ON_A_PATH.0 / (2 * EACH as i64)),
    least: http::ON_A_PATH,
    requests: 0,
    enough: Nanos(0),
    most: Nanos::from_millis(20_000),
};

/// Loads, each for so long, until the rate is steady; `load` returns the number of requests and how long they took. Returns the
/// same for all of them.
pub fn until_steady(
    rule: Rule,
    mut load: impl FnMut(Nanos) -> Result<(i64, Nanos), Abort>,
) -> Result<(i64, Nanos), Abort> {
    let (mut requests, mut took) = (0, Nanos(0));
    let mut rates = VecDeque::new();
    loop {
        let (more, lasted) = load(rule.lasts)?;
        (requests, took) = (requests + more, Nanos(took.0 + lasted.0));
        rates.push_back(more as f64 / lasted.seconds());
        if rates.len() > 2 * EACH {
            rates.pop_front();
        }
        let is_long = took >= rule.least && (requests >= rule.requests || took >= rule.enough);
        let is_full = rates.len() == 2 * EACH;
        let [before, now] = halves(&rates);
        if is_long && is_full && (now - before).abs() <= APART * now {
            return Ok((requests, took));
        }
        if is_full && took >= rule.most {
            let reason = format!(
                "not steady: after {took} of load its rate still went from {before:.0} to {now:.0} requests a second"
            );
            return Err(Failure::environment(reason).into());
        }
    }
}

/// The means of the earlier and of the later half. Unlike a median, each shows a rate that has just changed.
fn halves(rates: &VecDeque<f64>) -> [f64; 2] {
    let middle = rates.len() / 2;
    [rates.range(..middle), rates.range(middle..)].map(|half| half.sum::<f64>() / middle as f64)
}

#[cfg(test)]
mod tests {
    use dunnage_analysis::stats::rng::Rng;

    use super::*;

    const USUAL: Nanos = Nanos::from_millis(3000);

    /// A service whose rate is `truth` after so many requests and seconds, with this noise from load to load.
    fn loaded(rule: Rule, noise: f64, seed: u64, truth: impl Fn(f64, f64) -> f64) -> Result<f64, Abort> {
        let mut random = Rng::new(seed);
        let (mut requests, mut seconds) = (0.0, 0.0);
        until_steady(rule, |lasts| {
            let rate = truth(requests, seconds) * (1.0 + noise * random.standard_normal());
            let own = (rate * lasts.seconds()).max(1.0);
            (requests, seconds) = (requests + own, seconds + lasts.seconds());
            Ok((own as i64, lasts))
        })
        .map(|(_, took)| took.seconds())
    }

    /// Of 500 services, how many are found steady.
    fn found(rule: Rule, noise: f64, truth: impl Fn(f64, f64) -> f64 + Copy) -> usize {
        (0..500).filter(|seed| loaded(rule, noise, *seed, truth).is_ok()).count()
    }

    #[test]
    fn a_service_that_is_warm_is_found_so_soon_also_on_a_noisy_machine() {
        for noise in [0.0, 0.03, 0.1] {
            assert_eq!(found(ON_A_PATH, noise, |_, _| 20_000.0), 500, "noise {noise}");
            assert_eq!(found(started(USUAL), noise, |_, _| 20_000.0), 500, "noise {noise}");
        }
        let soon = loaded(ON_A_PATH, 0.03, 1, |_, _| 20_000.0).unwrap();
        assert!((1.0..3.0).contains(&soon), "{soon}");
        // One that answers slowly needs no number of requests.
        let slow = loaded(started(USUAL), 0.0, 1, |_, _| 50.0).unwrap();
        assert!((8.9..9.3).contains(&slow), "{slow}");
    }

    #[test]
    fn a_service_that_is_slow_at_first_is_loaded_until_it_is_not() {
        // Constant for its first 20,000 requests, and ten times as fast then.
        let step = |requests: f64, _: f64| if requests < 20_000.0 { 8_300.0 } else { 90_000.0 };
        // Faster and faster for ten seconds.
        let ramp = |_: f64, seconds: f64| 5_000.0 + 4_000.0 * seconds.min(10.0);
        for seed in 0..200 {
            for noise in [0.0, 0.05] {
                let took = loaded(started(USUAL), noise, seed, step).unwrap();
                assert!(took > 20_000.0 / 8_300.0 + 1.0, "{took}");
                let took = loaded(started(USUAL), noise, seed, ramp).unwrap();
                assert!(ramp(0.0, took) > 0.95 * ramp(0.0, 10.0), "{took}");
            }
        }
    }

    #[test]
    fn a_service_that_never_settles_is_a_failure_in_words() {
        let failed = loaded(started(USUAL), 0.0, 1, |_, seconds| 1_000.0 * 1.2f64.powf(seconds)).unwrap_err();
        let Abort::Failed(failure) = failed else { panic!("{failed:?}") };
        assert!(failure.reason.starts_with("not steady: after 60"), "{failure}");
    }
}
