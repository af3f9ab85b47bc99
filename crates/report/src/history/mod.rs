//! Histories of runs for people, and as a table for other programs. The analysis decides what changed.

mod csv;
mod document;
mod words;

pub use document::Histories;
