//! The probe's orders about files, on real filesystems: each makes the system calls that it names, what it writes is what
//! is read, what was changed is found, and every way in which a place can fail is a failure of its own class.

mod calls;
mod inside;
mod overlay;
mod refusals;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::orders::{about_files, distribution, number as named};
use crate::support::{Need, lacks, skip};
use dunnage::outcome::{Failure, FailureClass};
use dunnage::probe::message::parse;
use dunnage::sys::page_cache;
use serde_json::Value;
use tempfile::TempDir;

/// A directory on a disk; `/tmp` is in memory on many machines.
fn room() -> TempDir {
    tempfile::Builder::new().prefix("dunnage-files-").tempdir_in("/var/tmp").expect("a directory")
}

/// A probe that carries out an order, after the arguments of a command that starts it.
fn probe(mut command: Command, order: &str, place: &Path) -> Command {
    let order = serde_json::to_string(&about_files(order, place)).expect("an order");
    command.args(["probe", "work", "-", &order]);
    command
}

fn done_of(output: &Output) -> Result<Value, Failure> {
    let words = String::from_utf8_lossy(&output.stderr);
    parse(&output.stdout).unwrap_or_else(|error| panic!("{error}: {words}")).answer()
}

/// What comes of an order, whether it succeeds or not.
fn tried(order: &str, place: &Path) -> Result<Value, Failure> {
    let mut command = probe(Command::new(env!("CARGO_BIN_EXE_dunnage")), order, place);
    done_of(&command.output().expect("the probe starts"))
}

/// The answer to an order that succeeds.
fn ask(order: &str, place: &Path) -> Value {
    tried(order, place).unwrap_or_else(|failure| panic!("{order}: {failure}"))
}

/// The failure of an order.
fn failure(order: &str, place: &Path) -> Failure {
    tried(order, place).expect_err(order)
}

#[test]
fn what_is_written_is_read_in_every_class_and_a_part_of_a_block_too() {
    let room = room();
    let mut channels = vec!["plain"];
    if !lacks("what_is_written_is_read_in_every_class_and_a_part_of_a_block_too", Need::IoUring) {
        channels.push("uring");
    }
    for channel in channels {
        for (class, bytes, block) in [
            ("synced", 1_000_000, 65_536),
            ("cached", 100_001, 1000),
            ("direct", 1 << 20, 4096),
            ("cached", 16, 4096),
        ] {
            let order = format!("write PLACE/a {bytes} 3 {block} {class} {channel}");
            let done = ask(&order, room.path());
            assert_eq!(named(&done, "bytes"), 3 * bytes, "{order}");
            let blocks = 3 * (bytes as u64).div_ceil(block);
            let times = distribution(&done, "block");
            assert_eq!(times.count(), blocks, "{order}");
            // Half of the blocks take the median or longer.
            let took = named(&done, "took");
            assert!(
                times.quantile(0.5).unwrap() * (blocks / 2) <= took as u64 && named(&done, "cpu") > 0,
                "{order}"
            );
            for (path, length) in (0..3).map(|file| room.path().join(format!("a/{file}"))).map(|path| {
                let length = path.metadata().unwrap().len();
                (path, length)
            }) {
                assert_eq!(length, bytes as u64, "{}", path.display());
            }
            for class in ["cached", "direct"] {
                if class == "direct" && (bytes % 512 != 0 || block % 512 != 0) {
                    continue;
                }
                let done = ask(&format!("read PLACE/a 3 {block} {class} {channel}"), room.path());
                assert_eq!(
                    (named(&done, "bytes"), named(&done, "wrong")),
                    (3 * bytes, 0),
                    "{order}, read {class}"
                );
            }
            ask("clear PLACE/a", room.path());
            fs::remove_dir(room.path().join("a")).unwrap();
        }
    }
}

#[test]
fn both_channels_write_the_same_bytes() {
    const TEST: &str = "both_channels_write_the_same_bytes";
    let room = room();
    if lacks(TEST, Need::IoUring) {
        return;
    }
    for channel in ["plain", "uring"] {
        ask(&format!("write PLACE/{channel} 3000000 2 65536 synced {channel}"), room.path());
        ask(&format!("random PLACE/{channel} write 500 4096 direct {channel} 1 0 7"), room.path());
    }
    for file in ["0", "1"] {
        let [plain, uring] =
            ["plain", "uring"].map(|way| fs::read(room.path().join(way).join(file)).unwrap());
        assert!(plain == uring && plain.len() == 3_000_000, "{file}");
    }
    // Incompressible: one byte in 256 is like the one before it, but for the zeros in a mark of 16 bytes in 4 KiB.
    let bytes = fs::read(room.path().join("plain/0")).unwrap();
    let equal = bytes.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!((bytes.len() / 270..bytes.len() / 256 + bytes.len() / 512).contains(&equal), "{equal}");
}

