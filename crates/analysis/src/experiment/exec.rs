//! What does it cost to enter a running container? Engines and runtimes do it with `exec`; the floor with
//! plain `setns`, fork and exec; on the host there is nothing to enter, so fork and exec of the same program
//! are the baseline.
//!
//! Each sample has its own container, started just before and removed after it, outside the timed interval.

use super::question::{Concern, Experiment, Metric, QUIET, Scope, probe_work};
use super::setting::SettingKey;
use crate::launch::names::{CLIENT_CPU, ENGINE_CPU, FIRST, READY, RETURNED, SPAWN};
use crate::subject::Need;

static METRICS: [Metric; 6] = [
    Metric::span("returned", SPAWN, RETURNED).meaning(
        "from right before the system call that starts the command until its end is reported; the probe \
         inside starts, reads its treatment back and ends within it",
    ),
    Metric::span("first_instruction", SPAWN, FIRST).meaning(
        "from right before the system call that starts the command to the ELF entry of the probe inside, \
         before any part of libc runs",
    ),
    Metric::nanos("client_cpu", CLIENT_CPU).context().meaning(
        "CPU time of the command and all its descendants, including the probe unless a daemon or shim starts it; \
         nanoseconds from the scheduler, until none of them has run for 100 ms; for a `primed` entry, half of what both \
         entries used; where dunnage itself is the client (`floor`, engines over their API), also dunnage's own thread \
         until the end of the entry",
    ),
    Metric::nanos("engine_cpu", ENGINE_CPU).context().meaning(
        "CPU time of the engine's daemons, of the container's shim or monitor, of its first process, and of every \
         process that these started, over the same interval",
    ),
    Metric::span("return", READY, RETURNED)
        .context()
        .meaning("from the moment when the probe's message is ready until the command's end is reported"),
    Metric::by("probe_work", probe_work).context().meaning(
        "from the ELF entry until the probe's message is ready: reading the treatment back; part of \
         `returned`",
    ),
];

/// The experiment `exec`.
pub static EXEC: Experiment = Experiment {
    concern: Some(Concern { job: "many short commands", remedy: "do more in each entry" }),
    keys: &[SettingKey::of("prestate", &["idle", "primed"]).meaning(
        "what ran just before: `idle` is at least 100 ms of quiet, `primed` is one untimed entry into the \
         same container",
    )],
    cost: |setting, launch| match setting.get("prestate") {
        Some("primed") => launch + launch + launch + QUIET,
        _ => launch + launch + launch + QUIET + QUIET,
    },
    // What starting is equalised in is there before anything enters.
    scope: Scope::AsInstalled,
    ..Experiment::of("exec", "what does it cost to enter a running container?", Need::Exec, &METRICS)
};
