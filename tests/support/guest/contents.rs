//! The additional content of a guest: the libraries of programs, and the kernel's modules in the order in
//! which they can be loaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared libraries of a program and the loader, by the paths at which the program looks for them.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let told = Command::new("ldd").arg(program).output().expect("`ldd` belongs to libc");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(!told.contains("not found"), "{}: {told}", program.display());
    told.lines().filter_map(library).collect()
}

/// Lines are `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the loader; a line without a path is not a
/// file.
fn library(line: &str) -> Option<PathBuf> {
    let path = line.rsplit("=> ").next()?.split_whitespace().next()?;
    path.starts_with('/').then(|| path.into())
}

/// These modules with everything that they depend on, dependencies first. A name without a file is a built-in
/// driver, or does not exist: the guest's own `/proc` shows which.
pub fn modules(directory: &Path, wanted: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(directory, &mut files);
    let mut ordered = Vec::new();
    wanted.iter().for_each(|name| require(name, &files, &mut ordered));
    ordered
}

fn require(name: &str, files: &[PathBuf], ordered: &mut Vec<PathBuf>) {
    let named = |path: &&PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        stem.replace('-', "_") == name.replace('-', "_")
    };
    let Some(path) = files.iter().find(named).filter(|path| !ordered.contains(path)) else { return };
    for dependency in dependencies(&fs::read(path).expect("a module")) {
        require(&dependency, files, ordered);
    }
    ordered.push(path.clone());
}

/// From the field `depends=` of the module's own description.
fn dependencies(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let Some(at) = module.windows(FIELD.len()).position(|window| window == FIELD) else { return Vec::new() };
    let value = module[at + FIELD.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let names = String::from_utf8_lossy(value).into_owned();
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, files),
            false if path.extension().is_some_and(|extension| extension == "ko") => files.push(path),
            false => {}
        }
    }
}
