//! `command`: three launches or entries, the last of which runs the command. Its output takes the same path
//! as for a user, and is read here and discarded; the probe's message is in a file that is bound into the
//! container. `service`: two launches, the last of which runs the service until it is ready.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dunnage_analysis::launch::names::{CACHED_AFTER, CACHED_BEFORE, SPAWN};
use dunnage_orders::Order;
use dunnage_orders::work::{self, Cached, End, Ended, Mode, Ran, Served, Took};

use super::exec;
use super::lifecycle::ready;
use super::{in_order, start, variables_of};
use crate::experiment::command::ready::Ready;
use crate::experiment::command::{self, Wanted, line, names};
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment, Sample};
use crate::probe::message::{Inside, Message, Seen};
use crate::subject::machine::Machine;
use crate::subject::treatment::Own;
use crate::subject::{Access, ContainerRequest, GRACE, Mount, Need, RunContext, Span, Subject, Work};
use crate::sys::{filesystem, place};
use crate::units::Nanos;

/// Longer than the time that a service has to end after SIGTERM.
const STOPPING: Nanos = Nanos::from_millis(15_000);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let wrong = |why: String| Failure::new(FailureClass::Unsupported, format!("`{setting}`: {why}"));
    let wanted = Wanted::of(setting).map_err(wrong)?;
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
    ran: Ran,
    /// What its program's output showed.
    seen: Seen,
    sample: Sample,
    /// Bytes in the page cache before and after it was emptied, if it was.
    dropped: Option<[i64; 2]>,
}

impl Taken {
    fn of(
        span: Span,
        message: Message,
        (sample, dropped): (Sample, Option<[i64; 2]>),
    ) -> Result<Taken, Failure> {
        Ok(Taken {
            span,
            ran: message.answer()?,
            inside: message.inside,
            seen: message.seen,
            sample,
            dropped,
        })
    }

    /// How it served, if it did: a service whose line was awaited was ready when that came.
    fn served(&self) -> Option<Served> {
        let End::Ended(Ended { took: Took::Service(served), .. }) = &self.ran.end else { return None };
        Some(Served { serving: served.serving.or(self.seen.came), ..*served })
    }
}

/// Empties the page cache before a work that needs it cold.
fn made_cold(machine: &dyn Machine, work: &Work, run: &RunContext) -> Result<Option<[i64; 2]>, Abort> {
    let Order::Command(work::Command { mode: Mode::Cold, .. }) = &work.order else { return Ok(None) };
    let dropped = machine.empty_the_cache(None)?;
    machine.rest(run, QUIET)?;
    Ok(Some(dropped))
}

/// In separate containers.
fn launched(
    subject: &mut dyn Subject,
    asked: Asked<'_>,
    works: &[Work; 3],
    run: &RunContext,
) -> Result<Sample, Abort> {
    taken(asked, works, run, |work| {
        let dropped = made_cold(subject.machine(), work, run)?;
        let launch = subject.work(work, run)?;
        let span = Span { began: launch.spawned, ended: launch.returned };
        let sample = start::sample(&launch)?;
        Ok(Taken::of(span, launch.message, (sample, dropped))?)
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
        let dropped = made_cold(subject.machine(), work, run)?;
        let entered = container.exec(work)?;
        let span = Span { began: entered.spawned, ended: entered.returned };
        let sample = exec::sample(&entered)?;
        Ok(Taken::of(span, entered.message, (sample, dropped))?)
    })?;
    container.stop(GRACE)?;
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
    check(&found, wanted, run.allowed)?;
    if wanted.ready.is_some() && found.inside.has_own_kernel() {
        let reason = "the kernel inside is not the host's, so its clock cannot time when a service is ready";
        return Err(Failure::new(FailureClass::Unsupported, reason).into());
    }
    let empty = if wanted.ready.is_none() { Some(take(nothing)?.span) } else { None };
    let ran = take(whole).map_err(|abort| in_its_words(wanted, abort, run.allowed))?;
    check(&ran, wanted, run.allowed)?;
    let mut sample = match empty {
        Some(empty) => complete(&ran, empty.took()),
        None => serving(&ran)?,
    };
    if let Some(Cached { pages, bytes }) = ran.ran.cached {
        let pages = pages.map_or(-1, |pages| pages as i64);
        sample.extend([(names::PROGRAM_CACHED, pages), (names::PROGRAM_BYTES, bytes as i64)]);
    }
    if let Some([before, after]) = ran.dropped {
        sample.extend([(CACHED_BEFORE, before), (CACHED_AFTER, after)]);
    }
    sample.add(names::PROGRAM_SHA256, found.ran.sha256.unwrap_or_else(|| "unreadable".to_owned()));
    Ok(sample)
}

/// The sample of a service, with when it was forked and ready.
fn serving(ran: &Taken) -> Result<Sample, Failure> {
    let served = ran.served();
    let stamps = served.into_iter().flat_map(|served| {
        let ready = served.serving.map(|serving| (names::SERVING, serving));
        [(names::FORKED, served.forked)].into_iter().chain(ready)
    });
    let stamps: Vec<_> = [(SPAWN, ran.span.began)].into_iter().chain(stamps).collect();
    in_order(&stamps)?;
    Ok(ran.sample.clone().with(stamps.into_iter().skip(1)))
}

