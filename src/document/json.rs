//! What was found, for other programs: the findings themselves in base units with full precision, behind the name and
//! version of their shape.

use serde::Serialize;

use super::Findings;

#[derive(Serialize)]
struct File<T> {
    schema: &'static str,
    dunnage: &'static str,
    #[serde(flatten)]
    data: T,
}

/// The findings as text.
pub(super) fn render<F: Findings>(findings: &F) -> String {
    let file = File { schema: F::SCHEMA, dunnage: env!("CARGO_PKG_VERSION"), data: findings.data() };
    serde_json::to_string_pretty(&file).expect("plain data with text keys has a JSON form") + "\n"
}
