//! Which limits to try on the watched usage, and which one to recommend.
//!
//! The recommendation is the smallest limit under which fewer than 1 % of the periods would have been
//! throttled. It has no headroom for anything that was not seen; users add that, since they know what the
//! container will have to do.

use serde::Serialize;

use super::demand::Demand;
use super::replay::{Kernel, Prediction, Wait, predict};
use super::usage::{Quantiles, Usage};
use super::{Cpus, Quota, Throttling};
use crate::units::Nanos;

/// The limit is healthy if a smaller share of the periods than this is throttled.
pub const HEALTHY: f64 = 0.01;
/// Above this share, most periods are throttled.
pub const HEAVY: f64 = 0.5;
/// The factor that the common rule applies to p95.
const RULE: f64 = 1.5;
/// The number of limits that are tried between the mean and the maximum.
const TRIED: usize = 8;
/// Kernels reject a quota below 1 ms.
const LEAST: f64 = 0.01;

/// What was watched.
#[derive(Debug, Clone)]
pub struct Watched {
    /// The readings.
    pub usage: Usage,
    /// The limit in force, the tightest of the group and those above it.
    pub limit: Option<Quota>,
    /// What the kernel counted for it.
    pub throttling: Throttling,
    /// How the kernel grants quota.
    pub kernel: Kernel,
    /// The number of CPUs.
    pub cpus: usize,
}

/// Why a limit was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Shows the trade-off.
    Trade,
    /// p95 × 1.5.
    Rule,
    /// It is in force.
    InForce,
    /// The user asked for it.
    Asked,
    /// It is recommended.
    Recommended,
}

/// A limit that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// How many CPUs.
    pub cpus: Cpus,
    /// Why.
    pub origins: Vec<Origin>,
    /// What it would have meant; unknown for a limit above one that held work back.
    #[serde(rename = "predicted")]
    pub prediction: Option<Prediction>,
}

/// The recommendation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Recommendation {
    /// This limit.
    Limit {
        /// The number of CPUs.
        cpus: Cpus,
    },
    /// No advice: the limit in force held work back. Watch again under a higher one.
    Raise {
        /// The limit in force.
        #[serde(rename = "cpus")]
        from: Cpus,
        /// The limit to watch again with.
        #[serde(rename = "watch_again_with")]
        to: Cpus,
    },
    /// No limit below the number of the machine's CPUs is enough.
    None,
}

/// The whole advice.
#[derive(Debug, Clone, Serialize)]
pub struct Advice {
    /// Quantiles of the usage within periods.
    #[serde(skip)]
    pub quantiles: Quantiles,
    /// Whether a limit held work back, so that the usage is less than the demand.
    pub is_censored: bool,
    /// The minimum number of threads that ran at the same time.
    pub threads: usize,
    /// p95 × 1.5; none if a limit cut the usage.
    pub rule: Option<Cpus>,
    /// The limits, in rising order.
    pub tried: Vec<Tried>,
    /// The recommendation.
    pub recommendation: Recommendation,
    /// The request: p95, at most the limit; none if a limit cut the usage.
    pub request: Option<Cpus>,
}

