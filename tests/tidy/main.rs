//! The module edges and the house rules are kept in every source file.
//!
//! The rules are pure functions of path and text (`rules`) or of those of a whole crate (`circles`), each of
//! which shows in its own test that it fires; this file only walks through the repository and judges.

mod circles;
mod code;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

#[test]
fn every_source_file_keeps_the_house_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut complaints = Vec::new();
    let mut files = 0;
    walk(root, root, &mut |path, text| {
        files += 1;
        complaints.extend(rules::complaints(path, text));
    });
    assert!(files > 5, "the walk found {files} files");
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut crates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    walk(root, root, &mut |path, text| {
        if let Some((place, _)) = path.split_once("src/") {
            crates.entry(place.to_owned()).or_default().insert(path.to_owned(), text.to_owned());
        }
    });
    assert!(crates.len() > 3, "the walk found {:?}", crates.keys());
    let complaints: Vec<String> = crates.values().flat_map(circles::complaints).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Calls `see` for every source file, with its path from the root of the repository.
fn walk(root: &Path, directory: &Path, see: &mut impl FnMut(&str, &str)) {
    let entries = fs::read_dir(directory).expect("a directory of the repository");
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_symlink() || name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, see);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("a source file in UTF-8");
            let path = path.strip_prefix(root).expect("below the root");
            see(&path.to_string_lossy(), &text);
        }
    }
}
