//! What a user expects each experiment to show, planted as a user would meet it: a runtime that wastes time
//! in one of its verbs, and a kernel with more work. For the other experiments: `command.rs` (a runtime and
//! an output path that waste time), `syscall.rs`, `cpu.rs` and `throttle.rs` (limits).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use dunnage::experiment::primitives;
use dunnage::record;
use dunnage::stats::Estimate;
use dunnage::verdict::analyse;

use crate::dunnage::{Dunnage, finished};
use crate::support::{Need, lacks};

/// How long the runtime sleeps, in seconds; a start takes a tenth of it, or a fifth on a busy machine.
const WASTED: f64 = 0.25;

/// A runtime that sleeps before this verb and then runs `crun`.
fn wasting(dunnage: &Dunnage, verb: &str) -> String {
    wrapped(dunnage, &format!("wasting-{verb}"), verb, &format!("sleep {WASTED}"))
}

/// A runtime of this name that does this before one verb, and then runs `crun`.
fn wrapped(dunnage: &Dunnage, name: &str, verb: &str, waste: &str) -> String {
    let path = dunnage.state().with_file_name(name);
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in {verb}) {waste}; break;; esac; done\nexec crun \"$@\"\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_runtime_that_wastes_time_is_found_in_the_verb_in_which_it_does() {
    let test = "a_runtime_that_wastes_time_is_found_in_the_verb_in_which_it_does";
    if lacks(test, Need::Crun) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let own = ["run", "exec"].map(|verb| format!("{verb}=crun:bin={}", wasting(&dunnage, verb)));
    let words = format!(
        "run start exec lifecycle -s crun -s {} -s {} --rounds 11 --set prestate=primed -o DIR",
        own[0], own[1]
    );
    let ran = dunnage.run(&words);
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let findings = analyse(&recorded).findings;
    for (experiment, metric, subject, wastes) in [
        ("start", "returned", "run", true),
        ("start", "returned", "exec", false),
        ("exec", "returned", "run", false),
        ("exec", "returned", "exec", true),
        ("lifecycle", "create", "exec", false),
        ("lifecycle", "exec", "exec", true),
    ] {
        let is_it = |one: &&dunnage::verdict::Finding| {
            let about = &one.about;
            (about.experiment, about.metric) == (experiment, metric)
                && (about.subject.as_str(), about.against.as_str()) == (subject, "crun")
        };
        let finding = findings
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{experiment} {metric} of {subject}: {ran}"));
        let more = finding.difference.expect("eleven rounds have both").value;
        if wastes {
            // A sleep takes as long as it says, or longer; only the launch without it may have been delayed.
            assert!(more > 0.7 * WASTED && finding.kind().is_worse(), "{finding:?}: {ran}");
        } else {
            assert!(more < 0.7 * WASTED, "{finding:?}: {ran}");
        }
    }
}

/// A process that a runtime leaves behind is waited for: it is in `gone`, and not in `returned`.
#[test]
fn what_a_runtime_leaves_behind_is_in_gone_and_not_in_returned() {
    /// In seconds, from before the runtime begins.
    const STAYS: f64 = 1.0;
    let test = "what_a_runtime_leaves_behind_is_in_gone_and_not_in_returned";
    if lacks(test, Need::Crun) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    // Its command line has the container's name, as those of monitors and shims have. It is an orphan, because the runtime
    // waits for its children.
    let stays = format!("(sh -c 'sleep {STAYS}; :' \"$@\" < /dev/null > /dev/null 2>&1 &)");
    let leaving = wrapped(&dunnage, "leaving", "run", &stays);
    let words =
        format!("run start -s crun -s leaving=crun:bin={leaving} --rounds 3 --set prestate=idle -o DIR");
    let ran = dunnage.run(&words);
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let least = |label: &str, metric: &str| {
        let plan = &recorded.plan;
        let cell = plan.cells.iter().position(|cell| plan.subjects[cell.subject].label == label);
        let cell = cell.expect("a cell");
        let at = plan.metrics(&plan.cells[cell]).iter().position(|one| one.name == metric).expect("a metric");
        recorded.series[cell].values[at].iter().copied().fold(f64::INFINITY, f64::min)
    };
    assert!(least("leaving", "gone") >= STAYS, "{ran}");
    assert!(least("leaving", "returned") < 0.7 * STAYS && least("crun", "gone") < 0.7 * STAYS, "{ran}");
}

