//! `command`: three launches or entries, the last of which runs the command. Its output takes the same path
//! as for a user, and is read here and discarded; the probe's message is in a file that is bound into the
//! container. `service`: two launches, the last of which runs the service until it is ready.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dunnage_orders::work::{self, Done, Mode};

use super::exec;
use super::lifecycle::ready;
use super::{add, in_order, start, variables_of};
use crate::experiment::command::ready::Ready;
use crate::experiment::command::{self, Wanted, line};
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment, Sample};
use crate::probe::message::{Inside, Message, Seen};
use crate::subject::treatment::Own;
use crate::subject::{Access, ContainerRequest, Mount, Need, RunContext, Span, Subject, Work};
use crate::sys::{filesystem, place};
use crate::units::{Nanos, Stamp};

/// Longer than the time that a service has to end after SIGTERM.
const STOPPING: Nanos = Nanos::from_millis(15_000);

/// The peak of the memory charged to its own cgroup, in bytes, or why that is not known.
const CHARGED: &str = "charged_memory";

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let wrong = |why: String| Failure::new(FailureClass::Unsupported, format!("`{setting}`: {why}"));
    let mut wanted = Wanted::of(setting).map_err(wrong)?;
    wanted.cold &= subject.has_a_clock();
    if let Some(missing) = wanted.mounts.iter().find(|mount| !mount.host.exists()) {
        let reason = format!("cannot mount `{}`: it does not exist on the host", missing.host.display());
        return Err(Failure::new(FailureClass::Environment, reason).into());
    }
    let in_memory = |mount: &&Mount| wanted.cold && filesystem::is_in_memory(&mount.host).unwrap_or(false);
    if let Some(mount) = wanted.mounts.iter().find(in_memory) {
        return Err(
            wrong(format!("`{}` is in memory (tmpfs), so it cannot be cold", mount.host.display())).into()
        );
    }
    let variables = variables_of(setting, run)?;
    let works = works(&wanted, variables.len(), &message_file(subject, run, variables)?, run.allowed);
    match setting.get("mode") {
        Some("exec") => entered(subject, (&wanted, variables), &works, run),
        _ => launched(subject, (&wanted, variables), &works, run),
    }
}

/// What a setting asks for, and the values of its variables.
type Asked<'a> = (&'a Wanted, &'a [String]);

/// The file for the probe's message, which holds the command's variables until the probe has read them: every user of the
/// machine sees arguments. Root inside may be any user outside where users are mapped; only then can others write to it, as far as
/// they are let through to it. All samples use the same path, so that every launch of a command is the same.
fn message_file(subject: &dyn Subject, run: &RunContext, variables: &[String]) -> Result<PathBuf, Failure> {
    let file = run.workspace().join("message");
    let mode = if subject.about().expected.user == Own::Host { 0o600 } else { 0o666 };
    let made = || {
        place::make(&run.workspace())?;
        // One that others could open stays open to them.
        if file.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o777 != mode) {
            std::fs::remove_file(&file)?;
        }
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).mode(0o600).open(&file)?;
        opened.set_permissions(Permissions::from_mode(mode))
    };
    made().or_environment(format_args!("cannot make `{}`", file.display()))?;
    fill(&file, variables)?;
    Ok(file)
}

/// Clears the message of the previous launch.
fn fill(file: &Path, variables: &[String]) -> Result<(), Failure> {
    let content: String = variables.iter().flat_map(|pair| [pair, "\0"]).collect();
    std::fs::write(file, content).or_environment(format_args!("cannot write `{}`", file.display()))
}

