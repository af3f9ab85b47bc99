//! Another release's root is made and entered only in a directory that belongs to root alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use crate::dunnage::finished;
use crate::support::{Need, lacks};

#[test]
fn a_planted_root_of_another_release_is_not_entered() {
    if lacks("a_planted_root_of_another_release_is_not_entered", Need::Root) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let stacks = place.path().join("stacks");
    let refused = |stacks: &std::path::Path| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/xtask/stack.sh");
        // Without a command a ready root is only looked at.
        let ran = Command::new("bash").args([script, "planted"]).env("STACKS", stacks).output().unwrap();
        let ran = finished(ran);
        assert!(ran.code == 75 && ran.stderr.contains("does not belong to root alone"), "{ran}");
    };
    let ready = || {
        fs::create_dir_all(stacks.join("planted")).unwrap();
        fs::write(stacks.join("planted/.ready"), "").unwrap();
    };
    ready();
    chown(&stacks, Some(54_321), None).unwrap();
    refused(&stacks);
    chown(&stacks, Some(0), None).unwrap();
    for mode in [0o777, 0o775, 0o1777] {
        fs::set_permissions(&stacks, fs::Permissions::from_mode(mode)).unwrap();
        refused(&stacks);
    }
    fs::set_permissions(&stacks, fs::Permissions::from_mode(0o755)).unwrap();
    let link = place.path().join("link");
    symlink(&stacks, &link).unwrap();
    refused(&link);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/xtask/stack.sh");
    let ran =
        finished(Command::new("bash").args([script, "planted"]).env("STACKS", &stacks).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(fs::metadata(&stacks).unwrap().permissions().mode() & 0o777, 0o700);
}
