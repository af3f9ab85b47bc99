//! The directories that root and containers work in, which another user would like to reach first.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use crate::dunnage::Dunnage;
use crate::handles::{run_in, subject};
use crate::rootless::user::{Ids, User};
use crate::support::orders::{about_files, failure};
use ::dunnage::measure::storage::{At, Files, Place};
use ::dunnage::orders::files::{self as orders, Class, Clear, How, Io, Write};
use ::dunnage::subject::ContainerRequest;
use ::dunnage::subject::pair::begun;
use ::dunnage::units::Nanos;

const PATIENCE: Nanos = Nanos::from_millis(20_000);

/// Writes two small files there.
fn two_files(path: PathBuf) -> Write {
    let how = How { class: Class::Synced, io: Io::Plain, block: 4096 };
    Write { path, files: orders::Files { count: 2, bytes: 4096 }, how }
}

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
        let written = files.ask(two_files(place.path.clone()), PATIENCE);
        assert!(written.is_ok(), "{text} {at:?}: {written:?}");
        let own = place.path.join("0").metadata().unwrap();
        assert_eq!((own.uid(), own.len()), (owner, 4096), "{text} {at:?}");
        files.ask(Clear { path: place.path.clone() }, PATIENCE).unwrap();
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
    let orders = [
        "write PLACE/files 4096 2 4096 cached plain",
        "append PLACE/files 1 512 0",
        "prepare PLACE/files new:4096",
        "clear PLACE/files",
        "append-to PLACE/files/0 4096",
        "truncate PLACE/files/0 4096",
        "chmod PLACE/files/0",
        "chown PLACE/files/0",
        "rename PLACE/files/0 PLACE/files/1",
        "modify PLACE/files/0",
        "each modify PLACE/files 1",
        "delete PLACE/files/0",
    ];
    let mut container = begun(bare.as_ref(), ContainerRequest::default(), &run).unwrap();
    for order in orders {
        let said = failure(&mut container, about_files(order, &open)).reason;
        assert!(
            said.contains("belongs to user") || said.contains("can be changed by all users"),
            "{order}: {said}"
        );
    }
    let after = victim.metadata().unwrap();
    let facts = |file: &fs::Metadata| (file.ino(), file.mode(), file.gid(), file.len(), file.mtime_nsec());
    assert_eq!((facts(&after), fs::read_dir(&others).unwrap().count()), (facts(&before), 1));
    // A sticky directory like `/tmp` is one to work below.
    let own = room.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(room.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let near = own.join("files");
    files.ask(two_files(near.clone()), PATIENCE).unwrap();
    files.ask(Clear { path: near }, PATIENCE).unwrap();
}