/// The work of a probe that does this with the command. The file for its message has the same path inside as
/// outside, where `bare` uses it anyway. A service has as long to get ready as a launch without it may take.
fn work_of(
    (wanted, variables): (&Wanted, usize),
    (file, allowed): (&Path, Nanos),
    mode: Mode,
    words: &[String],
) -> Work {
    let (service, takes) = match wanted.ready {
        Some(Ready::Port(port)) => (Some(work::Ready { port: Some(port), allowed }), allowed + STOPPING),
        Some(Ready::Log(_)) => (Some(work::Ready { port: None, allowed }), allowed + STOPPING),
        None => (None, Nanos(0)),
    };
    let order = work::Command {
        mode,
        through: wanted.output == "through",
        file: file.to_string_lossy().into_owned(),
        service,
        directory: wanted.directory.clone(),
        variables,
        words: words.to_vec(),
    };
    let own = Mount { host: file.to_owned(), inside: file.to_owned(), access: Access::ReadWrite };
    let mounts = wanted.mounts.iter().cloned().chain([own]).collect();
    let line = match &wanted.ready {
        Some(Ready::Log(pattern)) => Some(pattern.to_string()),
        _ => None,
    };
    let message_file = Some(file.to_owned());
    Work { mounts, message_file, line, ..Work::new(order, takes) }
}

/// A launch that timed out, reported with the user's command and not with the engine's command line.
fn in_its_words(wanted: &Wanted, abort: Abort, allowed: Nanos) -> Abort {
    match abort {
        Abort::Failed(failure) if failure.class == FailureClass::Timeout => {
            let command = line::join(&wanted.words);
            let reason = format!("the launch with the command `{command}` did not end within {allowed}");
            Abort::Failed(Failure { reason, ..failure })
        }
        other => other,
    }
}

/// The three works of a sample: identify, start nothing, run.
fn works(wanted: &Wanted, variables: usize, file: &Path, allowed: Nanos) -> [Work; 3] {
    let work = |mode, words: &[String]| work_of((wanted, variables), (file, allowed), mode, words);
    let last = if wanted.cold { Mode::Cold } else { Mode::Run };
    [work(Mode::Identify, &wanted.words), work(Mode::Run, &[]), work(last, &wanted.words)]
}

/// A launch, or an entry.
struct Taken {
    span: Span,
    inside: Inside,
    done: Done,
    /// The last of what its program wrote to standard error.
    said: String,
    sample: Sample,
}

impl Taken {
    fn of(span: Span, message: Message, sample: Sample) -> Result<Taken, Failure> {
        let mut done: Done = message.answer()?;
        let Seen { said, written, came } = message.seen;
        let seen = [("output", written), ("serving", came.map(|stamp| stamp.0))];
        let seen = seen.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value? as i64)));
        done.results.extend(seen);
        Ok(Taken { span, inside: message.inside, done, said, sample })
    }
}

/// In separate containers.
fn launched(
    subject: &mut dyn Subject,
    asked: Asked<'_>,
    works: &[Work; 3],
    run: &RunContext,
) -> Result<Sample, Abort> {
    taken(asked, works, run, |work| {
        let launch = subject.work(work, run)?;
        let span = Span { began: launch.spawned, ended: launch.returned };
        let sample = start::sample(&launch)?;
        Ok(Taken::of(span, launch.message, sample)?)
    })
}

/// Inside a running container.
fn entered(
    subject: &mut dyn Subject,
    asked: Asked<'_>,
    works: &[Work; 3],
    run: &RunContext,
) -> Result<Sample, Abort> {
    if !subject.about().offers.contains(&Need::Exec) {
        return Err(Failure::new(FailureClass::Unsupported, Need::Exec.lacking()).into());
    }
    let request = ContainerRequest { mounts: works[2].mounts.clone(), ..Default::default() };
    let mut container = ready(subject, &request, run)?;
    let sample = taken(asked, works, run, |work| {
        let entered = container.exec(work)?;
        let span = Span { began: entered.spawned, ended: entered.returned };
        let sample = exec::sample(&entered)?;
        Ok(Taken::of(span, entered.message, sample)?)
    })?;
    container.stop()?;
    container.remove()?;
    Ok(sample)
}

