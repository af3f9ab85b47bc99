//! The experiment `disk` for real: what reaches the device in every place of bare, floor, docker and podman; that syncs
//! which do nothing are found out; and that nothing is left.

#[path = "support/dunnage.rs"]
mod dunnage;
#[path = "support/left.rs"]
mod left;
#[path = "support/mod.rs"]
mod support;

use ::dunnage::record::{self, Recorded};
use ::dunnage::verdict::analyse;
use ::dunnage::verdict::table::Item;
use dunnage::{Dunnage, Ran};
use support::{Need, lacks};

/// The class of every shown place, by subject and place, and the subjects of suspects.
fn classes(dunnage: &Dunnage) -> (Vec<[String; 3]>, Vec<String>) {
    let recorded = record::load(&dunnage.directory()).unwrap();
    let analysis = analyse(&recorded);
    let table = analysis.experiment_tables.iter().find(|table| table.name == "durability").unwrap();
    let text = |item: &Item| match item {
        Item::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    let classes = table.rows.iter().map(|row| [0, 1, 3].map(|column| text(&row[column]))).collect();
    let own = analysis.suspects.iter().filter(|one| one.rule == "not on the disk");
    let suspects = own.flat_map(|one| one.cells.iter().map(|cell| recorded.plan.entry(*cell).label.clone()));
    (classes, suspects.collect())
}

fn is_over(dunnage: &Dunnage, ran: &Ran) {
    let recorded: Recorded = record::load(&dunnage.directory()).unwrap();
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
}

#[test]
fn bytes_of_bare_and_floor_reach_the_device_and_memory_has_none() {
    const TEST: &str = "bytes_of_bare_and_floor_reach_the_device_and_memory_has_none";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run disk -s bare -s floor --set size=2x4MiB --rounds 2 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let (classes, suspects) = classes(&dunnage);
    assert_eq!(suspects, Vec::<String>::new(), "{ran}");
    let places = |subject: &str| {
        let own = classes.iter().filter(|one| one[0] == subject);
        own.map(|one| one[1].clone()).collect::<Vec<_>>()
    };
    assert_eq!(places("bare"), ["bind", "root", "volume", "tmpfs"], "{ran}");
    assert_eq!(places("floor"), ["bind", "root", "tmpfs"], "{ran}");
    for [subject, place, class] in &classes {
        // Other tests write to the same device.
        let expected: &[&str] = if place == "tmpfs" { &["memory"] } else { &["durable", "unproven"] };
        assert!(expected.contains(&class.as_str()), "{subject}, {place}: {class}, {ran}");
    }
    is_over(&dunnage, &ran);
}

#[test]
fn a_root_of_podman_that_goes_at_the_end_is_no_disk_and_one_that_stays_is() {
    const TEST: &str = "a_root_of_podman_that_goes_at_the_end_is_no_disk_and_one_that_stays_is";
    if lacks(TEST, Need::Podman) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run disk -s bare -s podman --set size=8MiB --set place=root --set place=volume --rounds 2 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let (classes, suspects) = classes(&dunnage);
    let class = |subject: &str, place: &str| {
        let found = classes.iter().find(|one| one[0] == subject && one[1] == place);
        found.unwrap_or_else(|| panic!("{subject}, {place}: {ran}"))[2].clone()
    };
    assert_eq!(class("podman", "root"), "volatile", "{ran}");
    for (subject, place) in [("podman:rm=false", "root"), ("podman", "volume"), ("podman:rm=false", "volume")]
    {
        assert!(
            ["durable", "unproven"].contains(&class(subject, place).as_str()),
            "{subject}, {place}: {ran}"
        );
    }
    assert!(
        suspects.iter().all(|label| label.starts_with("podman") && !label.contains("rm=false")),
        "{suspects:?}"
    );
    assert!(suspects.contains(&"podman".to_owned()) && ran.stdout.contains("fsync does nothing"), "{ran}");
    is_over(&dunnage, &ran);
}

#[test]
fn every_place_of_docker_is_on_its_disk() {
    const TEST: &str = "every_place_of_docker_is_on_its_disk";
    if lacks(TEST, Need::Docker) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran =
        dunnage.run("run disk -s docker -s docker:client=api --no-vary --set size=8MiB --rounds 1 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let (classes, suspects) = classes(&dunnage);
    assert_eq!((classes.len(), suspects), (8, Vec::new()), "{classes:?}, {ran}");
    for [subject, place, class] in &classes {
        let expected: &[&str] = if place == "tmpfs" { &["memory"] } else { &["durable", "unproven"] };
        assert!(expected.contains(&class.as_str()), "{subject}, {place}: {class}, {ran}");
    }
    is_over(&dunnage, &ran);
}

/// Writes a file again and again until it is dropped.
struct Writer(std::sync::Arc<std::sync::atomic::AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Writer {
    fn begin(directory: &std::path::Path) -> Writer {
        use std::os::unix::fs::FileExt;
        use std::sync::atomic::{AtomicBool, Ordering};
        let ends = std::sync::Arc::new(AtomicBool::new(false));
        let (file, seen) = (std::fs::File::create(directory.join("other")).unwrap(), ends.clone());
        let write = move || {
            let bytes = vec![7; 8 << 20];
            while !seen.load(Ordering::Relaxed) {
                file.write_all_at(&bytes, 0).and_then(|()| file.sync_data()).unwrap();
            }
        };
        Writer(ends, Some(std::thread::spawn(write)))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
        self.1.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn another_writer_on_the_device_makes_the_class_unproven() {
    const TEST: &str = "another_writer_on_the_device_makes_the_class_unproven";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let others = tempfile::tempdir_in("/var/tmp").unwrap();
    let writer = Writer::begin(others.path());
    let ran =
        dunnage.run("run disk -s bare --no-vary --set place=bind --set size=16MiB --rounds 3 --full -o DIR");
    drop(writer);
    assert_eq!(ran.code, 0, "{ran}");
    let (classes, suspects) = classes(&dunnage);
    assert_eq!(classes[0][2], "unproven", "{ran}");
    assert!(suspects.is_empty() && ran.stdout.contains("others"), "{ran}");
    is_over(&dunnage, &ran);
}

#[test]
fn what_has_no_room_fails_before_it_is_written() {
    const TEST: &str = "what_has_no_room_fails_before_it_is_written";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run disk -s bare --set place=tmpfs --set size=1000x64GiB --rounds 1 -o DIR");
    assert!(ran.code == 4 && ran.to_string().contains("no space left"), "{ran}");
    is_over(&dunnage, &ran);
}
