//! What each single operation leaves in the upper layer of an overlay: a whole copy, metadata alone, a whiteout, or only
//! what was written.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::files::{ask, room};
use crate::support::orders::about_files;
use crate::support::{Need, lacks, skip};

/// Bytes of each file in the lower layer.
const SIZE: u64 = 4 << 20;
const NAMES: [&str; 7] = ["modify", "append", "truncate", "chmod", "delete", "rename", "stat"];

/// A line of a script that carries out this order.
fn asks(order: &str, place: &Path) -> String {
    format!("ask '{}'", serde_json::to_string(&about_files(order, place)).expect("an order"))
}

/// Runs a script in a mount namespace of its own, where `$P` is the place and `ask` an order, which must succeed.
fn in_mounts(place: &Path, script: &str) -> Result<String, String> {
    let ask =
        r#"ask() { "$D" probe work - "$1" > "$P/said"; if grep -a '"Err"' "$P/said"; then exit 9; fi; }"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &format!("set -e\n{ask}\n{script}")]);
    command.env("P", place).env("D", env!("CARGO_BIN_EXE_dunnage"));
    let output = command.output().expect("unshare is there");
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(words),
        false => Err(format!("{words}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// A lower layer with the files, and the empty directories of an overlay.
fn layers(place: &Path) {
    let files: Vec<_> = NAMES.iter().map(|name| format!("{name}:{SIZE}")).collect();
    ask(&format!("prepare PLACE/lower {}", files.join(" ")), place);
    for directory in ["upper", "work", "merged", "small"] {
        fs::create_dir(place.join(directory)).unwrap();
    }
}

const OPERATIONS: [&str; 8] = [
    "modify PLACE/merged/modify",
    "append-to PLACE/merged/append 4096",
    "truncate PLACE/merged/truncate 4096",
    "chmod PLACE/merged/chmod",
    "delete PLACE/merged/delete",
    "rename PLACE/merged/rename PLACE/merged/new",
    "stat PLACE/merged/stat",
    "open PLACE/merged/stat",
];

/// The operations on an overlay with these options; returns false if the kernel refuses to mount it.
fn operated(test: &str, place: &Path, options: &str) -> bool {
    layers(place);
    let mount = format!(
        r#"mount -t overlay overlay -o "lowerdir=$P/lower,upperdir=$P/upper,workdir=$P/work{options}" "$P/merged" || {{ echo no overlay; exit 8; }}"#
    );
    let operations: Vec<String> = OPERATIONS.iter().map(|order| asks(order, place)).collect();
    let script = format!("{mount}\ncd /\n{}\numount \"$P/merged\"", operations.join("\n"));
    match in_mounts(place, &script) {
        Ok(_) => true,
        Err(why) => {
            skip_without_overlays(test, place, &why);
            false
        }
    }
}

/// Reports a skip if this is why no overlay was mounted: the kernel has none, or none on this filesystem. Anything else is a
/// failure.
fn skip_without_overlays(test: &str, place: &Path, why: &str) {
    let below = Command::new("stat").args(["--file-system", "--format=%T"]).arg(place).output();
    let is_overlay = below.expect("stat is there").stdout == b"overlayfs\n";
    let is_known = why.contains("no overlay") && (is_overlay || why.contains("unknown filesystem type"));
    assert!(is_known, "{why}");
    skip(test, Need::Kernel, why);
}

/// Bytes in which two files differ.
fn differing(one: &Path, other: &Path) -> usize {
    let [one, other] = [one, other].map(|path| fs::read(path).unwrap());
    one.iter().zip(&other).filter(|(one, other)| one != other).count()
}

#[test]
fn the_upper_layer_holds_what_each_operation_copies() {
    const TEST: &str = "the_upper_layer_holds_what_each_operation_copies";
    if lacks(TEST, Need::Root) {
        return;
    }
    let room = room();
    let place = room.path();
    if !operated(TEST, place, ",metacopy=off") {
        return;
    }
    let (lower, upper) = (place.join("lower"), place.join("upper"));
    let found = |name: &str| fs::symlink_metadata(upper.join(name)).unwrap();
    assert_eq!(found("modify").len(), SIZE);
    assert_eq!(differing(&lower.join("modify"), &upper.join("modify")), 1);
    assert_eq!(found("append").len(), SIZE + 4096);
    assert_eq!(differing(&lower.join("append"), &upper.join("append")), 0);
    assert_eq!(found("truncate").len(), 4096);
    assert!(found("chmod").blocks() * 512 >= SIZE, "{} blocks", found("chmod").blocks());
    let modes =
        [lower.join("chmod"), upper.join("chmod")].map(|path| path.metadata().unwrap().permissions().mode());
    assert_eq!(modes[0] ^ modes[1], 1);
    for whiteout in ["delete", "rename"] {
        assert!(found(whiteout).file_type().is_char_device() && found(whiteout).rdev() == 0, "{whiteout}");
    }
    assert_eq!(found("new").len(), SIZE);
    assert!(!upper.join("stat").exists(), "reading copies nothing");
    // The lower layer is as it was.
    assert!(NAMES.iter().all(|name| lower.join(name).metadata().unwrap().len() == SIZE));
}

#[test]
fn with_metacopy_a_change_of_mode_copies_no_data() {
    const TEST: &str = "with_metacopy_a_change_of_mode_copies_no_data";
    if lacks(TEST, Need::Root) {
        return;
    }
    let room = room();
    if !operated(TEST, room.path(), ",metacopy=on,redirect_dir=on") {
        return;
    }
    let blocks =
        |name: &str| fs::symlink_metadata(room.path().join("upper").join(name)).unwrap().blocks() * 512;
    assert!(
        blocks("chmod") < SIZE / 100 && blocks("new") < SIZE / 100,
        "{} {}",
        blocks("chmod"),
        blocks("new")
    );
    assert!(blocks("modify") >= SIZE);
}

#[test]
fn a_truncated_file_needs_no_room_for_a_copy_and_a_modified_one_does() {
    const TEST: &str = "a_truncated_file_needs_no_room_for_a_copy_and_a_modified_one_does";
    if lacks(TEST, Need::Root) {
        return;
    }
    let room = room();
    layers(room.path());
    let small = |order: &str| {
        let mount = r#"
mount -t tmpfs -o size=1m tmpfs "$P/small"
mkdir "$P/small/upper" "$P/small/work"
mount -t overlay overlay -o "lowerdir=$P/lower,upperdir=$P/small/upper,workdir=$P/small/work" "$P/merged" || { echo no overlay; exit 8; }
"#;
        in_mounts(room.path(), &format!("{mount}\n{}\necho fits", asks(order, room.path())))
    };
    match small("truncate PLACE/merged/truncate 4096") {
        Err(why) if why.contains("no overlay") => return skip_without_overlays(TEST, room.path(), &why),
        done => assert_eq!(done.as_deref(), Ok("fits\n")),
    }
    for order in ["modify PLACE/merged/modify", "append-to PLACE/merged/append 4096"] {
        let why = small(order).unwrap_err();
        assert!(
            why.contains(r#""class":"environment""#) && why.contains("No space left on device"),
            "{order}: {why}"
        );
    }
}
