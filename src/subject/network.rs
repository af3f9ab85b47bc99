//! Networks of ours, which join containers of one subject: a bridge of the floor, or what an engine makes when it is asked for one.
//! Those of engines outlive us, and so stand in the journal; the floor's goes with its last container.

use std::sync::Arc;

use super::{RunContext, Subject, resources};
use crate::outcome::{Abort, Failure};
use crate::resource::journal::Entry;
use crate::sys::bridge::Bridge;

/// A network. It is removed when this goes, after the containers that joined it.
pub struct Network<'a> {
    joint: Joint,
    run: &'a RunContext,
    subject: &'a dyn Subject,
    entry: Option<Entry>,
}

/// What a container is told of the network that it is to join.
#[derive(Debug, Clone)]
pub struct Joint {
    /// Its name.
    pub(super) name: String,
    /// The bridge, where nobody else keeps it.
    pub(super) bridge: Option<Arc<Bridge>>,
}

impl<'a> Network<'a> {
    /// Makes a network of this subject.
    pub fn create(subject: &'a dyn Subject, run: &'a RunContext) -> Result<Network<'a>, Abort> {
        let name = run.next_name();
        let entry = run.note(resources::network(subject.spec(), &name))?;
        let joint = Joint { name: name.clone(), bridge: None };
        let mut made = Network { joint, run, subject, entry: Some(entry) };
        made.joint.bridge = subject.make_network(&name, run)?.map(Arc::new);
        Ok(made)
    }

    /// What containers need to join it.
    pub fn joint(&self) -> Joint {
        self.joint.clone()
    }

    /// Removes it.
    pub fn remove(mut self) -> Result<(), Failure> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), Failure> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        // What cannot be removed stays in the journal.
        self.subject.remove_network(&self.joint.name)?;
        self.run.cross_out(entry);
        Ok(())
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        let _ = self.undo();
    }
}
