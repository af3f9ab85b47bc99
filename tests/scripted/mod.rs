//! The program on the scripted subject, on planted data and on its own files: no engine, no runtime, no
//! rights. One executable, since each one contains the whole program and takes as long to link.

mod action;
mod causes;
pub mod compare;

mod completions;
mod density;
mod disk_places;
mod formats;
mod history;
mod image_layers;
mod image_owners;
mod import;
mod memory;
mod network;
mod pack;
mod pipeline;
pub mod planted;
mod prices;
mod quotas;
mod screens;
mod strangers;
mod transcripts;
mod verdicts;