/// The sample of a command, with the time of the start alone, and the reason for missing figures of memory.
fn complete(ran: &Taken, start: Nanos) -> Sample {
    let mut sample = ran.sample.clone();
    if let End::Ended(Ended { status, left_running, took: Took::Command(spent), .. }) = &ran.ran.end {
        sample.extend([
            (names::TOOK, spent.took.0),
            (names::USER, spent.user.0),
            (names::SYSTEM, spent.system.0),
            (names::MOST_MEMORY, spent.most_memory),
            (names::OWN_MEMORY, spent.own_memory),
            (names::STATUS, (*status).into()),
            (names::LEFT_RUNNING, *left_running as i64),
        ]);
    }
    sample.extend(ran.seen.written.map(|bytes| (names::OUTPUT_BYTES, bytes as i64)));
    sample.extend(ran.ran.program.clone().map(|program| (names::PROGRAM, program)));
    sample.add(names::START, start.0);
    if command::largest_process(&sample).is_none() {
        let [most, own] =
            [names::MOST_MEMORY, names::OWN_MEMORY].map(|name| sample.counter(name).unwrap_or(0));
        let reason = format!("{most} bytes are not more than a child of the probe uses before exec ({own})");
        sample.lacks(&["largest_process"], &reason);
    }
    let whose = sample.treatment.iter().find(|(name, _)| name == "cgroup").map(|(_, fact)| fact.as_str());
    // A figure that includes other processes says nothing about this container.
    match (whose, &ran.ran.charged) {
        (Some("own"), Some(Ok(bytes))) => sample.add(names::CHARGED_MEMORY, *bytes as i64),
        (Some("own"), Some(Err(why))) => sample.lacks(&["peak_memory"], why),
        (Some("own"), None) => {}
        (Some("host"), _) => sample.lacks(&["peak_memory"], command::SHARED_CGROUP),
        _ => sample.lacks(&["peak_memory"], "it cannot be seen from inside whether its cgroup is its own"),
    }
    sample
}

