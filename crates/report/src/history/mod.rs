//! Histories of runs for people, and as a table for other programs. What they say is concluded in the analysis.

mod csv;
mod document;
mod words;

pub use document::Histories;
