//! What is said of old runs beside new ones: the sentence of each line, what it all comes to, a document and its pictures. What
//! changed is concluded in the analysis.

mod document;
mod picture;
mod summary;
mod words;

pub use summary::summary;
pub use words::sentence;
