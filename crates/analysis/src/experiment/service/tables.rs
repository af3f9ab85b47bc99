//! How much later than on the baseline the same service is ready in each subject.

use super::super::command::tables::{Split, cold, split};
use super::NAME;
use crate::verdict::View;
use crate::verdict::table::ExperimentTable;

/// The extra time of each compared with the baseline, split into its start and the rest.
pub fn experiment_tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let parts = [("more in all", "ready"), ("start", "start"), ("after the start", "beyond_start")];
    let split = split(
        view,
        &Split {
            experiment: NAME,
            what: "until the same service is ready",
            rest: "comes after it",
            note: "`start` is the part until the probe inside forks the service, `after the start` the service's own start; both \
               are stamped in the measured launch",
            parts: &parts,
        },
    );
    [split, cold(view, NAME, "ready")].into_iter().flatten().collect()
}
