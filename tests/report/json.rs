//! The analysis for other programs.

use std::collections::BTreeSet;

use dunnage::document::{FORMATS, Findings};
use dunnage::plan::Prediction;
use dunnage::plan::prediction::Written;
use dunnage::report::{self, Look, Rendering, Report};
use dunnage::verdict::Verdict;
use serde_json::Value;

use crate::report::scripted::{full_ladder, plan, run};
use crate::report::{compare, rendered as shown, report};

fn rendered(rounds: usize) -> String {
    let predicted = ["start.returned: bare < floor < crun", "start.returned: bare = docker:net=none"];
    let read = |text: &str| Prediction::of(&Written::parse(text).unwrap(), &["start"]).unwrap();
    let mut run = run(plan(full_ladder()[..5].to_vec(), rounds));
    run.plan.predictions = predicted.map(read).to_vec();
    shown("json", &report(&run).with_job(2.0), &Look::default())
}

#[test]
fn it_reads_as_it_did() {
    let mut small = plan(full_ladder()[..2].to_vec(), 20);
    small.cells.retain(|cell| cell.setting.get("prestate") == Some("primed"));
    let run = run(small);
    compare("report.json", &shown("json", &report(&run), &Look::default()));
}

#[test]
fn every_finding_has_its_numbers() {
    for rounds in [2, 20] {
        let file: Value = serde_json::from_str(&rendered(rounds)).unwrap();
        assert_eq!(file["schema"], "dunnage-report/4");
        let experiment = &file["experiments"][0];
        let lists = ["comparisons", "twins"].map(|list| experiment[list].as_array().unwrap());
        let changes: Vec<&Value> = lists.into_iter().flatten().collect();
        let plan = plan(full_ladder()[..5].to_vec(), rounds);
        assert_eq!(changes.len(), plan.comparisons.len() * 2 * 7);
        for one in changes {
            assert!(one["setting"].is_string() && one["metric"].is_string() && one["unit"].is_string());
            assert!(one["difference"]["estimate"].is_number(), "{one}");
            assert_eq!(one["difference"]["low"].is_number(), rounds == 20, "{one}");
            assert!(one["matters"].is_number());
        }
    }
}

/// JSON has no other value for it.
#[test]
fn what_is_no_number_is_null() {
    let mut report = report(&run(plan(full_ladder()[..2].to_vec(), 20)));
    let change = &mut report.experiments[0].comparisons[0].finding;
    change.matters = Some(f64::NAN);
    change.verdict = Verdict::Undecided { smallest_visible: f64::INFINITY, new_run: None };
    report.timer_step = f64::NEG_INFINITY;
    let file: Value = serde_json::from_str(&shown("json", &report, &Look::default())).unwrap();
    let change = &file["experiments"][0]["comparisons"][0];
    for none in [&change["matters"], &change["smallest_visible"], &file["timer_step_s"]] {
        assert!(none.is_null(), "{none}");
    }
    assert!(change.as_object().unwrap().contains_key("smallest_visible"));
}

#[test]
fn formats_have_distinct_names_and_say_what_they_are() {
    let own = report::FORMATS.iter().map(|format| (format.name, format.description));
    assert!(own.clone().map(|(name, _)| name).eq(Report::FURTHER.iter().copied()));
    let all: Vec<_> = FORMATS.iter().map(|format| (format.name, format.description)).chain(own).collect();
    assert!(all.iter().all(|(_, description)| !description.is_empty()));
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), all.len());
    for format in &report::FORMATS {
        let is_rows = matches!(format.rendering, Rendering::Rows { .. });
        assert_eq!(is_rows, ["csv", "gobench"].contains(&format.name));
    }
}
