//! `density`: a series or bursts of starts; what the machine did meanwhile, and what the containers use of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dunnage_analysis::subject::room::Resource;
use dunnage_orders::network::Usage;

use super::{Stamps, memory, sample_of, variables_of};
use crate::experiment::Setting;
use crate::experiment::density::{at_once, containers, idle, names, recorded, room_for, until};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::burst::{self, Outcome};
use crate::subject::helpers::{Helping, Working};
use crate::subject::machine::Machine;
use crate::subject::ramp::Furnish;
use crate::subject::room::{self, Kept};
use crate::subject::{Container, ContainerRequest, Resident, RunContext, Subject};
use crate::sys::accounting::{Client, Listener};
use crate::sys::block_device::{self, Counters, Number};
use crate::sys::ticks::Ticks;
use crate::sys::waiters::{self, File};
use crate::sys::{clock, limits, process, raw};
use crate::units::{Nanos, Stamp};

/// How often it is looked who waits for a lock.
const LOOK: Duration = Duration::from_millis(10);
/// Programs of the user's have taken their memory once what is available changes by less than this in this time, or after as many.
const STILL: i64 = 16 << 20;
const FILLS: Nanos = Nanos::from_millis(1_000);
const PATIENCE: usize = 30;
/// How many files dunnage holds for each container, and for itself.
const FILES: u64 = 4;
const OWN_FILES: u64 = 200;
/// What so many containers use says how many fit; and so many more are tried.
const TRIED: usize = 10;
const BEYOND: usize = 3;
/// In a longer series there are more switches of tasks than should be kept in memory.
const COUNTED: usize = 200;
/// How long an engine may still be busy with what was removed.
const CALM: Nanos = Nanos::from_millis(500);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let (subject, machine) = (&*subject, subject.machine());
    let (count, at_once) = (containers(setting), at_once(setting));
    if until(setting).is_none() {
        check_own_files(count)?;
    }
    // The clock of a script goes on in one thread.
    let workers = if machine.is_scripted() { 1 } else { at_once };
    let program = memory::program(setting)?;
    let own = program.is_some();
    let (request, mut furnish) = match program {
        Some(own) => memory::of_program(own, variables_of(setting, run)?.to_vec(), run),
        None => {
            let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
            (request, Box::new(|_: &mut Container<'_>| Ok(())) as Furnish<'_>)
        }
    };
    let helping = Helping::begin(subject);
    // What an engine does once, for the first container of all, is no part of a series.
    let mut first = begun(burst::start(subject, &request, (1, 1), run)?)?;
    let process = first.started[0].container.first_process().ok();
    let behind = machine.behind(process, Path::new("/"));
    let kept = Kept::of(subject, process);
    first.remove(1)?;
    machine.rest(run, CALM)?;
    let kept = kept.below(behind.as_ref().and_then(|behind| behind.upper.as_deref()));
    let before = machine.room(subject, &kept, 0);
    let device = behind.as_ref().and_then(|behind| behind.device);
    let start = |count: usize| burst::start(subject, &request, (count, workers), run);
    let mut predicted = None;
    let work = || {
        let Some(resource) = until(setting) else { return start(count) };
        let mut outcome = begun(start(TRIED.min(count))?)?;
        let alive = outcome.started.len();
        let room = machine.room(subject, &kept, alive).since(&before, alive);
        let more = predicted_more(resource, &room, (alive, count), machine.is_scripted())?;
        predicted = Some(alive + more);
        outcome.extend(start(more + BEYOND)?);
        Ok(outcome)
    };
    let (outcome, watched) = watched((subject, run, count), device, work);
    let mut outcome = begun(outcome?)?;
    outcome.started.iter_mut().try_for_each(|one| furnish(&mut one.container))?;
    if own {
        until_filled(machine, run)?;
        // One that has ended does not answer.
        outcome.started.iter_mut().try_for_each(|one| one.container.ask(Usage {}, Nanos(0)).map(drop))?;
    }
    let used = match idle(setting) {
        Some(time) => Some((used_idly(&mut outcome, (subject, helping), (time, run))?, time)),
        None => None,
    };
    let alive = outcome.started.len();
    let room = machine.room(subject, &kept, alive).since(&before, alive);
    let mut sample = sample(&mut outcome)?;
    sample.extend(predicted.map(|count| (names::PREDICTED, count as i64)));
    sample.add(names::AT_ONCE, at_once as i64);
    sample.extend(room.into_iter().map(|(resource, numbers)| (recorded(resource), numbers.to_vec())));
    watched.add_to(&mut sample);
    if let Some((used, time)) = used {
        sample.extend([(names::IDLE_CPU, used), (names::IDLED, time.0)]);
    }
    let removed = outcome.remove(workers)?;
    sample.add(names::REMOVED, removed.iter().map(|span| span.took().0).collect::<Vec<i64>>());
    Ok(sample)
}

