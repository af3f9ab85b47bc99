//! The table that dunnage exports, and its import.

use std::fs;

use serde_json::Value;

use super::Case;
use crate::dunnage::Dunnage;

/// A run of scripted subjects: its table, and its report.
fn measured(arguments: &str) -> (String, Value) {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("run {arguments} --seed 7 -o DIR"));
    assert!([0, 6].contains(&ran.code), "{ran}");
    let table = dunnage.run("report DIR --format csv").stdout;
    let report = dunnage.run("report DIR --format json").stdout;
    (table, serde_json::from_str(&report).expect("JSON"))
}

/// Every comparison's verdict, in any order.
fn verdicts(report: &Value) -> Vec<String> {
    let experiments = report["experiments"].as_array().expect("experiments").iter();
    let mut all: Vec<String> = experiments
        .flat_map(|one| ["comparisons", "twins"].map(|list| one[list].as_array().expect("comparisons")))
        .flatten()
        .map(|one| {
            let words = ["subject", "against", "relation", "setting", "metric", "verdict"];
            format!("{} {}", words.map(|field| one[field].to_string()).join(" "), one["difference"])
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_table_gives_the_same_values_and_verdicts_back() {
    for arguments in [
        "start lifecycle -s a=fake:time=5ms,noise=3 -s b=fake:time=6ms,noise=3 -s c=fake:time=9ms,noise=1 --rounds 14",
        "start -s a=fake:time=2ms -s b=fake:time=3ms,fail=4 --set prestate=idle --rounds 12",
    ] {
        let (table, before) = measured(arguments);
        let case = Case::new("samples.csv", &table);
        let ran = case.import();
        assert_eq!(ran.code, 0, "{arguments}: {ran}");
        let again = case.dunnage.run("report DIR --format csv").stdout;
        assert!(table == again, "{arguments}: the table differs");
        let after = case.report();
        let (before_all, after_all) = (verdicts(&before), verdicts(&after));
        let differing = before_all.iter().zip(&after_all).find(|(one, other)| one != other);
        assert!(before_all.len() == after_all.len() && differing.is_none(), "{arguments}: {differing:?}");
        let family = |report: &Value| report["experiments"][0]["verdicts_in_family"].as_u64();
        assert!(family(&before) == family(&after) && family(&after) > Some(0), "{arguments}");
        assert_eq!(before["failures"], after["failures"], "{arguments}");
        assert_eq!(after["imported"]["order"], "rounds");
    }
}

#[test]
fn a_wrong_line_is_named_by_its_number() {
    let (table, _) = measured("start -s a=fake:time=2ms -s b=fake:time=3ms --set prestate=idle --rounds 2");
    let lines: Vec<&str> = table.lines().collect();
    let third = |old: &str, new: &str| {
        let line = lines[2].replace(old, new);
        assert_ne!(line, lines[2], "{old}");
        let mut all = lines.clone();
        all[2] = &line;
        all.join("\n") + "\n"
    };
    let fields: Vec<&str> = lines[2].split(',').collect();
    let cases = [
        (third(",start,", ",stop,"), "line 3: this dunnage has no experiment `stop`"),
        (third("prestate=idle", "prestate=busy"), "line 3: `prestate=busy` is not a setting of `start`"),
        (third(&format!(",{},s,", fields[6]), ",depth,s,"), "line 3: `start` has no metric `depth`"),
        (third(",s,", ",ms,"), "must be `s`"),
        (third(fields[13], "NaN"), "line 3: `NaN` is not a number"),
        (third(fields[13], "1e999"), "line 3: `1e999` is not a number"),
        (third(",measured,", ",guessed,"), "line 3: the sample is `measured` in an earlier line"),
        (third(",warmup,1,", ",warmup,0,"), "line 3: `0` is not a round"),
        (third(fields[12], "yesterday"), "line 3: `yesterday` is not a time"),
        (third(fields[0], "other"), "line 3: it belongs to another run"),
        (third(",s,", ","), "line: 3"),
        (format!("{}\n", lines[0]), "contains no measurements"),
        (table.clone() + lines[1] + "\n", "keep the order of the exported lines"),
        (format!("{}\n{}\n{}\n", lines[0], lines[1], lines[1]), "is given twice for one sample"),
    ];
    for (text, why) in cases {
        let case = Case::new("bad.csv", &text);
        let ran = case.import();
        assert!(ran.code == 1 && ran.stderr.contains(why) && ran.stderr.contains("bad.csv"), "{why}: {ran}");
    }
}

/// A byte order mark and other line ends, as written by a spreadsheet.
#[test]
fn what_a_spreadsheet_does_to_lines_is_no_harm() {
    let (table, _) = measured("start -s a=fake:time=2ms --set prestate=idle --rounds 3");
    let case = Case::new("samples.csv", &table.replace('\n', "\r\n"));
    assert_eq!(case.import().code, 0);
    assert_eq!(case.dunnage.run("report DIR --format csv").stdout, table);
    fs::remove_dir_all(case.dunnage.directory()).expect("it was made");
    fs::write(&case.file, format!("\u{feff}{table}")).expect("a file");
    assert_eq!(case.import().code, 0);
    assert_eq!(case.dunnage.run("report DIR --format csv").stdout, table);
}
