//! dunnage measures what Linux containers cost, layer by layer, before the application inside
//! does any work. The modules stand in reading order.

pub mod cmd;
pub mod experiment;
pub mod image;
pub mod outcome;
pub mod plan;
pub mod probe;
pub mod record;
pub mod report;
pub mod runner;
pub mod stats;
pub mod subject;
pub mod sys;
pub mod units;
pub mod verdict;
