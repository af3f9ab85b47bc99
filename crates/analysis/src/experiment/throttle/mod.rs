//! What does a CPU limit do to latency and throughput? A load runs in a container for 1.5 s,
//! without a quota and with two. The cgroup's counters are read at both ends of the probe's own window and compared
//! with what the model of a quota (`stats::quota`) says about that load; and bursts under a quota are compared, round by
//! round, with the same bursts without one, which says whether it is enough for them.
//!
//! Subjects are compared only if they differ in one key: the kernel's rule is the same for all others.
mod cause;
mod enough;
mod rows;
pub mod suspects;
pub mod tables;
#[cfg(test)]
mod tests;
mod window;

use super::fixed_work::THREADS;
use super::question::{Compared, Concern, Experiment, Metric, Replicates, Scope, Shown, nanos};
use super::setting::{Setting, SettingKey, fits};
use super::variation::Variation;
use crate::names::names;
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_duration;
use crate::units::{Better, Nanos, Unit};
use names::{BURSTS_WAITING, EVERY, LATENCY, PERIOD_CPU, QUOTA_PERIOD, SYSTEM, TURNS, USER};
pub use window::Measured;

names! {
    [crate::experiment::fixed_work::names]
    Counter {
        CPUS = "cpus", ALIGNED = "aligned", WINDOW = "window", USER = "user", SYSTEM = "system", USAGE = "usage",
        QUOTA = "quota", QUOTA_PERIOD = "quota_period", QUOTA_BURST = "quota_burst", PERIODS = "periods",
        THROTTLED = "throttled", THROTTLED_TIME = "throttled_time", BURST_PERIODS = "burst_periods",
        BURST_TIME = "burst_time", LOAD = "load", BUSY = "busy", EVERY = "every", LENGTH = "length", TURNS = "turns",
        BURSTS_DONE = "bursts_done", BURSTS_WAITING = "bursts_waiting",
    }
    Series { LATENCY = "latency", PERIOD_CPU = "period_cpu", }
}

/// Its name.
pub const NAME: &str = "throttle";
/// The maximum number of bursts whose latencies the probe keeps.
pub const MOST_BURSTS: usize = 8192;

/// The time of the probe's load outside its window: it starts early until a period begins, and continues
/// until it is scheduled again after the window's end.
pub const AROUND: Nanos = Nanos::from_millis(300);

/// The metric that says whether a quota is enough.
pub const BURST: &str = "burst_p50";
/// The kernel hands out the budget in slices of 5 ms, so that a period can take as much longer. A quota that is too small makes
/// bursts wait for the next period.
const A_SLICE: Margin = Margin::fixed(5e-3, 0.05);

const fn context(name: &'static str, unit: Unit, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(unit, Margin::fixed(0.0, 0.01)).context()
}

fn distance(measured: Option<f64>, ideal: Option<f64>) -> Option<f64> {
    let ideal = ideal.filter(|ideal| *ideal > 0.0)?;
    Some((measured? / ideal - 1.0).abs())
}

