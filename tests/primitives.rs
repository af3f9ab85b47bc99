//! The experiment `primitives` for real: every piece on this machine's kernel, as root and as an ordinary
//! user; and nothing is left, also after a kill.

use std::fs;

use crate::dunnage::Dunnage;
use crate::left;
use crate::resources::left::left_of;
use crate::running::Running;
use crate::support::{Need, Sweeps, lacks, skip};
use ::dunnage::experiment::primitives;
use ::dunnage::record;
use serde_json::Value;

/// Interfaces with dunnage's name that are visible on the host.
fn interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("dunnage")).collect()
}

/// The lines of all price lists.
fn prices(report: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(report).expect("the report is JSON");
    let experiments = report["experiments"].as_array().expect("a list of experiments").clone();
    let own =
        experiments.into_iter().find(|one| one["name"] == "primitives").expect("primitives is among them");
    own["prices"].as_array().expect("it has prices").clone()
}

/// Whether a price list has the class of the failure in place of the price.
fn says_unsupported(shown: &str, piece: &str) -> bool {
    shown.lines().any(|line| line.split_whitespace().take(2).eq([piece, "unsupported"]))
}

/// In every sample with stamps between the pieces, they add up to the whole, to the nanosecond.
fn pieces_add_up(dunnage: &Dunnage) {
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let mut samples = 0;
    for (cell, series) in recorded.plan.cells.iter().zip(&recorded.series) {
        if cell.setting.get("way") != Some("stamps") {
            continue;
        }
        for (round, whole) in series.values[0].iter().enumerate().filter(|(_, whole)| whole.is_finite()) {
            let pieces = primitives::pieces().map(|(metric, _)| series.values[metric][round]);
            let all: f64 = pieces.filter(|piece| piece.is_finite()).sum();
            assert!((all - whole).abs() < 0.5e-9, "{} in round {round}: {all} of {whole}", cell.setting);
            samples += 1;
        }
    }
    assert!(samples >= 4, "{samples} samples between stamps");
}

fn is_priced(prices: &[Value], way: &str, piece: &str) -> bool {
    let has_time = |line: &Value| {
        line["amounts"].as_array().is_some_and(|all| all.iter().any(|one| one["metric"] == "time"))
    };
    prices.iter().any(|line| line["way"] == way && line["piece"] == piece && has_time(line))
}

#[test]
fn every_piece_is_priced_and_the_rungs_stand_beside_the_floor() {
    const TEST: &str = "every_piece_is_priced_and_the_rungs_stand_beside_the_floor";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start primitives -s floor --set prestate=primed --rounds 2 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    for expected in [
        "time of each piece of floor, from stamps",
        "price list of launches",
        "price list of single calls",
        "the pieces add up to",
        "as a whole takes",
    ] {
        let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "`{expected}` is missing: {ran}");
    }
    let report = dunnage.run("report DIR --format json");
    let prices = prices(&report.stdout);
    let launched = ["mount", "uts", "ipc", "net", "pid", "cgroup", "cgroup_ns", "overlay", "filesystems"];
    let others = ["masked", "read_only", "capabilities", "no_new_privs", "seccomp"];
    for piece in launched.into_iter().chain(others) {
        assert!(is_priced(&prices, "alone", piece), "{piece}: {ran}");
        let whole = prices.iter().find(|line| line["way"] == "stamps" && line["piece"] == "whole").unwrap();
        assert!(
            whole["amounts"].as_array().unwrap().iter().any(|one| one["metric"] == piece),
            "{piece}: {ran}"
        );
    }
    assert!(is_priced(&prices, "stamps", "whole") && is_priced(&prices, "stamps", "procs"), "{ran}");
    pieces_add_up(&dunnage);
    for piece in ["cgroup_create", "cgroup_remove", "overlay_mount", "pivot_root", "seccomp_load"] {
        assert!(is_priced(&prices, "call", piece), "{piece}: {ran}");
    }
    // Kernel modules that may be missing give rows with a reason.
    for piece in ["veth_pair", "bridge_port", "time_ns", "cgroup_enter_tasks", "cgroup_enter_v2"] {
        let told = says_unsupported(&ran.stdout, piece);
        assert!(is_priced(&prices, "call", piece) || told, "{piece}: {ran}");
    }
    for (piece, release) in [("fsmount", "needs Linux 5.12"), ("open_tree", "needs Linux 7.0")] {
        let told = ran.stdout.replace("\n", " ").contains(release);
        assert!(is_priced(&prices, "stamps", piece) || told, "{piece}: {ran}");
    }
    assert_eq!((interfaces(), dunnage.left_in_state()), (vec![], vec![]));
}

