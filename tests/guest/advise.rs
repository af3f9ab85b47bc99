//! Watches a cgroup of version 2, with and without a limit, on a machine that has only version 2.

use std::fs;

use serde_json::Value;

use super::left;
use crate::support::guest::Done;

/// What runs in the guest.
pub const SCRIPT: &str = "
echo +cpu > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/around /sys/fs/cgroup/around/watched
dunnage probe load steady & load=$!
echo $load > /sys/fs/cgroup/around/watched/cgroup.procs
dunnage advise cpu /sys/fs/cgroup/around/watched --for 5s --every 20ms --limit 0.01 --format json > free; echo $? > free.code
echo '5000 100000' > /sys/fs/cgroup/around/cpu.max
dunnage advise cpu /around/watched --for 5s --every 50ms --format json > limited; echo $? > limited.code
kill $load; wait $load; echo $? > load.code
rmdir /sys/fs/cgroup/around/watched /sys/fs/cgroup/around
";

fn advice(done: &Done, name: &str) -> Value {
    assert_eq!(left(done, &format!("advise/{name}.code")), "0", "{done}");
    serde_json::from_str(&left(done, &format!("advise/{name}")))
        .unwrap_or_else(|error| panic!("{name}: {error}\n{done}"))
}

/// Looks at what it left.
pub fn check(done: &Done) {
    let free = advice(done, "free");
    assert_eq!(free["target"]["cgroup_version"], 2, "{free:#}");
    assert!(free["watched"]["limit"].is_null() && free["is_censored"] == false, "{free:#}");
    let mean = free["usage"]["mean"].as_f64().expect("a number");
    assert!(mean > 0.01 && mean < 1.1, "{free:#}");
    let asked = free["tried"].as_array().expect("a list").iter().find(|one| one["cpus"] == 0.01);
    let share = asked.expect("it was asked for")["predicted"]["throttled_share"].as_f64().expect("a share");
    assert!(share > 0.5, "{free:#}");
    let limited = advice(done, "limited");
    assert_eq!(limited["watched"]["limit"]["cpus"], 0.05, "{limited:#}");
    assert!(limited["watched"]["limit"]["throttled_periods"].as_u64() > Some(0), "{limited:#}");
    assert_eq!(
        (&limited["is_censored"], &limited["recommendation"]["kind"]),
        (&true.into(), &"raise".into()),
        "{limited:#}"
    );
    let load = fs::read_to_string(done.files().join("advise").join("load.code")).expect("a code");
    assert_eq!(load.trim(), "0", "the load did not end well: {done}");
}
