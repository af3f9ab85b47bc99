//! What each subject takes more than the baseline until the same service is ready.

use super::super::command::tables::{Split, cold, split};
use super::NAME;
use crate::verdict::View;
use crate::verdict::table::ExperimentTable;

/// What each takes more than the baseline, split into its start and the rest.
pub fn experiment_tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let parts = [("more in all", "ready"), ("start", "start"), ("from then on", "beyond_start")];
    let split = split(
        view,
        &Split {
            experiment: NAME,
            what: "until the same service is ready",
            rest: "from then on",
            note: "`start` is the part until the probe inside forks the service, `from then on` the service's own start; both are \
               stamped in the launch that is measured",
            parts: &parts,
        },
    );
    [split, cold(view, NAME, "ready")].into_iter().flatten().collect()
}
