//! What do health checks cost? From what one entry into a running container took of CPU time, in `exec`: so many containers, each
//! checked so often, keep so much of a CPU busy. A pure function of a recorded run.

use crate::experiment::{QUIET, Setting};
use crate::record::Recorded;
use crate::stats::{Alpha, Estimate, Sample};
use crate::units::Nanos;

/// The experiment that enters running containers.
const ENTRIES: &str = "exec";

/// How many containers are checked, and how often each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Containers.
    pub containers: u32,
    /// From one check of a container to its next.
    pub every: Nanos,
}

impl Schedule {
    /// Checks a second, all containers together.
    pub fn rate(self) -> f64 {
        f64::from(self.containers) / self.every.seconds()
    }

    /// The prestate that entries at this rate have: the kernel is left alone between them for as long as before an `idle`
    /// one, or it is not.
    pub fn prestate(self) -> &'static str {
        if self.rate() * QUIET.seconds() <= 1.0 { "idle" } else { "primed" }
    }
}

/// What checks cost under one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Its label.
    pub subject: String,
    /// In which setting it was measured.
    pub setting: Setting,
    /// CPU time of one check, in seconds: the median over rounds, its client and all that works for it together.
    pub check: Estimate,
    /// The same without the client, as where the engine itself runs the checks.
    pub engine: Estimate,
    /// CPUs that all checks keep busy.
    pub share: Estimate,
    /// The same without the client.
    pub engine_share: Estimate,
}

/// What checks on this schedule would cost under each subject of a run, in the order of its plan: in the prestate of the
/// schedule where the run has that, else in the one that it has. All intervals hold together with 95 %. Empty where no entry's
/// CPU time was recorded.
pub fn costs(run: &Recorded, schedule: Schedule) -> Vec<Cost> {
    let plan = &run.plan;
    let subjects = (0..plan.subjects.len()).filter(|one| plan.is_original(*one));
    let cells: Vec<usize> = subjects.filter_map(|one| cell_of(run, one, schedule.prestate())).collect();
    let alpha = Alpha::shared_by(2 * cells.len());
    let cost = |cell: &usize| {
        let [client, engine] = ["client_cpu", "engine_cpu"].map(|name| values(run, *cell, name));
        let both: Vec<f64> = client.iter().zip(engine).map(|(client, engine)| client + engine).collect();
        let [check, engine] = [median(run, &both, alpha)?, median(run, engine, alpha)?];
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

/// The median over complete rounds.
fn median(run: &Recorded, values: &[f64], alpha: Alpha) -> Option<Estimate> {
    let rounds = values.iter().zip(run.contexts.iter().skip(run.plan.warmups));
    let known = rounds.filter(|(value, context)| context.is_some() && value.is_finite());
    Some(Estimate::of_median(&Sample::new(known.map(|(value, _)| value))?, alpha))
}

/// A metric of a cell by rounds; not a number where there is none.
fn values<'a>(run: &'a Recorded, cell: usize, metric: &str) -> &'a [f64] {
    let metrics = run.plan.metrics(&run.plan.cells[cell]);
    let at = metrics.iter().position(|one| one.name == metric);
    at.map_or(&[], |at| &run.series[cell].values[at])
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
