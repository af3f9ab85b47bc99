//! A run from outside cannot harm the user who looks at it. Its texts become no markup, no formula and no
//! terminal control in any format, and its files take no more memory than a run of their plan.

use crate::dunnage;

use std::fs;
use std::path::Path;

use dunnage::{Dunnage, Ran};
use serde_json::Value;

/// A text that tries everything: a formula, a terminal's title and colours, HTML, Markdown, the writing
/// direction, and a separate line in every format that has lines.
const EVIL: &str = "=cmd|' /C x'!A0\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}<script>alert(1)</script>\
    <img src=x onerror=alert(2)>\"'&\r\n# heading\n\n| a | b |\nBenchmarkEvil 1 1 sec/op\n![x](http://e.example/x)\u{0}";

/// A run with hostile texts everywhere: labels, tags, facts, reasons, the engine's words.
fn hostile(dunnage: &Dunnage) {
    let ran =
        dunnage.run("run start -s a=fake -s b=fake:time=22ms,fail=3 --rounds 12 --seed 7 --tag k=v -o DIR");
    assert_eq!(ran.code, 6, "{ran}");
    let label = |label: &Value| match label.as_str() {
        Some("b") => EVIL.into(),
        Some("a (twin)") => format!("@{EVIL} (twin)").into(),
        Some("a") => format!("@{EVIL}").into(),
        _ => label.clone(),
    };
    change(&dunnage.directory().join("plan.json"), |plan| {
        for subject in plan["subjects"].as_array_mut().unwrap() {
            subject["label"] = label(&subject["label"]);
            subject["runtime"] = EVIL.into();
        }
    });
    change(&dunnage.directory().join("env.json"), |environment| {
        let subjects = environment["subjects"].as_object().unwrap().clone();
        let renamed = subjects.into_iter().map(|(name, facts)| {
            let name = label(&name.as_str().into()).as_str().unwrap().to_owned();
            (name, facts)
        });
        environment["subjects"] = renamed.collect::<serde_json::Map<_, _>>().into();
        environment["origin"] = serde_json::json!({
            "format": EVIL, "file": EVIL, "sha256": EVIL, "order": "rounds", "notes": [EVIL],
            "issues": [{"rule": "malformed stamp", "labels": [], "evidence": EVIL, "mechanism": EVIL}],
        });
        environment["unavailable"] = serde_json::json!({EVIL: EVIL});
        environment["no_cpu_accounting"] = EVIL.into();
        environment["tags"] = serde_json::json!({EVIL: EVIL, "k": EVIL});
        spoil(environment);
    });
    let samples = dunnage.directory().join("samples.jsonl");
    let mut spoilt = String::new();
    for line in fs::read_to_string(&samples).unwrap().lines() {
        let mut line: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        for (key, text) in line.iter_mut() {
            match key.as_str() {
                "failed" => {
                    *text = serde_json::json!({"class": "crash", "reason": EVIL, "words": EVIL, "took": 1})
                }
                "end" => {}
                "run" | "host" | "skipped" => *text = EVIL.into(),
                _ => {}
            }
        }
        if line.contains_key("end") {
            line.insert("disturbed".into(), EVIL.into());
        }
        spoilt += &in_order(&line);
    }
    fs::write(&samples, spoilt).unwrap();
}

/// A line whose first field identifies its kind.
fn in_order(line: &serde_json::Map<String, Value>) -> String {
    const FIRST: [&str; 5] = ["format", "begin", "end", "treatment", "cell"];
    // A sample names its treatment too.
    let name =
        ["cell", "format", "begin", "end", "treatment"].into_iter().find(|name| line.contains_key(*name));
    let first = name.filter(|name| FIRST.contains(name)).expect("a line of dunnage's");
    let others = line.iter().filter(|(name, _)| *name != first);
    let all: Vec<String> = std::iter::once((&first.to_owned(), &line[first]))
        .chain(others)
        .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
        .collect();
    format!("{{{}}}\n", all.join(","))
}

