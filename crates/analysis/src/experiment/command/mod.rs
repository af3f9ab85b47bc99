//! How long does your command take in each subject? Any command in any image: started in its own container,
//! or in one that is already running.
//!
//! A sample is three launches of the subject, one right after the other: an untimed one that finds the
//! program and hashes it, so that differing files are noticed; one that starts nothing, which is the cost of
//! the start; and one that runs the command. So the extra time of a subject splits into its start, measured
//! in the same rounds, and a rest.

pub mod line;
pub mod ready;
pub mod tables;

use super::question::{Event, Experiment, Metric, QUIET, nanos};
use super::setting::{Setting, SettingKey, fits};
use super::start::{CACHE, EMPTYING, is_cold};
use crate::launch::names::{RETURNED, SPAWN};
use crate::names::names;
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::{Mount, Need};
use crate::units::{Nanos, Unit};
use crate::variables;
use names::{CHARGED_MEMORY, MOST_MEMORY, OUTPUT_BYTES, OWN_MEMORY, START, SYSTEM, TOOK, USER};
use ready::Ready;

names! {
    Counter {
        TOOK = "command", USER = "user", SYSTEM = "system", MOST_MEMORY = "most_memory", OWN_MEMORY = "own_memory",
        CHARGED_MEMORY = "charged_memory", START = "start", OUTPUT_BYTES = "output", STATUS = "status",
        LEFT_RUNNING = "left_running", PROGRAM_CACHED = "program_cached", PROGRAM_BYTES = "program_bytes",
    }
    StampName { FORKED = "forked", SERVING = "serving", }
    Fact { PROGRAM = "program", PROGRAM_SHA256 = "program_sha256", }
}

/// Its name.
pub const NAME: &str = "command";
/// The assumed time of a command before a trial.
pub(super) const UNKNOWN: Nanos = Nanos::from_millis(1000);

/// Why the charges to a subject's cgroup are unknown: by design on `bare`, so not worth a warning.
pub const SHARED_CGROUP: &str = "the subject shares its cgroup with other processes, as `bare` does";

/// Where a command's output goes, the default first.
pub const OUTPUTS: [&str; 2] = ["through", "discard"];

static METRICS: [Metric; 10] = [
    Metric::span("returned", SPAWN, RETURNED).meaning(
        "the whole launch as seen from outside, from right before the system call that starts it until its \
         end is reported: start, command, and any teardown that is waited for; includes the probe's own \
         work (some tenths of a millisecond), as `start` does",
    ),
    Metric::nanos("command", TOOK).meaning(
        "inside, from right before the probe forks until the command is reaped: includes the command's own \
         start as a process, not the container's start",
    ),
    Metric::nanos("user", USER).context().meaning(
        "CPU time in user mode of the command and of the children that it waited for, from `wait4`; the \
         kernel splits an exact sum by its ticks, so `cpu` is exact and this is not",
    ),
    Metric::nanos("system", SYSTEM).context().meaning("the same in kernel mode"),
    Metric::by("cpu", |sample| Some(nanos(sample, USER)? + nanos(sample, SYSTEM)?)).context().meaning(
        "CPU time of the command and of the children that it waited for: `user` plus `system`, which the \
         scheduler counts in nanoseconds and the kernel truncates to microseconds",
    ),
    Metric::counted("peak_memory", CHARGED_MEMORY, 1.0)
        .of(Unit::Bytes, Margin::fixed(65536.0, 0.03))
        .context()
        .meaning(
            "the peak memory charged to the container's own cgroup until the command ended: all its processes together, \
             the kernel's memory for them, and the page cache of files that they were the first to read or write; includes \
             the probe and the runtime's part inside, and with `exec` what came before; none if the cgroup is not the \
             container's own, as on `bare`",
        ),
    Metric::by("largest_process", |sample| Some(largest_process(sample)? as f64))
        .of(Unit::Bytes, Margin::fixed(65536.0, 0.03))
        .context()
        .meaning(
            "the largest resident set of any one process of the command, from `wait4`, not their sum; none if it \
             does not exceed that of a child of the probe before it executes anything",
        ),
    Metric::nanos("start", START).context().meaning(
        "a launch of the same subject right before, in the same way, in which the probe starts \
         nothing",
    ),
    Metric::by("beyond_start", |sample| Some(sample.seconds(SPAWN, RETURNED)? - nanos(sample, START)?))
        .context()
        .meaning("`returned` less `start`: the part that is there only because of the command"),
    Metric::counted("output", OUTPUT_BYTES, 1.0)
        .of(Unit::Bytes, Margin::fixed(65536.0, 0.03))
        .context()
        .meaning("bytes of the command's standard output that reached dunnage"),
];

