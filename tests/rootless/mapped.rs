//! Users inside that are other users outside, as an engine maps them when it is asked to.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use dunnage::launch::names;
use dunnage::record;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::rootless::user::{Ids, User};
use crate::support::{Need, lacks};

/// Starts this subject in one round, and returns the mapping that was read back inside.
fn mapping(dunnage: &Dunnage, subject: &str) -> (String, Ran) {
    let ran = dunnage.run(&format!("run start -s {subject} --rounds 1 --set prestate=primed -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).unwrap();
    let found = run.facts(0, names::USER_MAPPING).flatten().next().unwrap_or_default().to_owned();
    assert_eq!(run.facts(0, names::USER).flatten().next(), Some("private"), "{ran}");
    assert_eq!(left::of_run(&run.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
    // Docker makes directories of its own next to one that others may not enter.
    let (above, state) = (dunnage.state().parent().unwrap().to_owned(), dunnage.state());
    let beside = fs::read_dir(above).unwrap().map(|entry| entry.unwrap().path());
    let made: Vec<_> = beside
        .filter(|path| *path != state && path.to_string_lossy().starts_with(&*state.to_string_lossy()))
        .collect();
    assert_eq!(made, Vec::<std::path::PathBuf>::new(), "{ran}");
    (found, ran)
}

#[test]
fn with_keep_id_a_user_is_the_same_user_inside() {
    let test = "with_keep_id_a_user_is_the_same_user_inside";
    let Some(user) = User::new(test, 'm', Ids::Subordinate) else { return };
    let subject = format!("podman:net=none,rootless={},userns=keep-id", user.name);
    let (found, ran) = mapping(&Dunnage::new(), &subject);
    assert!(found.split(',').any(|line| line == format!("{} 0 1", user.number)), "{found}: {ran}");
}

#[test]
fn root_of_a_remapped_docker_is_a_subordinate_id() {
    let test = "root_of_a_remapped_docker_is_a_subordinate_id";
    if lacks(test, Need::Dockerd) {
        return;
    }
    let Some(_user) = User::closed(test, 'n') else { return };
    let dunnage = Dunnage::new();
    let allow = |mode| {
        let above = dunnage.directory().parent().unwrap().to_owned();
        fs::set_permissions(above, fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o700);
    let closed = dunnage.run("check start -s docker:userns=remap");
    assert!(
        closed.code == 4 && closed.to_string().contains("set `$DUNNAGE_STATE` to a directory"),
        "{closed}"
    );
    allow(0o755);
    let (found, ran) = mapping(&dunnage, "docker:userns=remap");
    let fields: Vec<u64> = found.split(' ').filter_map(|field| field.parse().ok()).collect();
    assert!(
        fields.len() == 3 && fields[0] == 0 && fields[1] >= 100_000 && fields[2] >= 65_536,
        "{found}: {ran}"
    );
    let environment = fs::read_to_string(dunnage.directory().join("env.json")).unwrap();
    assert!(environment.contains("mapped to the subordinate ids of"), "{environment}");
}

/// Podman 4.3 refuses it, later ones give root a namespace in which every user is the same.
#[test]
fn root_has_keep_id_where_podman_allows_it() {
    let test = "root_has_keep_id_where_podman_allows_it";
    if lacks(test, Need::Podman) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("check start -s podman:userns=keep-id");
    if ran.stdout.contains("keep-id is only supported in rootless mode") {
        assert_eq!(ran.code, 4, "{ran}");
        return;
    }
    let (found, ran) = mapping(&dunnage, "podman:userns=keep-id");
    assert!(found.starts_with("0 0 "), "{found}: {ran}");
}
