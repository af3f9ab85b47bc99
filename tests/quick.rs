//! Tests that need neither an engine nor root: statistics on planted data, the program on the scripted subject, reports, documents
//! and the house rules. One executable, because each contains the whole program and takes as long to link; `real.rs` is the other.

#[path = "support/documented.rs"]
mod documented;
#[path = "support/dunnage.rs"]
mod dunnage;
#[path = "support/mod.rs"]
mod support;

mod documents;
mod generated_docs;
mod html;
mod report;
mod scripted;
mod skips;
mod statistics;
mod tidy;