/// The advice, with these limits among those that are tried. `None` if no whole period was watched.
pub fn advise(watched: &Watched, asked: &[Cpus]) -> Option<Advice> {
    let quantiles = watched.usage.quantiles(Quota::USUAL_PERIOD)?;
    let demand = Demand::of(&watched.usage, watched.kernel.tick);
    let limit = watched.limit.map(Quota::cpus);
    let is_censored = limit.is_some() && watched.throttling.share().unwrap_or(0.0) >= HEALTHY;
    let rule = (!is_censored).then(|| rounded_up(Cpus(quantiles.p95.0 * RULE)));
    let try_it = |cpus: Cpus| match Quota::of(cpus) {
        // A late reading can look like more than all CPUs, which is impossible.
        limit if cpus.0 >= watched.cpus as f64 => {
            Prediction { limit, throttled: Some(0.0), wait: Wait::default(), behind: Nanos(0) }
        }
        limit => predict(&demand, limit, watched.kernel),
    };
    let recommendation = match limit.filter(|_| is_censored) {
        Some(from) => Recommendation::Raise {
            from,
            to: rounded_up(Cpus((from.0 * 2.0).min(watched.cpus as f64).max(from.0))),
        },
        None => smallest_healthy(watched.cpus, try_it),
    };
    let mut wanted: Vec<(Cpus, Origin)> =
        trade(&demand, watched.usage.mean()).into_iter().map(|cpus| (cpus, Origin::Trade)).collect();
    wanted.extend(rule.map(|cpus| (cpus, Origin::Rule)));
    wanted.extend(limit.map(|cpus| (cpus, Origin::InForce)));
    wanted.extend(asked.iter().map(|cpus| (*cpus, Origin::Asked)));
    if let Recommendation::Limit { cpus } = recommendation {
        wanted.push((cpus, Origin::Recommended));
    }
    let request = match recommendation {
        Recommendation::Limit { cpus } => Some(rounded_up(Cpus(quantiles.p95.0.min(cpus.0)))),
        Recommendation::None => Some(rounded_up(quantiles.p95)),
        Recommendation::Raise { .. } => None,
    };
    let is_known = |cpus: Cpus| !is_censored || limit.is_some_and(|limit| cpus < limit);
    Some(Advice {
        quantiles,
        is_censored,
        threads: demand.threads(),
        rule,
        tried: merged(wanted, |cpus| is_known(cpus).then(|| try_it(cpus))),
        recommendation,
        request,
    })
}

/// From the mean, below which a group falls ever farther behind, to the maximum that was needed in any
/// period.
fn trade(demand: &Demand, mean: Cpus) -> Vec<Cpus> {
    let most = demand.most_within(Quota::USUAL_PERIOD).0 as f64 / Quota::USUAL_PERIOD.0 as f64;
    let (low, high) = (mean.0.max(LEAST), most.max(LEAST));
    let at = |index: usize| low * (high / low).powf(index as f64 / (TRIED - 1) as f64);
    (0..TRIED).map(|index| rounded_up(Cpus(at(index)))).collect()
}

/// To steps that people choose: hundredths below 0.2, then twentieths.
fn rounded_up(cpus: Cpus) -> Cpus {
    let steps = if cpus.0 <= 0.2 { 100.0 } else { 20.0 };
    // A value above a step only by rounding is that step.
    Cpus(((cpus.0 * steps - 1e-6).ceil() / steps).max(LEAST))
}

/// By bisection, since throttling falls as the limit rises.
fn smallest_healthy(cpus: usize, try_it: impl Fn(Cpus) -> Prediction) -> Recommendation {
    let steps: Vec<Cpus> = (1..=20)
        .map(|step| Cpus(f64::from(step) / 100.0))
        .chain((5..20 * cpus as u32).map(|step| Cpus(f64::from(step) / 20.0)))
        .collect();
    let is_healthy = |cpus: Cpus| {
        let found = try_it(cpus);
        found.throttled.unwrap_or(0.0) < HEALTHY && !found.falls_behind()
    };
    let first = steps.partition_point(|&cpus| !is_healthy(cpus));
    steps.get(first).map_or(Recommendation::None, |cpus| Recommendation::Limit { cpus: *cpus })
}

