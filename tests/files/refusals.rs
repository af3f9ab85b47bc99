//! Every way in which a place can fail: the class, the path in the reason, and nothing left.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use dunnage::outcome::{Failure, FailureClass};
use dunnage::sys::seccomp::{Profile, compile};
use serde_json::json;

use crate::files::{ask, done_of, failure, probe, room};
use crate::support::{Need, lacks};

/// The failure of an order on a filesystem that is mounted on the place in a namespace of its own, and what is there
/// afterwards.
fn on(mount: &str, order: &str, place: &Path) -> (Option<Failure>, String) {
    let place = place.join("mounted");
    fs::create_dir_all(&place).unwrap();
    let list = place.with_extension("list");
    let mut shell = Command::new("unshare");
    let script = format!(r#"{mount} "$P" || exit 8; "$0" "$@"; ls -A "$P" > "$P.list""#);
    shell.args(["--mount", "--propagation", "private", "sh", "-c", &script, env!("CARGO_BIN_EXE_dunnage")]);
    shell.env("P", &place);
    let done = done_of(&probe(shell, order, &place).output().expect("unshare is there"));
    (done.err(), fs::read_to_string(list).unwrap())
}

#[test]
fn a_full_filesystem_is_a_failure_with_path_and_bytes_and_nothing_is_left() {
    const TEST: &str = "a_full_filesystem_is_a_failure_with_path_and_bytes_and_nothing_is_left";
    if lacks(TEST, Need::Root) {
        return;
    }
    let room = room();
    for order in [
        "write PLACE 4194304 3 65536 synced plain",
        "write PLACE/a 4194304 3 65536 cached plain",
        "append PLACE 10000 4096 0",
        "prepare PLACE a/b/one:100000 a/two:9000000",
    ] {
        let (failure, left) = on("mount -t tmpfs -o size=1m tmpfs", order, room.path());
        let failure = failure.expect(order);
        assert_eq!(failure.class, FailureClass::Environment, "{failure}");
        for words in [" bytes", "/mounted/", "No space left on device"] {
            assert!(failure.reason.contains(words), "{order}: {words}: {failure}");
        }
        assert_eq!(left, "", "{order}");
    }
}

#[test]
fn a_read_only_filesystem_and_one_without_direct_transfers_are_failures_with_their_path() {
    const TEST: &str = "a_read_only_filesystem_and_one_without_direct_transfers_are_failures_with_their_path";
    if lacks(TEST, Need::Root) {
        return;
    }
    let room = room();
    for (mount, order, class, words) in [
        (
            "mount -t tmpfs -o ro tmpfs",
            "write PLACE 4096 1 4096 synced plain",
            FailureClass::Environment,
            "Read-only",
        ),
        ("mount -t tmpfs -o ro tmpfs", "append PLACE/a 1 4096 0", FailureClass::Environment, "Read-only"),
        (
            "mount -t ramfs ramfs",
            "write PLACE 4096 1 4096 direct plain",
            FailureClass::Unsupported,
            "O_DIRECT",
        ),
    ] {
        let (failure, left) = on(mount, order, room.path());
        let failure = failure.expect(order);
        assert_eq!((failure.class, left.as_str()), (class, ""), "{failure}");
        assert!(failure.reason.contains(words) && failure.reason.contains("/mounted"), "{failure}");
    }
    let (done, left) = on("mount -t ramfs ramfs", "write PLACE 4096 1 4096 synced plain", room.path());
    assert_eq!((done, left.as_str()), (None, "0\n"));
}

#[test]
fn files_of_others_are_not_touched() {
    let room = room();
    let place = room.path();
    fs::create_dir(place.join("a")).unwrap();
    fs::write(place.join("a/1"), "a user's").unwrap();
    let failure_of = |order: &str| failure(order, place);
    let exists = failure_of("write PLACE/a 4096 3 4096 cached plain");
    assert!(exists.class == FailureClass::Environment && exists.reason.contains("/a/1`"), "{exists}");
    assert_eq!(fs::read_to_string(place.join("a/1")).unwrap(), "a user's");
    assert!(!place.join("a/0").exists(), "what it made is gone");
    // No link is followed.
    fs::write(place.join("users"), "a user's, longer than sixteen bytes").unwrap();
    symlink(place.join("users"), place.join("a/0")).unwrap();
    symlink(place.join("users"), place.join("a/append")).unwrap();
    for order in [
        "read PLACE/a 1 4096 cached plain",
        "forget PLACE/a 1",
        "append PLACE/a 1 4096 0",
        "random PLACE/a write 1 16 cached plain 1 0",
        "modify PLACE/a/0",
        "append-to PLACE/a/0 4096",
        "truncate PLACE/a/0 4096",
        "chmod PLACE/a/0",
        "chown PLACE/a/0",
        "open PLACE/a/0",
        "touch PLACE/a/0",
        "rename PLACE/users PLACE/a/1",
    ] {
        assert_ne!(failure_of(order).class, FailureClass::Crash, "{order}");
        assert_eq!(
            fs::read_to_string(place.join("users")).unwrap(),
            "a user's, longer than sixteen bytes",
            "{order}"
        );
    }
    ask("clear PLACE/a", place);
    assert!(place.join("a/1").exists() && fs::symlink_metadata(place.join("a/0")).is_ok());
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let room = room();
    ask("write PLACE/a 8192 1 4096 cached plain", room.path());
    for (order, words) in [
        ("write relative 4096 1 4096 cached plain", "an absolute path"),
        ("write PLACE/../x 4096 1 4096 cached plain", "an absolute path"),
        ("write / 4096 1 4096 cached plain", "an absolute path"),
        ("write PLACE/b 4096 1 1000 direct plain", "multiples of 512"),
        ("write PLACE/b 4096 1 8 cached plain", "at least 16 bytes"),
        ("read PLACE/a 1 4096 synced plain", "`direct` or `cached`"),
        ("random PLACE/a read 1 4096 cached plain 2 0", "needs io_uring"),
        ("random PLACE/a read 1 4096 cached plain 0 0", "the depth"),
        ("random PLACE/a read 1 104857600 cached uring 100 0", "at most 1 GiB"),
        ("random PLACE/a read 0 4096 cached plain 1 0", "above zero"),
    ] {
        let failure = failure(order, room.path());
        assert!(
            failure.class == FailureClass::Unsupported && failure.reason.contains(words),
            "{order}: {failure}"
        );
        assert!(!room.path().join("b").exists(), "{order}");
    }
    for order in
        ["read PLACE/none 1 4096 cached plain", "modify PLACE/none", "delete PLACE/none", "stat PLACE/none"]
    {
        let failure = failure(order, room.path());
        assert!(failure.class == FailureClass::Environment && failure.reason.contains("/none"), "{failure}");
    }
}

#[test]
fn io_uring_that_a_filter_denies_is_a_refusal_that_names_the_filter() {
    let calls = ["io_uring_setup", "io_uring_enter", "io_uring_register"];
    let rule = |errno: i32| {
        json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": ["SCMP_ARCH_X86_64"],
            "syscalls": [{"names": calls, "action": "SCMP_ACT_ERRNO", "errnoRet": errno}],
        })
    };
    let room = room();
    for (errno, name) in [(libc::EPERM, "EPERM"), (libc::ENOSYS, "ENOSYS"), (libc::EACCES, "EACCES")] {
        let filter = compile(&Profile::from_oci(&rule(errno)).unwrap());
        for order in
            ["write PLACE/a 4096 1 4096 cached uring", "random PLACE/own read 1 4096 cached uring 4 0"]
        {
            if order.starts_with("random") && !room.path().join("own").exists() {
                ask("write PLACE/own 8192 1 4096 cached plain", room.path());
            }
            let filter = filter.clone();
            let mut command = Command::new(env!("CARGO_BIN_EXE_dunnage"));
            let load = move || {
                let program =
                    libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
                // SAFETY: the program is valid during the call, which copies it.
                let loaded = unsafe {
                    libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                        && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
                            == 0
                };
                if loaded { Ok(()) } else { Err(std::io::Error::last_os_error()) }
            };
            // SAFETY: between fork and exec it only makes two system calls.
            unsafe { command.pre_exec(load) };
            let done = done_of(&probe(command, order, room.path()).output().expect("the probe starts"));
            let refused = done.expect_err(order);
            assert_eq!(refused.class, FailureClass::Unsupported, "{refused}");
            let why = refused.reason;
            for words in
                [name, "by: the seccomp filter", "`kernel.io_uring_disabled`", "a seccomp filter is in force"]
            {
                assert!(why.contains(words), "{words}: {why}");
            }
        }
        assert!(!room.path().join("a").exists());
    }
}
