//! dunnage measures what Linux containers cost, layer by layer, before the application inside
//! does any work. The modules are listed in reading order.

pub mod cli;
pub mod cmd;
pub mod exit;
pub mod files;
pub mod host;
pub mod http;
pub mod image;
pub mod load;
pub mod measure;
pub mod plan_file;
pub mod probe;
pub mod progress;
pub mod record;
pub mod resource;
pub mod runner;
pub mod session;
pub mod subject;
pub mod sweep;
pub mod sys;
pub mod watch;

pub use dunnage_analysis::{
    advise, experiment, launch, names, outcome, plan, stats, units, variables, verdict,
};
pub use dunnage_orders as orders;
pub use dunnage_report::{document, reference, report};

/// Comparing old runs with new ones, and reporting the result.
pub mod compare {
    pub use dunnage_analysis::compare::*;
    pub use dunnage_report::compare::*;
}

/// A metric over many runs: finding where it changed, and reporting it.
pub mod history {
    pub use dunnage_analysis::history::*;
    pub use dunnage_report::history::*;
}
