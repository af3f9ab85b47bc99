//! Containers in the containers of an ordinary user's engine.

use ::dunnage::experiment::nested::names;

use crate::dunnage::Dunnage;
use crate::handles::nested::{fact, ran};
use crate::rootless::user::{Ids, User};
use crate::support::{Need, lacks};

#[test]
fn engines_run_in_a_users_containers_where_they_make_no_cgroups() {
    const TEST: &str = "engines_run_in_a_users_containers_where_they_make_no_cgroups";
    let Some(user) = User::new(TEST, 'n', Ids::Subordinate) else { return };
    let has_docker = !lacks(TEST, Need::Docker);
    let ways = [
        &["copies-own-proc", "user-inside"][..],
        if has_docker { &["daemon-inside", "daemon-of-user"] } else { &[] },
    ];
    let recorded = ran(&Dunnage::new(), &format!("podman:net=none,rootless={}", user.name), &ways.concat());
    let of = |way, name| fact(&recorded, way, name).unwrap_or_default();
    for way in ways.concat().into_iter().filter(|way| *way != "daemon-inside") {
        assert_eq!(of(way, names::PLACE), "inside", "{way}: {}", of(way, names::REFUSED));
        // Root inside is the user outside.
        assert_eq!(of(way, names::OPENS), "", "{way}");
        assert_eq!(fact(&recorded, way, names::UNWRITTEN), None, "{way}");
    }
    // As root it would make cgroups, which it may not, or cannot enter.
    assert!(!has_docker || of("daemon-inside", names::PLACE).is_empty());
}
