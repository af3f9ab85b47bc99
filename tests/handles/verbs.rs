//! What a container of each kind can be asked for: limits of its cgroup, and other ones while it runs, what it uses,
//! what it has written, and an end after a grace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use dunnage::outcome::{Abort, Failure, FailureClass};
use dunnage::subject::limits::Limits;
use dunnage::subject::{Container, ContainerRequest, Resident, RunContext, Subject, on_path};
use dunnage::units::Nanos;
use serde_json::Value;

use crate::dunnage::Dunnage;
use crate::handles::{ends, run_in, service, subject};
use crate::running::until;
use crate::support::{LIMITED, Need, at_hand, lacks};

/// More than any verb takes that waits for nothing, and less than any grace that engines give unasked.
const SOON: Nanos = Nanos::from_millis(6_000);

/// Makes its program get no signal but SIGKILL, as one that ignores the others.
fn deafen(container: &mut Container<'_>) {
    let first = container.first_process().unwrap();
    // SAFETY: halts the first process of a container of this test, which has not been reaped.
    assert_eq!(unsafe { libc::kill(first, libc::SIGSTOP) }, 0);
    let state = || fs::read_to_string(format!("/proc/{first}/stat")).unwrap();
    until("the program has halted", || {
        state().rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    });
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_its_grace() {
    const TEST: &str = "a_program_that_ignores_sigterm_is_killed_after_its_grace";
    for text in at_hand(TEST, &LIMITED) {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        for grace in [1, 0] {
            let mut container = service(subject.as_ref(), None, &run);
            deafen(&mut container);
            let took = container.stop(grace).unwrap().took();
            let least = Nanos::from_millis(i64::from(grace) * 1000);
            assert!(took >= least && took < least + SOON, "{text}, {grace} s: {took}");
            container.remove().unwrap();
        }
        // One that does not ignore it ends within its grace.
        let mut container = service(subject.as_ref(), None, &run);
        let took = container.stop(60).unwrap().took();
        assert!(took < SOON, "{text}: {took}");
        container.remove().unwrap();
        // One that is removed while it runs is not waited for.
        let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
        let mut container = Container::run(subject.as_ref(), &request, &run).unwrap();
        container.ready().unwrap();
        deafen(&mut container);
        let (first, took) = (container.first_process().unwrap(), container.end().unwrap().took());
        // One that has ended may wait for its parent.
        let state = fs::read_to_string(format!("/proc/{first}/stat")).unwrap_or_default();
        assert!(took < SOON && (state.is_empty() || state.contains(") Z ")), "{text}: {took} {state}");
        ends(&dunnage, subject, run);
    }
}

/// Half a CPU, 64 MiB, and fifty processes.
const ASKED: Limits = Limits { cpus: Some(0.5), burst: None, memory: Some(64 << 20), pids: Some(50) };

/// A running container with these limits, whose program is ready.
fn limited<'a>(
    subject: &'a dyn Subject,
    limits: Limits,
    program: Resident,
    run: &'a RunContext,
) -> Result<Container<'a>, Abort> {
    let request = ContainerRequest { limits, program, ..ContainerRequest::default() };
    let mut container = Container::create(subject, &request, run)?;
    container.start()?;
    if program == Resident::Serves {
        container.ready()?;
    }
    Ok(container)
}

/// Why there is no such container.
fn refused(subject: &dyn Subject, limits: Limits, run: &RunContext) -> Failure {
    match limited(subject, limits, Resident::Waits, run) {
        Err(Abort::Failed(failure)) => failure,
        Err(Abort::Interrupted) => panic!("interrupted"),
        Ok(container) => panic!("{} has {limits:?}", container.name()),
    }
}

/// The number at the beginning of the first of these files that is in one of the container's cgroups.
fn number(container: &mut Container<'_>, files: [&str; 2]) -> u64 {
    let directories = container.cgroups().unwrap();
    let paths = files.iter().flat_map(|file| directories.iter().map(move |directory| directory.join(file)));
    let text =
        paths.into_iter().find_map(|path| fs::read_to_string(path).ok()).expect("a file with the limit");
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(u64::MAX)
}

const QUOTA: [&str; 2] = ["cpu.cfs_quota_us", "cpu.max"];
const MEMORY: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];
const PIDS: [&str; 2] = ["pids.max", "pids.max"];

