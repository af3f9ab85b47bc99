//! Which of dunnage's metrics corresponds to a published number? Only quantities of the same kind and in the same
//! conditions are compared, with a sentence on what still differs. A number without a counterpart has a reason.
//!
//! The first rule that fits a number applies; every number has one.

use serde::Serialize;

use super::{Number, Quantity};

/// The counterpart of a published number in dunnage.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counterpart {
    /// A metric.
    Metric(Same),
    /// None, for this reason.
    None(&'static str),
}

/// A metric that corresponds to a published number, and how they differ.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Same {
    /// The experiment.
    pub experiment: &'static str,
    /// Its metric.
    pub metric: &'static str,
    /// Whether the number is a value or a difference from a bare process.
    pub quantity: Quantity,
    /// Whether a setting, as text, is the published one.
    #[serde(skip)]
    pub setting: fn(&Number, &str) -> bool,
    /// Which settings those are, for a user who measured none of them.
    pub conditions: &'static str,
    /// How the two still differ.
    pub differs: &'static str,
}

impl Counterpart {
    /// In a few words: `start returned`, `none`.
    pub fn in_words(&self) -> String {
        match self {
            Counterpart::Metric(same) => format!("{} {}", same.experiment, same.metric),
            Counterpart::None(_) => "none".to_owned(),
        }
    }
}

struct Rule {
    /// The experiment, as the table names it.
    experiment: &'static str,
    /// Which of its numbers.
    fits: fn(&Number) -> bool,
    counterpart: Counterpart,
}

const fn same(experiment: &'static str, fits: fn(&Number) -> bool, same: Same) -> Rule {
    Rule { experiment, fits, counterpart: Counterpart::Metric(same) }
}

const fn none(experiment: &'static str, fits: fn(&Number) -> bool, why: &'static str) -> Rule {
    Rule { experiment, fits, counterpart: Counterpart::None(why) }
}

const fn value(experiment: &'static str, metric: &'static str, differs: &'static str) -> Same {
    let (quantity, conditions) = (Quantity::Value, "any setting");
    Same { experiment, metric, quantity, setting: |_, _| true, conditions, differs }
}

const START: Same = Same {
    setting: |_, text| text.split(';').any(|pair| pair == "at_once=1"),
    conditions: "at_once=1",
    ..value(
        "density",
        "start",
        "the published number is a total over the number of containers, from one series",
    )
};

const WHOLE_PROGRAM: &str = "the time of a whole program; compare differences with `layers`, which times the operation alone, and copies what it \
                             changes: the published change opened the file with `O_TRUNC`, so nothing was copied";
/// Half a round trip is never compared with a full one.
const HALF: &str =
    "half a round trip: the tool halves what it measures, while dunnage measures full round trips";
const DERIVED: &str = "computed from other numbers of the table, which have counterparts of their own";
const NOT_MEASURED: &str = "an estimate, a quotation or a headline, not a measurement";

const RETURNED: Same = value(
    "start",
    "returned",
    "the published run starts `echo` from an image with a shell and a C library, removal included, in blocks; this run \
     starts the probe from an image with nothing else, in shuffled rounds",
);
const READY: Same = value(
    "start",
    "first_instruction",
    "the published time ends when a program inside reads its clock, after its own start and that of a shell; this one ends \
     at the ELF entry of the probe",
);
const LOOP_RUN: Same = Same {
    setting: |number, text| text.contains("mode=run") && is_the_loop(number, text),
    conditions: "`command` with `mode=run` and a bash loop of as many turns",
    ..value(
        "command",
        "returned",
        "the published runs use the host's bash in one arm and the image's in the others; choose the same image for all \
         subjects to use one bash",
    )
};
const LOOP_EXEC: Same = Same {
    setting: |number, text| text.contains("mode=exec") && is_the_loop(number, text),
    conditions: "`command` with `mode=exec` and a bash loop of as many turns",
    ..LOOP_RUN
};
const CALL: Same = value(
    "syscall",
    "getpid",
    "the published number is the mean of 10 million calls in a row, this one the 2 % quantile over batches of calls, which \
     are the undisturbed ones; the price of a call depends more on kernel and processor than on the engine",
);
const CALL_DIFFERENCE: Same = Same { quantity: Quantity::Difference, ..CALL };
const fn throttled(metric: &'static str, differs: &'static str) -> Same {
    Same {
        setting: is_the_published_load,
        conditions: "`throttle` with `load=alternating`, 50 ms in 100 ms",
        ..value("throttle", metric, differs)
    }
}