#[test]
fn a_changed_byte_and_blocks_in_another_order_are_found() {
    let room = room();
    ask("write PLACE/a 1048576 2 65536 cached plain", room.path());
    let wrong = || named(&ask("read PLACE/a 2 65536 cached plain", room.path()), "wrong");
    let file = fs::OpenOptions::new().read(true).write(true).open(room.path().join("a/1")).unwrap();
    let block = |number: u64| {
        let mut bytes = vec![0; 65536];
        file.read_exact_at(&mut bytes, number * 65536).unwrap();
        bytes
    };
    assert_eq!(wrong(), 0);
    let original = block(5);
    let mut changed = original.clone();
    changed[3 * 4096 + 9] ^= 1;
    file.write_all_at(&changed, 5 * 65536).unwrap();
    assert_eq!(wrong(), 1);
    // Another block of the same file, and zeros as of a hole.
    file.write_all_at(&block(7), 5 * 65536).unwrap();
    file.write_all_at(&vec![0; 65536], 9 * 65536).unwrap();
    assert_eq!(wrong(), 2);
    // The file in the place of another.
    fs::copy(room.path().join("a/0"), room.path().join("a/1")).unwrap();
    assert_eq!(wrong(), 16);
}

#[test]
fn a_file_that_was_forgotten_is_read_from_the_device() {
    const TEST: &str = "a_file_that_was_forgotten_is_read_from_the_device";
    let room = room();
    ask("write PLACE/a 4194304 2 1048576 cached plain", room.path());
    let files = [0, 1].map(|file| room.path().join(format!("a/{file}")));
    let resident = || files.iter().map(|file| page_cache::resident(file).unwrap()).sum::<usize>();
    assert_eq!(resident(), 2048);
    let done = ask("forget PLACE/a 2", room.path());
    assert_eq!(named(&done, "pages"), 2048);
    if dunnage::sys::filesystem::is_in_memory(room.path()).unwrap() {
        return skip(TEST, Need::Ext4, "`/var/tmp` is in memory");
    }
    assert_eq!((named(&done, "resident"), resident()), (0, 0));
    let before = read_from_devices();
    assert_eq!(named(&ask("read PLACE/a 2 1048576 cached plain", room.path()), "wrong"), 0);
    assert!(read_from_devices() - before >= 8 << 20, "{} bytes", read_from_devices() - before);
    assert_eq!(resident(), 2048);
}

/// Bytes that children of this process, all probes, have read from block devices.
fn read_from_devices() -> u64 {
    // The kernel adds the counters of children that have been waited for.
    let text = fs::read_to_string("/proc/self/io").unwrap();
    text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok()).unwrap()
}

#[test]
fn random_places_are_read_and_written_and_keep_their_marks() {
    const TEST: &str = "random_places_are_read_and_written_and_keep_their_marks";
    let room = room();
    ask("write PLACE/a 8388608 1 1048576 synced plain", room.path());
    let mut orders = vec![
        ("read 300 4096 cached plain 1 0", 300),
        ("read 300 512 direct plain 1 0", 300),
        ("write 300 4096 direct plain 1 0", 300),
        ("write 300 16384 synced plain 1 0", 300),
    ];
    if !lacks(TEST, Need::IoUring) {
        orders.extend([
            ("read 3000 4096 direct uring 32 0", 3000),
            ("write 3000 4096 synced uring 8 0", 3000),
            ("write 7 4096 direct uring 32 0", 7),
        ]);
    }
    let before = fs::read(room.path().join("a/0")).unwrap();
    for (order, count) in orders {
        let done = ask(&format!("random PLACE/a {order} 3"), room.path());
        assert_eq!(named(&done, "operations"), count, "{order}");
        assert_eq!(distribution(&done, "random").count(), count as u64);
        assert!(named(&done, "took") > 0 && named(&done, "cpu") > 0);
        assert_eq!(named(&ask("read PLACE/a 1 4096 cached plain", room.path()), "wrong"), 0, "{order}");
    }
    let after = fs::read(room.path().join("a/0")).unwrap();
    let changed =
        before.chunks(4096).zip(after.chunks(4096)).filter(|(before, after)| before != after).count();
    assert!(changed > 300 && after.len() == before.len(), "{changed}");
    // Another seed, other places: after the same number of writes a different file.
    let with = |seed: u32| {
        fs::write(room.path().join("a/0"), &before).unwrap();
        ask(&format!("random PLACE/a write 50 4096 cached plain 1 0 {seed}"), room.path());
        fs::read(room.path().join("a/0")).unwrap()
    };
    assert!(with(1) == with(1) && with(1) != with(2));
}

