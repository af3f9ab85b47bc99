//! `command`: three launches or entries, of which the last runs the command. What it writes goes the way that it goes for a
//! user, and is read here and thrown away; the probe's message comes in a file that is bound into the container.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::exec;
use super::lifecycle::ready;
use super::{add, work_sample, worked};
use crate::experiment::Setting;
use crate::experiment::command::{NAME, Wanted, line};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment, Sample};
use crate::probe::message::Done;
use crate::subject::{Access, ContainerRequest, Mount, Need, RunContext, Subject, Work};
use crate::units::Nanos;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let wrong = |why: String| Failure::new(FailureClass::Unsupported, format!("`{setting}`: {why}"));
    let wanted = Wanted::of(setting).map_err(wrong)?;
    if let Some(missing) = wanted.mounts.iter().find(|mount| !mount.host.exists()) {
        let reason = format!("cannot mount `{}`: it does not exist on the host", missing.host.display());
        return Err(Failure::new(FailureClass::Environment, reason).into());
    }
    let works = works(&wanted, &message_file(run)?);
    match setting.get("mode") {
        Some("exec") => entered(subject, &wanted, &works, run),
        _ => launched(subject, &wanted, &works, run),
    }
}

/// The file in which the probe leaves its message, empty now. Root inside may be any user outside. One for all samples, so that
/// every launch of a command is the same.
fn message_file(run: &RunContext) -> Result<PathBuf, Failure> {
    let file = run.workspace().join("message");
    let mode = std::fs::Permissions::from_mode(0o666);
    let made = std::fs::create_dir_all(run.workspace())
        .and_then(|()| std::fs::write(&file, ""))
        .and_then(|()| std::fs::set_permissions(&file, mode));
    made.or_environment(format_args!("cannot make `{}`", file.display()))?;
    Ok(file)
}

/// The work of a probe that does this with the command. The file for its message is at the same place inside, where `bare` has
/// it anyway.
fn work(wanted: &Wanted, file: &Path, mode: &str, words: &[String]) -> Work {
    let place = file.to_string_lossy().into_owned();
    let variables = wanted.variables.len().to_string();
    let head = [mode.to_owned(), wanted.output.to_owned(), place, wanted.directory.clone(), variables];
    let arguments = head.into_iter().chain(wanted.variables.iter().cloned()).chain(words.iter().cloned());
    let own = Mount { host: file.to_owned(), inside: file.to_owned(), access: Access::ReadWrite };
    let mounts = wanted.mounts.iter().cloned().chain([own]).collect();
    let message_file = Some(file.to_owned());
    Work { mounts, message_file, ..Work::new(NAME, arguments.collect(), Nanos(0)) }
}

/// A launch that did not end in time, told by the person's command and not by the line that carried it.
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
fn works(wanted: &Wanted, file: &Path) -> [Work; 3] {
    let work = |mode, words: &[String]| work(wanted, file, mode, words);
    [work("identify", &wanted.words), work("run", &[]), work("run", &wanted.words)]
}

/// In containers of their own.
fn launched(
    subject: &mut dyn Subject,
    wanted: &Wanted,
    [identify, nothing, whole]: &[Work; 3],
    run: &RunContext,
) -> Result<Sample, Abort> {
    let mut worked = |work: &Work| {
        // A message of the launch before is none of this one.
        message_file(run)?;
        worked(subject, run, work)
    };
    let found = worked(identify)?;
    check(&found.message.done, wanted)?;
    let empty = worked(nothing)?;
    let launch = worked(whole).map_err(|abort| in_its_words(wanted, abort, run.allowed))?;
    check(&launch.message.done, wanted)?;
    let sample = work_sample(&launch)?;
    Ok(complete(sample, empty.returned.since(empty.spawned), &found.message.done))
}

/// Inside a container that runs already.
fn entered(
    subject: &mut dyn Subject,
    wanted: &Wanted,
    [identify, nothing, whole]: &[Work; 3],
    run: &RunContext,
) -> Result<Sample, Abort> {
    if !subject.about().offers.contains(&Need::Exec) {
        return Err(Failure::new(FailureClass::Unsupported, Need::Exec.lacking()).into());
    }
    let request = ContainerRequest { mounts: whole.mounts.clone(), ..Default::default() };
    let mut container = ready(subject, &request, run)?;
    let mut exec = |work: &Work| {
        message_file(run)?;
        container.exec(work)
    };
    let found = exec(identify)?;
    check(&found.message.done, wanted)?;
    let empty = exec(nothing)?;
    let entered = exec(whole).map_err(|abort| in_its_words(wanted, abort, run.allowed))?;
    check(&entered.message.done, wanted)?;
    container.stop()?;
    container.remove()?;
    let mut sample = exec::sample(&entered)?;
    add(&mut sample, &entered.message.done);
    Ok(complete(sample, empty.returned.since(empty.spawned), &found.message.done))
}

/// The sample with what the start alone took, which file was executed, and the memory where it is the
/// command's own.
fn complete(mut sample: Sample, start: Nanos, found: &Done) -> Sample {
    sample.counters.push(("start".into(), start.0));
    match (sample.counter("most_memory"), sample.counter("own_memory")) {
        (Some(most), Some(own)) if most > own => sample.counters.push(("peak_memory".into(), most)),
        (most, own) => {
            let (most, own) = (most.unwrap_or(0), own.unwrap_or(0));
            let reason = format!(
                "{most} bytes are not more than a child of the probe has before it executes anything ({own})"
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
    if let Some(errno) = result("not_executed") {
        let (class, reason) = match errno {
            libc::ENOENT => (
                FailureClass::Environment,
                format!(
                    "`{program}` does not exist inside; without `image=REF` a container holds the probe only, and `bare` what the host has"
                ),
            ),
            libc::ENOEXEC => (
                FailureClass::Unsupported,
                format!(
                    "`{program}` is no program of this machine and no script with `#!`; `--shell` has a shell run it"
                ),
            ),
            libc::EACCES => {
                (FailureClass::Permission, format!("`{program}` may not be executed: {}", error(errno)))
            }
            _ => (FailureClass::Environment, format!("cannot execute `{program}`: {}", error(errno))),
        };
        return failed(class, reason);
    }
    if let Some(errno) = result("not_started") {
        return failed(FailureClass::Environment, format!("cannot start a process inside: {}", error(errno)));
    }
    let Some(status) = result("status").filter(|status| *status != 0) else { return Ok(()) };
    let ended = match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code) => format!("exit code {code}"),
        (false, _) => format!("signal {}", libc::WTERMSIG(status)),
    };
    let note = done.notes.iter().find(|(name, said)| name == "said" && !said.is_empty());
    let words = note.map_or(&done.said, |(_, said)| said);
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
        let [identify, nothing, whole] = works(&wanted, Path::new("/state/message"));
        let head = ["run", "through", "/state/message", "/srv", "2", "A=1", "B=2 3"];
        assert_eq!(whole.arguments, [&head[..], &["gzip", "-9", "a b"]].concat());
        assert_eq!(nothing.arguments, head);
        assert_eq!(identify.arguments[0], "identify");
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
