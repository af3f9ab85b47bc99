//! The run directory: `env.json`, `plan.json` and `samples.jsonl`. Everything that a report needs
//! stands in it; nothing outside refers to it. The formats are private to this room. A pack is a run in one
//! compressed file without what is private; whoever reads runs reads packs too.

mod environment;
pub mod import;
mod lines;
pub mod pack;
mod plan_file;
mod reader;
mod source;
mod wire;
mod writer;

pub use environment::{
    ComponentFacts, DoubtFacts, Environment, IMPORT_RULES, Order, Origin, SubjectFacts, Timer,
};
pub use reader::{Cause, FailureRow, Recorded, RoundContext, Row, Series, load, open, rows};
pub use writer::{Writer, check_empty, create, create_beside_pilot, reopen};

/// The version of the formats, in the first line of the samples. A reader refuses newer ones.
pub const FORMAT: u32 = 1;

/// The files of a run in this directory.
pub fn files(directory: &std::path::Path) -> [std::path::PathBuf; 3] {
    [ENVIRONMENT, PLAN, SAMPLES].map(|name| directory.join(name))
}

/// The run directory of a pilot, in that of its run.
pub const PILOT: &str = "pilot";

const ENVIRONMENT: &str = "env.json";
const PLAN: &str = "plan.json";
const SAMPLES: &str = "samples.jsonl";
