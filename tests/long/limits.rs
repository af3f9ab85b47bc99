//! Limits on CPU time where only cgroup v2 is mounted: in force, or refused with clear words if its cpu
//! controller is not delegated.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::support::guest::{Done, Guest};
use crate::support::{Need, lacks};

const SCRIPT: &str = "
one='--set prestate=idle' burst=cpus=0.5,burst=20ms
find /sys/fs/cgroup -type d > before; cat /proc/uptime
dunnage check start -s bare:$burst -s floor:$burst -s runc:cpus=0.5 -s crun:cpus=0.5 $one > limited
echo $? > limited.code; cat /proc/uptime
echo -cpu > /sys/fs/cgroup/cgroup.subtree_control || exit 9
dunnage check start -s bare:cpus=0.5 $one > refused
echo $? > refused.code; cat /proc/uptime
find /sys/fs/cgroup -type d > after
";

/// A file that the script left, without its final newline.
fn left(done: &Done, name: &str) -> String {
    let path = done.files().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}\n{done}"));
    text.trim_end().to_owned()
}

#[test]
fn limits_are_in_force_on_pure_cgroup_v2() {
    if lacks("limits_are_in_force_on_pure_cgroup_v2", Need::Guest) {
        return;
    }
    let own = Path::new(env!("CARGO_BIN_EXE_dunnage"));
    let guest = Guest::new().file(own, "/usr/local/bin/dunnage").program("runc").program("crun");
    let done = guest.run(SCRIPT, Duration::from_secs(300)).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(done.code, 0, "{done}");
    let (limited, refused) = (left(&done, "limited"), left(&done, "refused"));
    println!("{limited}\n{refused}\n{done}");
    assert_eq!(
        (left(&done, "limited.code"), left(&done, "refused.code")),
        ("0".into(), "4".into()),
        "{done}"
    );
    let cells = |fact: &str| limited.lines().filter(|line| line.split(' ').any(|word| word == fact)).count();
    // One of each subject, and another floor that enters its cgroups as runtimes do.
    assert_eq!((cells("cpus=0.5"), cells("burst=20000us")), (5, 3), "{limited}");
    for words in [
        "does not delegate its cpu controller",
        "remedy: `echo +cpu > /sys/fs/cgroup/cgroup.subtree_control`",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(left(&done, "before"), left(&done, "after"), "cgroups were left behind");
}