/// Whether the command was found, was started, and succeeded.
fn check(taken: &Taken, wanted: &Wanted, allowed: Nanos) -> Result<(), Failure> {
    let error = |errno: i32| std::io::Error::from_raw_os_error(errno);
    let program = wanted.words.first().map_or("", String::as_str);
    let ended = match &taken.ran.end {
        End::NotAsked => return Ok(()),
        End::Ended(ended) => Ok(ended),
        End::NoDirectory(errno) => Err((
            FailureClass::Environment,
            format!("cannot change to the directory `{}` inside: {}", wanted.directory, error(*errno)),
        )),
        End::NotExecuted(libc::ENOENT) => Err((
            FailureClass::Environment,
            format!(
                "`{program}` does not exist inside: without `image=REF` a container has only the probe, and `bare` has the host's files"
            ),
        )),
        End::NotExecuted(libc::ENOEXEC) => Err((
            FailureClass::Unsupported,
            format!(
                "`{program}` is neither a program for this machine nor a script with `#!`: run it by a shell with `--shell`"
            ),
        )),
        End::NotExecuted(errno @ libc::EACCES) => {
            Err((FailureClass::Permission, format!("`{program}` cannot be executed: {}", error(*errno))))
        }
        End::NotExecuted(errno) => {
            Err((FailureClass::Environment, format!("cannot execute `{program}`: {}", error(*errno))))
        }
        End::NotStarted(errno) => {
            Err((FailureClass::Environment, format!("cannot start a process inside: {}", error(*errno))))
        }
        End::PortTaken(port) => Err((
            FailureClass::Environment,
            format!("port {port} is already open where the service should start"),
        )),
    };
    let &Ended { status, ref said, .. } = ended.map_err(|(class, reason)| Failure::new(class, reason))?;
    match taken.ran.cached.map(|cached| cached.pages) {
        Some(Some(0)) | None => {}
        Some(Some(left)) => {
            let reason = format!(
                "not as asked: {left} pages of `{program}` are still in the page cache after it was emptied: another process runs it, or \
                 it is in memory (tmpfs)"
            );
            return Err(Failure::new(FailureClass::Treatment, reason));
        }
        Some(None) => {
            let reason = format!("cannot find out whether `{program}` was in the page cache");
            return Err(Failure::new(FailureClass::Treatment, reason));
        }
    }
    let ended = match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, code) => format!("exit code {code}"),
        (false, _) => format!("signal {}", libc::WTERMSIG(status)),
    };
    let words = if said.is_empty() { &taken.seen.said } else { said };
    let told = |class, end: String| {
        let reason = format!("the command `{}` {end}", line::join(&wanted.words));
        Err(Failure::new(class, reason).with_words(words.as_bytes()))
    };
    let served = taken.served();
    let is_serving = served.is_some_and(|served| served.serving.is_some());
    match &wanted.ready {
        Some(_) if is_serving && served.is_some_and(|served| served.asked_to_end) => Ok(()),
        Some(ready) if !is_serving && served.is_some_and(|served| served.late) => {
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
    use dunnage_orders::work::Spent;

    use super::*;
    use crate::experiment::setting::interned;
    use crate::units::Stamp;

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

    fn taken(end: End) -> Taken {
        let (now, inside, seen) = (crate::sys::clock::now(), Inside::default(), Seen::default());
        let ran = Ran { program: None, sha256: None, cached: None, charged: None, end };
        let span = Span { began: now, ended: now };
        Taken { span, inside, ran, seen, sample: Sample::default(), dropped: None }
    }

    fn ended(status: i32, took: Took) -> End {
        End::Ended(Ended { status, said: "no such option".to_owned(), left_running: 0, took })
    }

    fn spent(most_memory: i64, own_memory: i64) -> Took {
        Took::Command(Spent { took: Nanos(3), user: Nanos(2), system: Nanos(1), most_memory, own_memory })
    }

    #[test]
    fn each_way_to_fail_is_told_with_its_class() {
        let wanted = Wanted::of(&setting(&[("cmd", "convert a"), ("mode", "run")])).unwrap();
        let failure = |end: End| check(&taken(end), &wanted, Nanos(7)).unwrap_err();
        let missing = failure(End::NotExecuted(libc::ENOENT));
        assert!(missing.reason.starts_with("`convert` does not exist inside"), "{missing}");
        assert_eq!(failure(End::NotExecuted(libc::EACCES)).class, FailureClass::Permission);
        let exited = failure(ended(1 << 8, spent(2, 1)));
        assert_eq!(exited.class, FailureClass::Crash);
        assert_eq!(exited.reason, "the command `convert a` ended with exit code 1");
        assert_eq!(exited.words.as_deref(), Some("no such option"));
        assert!(failure(ended(9, spent(2, 1))).reason.ends_with("signal 9"));
        assert_eq!(check(&taken(End::NotAsked), &wanted, Nanos(7)), Ok(()));
    }

    #[test]
    fn a_service_is_ready_late_or_gone_before() {
        let wanted =
            Wanted::of(&setting(&[("cmd", "serve"), ("mode", "run"), ("ready", "port 80")])).unwrap();
        let came_of = |taken: Taken| check(&taken, &wanted, Nanos(7));
        let served = |serving: Option<u64>, asked_to_end: bool, late: bool, status: i32| {
            let (forked, serving) = (Stamp(0), serving.map(Stamp));
            taken(ended(status, Took::Service(Served { forked, serving, asked_to_end, late })))
        };
        let told = |taken: Taken| came_of(taken).unwrap_err().to_string();
        assert_eq!(came_of(served(Some(1 << 40), true, false, 15)), Ok(()));
        assert_eq!(came_of(served(Some(1), false, false, 0)), Ok(()));
        let crashed = told(served(Some(1), false, false, 256));
        assert_eq!(crashed, "crash: the command `serve` ended with exit code 1: no such option");
        let late = told(served(None, true, true, 15));
        assert!(late.starts_with("timeout: the command `serve` was not ready (`port 80`) within"), "{late}");
        let before = told(served(None, false, false, 0));
        assert!(before.contains("ended with exit code 0 before it was ready (`port 80`)"), "{before}");
        assert!(told(taken(End::PortTaken(80))).starts_with("environment: port 80 is already open"));
        for pages in [Some(3), None] {
            let mut cold = served(Some(1), true, false, 15);
            cold.ran.cached = Some(Cached { pages, bytes: 4096 });
            assert!(told(cold).starts_with("treatment"));
        }
    }

    #[test]
    fn memory_that_is_not_the_commands_own_is_no_value() {
        let sample = |most: i64, own: i64| complete(&taken(ended(0, spent(most, own))), Nanos(5));
        assert_eq!(command::largest_process(&sample(2000, 1000)), Some(2000));
        assert_eq!(command::largest_process(&sample(1000, 1000)), None);
        assert_eq!(sample(1000, 1000).missing.len(), 2);
        assert_eq!(sample(2000, 1000).counter(names::START), Some(5));
    }

    #[test]
    fn memory_that_a_cgroup_was_charged_with_counts_where_the_container_has_it_to_itself() {
        let sample = |cgroup: &str, found: Result<u64, &str>| {
            let mut taken = taken(ended(0, spent(2, 1)));
            taken.sample.treatment.push(("cgroup".into(), cgroup.to_owned()));
            taken.ran.charged = Some(found.map_err(str::to_owned));
            let sample = complete(&taken, Nanos(5));
            let why = sample.missing.iter().find(|(name, _)| name == "peak_memory");
            (sample.counter(names::CHARGED_MEMORY), why.map(|(_, why)| why.clone()))
        };
        assert_eq!(sample("own", Ok(7)), (Some(7), None));
        assert_eq!(sample("own", Err("no file")), (None, Some("no file".to_owned())));
        for (whose, told) in [("host", "shares"), ("unknown", "cannot be seen")] {
            let (bytes, why) = sample(whose, Ok(7));
            assert!(bytes.is_none() && why.is_some_and(|why| why.contains(told)), "{whose}");
        }
    }
}
