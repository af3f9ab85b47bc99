//! The life of one container, verb by verb. A subject has one such container at a time and keeps its
//! state itself. Deliberately absent: what the verbs are good for; experiments decide that.

use super::Stage;
use crate::outcome::Abort;
use crate::probe::message::Message;
use crate::units::{Nanos, Stamp};

/// One verb, carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Right before the first system call that belongs to it.
    pub began: Stamp,
    /// Right after the end of its last command or request was reported.
    pub ended: Stamp,
}

impl Span {
    /// How long it took.
    pub fn took(self) -> Nanos {
        self.ended.since(self.began)
    }
}

/// A second process that was started in a running container, and has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Entered {
    /// Right before the system call that starts the command.
    pub spawned: Stamp,
    /// When its end was reported.
    pub returned: Stamp,
    /// What the probe said from inside.
    pub message: Message,
    /// What was found inside, as recorded with the sample.
    pub treatment: Vec<(&'static str, String)>,
}

/// The verbs. They come in the order of their declaration, `exec` as often as wanted; after a failure
/// only `discard` may follow. Every one that makes something writes it into the journal before.
pub trait Verbs {
    /// Makes a container whose program is the probe with the task to stay; it does not run yet.
    fn create(&mut self, stage: &mut Stage) -> Result<Span, Abort>;
    /// Starts its program.
    fn start(&mut self, stage: &mut Stage) -> Result<Span, Abort>;
    /// Runs the probe as a second process inside, and checks the treatment that it finds.
    fn exec(&mut self, stage: &mut Stage) -> Result<Entered, Abort>;
    /// Asks its program to end by SIGTERM, and waits until it has.
    fn stop(&mut self, stage: &mut Stage) -> Result<Span, Abort>;
    /// Removes it.
    fn delete(&mut self, stage: &mut Stage) -> Result<Span, Abort>;
    /// Removes what is left of it, whatever state it is in; without one does nothing. What cannot be
    /// removed stays in the journal.
    fn discard(&mut self, stage: &mut Stage);
}
