//! Imported measurements become runs that say what the files say and no more, and bad files are refused with
//! the place of the error.
//!
//! `hyperfine-1.15.json` was written by hyperfine 1.15; `container_benchmark_data.json` follows the format
//! that cri-tools documents in `pkg/benchmark/util.go`, with made-up durations.

use crate::dunnage;
mod raw;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use dunnage::{Dunnage, Ran};
use serde_json::Value;

const HYPERFINE: &str = include_str!("hyperfine-1.15.json");
const CRITEST: &str = include_str!("container_benchmark_data.json");

/// A file in its own directory, next to the run that is made of it.
struct Case {
    dunnage: Dunnage,
    file: PathBuf,
}

impl Case {
    fn new(name: &str, text: &str) -> Case {
        let dunnage = Dunnage::new();
        let file = dunnage.directory().with_file_name(name);
        fs::write(&file, text).expect("a file");
        Case { dunnage, file }
    }

    fn import(&self) -> Ran {
        self.dunnage.run(&format!("import {} -o DIR", self.file.display()))
    }

    fn report(&self) -> Value {
        let ran = self.dunnage.run("report DIR --format json");
        assert_eq!(ran.code, 0, "{ran}");
        serde_json::from_str(&ran.stdout).expect("JSON")
    }
}

fn imported(name: &str, text: &str) -> (Case, Value) {
    let case = Case::new(name, text);
    let ran = case.import();
    assert_eq!(ran.code, 0, "{ran}");
    let report = case.report();
    (case, report)
}

fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|one| one[field].as_str().expect("a text")).collect()
}

/// The cells of all settings and ladders of the first experiment.
fn cells(report: &Value) -> Vec<&Value> {
    let settings = report["experiments"][0]["settings"].as_array().expect("settings").iter();
    let ladders = settings.flat_map(|one| one["ladders"].as_array().expect("ladders"));
    ladders.flat_map(|one| one["cells"].as_array().expect("cells")).collect()
}

fn metric<'a>(cell: &'a Value, name: &str) -> &'a Value {
    let all = cell["values"].as_array().expect("values");
    all.iter().find(|one| one["metric"] == name).unwrap_or(&Value::Null)
}

#[test]
fn commands_of_hyperfine_are_subjects_with_their_times_and_without_verdicts() {
    let (_, report) = imported("bench.json", HYPERFINE);
    let file: Value = serde_json::from_str(HYPERFINE).unwrap();
    let experiment = &report["experiments"][0];
    assert_eq!((&experiment["name"], &experiment["verdicts_in_family"]), (&"command".into(), &0.into()));
    assert_eq!(experiment["comparisons"].as_array().map(Vec::len), Some(0));
    let cells = cells(&report);
    for result in file["results"].as_array().unwrap() {
        let cell = cells.iter().find(|cell| cell["label"] == result["command"]).expect("a cell a command");
        let returned = metric(cell, "returned");
        let median = returned["median"]["estimate"].as_f64().unwrap();
        assert!((median - result["median"].as_f64().unwrap()).abs() < 1e-12, "{returned}");
        assert_eq!(returned["median"]["rounds"], 10);
    }
    assert_eq!(report["imported"]["order"], "blocks");
    assert_eq!(report["imported"]["from"], "hyperfine's JSON `bench.json`");
    assert_eq!((&report["host"], &report["machine"]), (&Value::Null, &serde_json::json!({})));
    assert_eq!(report["suspects"], serde_json::json!([]));
    assert!(texts(&report["warnings"], "kind").contains(&"imported"));
}