/// Each limit once, with all its origins, in rising order.
fn merged(mut wanted: Vec<(Cpus, Origin)>, try_it: impl Fn(Cpus) -> Option<Prediction>) -> Vec<Tried> {
    wanted.sort_by(|a, b| a.0.0.total_cmp(&b.0.0));
    let mut all: Vec<Tried> = Vec::new();
    for (cpus, origin) in wanted {
        match all.last_mut().filter(|last| (last.cpus.0 - cpus.0).abs() < 1e-9) {
            Some(last) if last.origins.contains(&origin) => {}
            Some(last) => last.origins.push(origin),
            None => all.push(Tried { cpus, origins: vec![origin], prediction: try_it(cpus) }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::usage::tests::every_10_ms;
    use super::*;

    fn watched(used: impl IntoIterator<Item = f64>) -> Watched {
        Watched {
            usage: every_10_ms(used),
            limit: None,
            throttling: Throttling::default(),
            kernel: Kernel { slice: Kernel::USUAL_SLICE, tick: Nanos::from_millis(4) },
            cpus: 2,
        }
    }

    #[test]
    fn steady_usage_gets_a_limit_just_above_it() {
        let advice = advise(&watched([3.2; 1000]), &[Cpus(0.2)]).unwrap();
        let Recommendation::Limit { cpus } = advice.recommendation else { panic!("{advice:?}") };
        assert!((0.32..=0.4).contains(&cpus.0), "{advice:?}");
        assert_eq!((advice.rule, advice.is_censored), (Some(Cpus(0.5)), false));
        let asked = advice.tried.iter().find(|tried| tried.origins.contains(&Origin::Asked)).unwrap();
        assert!(asked.prediction.as_ref().unwrap().throttled.unwrap() > 0.95, "{asked:?}");
        assert!(advice.tried.is_sorted_by(|a, b| a.cpus < b.cpus), "{advice:?}");
    }

    #[test]
    fn the_usual_rule_is_shown_to_throttle_bursts_that_p95_does_not_see() {
        // A whole CPU for half a second every 20 seconds, and next to nothing else.
        let advice =
            advise(&watched((0..6000).map(|index| if index % 2000 < 50 { 10.0 } else { 0.5 })), &[]).unwrap();
        let rule = advice.tried.iter().find(|tried| tried.origins.contains(&Origin::Rule)).unwrap();
        let Recommendation::Limit { cpus } = advice.recommendation else { panic!("{advice:?}") };
        assert!(rule.cpus < Cpus(0.1) && cpus > rule.cpus, "{advice:?}");
        assert!(rule.prediction.as_ref().unwrap().throttled.unwrap() > 0.1, "{rule:?}");
    }

    #[test]
    fn all_cpus_throttle_nothing_whatever_was_read() {
        let advice =
            advise(&watched((0..1000).map(|index| 20.0 + f64::from(index % 2))), &[Cpus(2.0)]).unwrap();
        let all = advice.tried.iter().find(|tried| tried.cpus == Cpus(2.0)).unwrap();
        assert_eq!(all.prediction.as_ref().unwrap().throttled, Some(0.0));
        assert_eq!(advice.recommendation, Recommendation::None);
    }

    #[test]
    fn what_a_limit_held_back_is_never_recommended_away() {
        let mut limited = watched([5.0; 1000]);
        limited.limit = Some(Quota::of(Cpus(0.5)));
        limited.throttling = Throttling { periods: 100, throttled: 90, waited: Nanos::from_millis(4000) };
        let advice = advise(&limited, &[Cpus(0.3), Cpus(1.0)]).unwrap();
        assert!(advice.is_censored);
        assert_eq!(advice.recommendation, Recommendation::Raise { from: Cpus(0.5), to: Cpus(1.0) });
        // With 0.05 CPUs, the rule would have given less than the limit in force.
        assert_eq!((advice.rule, advice.request), (None, None));
        assert!(advice.tried.iter().all(|one| !one.origins.contains(&Origin::Rule)), "{advice:?}");
        let known =
            |cpus| advice.tried.iter().find(|tried| tried.cpus == Cpus(cpus)).unwrap().prediction.is_some();
        assert_eq!([0.3, 0.5, 1.0].map(known), [true, false, false]);
    }

    #[test]
    fn a_limit_that_held_nothing_back_may_be_lowered() {
        let mut limited = watched([2.0; 1000]);
        limited.limit = Some(Quota::of(Cpus(1.0)));
        limited.throttling = Throttling { periods: 100, throttled: 0, waited: Nanos(0) };
        let advice = advise(&limited, &[]).unwrap();
        assert!(
            matches!(advice.recommendation, Recommendation::Limit { cpus } if cpus < Cpus(0.3)),
            "{advice:?}"
        );
    }

    #[test]
    fn steps_are_those_that_a_person_would_choose() {
        assert_eq!(
            [0.003, 0.111, 0.2, 0.21, 0.9, 1.31].map(|cpus| rounded_up(Cpus(cpus)).0),
            [0.01, 0.12, 0.2, 0.25, 0.9, 1.35]
        );
    }
}