/// The sample of the works, done in direct succession.
fn taken(
    (wanted, variables): Asked<'_>,
    [identify, nothing, whole]: &[Work; 3],
    run: &RunContext,
    mut take: impl FnMut(&Work) -> Result<Taken, Abort>,
) -> Result<Sample, Abort> {
    let mut take = |work| {
        whole.message_file.iter().try_for_each(|file| fill(file, variables))?;
        take(work)
    };
    let found = take(identify)?;
    check((&found.done, &found.said), wanted, run.allowed)?;
    if wanted.ready.is_some() && found.inside.has_own_kernel() {
        let reason = "the kernel inside is not the host's, so its clock cannot time when a service is ready";
        return Err(Failure::new(FailureClass::Unsupported, reason).into());
    }
    let empty = if wanted.ready.is_none() { Some(take(nothing)?.span) } else { None };
    let mut dropped = Vec::new();
    if wanted.cold {
        dropped.extend(["cached_before", "cached_after"].into_iter().zip(start::empty_the_cache()?));
        run.quiet(QUIET)?;
    }
    let Taken { span, done, said, mut sample, .. } =
        take(whole).map_err(|abort| in_its_words(wanted, abort, run.allowed))?;
    check((&done, &said), wanted, run.allowed)?;
    match empty {
        Some(empty) => {
            add(&mut sample, &done);
            sample = complete(sample, empty.took());
        }
        None => serving(&mut sample, span.began, &done)?,
    }
    sample.counters.extend(dropped.into_iter().map(|(name, bytes)| (name.into(), bytes as i64)));
    let sum = found.done.note("program_sha256").unwrap_or("unreadable");
    sample.treatment.push(("program_sha256".into(), sum.to_owned()));
    Ok(sample)
}

/// Adds when a service was forked, and when it was ready.
fn serving(sample: &mut Sample, spawned: Stamp, done: &Done) -> Result<(), Failure> {
    let stamp = |name: &'static str| done.result(name).map(|value| (name, Stamp(value as u64)));
    let stamps: Vec<_> =
        [Some(("spawn", spawned)), stamp("forked"), stamp("serving")].into_iter().flatten().collect();
    in_order(&stamps)?;
    let seen = done.results.iter().filter(|(name, _)| name.starts_with("program_"));
    sample.counters.extend(seen.map(|(name, value)| (name.clone().into(), *value)));
    sample.stamps.extend(stamps.into_iter().skip(1).map(|(name, stamp)| (name.into(), stamp)));
    Ok(())
}

/// The sample with the time of the start alone, and the reason for missing figures of memory.
fn complete(mut sample: Sample, start: Nanos) -> Sample {
    sample.counters.push(("start".into(), start.0));
    if command::largest_process(&sample).is_none() {
        let [most, own] = ["most_memory", "own_memory"].map(|name| sample.counter(name).unwrap_or(0));
        let reason = format!("{most} bytes are not more than a child of the probe uses before exec ({own})");
        sample.missing.push(("largest_process".into(), reason));
    }
    let unreadable = sample.treatment.iter().position(|(name, _)| name == CHARGED);
    let unreadable = unreadable.map(|at| sample.treatment.remove(at).1);
    let whose = sample.treatment.iter().find(|(name, _)| name == "cgroup").map(|(_, fact)| fact.as_str());
    let missing = match whose {
        Some("own") => unreadable,
        Some("host") => Some(command::SHARED_CGROUP.to_owned()),
        _ => Some("it cannot be seen from inside whether its cgroup is its own".to_owned()),
    };
    if let Some(why) = missing {
        // A figure that includes other processes says nothing about this container.
        sample.counters.retain(|(name, _)| name != CHARGED);
        sample.missing.push(("peak_memory".into(), why));
    }
    sample
}