#[test]
fn the_limits_of_a_request_are_those_of_its_cgroup() {
    const TEST: &str = "the_limits_of_a_request_are_those_of_its_cgroup";
    for text in at_hand(TEST, &LIMITED[1..]) {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let has_pids = text != "containerd";
        for program in [Resident::Serves, Resident::Waits] {
            let asked = Limits { pids: ASKED.pids.filter(|_| has_pids), ..ASKED };
            let mut container = limited(subject.as_ref(), asked, program, &run).unwrap();
            let found = [QUOTA, MEMORY].map(|files| number(&mut container, files));
            assert_eq!(found, [50_000, 64 << 20], "{text}");
            if has_pids {
                assert_eq!(number(&mut container, PIDS), 50, "{text}");
            }
        }
        if !has_pids {
            let why = refused(subject.as_ref(), ASKED, &run);
            assert!(why.class == FailureClass::Unsupported && why.reason.contains("no option"), "{why}");
        }
        ends(&dunnage, subject, run);
    }
}

#[test]
fn limits_that_a_subject_cannot_give_or_has_already_are_refused() {
    const TEST: &str = "limits_that_a_subject_cannot_give_or_has_already_are_refused";
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let why = refused(bare.as_ref(), ASKED, &run);
    assert!(why.class == FailureClass::Unsupported && why.reason.contains("no cgroup of its own"), "{why}");
    drop(bare);
    if lacks(TEST, Need::Root) {
        return;
    }
    let floor = subject("floor:cpus=0.5", &run);
    let why = refused(floor.as_ref(), ASKED, &run);
    assert!(why.class == FailureClass::Unsupported && why.reason.contains("key `cpus`"), "{why}");
    let rest = Limits { cpus: None, ..ASKED };
    let mut container = limited(floor.as_ref(), rest, Resident::Serves, &run).unwrap();
    assert_eq!([QUOTA, MEMORY].map(|files| number(&mut container, files)), [50_000, 64 << 20]);
    drop(container);
    ends(&dunnage, floor, run);
}

/// A `crun` that changes its configuration first by this expression of `sed`, and no container later.
fn changing(directory: &Path, expression: &str) -> String {
    let path = directory.join("crun");
    let real = on_path("crun").expect("it is installed");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = update ] && exit 0\nlast=\nfor word in \"$@\"; do\n  [ \"$last\" = --bundle ] && sed -i '{expression}' \"$word/config.json\"\n  \
         last=$word\ndone\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    format!("crun:bin={}", path.display())
}

#[test]
fn a_limit_that_is_not_applied_is_found() {
    const TEST: &str = "a_limit_that_is_not_applied_is_found";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Crun) {
        return;
    }
    for (expression, words) in [
        ("s/\"quota\":50000/\"quota\":60000/", "a CPU limit of 0.5 was asked for and 0.6 is in force"),
        (
            "s/\"memory\":{\"limit\":67108864}/\"memory\":{}/",
            "a memory limit of 67108864 was asked for and none is in force",
        ),
        ("s/\"limit\":50}/\"limit\":51}/", "a process limit of 50 was asked for and 51 is in force"),
    ] {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let place = tempfile::tempdir().unwrap();
        let crun = subject(&changing(place.path(), expression), &run);
        let why = refused(crun.as_ref(), ASKED, &run);
        assert_eq!(why.class, FailureClass::Treatment, "{why}");
        assert!(why.reason.contains(words), "{why}");
        let mut container = limited(crun.as_ref(), Limits::default(), Resident::Waits, &run).unwrap();
        match container.update(&Limits { pids: Some(40), ..Limits::default() }) {
            Err(Abort::Failed(Failure { class: FailureClass::Treatment, reason, .. })) => {
                assert!(
                    reason.contains("a process limit of 40 was asked for and none is in force"),
                    "{reason}"
                );
            }
            done => panic!("{done:?}"),
        }
        drop(container);
        ends(&dunnage, crun, run);
    }
}

/// Whether this is a failure since the subject cannot do this.
fn is_unsupported<T>(done: &Result<T, Abort>) -> bool {
    matches!(done, Err(Abort::Failed(failure)) if failure.class == FailureClass::Unsupported)
}

