//! How long does your command take in each subject? Any command in any image: started in a container of its
//! own, or in one that runs already.
//!
//! A sample is three launches of the subject, one right after the other: an untimed one that finds the
//! program and sums it up, so that differing files are seen; one that starts nothing, which is what the
//! start costs; and one that runs the command. So what a subject takes more than another splits into its
//! start, measured in the same rounds, and a rest.

pub mod line;
mod overhead;

use super::lifecycle::{until_it_waits, verbs};
use super::{About, Experiment, Metric, Occasion, Setting, SettingKey, Taken, Weight, worked};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::probe::message::Done;
use crate::stats::Margin;
use crate::subject::{Entered, Launch, Mount, Need, RunContext, Subject, Work};
use crate::units::{Nanos, Unit};
use crate::verdict::exhibit::{Evidence, Exhibit};

/// Its name.
pub const NAME: &str = "command";
/// What a command is taken to last before anybody knows, for the prediction only.
const UNKNOWN: Nanos = Nanos::from_millis(1000);

/// The experiment `command`.
pub struct Command;

const fn metric(
    name: &'static str,
    unit: Unit,
    weight: Weight,
    meaning: &'static str,
    derive: fn(&Sample) -> Option<f64>,
) -> Metric {
    let least = match unit {
        Unit::Bytes => 65536.0,
        _ => 20e-6,
    };
    Metric { name, unit, weight, margin: Margin::fixed(least, 0.03), meaning, derive }
}

fn nanos(sample: &Sample, counter: &str) -> Option<f64> {
    Some(Nanos(sample.counter(counter)?).seconds())
}

static METRICS: [Metric; 8] = [
    metric(
        "returned",
        Unit::Seconds,
        Weight::Verdict,
        "the launch as seen from outside, from right before the system call that starts it until its end was reported: \
         start, command, and whatever teardown is waited for; holds the probe's own work (some tenths of a millisecond), \
         which `start` holds too",
        |sample| sample.seconds("spawn", "returned"),
    ),
    metric(
        "command",
        Unit::Seconds,
        Weight::Verdict,
        "inside, from right before the probe forks until the command is reaped: its own start as a process among it, the \
         container's not",
        |sample| nanos(sample, "command"),
    ),
    metric(
        "user",
        Unit::Seconds,
        Weight::Context,
        "CPU time in user mode of the command and of the children that it waited for, from `wait4`; the kernel splits \
         an exact sum by its ticks, so `cpu` is exact where this is not",
        |sample| nanos(sample, "user"),
    ),
    metric("system", Unit::Seconds, Weight::Context, "the same in the kernel", |sample| {
        nanos(sample, "system")
    }),
    metric(
        "cpu",
        Unit::Seconds,
        Weight::Context,
        "CPU time of the command and of the children that it waited for: `user` and `system` together, which the \
         scheduler counts in nanoseconds and the kernel cuts to microseconds",
        |sample| Some(nanos(sample, "user")? + nanos(sample, "system")?),
    ),
    metric(
        "peak_memory",
        Unit::Bytes,
        Weight::Context,
        "the largest resident set of any one process of the command, from `wait4`; not their sum, and none where it is \
         not above what a child of the probe has before it executes anything",
        |sample| Some(sample.counter("peak_memory")? as f64),
    ),
    metric(
        "start",
        Unit::Seconds,
        Weight::Context,
        "a launch of the same subject right before, by the same means, in which the probe starts nothing",
        |sample| nanos(sample, "start"),
    ),
    metric(
        "beyond_start",
        Unit::Seconds,
        Weight::Context,
        "`returned` less `start`: what is there only because of the command",
        |sample| Some(sample.seconds("spawn", "returned")? - nanos(sample, "start")?),
    ),
];

static KEYS: [SettingKey; 2] = [
    SettingKey {
        name: "cmd",
        values: &[],
        taken: Taken::Also(|text| match line::split(text) {
            Ok(words) if words.first().is_none_or(String::is_empty) => {
                Err("a command that is not empty".to_owned())
            }
            split => split.map(drop).map_err(|why| format!("a command, and in this one {why}")),
        }),
        meaning: "the command, split into words as a shell would do it, and executed without one",
    },
    SettingKey {
        name: "mode",
        values: &["run"],
        taken: Taken::Also(|text| if text == "exec" { Ok(()) } else { Err("run, exec".to_owned()) }),
        meaning: "`run` (default): in a container of its own; `exec`: inside one that runs already",
    },
];

