//! What do health checks cost? `exec` gives the CPU time of one entry into a running container; from that
//! follows the share of a CPU that many containers use, each checked at an interval. A pure function of a
//! recorded run.

use crate::experiment::{QUIET, Setting};
use crate::record::Recorded;
use crate::stats::{Alpha, Estimate, Sample};
use crate::units::Nanos;
use crate::verdict::Columns;

/// The experiment that enters running containers.
const ENTRIES: &str = "exec";

/// How many containers are checked, and how often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// The number of containers.
    pub containers: u32,
    /// The time from one check of a container to the next.
    pub every: Nanos,
}

impl Schedule {
    /// Checks per second, over all containers.
    pub fn rate(self) -> f64 {
        f64::from(self.containers) / self.every.seconds()
    }

    /// The prestate that matches this rate: whether the machine rests between checks for as long as before an
    /// `idle` entry.
    pub fn prestate(self) -> &'static str {
        if self.rate() * QUIET.seconds() <= 1.0 { "idle" } else { "primed" }
    }
}

/// The cost of checks under one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Its label.
    pub subject: String,
    /// The setting in which it was measured.
    pub setting: Setting,
    /// CPU time of one check, in seconds: the median over rounds of the client and everything that works for
    /// it.
    pub check: Estimate,
    /// The same without the client, as when the engine itself runs the checks.
    pub engine: Estimate,
    /// The number of CPUs that all checks keep busy.
    pub share: Estimate,
    /// The same without the client.
    pub engine_share: Estimate,
}

/// The cost of checks on this schedule under each subject of a run, in plan order: in the prestate of the
/// schedule if the run has it, otherwise in the one that it has. All intervals hold together at 95 %. Empty
/// if no CPU time of entries was recorded.
pub fn costs(run: &Recorded, schedule: Schedule) -> Vec<Cost> {
    let plan = &run.plan;
    let subjects = (0..plan.subjects.len()).filter(|one| plan.is_original(*one));
    let cells: Vec<usize> = subjects.filter_map(|one| cell_of(run, one, schedule.prestate())).collect();
    let alpha = Alpha::shared_by(2 * cells.len());
    let columns = Columns::of(run);
    let cost = |cell: &usize| {
        let metrics = plan.metrics(&plan.cells[*cell]);
        let values = |name| metrics.iter().position(|one| one.name == name).map(|at| columns.get(*cell, at));
        let (client, engine) = (values("client_cpu")?, values("engine_cpu")?);
        let both = client.iter().zip(engine).map(|(client, engine)| Some((*client)? + (*engine)?));
        let median = |values: Vec<Option<f64>>| {
            Some(Estimate::of_median(&Sample::new(values.iter().flatten())?, alpha))
        };
        let [check, engine] = [median(both.collect())?, median(engine.to_vec())?];
        let [share, engine_share] = [check, engine].map(|one| one.map(|cpu| cpu * schedule.rate()));
        let subject = plan.subjects[plan.cells[*cell].subject].label.clone();
        Some(Cost { subject, setting: plan.cells[*cell].setting.clone(), check, engine, share, engine_share })
    };
    cells.iter().filter_map(cost).collect()
}

/// The cell of a subject's entries, in this prestate if there is one.
fn cell_of(run: &Recorded, subject: usize, prestate: &str) -> Option<usize> {
    let cells = run.plan.cells.iter().enumerate();
    let own = cells.filter(|(_, cell)| cell.experiment == ENTRIES && cell.subject == subject);
    let own: Vec<_> = own.collect();
    let wanted = own.iter().find(|(_, cell)| cell.setting.get("prestate") == Some(prestate));
    wanted.or(own.first()).map(|(index, _)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_add_up_to_a_rate_and_dense_ones_find_a_busy_kernel() {
        let schedule = |containers, every| Schedule { containers, every: Nanos::from_millis(every) };
        assert_eq!(schedule(100, 10_000).rate(), 10.0);
        assert_eq!(schedule(100, 10_000).prestate(), "idle");
        assert_eq!(schedule(101, 10_000).prestate(), "primed");
    }
}
