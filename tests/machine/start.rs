//! `start` on the floor compared with a runtime: the runtime's way into cgroups.

use std::fs;

use serde_json::Value;

use crate::dunnage::Dunnage;
use crate::support::{Need, lacks};

/// Each way is used where such cgroups exist, as the calls show, and refused with the reason where they do
/// not.
#[test]
fn the_floor_enters_its_cgroups_as_it_is_asked_to() {
    const TEST: &str = "the_floor_enters_its_cgroups_as_it_is_asked_to";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) || lacks(TEST, Need::Strace) {
        return;
    }
    let calls = |way: &str| {
        let dunnage = Dunnage::new();
        let trace = dunnage.directory().with_extension("trace");
        let wrapper = format!(
            "strace -f -e trace=openat,clone3 -o {} {}",
            trace.display(),
            env!("CARGO_BIN_EXE_dunnage")
        );
        let ran = dunnage.through(&wrapper, &format!("check start -s floor:cgroup={way}"));
        (ran, fs::read_to_string(trace).unwrap_or_default())
    };
    for (way, enters) in [
        ("procs", ["/cgroup.procs\", O_WRONLY", ""]),
        ("tasks", ["/tasks\", O_WRONLY", ""]),
        ("born", ["", "CLONE_INTO_CGROUP"]),
    ] {
        let (ran, calls) = calls(way);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let refusal = match way {
            "tasks" if !mounts.contains(" - cgroup ") => Some("no cgroup of version 1 can be made here"),
            "born" if !mounts.contains(" - cgroup2 ") => Some("no cgroup of version 2 can be made here"),
            _ => None,
        };
        if let Some(words) = refusal {
            assert!(ran.stdout.contains(words) && ran.code == 4, "{ran}");
            continue;
        }
        assert!(ran.code == 0 && ran.stdout.contains(" cgroup=own"), "{ran}");
        let of_floor = |line: &&str| line.contains("/dunnage/") || line.contains("CLONE_INTO_CGROUP");
        let is_there = |what: &str| calls.lines().filter(of_floor).any(|line| line.contains(what));
        assert!(enters.iter().all(|what| is_there(what)), "{way}: {calls}");
        assert_eq!(is_there("CLONE_INTO_CGROUP"), way == "born", "{way}: {calls}");
        assert_eq!(is_there("/tasks\", O_WRONLY"), way == "tasks", "{way}: {calls}");
    }
}

/// A runtime's kernel share is measured on the floor that enters cgroups in the same way, which costs more
/// than the cheaper way.
#[test]
fn the_kernels_share_of_a_runtime_holds_its_way_into_cgroups() {
    const TEST: &str = "the_kernels_share_of_a_runtime_holds_its_way_into_cgroups";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) || lacks(TEST, Need::Crun) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s floor -s crun --set prestate=idle --rounds 3 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let report: Value = serde_json::from_str(&dunnage.run("report DIR --format json").stdout).unwrap();
    let cells = report["experiments"][0]["settings"][0]["ladders"][0]["cells"].as_array().unwrap();
    let crun = cells.iter().find(|cell| cell["label"] == "crun").unwrap();
    let is_second = report["machine"]["cgroup_mode"] == "v2";
    let (floor, unlike) = if is_second { ("floor", "overlay") } else { ("floor:cgroup=procs", "overlay") };
    assert_eq!(crun["floor"], serde_json::json!([floor, [unlike]]), "{crun}");
}