static GUARDED: [SettingKey; 5] = [
    SettingKey {
        name: "shell",
        values: &["yes"],
        taken: Taken::Listed,
        meaning: "whether `/bin/sh -c` of the image runs the command",
    },
    SettingKey {
        name: "workdir",
        values: &[],
        taken: Taken::Also(|text| match text.starts_with('/') {
            true => Ok(()),
            false => Err("an absolute path".to_owned()),
        }),
        meaning: "the directory inside in which the command starts; the image's own unless given",
    },
    SettingKey {
        name: "env",
        values: &[],
        taken: Taken::Also(|text| line::split(text)?.iter().try_for_each(|one| line::variable(one))),
        meaning: "variables of the command, `NAME=VALUE` separated by blanks",
    },
    SettingKey {
        name: "mount",
        values: &[],
        taken: Taken::Also(|text| line::split(text)?.iter().try_for_each(|one| line::mount(one).map(drop))),
        meaning: "places of the host bound inside, `HOST:INSIDE[:ro]` separated by blanks",
    },
    SettingKey {
        name: "sweep",
        values: &[],
        taken: Taken::Also(|text| line::swept(text).map(drop)),
        meaning: "what stands in the command for `{NAME}`, `NAME=VALUE` separated by blanks",
    },
];

/// What a setting asks for.
struct Wanted {
    words: Vec<String>,
    directory: String,
    variables: Vec<String>,
    mounts: Vec<Mount>,
}

impl Wanted {
    /// Why not, where it cannot be asked for.
    fn of(setting: &Setting) -> Result<Wanted, String> {
        let words_of = |key| line::split(setting.get(key).unwrap_or_default());
        let swept = line::swept(setting.get("sweep").unwrap_or_default())?;
        let text = line::filled_in(setting.get("cmd").unwrap_or_default(), &swept);
        let words = match setting.get("shell") {
            Some(_) => vec!["/bin/sh".to_owned(), "-c".to_owned(), text],
            None => line::split(&text)?,
        };
        // Without a name nothing would be started, and measured all the same.
        if words.first().is_none_or(String::is_empty) {
            return Err("no program is named".to_owned());
        }
        let mounts = words_of("mount")?.iter().map(|one| line::mount(one)).collect::<Result<_, _>>();
        Ok(Wanted {
            words,
            directory: setting.get("workdir").unwrap_or_default().to_owned(),
            variables: words_of("env")?,
            mounts: mounts?,
        })
    }

    /// The work of a probe that does this with the command.
    fn work(&self, mode: &str, words: &[String]) -> Work {
        let head = [mode.to_owned(), self.directory.clone(), self.variables.len().to_string()];
        let arguments = head.into_iter().chain(self.variables.iter().cloned()).chain(words.iter().cloned());
        Work { mounts: self.mounts.clone(), ..Work::new(NAME, arguments.collect(), Nanos(0)) }
    }

    /// A launch that did not end in time, told by the person's command and not by the line that carried it.
    fn in_its_words(&self, abort: Abort, allowed: Nanos) -> Abort {
        match abort {
            Abort::Failed(failure) if failure.class == FailureClass::Timeout => {
                let command = line::join(&self.words);
                let reason = format!("the launch with the command `{command}` did not end within {allowed}");
                Abort::Failed(Failure { reason, ..failure })
            }
            other => other,
        }
    }

    /// The three works of a sample: identify, start nothing, run.
    fn works(&self) -> [Work; 3] {
        [self.work("identify", &self.words), self.work("run", &[]), self.work("run", &self.words)]
    }
}

static ABOUT: About = About {
    keys: &KEYS,
    guarded: &GUARDED,
    differences: &["beyond_start"],
    // A command that is not there, or does not end well, will not be or do so in the next round.
    recovers: false,
    occasion: Occasion::Whole,
    ..About::of(NAME, "how long does your command take in each subject?", Need::Work, &METRICS)
};

impl Experiment for Command {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn refuses(&self, setting: &Setting) -> Option<String> {
        let why = Wanted::of(setting).err()?;
        Some(format!("{why}\n\nhint: `--sweep` puts values into the command before it is split into words"))
    }

    fn exhibits(&self, evidence: &Evidence<'_>) -> Vec<Exhibit> {
        overhead::exhibits(evidence)
    }

    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
    ) -> Result<Sample, Abort> {
        let wrong = |why: String| Failure::new(FailureClass::Unsupported, format!("`{setting}`: {why}"));
        let wanted = Wanted::of(setting).map_err(wrong)?;
        if let Some(missing) = wanted.mounts.iter().find(|mount| !mount.host.exists()) {
            let reason = format!("cannot mount `{}`: it does not exist on the host", missing.host.display());
            return Err(Failure::new(FailureClass::Environment, reason).into());
        }
        match setting.get("mode") {
            Some("exec") => entered(subject, &wanted, run),
            _ => launched(subject, &wanted, run),
        }
    }

    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos {
        let around = launch + launch + launch + UNKNOWN;
        if setting.get("mode") == Some("exec") { around + launch } else { around }
    }
}