/// Replaces every text in the facts by the hostile one, except those that must be parsed.
fn spoil(value: &mut Value) {
    match value {
        Value::String(text) if !["rounds", "malformed stamp"].contains(&text.as_str()) => {
            *value = EVIL.into()
        }
        Value::Array(all) => all.iter_mut().for_each(spoil),
        Value::Object(all) => all.values_mut().for_each(spoil),
        _ => {}
    }
}

/// A second run with the same texts in `DIR-2`, on a machine with another hostile kernel.
fn another(dunnage: &Dunnage) {
    let to = format!("{}-2", dunnage.directory().display());
    let to = Path::new(&to);
    fs::create_dir(to).unwrap();
    for file in ["plan.json", "env.json", "samples.jsonl"] {
        fs::copy(dunnage.directory().join(file), to.join(file)).unwrap();
    }
    let run = format!("{EVIL} again");
    change(&to.join("env.json"), |environment| {
        environment["run"] = run.as_str().into();
        environment["machine"]["kernel"] = format!("{EVIL} again").into();
    });
    let samples = fs::read_to_string(to.join("samples.jsonl")).unwrap();
    let (first, others) = samples.split_once('\n').unwrap();
    let mut first: serde_json::Map<String, Value> = serde_json::from_str(first).unwrap();
    first.insert("run".into(), run.into());
    fs::write(to.join("samples.jsonl"), in_order(&first) + others).unwrap();
}

/// The hostile texts are in the output, made harmless.
fn has_reached(ran: &Ran) {
    assert!(ran.stdout.contains("alert(1)"), "{ran}");
}

fn change(path: &Path, make: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    make(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Nothing controls a terminal or changes the writing direction, in data and in messages.
fn is_visible(what: &str, text: &str) {
    let bad = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202a}'..='\u{202e}');
    let found = text.char_indices().find(|(_, c)| bad(*c));
    assert!(found.is_none(), "{what}: {found:?} in {:.300}", &text[found.map_or(0, |(at, _)| at)..]);
}

fn has_no_markup(what: &str, text: &str) {
    for bad in ["<script>alert", "<img src=x", "onerror=alert(2)>"] {
        assert!(!text.contains(bad), "{what}: {bad}");
    }
}

/// Markdown without its code blocks, in which nothing is markup; each ends with the fence that it began with.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => fence = Some(line.trim_end_matches(|c| c != '`')),
            None => kept += &format!("{line}\n"),
        }
    }
    assert_eq!(fence, None, "a block of code is not closed");
    kept
}

fn cells_are_no_formulas(what: &str, table: &str) {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(table.as_bytes());
    let mut rows = 0;
    for record in reader.records() {
        let record = record.unwrap_or_else(|why| panic!("{what}: {why}"));
        let formula =
            |cell: &&str| cell.starts_with(['=', '+', '-', '@', '\t']) && cell.parse::<f64>().is_err();
        assert_eq!(record.iter().find(formula), None, "{what}");
        rows += 1;
    }
    assert!(rows > 2, "{what}: {rows}");
}

/// The requirements on every output, by its format.
fn check(format: &str, ran: &Ran) {
    assert_eq!(ran.code, 0, "{format}: {ran}");
    assert!(!ran.stdout.is_empty(), "{format}: {ran}");
    is_visible(format, &ran.stdout);
    is_visible(format, &ran.stderr);
    match format.rsplit(' ').next().unwrap() {
        "html" => has_no_markup(format, &ran.stdout),
        "md" => has_no_markup(format, &without_code(&ran.stdout)),
        "csv" => cells_are_no_formulas(format, &ran.stdout),
        "json" => drop(serde_json::from_str::<Value>(&ran.stdout).expect("JSON")),
        _ => {}
    }
    let own_lines = ["BenchmarkEvil", "# heading", "| a | b |", "![x]"];
    let found = ran.stdout.lines().find(|line| own_lines.iter().any(|own| line.starts_with(own)));
    assert_eq!(found, None, "{format}");
}

