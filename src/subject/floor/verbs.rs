//! The verbs of the floor, divided as a runtime's: `create` makes the cgroups and directories, `start` clones
//! the child that sets up its inside and executes the program, `exec` is `setns`, fork and exec, `stop` sends
//! SIGTERM and reaps, `remove` removes cgroups and directories.

use std::ffi::CString;

use super::super::client::Terminal;
use super::{Floor, cannot_make};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::PROBE;
use crate::resource::Found;
use crate::subject::draft::{Draft, Entered, Said, Span, Verbs, nothing_runs, seconds, stopped};
use crate::subject::limits::{self, Limits};
use crate::subject::{Attachment, Entrypoint};
use crate::sys::clock;
use crate::sys::container::{Entrance, LaunchError, Made, Prepared, Running};
use crate::sys::spawn::Unfinished;
use crate::units::Nanos;

/// A container of the floor.
pub(super) struct OfFloor<'a> {
    draft: Draft<'a>,
    prepared: Prepared,
    made: Option<Made>,
    running: Option<Running>,
    /// Prepared entries, by the arguments of the probe that enters.
    entrances: Vec<(Vec<String>, Entrance)>,
}

fn refused(error: LaunchError) -> Failure {
    Failure::environment(format!("cannot make a container: {:#}", anyhow::Error::new(error)))
}

pub(super) fn unfinished(why: Unfinished) -> Abort {
    match why {
        Unfinished::Interrupted => Abort::Interrupted,
        why => Failure::new(FailureClass::Timeout, format!("the probe inside did not end: {why:?}")).into(),
    }
}

impl<'a> OfFloor<'a> {
    /// What is prepared before the first verb.
    pub fn new(floor: &Floor, draft: Draft<'a>) -> Result<OfFloor<'a>, Failure> {
        let mut prepared = floor.container(draft.run, &draft.directory, draft.entrypoint())?;
        let attachment = draft.request.network.as_ref();
        if let Some(namespace) = attachment.map(Attachment::namespace).transpose()?.flatten() {
            prepared.join(namespace);
        }
        Ok(OfFloor { draft, prepared, made: None, running: None, entrances: Vec::new() })
    }

    /// The entry for a probe with these arguments, prepared when it is first needed.
    fn entrance(&mut self, words: Vec<String>) -> Result<usize, Failure> {
        if let Some(at) = self.entrances.iter().position(|(own, _)| *own == words) {
            return Ok(at);
        }
        let all = [EXECUTABLE, PROBE].into_iter().chain(words.iter().map(String::as_str)).map(CString::new);
        let arguments: Vec<_> = all.collect::<Result<_, _>>().or_environment("cannot enter a container")?;
        let entrance = self.prepared.entrance(arguments);
        let entrance = entrance.or_environment("cannot map a stack")?;
        self.entrances.push((words, entrance));
        Ok(self.entrances.len() - 1)
    }
}

impl Verbs for OfFloor<'_> {
    fn is_its_own_client(&self) -> bool {
        true
    }

    fn create(&mut self) -> Result<Span, Abort> {
        let made = self.prepared.make(&self.draft.name);
        let made = self.made.insert(made.map_err(|failed| cannot_make(failed, FailureClass::Environment))?);
        Ok(Span { began: made.began, ended: made.ended })
    }

    fn start(&mut self) -> Result<Span, Abort> {
        let made = self.made.as_ref().ok_or_else(nothing_runs)?;
        let started = self.prepared.start(made).map_err(refused)?;
        let ended = clock::now();
        let span = Span { began: started.child.spawned, ended };
        self.running = Some(started);
        Ok(span)
    }

    fn exec(&mut self, entrypoint: Entrypoint<'_>) -> Result<Entered, Abort> {
        let at = self.entrance(entrypoint.words(self.draft.expected.detail()))?;
        let (Some(made), Some(running)) = (&self.made, &self.running) else {
            return Err(nothing_runs().into());
        };
        let run = self.draft.run;
        let (_, entrance) = &mut self.entrances[at];
        let reading = entrypoint.reading();
        let before = clock::thread_cpu();
        let child = self.prepared.enter(made, running.child.pid, entrance).map_err(refused)?;
        let child = child.read(reading);
        let ended = child.wait(entrypoint.allowed(run), Some(&run.interrupts)).map_err(unfinished)?;
        let client_cpu = Nanos(clock::thread_cpu().0 - before.0);
        let entered = self.draft.entered("the probe that entered", &ended, Terminal::No, entrypoint)?;
        Ok(Entered { client_cpu, ..entered })
    }

    fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        let running = self.running.take().ok_or_else(nothing_runs)?;
        let began = clock::now();
        let sent = if grace > 0 { running.child.signal(libc::SIGTERM) } else { Ok(()) };
        // At the end of its grace it is killed.
        let gone = running.wait(seconds(grace), Some(&self.draft.run.interrupts));
        sent.or_environment("cannot send SIGTERM")?;
        stopped(gone.end)?;
        Ok(Span { began, ended: gone.reaped })
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        let made = self.made.take().ok_or_else(nothing_runs)?;
        let began = clock::now();
        let removed = made.remove();
        let ended = clock::now();
        removed.or_environment("a container was left behind")?;
        Ok(Span { began, ended })
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        self.running.as_ref().map(|running| running.child.pid).ok_or_else(nothing_runs)
    }

    fn logs(&mut self) -> Result<Said, Abort> {
        let running = self.running.as_mut().ok_or_else(nothing_runs)?;
        Ok(Said::known(running.child.output()))
    }

    fn update(&mut self, asked: &Limits) -> Result<Span, Abort> {
        let made = self.made.as_ref().ok_or_else(nothing_runs)?;
        let began = clock::now();
        let written = self.prepared.limit(made, &asked.of_cgroup());
        let ended = clock::now();
        written.map_err(|error| limits::refused(&error))?;
        Ok(Span { began, ended })
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        if let Some(running) = self.running.take() {
            // With a deadline that has passed, `wait` kills and reaps it.
            let _ = running.wait(Nanos(0), None);
        }
        let Some(made) = self.made.take() else { return Ok(Found::Yes) };
        made.remove().or_environment("a container was left behind")?;
        Ok(Found::Yes)
    }
}
