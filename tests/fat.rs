//! The image `fat` with real engines and runtimes: made once, with all its layers and files, and not begun
//! where there is no room for it.
//!
//! Deliberately absent: its cost. The images are removed from the engines afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dunnage::{Dunnage, Ran, finished};
use crate::left;
use crate::support::{Need, lacks, skip};

fn in_an_engine(test: &str, engine: &str, need: Need) {
    if lacks(test, need) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let check = |subject: &str| dunnage.run(&format!("check start -s {subject} --set prestate=primed"));
    let first = check(&format!("{engine}:image=fat,net=none"));
    assert_eq!(first.code, 0, "{first}");
    let told = "making the image fat, 4";
    // Another test run of the same executable may have left it; an existing image is not made again.
    let second = check(&format!("{engine}:image=fat,net=none"));
    assert!(second.code == 0 && !second.stderr.contains(told), "{second}");
    let listed = ["images", "--filter", "label=dunnage.image=fat", "--format", "{{.Repository}}:{{.Tag}}"];
    let images = left::said(engine, &listed);
    let mine: Vec<_> = images.lines().filter(|name| name.starts_with("dunnage.local/fat:")).collect();
    assert!(!mine.is_empty(), "{images}");
    for image in mine {
        let layers = left::said(engine, &["image", "inspect", "--format", "{{len .RootFS.Layers}}", image]);
        assert_eq!(layers.trim(), "13", "{image}");
        left::tried(engine, &["rmi", image]);
    }
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn docker_has_all_its_layers() {
    in_an_engine("docker_has_all_its_layers", "docker", Need::Docker);
}

#[test]
fn podman_has_all_its_layers() {
    in_an_engine("podman_has_all_its_layers", "podman", Need::Podman);
}

/// The number of files below a directory, and their bytes.
fn counted(directory: &Path) -> (usize, u64) {
    let mut sum = (0, 0);
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let facts = entry.metadata().unwrap();
        let (files, bytes) = if facts.is_dir() { counted(&entry.path()) } else { (1, facts.len()) };
        sum = (sum.0 + files, sum.1 + bytes);
    }
    sum
}

fn fat_root(dunnage: &Dunnage) -> Option<PathBuf> {
    let entries = fs::read_dir(dunnage.state().join("images")).ok()?.flatten();
    let mut fat = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("fat-"));
    fat.next().map(|entry| entry.path().join("rootfs"))
}

#[test]
fn runtimes_and_the_floor_share_one_root_that_is_mended() {
    let test = "runtimes_and_the_floor_share_one_root_that_is_mended";
    if lacks(test, Need::Root) || lacks(test, Need::Cgroup) {
        return;
    }
    let mut subjects = "-s floor:image=fat".to_owned();
    if !lacks(test, Need::Crun) {
        subjects.push_str(" -s crun:image=fat");
    }
    let dunnage = Dunnage::new();
    let check = || dunnage.run(&format!("check start {subjects} --set prestate=primed"));
    let ran = check();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stderr.matches("making the image fat, 4").count(), 1, "{ran}");
    let root = fat_root(&dunnage).unwrap();
    let whole = counted(&root);
    assert!(whole.0 == 10_001 && whole.1 >= 400_000_000, "{whole:?}");
    let damaged = root.join("usr/share");
    fs::remove_dir_all(&damaged).unwrap();
    let ran = check();
    assert!(ran.code == 0 && ran.stderr.contains("making the image fat, 4"), "{ran}");
    assert_eq!(counted(&root), whole);
    assert!(!check().stderr.contains("making the image fat"));
}

/// Calls the program with its state on a small filesystem in a separate mount namespace.
fn with_little_room(dunnage: &Dunnage, subject: &str) -> Ran {
    let place = dunnage.state().display().to_string();
    let script = format!(
        "mkdir -p {place}; mount -t tmpfs -o size=300m tmpfs {place}; {} check start -s {subject}; code=$?; \
         find {place} -name '*fat*' -o -name image.tar; exit $code",
        env!("CARGO_BIN_EXE_dunnage")
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("DUNNAGE_STATE", dunnage.state());
    finished(command.output().expect("unshare is there"))
}

#[test]
fn it_is_not_begun_where_there_is_no_room() {
    let test = "it_is_not_begun_where_there_is_no_room";
    if lacks(test, Need::Root) || lacks(test, Need::Cgroup) {
        return;
    }
    let mut subjects = vec!["floor:image=fat"];
    if !lacks(test, Need::Docker) {
        match left::said("docker", &["images", "-q", "dunnage.local/fat"]).is_empty() {
            true => subjects.push("docker:image=fat"),
            false => skip(test, Need::Docker, "it has the image already"),
        }
    }
    for subject in subjects {
        let ran = with_little_room(&Dunnage::new(), subject);
        assert_eq!(ran.code, 4, "{ran}");
        let needed =
            ran.stderr.split("the image fat: it needs ").nth(1).and_then(|rest| rest.split(' ').next());
        let megabytes: u64 = needed.and_then(|number| number.parse().ok()).expect("a number of megabytes");
        assert!(megabytes >= 800, "{ran}");
        assert!(ran.stderr.contains("(twice its size)") && ran.stderr.contains("no space left"), "{ran}");
        assert!(!ran.stderr.contains("making the image"), "{ran}");
        assert!(!ran.stdout.contains("/images/fat-") && !ran.stdout.contains("image.tar"), "{ran}");
    }
}

#[test]
fn the_image_fat_has_nothing_for_a_bare_process() {
    let ran = Dunnage::new().run("check start -s bare:image=fat");
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("the image fat holds only the probe"), "{ran}");
}