/// A command that starts a container by an engine is not a process of the host.
#[test]
fn commands_stand_in_the_layer_that_they_certainly_are_of() {
    let result = |command: &str| serde_json::json!({"command": command, "times": [0.3, 0.4, 0.5]});
    let all = ["true", "docker run --rm x true", "crun run --bundle=b c"].map(result);
    let (case, report) = imported("bench.json", &serde_json::json!({"results": all}).to_string());
    let mut layers: Vec<_> =
        cells(&report).iter().map(|cell| [&cell["label"], &cell["subject"], &cell["layer"]]).collect();
    layers.sort_by_key(|one| one[0].as_str().map(str::to_owned));
    assert_eq!(
        serde_json::json!(layers),
        serde_json::json!([
            ["crun run --bundle=b c", "crun", "runtime"],
            ["docker run --rm x true", "docker", "engine"],
            ["true", "unknown", ""]
        ])
    );
    // The table has the same content, and can be imported again.
    let table = case.dunnage.run("report DIR --format csv").stdout;
    assert!(table.lines().skip(1).all(|line| line.split(',').nth(1) == Some("")), "{table}");
    let (_, again) = imported("again.csv", &table);
    assert_eq!(again["host"], Value::Null);
    assert!(cells(&again).iter().any(|cell| cell["label"] == "true" && cell["layer"] == ""), "{again}");
    assert_eq!((&report["host"], &report["timer_step_s"]), (&Value::Null, &Value::Null));
}

/// Pairing by round finds no two samples of one round.
#[test]
fn nothing_can_pair_samples_of_blocks() {
    let (case, _) = imported("bench.json", HYPERFINE);
    let samples = fs::read_to_string(case.dunnage.directory().join("samples.jsonl")).unwrap();
    let lines = samples.lines().filter(|line| line.starts_with("{\"cell\""));
    let rounds: Vec<u64> =
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["round"].as_u64().unwrap()).collect();
    assert_eq!(rounds, (0..30).collect::<Vec<_>>());
    let page = case.dunnage.run("report DIR --full").stdout;
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("not measured by dunnage; 30 samples in blocks, not in rounds; no verdicts"),
        "{page}"
    );
    assert!(!words.contains("Verdicts rest on"), "{page}");
}

/// hyperfine's commands are compared as commands, and not as indicators of the machine.
#[test]
fn a_command_that_became_slower_is_a_regression() {
    let times = |seconds: f64| (0..20).map(|i| seconds + 1e-4 * f64::from(i * 7 % 20)).collect::<Vec<_>>();
    let file = |seconds: f64| {
        let other = serde_json::json!({"command": "true", "times": times(0.2)});
        let own = serde_json::json!({"command": "docker run x", "times": times(seconds)});
        serde_json::json!({"results": [other, own]}).to_string()
    };
    let (old, _) = imported("old.json", &file(0.3));
    let (new, _) = imported("new.json", &file(0.4));
    let place = new.dunnage.directory();
    let ran = old.dunnage.run(&format!("compare DIR {} --fail-on slower", place.display()));
    assert_eq!(ran.code, 3, "{ran}");
    assert!(ran.stderr.contains("returned of `docker run x` rises: +33"), "{ran}");
    assert!(ran.stdout.contains("Neither bare nor floor is in all runs"), "{ran}");
    // A metric that the file lacks is not an open question.
    let back = old.dunnage.run(&format!("compare {} DIR --fail-on slower", place.display()));
    assert!(back.code == 0 && !back.stdout.contains("no data"), "{back}");
}

