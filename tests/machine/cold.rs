//! The setting `cache`: only where it is allowed, and then the probe's pages are really gone.
//!
//! Emptying the page cache slows down everything else on the machine, so it is done only a few times here.

use std::fs;

use crate::dunnage::{Dunnage, finished};
use crate::support::{Need, lacks};

#[test]
fn a_cold_cache_needs_the_flag_and_the_flag_an_experiment_that_has_it() {
    let dunnage = Dunnage::new();
    let cases = [
        (
            "plan start -s a=fake --set cache=cold",
            "hint: allow it with `--drop-caches` if that disturbs no other work",
        ),
        ("plan lifecycle -s a=fake --drop-caches", "`--drop-caches` has no effect"),
        ("plan start -s a=fake --drop-caches --set cache=tepid", "`cache` takes warm, cold"),
    ];
    for (arguments, hint) in cases {
        let ran = dunnage.run(arguments);
        assert_eq!(ran.code, 2, "{arguments}: {ran}");
        assert!(ran.stderr.contains(hint), "{arguments}: {ran}");
    }
    // Defaults are not written to the plan.
    let ran = dunnage.run("plan start -s a=fake --set cache=warm");
    assert!(ran.code == 0 && !ran.stdout.contains("cache="), "{ran}");
}

#[test]
fn cold_and_primed_exclude_each_other() {
    if lacks("cold_and_primed_exclude_each_other", Need::DropCaches) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("plan start -s a=fake --drop-caches --set prestate=primed --set cache=cold");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("`start` has no setting with all of these values"), "{ran}");
    let ran = dunnage.run("plan start -s a=fake --drop-caches");
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run("run start -s a=fake --drop-caches --rounds 2 --seed 1 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let table = dunnage.run("report DIR --format csv").stdout;
    for setting in ["prestate=idle;cache=warm", "prestate=idle;cache=cold", "prestate=primed;cache=warm"] {
        assert!(table.contains(&format!(",start,{setting},")), "{setting}: {table}");
    }
    assert!(!table.contains("prestate=primed;cache=cold"), "{table}");
}

#[test]
fn a_cold_launch_records_what_was_dropped() {
    if lacks("a_cold_launch_records_what_was_dropped", Need::DropCaches) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s bare --drop-caches --set cache=cold --rounds 1 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let samples = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    let value = |line: &str, name: &str| -> Option<u64> {
        let rest = line.split(&format!("\"{name}\":")).nth(1)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let dropped = samples
        .lines()
        .filter_map(|line| Some((value(line, "cached_before")?, value(line, "cached_after")?)));
    let dropped: Vec<_> = dropped.collect();
    assert!(!dropped.is_empty(), "{samples}");
    assert!(dropped.iter().all(|(before, after)| *before > 0 && *after > 0), "{dropped:?}");
    // The first one had the test's own executable to drop.
    assert!(dropped[0].1 < dropped[0].0, "{dropped:?}");
}

#[test]
fn a_cold_command_finds_none_of_its_program_in_the_cache() {
    let test = "a_cold_command_finds_none_of_its_program_in_the_cache";
    if lacks(test, Need::DropCaches) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    // A file that no other process runs.
    let own = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/var/tmp").unwrap();
    fs::copy(env!("CARGO_BIN_EXE_dunnage"), own.path().join("tool")).unwrap();
    let place = own.path().display();
    let words =
        format!("run command -s bare -s floor --mount {place}:{place}:ro --drop-caches --rounds 1 -o DIR");
    let cmd = format!("{place}/tool list plans");
    let ran = finished(dunnage.command(&words).args(["--cmd", &cmd]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let samples = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    let cold: Vec<&str> = samples.lines().filter(|line| line.contains("program_cached")).collect();
    // Of both subjects and the baseline's twin, to warm up and to count; there are as many warm ones.
    assert!(cold.len() >= 4, "{samples}");
    let length = format!("\"program_bytes\":{}", fs::metadata(own.path().join("tool")).unwrap().len());
    for line in cold {
        assert!(line.contains("\"program_cached\":0") && line.contains(&length), "{line}");
        assert!(line.contains("cached_before") && line.contains("cached_after"), "{line}");
    }
    // A running program cannot be dropped, nor can a file in memory.
    let memory = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/dev/shm").unwrap();
    let memory = format!("--mount {0}:{0}", memory.path().display());
    let exe = env!("CARGO_BIN_EXE_dunnage");
    for (more, class, told) in
        [("", "treatment", "another process runs it"), (&memory, "unsupported", "(tmpfs)")]
    {
        let words = format!("check command -s bare --drop-caches --set cache=cold {more}");
        let cmd = format!("{exe} list plans");
        let ran = finished(dunnage.command(&words).args(["--cmd", &cmd]).output().unwrap());
        assert!(ran.stdout.contains(class) && ran.stdout.contains(told), "{ran}");
    }
}

#[test]
fn a_state_directory_in_memory_is_refused_before_anything_is_measured() {
    if lacks("a_state_directory_in_memory_is_refused_before_anything_is_measured", Need::DropCaches) {
        return;
    }
    let memory = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/dev/shm").unwrap();
    let dunnage = Dunnage::new().with("DUNNAGE_STATE", &memory.path().join("state").display().to_string());
    let ran = dunnage.run("run start -s bare --drop-caches --set cache=cold --rounds 1 -o DIR");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("unsupported: a cold cache"), "{ran}");
    assert!(ran.stderr.contains("hint: set `$DUNNAGE_STATE` to a directory of your own on a disk"), "{ran}");
    assert!(!dunnage.directory().exists());
}

#[test]
fn whoever_may_not_drop_caches_is_told_before_anything_is_measured() {
    let test = "whoever_may_not_drop_caches_is_told_before_anything_is_measured";
    if lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let program = dunnage.given_to(64321);
    let wrapper = format!("setpriv --reuid 64321 --regid 64321 --clear-groups {}", program.display());
    let ran = dunnage.through(&wrapper, "run start -s bare --drop-caches --rounds 1 -o DIR");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("cannot empty the page cache"), "{ran}");
    assert!(ran.stderr.contains("hint: run dunnage as root"), "{ran}");
    assert!(!dunnage.directory().exists());
}
