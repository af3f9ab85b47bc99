//! CPU time of one launch, or of entries into one container, counted by the run's listener. The listener sees
//! the whole machine and cannot tell simultaneous launches apart: the second one has no CPU time, and the
//! reason is recorded.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{MutexGuard, TryLockError};

use super::{Cpu, RunContext};
use crate::outcome::Abort;
use crate::sys::accounting::{Client, Image, LaunchCpu, Listener};
use crate::sys::clock;
use crate::units::Nanos;

/// A launch counts as done once no process that it started has run for this long.
const STILL: Nanos = Nanos::from_millis(100);
/// How long the processes of a launch may keep running after the last command has returned.
const GOING: Nanos = Nanos::from_millis(20_000);

/// Programs that forward published ports and do nothing else, unlike a network in user space, which can
/// forward ports too.
const PORT_HELPERS: [&str; 3] = ["docker-proxy", "rootlesskit-docker-proxy", "rootlessport"];

/// A launch that is being counted, or the reason why it is not.
pub struct Account<'a>(Result<MutexGuard<'a, Listener>, String>);

impl<'a> Account<'a> {
    /// Starts counting a launch for which these daemons work.
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

    /// CPU time since `begin`, and whether the runtime's executable was seen to run. The client is a child of
    /// dunnage, or this thread; `own`, that thread's time, is included.
    pub fn finish(
        self,
        child: Option<i32>,
        own: Nanos,
        runtime: Option<&Path>,
    ) -> (Result<Cpu, String>, Option<bool>) {
        let client = child.map_or(Client::Launcher, Client::Child);
        let finished = self.0.and_then(|mut listener| listener.so_far(client).map_err(|why| why.to_string()));
        let all = match finished {
            Ok(all) => all,
            Err(why) => return (Err(why), None),
        };
        let ran = runtime.and_then(|path| {
            let file = path.metadata().ok()?;
            Some(all.client.ran(file.dev(), file.ino()) || all.daemons.ran(file.dev(), file.ino()))
        });
        (Ok(Cpu { client: all.client.cpu() + own, ..summed(&all) }), ran)
    }

    /// CPU time since `begin` of everything that this process started and of the daemons, once none of it has
    /// run for [`STILL`]: a monitor still cleans up after an entry has returned. Processes that only sleep by
    /// then are not waited for.
    pub fn settle(self, run: &RunContext) -> Result<Result<Cpu, String>, Abort> {
        let mut listener = match self.0 {
            Ok(listener) => listener,
            Err(why) => return Ok(Err(why)),
        };
        let since = clock::now();
        let mut before = listener.newborn();
        while let Ok(cpu) = before
            && clock::now().since(since) < GOING
        {
            run.quiet(STILL)?;
            before = listener.newborn();
            if matches!(before, Ok(now) if now == cpu) {
                break;
            }
        }
        let all = before.and_then(|_| listener.so_far(Client::Children));
        Ok(all.map(|all| summed(&all)).map_err(|why| why.to_string()))
    }
}

fn is_port_helper(image: &Image) -> bool {
    let name = image.path.as_deref().and_then(|path| path.rsplit('/').next());
    name.is_some_and(|name| PORT_HELPERS.contains(&name))
}

fn summed(all: &LaunchCpu) -> Cpu {
    let processes = || all.client.processes.iter().chain(&all.daemons.processes);
    let helpers = processes().filter(|one| one.images.iter().any(is_port_helper));
    Cpu {
        client: all.client.cpu(),
        engine: all.daemons.cpu(),
        processes: processes().count() as i64,
        port_helpers: helpers.count() as i64,
    }
}
