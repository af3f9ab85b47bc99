//! The state directory that another user made, can change, or wants to look into.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::dunnage::{Dunnage, Ran};
use crate::rootless::user::{Ids, User};
use crate::running::Running;
use crate::support::{Need, lacks};

/// A program that leaves a mark if it is ever started.
fn marking(place: &Path, user: &User) -> (PathBuf, PathBuf) {
    let (program, mark) = (place.join("podman"), place.join("mark"));
    let text = format!("#!/bin/sh\nid -u >> {}\necho '{{}}'\n", mark.display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    chown(&program, Some(user.number), None).unwrap();
    (program, mark)
}

/// A journal of a dead run, in which each of these resources was made.
fn plant(state: &Path, resources: &[serde_json::Value]) {
    let journals = state.join("journal");
    fs::create_dir_all(&journals).unwrap();
    let line = |(id, resource): (usize, &serde_json::Value)| {
        serde_json::json!({ "made": { "id": id, "resource": resource } }).to_string() + "\n"
    };
    let text: String = resources.iter().enumerate().map(line).collect();
    fs::write(journals.join("feedbeef.jsonl"), text).unwrap();
}

/// Records that name a program of the user, or a directory that is none of dunnage's.
fn records(state: &Path, program: &Path, victim: &Path) -> Vec<serde_json::Value> {
    let (state, program) = (state.display(), program.display());
    let container = |subject: String| serde_json::json!({ "kind": "container", "id": "dunnage-feedbeef-000001", "attributes": { "subject": subject } });
    let store = serde_json::json!({ "kind": "store", "id": format!("{state}/runs/feedbeef/s1"), "attributes": {
        "run": "/run/dunnage-feedbeef-000002", "program": program.to_string(), "storage": "--storage-driver vfs",
    } });
    fs::create_dir_all(format!("{state}/runs/feedbeef/s1/libpod")).unwrap();
    let directory =
        serde_json::json!({ "kind": "directory", "id": format!("{state}/runs/feedbeef/link/below") });
    symlink(victim, format!("{state}/runs/feedbeef/link")).unwrap();
    let ways = ["crun", "podman"].map(|kind| container(format!("{kind}:bin={program}")));
    [vec![store, directory], ways.to_vec()].concat()
}

fn is_refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("cannot use the state directory") && ran.stderr.contains(why), "{ran}");
    assert!(ran.stderr.contains("hint: set `$DUNNAGE_STATE`"), "{ran}");
}

#[test]
fn nothing_is_begun_or_followed_in_a_state_directory_that_another_user_can_change() {
    let test = "nothing_is_begun_or_followed_in_a_state_directory_that_another_user_can_change";
    let Some(user) = User::ordinary(test, 'l', Ids::Own) else { return };
    let place = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/var/tmp").unwrap();
    let (program, mark) = marking(place.path(), &user);
    let victim = place.path().join("victim/below");
    fs::create_dir_all(&victim).unwrap();
    let above = place.path().join("above");
    fs::create_dir(&above).unwrap();
    let state = above.join("state");
    plant(&state, &records(&state, &program, victim.parent().unwrap()));
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let link = place.path().join("link");
    symlink(&state, &link).unwrap();
    let with = |state: &Path| Dunnage::new().with("DUNNAGE_STATE", &state.display().to_string());
    let name = format!("belongs to user {}", user.number);
    let verbs =
        ["run start -s bare -o DIR", "check start -s bare", "sweep", "list subjects", "plan start -s bare"];
    // The user's own directory; one below it that is root's; one that all can change; a link to it.
    chown(&state, Some(user.number), None).unwrap();
    verbs.iter().for_each(|verb| is_refused(&with(&state).run(verb), &name));
    chown(&state, Some(0), None).unwrap();
    chown(&above, Some(user.number), None).unwrap();
    verbs.iter().for_each(|verb| is_refused(&with(&state).run(verb), &name));
    is_refused(&with(&link).run("sweep"), &name);
    chown(&above, Some(0), None).unwrap();
    mode(&state, 0o777);
    verbs.iter().for_each(|verb| is_refused(&with(&state).run(verb), "can be changed by other users"));
    let doctor = with(&state).run("doctor");
    assert!(doctor.stdout.contains("can be changed by all users"), "{doctor}");
    mode(&state, 0o700);
    assert!(!mark.exists() && victim.exists());

    // In root's own state directory, where a vulnerable version may have left them, records are no programs either.
    let ran = with(&link).run("sweep");
    assert!(!mark.exists() && victim.exists(), "{ran}");
    let real = fs::canonicalize(&state).unwrap();
    assert!(ran.stdout.contains(&format!("{}/runs/feedbeef", real.display())), "{ran}");
}