/// Whether dunnage may hold as many files as channels to so many containers are.
fn check_own_files(count: usize) -> Result<(), Failure> {
    let (needed, limit) = (count as u64 * FILES + OWN_FILES, limits::open_files_now());
    if needed <= limit {
        return Ok(());
    }
    Err(Failure::environment(format!(
        "{count} containers need {needed} open files of dunnage, whose limit is {limit}: raise it, as with `ulimit -n {needed}`"
    )))
}

/// Waits until programs have taken their memory.
fn until_filled(machine: &dyn Machine, run: &RunContext) -> Result<(), Abort> {
    let available = || machine.memory_now().map_or(0, |memory| memory.available);
    let mut before = available();
    for _ in 0..PATIENCE {
        machine.rest(run, FILLS)?;
        let now = available();
        if (before - now).abs() < STILL {
            break;
        }
        before = now;
    }
    Ok(())
}

/// How many more there should be room for next to those that run.
fn predicted_more(
    resource: Resource,
    room: &[(Resource, [i64; 3])],
    (alive, most): (usize, usize),
    is_scripted: bool,
) -> Result<usize, Failure> {
    let words = resource.words();
    let fits =
        |(of, numbers): &(Resource, [i64; 3])| Some((room_for(*of, *numbers, alive)?.fits as usize, *of));
    let all: Vec<(usize, Resource)> = room.iter().filter_map(fits).collect();
    let Some((fits, _)) = all.iter().copied().find(|(_, of)| *of == resource) else {
        let is_counted = room.iter().any(|(of, _)| *of == resource);
        let reason = if is_counted {
            format!("{alive} containers use no {words} that can be told from what others use")
        } else {
            format!("how many {words} there are for it is not known here")
        };
        return Err(Failure::new(FailureClass::Unsupported, reason));
    };
    let numbers = room.iter().find(|(of, _)| *of == resource).map(|(_, [.., limit])| *limit);
    if resource == Resource::Tasks && numbers.is_some() && numbers == room::tasks_of_all() && !is_scripted {
        let reason = "nothing limits tasks but the machine's own number of them, which others need too";
        return Err(Failure::environment(reason));
    }
    let first = all.into_iter().min_by_key(|(fits, _)| *fits).filter(|(first, _)| *first < fits);
    if let Some((count, first)) = first {
        let reason = format!(
            "{} end first, with {count} containers, and {words} with {fits}: `--set until={}`",
            first.words(),
            first.key()
        );
        return Err(Failure::environment(reason));
    }
    if fits > most {
        let reason =
            format!("there is room for {fits} by {words}, which are more than the {most} that are tried");
        return Err(Failure::environment(reason));
    }
    check_own_files(fits + BEYOND)?;
    Ok(fits.saturating_sub(alive))
}

