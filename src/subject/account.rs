//! CPU time of one launch, counted by the run's listener. The listener sees the whole machine, so that launches at the same
//! time could not be told apart: the second of them has no CPU time, and says so.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{MutexGuard, TryLockError};

use super::{Cpu, RunContext};
use crate::sys::accounting::Listener;
use crate::units::Nanos;

/// A launch that is being listened to, or why it is not.
pub(super) struct Account<'a>(Result<MutexGuard<'a, Listener>, String>);

impl<'a> Account<'a> {
    /// Begins to listen to a launch for which these daemons work.
    pub fn begin(run: &'a RunContext, daemons: &[i32]) -> Account<'a> {
        let own =
            run.listener.as_ref().map_err(Clone::clone).and_then(|listener| match listener.try_lock() {
                Ok(own) => Ok(own),
                Err(TryLockError::Poisoned(own)) => Ok(own.into_inner()),
                Err(TryLockError::WouldBlock) => Err("another launch is counted at the same time".to_owned()),
            });
        Account(own.map(|mut listener| {
            listener.begin(daemons);
            listener
        }))
    }

    /// CPU time since then, and whether the runtime's executable was seen to run. The client is a child of ours, or this thread;
    /// `own` of its time counts too.
    pub fn finish(
        self,
        child: Option<i32>,
        own: Nanos,
        runtime: Option<&Path>,
    ) -> (Result<Cpu, String>, Option<bool>) {
        let finished = self.0.and_then(|mut listener| listener.finish(child).map_err(|why| why.to_string()));
        let all = match finished {
            Ok(all) => all,
            Err(why) => return (Err(why), None),
        };
        let processes = (all.client.processes.len() + all.daemons.processes.len()) as i64;
        let ran = runtime.and_then(|path| {
            let file = path.metadata().ok()?;
            Some(all.client.ran(file.dev(), file.ino()) || all.daemons.ran(file.dev(), file.ino()))
        });
        (Ok(Cpu { client: all.client.cpu() + own, engine: all.daemons.cpu(), processes }), ran)
    }
}
