//! Crates that dunnage is built from: where they come from, under which licences, and which are there twice.
//!
//! Deliberately absent: known faults, whose list changes without a change here (CONTRIBUTING.md).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences under which the executable may be given away with its own.
const LICENCES: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Crates of which others need different versions. One that is new here needs a reason, and one that is gone is removed.
const TWICE: [&str; 6] = ["base64", "cpufeatures", "miniz_oxide", "strum", "strum_macros", "syn"];

#[test]
fn every_crate_has_a_known_source_and_licence_and_is_there_once() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 50, "there are {} packages", packages.len());
    let complaints: Vec<String> = packages.iter().flat_map(complaints).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    let twice: Vec<String> = twice(packages).into_iter().collect();
    assert_eq!(twice, TWICE);
}

fn complaints(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or("?");
    let mut all = Vec::new();
    if package["source"].as_str().is_some_and(|source| source != REGISTRY) {
        all.push(format!("{name} comes from {}", package["source"]));
    }
    let licence = package["license"].as_str().unwrap_or_default();
    let bad = terms(licence).into_iter().find(|term| !LICENCES.contains(&term.as_str()));
    all.extend(bad.map(|term| format!("{name} has the licence `{term}`")));
    all
}

/// The licences in an expression.
fn terms(expression: &str) -> Vec<String> {
    let plain = expression.replace(['(', ')'], "").replace(" AND ", "/").replace(" OR ", "/");
    plain.split('/').map(|term| term.trim().to_owned()).collect()
}

/// The names of crates with more than one version.
fn twice(packages: &[Value]) -> BTreeSet<String> {
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    packages
        .iter()
        .filter_map(|one| one["name"].as_str())
        .for_each(|name| *versions.entry(name).or_default() += 1);
    versions.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn a_strange_source_and_licence_are_named() {
    let package =
        |source: Value, licence: &str| serde_json::json!({"name": "x", "source": source, "license": licence});
    assert!(complaints(&package(Value::Null, "MIT OR Apache-2.0")).is_empty());
    assert!(complaints(&package(REGISTRY.into(), "(MIT OR Apache-2.0) AND Unicode-3.0")).is_empty());
    assert_eq!(complaints(&package("git+https://example.org/x".into(), "MIT")).len(), 1);
    assert_eq!(complaints(&package(REGISTRY.into(), "GPL-3.0-only")), ["x has the licence `GPL-3.0-only`"]);
    assert_eq!(complaints(&package(REGISTRY.into(), "")), ["x has the licence ``"]);
    let all = [package(Value::Null, "MIT"), package(Value::Null, "MIT")];
    assert_eq!((twice(&all).len(), twice(&all[..1]).len()), (1, 0));
}
