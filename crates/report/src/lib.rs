//! The output of findings: documents, the formats that render them, and pictures. Deliberately absent, as in the
//! analysis: processes, clocks, file handles, engines. Nothing is printed here; the caller writes the text.

mod axis;
pub mod compare;
pub mod document;
pub mod history;
pub mod reference;
pub mod report;

use dunnage_analysis::{distinct, experiment, outcome, plan, record, stats, subject, units, verdict};
