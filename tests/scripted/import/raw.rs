//! The raw forms of published studies, through the program.

use super::{Case, cells, imported, metric, texts};

/// Fifty launches of 300 ms; one lost the leading zero of its fraction: padded at the end, it would be the
/// spike of the study.
#[test]
fn a_lost_zero_is_named_with_both_values_and_is_no_spike() {
    let pair = |at: u64| {
        let start = 1_630_919_600_000_000_000 + at * 1_500_000_000 + 728_000_000;
        let [start, end] = [start, start + 300_000_000 + at].map(|stamp| stamp.to_string());
        // The fraction of the third one's end is 28 ms: `028000002`.
        let end = if at == 2 { end.replacen("0280", "280", 1) } else { end };
        format!("{start},{end}\r\n")
    };
    let list: String = (0..50).map(pair).collect();
    let (case, report) = imported("alpine_runc.csv", &list);
    assert_eq!(report["experiments"][0]["name"], "start");
    let value = metric(cells(&report)[0], "first_instruction");
    assert_eq!(value["median"]["rounds"], 50, "{value}");
    let slowest = value["range"][1].as_f64().unwrap();
    assert!((slowest - 0.3).abs() < 1e-6, "{value}");
    assert_eq!(texts(&report["suspects"], "rule"), ["malformed stamp"]);
    let evidence = report["suspects"][0]["evidence"].as_str().unwrap();
    assert!(
        evidence.contains("300 ms with zeros restored") && evidence.contains("552 ms with zeros after it"),
        "{evidence}"
    );
    assert_eq!(report["started"], "2021-09-06T09:13:20.728000000Z");
    let table = case.dunnage.run("report DIR --format csv").stdout;
    let (again, _) = imported("again.csv", &table);
    assert_eq!(again.dunnage.run("report DIR --format csv").stdout, table);
}

#[test]
fn a_failure_in_a_list_of_durations_is_no_time() {
    let list = format!("0m0,002s\n{}", "0m1,531s\n0m1,635s\n".repeat(10));
    let (case, report) = imported("transfer.csv", &list);
    let value = metric(cells(&report)[0], "returned");
    assert_eq!((&value["range"][0], &value["median"]["rounds"]), (&1.531.into(), &20.into()), "{value}");
    let told = case.dunnage.run("report DIR --full").stdout;
    assert!(told.contains("it did not do its work"), "{told}");
}

#[test]
fn a_table_of_runtimes_has_a_subject_for_each_and_says_what_it_left_out() {
    let table = "runtime,metric,value\nbare,startup_ms,1.4\nbare,startup_ms,1.2\ndocker,startup_ms,300\ndocker,startup_ms,310\nbare,used_mb,9924\n";
    let case = Case::new("startup.csv", table);
    let ran = case.import();
    assert!(ran.code == 0 && ran.stderr.contains("not times: `used_mb`"), "{ran}");
    let report = case.report();
    let mut told: Vec<_> = cells(&report)
        .iter()
        .map(|cell| {
            format!("{} {} {}", cell["label"], cell["layer"], metric(cell, "returned")["median"]["estimate"])
        })
        .collect();
    told.sort();
    assert_eq!(told, [r#""bare startup_ms" "bare" 0.0013"#, r#""docker startup_ms" "engine" 0.305"#]);
    let nothing = Case::new("memory.csv", "runtime,metric,value\nbare,used_mb,9924\n").import();
    assert!(
        nothing.code == 1 && nothing.stderr.contains("none of its metrics is a time: `used_mb`"),
        "{nothing}"
    );
}
