//! Limits on CPU time where only cgroup v2 is mounted: in force, or refused with clear words if its cpu
//! controller is not delegated.

use super::left;
use crate::support::guest::Done;

/// What runs in the guest.
pub const SCRIPT: &str = "
one='--set prestate=idle' burst=cpus=0.5,burst=20ms
find /sys/fs/cgroup -type d > before; cat /proc/uptime
dunnage check start -s bare:$burst -s floor:$burst -s runc:cpus=0.5 -s crun:cpus=0.5 $one > limited
echo $? > limited.code; cat /proc/uptime
echo -cpu > /sys/fs/cgroup/cgroup.subtree_control || exit 9
dunnage check start -s bare:cpus=0.5 $one > refused
echo $? > refused.code; cat /proc/uptime
find /sys/fs/cgroup -type d > after
";

/// Looks at what it left.
pub fn check(done: &Done) {
    let (limited, refused) = (left(done, "limits/limited"), left(done, "limits/refused"));
    println!("{limited}\n{refused}\n{done}");
    assert_eq!(
        (left(done, "limits/limited.code"), left(done, "limits/refused.code")),
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
    assert_eq!(left(done, "limits/before"), left(done, "limits/after"), "cgroups were left behind");
}