const TOOL: Same = value(
    "memory",
    "tool",
    "each tool has a formula of its own, which changes with its version and that of cgroups, so figures of two engines are not of the same \
     thing; `sum` is what one more container adds",
);

const REQUESTS: Same = Same {
    setting: is_the_published_web_load,
    conditions: "`http` with `clients=published`, through a published port or on the host's network",
    ..value(
        "http",
        "rate",
        "the published server is a program for Node.js, in different versions natively and in containers; this one is dunnage's unless \
         you name another",
    )
};

const RULES: &[Rule] = &[
    none("start", |one| one.is_derived(), DERIVED),
    none("start", is_spread, "a spread over repetitions; dunnage shows intervals"),
    none(
        "start",
        |one| one.note.contains("shell builtin"),
        "it times a shell builtin: no program is started",
    ),
    same("start", |one| one.condition("phase") == Some("total"), RETURNED),
    same("start", |one| one.condition("phase") == Some("ready"), READY),
    none("cpu_run", |one| !one.is_measured(), NOT_MEASURED),
    none("cpu_run", |one| one.is_derived(), DERIVED),
    same("cpu_run", everything, LOOP_RUN),
    none("cpu_exec", |one| one.is_derived(), DERIVED),
    same("cpu_exec", everything, LOOP_EXEC),
    none("syscall", |one| !one.is_measured(), NOT_MEASURED),
    same("syscall", |one| one.metric == "call_time", CALL),
    same("syscall", |one| one.metric == "overhead", CALL_DIFFERENCE),
    none("syscall", everything, DERIVED),
    same(
        "throttle",
        |one| one.metric == "cpu_used",
        throttled(
            "usage",
            "the published number is the mean of a few samples of `docker stats`, this one is counted over the whole window",
        ),
    ),
    same(
        "throttle",
        |one| one.metric == "throttle_rate" && !is_without_quota(one),
        throttled(
            "throttled_share",
            "a share of periods: it depends on how the load aligns with the periods, not on the length of the window",
        ),
    ),
    none("throttle", is_without_quota, "does not apply: there are no periods without a quota"),
    none(
        "throttle",
        |one| {
            matches!(one.metric.as_str(), "throttled_time" | "periods" | "periods_throttled" | "wasted_share")
        },
        "it grows with the window, which is not as long as stated",
    ),
    none("net_latency", |one| !one.is_measured(), NOT_MEASURED),
    none("net_latency", everything, HALF),
    none("memory", |one| one.is_derived(), DERIVED),
    same("memory", |one| one.metric == "cgroup_per_container", TOOL),
    none(
        "memory",
        everything,
        "it is of the whole machine, a total, or of some of the processes; `memory` gives what one more container adds, with all who pay",
    ),
    same("scale", |one| one.metric == "launch_per_container", START),
    none(
        "scale",
        everything,
        "a total, or what the whole machine used; `density` gives each start, and `memory` what one more container adds",
    ),
    none(
        "nested",
        everything,
        "a success, or how long a failure took, with an image pulled meanwhile; `nested` proves where a container is, and times starts inside",
    ),
    none(
        "disk_write",
        everything,
        "compare it with `write_rate` of `disk` at the same place, which says whether the bytes reached the disk",
    ),
    none("layers", everything, WHOLE_PROGRAM),
    same("http", |one| one.condition("endpoint") == Some("network"), REQUESTS),
    none(
        "http",
        everything,
        "dunnage gives how much longer such a request takes than an empty one, not a rate",
    ),
];

fn everything(_: &Number) -> bool {
    true
}

fn is_spread(number: &Number) -> bool {
    number.condition("stat") == Some("sd")
}

fn is_without_quota(number: &Number) -> bool {
    number.experiment == "throttle" && !number.subject.contains("cpus=") && number.metric != "cpu_used"
}

/// The counterpart of a number.
pub fn of(number: &Number) -> Counterpart {
    let fits = |rule: &&Rule| rule.experiment == number.experiment && (rule.fits)(number);
    let unknown = Counterpart::None("no rule names its counterpart");
    RULES.iter().find(fits).map_or(unknown, |rule| rule.counterpart)
}

