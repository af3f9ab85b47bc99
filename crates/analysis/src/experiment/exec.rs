//! What does it cost to enter a running container? An engine's or runtime's `exec`; on the floor plain
//! `setns`, fork and exec; on the host, where there is nothing to enter, fork and exec of the same
//! program, which all others are compared with.
//!
//! Every sample has a container of its own, started just before and removed after it, outside of the
//! timed interval.

use super::question::{Concern, Experiment, Metric, QUIET, nanos, probe_work};
use super::setting::SettingKey;
use crate::subject::Need;

static METRICS: [Metric; 6] = [
    Metric::span("returned", "spawn", "returned").meaning(
        "from right before the system call that starts the command until its end was reported; the \
         probe inside has started, read its treatment back and ended by then",
    ),
    Metric::span("first_instruction", "spawn", "first").meaning(
        "from right before the system call that starts the command until the ELF entry of the probe \
         inside, which does without libc",
    ),
    Metric::named("client_cpu", nanos, "client_cpu").context().meaning(
        "CPU time of the command and of every process that descends from it, the probe included unless a daemon or shim \
         starts it, counted by the scheduler in nanoseconds until nothing of it has run for 100 ms; of a `primed` \
         entry half of what both entries took; where dunnage itself is the client (`floor`, engines over their API), its own \
         thread's until the end of the entry is added",
    ),
    Metric::named("engine_cpu", nanos, "engine_cpu").context().meaning(
        "CPU time of the engine's daemons, of the container's shim or monitor and its first process, and of every process \
         that they started, over the same interval",
    ),
    Metric::span("return", "ready", "returned")
        .context()
        .meaning("from the moment the probe has its message ready until the command's end was reported"),
    Metric::by("probe_work", probe_work).context().meaning(
        "from the ELF entry until the probe's message is ready: reading the treatment back, inside \
         `returned`",
    ),
];

/// The experiment `exec`.
pub static EXEC: Experiment = Experiment {
    concern: Some(Concern { job: "many short commands", remedy: "do more in each entry" }),
    keys: &[SettingKey::of("prestate", &["idle", "primed"]).meaning(
        "what ran just before: `idle` is at least 100 ms of quiet, `primed` one untimed entry into the \
          same container",
    )],
    cost: |setting, launch| match setting.get("prestate") {
        Some("primed") => launch + launch + launch + QUIET,
        _ => launch + launch + launch + QUIET + QUIET,
    },
    ..Experiment::of("exec", "what does it cost to enter a running container?", Need::Exec, &METRICS)
};