/// CPU time that a runtime burns in `exec` is its client's: found, with its size; a sleep adds none. It is
/// the cost of health checks.
#[test]
fn cpu_time_that_a_runtime_burns_in_exec_is_found_and_priced() {
    const BURNT: f64 = 0.15;
    let test = "cpu_time_that_a_runtime_burns_in_exec_is_found_and_priced";
    if lacks(test, Need::Crun) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    // A shell reads its own CPU time without starting anything.
    let spin = format!(
        "while read -r ran rest < /proc/$$/schedstat && [ $ran -lt {} ]; do :; done",
        (BURNT * 1e9) as u64
    );
    let burning = wrapped(&dunnage, "burning", "exec", &spin);
    let words = format!(
        "run exec -s crun -s burning=crun:bin={burning} -s sleeping=crun:bin={} --rounds 7 -o DIR",
        wasting(&dunnage, "exec")
    );
    let ran = dunnage.run(&words);
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let cpu = |label: &str, prestate: &str, metric: &str| {
        let plan = &recorded.plan;
        let is_it = |cell: &dunnage::plan::Cell| {
            plan.subjects[cell.subject].label == label && cell.setting.get("prestate") == Some(prestate)
        };
        let cell = plan.cells.iter().position(is_it).expect("a cell");
        let at = plan.metrics(&plan.cells[cell]).iter().position(|one| one.name == metric).expect("a metric");
        let mut values = recorded.series[cell].values[at].clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for prestate in ["idle", "primed"] {
        let client = |label: &str| cpu(label, prestate, "client_cpu");
        let more = client("burning") - client("crun");
        assert!(more > 0.9 * BURNT && more < 1.5 * BURNT, "{prestate}: {more}: {ran}");
        assert!(client("sleeping") - client("crun") < 0.3 * BURNT, "{prestate}: {ran}");
        assert!(cpu("burning", prestate, "engine_cpu") < 0.1 * BURNT, "{prestate}: {ran}");
    }
    let advised = dunnage.run("advise probes DIR --containers 20 --every 2s --format json");
    assert_eq!(advised.code, 0, "{advised}");
    let said: serde_json::Value = serde_json::from_str(&advised.stdout).expect("JSON");
    let subjects = said["subjects"].as_array().expect("subjects");
    let burning = subjects.iter().find(|one| one["subject"] == "burning").expect("the subject");
    let (cpus, check) = (&burning["cpus"]["median"], &burning["check"]["median"]);
    // Ten checks a second.
    assert_eq!(cpus.as_f64(), check.as_f64().map(|seconds| seconds * 10.0), "{advised}");
    assert!(cpus.as_f64().is_some_and(|cpus| cpus > 0.9 * 10.0 * BURNT), "{advised}");
}

/// A mount namespace starts as a copy of all mounts, so a host with three thousand more pays more for it; the
/// price of another namespace does not change.
#[test]
fn a_namespace_of_many_mounts_costs_more() {
    const MOUNTS: usize = 3000;
    let test = "a_namespace_of_many_mounts_costs_more";
    if lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let place = dunnage.state().with_file_name("mounts");
    fs::create_dir_all(&place).unwrap();
    let prices = |mounts: usize, directory: &str| {
        let words = format!(
            "run primitives -s floor --set way=alone --set way=stamps --set prestate=primed --set piece=mount --set piece=uts \
             --set piece=whole --rounds 9 -o {directory}"
        );
        let mut command = dunnage.command(&words);
        let path = std::ffi::CString::new(place.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: between fork and exec only system calls are made, with existing memory.
        unsafe {
            command.pre_exec(move || many_mounts(&path, mounts));
        }
        let ran = finished(command.output().unwrap());
        assert_eq!(ran.code, 0, "{ran}");
        let recorded = record::load(Path::new(
            directory.replace("DIR", &dunnage.directory().display().to_string()).as_str(),
        ))
        .expect("a run");
        (["mount", "uts"].map(|piece| price(&recorded, piece)), between_stamps(&recorded))
    };
    let [(few, before), (many, after)] =
        [(0, "DIR-few"), (MOUNTS, "DIR-many")].map(|(mounts, directory)| prices(mounts, directory));
    // Each copy is an allocation and a lock, more than 100 ns; and they are torn down again.
    let copied = MOUNTS as f64 * 100e-9;
    assert!(many[0].value > few[0].value + copied, "{few:?} {many:?}");
    assert!(many[1].value < few[1].value + (many[0].value - few[0].value) / 2.0, "{few:?} {many:?}");
    // Within one launch they are copied between the stamps of that piece, and freed when the old root is
    // unmounted or at the end.
    let more = |piece: &str| after[piece] - before[piece];
    assert!(more("mount") > copied, "{before:?} {after:?}");
    for piece in before.keys().filter(|piece| !["mount", "exit"].contains(piece)) {
        assert!(more(piece) < more("mount") / 2.0, "{piece}: {before:?} {after:?}");
    }
}

/// A slower call shows in the price of the piece that makes it, and in no other.
#[test]
fn a_step_that_is_held_up_shows_in_its_own_piece_and_in_no_other() {
    const TEST: &str = "a_step_that_is_held_up_shows_in_its_own_piece_and_in_no_other";
    /// In seconds; any other piece takes tenths of milliseconds, or a hundred milliseconds while traced on a
    /// busy machine.
    const HELD: f64 = 0.5;
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Strace) {
        return;
    }
    let pieces = |call: &str| {
        let dunnage = Dunnage::new();
        let held =
            format!("strace -f -qq -o /dev/null -e trace={call} -e inject={call}:delay_exit={}", HELD * 1e6);
        let wrapper = format!("{held} {}", env!("CARGO_BIN_EXE_dunnage"));
        let words = "run primitives -s floor --set way=stamps --set piece=whole --set prestate=primed --rounds 2 -o DIR";
        let ran = dunnage.through(&wrapper, words);
        assert_eq!(ran.code, 0, "{ran}");
        between_stamps(&record::load(&dunnage.directory()).expect("a run"))
    };
    for (call, held) in [("sethostname", "uts"), ("pivot_root", "mount"), ("capset", "capabilities")] {
        let all = pieces(call);
        assert!(all.contains_key(held), "{call} held up: {all:?}");
        for (piece, took) in &all {
            assert_eq!(*took > HELD, *piece == held, "{call} held up, {piece}: {all:?}");
        }
    }
}

/// The least time of each piece between the stamps of a launch, in seconds: what else a machine does only adds to it.
fn between_stamps(recorded: &record::Recorded) -> std::collections::BTreeMap<&'static str, f64> {
    let is_whole = |cell: &dunnage::plan::Cell| cell.setting.get("way") == Some("stamps");
    let cell = recorded.plan.cells.iter().position(is_whole).expect("a launch between stamps");
    let values = &recorded.series[cell].values;
    let of = |(metric, name): (usize, &'static str)| {
        let least = values[metric].iter().copied().filter(|value| !value.is_nan()).reduce(f64::min);
        least.map(|least| (name, least))
    };
    primitives::pieces().filter_map(of).collect()
}

/// The reported price of a piece.
fn price(recorded: &record::Recorded, piece: &str) -> Estimate {
    let is_it = |cell: usize| recorded.plan.cells[cell].setting.get("piece") == Some(piece);
    let analysis = analyse(recorded);
    let found = analysis.prices.iter().find(|one| is_it(one.cell) && one.metric == 0);
    found.unwrap_or_else(|| panic!("no price of {piece}")).price
}

/// Enters a new mount namespace with this many additional mounts.
fn many_mounts(path: &std::ffi::CStr, mounts: usize) -> std::io::Result<()> {
    let check = |result: i32| if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) };
    // SAFETY: plain system calls with strings that end with a zero byte.
    unsafe {
        check(libc::unshare(libc::CLONE_NEWNS))?;
        check(libc::mount(
            c"none".as_ptr(),
            c"/".as_ptr(),
            std::ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            std::ptr::null(),
        ))?;
        for _ in 0..mounts {
            check(libc::mount(
                path.as_ptr(),
                path.as_ptr(),
                std::ptr::null(),
                libc::MS_BIND,
                std::ptr::null(),
            ))?;
        }
    }
    Ok(())
}
