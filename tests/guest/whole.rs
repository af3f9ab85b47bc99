//! All of dunnage's work where only cgroup v2 is mounted.

use std::fs;
use std::path::Path;

use super::left;
use crate::dunnage::Dunnage;
use crate::support::guest::Done;

const SUBJECTS: [&str; 4] = ["bare", "floor", "runc", "crun"];
const ROUNDS: usize = 2;
/// What runs in the guest.
pub const SCRIPT: &str = "
subjects='-s bare -s floor -s runc -s crun'
mkdir before after
mount > before/mounts; find /sys/fs/cgroup -type d > before/cgroups
dunnage doctor --full > doctor; echo $? > doctor.code
dunnage check start $subjects --set prestate=idle > check; echo $? > check.code
dunnage run start $subjects --set prestate=idle --rounds 2 --seed 7 --no-html -o run > report; echo $? > run.code
mount > after/mounts; find /sys/fs/cgroup -type d > after/cgroups
cat /sys/devices/system/clocksource/clocksource0/current_clocksource
";

/// Looks at what it left.
pub fn check(done: &Done) {
    println!(
        "{}\n{}\n{}\n{done}",
        left(done, "whole/doctor"),
        left(done, "whole/check"),
        left(done, "whole/report")
    );
    for verb in ["doctor", "check", "run"] {
        assert_eq!(left(done, &format!("whole/{verb}.code")), "0", "{verb}: {done}");
    }
    checked(&left(done, "whole/check"));
    let doctor = left(done, "whole/doctor");
    for expected in SUBJECTS.map(|subject| ["ok", subject]).into_iter().chain([["ok", "cgroup-mode"]]) {
        let words = |line: &str| line.split_whitespace().take(2).eq(expected);
        assert!(doctor.lines().any(words), "{expected:?}: {doctor}");
    }
    for things in ["mounts", "cgroups"] {
        let (before, after) =
            (left(done, &format!("whole/before/{things}")), left(done, &format!("whole/after/{things}")));
        assert_eq!(before, after, "{things} were left behind");
    }
    recorded(&done.files().join("whole").join("run"));
}

/// Every cell, each with what the probe read back from inside.
fn checked(said: &str) {
    let lines: Vec<&str> = said.lines().collect();
    for subject in SUBJECTS {
        let cell = format!("start prestate=idle {subject}");
        let at = lines.iter().position(|line| line.starts_with("ok ") && line.ends_with(&cell));
        let facts = at.and_then(|at| lines.get(at + 1)).unwrap_or_else(|| panic!("{cell}: {said}"));
        let expected: &[&str] = match subject {
            "bare" => &["seccomp=0", "pid=host", "cgroup_ns=host", "cgroup=host", "network=host"],
            _ => &[
                "seccomp=2",
                "no_new_privs=1",
                "capabilities=0xa80425fb",
                "pid=private",
                "cgroup_ns=private",
                "cgroup=own",
            ],
        };
        let words: Vec<&str> = facts.split_whitespace().collect();
        assert!(expected.iter().all(|fact| words.contains(fact)), "{cell}: {facts}");
    }
    // The floor again, entering its cgroups as runtimes do.
    assert_eq!(lines.iter().filter(|line| line.starts_with("ok ")).count(), SUBJECTS.len() + 1, "{said}");
}

/// The result, read by this machine's `dunnage report`.
fn recorded(run: &Path) {
    let environment = fs::read_to_string(run.join("env.json")).expect("env.json");
    let environment: serde_json::Value = serde_json::from_str(&environment).expect("JSON");
    assert_eq!(environment["machine"]["cgroup_mode"], "v2", "{environment:#}");
    assert!(environment["no_cpu_accounting"].is_null(), "{environment:#}");

    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("report {} --format csv", run.display()));
    assert_eq!(ran.code, 0, "{ran}");
    let mut rows = ran.stdout.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a header");
    let column =
        |name: &str| head.iter().position(|own| *own == name).unwrap_or_else(|| panic!("{name}: {ran}"));
    let [label, metric, phase, outcome] = ["label", "metric", "phase", "outcome"].map(column);
    let rows: Vec<_> = rows.filter(|row| row[phase] == "measure").collect();
    for row in &rows {
        assert_eq!(row[outcome], "measured", "{row:?}");
    }
    for subject in SUBJECTS {
        for name in ["first_instruction", "returned", "gone", "client_cpu"] {
            let of_it = rows.iter().filter(|row| row[label] == subject && row[metric] == name).count();
            assert_eq!(of_it, ROUNDS, "{name} of {subject}: {ran}");
        }
    }
    let shown = dunnage.run(&format!("report {} --full", run.display()));
    assert!(
        shown.code == 0 && shown.stdout.contains("Linux 6.") && shown.stdout.contains("floor"),
        "{shown}"
    );
}
