//! The findings for other programs, in base units with full precision, with the name and version of their schema.

use serde::{Serialize, Serializer};

use super::Findings;
use crate::report::text::escaped;

#[derive(Serialize)]
struct File<T> {
    schema: &'static str,
    dunnage: &'static str,
    #[serde(flatten)]
    data: T,
}

/// Names and texts as fields of an object.
pub(crate) fn by_name<S: Serializer>(pairs: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, text)| (name, text)))
}

/// The findings as text.
pub(super) fn render<F: Findings>(findings: &F) -> String {
    let file = File { schema: F::SCHEMA, dunnage: env!("CARGO_PKG_VERSION"), data: findings.data() };
    let text = serde_json::to_string_pretty(&file).expect("plain data with text keys has a JSON form");
    escaped(&text) + "\n"
}