#[test]
fn limits_change_while_a_container_runs() {
    const TEST: &str = "limits_change_while_a_container_runs";
    for text in at_hand(TEST, &LIMITED[1..]) {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let asked = Limits { memory: Some(64 << 20), ..Limits::default() };
        let mut container = limited(subject.as_ref(), asked, Resident::Serves, &run).unwrap();
        // More than memory and swap had before.
        let more = Limits { memory: Some(256 << 20), cpus: Some(0.25), ..Limits::default() };
        if text == "containerd" {
            assert!(is_unsupported(&container.update(&more)));
            continue;
        }
        let span = container.update(&more).unwrap();
        assert!(span.ended > span.began, "{text}");
        let found = |container: &mut Container<'_>| [QUOTA, MEMORY].map(|files| number(container, files));
        assert_eq!(found(&mut container), [25_000, 256 << 20], "{text}");
        let less = Limits { memory: Some(32 << 20), ..Limits::default() };
        container.update(&less).unwrap();
        assert_eq!(found(&mut container), [25_000, 32 << 20], "{text}");
        let fewer = Limits { pids: Some(40), ..Limits::default() };
        match container.update(&fewer) {
            Ok(_) => assert_eq!(number(&mut container, PIDS), 40, "{text}"),
            // Podman's command line has had this option since version 5.
            why => assert!(text == "podman:net=none" && is_unsupported(&why), "{text}: {why:?}"),
        }
        container.stop(0).unwrap();
        container.remove().unwrap();
        ends(&dunnage, subject, run);
    }
}

/// Bytes, as a number or as `664KiB / 23.54GiB`.
fn bytes(figure: &Value) -> f64 {
    let Some(text) = figure.as_str() else { return figure.as_f64().unwrap() };
    let used = text.split(" / ").next().unwrap();
    let unit = used.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let factor = match unit {
        "KiB" => 1024.0,
        "MiB" => 1048576.0,
        "kB" => 1e3,
        "MB" => 1e6,
        _ => panic!("`{text}`"),
    };
    used.strip_suffix(unit).unwrap().parse::<f64>().unwrap() * factor
}

/// Where engines and runtimes have the memory that a container uses.
const USED: [&str; 6] = [
    "/MemUsage",
    "/0/mem_usage",
    "/memory_stats/usage",
    "/data/memory/usage/usage",
    "/memory/usage/usage",
    "/memory/usage",
];

#[test]
fn the_words_of_an_engine_have_the_memory_of_the_cgroup() {
    const TEST: &str = "the_words_of_an_engine_have_the_memory_of_the_cgroup";
    for text in at_hand(TEST, &LIMITED) {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let mut container = service(subject.as_ref(), None, &run);
        let said = container.stats();
        if ["bare", "floor", "crun"].contains(&text) {
            assert!(is_unsupported(&said), "{text}: {said:?}");
            continue;
        }
        let said = said.unwrap();
        assert!(said.span.ended > said.span.began, "{text}");
        let words: Value = serde_json::from_str(&said.text).unwrap();
        let used = USED.iter().find_map(|place| words.pointer(place)).map(bytes).expect(&said.text);
        let charged = number(&mut container, ["memory.usage_in_bytes", "memory.current"]) as f64;
        // Some leave out page cache, and all were asked earlier.
        assert!(used > charged / 10.0 && used < charged + 1e6, "{text}: {used} of {charged}");
        drop(container);
        ends(&dunnage, subject, run);
    }
}

#[test]
fn the_logs_have_what_a_program_has_written() {
    const TEST: &str = "the_logs_have_what_a_program_has_written";
    for text in at_hand(TEST, &LIMITED) {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        if ["crun", "runc", "containerd"].contains(&text) {
            let said = service(subject.as_ref(), None, &run).logs();
            assert!(is_unsupported(&said), "{text}: {said:?}");
            continue;
        }
        let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
        let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
        let own = dunnage.state().join("runs").join(&run.id).join(container.name());
        fs::remove_file(own.join("channel/socket")).unwrap();
        container.start().unwrap();
        // It says why it ends.
        assert!(container.ready().is_err(), "{text}");
        assert_eq!(
            container.logs().unwrap().text,
            "dunnage probe: cannot connect to its channel\n",
            "{text}"
        );
        drop(container);
        ends(&dunnage, subject, run);
    }
}