/// In containers of their own.
fn launched(subject: &mut dyn Subject, wanted: &Wanted, run: &RunContext) -> Result<Sample, Abort> {
    let [identify, nothing, whole] = wanted.works();
    let found = worked(subject, run, &identify)?;
    check(&found.message.done, wanted)?;
    let empty: Launch = worked(subject, run, &nothing)?;
    let launch = worked(subject, run, &whole).map_err(|abort| wanted.in_its_words(abort, run.allowed))?;
    check(&launch.message.done, wanted)?;
    let sample = super::work_sample(&launch)?;
    Ok(complete(sample, empty.returned.since(empty.spawned), &found.message.done))
}

/// Inside a container that runs already.
fn entered(subject: &mut dyn Subject, wanted: &Wanted, run: &RunContext) -> Result<Sample, Abort> {
    let [identify, nothing, whole] = wanted.works();
    if !subject.offers().contains(&Need::Exec) {
        return Err(Failure::new(FailureClass::Unsupported, Need::Exec.lacking()).into());
    }
    let verbs = verbs(subject)?;
    let mut enter = || {
        verbs.create_for(run, &wanted.mounts)?;
        verbs.start(run)?;
        // The first entry also says that the program inside is ready to be stopped.
        let first = verbs.exec(run)?;
        until_it_waits(verbs, run, &first)?;
        let found = verbs.exec_work(run, &identify)?;
        check(&found.message.done, wanted)?;
        let empty = verbs.exec_work(run, &nothing)?;
        let entered =
            verbs.exec_work(run, &whole).map_err(|abort| wanted.in_its_words(abort, run.allowed))?;
        check(&entered.message.done, wanted)?;
        verbs.stop(run)?;
        verbs.delete(run)?;
        let sample = of_entry(&entered)?;
        Ok(complete(sample, empty.returned.since(empty.spawned), &found.message.done))
    };
    let sample = enter();
    if sample.is_err() {
        verbs.discard(run);
    }
    sample
}

/// The sample of an entry, with what the work inside reported.
fn of_entry(entered: &Entered) -> Result<Sample, Failure> {
    let mut sample = super::exec::sample(entered)?;
    let done = &entered.message.done;
    sample.counters.extend(done.results.iter().map(|(name, value)| (name.clone().into(), *value)));
    sample.treatment.extend(done.notes.iter().map(|(name, fact)| (name.clone().into(), fact.clone())));
    Ok(sample)
}

/// The sample with what the start alone took, which file was executed, and the memory where it is the
/// command's own.
fn complete(mut sample: Sample, start: Nanos, found: &Done) -> Sample {
    sample.counters.push(("start".into(), start.0));
    match (sample.counter("most_memory"), sample.counter("own_memory")) {
        (Some(most), Some(own)) if most > own => sample.counters.push(("peak_memory".into(), most)),
        (most, own) => {
            let reason = format!(
                "{} bytes are not more than a child of the probe has before it executes anything ({})",
                most.unwrap_or(0),
                own.unwrap_or(0)
            );
            sample.missing.push(("peak_memory".into(), reason));
        }
    }
    let sum = found.notes.iter().find(|(name, _)| name == "program_sha256");
    let sum = sum.map_or_else(|| "unreadable".to_owned(), |(_, sum)| sum.clone());
    sample.treatment.push(("program_sha256".into(), sum));
    sample
}

