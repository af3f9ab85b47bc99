//! A bare process with a limit: a cgroup of its own in the hierarchies that limit and count CPU time, and
//! nowhere else. It is made before the stamp and removed after the last one, since a cgroup is no part of a
//! process on the host; what the limit does to the process is what is left to see.

use crate::outcome::{Abort, Failure, FailureClass};
use crate::subject::limits::{self, Limits};
use crate::subject::resources::container;
use crate::subject::{RunContext, Spec, Unavailable};
use crate::sys::cgroup::{CgroupPlan, CpuLimit};
use crate::sys::steps::StepError;

/// What a process is confined by.
pub(super) struct Confinement {
    /// What was asked for.
    pub asked: Limits,
    limit: CpuLimit,
    /// Where its cgroups go.
    pub plan: CgroupPlan,
}

impl Confinement {
    /// The one that this subject asks for, where it asks for one.
    pub fn of(spec: &Spec) -> Result<Option<Confinement>, Unavailable> {
        let (Some(limit), Some(asked)) = (limits::cpu_limit(spec)?, Limits::of(spec)) else {
            return Ok(None);
        };
        Ok(Some(Confinement { asked, limit, plan: limits::cpu_cgroups()? }))
    }

    /// Makes what the cgroups of all processes share.
    pub fn prepare(&self) -> Result<(), Failure> {
        self.plan.establish().map_err(|error| Failure::new(FailureClass::Environment, error.to_string()))
    }

    /// Carries something out while the cgroups of this name are there.
    pub fn around<T>(
        &self,
        spec: &Spec,
        name: &str,
        run: &RunContext,
        launch: impl FnOnce(&RunContext) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let entry = run.note(container(spec, name))?;
        if let Err(error) = self.plan.make_limited(name, &self.limit) {
            run.cross_out(entry);
            return Err(refused(&error).into());
        }
        let launched = launch(run);
        let removed = self.remove(name);
        if removed.is_ok() {
            run.cross_out(entry);
        }
        let launched = launched?;
        removed?;
        Ok(launched)
    }

    /// Removes the cgroups of this name, with whatever still runs in them.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let left = |why| Failure::new(FailureClass::Environment, format!("a cgroup was left behind: {why}"));
        self.plan.remove(name).map_err(left)
    }
}

/// The limit that the kernel did not take, or the cgroup that it did not make.
fn refused(error: &StepError) -> Failure {
    match error.is_of_a_limit() {
        true => limits::refused(error),
        false => Failure::new(FailureClass::Environment, error.to_string()),
    }
}
