//! How long does a start take: to the first instruction inside, to the client's return, until nothing is
//! left? And how much CPU time do the client and the daemons use?

pub mod ports;
pub mod suspects;

use super::question::{Concern, Experiment, Metric, QUIET, probe_work};
use super::setting::{Setting, SettingKey};
use super::variation::{Variation, Varied};
use crate::launch::names::{
    ATTACHED, CLIENT_CPU, CREATED, ENGINE_CPU, FIRST, GONE, MAIN, PORT_HELPERS, READY, REMOVED, RETURNED,
    SPAWN, STARTED, WAITED,
};
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Nanos, Unit};

static METRICS: [Metric; 14] = [
    Metric::span("returned", SPAWN, RETURNED).meaning(
        "from right before the system call that starts the command until the kernel reports its end, or, over \
         an API, from right before dunnage connects until it has read the last answer; includes the start, \
         the probe's own work (`probe_work`) and any teardown that the command waits for",
    ),
    Metric::span("first_instruction", SPAWN, FIRST).meaning(
        "from right before the system call that starts the command to the ELF entry of the probe inside, \
         before any part of libc runs",
    ),
    Metric::span("gone", SPAWN, GONE).meaning(
        "from right before the system call that starts the command until the last process, mount and \
         cgroup of this container is gone; equal to `returned` if nothing is left when the command has returned",
    ),
    Metric::nanos("client_cpu", CLIENT_CPU).context().meaning(
        "CPU time of the command and all its descendants, including the container's processes unless a daemon \
         starts them; nanoseconds from the scheduler, until nothing is left; where dunnage itself is the client \
         (`floor`, engines over their API), that of dunnage's own thread until the command's end",
    ),
    Metric::nanos("engine_cpu", ENGINE_CPU).context().meaning(
        "CPU time of the engine's daemons and of every process that they started, over the same \
         interval; zero for a subject without a daemon",
    ),
    Metric::span("teardown", READY, GONE)
        .context()
        .meaning("from the moment when the probe's message is ready until nothing of the container is left"),
    Metric::span("libc_start", FIRST, MAIN).context().meaning(
        "only with `libc=yes`: from the ELF entry to `main` inside the probe, which is libc's own start \
         with its page faults; libc never starts otherwise",
    ),
    Metric::by("probe_work", probe_work).context().meaning(
        "from the ELF entry, or from `main` if libc starts, until the probe's message is ready: reading the \
         treatment back; part of `returned` and `gone`; for `bare` with an image, also entering the image's root",
    ),
    Metric::counted("port_helpers", PORT_HELPERS, 1.0)
        .of(Unit::Count, Margin::fixed(0.0, 0.0))
        .context()
        .meaning(
            "processes that the engine starts only to forward published ports, such as proxies; only \
             where there are any",
        ),
    Metric::span("create_request", SPAWN, CREATED).context().meaning(
        "only over an engine's API: the request that creates the container, from right before dunnage \
         connects until it has read the answer",
    ),
    Metric::span("attach_request", CREATED, ATTACHED).context().meaning(
        "only over an API: from the end of `create_request` until a second connection has become the \
         stream of the container's output",
    ),
    Metric::span("start_request", ATTACHED, STARTED).context().meaning(
        "only over an API: from the end of `attach_request` until the request that starts the container \
         is answered; the first instruction inside may come earlier",
    ),
    Metric::span("wait_request", STARTED, WAITED).context().meaning(
        "only over an API: from the end of `start_request` until the engine answers that the container \
         no longer runs",
    ),
    Metric::span("remove_request", WAITED, REMOVED).context().meaning(
        "only over an API: from the end of `wait_request` until the request that removes the container \
         is answered; missing with `rm=false`, where the removal is not timed",
    ),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("prestate", &["idle", "primed"]).meaning(
    "what ran just before: `idle` is at least 100 ms of quiet, `primed` is one untimed launch of the same \
     subject",
)];

/// The experiment `start`.
pub static START: Experiment = Experiment {
    concern: Some(Concern {
        job: "many short commands",
        remedy: "do more in each launch, or enter one running container (`dunnage run exec`)",
    }),
    keys: &KEYS,
    guarded: &[CACHE, LIBC],
    // Runtimes enter their cgroups this way; the kernel's share of their time comes from the floor that does
    // it too.
    varies: &[Variation::of("cgroup", &["procs"]).only(Varied::BelowOthers)],
    // The priming launch would read again what was dropped before it; dropping after it would leave nothing
    // primed.
    has: |setting| !(is_cold(setting) && setting.get("prestate") == Some("primed")),
    cost: |setting, launch| match setting.get("prestate") {
        Some("primed") => launch + launch,
        _ if is_cold(setting) => EMPTYING + QUIET + launch,
        _ => QUIET + launch,
    },
    ..Experiment::of("start", "how long does a command take in a new container?", Need::Launch, &METRICS)
};

const LIBC: SettingKey = SettingKey::of("libc", &["no", "yes"]).meaning(
    "whether the probe starts libc before it reads its treatment back, as any other program would; `no` \
     unless chosen",
);

pub(super) const CACHE: SettingKey = SettingKey::of("cache", &["warm", "cold"]).meaning(
    "the page cache: `warm` as it is, `cold` emptied before the launch, never with `prestate=primed`; \
     only with `--drop-caches`",
);

/// Roughly how much longer a launch takes when its pages come from the disk, including emptying the cache:
/// for the prediction only.
pub(super) const EMPTYING: Nanos = Nanos::from_millis(1000);

/// Whether the page cache is emptied.
pub fn is_cold(setting: &Setting) -> bool {
    setting.get("cache") == Some("cold")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Weight, settings};

    #[test]
    fn the_settings_are_the_two_prestates() {
        let all = settings(&KEYS, |key| key.values.to_vec());
        let shown: Vec<_> = all.iter().map(Setting::to_string).collect();
        assert_eq!(shown, ["prestate=idle", "prestate=primed"]);
    }

    #[test]
    fn the_cache_is_named_only_where_it_was_chosen_and_never_cold_after_priming() {
        let shown = |chosen: &[(String, Vec<String>)]| -> Vec<String> {
            crate::plan::settings(&START, chosen).iter().map(Setting::to_string).collect()
        };
        assert_eq!(shown(&[]), ["prestate=idle", "prestate=primed"]);
        let both = [("cache".to_owned(), vec!["warm".to_owned(), "cold".to_owned()])];
        let with_cache =
            ["prestate=idle;cache=warm", "prestate=idle;cache=cold", "prestate=primed;cache=warm"];
        assert_eq!(shown(&both), with_cache);
        for text in with_cache.iter().chain(&["prestate=idle", "prestate=primed"]) {
            assert_eq!(crate::experiment::parse_setting(&START, text).unwrap().to_string(), *text);
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