#[test]
fn texts_of_strangers_are_texts_in_every_format() {
    let dunnage = Dunnage::new();
    hostile(&dunnage);
    for format in ["terminal", "md", "json", "csv", "gobench", "html"] {
        check(&format!("report {format}"), &dunnage.run(&format!("report DIR --format {format}")));
    }
    check("report terminal", &dunnage.run("report DIR --reference --job 2s"));
    another(&dunnage);
    for format in ["terminal", "md", "json", "html"] {
        let ran = dunnage.run(&format!("compare DIR DIR-2 --format {format}"));
        check(&format!("compare {format}"), &ran);
        has_reached(&ran);
    }
    for format in ["terminal", "md", "json", "csv", "html"] {
        let ran = dunnage.run(&format!("history DIR DIR-2 --format {format}"));
        check(&format!("history {format}"), &ran);
        has_reached(&ran);
    }
    let lines = dunnage.run("report DIR --format gobench").stdout;
    let known =
        ["goos: ", "goarch: ", "pkg: ", "cpu: ", "scripted: ", "Unit ", "BenchmarkStart/subject=", "--- "];
    let other = lines.lines().find(|line| !known.iter().any(|start| line.starts_with(start)));
    assert_eq!(other, None);
    let ran = dunnage.run("report DIR --format svg -o DIR-svg");
    assert_eq!(ran.code, 0, "{ran}");
    let pictures = fs::read_dir(format!("{}-svg", dunnage.directory().display())).unwrap();
    let pictures: Vec<_> = pictures.map(|picture| picture.unwrap().path()).collect();
    assert!(pictures.iter().any(|path| path.extension().is_some_and(|own| own == "svg")), "{pictures:?}");
    for path in pictures {
        let text = fs::read_to_string(&path).unwrap();
        // Each picture comes with its words and data, in columns.
        is_visible("svg", &text.replace('\t', " "));
        if path.extension().is_some_and(|own| own == "svg") {
            has_no_markup("svg", &text);
        }
    }
}

/// The pack of such a run can be read, and its report is as harmless.
#[test]
fn a_strangers_run_can_be_packed_and_is_shown_harmlessly() {
    let dunnage = Dunnage::new();
    hostile(&dunnage);
    // With this host name every other text would contain it.
    change(&dunnage.directory().join("env.json"), |environment| environment["host"] = "strange".into());
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
    is_visible("pack", &ran.stderr);
    check("report terminal", &dunnage.run("report DIR.dunnage"));
    check("report html", &dunnage.run("report DIR.dunnage --format html"));
}

/// The program with at most this much memory.
fn with_memory(dunnage: &Dunnage, mebibytes: u64, arguments: &str) -> Ran {
    let wrapper = format!("prlimit --as={} {}", mebibytes << 20, env!("CARGO_BIN_EXE_dunnage"));
    dunnage.through(&wrapper, arguments)
}

fn appended(dunnage: &Dunnage, text: &[u8]) {
    use std::io::Write;
    let path = dunnage.directory().join("samples.jsonl");
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text).unwrap();
}

fn measured() -> Dunnage {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake --set prestate=idle --rounds 3 --seed 7 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    dunnage
}

#[test]
fn lines_that_say_nothing_take_no_memory() {
    let dunnage = measured();
    appended(&dunnage, &b"x\n".repeat(3_000_000));
    let ran = with_memory(&dunnage, 256, "report DIR --format json");
    assert!(ran.code == 0 && ran.stdout.contains("3000000 lines"), "{}", ran.stderr);
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    let dunnage = measured();
    let path = dunnage.directory().join("samples.jsonl");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // Only zeros, which also take no space on the disk.
    file.set_len(file.metadata().unwrap().len() + (400 << 20)).unwrap();
    appended(&dunnage, b"\nx\n");
    let ran = with_memory(&dunnage, 256, "report DIR --format json");
    assert!(ran.code == 0 && ran.stdout.contains("2 lines"), "{}", ran.stderr);
    let ran = with_memory(&dunnage, 256, "report DIR --format csv");
    assert!(ran.code == 0 && ran.stdout.lines().count() > 3, "{}", ran.stderr);
}

#[test]
fn more_lines_than_the_plan_can_give_are_refused() {
    let dunnage = measured();
    appended(&dunnage, &b"{\"begin\":0,\"at\":0}\n".repeat(300_000));
    let ran = dunnage.run("report DIR");
    assert!(ran.code == 1 && ran.stderr.contains("more lines than a run of its plan can have"), "{ran}");
}