#[test]
fn what_no_subject_can_do_is_said() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run primitives -s bare --rounds 1 -o DIR");
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("primitives of `bare`: it has no pieces that can be left out"), "{ran}");
    let ran = dunnage.run("run primitives -s floor --set piece=veth_pair --set way=ladder");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("`primitives` has no setting with all of these values"), "{ran}");
}

#[test]
fn an_ordinary_user_gets_prices_or_reasons() {
    const TEST: &str = "an_ordinary_user_gets_prices_or_reasons";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Userns) {
        return;
    }
    let dunnage = Dunnage::new();
    let copy = dunnage.given_to(65534);
    let wrapper = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {}", copy.display());
    let arguments = "run primitives -s floor --set prestate=primed --rounds 2 --full -o DIR";
    let works = dunnage.through(&wrapper, "check start -s floor --set prestate=primed");
    if works.code != 0 {
        return skip(TEST, Need::Userns, &works.stdout);
    }
    let ran = dunnage.through(&wrapper, arguments);
    assert_eq!(ran.code, 0, "{ran}");
    let report = dunnage.run("report DIR --format json");
    let prices = prices(&report.stdout);
    for piece in ["user", "least", "mount", "net", "overlay", "seccomp"] {
        assert!(is_priced(&prices, "alone", piece), "{piece}: {ran}");
    }
    assert!(
        is_priced(&prices, "call", "seccomp_load") && is_priced(&prices, "call", "overlay_mount"),
        "{ran}"
    );
    let checked = dunnage.through(&wrapper, "check primitives -s floor --set prestate=primed");
    assert_eq!(checked.code, 0, "{checked}");
    let lacking = |line: &&str| line.starts_with("lacking ") && line.contains("piece=cgroup_create");
    assert_eq!(checked.stdout.lines().filter(lacking).count(), 1, "{checked}");
    // No cgroup was delegated to this user.
    assert!(says_unsupported(&ran.stdout, "cgroup_create"), "{ran}");
}

/// What is there of a run: in its directory, on the machine, and interfaces, which do not have its id in their names.
fn there(dunnage: &Dunnage, run: &str) -> Vec<String> {
    [left_of(&dunnage.state(), run, &left::ENGINES), left::of_run(run), interfaces()].concat()
}

#[test]
fn nothing_is_left_after_a_kill_in_the_middle() {
    const TEST: &str = "nothing_is_left_after_a_kill_in_the_middle";
    if lacks(TEST, Need::Root) {
        return;
    }
    for setting in ["piece=cgroup_enter_procs", "piece=veth_pair"] {
        let dunnage = Dunnage::new();
        let _turn = Sweeps::begin();
        let words = "run primitives -s floor --set prestate=primed --rounds 50 -o DIR";
        let mut run = Running::start(&dunnage, words);
        // In the second one, everything is made that later ones use too.
        (0..2).for_each(|_| run.await_event(&["cell begins", setting]));
        let (run, before) = run.kill_with(|run| there(&dunnage, run));
        let swept = dunnage.run("sweep");
        assert_eq!(swept.code, 0, "{swept}");
        assert_eq!(there(&dunnage, &run), [""; 0], "{setting}: {before:?}, {swept}");
        assert_eq!(
            dunnage.left_in_state(),
            Vec::<std::path::PathBuf>::new(),
            "{setting}: {before:?}, {swept}"
        );
    }
}
