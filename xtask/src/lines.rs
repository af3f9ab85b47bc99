//! Counts the lines of production code per module.
//!
//! Counted are lines of code in Rust files under `src` and in crates under `crates`, without comments, blank lines,
//! `#[cfg(test)]` items and test files (`tests.rs`, `*_tests.rs`). `tests`, `benches` and `xtask` are not production code.
//! Deliberately absent: a parser; rustfmt ends an item with a brace at its own indentation.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Prints the lines of each module, and the total.
pub fn print() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let mut modules = BTreeMap::new();
    count(&root.join("src"), Path::new("src"), &mut modules)?;
    if root.join("crates").is_dir() {
        for entry in fs::read_dir(root.join("crates")).context("crates")? {
            let path = entry.context("crates")?.path();
            let shown = path.strip_prefix(root).unwrap_or(&path).to_owned();
            count(&path.join("src"), &shown, &mut modules)?;
        }
    }
    for (module, lines) in &modules {
        println!("{lines:>6}  {}", module.display());
    }
    println!("{:>6}  all", modules.values().sum::<usize>());
    Ok(())
}

/// Adds the files in `directory`, each to its module directly below `shown`.
fn count(directory: &Path, shown: &Path, modules: &mut BTreeMap<PathBuf, usize>) -> Result<()> {
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
                waiting.push(entry.with_context(|| path.display().to_string())?.path());
            }
        } else if is_production(&path) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let below =
                path.strip_prefix(directory)?.components().next().context("a file below its directory")?;
            let module = shown.join(Path::new(below.as_os_str()).with_extension(""));
            *modules.entry(module).or_default() += production(&text);
        }
    }
    Ok(())
}

fn is_production(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.extension().is_some_and(|end| end == "rs") && stem != "tests" && !stem.ends_with("_tests")
}

/// The number of lines with production code in a Rust file.
fn production(text: &str) -> usize {
    let mut lines = text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code == "#[cfg(test)]" {
            let indent = &line[..line.len() - code.len()];
            let ends = [format!("{indent}}}"), format!("{indent}}};")];
            let item = lines.by_ref().find(|line| !line.trim_start().starts_with('#')).unwrap_or_default();
            if !item.ends_with([';', ',', '}']) {
                let _ = lines.by_ref().find(|line| ends.iter().any(|end| end == line));
            }
        } else if !code.is_empty() && !code.starts_with("//") {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text = "//! What it is.\n\nfn one() {\n    // Why.\n    two(); // how\n}\n\n#[cfg(test)]\nmod tests {\n    \
                    fn three() {\n    }\n}\n#[cfg(test)]\nmod more;\n#[cfg(test)]\n#[path = \"x\"]\nmod x;\nfn four() {}\n";
        assert_eq!(production(text), 4);
        assert!(is_production(Path::new("src/stats/quota.rs")));
        assert!(!is_production(Path::new("src/stats/quota/tests.rs")));
        assert!(!is_production(Path::new("src/http_tests.rs")));
        assert!(!is_production(Path::new("src/page.css")));
    }
}