/// Times of different work cannot be compared: the command must be a bash loop with as many turns.
fn is_the_loop(number: &Number, setting: &str) -> bool {
    let turns = number.condition("iters").unwrap_or_default();
    let words = |text: &str| setting.split(|c: char| !c.is_alphanumeric()).any(|word| word == text);
    words("bash") && words(turns)
}

fn is_the_published_web_load(number: &Number, setting: &str) -> bool {
    let is_on_host = number.subject == "bare" || number.subject.contains("net=host");
    let path = if is_on_host { "path=inside" } else { "path=published" };
    let has = |wanted: &str| setting.split(';').any(|part| part == wanted);
    has(path) && (has("clients=published") || has("clients=32/400"))
}

/// Keys that are not in the setting have the published values.
fn is_the_published_load(_: &Number, setting: &str) -> bool {
    let others = ["busy=", "period=", "threads="];
    let chosen = |part: &str| others.iter().any(|key| part.starts_with(key));
    let as_published = |part: &str| matches!(part, "busy=50ms" | "period=100ms" | "threads=1");
    setting.split(';').any(|part| part == "load=alternating")
        && setting.split(';').all(|part| !chosen(part) || as_published(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use crate::reference::sources;

    fn all() -> impl Iterator<Item = &'static Number> {
        sources().iter().flat_map(|source| &source.numbers)
    }

    #[test]
    fn every_counterpart_exists_in_its_unit() {
        for number in all() {
            match of(number) {
                Counterpart::Metric(same) => {
                    let found = experiment::find(same.experiment).expect("an experiment");
                    let metric =
                        found.metrics.iter().find(|metric| metric.name == same.metric).expect("a metric");
                    let (unit, _) = number.in_base_units(number.value).expect("a known unit");
                    assert_eq!(unit, metric.unit, "{number:?}");
                }
                Counterpart::None(why) => assert!(!why.starts_with("no rule"), "{number:?}"),
            }
        }
    }

    #[test]
    fn totals_are_returns_and_readiness_is_a_first_instruction() {
        let words = |phase| {
            let mut all: Vec<_> = all()
                .filter(|one| {
                    one.condition("phase") == Some(phase)
                        && !one.is_derived()
                        && !is_spread(one)
                        && one.subject != "bare"
                })
                .map(|one| of(one).in_words())
                .collect();
            all.dedup();
            all
        };
        assert_eq!(words("total"), ["start returned"]);
        assert_eq!(words("ready"), ["start first_instruction"]);
    }

    #[test]
    fn half_a_round_trip_has_no_counterpart_whatever_we_measure() {
        let latencies: Vec<_> = all().filter(|one| one.experiment == "net_latency").collect();
        assert!(latencies.len() > 15);
        assert!(latencies.iter().all(|one| matches!(of(one), Counterpart::None(_))));
        assert!(
            latencies
                .iter()
                .any(|one| matches!(of(one), Counterpart::None(why) if why.starts_with("half a round trip")))
        );
    }

    #[test]
    fn only_the_same_work_in_the_same_conditions_stands_beside() {
        let run = all().find(|one| one.experiment == "cpu_run").unwrap();
        let fits = |number: &Number, setting: &str| match of(number) {
            Counterpart::Metric(same) => (same.setting)(number, setting),
            _ => false,
        };
        let looped = |mode, turns| {
            format!("cmd=\"bash -c \\\"for ((i=0; i<{turns}; i++)); do :; done\\\"\";mode={mode}")
        };
        assert!(fits(run, &looped("run", 10_000_000)));
        assert!(!fits(run, &looped("exec", 10_000_000)) && !fits(run, &looped("run", 1_000_000)));
        assert!(!fits(run, "cmd=true;mode=run"));
        let exec = all().find(|one| one.experiment == "cpu_exec").unwrap();
        assert!(fits(exec, &looped("exec", 1_000_000)) && !fits(exec, &looped("run", 1_000_000)));
        let load = all().find(|one| one.metric == "cpu_used").unwrap();
        assert!(fits(load, "load=alternating") && fits(load, "load=alternating;busy=50ms;seconds=30"));
        assert!(!fits(load, "load=bursts") && !fits(load, "load=alternating;busy=20ms"));
    }
}