static METRICS: [Metric; 16] = [
    context("usage", Unit::Share, |sample| Measured::of(sample)?.usage_share())
        .meaning(
            "CPUs used: CPU time that the cgroup counted between the ends of the probe's window, divided by \
             the window, so a mean; if the cgroup is not the process's own there is none, and (user + system) / window \
             is used",
        )
        .with(Better::Neither),
    context("window", Unit::Seconds, |sample| Some(Measured::of(sample)?.window as f64 / 1e9))
        .meaning(
            "the probe's window, from the first reading of its counters to the second: the length asked for, plus \
             the time that the probe was not scheduled",
        )
        .with(Better::Neither),
    context("throttled_share", Unit::Share, |sample| Measured::of(sample)?.throttled_share()).meaning(
        "periods at whose end something waited for the budget, divided by all periods counted in the \
         window; does not apply without a quota",
    ),
    context("throttled_per_period", Unit::Seconds, |sample| Measured::of(sample)?.throttled_per_period())
        .meaning(
            "throttled time divided by throttled periods; counted on each CPU's queue, so two waiting \
             CPUs count twice",
        ),
    context("throttled_time", Unit::Seconds, |sample| {
        Some(Measured::of(sample)?.throttling?[2] as f64 / 1e9)
    })
    .meaning(
        "how long the cgroup's queues were stopped in the window, added up over CPUs: time spent waiting, \
         while others could use the CPU",
    ),
    Metric::by(BURST, |sample| Measured::of(sample)?.latency(0.5))
        .of(Unit::Seconds, A_SLICE)
        .meaning(
            "median over the finished bursts of a window, from intended start to end; for an alternating load, \
             from the real start. Where bursts pile up, it grows with the length of the window",
        ),
    context("burst_p90", Unit::Seconds, |sample| Measured::of(sample)?.tail())
        .meaning("the same, 90th percentile; none for fewer than 100 bursts"),
    context("burst_max", Unit::Seconds, |sample| Measured::of(sample)?.latency(1.0))
        .meaning("the same, the longest"),
    context("bursts_waiting", Unit::Count, |sample| {
        sample.series(LATENCY).and(sample.counter(BURSTS_WAITING)).map(|count| count as f64)
    })
    .meaning(
        "bursts whose intended start had come but which were not finished when the window ended; while they \
         pile up, the latencies of the finished ones only show how long the window was",
    ),
    context("work", Unit::Count, |sample| Some(sample.counter(TURNS)? as f64))
        .meaning("work done in the window, in iterations of a loop of one multiplication and one addition")
        .with(Better::More),
    context("cpu_per_work", Unit::Seconds, |sample| {
        let turns = sample.counter(TURNS).filter(|turns| *turns > 0)? as f64;
        Some((nanos(sample, USER)? + nanos(sample, SYSTEM)?) / turns * 1e6)
    })
    .meaning(
        "CPU time per million of these iterations by the process's own account: it shows whether throttling \
         itself costs CPU time",
    ),
    context("user", Unit::Seconds, |sample| nanos(sample, USER))
        .meaning("CPU time of the process in user mode between the ends of the window (getrusage)"),
    context("system", Unit::Seconds, |sample| nanos(sample, SYSTEM)).meaning("the same in kernel mode"),
    context("usage_off", Unit::Share, |sample| {
        let measured = Measured::of(sample)?;
        distance(measured.usage_share().or(Some(measured.own_share())), Some(measured.ideal_share()))
    })
    .meaning(
        "how far usage is from what the model says, as a share of that; by the process's own account \
         if the cgroup has none",
    ),
    context("throttled_share_off", Unit::Share, |sample| {
        let measured = Measured::of(sample)?;
        Some((measured.throttled_share()? - measured.ideal_throttled_share()?).abs())
    })
    .meaning(
        "how far the share of throttled periods is from what the model says, as a difference; none \
         if demand and quota are within 1 % of each other",
    ),
    context("burst_p90_off", Unit::Share, |sample| {
        let measured = Measured::of(sample)?;
        distance(measured.tail(), measured.ideal_latency(0.9))
    })
    .meaning(
        "how far the 90th percentile of bursts is from what the model says, as a share of that; none \
         if demand and quota are within 1 % of each other, or for fewer than 100 bursts",
    ),
];

/// The load with a latency.
pub const BURSTS: &str = "bursts";
/// The one that only shows that it uses its quota.
const CONTINUOUS: &str = "continuous";
/// The published load: it stops by the clock, so it does less when throttled, and is never late.
const ALTERNATING: &str = "alternating";

static KEYS: [SettingKey; 1] = [SettingKey::of("load", &[BURSTS]).or(a_load).meaning(
    "`bursts`: a fixed amount of CPU time, once per period; `continuous`: as much CPU time as it can get; \
     `alternating`: as much as it can get until a fixed time has passed on the clock, then nothing for \
     the rest of the period",
)];

static GUARDED: [SettingKey; 4] = [
    // Between two quotas that people choose, and as far from the one as from the other.
    SettingKey::of("busy", &["45ms"])
        .or(a_duration)
        .formerly("50ms")
        .meaning("CPU time of a burst; for an alternating load, time on the clock"),
    SettingKey::of("period", &["100ms"])
        .or(a_duration)
        .meaning("time from one intended start of a burst to the next"),
    SettingKey::of("threads", &["1"])
        .or(|value| {
            let is_one = value.parse().is_ok_and(|number| (1..=64).contains(&number));
            fits(is_one, "a whole number from 1 to 64")
        })
        .meaning("number of threads, each of which carries the whole load"),
    // In a shorter one, bursts that pile up are later by other amounts than the model says of an endless one.
    SettingKey::of("seconds", &["1.5"])
        .or(|value| {
            let is_whole = |seconds: f64| Nanos::from_seconds(seconds).0 % USUAL_PERIOD == 0;
            let is_one = |seconds: f64| (0.5..=300.0).contains(&seconds) && is_whole(seconds);
            fits(value.parse().is_ok_and(is_one), "seconds from 0.5 to 300, in whole tenths")
        })
        .formerly("10")
        .meaning("length of a window"),
];