/// The largest resident set, in bytes, if it exceeds that of a new child of the probe.
pub fn largest_process(sample: &Sample) -> Option<i64> {
    let own = sample.counter(OWN_MEMORY)?;
    sample.counter(MOST_MEMORY).filter(|most| *most > own)
}

/// What a setting asks for.
#[derive(Debug)]
pub struct Wanted {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its working directory; empty for the image's own.
    pub directory: String,
    /// Mounts of the host inside.
    pub mounts: Vec<Mount>,
    /// Where its output goes: `through` or `discard`.
    pub output: &'static str,
    /// When it is ready, if it is a service.
    pub ready: Option<Ready>,
    /// Whether its files should come from the disk.
    pub cold: bool,
}

impl Wanted {
    /// Reads it, or says why it cannot be measured.
    pub fn of(setting: &Setting) -> Result<Wanted, String> {
        Wanted::of_key("cmd", setting)
    }

    /// The same with the command under this key.
    pub fn of_key(key: &str, setting: &Setting) -> Result<Wanted, String> {
        let words_of = |key| line::split(setting.get(key).unwrap_or_default());
        let swept = line::swept(setting.get("sweep").unwrap_or_default())?;
        let text = line::filled_in(setting.get(key).unwrap_or_default(), &swept);
        let words = match setting.get("shell") {
            Some(_) => vec!["/bin/sh".to_owned(), "-c".to_owned(), text],
            None => line::split(&text)?,
        };
        // Without a name nothing would be started, yet measured.
        if words.first().is_none_or(String::is_empty) {
            return Err("the command is empty".to_owned());
        }
        let mounts = words_of("mount")?.iter().map(|one| line::mount(one)).collect::<Result<_, _>>();
        Ok(Wanted {
            words,
            directory: setting.get("workdir").unwrap_or_default().to_owned(),
            mounts: mounts?,
            output: setting.get("output").unwrap_or(OUTPUTS[0]),
            ready: setting.get("ready").map(Ready::of).transpose()?,
            cold: is_cold(setting),
        })
    }
}

pub(in crate::experiment) const CMD: SettingKey = SettingKey::of("cmd", &[])
    .or(|text| match line::split(text) {
        Ok(words) if words.first().is_none_or(String::is_empty) => {
            Err("a non-empty command".to_owned())
        }
        split => split.map(drop).map_err(|why| format!("a command, but in this one {why}")),
    })
    .meaning(
        "the command, split into words as a shell does it (an unquoted word that begins with `#` starts a comment), and \
         executed without a shell",
    );
pub(super) const MODE: SettingKey = SettingKey::of("mode", &["run"])
    .or(|text| fits(text == "exec", "run, exec"))
    .meaning("`run` (default): in its own container; `exec`: inside one that is already running");
