//! How long does a name take inside? A stub resolver inside resolves thousands of names, one after the other, and
//! in the end a resolver of dunnage's on the host answers. An engine is between them: on its usual network it
//! only carries the query, on one that a user makes its own resolver forwards it.
//!
//! Deliberately absent: the time of resolvers elsewhere, which no engine changes.

pub mod tables;

use super::latency::{quantile, tail};
use crate::experiment::question::{Event, Experiment, Metric, Scope, nanos};
use crate::experiment::setting::{Setting, SettingKey, fits};
use crate::names::names;
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};
use names::{HELPER_CPU, NAME_TIME, QUERIES, RESOLVED, WARM_UP};

names! {
    [crate::experiment::network::names]
    Counter { RESOLVED = "names", QUERIES = "queries", }
    Spread { NAME_TIME = "name", }
    Fact { RESOLVER = "resolver", }
}

/// Its name.
pub const NAME: &str = "dns";

/// Names of a sample, or its length if that is reached before. Each has a port of its own, which the kernel's
/// connection tracking remembers for half a minute, so more would fill its table.
pub const NAMES: u64 = 2_000;
/// The longest that the names of a sample take.
pub const LASTS: Nanos = Nanos::from_millis(1_000);
/// Names that no cache knows.
pub const FRESH: &str = "fresh";
/// The name of a container.
pub const CONTAINER: &str = "container";

/// The network that engines use unless a user makes another.
const DEFAULT: &str = "default";
const USER_DEFINED: &str = "user-defined";

static METRICS: [Metric; 6] = [
    quantile("p50", |sample| sample.quantile(NAME_TIME, 0.5)).meaning(
        "the median time of a name: from before the socket of the query is made until the answer has arrived",
    ),
    tail("p99", NAME_TIME, 0.99).meaning("the 99th percentile of the names of all rounds together"),
    tail("p999", NAME_TIME, 0.999).meaning("the same, 99.9th percentile"),
    tail("max", NAME_TIME, 1.0).meaning("the longest of all rounds"),
    Metric::by("queries", |sample| Some(sample.counter(QUERIES)? as f64 / asked(sample)?))
        .of(Unit::Ratio, Margin::fixed(0.01, 0.0))
        .with(Better::Neither)
        .context()
        .meaning("queries that reach dunnage's resolver for each name: fewer than one if something before it has a cache"),
    quantile("helper_cpu", |sample| Some(nanos(sample, HELPER_CPU)? / asked(sample)?)).context().meaning(
        "CPU time for each name of the engine's programs that began with the container: its own resolver, and networks in \
         user space; what a daemon does itself is not in it",
    ),
];

/// Every name that was asked for: the first one, the warm-up and those that were timed.
fn asked(sample: &Sample) -> Option<f64> {
    let timed = sample.counter(RESOLVED).filter(|count| *count > 0)?;
    Some((1 + sample.counter(WARM_UP)? + timed) as f64)
}

static KEYS: [SettingKey; 2] = [
    SettingKey::of("network", &[DEFAULT, USER_DEFINED]).meaning(
        "`default`: the one that the subject uses anyway, the reference of the other; `user-defined`: one that is made for the \
         container, where engines have a resolver that also knows containers by their names",
    ),
    SettingKey::of("name", &[FRESH])
        .or(|value| fits(["repeated", CONTAINER].contains(&value), "fresh, repeated, container"))
        .meaning(
            "`fresh`: a new name each time, which no cache knows; `repeated`: the same one; `container`: that of another \
             container on the same network, only with `network=user-defined`",
        ),
];

/// Whether the network is made for the container.
pub fn is_user_defined(setting: &Setting) -> bool {
    setting.get("network") == Some(USER_DEFINED)
}

/// Which names are resolved.
pub fn which(setting: &Setting) -> &'static str {
    setting.get("name").unwrap_or(FRESH)
}

/// The same names on the usual network, which does not know containers.
fn usual(setting: &Setting) -> Option<Setting> {
    let has = is_user_defined(setting) && which(setting) != CONTAINER;
    has.then(|| setting.with("network", DEFAULT))
}

/// The experiment `dns`.
pub static DNS: Experiment = Experiment {
    keys: &KEYS,
    requires: &[("network", USER_DEFINED, Need::Names)],
    event: Event::Often("name"),
    scope: Scope::Few,
    maps: &["p50"],
    has: |setting| is_user_defined(setting) || which(setting) != CONTAINER,
    quick_values: |key| key.values,
    reference: usual,
    // Making and removing a container that stays takes about as long as two launches; a network, as two more.
    cost: |setting, launch| {
        let launches = if is_user_defined(setting) { 4 } else { 2 };
        Nanos(launches * launch.0 + LASTS.0 / 8)
    },
    ..Experiment::of(NAME, "how long does a name take inside?", Need::Resolver, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings_of;
    use crate::outcome::Distribution;

    #[test]
    fn a_network_is_compared_with_the_usual_one_for_the_same_names() {
        let chosen = |key: &SettingKey| match key.name {
            "network" => vec![USER_DEFINED],
            _ => vec!["repeated"],
        };
        let all: Vec<_> = settings_of(&DNS, chosen).iter().map(Setting::to_string).collect();
        assert_eq!(all, ["network=user-defined;name=repeated", "network=default;name=repeated"]);
        assert_eq!((DNS.reference)(&Setting(vec![("network", DEFAULT), ("name", FRESH)])), None);
        let container = |network| Setting(vec![("network", network), ("name", CONTAINER)]);
        assert!((DNS.has)(&container(USER_DEFINED)) && !(DNS.has)(&container(DEFAULT)));
        assert_eq!((DNS.reference)(&container(USER_DEFINED)), None);
        assert!(KEYS[1].take("old").is_err() && KEYS[0].take("host").is_err());
    }

    #[test]
    fn metrics_are_of_single_names() {
        let counters = [(RESOLVED, 980), (WARM_UP, 19), (QUERIES, 500), (HELPER_CPU, 2_000_000)];
        let times = Distribution::of([40_000, 50_000, 90_000]);
        let sample = Sample::default().with(counters).with([(NAME_TIME, times)]);
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample).unwrap();
        assert!((value("p50") - 50e-6).abs() < 1e-7);
        assert_eq!((value("queries"), value("helper_cpu")), (0.5, 2e-6));
    }
}
