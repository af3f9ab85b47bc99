//! How long from the command to the first instruction inside, to the client's return, until all
//! is gone? And how much CPU does that take, whoever's it is?

pub mod suspects;

use super::question::{About, Metric, Question, Weight};
use super::setting::{Setting, SettingKey, Taken};
use crate::subject::Need;
use crate::units::Nanos;

/// How long the kernel is left alone before an idle launch.
pub const QUIET: Nanos = Nanos::from_millis(100);

/// The experiment `start`.
pub struct Start;

static METRICS: [Metric; 13] = [
    Metric::of_launch(
        "returned",
        Weight::Verdict,
        "from right before the system call that starts the command until the kernel reports its end to us, or, \
         over an API, from right before dunnage connects until the last answer is read; holds the start, the probe's own work (`probe_work`) and whatever teardown the command waits for",
        |sample| sample.seconds("spawn", "returned"),
    ),
    Metric::of_launch(
        "first_instruction",
        Weight::Verdict,
        "from right before the system call that starts the command until the ELF entry of the probe inside, before \
         libc's own start",
        |sample| sample.seconds("spawn", "first"),
    ),
    Metric::of_launch(
        "gone",
        Weight::Verdict,
        "from right before the system call that starts the command until the last process, mount and cgroup of this \
         container is away",
        |sample| sample.seconds("spawn", "gone"),
    ),
    Metric::of_launch(
        "client_cpu",
        Weight::Context,
        "CPU time of the command and of every process that descends from it, the container's included unless a \
         daemon starts it, counted by the scheduler in nanoseconds until all is gone; where dunnage itself is the client \
         (`floor`, engines over their API), that of its own thread until the command's end",
        |sample| Some(Nanos(sample.counter("client_cpu")?).seconds()),
    ),
    Metric::of_launch(
        "engine_cpu",
        Weight::Context,
        "CPU time of the engine's daemons and of every process that they started, over the same interval; zero for a \
         subject that has no daemon",
        |sample| Some(Nanos(sample.counter("engine_cpu")?).seconds()),
    ),
    Metric::of_launch(
        "teardown",
        Weight::Context,
        "from the moment the probe has its message ready until all is gone",
        |sample| sample.seconds("ready", "gone"),
    ),
    Metric::of_launch(
        "libc_start",
        Weight::Context,
        "from the ELF entry to `main` inside the probe: libc's own start and the page faults on its way",
        |sample| sample.seconds("first", "main"),
    ),
    Metric::of_launch(
        "probe_work",
        Weight::Context,
        "from `main` until the probe's message is ready: reading the treatment back, inside `returned` and `gone`",
        |sample| sample.seconds("main", "ready"),
    ),
    Metric::of_launch(
        "create_request",
        Weight::Context,
        "only where dunnage itself asks the engine over its API: the request that makes the container, from right \
         before it connects until the answer is read",
        |sample| sample.seconds("spawn", "created"),
    ),
    Metric::of_launch(
        "attach_request",
        Weight::Context,
        "over an API only: from the end of `create_request` until a second connection has become the stream of the \
         container's output",
        |sample| sample.seconds("created", "attached"),
    ),
    Metric::of_launch(
        "start_request",
        Weight::Context,
        "over an API only: from the end of `attach_request` until the request that starts the container is answered; \
         the first instruction inside may come before that",
        |sample| sample.seconds("attached", "started"),
    ),
    Metric::of_launch(
        "wait_request",
        Weight::Context,
        "over an API only: from the end of `start_request` until the engine answers that the container does not run \
         any more",
        |sample| sample.seconds("started", "waited"),
    ),
    Metric::of_launch(
        "remove_request",
        Weight::Context,
        "over an API only: from the end of `wait_request` until the request that removes the container is answered; \
         none with `rm=false`, where it is removed untimed",
        |sample| sample.seconds("waited", "removed"),
    ),
];

static KEYS: [SettingKey; 1] = [SettingKey {
    name: "prestate",
    values: &["idle", "primed"],
    taken: Taken::Listed,
    meaning: "what ran just before: `idle` is at least 100 ms of quiet, `primed` one untimed launch of the same subject",
}];

static GUARDED: [SettingKey; 1] = [SettingKey {
    name: "cache",
    values: &["warm", "cold"],
    taken: Taken::Listed,
    meaning: "the page cache: `warm` as it is, `cold` emptied before the launch, never with `prestate=primed`; only with \
              `--drop-caches`, and no part of the setting without it",
}];

static ABOUT: About = About {
    keys: &KEYS,
    guarded: &GUARDED,
    ..About::of(
        "start",
        "how long from the command to the first instruction inside, to the client's return, until all is gone?",
        Need::Launch,
        &METRICS,
    )
};

impl Question for Start {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// A launch that primes would read again what was dropped before it, and after it nothing is primed.
    fn has(&self, setting: &Setting) -> bool {
        !(is_cold(setting) && setting.get("prestate") == Some("primed"))
    }

    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos {
        match setting.get("prestate") {
            Some("primed") => launch + launch,
            _ if is_cold(setting) => EMPTYING + QUIET + launch,
            _ => QUIET + launch,
        }
    }
}

/// About how much longer a launch takes whose pages come from the disk, with the emptying: for the
/// prediction only.
const EMPTYING: Nanos = Nanos::from_millis(1000);

/// Whether the page cache is to be empty.
pub fn is_cold(setting: &Setting) -> bool {
    setting.get("cache") == Some("cold")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings;

    #[test]
    fn the_settings_are_the_two_prestates() {
        let all = settings(&KEYS, |key| key.values.to_vec());
        let shown: Vec<_> = all.iter().map(Setting::to_string).collect();
        assert_eq!(shown, ["prestate=idle", "prestate=primed"]);
    }

    #[test]
    fn the_cache_is_named_only_where_it_was_chosen_and_never_cold_after_priming() {
        let shown = |chosen: &[(String, Vec<String>)]| -> Vec<String> {
            crate::plan::settings(&Start, chosen).iter().map(Setting::to_string).collect()
        };
        assert_eq!(shown(&[]), ["prestate=idle", "prestate=primed"]);
        let both = [("cache".to_owned(), vec!["warm".to_owned(), "cold".to_owned()])];
        let with_cache =
            ["prestate=idle;cache=warm", "prestate=idle;cache=cold", "prestate=primed;cache=warm"];
        assert_eq!(shown(&both), with_cache);
        for text in with_cache.iter().chain(&["prestate=idle", "prestate=primed"]) {
            assert_eq!(crate::experiment::parse_setting(&Start, text).unwrap().to_string(), *text);
        }
    }

    #[test]
    fn metrics_have_distinct_names_and_the_decisive_ones_come_first() {
        let mut names: Vec<_> = METRICS.iter().map(|metric| metric.name).collect();
        let decisive = METRICS.iter().take_while(|metric| metric.weight == Weight::Verdict).count();
        assert!(METRICS[decisive..].iter().all(|metric| metric.weight == Weight::Context));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }
}
