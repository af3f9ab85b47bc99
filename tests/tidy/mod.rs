//! The module edges and the house rules are kept in every source file.
//!
//! The rules are pure functions of path and text (`rules`) or of those of a whole crate (`circles`), each of
//! which shows in its own test that it fires; this file only walks through the repository and judges.

mod circles;
mod code;
mod dependencies;
mod english;
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

#[test]
fn what_people_read_has_no_relapse_of_the_style_sheet() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sheet = fs::read_to_string(root.join("CONTRIBUTING.md")).expect("the style sheet");
    let relapses = english::relapses(&sheet);
    assert!(relapses.len() > 10, "the table of relapses was read as {relapses:?}");
    let mut complaints = Vec::new();
    walk(root, root, &mut |path, text| {
        // Its own test is made of relapses.
        if path != "tests/tidy/english.rs" {
            complaints.extend(english::complaints(path, &code::without_code(text), &relapses));
        }
    });
    let documents = [root, &root.join("docs")].map(|directory| fs::read_dir(directory).expect("documents"));
    for path in documents.into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        if name.ends_with(".md") {
            let text = fs::read_to_string(&path).expect("a document in UTF-8");
            // The table itself is made of relapses.
            let rows = |line: &&str| name != "CONTRIBUTING.md" || !line.starts_with("| `");
            let text: String =
                text.lines().map(|line| if rows(&line) { line } else { "" }).collect::<Vec<_>>().join("\n");
            complaints.extend(english::complaints(&name, &text, &relapses));
        }
    }
    assert!(complaints.is_empty(), "{} relapses\n{}", complaints.len(), complaints.join("\n"));
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
