//! How long from the command to the first instruction inside, to the client's return, until all
//! is gone? And how much CPU time does that take, in the client and in daemons?

pub mod suspects;

use super::question::{Concern, Experiment, Metric, QUIET, Variation, nanos, probe_work};
use super::setting::{Setting, SettingKey};
use crate::subject::Need;
use crate::units::Nanos;

static METRICS: [Metric; 13] = [
    Metric::span("returned", "spawn", "returned").meaning(
        "from right before the system call that starts the command until the kernel reports its end to \
         us, or, over an API, from right before dunnage connects until the last answer is read; holds \
         the start, the probe's own work (`probe_work`) and whatever teardown the command waits for",
    ),
    Metric::span("first_instruction", "spawn", "first").meaning(
        "from right before the system call that starts the command until the ELF entry of the probe \
         inside, which does without libc",
    ),
    Metric::span("gone", "spawn", "gone").meaning(
        "from right before the system call that starts the command until the last process, mount and \
         cgroup of this container is away",
    ),
    Metric::named("client_cpu", nanos, "client_cpu").context().meaning(
        "CPU time of the command and of every process that descends from it, the container's included \
         unless a daemon starts it, counted by the scheduler in nanoseconds until all is gone; where \
         dunnage itself is the client (`floor`, engines over their API), that of its own thread until \
         the command's end",
    ),
    Metric::named("engine_cpu", nanos, "engine_cpu").context().meaning(
        "CPU time of the engine's daemons and of every process that they started, over the same \
         interval; zero for a subject that has no daemon",
    ),
    Metric::span("teardown", "ready", "gone")
        .context()
        .meaning("from the moment the probe has its message ready until all is gone"),
    Metric::span("libc_start", "first", "main").context().meaning(
        "only with `libc=yes`: from the ELF entry to `main` inside the probe, which is libc's own start \
         and the page faults on its way; elsewhere libc never starts",
    ),
    Metric::by("probe_work", probe_work).context().meaning(
        "from the ELF entry, or from `main` where libc starts, until the probe's message is ready: reading \
         the treatment back, inside `returned` and `gone`; for `bare` with an image, to enter its root too",
    ),
    Metric::span("create_request", "spawn", "created").context().meaning(
        "only where dunnage itself asks the engine over its API: the request that makes the container, \
         from right before it connects until the answer is read",
    ),
    Metric::span("attach_request", "created", "attached").context().meaning(
        "over an API only: from the end of `create_request` until a second connection has become the \
         stream of the container's output",
    ),
    Metric::span("start_request", "attached", "started").context().meaning(
        "over an API only: from the end of `attach_request` until the request that starts the container \
         is answered; the first instruction inside may come before that",
    ),
    Metric::span("wait_request", "started", "waited").context().meaning(
        "over an API only: from the end of `start_request` until the engine answers that the container \
         does not run any more",
    ),
    Metric::span("remove_request", "waited", "removed").context().meaning(
        "over an API only: from the end of `wait_request` until the request that removes the container \
         is answered; none with `rm=false`, where it is removed untimed",
    ),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("prestate", &["idle", "primed"]).meaning(
    "what ran just before: `idle` is at least 100 ms of quiet, `primed` one untimed launch of the same \
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
    // Runtimes enter their cgroups so, and what they do with the kernel is told by the floor that does it, too.
    varies: &[Variation::of("cgroup", &["procs"]).for_layers_above()],
    // A launch that primes would read again what was dropped before it, and after it nothing is primed.
    has: |setting| !(is_cold(setting) && setting.get("prestate") == Some("primed")),
    cost: |setting, launch| match setting.get("prestate") {
        Some("primed") => launch + launch,
        _ if is_cold(setting) => EMPTYING + QUIET + launch,
        _ => QUIET + launch,
    },
    ..Experiment::of(
        "start",
        "how long from the command to the first instruction inside, to the client's return, until all is gone?",
        Need::Launch,
        &METRICS,
    )
};

const LIBC: SettingKey = SettingKey::of("libc", &["no", "yes"]).meaning(
    "whether the probe starts libc before it reads its treatment back, as any other program would: `no` \
          holds without it, and then it is no part of the setting",
);

pub(super) const CACHE: SettingKey = SettingKey::of("cache", &["warm", "cold"]).meaning(
    "the page cache: `warm` as it is, `cold` emptied before the launch, never with `prestate=primed`; \
          only with `--drop-caches`, and no part of the setting without it",
);

/// About how much longer a launch takes whose pages come from the disk, with the emptying: for the
/// prediction only.
pub(super) const EMPTYING: Nanos = Nanos::from_millis(1000);

/// Whether the page cache is to be empty.
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
