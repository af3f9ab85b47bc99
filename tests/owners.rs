//! The experiment `owners` for real, with a small image: how its files come to belong to other users inside, and that
//! neither containers nor images are left.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::rootless::user::{Ids, User, said};
use crate::support::{Need, lacks};
use ::dunnage::record;
use ::dunnage::verdict::analyse;
use ::dunnage::verdict::table::Item;

/// Measures these subjects and what is varied of them, and returns how the files of each came to their owners, with
/// the number of files made; checks that nothing is left.
fn owners(subjects: &str) -> (Vec<(String, String, Option<f64>)>, Ran) {
    let dunnage = Dunnage::new();
    // Root of a remapped docker must be able to enter it.
    let above = dunnage.directory().parent().unwrap().to_owned();
    fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = dunnage.run(&format!("run owners {subjects} --set files=200 --rounds 1 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).unwrap();
    assert!(recorded.failures.is_empty(), "{:?}", recorded.failures);
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
    let analysis = analyse(&recorded);
    let table = analysis.experiment_tables.iter().find(|table| table.name == "owners").unwrap();
    let text = |item: &Item| if let Item::Text(text) = item { text.clone() } else { panic!("{item:?}") };
    let made = |item: &Item| if let Item::Interval(count) = item { Some(count.value) } else { None };
    let row = |row: &Vec<Item>| (text(&row[0]), text(row.last().unwrap()), made(&row[row.len() - 2]));
    (table.rows.iter().map(row).collect(), ran)
}

/// What was found for each subject with this key.
fn of<'a>(all: &'a [(String, String, Option<f64>)], key: &str) -> Vec<&'a str> {
    all.iter().filter(|(subject, ..)| subject.contains(key)).map(|(_, owners, _)| owners.as_str()).collect()
}

#[test]
fn files_of_an_image_get_to_their_owners_in_podman() {
    let test = "files_of_an_image_get_to_their_owners_in_podman";
    let Some(user) = User::new(test, 'o', Ids::Subordinate) else { return };
    let subjects = format!("-s podman -s podman:net=none,rootless={}", user.name);
    let (all, ran) = owners(&subjects);
    assert_eq!(all[0].1, "none", "{ran}");
    // Root is the same user inside with it, so it is an ordinary user's alone.
    let kept: Vec<&str> =
        all.iter().map(|(subject, ..)| subject.as_str()).filter(|one| one.contains("keep-id")).collect();
    assert!(kept.len() == 1 && kept[0].contains("rootless="), "{kept:?}, {ran}");
    let mapped = [of(&all, "keep-id"), of(&all, "auto")].concat();
    // The layers of the driver `vfs` do not show it.
    let driver = user.podman(&["info", "--format", "{{.Store.GraphDriverName}}"]).unwrap();
    let known: &[&str] = if driver.trim() == "vfs" { &["unknown"] } else { &["chowned", "idmapped"] };
    assert!(
        mapped.len() >= 2 && mapped.iter().all(|word| known.contains(word)),
        "{mapped:?}, {driver}, {ran}"
    );
    for (subject, word, made) in &all {
        if let ("chowned", Some(made)) = (word.as_str(), made) {
            assert!(*made >= 200.0, "{subject} made {made} files: {ran}");
        }
    }
    let images = ["images", "--format", "{{.Repository}}"];
    for listed in [user.podman(&images), said("podman", &images)] {
        assert!(!listed.unwrap().contains("dunnage.local/layers"), "{ran}");
    }
}

#[test]
fn docker_gives_files_to_their_owners_as_it_unpacks_them() {
    let test = "docker_gives_files_to_their_owners_as_it_unpacks_them";
    if lacks(test, Need::Docker) || lacks(test, Need::Dockerd) {
        return;
    }
    let Some(_user) = User::closed(test, 'p') else { return };
    let (all, ran) = owners("-s floor -s docker");
    assert_eq!((of(&all, "floor"), of(&all, "docker")), (vec!["none"], vec!["none", "unpacked"]), "{ran}");
    let images = said("docker", &["images", "--format", "{{.Repository}}"]).unwrap();
    assert!(!images.contains("dunnage.local/layers"), "{images}");
}
