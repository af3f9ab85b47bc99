//! The experiment `syscall` for real: on the host, on the floor with each piece left out in turn, on runtimes
//! and on engines. The bounds are true on every machine.

use crate::dunnage;

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::{Need, lacks, skip};
use dunnage::Dunnage;
use serde_json::Value;

const CALLS: [&str; 12] = [
    "getppid",
    "getpid",
    "clock_vdso",
    "clock_gettime",
    "read_zero",
    "write_null",
    "open_close",
    "stat",
    "futex_wake",
    "mmap_munmap",
    "pipe_round_trip",
    "fork_exec_wait",
];

/// The samples of a run, and the facts of their treatments.
fn samples(dunnage: &Dunnage) -> Vec<(Value, Value)> {
    let text = std::fs::read_to_string(dunnage.directory().join("samples.jsonl")).expect("samples");
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let facts: BTreeMap<u64, &Value> = lines
        .iter()
        .filter_map(|line| Some((line.get("facts").and(line["treatment"].as_u64())?, &line["facts"])))
        .collect();
    let measured = lines.iter().filter(|line| line.get("counters").is_some());
    measured
        .map(|line| {
            let number = line["treatment"].as_u64().expect("a treatment");
            (line.clone(), facts[&number].clone())
        })
        .collect()
}

/// What must be true of every sample on every machine.
fn check(sample: &Value, facts: &Value) {
    let counter = |name: &str| sample["counters"][name].as_i64();
    for call in CALLS {
        let picoseconds = counter(call).unwrap_or_else(|| panic!("no {call}: {sample}"));
        assert!(picoseconds > 0, "{call}: {sample}");
        let (calls, batches) = (counter(&format!("{call}.calls")), counter(&format!("{call}.batches")));
        let (calls, batches) = (calls.unwrap(), batches.unwrap());
        assert!((100..=2000).contains(&batches) && calls % batches == 0, "{call}: {sample}");
        assert!(calls <= 3_000_000, "{call}: {sample}");
    }
    // Two context switches take longer than the two calls between them, and a program longer than a page.
    let value = |call: &str| counter(call).unwrap();
    assert!(value("pipe_round_trip") > value("write_null"), "{sample}");
    assert!(value("fork_exec_wait") > value("mmap_munmap"), "{sample}");
    assert!(counter("cpu").is_some_and(|cpu| cpu >= 0), "{sample}");
    for fact in ["vdso", "store_bypass", "indirect_branch"] {
        assert!(facts[fact].is_string(), "{fact}: {facts}");
    }
}

fn measured(subjects: &str, options: &str) -> (Dunnage, Vec<(Value, Value)>) {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!(
        "run syscall {subjects} --set window=2ms --set fixed=1000 --rounds 1 {options} -o DIR"
    ));
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(dunnage.left_in_state(), [""; 0].map(std::path::PathBuf::from), "{ran}");
    let samples = samples(&dunnage);
    assert!(!samples.is_empty(), "{ran}");
    samples.iter().for_each(|(sample, facts)| check(sample, facts));
    (dunnage, samples)
}

#[test]
fn every_call_is_measured_on_the_host_and_reading_the_clock_there_makes_no_call() {
    const TEST: &str = "every_call_is_measured_on_the_host_and_reading_the_clock_there_makes_no_call";
    let (_, samples) = measured("-s bare", "");
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let readable = std::fs::read_to_string(source).is_ok_and(|source| source.trim() == "tsc");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let vdso = if maps.contains("[vdso]") { "present" } else { "absent" };
    if !readable {
        skip(TEST, Need::Kernel, "reading its clock is a system call");
    }
    for (sample, facts) in &samples {
        assert_eq!((&facts["seccomp_filters"], &facts["vdso"]), (&"0".into(), &vdso.into()));
        if readable && vdso == "present" {
            let of = |call: &str| sample["counters"][call].as_i64().unwrap();
            assert!(of("clock_vdso") < of("clock_gettime"), "{sample}");
        }
    }
}

