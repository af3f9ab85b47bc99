//! dunnage in a guest where only cgroup v2 is mounted, and the guest itself (`tests/support/guest`). One boot for all questions,
//! because booting and computing are slow under emulation.

mod advise;
mod harness;
mod limits;
mod long;
mod memory;
mod throttle;
mod whole;

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::guest::{Done, Guest};
use crate::support::{Need, lacks};

/// A directory, a script that runs in it, and a look at what it left there.
type Part = (&'static str, &'static str, fn(&Done));

/// The limits come last, because their script ends the delegation of a controller.
const PARTS: [Part; 5] = [
    ("whole", whole::SCRIPT, whole::check),
    ("throttle", throttle::SCRIPT, throttle::check),
    ("memory", memory::SCRIPT, memory::check),
    ("advise", advise::SCRIPT, advise::check),
    ("limits", limits::SCRIPT, limits::check),
];

#[test]
fn everything_works_on_pure_cgroup_v2() {
    if lacks("everything_works_on_pure_cgroup_v2", Need::Guest) {
        return;
    }
    let own = Path::new(env!("CARGO_BIN_EXE_dunnage"));
    let guest = Guest::new().file(own, "/usr/local/bin/dunnage").program("runc").program("crun");
    let script = PARTS.map(|(name, script, _)| {
        format!("echo {name} begins; cat /proc/uptime\nmkdir /out/{name}; cd /out/{name}\n{script}\n")
    });
    let done =
        guest.run(&script.concat(), Duration::from_secs(400)).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(done.code, 0, "{done}");
    for (_, _, check) in PARTS {
        check(&done);
    }
}

/// A file that a script left, without its final newline.
fn left(done: &Done, path: &str) -> String {
    let text =
        fs::read_to_string(done.files().join(path)).unwrap_or_else(|error| panic!("{path}: {error}\n{done}"));
    text.trim_end().to_owned()
}