fn a_load(value: &str) -> Result<(), String> {
    fits([CONTINUOUS, ALTERNATING].contains(&value), &format!("{BURSTS}, {CONTINUOUS}, {ALTERNATING}"))
}

fn a_duration(value: &str) -> Result<(), String> {
    let nanos = parse_duration(value).map(|seconds| Nanos::from_seconds(seconds).0);
    let is_one = nanos.is_some_and(|nanos| (100_000..=60_000_000_000).contains(&nanos));
    fits(is_one, "a duration from 100us to 60s, such as 50ms")
}

/// The value of a key that can be left out.
pub fn value(setting: &Setting, name: &str) -> &'static str {
    let default = || GUARDED.iter().find(|key| key.name == name).map_or("", SettingKey::unwritten);
    setting.get(name).unwrap_or_else(default)
}

/// How long the load runs.
pub fn window(setting: &Setting) -> Nanos {
    Nanos::from_seconds(value(setting, "seconds").parse().unwrap_or(0.0))
}

/// Refuses more bursts than the probe can keep the latencies of.
fn too_many_bursts(setting: &Setting) -> Option<String> {
    if setting.get("load") == Some(CONTINUOUS) {
        return None;
    }
    let period = parse_duration(value(setting, "period")).map(Nanos::from_seconds)?.0.max(1) as u64;
    let (window, threads) = (window(setting).0 as u64, value(setting, "threads").parse::<u64>().ok()?);
    let (most, bursts) = (MOST_BURSTS as u64, window.div_ceil(period) * threads);
    (bursts > most).then(|| {
        let least = window.div_ceil(most / threads).div_ceil(1000);
        format!(
            "`seconds={}` in periods of {} on `threads={threads}` are {bursts} bursts, but the probe has room for {most}\n\n\
             hint: use `period={least}us` or longer, or fewer seconds or threads",
            value(setting, "seconds"),
            value(setting, "period"),
        )
    })
}

/// The usual period of a quota: a window is a whole number of them, and without a quota the probe counts in it.
const USUAL_PERIOD: i64 = 100_000_000;

/// The experiment `throttle`.
pub static THROTTLE: Experiment = Experiment {
    concern: Some(Concern {
        job: "answers within a time, under a CPU limit",
        remedy: "raise the limit, or do less in one burst (`dunnage advise cpu` watches a container and says how much it needs)",
    }),
    keys: &KEYS,
    guarded: &GUARDED,
    quick_values: |key| if key.name == "seconds" { &["0.5"] } else { &key.values[..1] },
    compares: Compared::OneKey,
    varies: &[Variation::of("cpus", &["0.4", "0.5"])],
    scope: Scope::Engines,
    refuses: too_many_bursts,
    cost: |setting, launch| launch + window(setting) + AROUND,
    keeps_samples: true,
    replicates: &[
        Replicates {
            series: LATENCY,
            what: "latency of each burst",
            unit: Unit::Seconds,
            divisor: 1e9,
            along: "intended start",
            // With several threads, the bursts of each are not distinguished.
            every: |sample| {
                nanos(sample, EVERY).filter(|every| *every > 0.0 && sample.counter(THREADS) == Some(1))
            },
            shown: Shown::Waits,
        },
        Replicates {
            series: PERIOD_CPU,
            what: "CPU time in each period",
            unit: Unit::Seconds,
            divisor: 1e9,
            along: "time",
            every: |sample| Some(Nanos(sample.counter(QUOTA_PERIOD).unwrap_or(USUAL_PERIOD)).seconds()),
            shown: Shown::Parts,
        },
    ],
    maps: &["usage", "throttled_share", BURST],
    ..Experiment::of(NAME, "what does a CPU limit do to latency and throughput?", Need::Work, &METRICS)
};

#[cfg(test)]
mod settings {
    use super::*;
    use crate::experiment::{parse_setting, settings_of};

