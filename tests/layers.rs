//! The experiment `layers` for real: what each driver copies, with images of many layers, and that nothing is left.

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::resources::left::left_of;
use crate::running::Running;
use crate::support::{Need, Sweeps, lacks};
use ::dunnage::record::{self, Recorded};
use ::dunnage::verdict::analyse;
use ::dunnage::verdict::table::{ExperimentTable, Item};

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

/// With an image in an engine and a mount of files; the first kill strikes early in a round, the others later.
#[test]
fn a_killed_run_leaves_what_a_sweep_removes() {
    const TEST: &str = "a_killed_run_leaves_what_a_sweep_removes";
    if lacks(TEST, Need::Podman) {
        return;
    }
    for cell in [&["cell begins"][..], &["cell begins", "\"podman\""], &["cell ends", "\"podman\""]] {
        let dunnage = Dunnage::new();
        let _turn = Sweeps::begin();
        let arguments =
            "run layers -s floor -s podman --no-vary --set size=4MiB --set layers=3 --rounds 50 -o DIR";
        let mut run = Running::start(&dunnage, arguments);
        run.await_event(cell);
        let is_early = cell.len() == 1;
        let (run, there) = run.kill_with(|run| {
            let there = left_of(&dunnage.state(), run, &left::ENGINES);
            let has_image = there.iter().any(|line| line.starts_with("podman image "));
            if is_early || has_image { there } else { Vec::new() }
        });
        let swept = dunnage.run("sweep");
        assert_eq!(swept.code, 0, "{swept}");
        assert_eq!(left::of_run(&run), Vec::<String>::new(), "{there:?}, {swept}");
        assert_eq!(
            left_of(&dunnage.state(), &run, &left::ENGINES),
            Vec::<String>::new(),
            "{there:?}, {swept}"
        );
        assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{there:?}, {swept}");
    }
}
