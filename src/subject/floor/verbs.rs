//! The life of a container of the floor, cut where a runtime's verbs cut it: `create` makes the cgroups
//! and directories, `start` clones the child that builds its inside and executes, `exec` is `setns`,
//! fork and exec, `stop` sends SIGTERM and reaps, `delete` removes cgroups and directories.

use std::ffi::CString;
use std::path::PathBuf;

use super::super::verbs::{self, Entered, Span, Standing, Verbs};
use super::{Floor, cannot_make, environment};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::{LIMITS, PROBE};
use crate::resource;
use crate::resource::journal::Entry;
use crate::subject::limits::Limits;
use crate::subject::{Mount, Order, RunContext};
use crate::sys::clock;
use crate::sys::container::{Entrance, LaunchError, Made, Prepared, Running};
use crate::sys::spawn::Unfinished;
use crate::units::Nanos;

/// What stays between the verbs.
#[derive(Debug, Default)]
pub(super) struct Life {
    /// What containers that stay are made with, once the first was wanted.
    kind: Option<StayingKind>,
    /// The container, while there is one.
    standing: Option<Standing>,
    made: Option<Made>,
    running: Option<Running>,
}

#[derive(Debug)]
struct StayingKind {
    prepared: Prepared,
    /// What is bound into them.
    mounts: Vec<Mount>,
    /// Ways in, by the words of who enters.
    entrances: Vec<(Vec<String>, Entrance)>,
    scratch: PathBuf,
    entry: Entry,
}

fn refused(error: LaunchError) -> Failure {
    environment(format!("cannot make a container: {:#}", anyhow::Error::new(error)))
}

fn unfinished(why: Unfinished) -> Abort {
    match why {
        Unfinished::Interrupted => Abort::Interrupted,
        why => Failure::new(FailureClass::Timeout, format!("the probe inside did not end: {why:?}")).into(),
    }
}

impl Floor {
    /// What containers with these mounts are made with. No container stands when the mounts change.
    fn staying_kind(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<&mut StayingKind, Failure> {
        if self.life.kind.as_ref().is_some_and(|kind| kind.mounts != mounts) {
            self.drop_kind(run);
        }
        if self.life.kind.is_none() {
            let scratch = run.workspace().join(run.next_name());
            let entry = run.note(resource::directory(&scratch))?;
            let prepared = match self.container(run, &scratch, Order::Stay(mounts)) {
                Ok(prepared) => prepared,
                Err(failure) => {
                    let _ = std::fs::remove_dir_all(&scratch);
                    run.cross_out(entry);
                    return Err(failure);
                }
            };
            let mounts = mounts.to_vec();
            self.life.kind = Some(StayingKind { prepared, mounts, entrances: Vec::new(), scratch, entry });
        }
        Ok(self.life.kind.as_mut().expect("made right before"))
    }

    /// Ends the life, and what lives were made with.
    pub(super) fn finish_life(&mut self, run: &RunContext) {
        self.discard(run);
        self.drop_kind(run);
    }

    fn drop_kind(&mut self, run: &RunContext) {
        if let Some(kind) = self.life.kind.take() {
            let disposed = kind.prepared.dispose();
            if std::fs::remove_dir_all(&kind.scratch).is_ok() || disposed.is_ok() {
                run.cross_out(kind.entry);
            }
        }
    }
}

impl StayingKind {
    /// The way in for a probe with these words, made when it is first wanted.
    fn entrance(&mut self, words: Vec<String>) -> Result<usize, Failure> {
        if let Some(at) = self.entrances.iter().position(|(own, _)| *own == words) {
            return Ok(at);
        }
        let all = [EXECUTABLE, PROBE].into_iter().chain(words.iter().map(String::as_str)).map(CString::new);
        let arguments: Vec<_> =
            all.collect::<Result<_, _>>().map_err(|_| environment("an argument holds a zero byte"))?;
        let entrance = self.prepared.entrance(arguments);
        let entrance = entrance.map_err(|error| environment(format!("cannot map a stack: {error}")))?;
        self.entrances.push((words, entrance));
        Ok(self.entrances.len() - 1)
    }
}

impl Verbs for Floor {
    fn create_for(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<Span, Abort> {
        self.staying_kind(run, mounts)?;
        let standing = Standing::announce(run, &self.spec)?;
        let kind = self.staying_kind(run, mounts)?;
        match kind.prepared.make(&standing.name) {
            Ok(made) => {
                let span = Span { began: made.began, ended: made.ended };
                self.life.made = Some(made);
                self.life.standing = Some(standing);
                Ok(span)
            }
            Err(failed) => {
                run.cross_out(standing.entry);
                Err(cannot_make(failed, FailureClass::Environment).into())
            }
        }
    }

    fn start(&mut self, _: &RunContext) -> Result<Span, Abort> {
        let Life { kind: Some(kind), made: Some(made), running, .. } = &mut self.life else {
            return Err(verbs::nothing_stands().into());
        };
        let started = kind.prepared.start(made).map_err(refused)?;
        let ended = clock::now();
        let span = Span { began: started.spawned(), ended };
        *running = Some(started);
        Ok(span)
    }

    fn enter(&mut self, order: Order<'_>, run: &RunContext) -> Result<Entered, Abort> {
        let words = order.words(self.limit.map(|_| LIMITS));
        let Life { kind: Some(kind), made: Some(made), running: Some(running), .. } = &mut self.life else {
            return Err(verbs::nothing_stands().into());
        };
        let at = kind.entrance(words)?;
        let (_, entrance) = &mut kind.entrances[at];
        let child = kind.prepared.enter(made, running.pid(), entrance).map_err(refused)?;
        let ended = child.wait(order.allowed(run), Some(&run.interrupts)).map_err(unfinished)?;
        let terminal = super::client::Terminal::No;
        let entered = verbs::entered(run, "the probe that entered", &ended, &self.expected, terminal)?;
        if let Some(limits) = Limits::of(&self.spec) {
            limits.check(&entered.message.inside)?;
        }
        Ok(entered)
    }

    fn stop(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let running = self.life.running.take().ok_or_else(verbs::nothing_stands)?;
        let began = clock::now();
        let sent = running.signal(libc::SIGTERM);
        let gone = running.wait(run.allowed, Some(&run.interrupts));
        sent.map_err(|error| environment(format!("cannot send SIGTERM: {error}")))?;
        gone.end.map_err(unfinished)?;
        Ok(Span { began, ended: gone.reaped })
    }

    fn delete(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let made = self.life.made.take().ok_or_else(verbs::nothing_stands)?;
        let began = clock::now();
        let removed = made.remove();
        let ended = clock::now();
        removed.map_err(|why| environment(format!("a container was left behind: {why}")))?;
        if let Some(standing) = self.life.standing.take() {
            run.cross_out(standing.entry);
        }
        Ok(Span { began, ended })
    }

    fn discard(&mut self, run: &RunContext) {
        if let Some(running) = self.life.running.take() {
            // At a deadline that is over, it is killed and reaped.
            let _ = running.wait(Nanos(0), None);
        }
        let removed = self.life.made.take().is_none_or(|made| made.remove().is_ok());
        if let Some(standing) = self.life.standing.take().filter(|_| removed) {
            run.cross_out(standing.entry);
        }
    }
}
