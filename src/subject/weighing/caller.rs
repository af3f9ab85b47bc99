//! A cgroup for dunnage and the clients that it starts, so that what containers leave to their caller is charged there and nowhere
//! else: podman makes a network namespace in its own command, runc inside the container.

use std::fs;
use std::path::{Path, PathBuf};

use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::resource::journal::Entry;
use crate::subject::{RunContext, Spec, resources};
use crate::sys::cgroup::CgroupPlan;
use crate::sys::memory::charged::Charging;

/// The file that moves a process with all its threads.
const MEMBERS: &str = "cgroup.procs";

/// The cgroup, while dunnage is in it.
pub struct Caller<'a> {
    plan: CgroupPlan,
    name: String,
    /// Where dunnage was before.
    before: PathBuf,
    directory: PathBuf,
    run: &'a RunContext,
    entry: Option<Entry>,
}

impl<'a> Caller<'a> {
    /// Makes it and goes in.
    ///
    /// # Errors
    /// If this user may not make cgroups that charge memory.
    pub fn begin(charging: &Charging, run: &'a RunContext) -> Result<Caller<'a>, Failure> {
        let (plan, name) = (run.cgroups()?.of_version(|own| own == charging.version()), run.next_name());
        let Some(directory) = plan.directories(&name).pop() else {
            return Err(Failure::environment("no cgroup that charges memory can be made here"));
        };
        // The floor removes cgroups by their name.
        let floor = Spec::parse("floor").expect("a kind of subject");
        let entry = run.note(resources::container(&floor, &name))?;
        let before = charging.own().to_owned();
        let caller = Caller { plan, name, before, directory, run, entry: Some(entry) };
        fs::create_dir(&caller.directory)
            .and_then(|()| enter(&caller.directory, std::process::id()))
            .or_environment(format_args!("cannot enter `{}`", caller.directory.display()))?;
        Ok(caller)
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The processes in it.
    pub fn members(&self) -> Vec<i32> {
        let listed = fs::read_to_string(self.directory.join(MEMBERS)).unwrap_or_default();
        listed.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Goes back and removes it. What clients have started there and left running goes along.
    pub fn end(mut self) -> Result<(), Abort> {
        self.leave()?;
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Failure> {
        let Some(entry) = self.entry.take() else { return Ok(()) };
        for pid in self.members() {
            // One that ends meanwhile is gone as well.
            let moved = enter(&self.before, pid as u32);
            if pid as u32 == std::process::id() {
                moved.or_environment(format_args!("cannot go back to `{}`", self.before.display()))?;
            }
        }
        self.plan.remove(&self.name).or_environment("a cgroup was left behind")?;
        self.run.cross_out(entry);
        Ok(())
    }
}

fn enter(directory: &Path, pid: u32) -> std::io::Result<()> {
    fs::write(directory.join(MEMBERS), pid.to_string())
}

/// Goes back after an error too. What cannot be removed stays in the journal.
impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let _ = self.leave();
    }
}
