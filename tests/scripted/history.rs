//! Many runs in sequence: a planted change is found at its run and nowhere else, and a change of the machine
//! is recognised as one.

use crate::dunnage;

use std::fs;

use dunnage::Dunnage;

/// Runs in a directory, the n-th with these subjects; they begin a day apart, the first on 1 October.
fn runs(dunnage: &Dunnage, count: usize, subjects: impl Fn(usize) -> String) {
    for day in 1..=count {
        let ran = dunnage.run(&format!(
            "run start {} --set prestate=idle --rounds 5 --seed {day} --tag commit=c{} -o DIR/{day:02}",
            subjects(day),
            day.div_ceil(2)
        ));
        assert_eq!(ran.code, 0, "{ran}");
        let path = dunnage.directory().join(format!("{day:02}/env.json"));
        let text = fs::read_to_string(&path).unwrap();
        let mut environment: serde_json::Value = serde_json::from_str(&text).unwrap();
        environment["started"] = format!("2026-10-{day:02}T12:00:00Z").into();
        if day > 8 {
            environment["machine"]["kernel"] = "6.99.0".into();
        }
        fs::write(&path, environment.to_string()).unwrap();
    }
}

fn json(dunnage: &Dunnage, options: &str) -> serde_json::Value {
    let ran = dunnage.run(&format!("history DIR --format json {options}"));
    assert_eq!(ran.code, 0, "{ran}");
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_planted_change_is_found_at_its_run_and_nowhere_else() {
    let dunnage = Dunnage::new();
    runs(&dunnage, 14, |day| {
        format!("-s still=fake:time=20ms -s b=fake:time={}ms", if day > 8 { 24 } else { 20 })
    });
    let found = json(&dunnage, "");
    let history = &found["histories"][0];
    assert_eq!(history["runs"].as_array().unwrap().len(), 14);
    let series = |label: &str| {
        let mut all = history["series"].as_array().unwrap().iter();
        all.find(|one| one["label"] == label).cloned().unwrap()
    };
    assert_eq!(series("still")["changes"], serde_json::json!([]));
    let changes = series("b")["changes"].as_array().unwrap().clone();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((&changes[0]["first_after"], &changes[0]["verdict"]), (&8.into(), &"slower".into()));
    let beside = changes[0]["at_the_same_time"].to_string();
    assert!(beside.contains("kernel") && beside.contains("6.99.0"), "{beside}");
    let by_tag = json(&dunnage, "--by commit -s b");
    assert_eq!(by_tag["histories"][0]["series"][0]["changes"][0]["first_after"], 8);
    let ran = dunnage.run("history DIR -s b");
    assert!(ran.stdout.contains("start.returned of b (prestate=idle) takes more since 2026-10-09"), "{ran}");
    let table = dunnage.run("history DIR --format csv").stdout;
    assert_eq!(table.lines().count(), 1 + 2 * 14, "{table}");
    // A pack represents its run, and a run that is named twice counts once.
    let ran = dunnage.run("pack DIR/01 -o DIR/01.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run("history DIR");
    assert!(ran.code == 0 && ran.stdout.contains("counts once"), "{ran}");
}

/// The rounds that an engine survives need not be like those that it lost: they carry no change.
#[test]
fn a_run_that_lost_a_third_of_its_rounds_carries_no_change() {
    let dunnage = Dunnage::new();
    let value = |day: &str, fail: &str, code: i32| {
        let ran = dunnage.run(&format!(
            "run start -s a=fake:time=20ms{fail} --set prestate=idle --rounds 12 -o DIR/{day}"
        ));
        assert_eq!(ran.code, code, "{ran}");
    };
    value("01", "", 0);
    value("02", ",fail=3", 6);
    // One of twelve may be chance.
    value("03", ",fail=12", 0);
    let table = dunnage.run("history DIR --format csv").stdout;
    let are_suspect: Vec<bool> = table.lines().skip(1).map(|line| line.contains("suspect")).collect();
    assert_eq!(are_suspect, [false, true, false], "{table}");
}

/// hyperfine's commands do not show the state of the machine, least of all one that changed.
#[test]
fn a_command_that_others_measured_changes_by_itself() {
    let dunnage = Dunnage::new();
    fs::create_dir_all(dunnage.directory()).unwrap();
    for day in 1..=14 {
        let middle = if day > 7 { 0.3 } else { 0.2 };
        let times: Vec<f64> = (0..10).map(|i| middle + 1e-3 * f64::from((i * 7 + day) % 10)).collect();
        let file = dunnage.directory().with_extension("json");
        let text = serde_json::json!({"results": [{"command": "x", "times": times}]}).to_string();
        fs::write(&file, text).unwrap();
        // A file's sum identifies it, and two runs on one day may differ.
        let ran = dunnage.run(&format!("import {} --tag commit=c{day:02} -o DIR/{day:02}", file.display()));
        assert_eq!(ran.code, 0, "{ran}");
    }
    let found = json(&dunnage, "--by commit");
    let changes = found["histories"][0]["series"][0]["changes"].as_array().cloned().unwrap();
    let told: Vec<_> =
        changes.iter().map(|one| (one["first_after"].clone(), one["verdict"].clone())).collect();
    assert_eq!(told, [(7.into(), "slower".into())], "{found}");
}

#[test]
fn runs_that_were_taken_in_blocks_are_told_in_every_format() {
    let dunnage = Dunnage::new();
    let file = dunnage.directory().with_extension("hyperfine.json");
    for name in ["one", "two"] {
        // Two files, not one that is named twice.
        fs::write(&file, format!("{}\n", include_str!("import/hyperfine-1.15.json").replace("ls /", name)))
            .unwrap();
        let ran = dunnage.run(&format!("import {} -o DIR/{name}", file.display()));
        assert_eq!(ran.code, 0, "{ran}");
    }
    for format in ["terminal", "md", "json"] {
        let ran = dunnage.run(&format!("history DIR --format {format}"));
        let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ran.code == 0 && text.contains("imported and measured in blocks"), "{format}: {ran}");
    }
    let table = dunnage.run("history DIR --format csv").stdout;
    assert!(
        table.lines().count() > 1 && table.lines().skip(1).all(|row| row.ends_with(",blocks")),
        "{table}"
    );
}

#[test]
fn too_few_runs_and_bad_ones_are_told() {
    let dunnage = Dunnage::new();
    runs(&dunnage, 2, |_| "-s a=fake".into());
    let ran = dunnage.run("history DIR");
    assert!(ran.code == 0 && ran.stdout.contains("no change can be found yet"), "{ran}");
    let ran = dunnage.run("history DIR/01");
    assert!(ran.code == 1 && ran.stderr.contains("needs at least two runs"), "{ran}");
    let ran = dunnage.run("history DIR --by nothing");
    assert!(ran.code == 2 && ran.stderr.contains("no run has the tag"), "{ran}");
    let ran = dunnage.run("history DIR --metric start.nothing");
    assert!(ran.code == 2 && ran.stderr.contains("`start.returned`"), "{ran}");
    let ran = dunnage.run("history DIR -s unknown");
    assert!(ran.code == 2 && ran.stderr.contains("subjects are `a`"), "{ran}");
    let ran = dunnage.run("history DIR --format csv -o DIR/01/samples.jsonl");
    assert!(ran.code == 2 && ran.stderr.contains("is part of a run"), "{ran}");
    // Another subject alone, and a newer format.
    let ran = dunnage.run("run start -s z=fake --rounds 2 -o DIR.other");
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run("history DIR/01 DIR.other");
    assert!(ran.code == 1 && ran.stderr.contains("share a cell"), "{ran}");
    let plan = dunnage.directory().join("02/plan.json");
    let text = fs::read_to_string(&plan).unwrap().replacen("\"version\": 2", "\"version\": 9", 1);
    fs::write(&plan, text).unwrap();
    let ran = dunnage.run("history DIR DIR.other");
    assert!(ran.code == 1 && ran.stderr.contains("left out") && ran.stderr.contains("version 9"), "{ran}");
    assert!(ran.stderr.contains("share a cell"), "{ran}");
    let ran = dunnage.run("history DIR/02");
    assert!(ran.code == 1 && ran.stderr.contains("version 9"), "{ran}");
}

/// What applies to all runs is reported once, and a machine without results has no title.
#[test]
fn two_machines_share_their_notices() {
    let dunnage = Dunnage::new();
    runs(&dunnage, 4, |_| "-s still=fake:time=20ms".to_owned());
    for day in 3..=4 {
        let path = dunnage.directory().join(format!("{day:02}/env.json"));
        let text = fs::read_to_string(&path).unwrap();
        let mut environment: serde_json::Value = serde_json::from_str(&text).unwrap();
        environment["machine"]["cpu"] = "another".into();
        fs::write(&path, environment.to_string()).unwrap();
    }
    let again = dunnage.directory().join("01");
    let ran = dunnage.run(&format!("history DIR {} --format html", again.display()));
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stdout.matches("counts once").count(), 1, "{ran}");
    assert!(!ran.stdout.contains("id=\"changes-"), "{ran}");
    assert!(ran.stdout.contains("id=\"subjects\" hidden"), "{ran}");
}
