//! Experiments: one question, one module. The list below is the only place that knows them all;
//! help, plan, documentation and reports derive from it. No experiment names an engine.
//!
//! A module holds what can be said of its question without measuring, and, in `tables`, `suspects` and the like, what
//! is made of its samples beside what is made of all; `verdict::own` lists these.

pub mod command;
pub mod cpu;
pub mod exec;
pub mod lifecycle;
pub mod primitives;
pub mod question;
pub mod scripted;
pub mod setting;
pub mod start;
pub mod syscall;
pub mod throttle;

pub use question::{
    About, Company, Metric, Occasion, Question, Replicates, Shown, Variation, Weight, parse_setting,
    settings_of,
};
pub use setting::{Setting, SettingKey, Taken, settings};

/// Every experiment there is for people.
pub static ALL: &[&dyn Question] = &[
    &start::Start,
    &primitives::Primitives,
    &lifecycle::Lifecycle,
    &exec::Exec,
    &command::Command,
    &syscall::Syscall,
    &throttle::Throttle,
    &cpu::Cpu,
];

/// What only tests of the whole program ask: any name finds it, and no list holds it.
pub static HIDDEN: &[&dyn Question] = &[&scripted::Scripted];

/// What a run takes on that names no experiment: the main job.
pub static MAIN: &[&str] = &["start", "primitives"];

/// The experiment with this name.
pub fn find(name: &str) -> Option<&'static dyn Question> {
    ALL.iter().chain(HIDDEN).copied().find(|experiment| experiment.about().name == name)
}
