//! Comparisons of old and new runs for people: the sentence of each line, the summary, a document and its pictures.
//! The analysis decides what changed.

mod document;
mod picture;
mod summary;
mod words;

pub use summary::summary;
pub use words::{failures, sentence};
