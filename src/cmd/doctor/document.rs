//! What the doctor found, as JSON for programs. The shape is described in `docs/doctor-json.md`.

use serde::Serialize;

use super::Row;
use crate::host::checks::{Fix, State};
use crate::report::text::clean;

/// Name and version of the shape.
const SCHEMA: &str = "dunnage-doctor/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    dunnage: &'static str,
    host: Option<&'a str>,
    subjects_that_work: Vec<&'a str>,
    checks: Vec<Check<'a>>,
}

#[derive(Serialize)]
struct Check<'a> {
    group: &'static str,
    name: &'a str,
    state: &'static str,
    found: String,
    matters: &'static str,
    command: Option<&'a str>,
    advice: Option<&'a str>,
}

/// The document.
pub fn render(rows: &[Row], host: Option<&str>) -> String {
    let works = rows.iter().filter(|row| row.group == "subjects" && row.finding.state == State::Ok);
    let document = Document {
        schema: SCHEMA,
        dunnage: env!("CARGO_PKG_VERSION"),
        host,
        subjects_that_work: works.map(|row| row.name.as_str()).collect(),
        checks: rows.iter().map(check).collect(),
    };
    let text = serde_json::to_string_pretty(&document).expect("strings and lists of them become JSON");
    text + "\n"
}

fn check(row: &Row) -> Check<'_> {
    let (command, advice) = match &row.finding.fix {
        Some(Fix::Command(command)) => (Some(command.as_str()), None),
        Some(Fix::Advice(advice)) => (None, Some(advice.as_str())),
        None => (None, None),
    };
    Check {
        group: row.group,
        name: &row.name,
        state: row.finding.state.name(),
        found: clean(&row.finding.what),
        matters: row.matters,
        command,
        advice,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::row;
    use super::*;
    use crate::host::checks::Finding;

    #[test]
    fn every_row_is_an_object_with_every_field() {
        let rows = [
            row("a", Finding::problem("x\ny").command("sudo it")),
            Row { group: "subjects", ..row("bare", Finding::ok("works")) },
        ];
        let document: Value = serde_json::from_str(&render(&rows, None)).unwrap();
        assert_eq!((&document["schema"], &document["host"]), (&Value::from(SCHEMA), &Value::Null));
        assert_eq!(document["subjects_that_work"], Value::from(vec!["bare"]));
        let first = document["checks"][0].as_object().unwrap();
        assert_eq!(first["found"], "x y");
        assert_eq!((&first["state"], &first["command"]), (&Value::from("problem"), &Value::from("sudo it")));
        let names: Vec<_> = first.keys().map(String::as_str).collect();
        assert_eq!(names, ["advice", "command", "found", "group", "matters", "name", "state"]);
    }
}
