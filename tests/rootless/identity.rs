//! A program that is started as another user: what it gets, read back by the program itself, and the error
//! where that is impossible.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use dunnage::sys::identity::{Identity, Limit, limits_in};
use dunnage::sys::spawn::{self, Ended, Program, Status};
use dunnage::units::Nanos;

use crate::support::{self, Need};

/// An unused id, so that nothing depends on the users of the machine.
const STRANGER: u32 = 64_321;

/// The current limits, with this one of open files.
fn limits(soft: u64, hard: u64) -> Vec<Limit> {
    let mut all = limits_in(&fs::read_to_string("/proc/self/limits").unwrap()).unwrap();
    let files = all.iter_mut().find(|limit| limit.resource == libc::RLIMIT_NOFILE).unwrap();
    (files.soft, files.hard) = (soft, hard);
    all
}

fn stranger() -> Identity {
    Identity {
        user: STRANGER,
        group: STRANGER + 1,
        groups: vec![STRANGER + 1, STRANGER + 2, STRANGER + 3],
        limits: limits(37, 41),
        directory: "/usr".into(),
        mask: 0o027,
    }
}

fn run(identity: Identity, path: &str, arguments: &[&str]) -> io::Result<Ended> {
    let program = Program::new(Path::new(path), arguments)?.with_environment(&["ONLY=this"])?;
    let child = spawn::start(&program.with_identity(&Arc::new(identity)))?;
    Ok(child.wait(Nanos::from_millis(10_000), None).expect("it ends"))
}

#[test]
fn user_groups_limits_directory_mask_and_environment_are_as_given() {
    if support::lacks("user_groups_limits_directory_mask_and_environment_are_as_given", Need::Root) {
        return;
    }
    let script = "cat /proc/self/status /proc/self/limits; tr '\\0' '\\n' </proc/$$/environ; umask; pwd -P";
    let ended = run(stranger(), "/bin/sh", &["-c", script]).unwrap();
    assert_eq!(ended.status, Status::Exited(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let said = String::from_utf8(ended.stdout).unwrap();
    let line = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{said}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("Uid:"), "64321 64321 64321 64321");
    assert_eq!(line("Gid:"), "64322 64322 64322 64322");
    assert_eq!(line("Groups:"), "64322 64323 64324");
    assert_eq!(line("CapEff:"), "0000000000000000");
    assert_eq!(line("SigBlk:"), "0000000000000000");
    assert_eq!(line("Max open files"), "37 41 files");
    let end: Vec<_> = said.lines().rev().take(4).collect();
    assert_eq!(end[..3], ["/usr", "0027", "ONLY=this"], "{said}");
    assert!(end[3].starts_with("Max realtime timeout"), "more than one variable: {said}");
}

#[test]
fn what_is_refused_is_named_by_its_step() {
    if support::lacks("what_is_refused_is_named_by_its_step", Need::Root) {
        return;
    }
    let private = tempfile::tempdir().unwrap();
    let closed = private.path().join("closed");
    fs::DirBuilder::new().mode(0o700).create(&closed).unwrap();
    let error = run(Identity { directory: closed.clone(), ..stranger() }, "/bin/true", &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(error.to_string().starts_with(&format!("cannot enter `{}`: ", closed.display())), "{error}");
    let error = run(stranger(), "/nonexistent/program", &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().starts_with("cannot execute `/nonexistent/program`: "), "{error}");
    let error = run(Identity { limits: limits(9, 8), ..stranger() }, "/bin/true", &[]).unwrap_err();
    assert!(error.to_string().starts_with("cannot set the limit `Max open files`: "), "{error}");
}

#[test]
fn an_ordinary_user_cannot_become_another() {
    let limits = limits_in(&fs::read_to_string("/proc/self/limits").unwrap()).unwrap();
    if support::root_ready().is_ok() {
        // Root becomes an ordinary user first: then the step is refused to the test's own child.
        let own = std::env::current_exe().unwrap();
        let test = "rootless::identity::an_ordinary_user_cannot_become_another";
        let copy = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/tmp").unwrap();
        let program = copy.path().join("test");
        // By a program: a file that this process has written cannot be executed while a child of another
        // thread still has it open.
        let copied = std::process::Command::new("cp").args([&own, &program]).status().unwrap();
        assert!(copied.success());
        for path in [copy.path(), &program] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let ended = run(Identity { limits, ..stranger() }, program.to_str().unwrap(), &["--exact", test]);
        let ended = ended.unwrap();
        assert_eq!(ended.status, Status::Exited(0), "{}", String::from_utf8_lossy(&ended.stdout));
        assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"));
        return;
    }
    let error = run(Identity { limits, ..stranger() }, "/bin/true", &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(error.to_string().starts_with("cannot set groups"), "{error}");
}

#[test]
fn we_stay_as_readable_as_before() {
    if support::lacks("we_stay_as_readable_as_before", Need::Root) {
        return;
    }
    run(stranger(), "/bin/true", &[]).unwrap();
    // 1 is the value of every process that has never changed its user.
    assert_eq!(dunnage::sys::raw::prctl(libc::PR_GET_DUMPABLE, 0), Ok(1));
}
