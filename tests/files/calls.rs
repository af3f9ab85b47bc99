//! The system calls of each order, counted by strace: as many syncs as it says, and none that it does not.

use std::path::Path;
use std::process::Command;

use crate::files::{done_of, probe, room};
use crate::support::{Need, lacks};

/// The system calls of an order, a line each, from the first that names the place.
fn calls(order: &str, place: &Path) -> Vec<String> {
    let trace = place.join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-s", "0", "-o"]).arg(&trace).arg(env!("CARGO_BIN_EXE_dunnage"));
    let done = done_of(&probe(strace, order, place).output().expect("strace starts"));
    done.unwrap_or_else(|failure| panic!("{order}: {failure}"));
    let text = std::fs::read_to_string(&trace).unwrap();
    // The process id, and then the call.
    let lines = text.lines().filter_map(|line| Some(line.split_once(' ')?.1.trim().to_owned()));
    lines.filter(|line| !line.starts_with("write(1")).collect()
}

fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| call.starts_with(&format!("{name}("))).count()
}

fn opened<'a>(calls: &'a [String], path: &str) -> Vec<&'a String> {
    let path = format!("{path}\"");
    calls.iter().filter(|call| call.starts_with("openat(") && call.contains(&path)).collect()
}

#[test]
fn each_class_makes_its_own_calls() {
    const TEST: &str = "each_class_makes_its_own_calls";
    if lacks(TEST, Need::Strace) {
        return;
    }
    let room = room();
    for (class, syncs) in [("synced", 3), ("direct", 3), ("cached", 0)] {
        let made = calls(&format!("write PLACE/{class} 65536 3 16384 {class} plain"), room.path());
        assert_eq!(count(&made, "fsync"), syncs, "{class}");
        assert_eq!((count(&made, "fdatasync"), count(&made, "sync")), (0, 0), "{class}");
        assert_eq!(count(&made, "pwrite64"), 12, "{class}");
        for file in 0..3 {
            let opens = opened(&made, &format!("/{class}/{file}"));
            assert_eq!(opens.len(), 1, "{opens:?}");
            for flag in ["O_CREAT", "O_EXCL", "O_NOFOLLOW"] {
                assert!(opens[0].contains(flag), "{flag}: {}", opens[0]);
            }
            assert_eq!(opens[0].contains("O_DIRECT"), class == "direct", "{}", opens[0]);
        }
    }
    for (class, is_direct) in [("direct", true), ("cached", false)] {
        let made = calls(&format!("read PLACE/synced 3 16384 {class} plain"), room.path());
        assert_eq!(count(&made, "pread64"), 12, "{class}");
        assert_eq!(count(&made, "fsync") + count(&made, "fadvise64"), 0, "{class}");
        let opens = opened(&made, "/synced/0");
        assert!(opens.len() == 1 && opens[0].contains("O_DIRECT") == is_direct, "{opens:?}");
        let made = calls(&format!("random PLACE/synced read 20 4096 {class} plain 1 0"), room.path());
        assert_eq!(count(&made, "pread64"), 20);
        assert_eq!(opened(&made, "/synced/0")[0].contains("O_DIRECT"), is_direct);
    }
    for (class, syncs) in [("synced", 1), ("direct", 0), ("cached", 0)] {
        let made = calls(&format!("random PLACE/synced write 20 4096 {class} plain 1 0"), room.path());
        assert_eq!((count(&made, "pwrite64"), count(&made, "fdatasync")), (20, syncs), "{class}");
    }
    let made = calls("forget PLACE/synced 3", room.path());
    assert_eq!((count(&made, "fsync"), count(&made, "fadvise64"), count(&made, "mincore")), (3, 3, 3));
}

#[test]
fn every_append_is_one_write_and_one_sync() {
    const TEST: &str = "every_append_is_one_write_and_one_sync";
    if lacks(TEST, Need::Strace) {
        return;
    }
    let room = room();
    let made = calls("append PLACE/a 25 4096 0", room.path());
    assert_eq!((count(&made, "fdatasync"), count(&made, "fsync"), count(&made, "write")), (25, 0, 25));
    let opens = opened(&made, "/a/append");
    assert!(opens.len() == 1 && opens[0].contains("O_APPEND") && opens[0].contains("O_EXCL"), "{opens:?}");
}

#[test]
fn uring_needs_one_call_for_a_block_and_fewer_at_a_depth() {
    const TEST: &str = "uring_needs_one_call_for_a_block_and_fewer_at_a_depth";
    if lacks(TEST, Need::Strace) || lacks(TEST, Need::IoUring) {
        return;
    }
    let room = room();
    let made = calls("write PLACE/a 1048576 2 65536 synced uring", room.path());
    assert_eq!((count(&made, "io_uring_setup"), count(&made, "fsync"), count(&made, "pwrite64")), (1, 2, 0));
    assert_eq!(count(&made, "io_uring_enter"), 32);
    let made = calls("random PLACE/a read 1000 4096 cached uring 16 0", room.path());
    let enters = count(&made, "io_uring_enter");
    assert!((63..=1000).contains(&enters), "{enters}");
}

#[test]
fn single_operations_make_the_calls_that_they_name() {
    const TEST: &str = "single_operations_make_the_calls_that_they_name";
    if lacks(TEST, Need::Strace) {
        return;
    }
    let room = room();
    crate::files::ask("prepare PLACE/a 0:100000 1:100000", room.path());
    let modify = calls("modify PLACE/a/0", room.path());
    assert_eq!((count(&modify, "pwrite64"), count(&modify, "fsync")), (1, 1));
    assert!(opened(&modify, "/a/0")[0].contains("O_RDWR"));
    let append = calls("append-to PLACE/a/0 4096", room.path());
    assert_eq!((count(&append, "write"), count(&append, "fsync")), (1, 1));
    assert!(opened(&append, "/a/0")[0].contains("O_WRONLY|O_APPEND"), "{:?}", opened(&append, "/a/0"));
    let truncate = calls("truncate PLACE/a/0 4096", room.path());
    assert_eq!((count(&truncate, "write"), count(&truncate, "fsync")), (1, 1));
    assert!(opened(&truncate, "/a/0")[0].contains("O_WRONLY|O_TRUNC"), "{:?}", opened(&truncate, "/a/0"));
    let open = calls("each open PLACE/a 2", room.path());
    assert!(["0", "1"].iter().all(|file| opened(&open, &format!("/a/{file}"))[0].contains("O_RDONLY")));
    for (order, name) in [
        ("chmod PLACE/a/0", "fchmodat"),
        ("stat PLACE/a/0", "newfstatat"),
        ("rename PLACE/a/0 PLACE/a/new", "rename"),
        ("delete PLACE/a/1", "unlink"),
    ] {
        let made = calls(order, room.path());
        assert_eq!(count(&made, name), 1, "{order}: {made:?}");
        assert_eq!(count(&made, "fsync"), 0, "{order}");
    }
}