#[test]
fn no_other_user_enters_what_is_kept_or_made() {
    let test = "no_other_user_enters_what_is_kept_or_made";
    let Some(user) = User::ordinary(test, 'm', Ids::Own) else { return };
    let dunnage = Dunnage::new();
    fs::set_permissions(dunnage.state().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    // As an older version left it: the root of an image with a program that gives root's rights.
    let root = dunnage.state().join("images/export-1/rootfs");
    fs::create_dir_all(&root).unwrap();
    let program = root.join("id");
    fs::copy("/usr/bin/id", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let command = format!("{} -u", program.display());
    assert_eq!(user.shell(&command), Ok("0\n".to_owned()), "the test is wrong: nothing to close");
    let ran = dunnage.run("check start -s bare -s floor --set prestate=idle");
    assert_eq!(ran.code, 0, "{ran}");
    let denied = user.shell(&command).unwrap_err();
    assert!(denied.contains("Permission denied"), "{denied}");
    for path in ["images", "runs", "journal"].map(|name| dunnage.state().join(name)) {
        assert!(user.shell(&format!("ls {}", path.display())).is_err(), "{}", path.display());
    }
}

#[test]
fn a_state_directory_behind_ones_own_link_is_cleared_like_any_other() {
    if lacks("a_state_directory_behind_ones_own_link_is_cleared_like_any_other", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new().without_engines();
    let real = dunnage.state().with_file_name("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, dunnage.state()).unwrap();
    let mounts = |run: &str| -> Vec<String> {
        let own = real.join("runs").join(run).display().to_string();
        let table = fs::read_to_string("/proc/self/mounts").unwrap();
        table.lines().filter(|line| line.contains(&own)).map(str::to_owned).collect()
    };
    let words = "run disk -s bare --no-vary --set place=tmpfs --set size=64MiB --rounds 20 -o DIR";
    let (run, there) = Running::start(&dunnage, words).kill_with(mounts);
    let swept = dunnage.run("sweep");
    assert!(swept.code == 0 && swept.stdout.contains("removed the mount on"), "{there:?} {swept}");
    assert_eq!(mounts(&run), [""; 0], "{swept}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{swept}");
}

/// The attribute of an access control list in which this user has these rights besides the owner.
fn list(user: u32, rights: u16) -> Vec<u8> {
    let entry = |tag: u16, rights: u16, id: u32| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let entries = [(1, 7, none), (2, rights, user), (4, 5, none), (0x10, 7, none), (0x20, 5, none)];
    let entries = entries.into_iter().flat_map(|(tag, rights, id)| entry(tag, rights, id));
    2u32.to_le_bytes().into_iter().chain(entries).collect()
}

#[test]
fn an_access_control_list_lets_no_other_user_in() {
    let test = "an_access_control_list_lets_no_other_user_in";
    let Some(user) = User::ordinary(test, 'a', Ids::Own) else { return };
    let dunnage = Dunnage::new().without_engines();
    let above = dunnage.state().parent().unwrap().to_owned();
    fs::set_permissions(&above, fs::Permissions::from_mode(0o755)).unwrap();
    let give = |path: &Path, name: &str| {
        rustix::fs::setxattr(path, name, &list(user.number, 7), rustix::fs::XattrFlags::empty()).unwrap();
    };
    // What is made in a directory inherits its default list.
    give(&above, "system.posix_acl_default");
    let ran = dunnage.run("check start -s bare -s floor --set prestate=idle");
    assert_eq!(ran.code, 0, "{ran}");
    for path in [dunnage.state(), dunnage.state().join("images")] {
        let there = ["system.posix_acl_default", "system.posix_acl_access"]
            .map(|name| rustix::fs::getxattr(&path, name, &mut [0u8; 256][..]).is_ok());
        assert_eq!(there, [false; 2], "{}", path.display());
        assert!(user.shell(&format!("cd {}", path.display())).is_err(), "{}", path.display());
    }
    // With a list, the group's bits say what its users may do.
    give(&above, "system.posix_acl_access");
    is_refused(&dunnage.run("sweep"), "can be changed by group 0");
}
