//! Starts a program inside cgroups that were made for it: it enters them before its first instruction, or is
//! born there in version 2, and everything that it does is counted and limited there.
//!
//! `posix_spawn` cannot do that, so the child is cloned as it clones it and makes the calls that were
//! written down before the stamp, as in `identity`.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::super::birth::{self, Born, Stack};
use super::super::cgroup::{Birth, CgroupPlan, Version};
use super::super::clock;
use super::super::identity;
use super::super::steps::Step;
use super::Program;
use crate::units::Stamp;

/// The cgroups of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The hierarchies.
    pub plan: CgroupPlan,
    /// The container's name.
    pub name: String,
}

impl Program {
    /// The same program in the cgroups of this name, from before its first instruction on. They are made and
    /// removed by the caller.
    pub fn in_cgroups(self, plan: &CgroupPlan, name: &str) -> Program {
        let place = Place { plan: plan.clone(), name: name.to_owned() };
        Program { place: Some(Arc::new(place)), ..self }
    }
}

impl Place {
    /// The version 2 cgroup to be born in, where the kernel can do that.
    fn birthplace(&self) -> io::Result<Option<OwnedFd>> {
        let second = self.plan.of_version(|version| *version == Version::V2).version_2(&self.name);
        match second.filter(|_| birth::possible_birth() == Birth::Inside) {
            Some(directory) => Ok(Some(std::fs::File::open(directory)?.into())),
            None => Ok(None),
        }
    }
}

/// Starts it. Returns its process id, and the moment right before the clone.
pub(super) fn start(
    place: &Place,
    path: &CStr,
    [arguments, environment]: [&[CString]; 2],
    streams: [RawFd; 3],
) -> io::Result<(i32, Stamp)> {
    let mut stack = Stack::new()?;
    let birthplace = place.birthplace()?;
    let born_there = if birthplace.is_some() { Birth::Inside } else { Birth::Outside };
    let mut steps = place.plan.entering(&place.name, born_there);
    steps.extend(identity::streams_and_signals(streams));
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    steps.push(Step::execute(path, arguments, environment));
    let spawned = clock::now();
    let born = birth::give_birth(&mut stack, 0, birthplace.as_ref(), &steps);
    match born.map_err(io::Error::from_raw_os_error)? {
        Born::Alive(pid) => Ok((pid, spawned)),
        Born::Failed { pid, step, errno } => {
            super::super::child::reap(pid).ok();
            Err(identity::refused(steps[step].failed(errno)))
        }
    }
}
