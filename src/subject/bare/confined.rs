//! A bare process with a limit: a cgroup of its own in the hierarchies that limit and count CPU time, and
//! nowhere else. It is made before the stamp and removed after the last one, since a cgroup is no part of a
//! process on the host; what the limit does to the process is what is left to see.

use crate::outcome::{Failure, OrEnvironment};
use crate::resource::Found;
use crate::subject::limits;
use crate::subject::{Spec, Unavailable};
use crate::sys::cgroup::{CgroupPlan, CpuLimit};

/// What a process is confined by.
pub(super) struct Confinement {
    limit: CpuLimit,
    /// Where its cgroups go.
    pub plan: CgroupPlan,
}

impl Confinement {
    /// The one that this subject asks for, where it asks for one.
    pub fn of(spec: &Spec) -> Result<Option<Confinement>, Unavailable> {
        let Some(limit) = limits::cpu_limit(spec)? else { return Ok(None) };
        Ok(Some(Confinement { limit, plan: limits::cpu_cgroups()? }))
    }

    /// Makes what the cgroups of all processes share.
    pub fn prepare(&self) -> Result<(), Failure> {
        self.plan.establish().map_err(|error| Failure::environment(error.to_string()))
    }

    /// Makes the cgroups of this name.
    pub fn make(&self, name: &str) -> Result<(), Failure> {
        self.plan.make_limited(name, &self.limit).map_err(|error| match error.is_of_a_limit() {
            true => limits::refused(&error),
            false => Failure::environment(error.to_string()),
        })
    }

    /// Removes the cgroups of this name, with whatever still runs in them.
    pub fn remove(&self, name: &str) -> Result<Found, Failure> {
        let found = Found::when(self.plan.directories(name).iter().any(|path| path.exists()));
        self.plan.remove(name).or_environment("a cgroup was left behind")?;
        Ok(found)
    }
}