/// Whether the command was found, was started, and ended well.
fn check(done: &Done, wanted: &Wanted) -> Result<(), Failure> {
    let result =
        |name: &str| done.results.iter().find(|(own, _)| own == name).map(|(_, value)| *value as i32);
    let error = |errno: i32| std::io::Error::from_raw_os_error(errno);
    let program = wanted.words.first().map_or("", String::as_str);
    let failed = |class, reason: String| Err(Failure::new(class, reason));
    if let Some(why) = &done.refused {
        return failed(FailureClass::Unsupported, why.clone());
    }
    if let Some(errno) = result("directory_refused") {
        let reason =
            format!("cannot change to the directory `{}` inside: {}", wanted.directory, error(errno));
        return failed(FailureClass::Environment, reason);
    }
    match result("not_executed") {
        None => {}
        Some(libc::ENOENT) => {
            let reason = format!(
                "`{program}` does not exist inside; without `image=REF` a container holds the probe only, and `bare` what the host has"
            );
            return failed(FailureClass::Environment, reason);
        }
        Some(libc::ENOEXEC) => {
            let reason = format!(
                "`{program}` is no program of this machine and no script with `#!`; `--shell` has a shell run it"
            );
            return failed(FailureClass::Unsupported, reason);
        }
        Some(errno @ libc::EACCES) => {
            let reason = format!("`{program}` may not be executed: {}", error(errno));
            return failed(FailureClass::Permission, reason);
        }
        Some(errno) => {
            return failed(
                FailureClass::Environment,
                format!("cannot execute `{program}`: {}", error(errno)),
            );
        }
    }
    if let Some(errno) = result("not_started") {
        return failed(FailureClass::Environment, format!("cannot start a process inside: {}", error(errno)));
    }
    let Some(status) = result("status").filter(|status| *status != 0) else { return Ok(()) };
    let ended = match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code) => format!("exit code {code}"),
        (false, _) => format!("signal {}", libc::WTERMSIG(status)),
    };
    let words = done.notes.iter().find(|(name, _)| name == "said").map_or("", |(_, said)| said.as_str());
    let reason = format!("the command `{}` ended with {ended}", line::join(&wanted.words));
    Err(Failure::new(FailureClass::Crash, reason).with_words(words.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::setting::interned;

    fn setting(pairs: &[(&'static str, &str)]) -> Setting {
        Setting(pairs.iter().map(|(key, value)| (*key, interned(value))).collect())
    }

    #[test]
    fn a_setting_is_three_works_of_the_same_command() {
        let wanted = Wanted::of(&setting(&[
            ("cmd", "gzip -{level} 'a b'"),
            ("mode", "run"),
            ("workdir", "/srv"),
            ("env", "A=1 'B=2 3'"),
            ("mount", "/data:/in:ro"),
            ("sweep", "level=9"),
        ]))
        .unwrap();
        let [identify, nothing, whole] = wanted.works();
        assert_eq!(whole.arguments, ["run", "/srv", "2", "A=1", "B=2 3", "gzip", "-9", "a b"]);
        assert_eq!(nothing.arguments, ["run", "/srv", "2", "A=1", "B=2 3"]);
        assert_eq!(identify.arguments[0], "identify");
        assert_eq!(identify.mounts, whole.mounts);
        assert_eq!(whole.mounts.len(), 1);
        let shell = Wanted::of(&setting(&[("cmd", "a | b"), ("mode", "run"), ("shell", "yes")])).unwrap();
        assert_eq!(shell.words, ["/bin/sh", "-c", "a | b"]);
    }

    #[test]
    fn a_swept_value_that_leaves_no_command_or_half_a_word_is_refused() {
        let refused = |cmd: &str, sweep: &str| {
            Command.refuses(&setting(&[("cmd", cmd), ("mode", "run"), ("sweep", sweep)]))
        };
        assert!(refused("{n}", "n=").unwrap().starts_with("no program is named"));
        assert!(refused("echo {n}", r#""n='""#).unwrap().starts_with("a single quote is not closed"));
        assert_eq!((refused("{n}", "n=true"), refused("echo {n}", "n=")), (None, None));
    }

    #[test]
    fn settings_with_values_of_a_persons_own_are_read_again() {
        let text = r#"cmd="sh -c \"exit 0; x\"";mode=exec;env=A=1;sweep=n=3"#;
        let parsed = crate::experiment::parse_setting(&Command, text).unwrap();
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
            assert_eq!(crate::experiment::parse_setting(&Command, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_way_to_fail_is_told_with_its_class() {
        let wanted = Wanted::of(&setting(&[("cmd", "convert a"), ("mode", "run")])).unwrap();
        let failure = |results: &[(&str, i64)]| {
            let results = results.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let notes = vec![("said".to_owned(), "no such option".to_owned())];
            check(&Done { results, notes, ..Done::default() }, &wanted).unwrap_err()
        };
        let missing = failure(&[("not_executed", libc::ENOENT.into())]);
        assert!(missing.reason.starts_with("`convert` does not exist inside"), "{missing}");
        assert_eq!(failure(&[("not_executed", libc::EACCES.into())]).class, FailureClass::Permission);
        let exited = failure(&[("status", 1 << 8)]);
        assert_eq!(exited.class, FailureClass::Crash);
        assert_eq!(exited.reason, "the command `convert a` ended with exit code 1");
        assert_eq!(exited.words.as_deref(), Some("no such option"));
        assert!(failure(&[("status", 9)]).reason.ends_with("signal 9"));
        assert_eq!(check(&Done::default(), &wanted), Ok(()));
    }

    #[test]
    fn memory_that_is_not_the_commands_own_is_no_value() {
        let sample = |most: i64, own: i64| {
            let counters = vec![("most_memory".into(), most), ("own_memory".into(), own)];
            complete(Sample { counters, ..Sample::default() }, Nanos(5), &Done::default())
        };
        assert_eq!(sample(2000, 1000).counter("peak_memory"), Some(2000));
        assert_eq!(sample(1000, 1000).counter("peak_memory"), None);
        assert_eq!(sample(1000, 1000).missing.len(), 1);
        assert_eq!(sample(2000, 1000).counter("start"), Some(5));
    }
}
