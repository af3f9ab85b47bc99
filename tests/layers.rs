//! The experiment `layers` for real: what each driver copies, with images of many layers, and that nothing is left.

#[path = "support/dunnage.rs"]
mod dunnage;
#[path = "support/left.rs"]
mod left;
#[path = "support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use ::dunnage::record::{self, Recorded};
use ::dunnage::verdict::analyse;
use ::dunnage::verdict::table::{ExperimentTable, Item};
use dunnage::{Dunnage, Ran};
use support::{Need, lacks};

/// A run with small files.
fn ran(dunnage: &Dunnage, words: &str) -> (Ran, Recorded) {
    let ran = dunnage.run(&format!("run layers {words} --set size=4MiB --rounds 1 --full -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).unwrap();
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
    (ran, recorded)
}

fn table(recorded: &Recorded, name: &str) -> ExperimentTable {
    analyse(recorded).experiment_tables.into_iter().find(|table| table.name == name).expect("a table")
}

/// What is copied in the root of each subject, and whether metadata alone can be.
fn copied(recorded: &Recorded) -> Vec<[String; 3]> {
    let text = |item: &Item| match item {
        Item::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let table = table(recorded, "copy-up");
    let last = table.columns.len() - 1;
    table.rows.iter().map(|row| [0, 2, last].map(|column| text(&row[column]))).collect()
}

/// A median of the first layer, in seconds.
fn value(recorded: &Recorded, subject: &str, place: &str, heading: &str) -> f64 {
    let table = table(recorded, "operations");
    let at = table.columns.iter().position(|column| column.name == heading).expect("a column");
    let is = |item: &Item, word: &str| matches!(item, Item::Text(text) if text.starts_with(word));
    let found = table
        .rows
        .iter()
        .find(|row| matches!(&row[0], Item::Text(label) if label == subject) && is(&row[1], place));
    match found.map(|row| &row[at]) {
        Some(Item::Interval(found)) => found.value,
        other => panic!("{subject}, {place}, {heading}: {other:?}"),
    }
}

#[test]
fn the_kernels_overlay_copies_whole_files_and_with_metacopy_no_data_for_a_mode() {
    const TEST: &str = "the_kernels_overlay_copies_whole_files_and_with_metacopy_no_data_for_a_mode";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let (told, recorded) = ran(&dunnage, "-s bare -s floor --set layers=3 --set layers=6");
    let [floor, metacopy] = &copied(&recorded)[..] else { panic!("{told}") };
    assert_eq!(floor, &["floor", "the whole file", "off"], "{told}");
    assert_eq!(metacopy, &["floor:overlay=metacopy", "the whole file", "on"], "{told}");
    let settings: Vec<_> = recorded.plan.cells.iter().map(|cell| cell.setting.to_string()).collect();
    assert!(settings.contains(&"layers=0;at=bind;size=4MiB".to_owned()), "{settings:?}");
    assert!(
        recorded.plan.cells.iter().all(|cell| {
            recorded.plan.subjects[cell.subject].label != "bare" || cell.setting.get("at") == Some("bind")
        }),
        "{settings:?}"
    );
}

#[test]
fn fuse_overlayfs_and_vfs_are_measured_in_stores_of_their_own() {
    const TEST: &str = "fuse_overlayfs_and_vfs_are_measured_in_stores_of_their_own";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::FuseOverlayfs) {
        return;
    }
    let dunnage = Dunnage::new();
    let (told, recorded) = ran(
        &dunnage,
        "-s podman -s podman:storage=fuse-overlayfs -s podman:storage=vfs --no-vary --set layers=3",
    );
    let found = copied(&recorded);
    let of =
        |label: &str| found.iter().find(|one| one[0] == label).unwrap_or_else(|| panic!("{label}: {told}"));
    assert_eq!(of("podman")[1], "the whole file", "{told}");
    assert_eq!(of("podman:storage=fuse-overlayfs")[1], "the whole file", "{told}");
    assert_eq!(of("podman:storage=vfs")[1], "nothing: the root is a copy", "{told}");
    // Containers that stay are mounted so that syncs count.
    let suspects = analyse(&recorded).suspects;
    assert!(suspects.iter().all(|one| one.rule != "not on the disk"), "{told}");
    // A file of 4 MiB is 4 ms of any device; nothing is copied of a plain directory's.
    assert!(
        value(&recorded, "podman", "first", "changed")
            > value(&recorded, "podman:storage=vfs", "first", "changed")
    );
}

#[test]
fn docker_is_measured_in_its_own_store() {
    const TEST: &str = "docker_is_measured_in_its_own_store";
    if lacks(TEST, Need::Docker) {
        return;
    }
    let dunnage = Dunnage::new();
    let (told, recorded) =
        ran(&dunnage, "-s docker -s docker:client=api --no-vary --set layers=3 --set at=first");
    let found = copied(&recorded);
    assert_eq!(found.len(), 2, "{told}");
    assert!(found.iter().all(|one| one[1] == "the whole file"), "{found:?}, {told}");
}

#[test]
fn an_image_without_room_fails_before_it_is_made() {
    const TEST: &str = "an_image_without_room_fails_before_it_is_made";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run layers -s floor --no-vary --set size=64GiB --rounds 1 -o DIR");
    assert!(ran.code == 4 && ran.to_string().contains("no space left"), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
}

/// With images in two engines and a mount of files, at several moments of a round.
#[test]
fn a_killed_run_leaves_what_a_sweep_removes() {
    const TEST: &str = "a_killed_run_leaves_what_a_sweep_removes";
    if lacks(TEST, Need::Podman) {
        return;
    }
    for (events, more) in [(3, 30), (6, 150), (9, 400)] {
        let dunnage = Dunnage::new();
        let arguments = "run layers -s floor -s podman --no-vary --set size=4MiB --set layers=3 --rounds 50 --events json -o DIR";
        let mut command = dunnage.command(arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert_eq!(lines.take(events).filter(|line| line.is_ok()).count(), events);
        std::thread::sleep(Duration::from_millis(more));
        child.kill().expect("it is our child");
        child.wait().expect("it ends");
        let run = record::load(&dunnage.directory()).expect("a run directory").run;
        let swept = dunnage.run("sweep");
        assert_eq!(swept.code, 0, "{swept}");
        assert_eq!(left::of_run(&run), Vec::<String>::new(), "{swept}");
        assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{swept}");
        let images = left::said("podman", &["images", "--format", "{{.Repository}}:{{.Tag}}"]);
        assert!(!images.contains(&run), "{images}, {swept}");
    }
}