/// CPU time that daemons and helpers use in this time, in which all containers do nothing.
fn used_idly(
    outcome: &mut Outcome<'_>,
    (subject, helping): (&dyn Subject, Helping),
    (time, run): (Nanos, &RunContext),
) -> Result<i64, Abort> {
    let firsts = outcome.started.iter_mut().filter_map(|one| one.container.first_process().ok());
    let working = helping.find(subject.daemons().unwrap_or_default(), &firsts.collect::<Vec<i32>>());
    let cpu = |one: &Working| {
        let is_there = process::read(one.process.pid).is_some_and(|now| now.is_same(&one.process));
        clock::process_cpu(one.process.pid).ok().filter(|_| is_there)
    };
    let before: Vec<_> = working.iter().map(cpu).collect();
    subject.machine().rest(run, time)?;
    // What a helper that has ended meanwhile used is not known.
    Ok(working.iter().zip(before).filter_map(|(one, before)| Some(cpu(one)?.0 - before?.0)).sum())
}

/// Those that run and have said so; if there is none, why.
fn begun(mut outcome: Outcome<'_>) -> Result<Outcome<'_>, Abort> {
    outcome.until_ready()?;
    if outcome.started.is_empty() {
        let why = outcome.failed.into_iter().next();
        return Err(why.unwrap_or_else(|| Failure::environment("no container was started")).into());
    }
    Ok(outcome)
}

/// The times of all starts.
fn sample(outcome: &mut Outcome<'_>) -> Result<Sample, Abort> {
    let treatment = outcome.started.last_mut().map(|last| last.container.treatment()).transpose()?;
    let mut sample = sample_of(Stamps::new(), &treatment.unwrap_or_default());
    let started = &outcome.started;
    let origin = started.first().map_or(Stamp(0), |one| one.span.began);
    let all = |of: &dyn Fn(&burst::Started<'_>) -> Option<i64>| {
        started.iter().map(of).collect::<Option<Vec<i64>>>()
    };
    let began = all(&|one| Some(one.span.began.since(origin).0));
    let returned = all(&|one| Some(one.span.took().0));
    let first = all(&|one| Some(one.first?.since(one.span.began).0));
    for (name, values) in [(names::BEGAN, began), (names::RETURNED, returned), (names::FIRST_RUN, first)] {
        sample.extend(values.map(|values| (name, values)));
    }
    let asked = outcome.asked;
    sample.add(names::ASKED, asked as i64);
    if let Some(first) = outcome.failed.first() {
        let (failed, class) = (asked - started.len(), first.class.name());
        let words = first.words.as_deref().unwrap_or(&first.reason);
        sample.add(
            names::FAILED,
            format!("{failed} of {asked} starts failed or were not tried, first: {class}: {words}"),
        );
    }
    Ok(sample)
}

/// What the machine did meanwhile.
#[derive(Default)]
struct Watched {
    elapsed: Nanos,
    /// CPU time of all that worked for the starts, or why it is not known.
    cpu: Option<Result<Nanos, String>>,
    ticks: Option<Ticks>,
    /// Of the device on which the containers are.
    flushed: Option<Counters>,
    looks: i64,
    /// In how many looks a process waited for the lock on a file, with its path if that was found.
    waited: BTreeMap<File, (i64, Option<PathBuf>)>,
}

/// Ends the looking, also after a panic.
struct Until<'a>(&'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does this while it watches the machine, and the device on which the containers are.
fn watched<T>(
    (subject, run, count): (&dyn Subject, &RunContext, usize),
    device: Option<Number>,
    work: impl FnOnce() -> T,
) -> (T, Watched) {
    if subject.machine().is_scripted() {
        return (work(), Watched::default());
    }
    let done = AtomicBool::new(false);
    let many = format!("more than {COUNTED} starts are too many to be counted");
    let listener = if count > COUNTED { Err(&many) } else { run.listener.as_ref() };
    let daemons = subject.daemons();
    let window = listener.map(|listener| listener.begin(daemons.unwrap_or_default()));
    let own_cpu = || clock::process_cpu(std::process::id() as i32).unwrap_or(Nanos(0));
    let disk = || block_device::counters(device?).ok();
    // Who waits already waits for something else.
    let waiting: BTreeSet<File> = waiters::waited().unwrap_or_default().into_keys().collect();
    let (ticks, disk_before, began, own) = (Ticks::now(), disk(), clock::now(), own_cpu());
    let (value, mut watched) = thread::scope(|scope| {
        let daemons = daemons.unwrap_or_default();
        let looking = scope.spawn(|| looked(listener.ok(), (&waiting, daemons), &done));
        let value = {
            let _until = Until(&done);
            work()
        };
        (value, looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    watched.elapsed = clock::now().since(began);
    watched.ticks = Ticks::now().zip(ticks).and_then(|(now, before)| now.since(before));
    let own = Nanos(own_cpu().0 - own.0);
    let others = window.map_err(Clone::clone).and_then(|mut window| {
        window.end();
        let all = window.so_far(Client::All, &[]).map_err(|why| format!("{why:#}"))?;
        Ok(all.client.cpu() + all.daemons.cpu())
    });
    // Without its daemons, part of an engine's CPU time would pass for the whole.
    let others = daemons.map_err(str::to_owned).and(others);
    watched.cpu = Some(others.map(|others| others + own));
    watched.flushed = disk().zip(disk_before).and_then(|(now, before)| now.since(before));
    (value, watched)
}

/// Looks who waits for a lock until this is done. Anyone may wait for any file, so of root's processes and dunnage's own those count that
/// dunnage or a daemon has started, or that have come since: engines detach what watches over a container.
fn looked(
    listener: Option<&Listener>,
    (before, daemons): (&BTreeSet<File>, &[i32]),
    done: &AtomicBool,
) -> Watched {
    let (user, own) = (raw::user_and_group().0 as u32, std::process::id() as i32);
    let there: BTreeSet<i32> = process::all().map(|one| one.pid).collect();
    let is_ours = |pid: i32| {
        let above = process::parents(pid);
        let is_new = above.last().is_none_or(|top| !there.contains(top)) && !there.contains(&pid);
        process::user_of(pid).is_some_and(|found| found == 0 || found == user)
            && (is_new || above.iter().chain([&pid]).any(|one| *one == own || daemons.contains(one)))
    };
    let mut watched = Watched::default();
    while !done.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        if let Some(listener) = listener {
            listener.drain();
        }
        let Ok(waiting) = waiters::waited() else { continue };
        watched.looks += 1;
        for (file, pid) in waiting.into_iter().filter(|(file, pid)| !before.contains(file) && is_ours(*pid)) {
            let (count, known) = watched.waited.entry(file.clone()).or_default();
            *count += 1;
            if known.is_none() {
                *known = waiters::path(&file, pid);
            }
        }
    }
    watched
}

impl Watched {
    fn add_to(self, sample: &mut Sample) {
        let Watched { elapsed, cpu, ticks, flushed, looks, waited } = self;
        match cpu {
            Some(Ok(cpu)) => sample.add(names::OWN_CPU, cpu.0),
            Some(Err(why)) => sample.lacks(&["cpu"], &why),
            None => {}
        }
        if let Some(spent) = ticks {
            sample.extend([
                (names::ELAPSED, elapsed.0),
                (names::BUSY, Ticks::time(spent.busy).0),
                (names::STOLEN, Ticks::time(spent.steal).0),
                (names::CPUS, spent.cpus.into()),
            ]);
        }
        if let Some(Counters { flushes: Some(count), flushing: Some(millis), .. }) = flushed {
            let millis = Nanos::from_millis(millis as i64);
            sample.extend([(names::FLUSHES, count as i64), (names::FLUSHING, millis.0)]);
        }
        if looks > 0 {
            let most = waited.into_values().max_by_key(|(count, _)| *count);
            let (count, path) = most.unwrap_or_default();
            sample.extend([(names::LOOKS, looks), (names::WAITED, count)]);
            // Any user names files.
            let path = path
                .map(|path| path.display().to_string().replace(|c: char| c.is_control() || c == '`', "?"));
            sample.extend(path.map(|path| (names::LOCK, path)));
        }
    }
}