#[test]
fn requests_of_critest_are_verbs() {
    let (case, report) = imported("container_benchmark_data.json", CRITEST);
    let cell = cells(&report)[0];
    assert_eq!(
        (&report["experiments"][0]["name"], &cell["label"]),
        (&"lifecycle".into(), &"CRI container".into())
    );
    let file: Value = serde_json::from_str(CRITEST).unwrap();
    let mut stops: Vec<i64> = file["datapoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["operationsDurationsNs"][3].as_i64().unwrap())
        .collect();
    stops.sort_unstable();
    let middle = (stops[5] + stops[6]) as f64 / 2e9;
    let median = metric(cell, "stop")["median"]["estimate"].as_f64().unwrap();
    assert!((median - middle).abs() < 1e-12, "{median} {middle}");
    assert!(metric(cell, "exec").is_null());
    assert_eq!(report["started"], "2025-11-21T04:40:00.000000000Z");
    let page = case.dunnage.run("report DIR --full").stdout;
    assert!(page.contains("dunnage has no counterpart: StatusContainer"), "{page}");
}

/// A rule that fires on an edited file overrules only that, and does not fire on the original file.
#[test]
fn what_is_suspect_in_the_file_is_suspect_in_the_report() {
    let mut file: Value = serde_json::from_str(HYPERFINE).unwrap();
    file["results"][1]["mean"] = 1.0.into();
    let (_, report) = imported("bench.json", &file.to_string());
    assert_eq!(texts(&report["suspects"], "rule"), ["not what its raw data give"]);
    assert_eq!(report["suspects"][0]["labels"], serde_json::json!([file["results"][1]["command"]]));
    // A time below zero is kept, but not as a time.
    let mut file: Value = serde_json::from_str(HYPERFINE).unwrap();
    for name in ["mean", "median", "min", "max", "stddev"] {
        file["results"][0].as_object_mut().unwrap().remove(name);
    }
    file["results"][0]["times"][3] = (-0.001).into();
    let (_, report) = imported("bench.json", &file.to_string());
    assert_eq!(texts(&report["suspects"], "rule"), ["negative"]);
    let mut file: Value = serde_json::from_str(CRITEST).unwrap();
    file["datapoints"][2]["startTime"] = 170_000_000_012_345_678_i64.into();
    let (_, report) = imported("critest.json", &file.to_string());
    assert_eq!(texts(&report["suspects"], "rule"), ["malformed stamp"]);
}

#[test]
fn bad_files_are_refused_with_file_and_place_and_leave_nothing() {
    let with = |text: &str| HYPERFINE.replace("\"results\"", text);
    let cases: Vec<(String, i32, &str)> = vec![
        (String::new(), 2, "does not have a known format"),
        ("hello\n".into(), 2, "does not have a known format"),
        ("{\"results\": [".into(), 1, "EOF while parsing a list at line 1 column 13"),
        ("{\"results\": [{\"command\": \"a\", \"times\": [NaN]}]}".into(), 1, "at line 1 column"),
        (
            "{\"results\": [{\"command\": \"a\", \"times\": [1e999]}]}".into(),
            1,
            "number out of range at line 1 column",
        ),
        ("{\"results\": []}".into(), 1, "contains no measurements"),
        ("{\"results\": [{\"command\": \"a\", \"times\": []}]}".into(), 1, "contains no measurements"),
        ("{\"results\": [{\"command\": \"a\"}]}".into(), 1, "`results[0]` has no `times`"),
        (with("\"result\""), 2, "does not have a known format"),
        (CRITEST.replace("\"sampleIndex\": 3,", ""), 1, "missing field `sampleIndex`"),
        (CRITEST.replace("CreateContainer", "x"), 0, ""),
        ("[1, 2]".into(), 2, "does not have a known format"),
        (format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)), 1, "recursion limit exceeded"),
    ];
    for (text, code, why) in cases {
        let case = Case::new("bad.json", &text);
        let ran = case.import();
        let shown: String = text.chars().take(60).collect();
        assert_eq!(ran.code, code, "{shown}: {ran}");
        assert!(ran.stderr.contains(why), "{shown}: {ran}");
        if code != 0 {
            assert!(ran.stderr.contains("bad.json"), "{shown}: {ran}");
            assert!(!case.dunnage.directory().exists(), "{shown}");
        }
    }
}

#[test]
fn nothing_is_overwritten_and_a_directory_is_no_file() {
    let case = Case::new("bench.json", HYPERFINE);
    assert_eq!(case.import().code, 0);
    let again = case.import();
    assert!(again.code == 2 && again.stderr.contains("is not empty"), "{again}");
    let directory = case.dunnage.run("import DIR -o DIR/x");
    assert!(directory.code == 2 && directory.stderr.contains("is a directory"), "{directory}");
    let missing = case.dunnage.run("import DIR/nowhere -o DIR/x");
    assert!(missing.code == 1 && missing.stderr.contains("No such file"), "{missing}");
    let resumed = case.dunnage.run("resume DIR");
    assert!(resumed.code == 2 && resumed.stderr.contains("was imported from hyperfine's JSON"), "{resumed}");
}

/// Text from outside is shown without control characters, and labels stay distinct.
#[test]
fn commands_control_no_terminal() {
    let evil = r#"{"results":[{"command":"\u001b[31mred\u001b]0;title\u0007\nnext","times":[0.1,0.2]},{"command":"red next","times":[0.3]},{"command":"","times":[0.1]}]}"#;
    let (case, report) = imported("evil\u{1b}[2J.json", evil);
    let mut labels: Vec<_> = cells(&report).iter().map(|cell| cell["label"].as_str().unwrap()).collect();
    labels.sort_unstable();
    assert_eq!(labels, ["(no name)", "red next", "red next (2)"]);
    for arguments in ["report DIR", "report DIR --format csv", "report DIR --format json"] {
        let ran = case.dunnage.run(arguments);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{arguments}");
    }
}