/// With a tenth of a CPU no batch shows the limit; a million calls in sequence do, and the kernel's counters
/// say why.
#[test]
fn a_tenth_of_a_cpu_is_seen_in_a_million_calls() {
    const TEST: &str = "a_tenth_of_a_cpu_is_seen_in_a_million_calls";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let options = "-s bare -s limited=bare:cpus=0.1 --no-vary --set fixed=1000000 --rounds 1 -o DIR --full";
    let ran = dunnage.run(&format!("run syscall {options}"));
    assert_eq!(ran.code, 0, "{ran}");
    let samples = samples(&dunnage);
    assert!(
        samples.iter().all(|(_, facts)| facts["fixed_work"] == "1000000 getppid in a row"),
        "{samples:?}"
    );
    let limited: Vec<&Value> = samples
        .iter()
        .map(|(sample, _)| &sample["counters"])
        .filter(|all| all["fixed_throttled"].is_i64())
        .collect();
    assert!(limited.len() == 2 && samples.len() >= 4, "warmed up once, measured once: {ran}");
    for counters in limited {
        let number = |name: &str| counters[name].as_f64().unwrap_or_else(|| panic!("{name}: {counters}"));
        // One more period may begin, and one may lend to the next what its CPU was given.
        assert!(number("fixed_cpu") <= (number("fixed") / 100e6 + 1.0) * 10e6 + 5e6, "{counters}");
        assert!(number("fixed_throttled") > 0.0 && number("fixed_throttled_time") > 0.0, "{counters}");
        assert!(number("fixed_throttled_time") <= number("fixed") - number("fixed_cpu") + 1e6, "{counters}");
    }
    assert!(ran.stdout.contains("a fixed number of calls on `limited` is throttled for"), "{ran}");
}

#[test]
fn every_piece_of_the_floor_can_be_left_out() {
    const TEST: &str = "every_piece_of_the_floor_can_be_left_out";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let (dunnage, samples) = measured("-s bare -s floor", "");
    let report = dunnage.run("report DIR --format csv").stdout;
    for left_out in [
        "seccomp=off",
        "pid=host",
        "net=host",
        "userns=private",
        "mounts=host",
        "uts=host",
        "ipc=host",
        "cgroup=host",
        "cgroupns=host",
        "overlay=off",
        "capabilities=all",
        "no_new_privs=off",
    ] {
        let of = |line: &&str| line.contains(&format!("floor:{left_out},")) && line.contains(",getppid,");
        let lines: Vec<_> = report.lines().filter(of).collect();
        assert!(lines.iter().any(|line| line.contains(",measure,")), "{left_out}: {report}");
    }
    // The filter's length is reported if there is a filter, and nothing is found where it was left out.
    let instructions = |filters: &str| -> Vec<String> {
        let with = samples.iter().filter(|(_, facts)| facts["seccomp_filters"] == filters);
        with.filter_map(|(_, facts)| Some(facts["seccomp_instructions"].as_str()?.to_owned())).collect()
    };
    assert!(instructions("1").iter().all(|count| count.parse::<u32>().is_ok_and(|count| count > 100)));
    assert!(instructions("0").iter().all(|count| count == "0") && !instructions("1").is_empty());
}

#[test]
fn the_calls_are_measured_in_containers_of_runtimes() {
    const TEST: &str = "the_calls_are_measured_in_containers_of_runtimes";
    for (need, runtime) in [(Need::Runc, "runc"), (Need::Crun, "crun")] {
        if lacks(TEST, Need::Root) || lacks(TEST, need) {
            continue;
        }
        let (_, samples) = measured(&format!("-s {runtime} -s {runtime}:seccomp=off"), "--no-vary");
        for filters in ["0", "1"] {
            assert!(samples.iter().any(|(_, facts)| facts["seccomp_filters"] == filters), "{runtime}");
        }
    }
}

#[test]
fn the_calls_are_measured_in_containers_of_engines() {
    const TEST: &str = "the_calls_are_measured_in_containers_of_engines";
    for (need, engine) in [(Need::Docker, "docker"), (Need::Podman, "podman")] {
        if lacks(TEST, need) {
            continue;
        }
        let (dunnage, _) = measured(&format!("-s bare -s {engine}"), "--no-vary");
        let report = dunnage.run("report DIR --full").stdout;
        assert!(report.contains("what is slower?"), "{report}");
        assert!(report.contains("what a system call goes through"), "{report}");
    }
}

#[test]
fn a_window_that_makes_no_sense_is_wrong_usage() {
    let ran = Dunnage::new().run("run syscall -s bare --set window=20 --rounds 1 -o DIR");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("a time from 1ms to 10s"), "{ran}");
}

#[test]
fn the_probe_that_does_nothing_says_nothing() {
    let done = Command::new(env!("CARGO_BIN_EXE_dunnage")).args(["probe", "none"]).output().unwrap();
    assert_eq!((done.status.code(), done.stdout.len(), done.stderr.len()), (Some(0), 0, 0));
}
