//! Files of a crate must not import each other in a circle, or none of them can be understood, or tested,
//! without the others.
//!
//! A path imports the file that defines the item: `use` is followed from module to module. Deliberately
//! absent: imports from parent modules, tests, names changed by `as`, and methods, which paths do not show.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::code::{paths_in_place, used_paths, without_comments_and_strings};

/// Names from the root of the crate.
type Module = Vec<String>;

struct File {
    path: String,
    used: Vec<String>,
    in_place: Vec<String>,
}

/// A complaint for each circle among the files of a crate, given as texts by path.
pub fn complaints(crate_files: &BTreeMap<String, String>) -> Vec<String> {
    let mut files = BTreeMap::new();
    for (path, text) in crate_files {
        let (_, below) = path.split_once("src/").expect("a path below `src`");
        let mut module: Module = below.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        let code = without_comments_and_strings(text);
        let code = without_tests(&code);
        let used = used_paths(code).iter().map(|path| path.trim_end_matches("::self").to_owned()).collect();
        let in_place = paths_in_place(code).into_iter().map(str::to_owned).collect();
        // `main.rs` next to a `lib.rs` is a separate crate.
        files.entry(module).or_insert(File { path: path.clone(), used, in_place });
    }
    let imports: BTreeMap<_, _> = files.keys().map(|module| (module, imports(&files, module))).collect();
    let reached: BTreeMap<_, _> = files.keys().map(|module| (module, reached(&imports, module))).collect();
    let mut complaints = Vec::new();
    for module in files.keys() {
        let circle: BTreeSet<_> =
            reached[module].iter().copied().filter(|other| reached[*other].contains(module)).collect();
        if circle.first() != Some(&module) {
            continue;
        }
        complaints.push("files import each other in a circle:".to_owned());
        for from in &circle {
            for (to, by) in imports[*from].iter().filter(|(to, _)| circle.contains(to)) {
                complaints.push(format!("    {} -> {} by `{by}`", files[*from].path, files[to].path));
            }
        }
    }
    complaints
}

/// The text up to a module of tests within the file.
fn without_tests(code: &str) -> &str {
    let begins = |(at, test): &(usize, &str)| {
        let line = code[at + test.len()..].lines().next().unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    code.match_indices("#[cfg(test)]\n").find(begins).map_or(code, |(at, _)| &code[..at])
}

/// The imports of a module, each with a path that causes it.
fn imports<'a>(files: &'a BTreeMap<Module, File>, module: &Module) -> BTreeMap<Module, &'a str> {
    let file = &files[module];
    let paths = file.used.iter().chain(&file.in_place);
    let defined = paths.filter_map(|path| Some((definer(files, module, path, 20)?, path.as_str())));
    defined.filter(|(other, _)| !module.starts_with(other)).collect()
}

/// The module that defines a path's item in a module; `None` if that is a module itself or in another crate.
fn definer(files: &BTreeMap<Module, File>, module: &Module, path: &str, steps: u8) -> Option<Module> {
    let mut at = module.clone();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("::").unwrap_or((rest, ""));
        let is_first = rest.len() == path.len();
        rest = after;
        match name {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            _ => {
                at.push(name.to_owned());
                if files.contains_key(&at) {
                    continue;
                }
                at.pop();
                let ends_so = |used: &&String| used.rsplit("::").next() == Some(name);
                let Some(used) = files.get(&at)?.used.iter().find(ends_so) else {
                    return (!is_first).then_some(at);
                };
                let followed = if rest.is_empty() { used.clone() } else { format!("{used}::{rest}") };
                return definer(files, &at, &followed, steps.checked_sub(1)?);
            }
        }
    }
    None
}

/// The modules that a module imports, directly and indirectly.
fn reached<'a>(
    imports: &'a BTreeMap<&Module, BTreeMap<Module, &str>>,
    module: &Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = imports[module].keys().collect();
    while let Some(module) = next.pop() {
        if reached.insert(module) {
            next.extend(imports[module].keys());
        }
    }
    reached
}

#[test]
fn a_planted_circle_is_named_with_its_paths() {
    let found = |back: &str| {
        let files = [
            ("lib.rs", "pub mod a; mod b;"),
            ("a.rs", "use crate::b::{self, One as Other};\nfn f() { b::two() }"),
            ("b/mod.rs", "mod inner; mod other; pub use inner::One; pub use other::two;"),
            ("b/inner.rs", back),
            ("b/other.rs", "use super::two;\n#[cfg(test)]\nmod tests {\nuse crate::a::f;\n}"),
        ];
        complaints(&files.map(|(path, text)| (format!("src/{path}"), text.to_owned())).into())
    };
    for (back, by) in [("use crate::a::f;", "crate::a::f"), ("use crate::a;\nfn g() { a::f() }", "a::f")] {
        let expected = [
            "files import each other in a circle:".to_owned(),
            "    src/a.rs -> src/b/inner.rs by `crate::b::One`".to_owned(),
            format!("    src/b/inner.rs -> src/a.rs by `{by}`"),
        ];
        assert_eq!(found(back), expected, "{back}");
    }
    for fine in ["use super::Three; use std::a;", "// crate::a::f", "use crate::a;", "use super::other::two;"]
    {
        assert_eq!(found(fine), Vec::<String>::new(), "{fine}");
    }
}
