//! The experiment `disk` for real: what reaches the device in every place of bare, floor, docker and podman; that syncs
//! which do nothing are found out; and that nothing is left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::support::{Need, lacks};
use ::dunnage::record::{self, Recorded};
use ::dunnage::verdict::analyse;
use ::dunnage::verdict::table::Item;

/// A filesystem on a device of its own, on which nothing else writes, so that the counters tell.
struct Disk(PathBuf);

impl Disk {
    fn at(point: &Path) -> Disk {
        let image = point.with_extension("img");
        File::create(&image).and_then(|file| file.set_len(2 << 30)).expect("a file");
        fs::create_dir(point).expect("a directory");
        let did = |program: &str, words: &[&str], paths: &[&Path]| {
            let output = Command::new(program).args(words).args(paths).output().expect("it is installed");
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        };
        did("mkfs.ext4", &["-q", "-F"], &[&image]);
        did("mount", &["-o", "loop"], &[&image, point]);
        Disk(point.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The loop device goes with the mount. Podman mounts a directory of its store onto itself.
        left::tried("umount", &["--recursive", &self.0.to_string_lossy()]);
    }
}

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
    if lacks(TEST, Need::Ext4) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let _disk = Disk::at(&dunnage.state());
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
        let expected = if place == "tmpfs" { "memory" } else { "durable" };
        assert_eq!(class, expected, "{subject}, {place}: {ran}");
    }
    is_over(&dunnage, &ran);
}

#[test]
fn a_root_of_podman_that_goes_at_the_end_is_no_disk_and_one_that_stays_is() {
    const TEST: &str = "a_root_of_podman_that_goes_at_the_end_is_no_disk_and_one_that_stays_is";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Ext4) {
        return;
    }
    let dunnage = Dunnage::new();
    let place = dunnage.directory().with_file_name("");
    let config = place.join("storage.conf");
    let dunnage = dunnage.with("CONTAINERS_STORAGE_CONF", &config.display().to_string());
    // After what removes their mount points in the end.
    let (_disk, store) = (Disk::at(&dunnage.state()), Disk::at(&place.join("store")));
    let text = format!(
        "[storage]\ndriver = \"overlay\"\ngraphroot = \"{0}/graph\"\nrunroot = \"{0}/run\"\n",
        store.0.display()
    );
    fs::write(&config, text).expect("a configuration");
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
        assert_eq!(class(subject, place), "durable", "{subject}, {place}: {ran}");
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
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Dockerd) || lacks(TEST, Need::Ext4) {
        return;
    }
    let dunnage = Dunnage::new();
    let _disk = Disk::at(&dunnage.state());
    let subjects = "-s docker -s docker:client=api -s docker:storage=vfs";
    let ran = dunnage.run(&format!("run disk {subjects} --no-vary --set size=8MiB --rounds 1 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let (classes, suspects) = classes(&dunnage);
    assert_eq!((classes.len(), suspects), (12, Vec::new()), "{classes:?}, {ran}");
    for [subject, place, class] in &classes {
        // Others write to the device of the user's daemon; a private one has its root and volumes on the test's device.
        let is_shared = subject != "docker:storage=vfs" && place != "bind";
        let expected: &[&str] = match place.as_str() {
            "tmpfs" => &["memory"],
            _ if is_shared => &["durable", "unproven"],
            _ => &["durable"],
        };
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
    if lacks(TEST, Need::Ext4) {
        return;
    }
    let dunnage = Dunnage::new();
    let _disk = Disk::at(&dunnage.state());
    let others = tempfile::tempdir_in(dunnage.state()).unwrap();
    let writer = Writer::begin(others.path());
    let ran =
        dunnage.run("run disk -s bare --no-vary --set place=bind --set size=16MiB --rounds 3 --full -o DIR");
    drop((writer, others));
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
