//! The run directory as it is read: `env.json`, `plan.json` and `samples.jsonl`. It contains everything that
//! a report needs and refers to nothing outside. Deliberately absent: opening, writing and packing it.

mod environment;
pub mod kernel;
pub mod plan_file;
pub mod reader;
mod room;
mod rows;
pub mod source;
pub mod wire;

pub use environment::{
    ComponentFacts, Environment, FilterFacts, IMPORT_RULES, IssueFacts, Order, Origin, SubjectFacts, Timer,
};
pub use reader::{Cause, FailureRow, Recorded, Series, Tails, read};
pub use rows::{Row, rows};
pub use source::{Place, Samples, Source, read_line};
pub use wire::{ENVIRONMENT, FORMAT, PLAN, RoundContext, SAMPLES};