const OUTPUT: SettingKey = SettingKey::of("output", &OUTPUTS).meaning(
    "`through` (default): the output takes the same way as for a user (engine, log, client) and is discarded only \
     after that; `discard`: standard output is `/dev/null` inside",
);
/// Optional conditions of a command.
pub(in crate::experiment) const GIVEN: [SettingKey; 6] = [
    SettingKey::of("shell", &["yes"]).meaning("run the command with the image's `/bin/sh -c`"),
    SettingKey::of("workdir", &[])
        .or(|text| fits(text.starts_with('/'), "an absolute path"))
        .meaning("the working directory inside; the image's own by default"),
    SettingKey::of(variables::KEY, &[])
        .or(|text| variables::names(text).map(drop))
        .shown_as(|text| variables::names(text).unwrap_or_default())
        .meaning(
            "variables of the command, `NAME=VALUE` separated by blanks, or `NAME` for the value that dunnage's own environment \
             has; values are kept for `resume` only and shown nowhere, so the setting has just the names",
        ),
    SettingKey::of("mount", &[])
        .or(|text| line::split(text)?.iter().try_for_each(|one| line::mount(one).map(drop)))
        .meaning("host paths to mount inside, `HOST:INSIDE[:ro]` separated by blanks"),
    SettingKey::of("sweep", &[])
        .or(|text| line::swept(text).map(drop))
        .meaning("values for `{NAME}` in the command, `NAME=VALUE` separated by blanks"),
    CACHE,
];

/// The time of a sample with this many launches that run nothing.
pub(super) fn cost(setting: &Setting, launch: Nanos, launches: i64) -> Nanos {
    let around = Nanos(launch.0 * (launches + i64::from(setting.get("mode") == Some("exec"))));
    if is_cold(setting) { around + EMPTYING + QUIET } else { around }
}

/// Why a setting cannot be measured anywhere.
pub(super) fn refused(setting: &Setting) -> Option<String> {
    let why = Wanted::of(setting).err()?;
    Some(format!("{why}\n\nhint: `--sweep` puts values into the command before it is split into words"))
}

/// The experiment `command`.
pub static COMMAND: Experiment = Experiment {
    keys: &[CMD, MODE],
    guarded: &{
        let [shell, workdir, env, mount, sweep, cache] = GIVEN;
        [shell, workdir, env, mount, sweep, cache, OUTPUT]
    },
    empty_launch: Some("start"),
    differences: &["beyond_start"],
    // A command that is missing, or fails, will not be there or succeed in the next round.
    recovers: false,
    event: Event::Whole,
    parts: &["start", "beyond_start"],
    refuses: refused,
    cost: |setting, launch| cost(setting, launch, 3),
    unknown: Some(UNKNOWN),
    ..Experiment::of(NAME, "how long does your command take in each subject?", Need::Work, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::setting::interned;

    fn setting(pairs: &[(&'static str, &str)]) -> Setting {
        Setting(pairs.iter().map(|(key, value)| (*key, interned(value))).collect())
    }

    #[test]
    fn a_swept_value_that_leaves_no_command_or_half_a_word_is_refused() {
        let refused = |cmd: &str, sweep: &str| {
            (COMMAND.refuses)(&setting(&[("cmd", cmd), ("mode", "run"), ("sweep", sweep)]))
        };
        assert!(refused("{n}", "n=").unwrap().starts_with("the command is empty"));
        assert!(refused("echo {n}", r#""n='""#).unwrap().starts_with("a quote is not closed"));
        assert_eq!((refused("{n}", "n=true"), refused("echo {n}", "n=")), (None, None));
    }

    #[test]
    fn settings_with_values_of_a_persons_own_are_read_again() {
        let text = r#"cmd="sh -c \"exit 0; x\"";mode=exec;env=A;sweep=n=3"#;
        let parsed = crate::experiment::parse_setting(&COMMAND, text).unwrap();
        assert_eq!(parsed.get("cmd"), Some(r#"sh -c "exit 0; x""#));
        assert_eq!((parsed.get("sweep"), parsed.get("mount")), (Some("n=3"), None));
        assert_eq!(parsed.to_string(), text);
        for wrong in [
            "cmd='a;mode=run",
            "cmd=a;mode=walk",
            "cmd=;mode=run",
            "cmd=\"''\";mode=run",
            "cmd=a;mode=run;workdir=x",
        ] {
            assert_eq!(crate::experiment::parse_setting(&COMMAND, wrong), None, "{wrong}");
        }
    }
}