/// Every import can be read: an unreadable run is not written.
#[test]
fn more_than_a_run_can_hold_is_refused_before_anything_is_made() {
    let result = |number: usize| serde_json::json!({"command": format!("c{number}"), "times": [0.1, 0.2]});
    let many = serde_json::json!({"results": (0..501).map(result).collect::<Vec<_>>()});
    let case = Case::new("many.json", &many.to_string());
    let ran = case.import();
    assert!(
        ran.code == 1 && ran.stderr.contains("many.json") && ran.stderr.contains("501 subjects"),
        "{ran}"
    );
    assert!(!case.dunnage.directory().exists());
}

#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let case = Case::new("bench.json", HYPERFINE);
    fs::remove_file(&case.file).expect("it was made");
    let made = std::process::Command::new("mkfifo").arg(&case.file).status().expect("coreutils");
    assert!(made.success());
    let ran = case.import();
    assert!(ran.code == 2 && ran.stderr.contains("is not a regular file"), "{ran}");
}

/// The name of a file may also come from outside.
#[test]
fn names_of_files_control_no_terminal() {
    let case = Case::new("evil\u{1b}[2J.json", HYPERFINE);
    let place = case.file.parent().expect("a directory").to_owned();
    let mut command = case.dunnage.command("import");
    let done = command.arg(&case.file).current_dir(&place).output().expect("it runs");
    assert!(
        done.status.success() && !done.stderr.contains(&0x1b),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Commands that a spreadsheet would take for formulas are exported as text, and imported unchanged.
#[test]
fn a_table_of_imported_commands_goes_there_and_back() {
    let names = ["=1+1", "@a", "-x \"quoted, twice\"", "ü; 日本語", "plain"];
    let result = |(at, name): (usize, &&str)| {
        let first = 0.1 * (at + 1) as f64;
        serde_json::json!({"command": name, "times": [first, first + 0.01, first + 0.05]})
    };
    let file = serde_json::json!({"results": names.iter().enumerate().map(result).collect::<Vec<_>>()});
    let (case, report) = imported("bench.json", &file.to_string());
    let table = case.dunnage.run("report DIR --format csv").stdout;
    let (again, other) = imported("samples.csv", &table);
    assert!(again.dunnage.run("report DIR --format csv").stdout == table, "{table}");
    let medians = |report: &Value| {
        let median = |cell: &&Value| metric(cell, "returned")["median"]["estimate"].to_string();
        let mut all: Vec<String> = cells(report).iter().map(median).collect();
        all.sort();
        all
    };
    assert_eq!(medians(&report).len(), names.len());
    assert_eq!(medians(&report), medians(&other));
}

/// The order, the machine and the clock of imported measurements are not known.
#[test]
fn a_report_of_an_import_claims_nothing_that_nobody_measured() {
    let (case, _) = imported("bench.json", HYPERFINE);
    let report = case.dunnage.run("report DIR --format md").stdout;
    assert!(
        report.starts_with("## What containers cost, imported from hyperfine's JSON bench.json"),
        "{report}"
    );
    for claim in ["Seed", "same order", "One machine", "smallest step", "repeat it", "on unknown"] {
        assert!(!report.contains(claim), "{claim}: {report}");
    }
}

#[test]
fn a_run_is_named_after_its_file_and_tagged() {
    let case = Case::new("bench.json", HYPERFINE);
    let place = case.file.parent().expect("a directory").to_owned();
    let mut command = case.dunnage.command("import bench.json --tag commit=1a2b");
    let done = command.current_dir(&place).output().expect("it runs");
    assert!(done.status.success(), "{done:?}");
    let environment = fs::read_to_string(place.join("bench-run/env.json")).expect("a run");
    assert!(environment.contains("\"commit\": \"1a2b\"") && !environment.contains(&*place.to_string_lossy()));
    assert!(Path::new(&place.join("bench-run/plan.json")).exists());
}