#[test]
fn a_time_ends_an_order_as_well_as_a_count() {
    const NANOS: i64 = 50_000_000;
    let room = room();
    ask("write PLACE/a 1048576 1 1048576 cached plain", room.path());
    for (order, name) in
        [("append PLACE/a 0 4096", "count"), ("random PLACE/a read 0 4096 cached plain 1", "operations")]
    {
        let done = ask(&format!("{order} {NANOS}"), room.path());
        let (took, count) = (named(&done, "took"), named(&done, name));
        assert!(took >= NANOS && count > 1, "{order}: {took} {count}");
    }
    let done = ask("append PLACE/b 5 1000 0", room.path());
    assert_eq!(named(&done, "count"), 5);
    assert_eq!(room.path().join("b/append").metadata().unwrap().len(), 5000);
    assert!(matches!(failure("append PLACE/c 0 4096 0", room.path()).class, FailureClass::Unsupported));
}

#[test]
fn extents_wait_for_their_place_until_the_file_is_synced() {
    const TEST: &str = "extents_wait_for_their_place_until_the_file_is_synced";
    let room = room();
    assert_eq!(ask("touch PLACE/none", room.path()), Value::Null);
    ask("write PLACE/synced 1048576 1 1048576 synced plain", room.path());
    let done = ask("touch PLACE/synced/0", room.path());
    assert_eq!(named(&done, "size"), 1 << 20);
    if let Some(why) = done["extents"]["Err"].as_str() {
        assert!(why.contains(&format!("(os error {})", libc::EOPNOTSUPP)), "{why}");
        return skip(TEST, Need::Ext4, why);
    }
    assert!(named(&done, "all") >= 1 && named(&done, "delayed") == 0, "{done}");
    let written = |name: String| {
        ask(&format!("write PLACE/{name} 1048576 1 1048576 cached plain"), room.path());
        name
    };
    let delayed = |name: &str| named(&ask(&format!("touch PLACE/{name}/0"), room.path()), "delayed");
    let name = written("cached".to_owned());
    ask(&format!("forget PLACE/{name} 1"), room.path());
    assert_eq!(delayed(&name), 0);
    // Not every filesystem delays, and a writeback may come at any time, but not each time.
    let kind = Command::new("stat").args(["--file-system", "--format", "%T"]).arg(room.path()).output();
    let kind = String::from_utf8(kind.expect("it is installed").stdout).expect("a name");
    if kind.trim() != "ext2/ext3" {
        return skip(TEST, Need::Ext4, &format!("the directory is on {}", kind.trim()));
    }
    assert!((0..20).any(|number| delayed(&written(format!("cached{number}"))) > 0));
}

#[test]
fn single_operations_do_what_they_say() {
    let room = room();
    ask("prepare PLACE/a file:1000000 gone:5000 old:5000 0:5000 1:5000", room.path());
    let path = |name: &str| -> PathBuf { room.path().join("a").join(name) };
    let many = || ["0", "1"].map(|name| fs::read(path(name)).unwrap());
    let before = many();
    let done = ask("each open PLACE/a 2", room.path());
    assert!(distribution(&done, "each").count() == 2 && many() == before);
    let done = ask("each modify PLACE/a 2", room.path());
    assert_eq!(distribution(&done, "each").count(), 2);
    assert!(many().iter().zip(&before).all(|(after, before)| after[2500] == !before[2500]));
    let before = fs::read(path("file")).unwrap();
    let done = ask("modify PLACE/a/file", room.path());
    assert!(named(&done, "opened") > 0 && named(&done, "opened") < named(&done, "took"));
    let after = fs::read(path("file")).unwrap();
    let changed: Vec<_> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
    assert_eq!((changed, after.len()), (vec![500_000], 1_000_000));
    ask("append-to PLACE/a/file 2500000", room.path());
    let longer = fs::read(path("file")).unwrap();
    assert!(longer.len() == 3_500_000 && longer[..1_000_000] == after);
    ask("truncate PLACE/a/file 4096", room.path());
    assert_eq!(fs::read(path("file")).unwrap().len(), 4096);
    ask("delete PLACE/a/gone", room.path());
    ask("rename PLACE/a/old PLACE/a/new", room.path());
    assert!(!path("gone").exists() && !path("old").exists() && path("new").exists());
    let mode = || std::os::unix::fs::PermissionsExt::mode(&path("new").metadata().unwrap().permissions());
    let before = mode();
    ask("chmod PLACE/a/new", room.path());
    assert_eq!(mode(), before ^ 1);
    for order in ["stat PLACE/a/new", "chmod PLACE/a/new"] {
        let done = ask(order, room.path());
        assert!(named(&done, "took") > 0 && named(&done, "cpu") > 0, "{order}");
    }
    assert_eq!(mode(), before);
    if !lacks("single_operations_do_what_they_say", Need::Root) {
        let group = || std::os::unix::fs::MetadataExt::gid(&path("new").metadata().unwrap());
        let before = group();
        ask("chown PLACE/a/new", room.path());
        assert_ne!(group(), before);
    }
    // What was renamed and changed is still known as dunnage's.
    assert_eq!(named(&ask("clear PLACE/a", room.path()), "left"), 0);
}
