//! The directories that root and containers work in, which another user would like to reach first.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::dunnage::Dunnage;
use crate::handles::{run_in, subject};
use crate::rootless::user::{Ids, User};
use ::dunnage::measure::storage::{At, Files, Place};
use ::dunnage::units::Nanos;

const PATIENCE: Nanos = Nanos::from_millis(20_000);

#[test]
fn only_who_works_in_a_directory_reaches_it() {
    let test = "only_who_works_in_a_directory_reaches_it";
    let Some(user) = User::ordinary(test, 'w', Ids::Own) else { return };
    let Some(rootless) = User::new(test, 'r', Ids::Subordinate) else { return };
    let of_podman = format!("podman:net=none,rootless={}", rootless.name);
    // A mount made later is in a rootless podman's mount namespace only where mounts are shared with it.
    let all = [
        ("bare", 0, At::Bind),
        ("bare", 0, At::Memory),
        ("floor", 0, At::Bind),
        ("floor", 0, At::Memory),
        (of_podman.as_str(), rootless.number, At::Bind),
    ];
    for (text, owner, at) in all {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let place = Place::make(subject.as_ref(), at, &run).unwrap();
        let mut files = Files::begin(subject.as_ref(), &place, &run).unwrap();
        let directory = place.request.mounts.last().unwrap().host.clone();
        // Even if the state directory were open to all.
        for above in
            directory.ancestors().skip(1).take_while(|above| *above != std::path::Path::new("/var/tmp"))
        {
            fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let facts = directory.metadata().unwrap();
        assert_eq!((facts.uid(), facts.mode() & 0o7777), (owner, 0o700), "{text} {at:?}");
        let planted = user.shell(&format!("ln -s /etc {}/files", directory.display()));
        assert!(planted.unwrap_err().contains("Permission denied"), "{text} {at:?}");
        // The program inside can write there.
        let path = place.path.display().to_string();
        let written = files.ask(&["write", &path, "4096", "2", "4096", "synced", "plain"], PATIENCE);
        assert!(written.is_ok(), "{text} {at:?}: {written:?}");
        let own = place.path.join("0").metadata().unwrap();
        assert_eq!((own.uid(), own.len()), (owner, 4096), "{text} {at:?}");
        files.ask(&["clear", &path], PATIENCE).unwrap();
    }
}

/// Orders about a directory that all may write to, in which a user waits.
#[test]
fn no_file_is_touched_in_a_directory_that_another_user_can_change() {
    let test = "no_file_is_touched_in_a_directory_that_another_user_can_change";
    let Some(user) = User::ordinary(test, 'w', Ids::Own) else { return };
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let place = Place::make(bare.as_ref(), At::Bind, &run).unwrap();
    let mut files = Files::begin(bare.as_ref(), &place, &run).unwrap();
    let room = tempfile::tempdir().unwrap();
    let [others, open] = ["others", "open"].map(|name| room.path().join(name));
    for (directory, mode) in [(room.path(), 0o755), (&others, 0o700), (&open, 0o777)] {
        fs::create_dir_all(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
    }
    let victim = others.join("0");
    fs::write(&victim, "kept by root, and longer than a mark").unwrap();
    let before = victim.metadata().unwrap();
    user.shell(&format!("ln -s {} {}/files", others.display(), open.display())).unwrap();
    let [place, file] = ["files", "files/0"].map(|name| open.join(name).display().to_string());
    let renamed = format!("{place}/1");
    let orders: &[&[&str]] = &[
        &["write", &place, "4096", "2", "4096", "cached", "plain"],
        &["append", &place, "1", "512", "0"],
        &["prepare", &place, "new:4096"],
        &["clear", &place],
        &["append-to", &file, "4096"],
        &["truncate", &file, "4096"],
        &["chmod", &file],
        &["chown", &file],
        &["rename", &file, &renamed],
        &["modify", &file],
        &["each", "modify", &place, "1"],
        &["delete", &file],
    ];
    for order in orders {
        let refused = files.ask(order, PATIENCE);
        let said = format!("{refused:?}");
        assert!(
            said.contains("belongs to user") || said.contains("can be changed by all users"),
            "{order:?}: {said}"
        );
    }
    let after = victim.metadata().unwrap();
    let facts = |file: &fs::Metadata| (file.ino(), file.mode(), file.gid(), file.len(), file.mtime_nsec());
    assert_eq!((facts(&after), fs::read_dir(&others).unwrap().count()), (facts(&before), 1));
    // A sticky directory like `/tmp` is one to work below.
    let own = room.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let near = own.join("files").display().to_string();
    files.ask(&["write", &near, "4096", "2", "4096", "cached", "plain"], PATIENCE).unwrap();
    files.ask(&["clear", &near], PATIENCE).unwrap();
}