/// Whether the command was found, was started, and succeeded.
fn check((done, said): (&Done, &str), wanted: &Wanted, allowed: Nanos) -> Result<(), Failure> {
    let result = |name: &str| done.result(name).map(|value| value as i32);
    let error = |errno: i32| std::io::Error::from_raw_os_error(errno);
    let program = wanted.words.first().map_or("", String::as_str);
    let failed = |class, reason: String| Err(Failure::new(class, reason));
    if let Some(errno) = result("directory_refused") {
        let reason =
            format!("cannot change to the directory `{}` inside: {}", wanted.directory, error(errno));
        return failed(FailureClass::Environment, reason);
    }
    if let Some(errno) = result("not_executed") {
        let (class, reason) = match errno {
            libc::ENOENT => (
                FailureClass::Environment,
                format!(
                    "`{program}` does not exist inside: without `image=REF` a container has only the probe, and `bare` has the host's files"
                ),
            ),
            libc::ENOEXEC => (
                FailureClass::Unsupported,
                format!(
                    "`{program}` is neither a program for this machine nor a script with `#!`: run it by a shell with `--shell`"
                ),
            ),
            libc::EACCES => {
                (FailureClass::Permission, format!("`{program}` cannot be executed: {}", error(errno)))
            }
            _ => (FailureClass::Environment, format!("cannot execute `{program}`: {}", error(errno))),
        };
        return failed(class, reason);
    }
    if let Some(errno) = result("not_started") {
        return failed(FailureClass::Environment, format!("cannot start a process inside: {}", error(errno)));
    }
    match result("program_cached") {
        Some(left @ 1..) => {
            let reason = format!(
                "not as asked: {left} pages of `{program}` are still in the page cache after it was emptied: another process runs it, or \
                 it is in memory (tmpfs)"
            );
            return failed(FailureClass::Treatment, reason);
        }
        Some(..0) => {
            return failed(
                FailureClass::Treatment,
                format!("cannot find out whether `{program}` was in the page cache"),
            );
        }
        Some(0) | None => {}
    }
    if let Some(port) = result("port_taken") {
        let reason = format!("port {port} is already open where the service should start");
        return failed(FailureClass::Environment, reason);
    }
    let Some(status) = result("status") else { return Ok(()) };
    let ended = match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code) => format!("exit code {code}"),
        (false, _) => format!("signal {}", libc::WTERMSIG(status)),
    };
    let words = done.note("said").filter(|said| !said.is_empty()).unwrap_or(said);
    let told = |class, end: String| {
        let reason = format!("the command `{}` {end}", line::join(&wanted.words));
        Err(Failure::new(class, reason).with_words(words.as_bytes()))
    };
    let is_serving = result("serving").is_some();
    match &wanted.ready {
        Some(_) if is_serving && result("asked_to_end") == Some(1) => Ok(()),
        Some(ready) if result("late") == Some(1) && !is_serving => {
            told(FailureClass::Timeout, format!("was not ready (`{ready}`) within {allowed}"))
        }
        Some(ready) if !is_serving => {
            told(FailureClass::Crash, format!("ended with {ended} before it was ready (`{ready}`)"))
        }
        _ if status == 0 => Ok(()),
        _ => told(FailureClass::Crash, format!("ended with {ended}")),
    }
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
            ("env", "A B"),
            ("mount", "/data:/in:ro"),
            ("sweep", "level=9"),
        ]))
        .unwrap();
        let [identify, nothing, whole] = works(&wanted, 2, Path::new("/state/message"), Nanos(7));
        let order = |mode, words: &[&str]| work::Command {
            mode,
            through: true,
            file: "/state/message".into(),
            service: None,
            directory: "/srv".into(),
            variables: 2,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
        };
        let words = ["gzip", "-9", "a b"];
        assert_eq!(whole.order, order(Mode::Run, &words).into());
        assert_eq!(nothing.order, order(Mode::Run, &[]).into());
        assert_eq!(identify.order, order(Mode::Identify, &words).into());
        assert_eq!(identify.mounts, whole.mounts);
        assert_eq!((whole.mounts.len(), &*whole.mounts[1].inside), (2, Path::new("/state/message")));
        let with = [("cmd", "a | b"), ("mode", "run"), ("shell", "yes"), ("output", "discard")];
        let shell = Wanted::of(&setting(&with)).unwrap();
        assert_eq!((shell.words.join(" ").as_str(), shell.output), ("/bin/sh -c a | b", "discard"));
    }

    #[test]
    fn each_way_to_fail_is_told_with_its_class() {
        let wanted = Wanted::of(&setting(&[("cmd", "convert a"), ("mode", "run")])).unwrap();
        let failure = |results: &[(&str, i64)]| {
            let results = results.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let notes = vec![("said".to_owned(), "no such option".to_owned())];
            check((&Done { results, notes, ..Done::default() }, ""), &wanted, Nanos(7)).unwrap_err()
        };
        let missing = failure(&[("not_executed", libc::ENOENT.into())]);
        assert!(missing.reason.starts_with("`convert` does not exist inside"), "{missing}");
        assert_eq!(failure(&[("not_executed", libc::EACCES.into())]).class, FailureClass::Permission);
        let exited = failure(&[("status", 1 << 8)]);
        assert_eq!(exited.class, FailureClass::Crash);
        assert_eq!(exited.reason, "the command `convert a` ended with exit code 1");
        assert_eq!(exited.words.as_deref(), Some("no such option"));
        assert!(failure(&[("status", 9)]).reason.ends_with("signal 9"));
        assert_eq!(check((&Done::default(), ""), &wanted, Nanos(7)), Ok(()));
    }

    #[test]
    fn a_service_is_ready_late_or_gone_before() {
        let wanted =
            Wanted::of(&setting(&[("cmd", "serve"), ("mode", "run"), ("ready", "port 80")])).unwrap();
        let came_of = |results: &[(&str, i64)]| {
            let results = results.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            check((&Done { results, ..Done::default() }, ""), &wanted, Nanos(7))
        };
        let told = |results: &[(&str, i64)]| came_of(results).unwrap_err().to_string();
        assert_eq!(came_of(&[("serving", 1 << 40), ("asked_to_end", 1), ("status", 15)]), Ok(()));
        assert_eq!(came_of(&[("serving", 1), ("asked_to_end", 0), ("status", 0)]), Ok(()));
        let crashed = told(&[("serving", 1), ("asked_to_end", 0), ("status", 256)]);
        assert_eq!(crashed, "crash: the command `serve` ended with exit code 1");
        let late = told(&[("late", 1), ("asked_to_end", 1), ("status", 15)]);
        assert!(late.starts_with("timeout: the command `serve` was not ready (`port 80`) within"), "{late}");
        let before = told(&[("late", 0), ("asked_to_end", 0), ("status", 0)]);
        assert!(before.ends_with("ended with exit code 0 before it was ready (`port 80`)"), "{before}");
        assert!(told(&[("port_taken", 80)]).starts_with("environment: port 80 is already open"));
        assert!(told(&[("program_cached", 3)]).starts_with("treatment"));
        assert!(told(&[("program_cached", -1)]).starts_with("treatment"));
    }

    #[test]
    fn memory_that_is_not_the_commands_own_is_no_value() {
        let sample = |most: i64, own: i64| {
            let counters = vec![("most_memory".into(), most), ("own_memory".into(), own)];
            complete(Sample { counters, ..Sample::default() }, Nanos(5))
        };
        assert_eq!(command::largest_process(&sample(2000, 1000)), Some(2000));
        assert_eq!(command::largest_process(&sample(1000, 1000)), None);
        assert_eq!(sample(1000, 1000).missing.len(), 2);
        assert_eq!(sample(2000, 1000).counter("start"), Some(5));
    }

    #[test]
    fn memory_that_a_cgroup_was_charged_with_counts_where_the_container_has_it_to_itself() {
        let sample = |cgroup: &str, found: Result<i64, &str>| {
            let mut sample = Sample::default();
            sample.treatment.push(("cgroup".into(), cgroup.to_owned()));
            match found {
                Ok(bytes) => sample.counters.push((CHARGED.into(), bytes)),
                Err(why) => sample.treatment.push((CHARGED.into(), why.to_owned())),
            }
            let sample = complete(sample, Nanos(5));
            assert_eq!(sample.treatment.len(), 1);
            let why = sample.missing.iter().find(|(name, _)| name == "peak_memory");
            (sample.counter(CHARGED), why.map(|(_, why)| why.clone()))
        };
        assert_eq!(sample("own", Ok(7)), (Some(7), None));
        assert_eq!(sample("own", Err("no file")), (None, Some("no file".to_owned())));
        for (whose, told) in [("host", "shares"), ("unknown", "cannot be seen")] {
            let (bytes, why) = sample(whose, Ok(7));
            assert!(bytes.is_none() && why.is_some_and(|why| why.contains(told)), "{whose}");
        }
    }
}
