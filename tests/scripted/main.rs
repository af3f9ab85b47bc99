//! The program on the scripted subject, on planted data and on its own files: no engine, no runtime, no
//! rights. One executable, since each one contains the whole program and takes as long to link.

mod action;
mod causes;
mod compare;

mod completions;
mod disk_places;
#[path = "../support/dunnage.rs"]
mod dunnage;
mod history;
mod image_layers;
mod image_owners;
mod import;
mod network;
mod pack;
mod pipeline;
mod planted;
mod prices;
mod screens;
mod strangers;
#[path = "../support/mod.rs"]
mod support;
mod transcripts;
mod verdicts;
