//! CPU time of one launch, or of what is done with containers, counted by the run's listener, which hears all of the machine. Of
//! launches that overlap in time, each has its own client, and what the daemons started for its own containers; the rest of the
//! daemons' time belongs to all of them together.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dunnage_analysis::subject::kinds::{self, Duty};

use super::Cpu;
use super::observer::{Observed, Observer, Watched};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::sys::accounting::{Image, LaunchCpu, Tree, Window};
use crate::sys::clock;
use crate::units::Nanos;

/// How long what is left of a launch may keep running after the last command has returned.
pub(super) const GOING: Nanos = Nanos::from_millis(20_000);
/// A launch counts as done once no process that it started has run for this long.
const STILL: Nanos = Nanos::from_millis(100);

/// Counts CPU time.
#[derive(Default)]
pub(super) struct Account<'a> {
    window: Option<Window<'a>>,
}

impl<'a> Observer<'a> for Account<'a> {
    fn arm(&mut self, of: &Watched<'a>) -> Result<(), Abort> {
        self.window = of.listener.ok().map(|listener| listener.begin(of.daemons.unwrap_or_default()));
        Ok(())
    }

    /// Waits until nothing that was started meanwhile has run for [`STILL`]. What only sleeps by then is not waited for.
    fn settle(&mut self, of: &Watched<'a>) -> Result<(), Abort> {
        let Some(window) = &self.window else { return Ok(()) };
        let since = clock::now();
        let mut before = window.newborn(&of.own);
        while let Ok(cpu) = before
            && clock::now().since(since) < GOING
        {
            if of.interrupts.sleep(STILL.0 as u64) {
                return Err(Abort::Interrupted);
            }
            before = window.newborn(&of.own);
            if matches!(before, Ok(now) if now == cpu) {
                break;
            }
        }
        Ok(())
    }

    fn stop(&mut self, _: &Watched<'a>) {
        if let Some(window) = &mut self.window {
            window.end();
        }
    }

    fn facts(&mut self, of: &Watched<'a>, found: &mut Observed) -> Result<(), Abort> {
        let Some(window) = &self.window else {
            found.cpu = Err(of.listener.err().unwrap_or_default().to_owned());
            return Ok(());
        };
        let summed = window.so_far(of.client, &of.own);
        // Without its daemons, an engine's runtime is in no tree.
        if let (Ok(all), Some(runtime), Ok(_)) = (&summed, of.runtime, of.daemons)
            && !has_run(all, runtime)
        {
            let reason = format!("the runtime `{}` did not run", runtime.display());
            return Err(Failure::new(FailureClass::Treatment, reason).into());
        }
        let summed = summed.map_err(|why| why.to_string());
        // Without its daemons, part of an engine's CPU time would pass for the whole.
        let counted = of.daemons.map_err(str::to_owned).and(summed);
        found.cpu = counted.and_then(|all| cpu(&all, of, window.overlaps()));
        Ok(())
    }
}

/// Whether this file was executed, as far as it is there to be compared.
fn has_run(all: &LaunchCpu, runtime: &Path) -> bool {
    let trees = [&all.client, &all.own, &all.daemons];
    runtime.metadata().map_or(true, |file| trees.iter().any(|tree| tree.ran(file.dev(), file.ino())))
}

fn cpu(all: &LaunchCpu, of: &Watched<'_>, overlaps: bool) -> Result<Cpu, String> {
    let is_shared = overlaps && of.daemons.is_ok_and(|daemons| !daemons.is_empty());
    if is_shared && of.own.is_empty() {
        return Err(
            "another launch was counted at the same time, and which processes were whose is not known".into(),
        );
    }
    let engine: &[&Tree] = if is_shared { &[&all.own] } else { &[&all.own, &all.daemons] };
    let processes =
        || std::iter::once(&all.client).chain(engine.iter().copied()).flat_map(|tree| &tree.processes);
    Ok(Cpu {
        client: all.client.cpu() + of.client_cpu,
        engine: engine.iter().map(|tree| tree.cpu()).sum(),
        shared: if is_shared { all.daemons.cpu() } else { Nanos(0) },
        processes: processes().count() as i64,
        port_helpers: processes().filter(|one| one.images.iter().any(forwards_ports)).count() as i64,
    })
}

/// Whether a program forwards published ports and does nothing else, unlike a network in user space, which can do it too.
fn forwards_ports(image: &Image) -> bool {
    let name = image.path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let mut helpers = kinds::ALL.iter().flat_map(|kind| kind.helpers).filter(|one| one.duty == Duty::Ports);
    helpers.any(|one| name.starts_with(one.name))
}