    /// Runs of older versions have settings without what is written down now.
    #[test]
    fn what_is_usual_is_written_down_and_what_is_not_is_as_published() {
        let chosen = |key: &SettingKey| match key.name {
            "load" => vec!["bursts", "continuous"],
            "busy" | "seconds" => key.values.to_vec(),
            _ => Vec::new(),
        };
        let all = settings_of(&THROTTLE, chosen);
        let texts: Vec<_> = all.iter().map(|setting| setting.to_string()).collect();
        assert_eq!(texts, ["load=bursts;busy=45ms;seconds=1.5", "load=continuous;busy=45ms;seconds=1.5"]);
        let cost = |setting: &Setting| (THROTTLE.cost)(setting, Nanos(5));
        assert_eq!(cost(&all[0]), Nanos(1_800_000_005));
        for text in texts.iter().map(String::as_str).chain(["load=bursts", "load=continuous"]) {
            assert_eq!(parse_setting(&THROTTLE, text).unwrap().to_string(), text);
        }
        let old = parse_setting(&THROTTLE, "load=bursts").unwrap();
        assert_eq!((value(&old, "busy"), cost(&old)), ("50ms", Nanos(10_300_000_005)));
    }

    #[test]
    fn a_window_is_a_whole_number_of_the_usual_periods() {
        for seconds in ["0.5", "1.5", "2.3", "300"] {
            let key = GUARDED.iter().find(|one| one.name == "seconds").unwrap();
            assert_eq!(key.take(seconds), Ok(seconds));
            let window = window(&Setting(vec![("load", BURSTS), ("seconds", seconds)]));
            assert!(window.0 > 0 && window.0 % USUAL_PERIOD == 0, "{seconds}: {window}");
        }
    }

    #[test]
    fn a_person_chooses_freely_within_reason() {
        let text = "load=alternating;busy=20ms;threads=3;seconds=2";
        let setting = parse_setting(&THROTTLE, text).unwrap();
        assert_eq!(setting.to_string(), text);
        for (key, wrong) in [
            ("load", "idle"),
            ("busy", "50"),
            ("busy", "0ms"),
            ("period", "61s"),
            ("threads", "0"),
            ("seconds", "0.4"),
            ("seconds", "1.55"),
            ("seconds", "301"),
        ] {
            let key = KEYS.iter().chain(&GUARDED).find(|one| one.name == key).unwrap();
            assert!(key.take(wrong).is_err(), "{}={wrong}", key.name);
        }
    }

    #[test]
    fn more_bursts_than_there_is_room_for_are_refused_with_what_to_change() {
        let refused = |text: &str| (THROTTLE.refuses)(&parse_setting(&THROTTLE, text).unwrap());
        let why = refused("load=bursts;period=5ms;threads=7").unwrap();
        assert!(why.contains("14000 bursts") && why.contains("period=8548us"), "{why}");
        for taken in
            ["load=bursts;period=8548us;threads=7", "load=continuous;period=100us", "load=alternating"]
        {
            assert_eq!(refused(taken), None, "{taken}");
        }
        for refused_too in ["load=bursts;period=8546us;threads=7", "load=alternating;period=1ms"] {
            assert!(refused(refused_too).is_some(), "{refused_too}");
        }
    }

    #[test]
    fn without_a_quota_nothing_is_said_of_throttling() {
        let counters = [
            (names::LOAD, 1),
            (names::BUSY, 50_000_000),
            (EVERY, 100_000_000),
            (names::LENGTH, 2_000_000_000),
            (THREADS, 1),
            (names::CPUS, 2),
            (names::WINDOW, 2_000_000_000),
            (USER, 990_000_000),
            (SYSTEM, 10_000_000),
            (TURNS, 1_000_000),
            (BURSTS_WAITING, 0),
        ];
        let sample = Sample::default().with(counters).with([(LATENCY, vec![50_000_000; 20])]);
        let values: Vec<_> = METRICS.iter().map(|metric| (metric.name, metric.value(&sample))).collect();
        let of = |name: &str| values.iter().find(|(own, _)| *own == name).unwrap().1;
        assert_eq!((of("usage"), of("window"), of("usage_off")), (None, Some(2.0), Some(0.0)));
        for name in ["throttled_share", "throttled_per_period", "throttled_time", "throttled_share_off"] {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(
            (of("burst_p50"), of("burst_max"), of("cpu_per_work")),
            (Some(0.05), Some(0.05), Some(1.0))
        );
        // Of twenty bursts, the 99th percentile would be the longest.
        assert_eq!((of("burst_p90"), of("burst_p90_off")), (None, None));
    }
}
