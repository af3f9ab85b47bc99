//! A bare process with a limit: it has a cgroup of its own only in the hierarchies that limit and count CPU
//! time. The cgroup is made before the first stamp and removed after the last one, since it is not part of a
//! process on the host; only the limit's effect on the process is measured.

use crate::outcome::{Failure, OrEnvironment};
use crate::resource::Found;
use crate::subject::limits;
use crate::subject::{Spec, Unavailable};
use crate::sys::cgroup::{CgroupPlan, CpuLimit};

/// The limit of a process.
pub(super) struct Confinement {
    limit: CpuLimit,
    /// The places of its cgroups.
    pub plan: CgroupPlan,
}

impl Confinement {
    /// The limit of this subject, if it asks for one.
    pub fn of(spec: &Spec) -> Result<Option<Confinement>, Unavailable> {
        let Some(limit) = limits::cpu_limit(spec)? else { return Ok(None) };
        Ok(Some(Confinement { limit, plan: limits::cpu_cgroups()? }))
    }

    /// Makes the cgroups with this name.
    pub fn make(&self, name: &str) -> Result<(), Failure> {
        self.plan.make_limited(name, &self.limit).map_err(|error| match error.is_of_a_limit() {
            true => limits::refused(&error),
            false => Failure::environment(error.to_string()),
        })
    }

    /// Removes the cgroups with this name, and kills what still runs in them.
    pub fn remove(&self, name: &str) -> Result<Found, Failure> {
        let found = Found::when(self.plan.directories(name).iter().any(|path| path.exists()));
        self.plan.remove(name).or_environment("a cgroup was left behind")?;
        Ok(found)
    }
}
