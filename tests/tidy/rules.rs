//! The house rules, one function each: from path and text to complaints.

use crate::tidy::code::{
    is_word, paths_in_place, used_paths, without_comments, without_comments_and_strings,
};

/// A rule returns a complaint for each line, or for the file, that breaks it.
type Rule = fn(&File) -> Vec<String>;

const RULES: &[Rule] = &[
    experiments_name_no_engine,
    subjects_name_no_experiment,
    unsafe_has_its_places,
    printing_has_its_places,
    nothing_is_left_for_later,
    a_file_says_what_it_is_for,
    a_long_file_says_why,
];

struct File<'a> {
    path: &'a str,
    text: &'a str,
    /// Without comments.
    code: String,
    /// Without comments and strings.
    bare: String,
}

/// All complaints about one source file.
pub fn complaints(path: &str, text: &str) -> Vec<String> {
    let code = without_comments(text);
    let bare = without_comments_and_strings(text);
    let file = File { path, text, code, bare };
    RULES.iter().flat_map(|rule| rule(&file)).map(|what| format!("{path}: {what}")).collect()
}

impl File<'_> {
    /// Whether the file is the module `room` or in it.
    fn is_in(&self, room: &str) -> bool {
        let rest = self.path.strip_prefix(room);
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }

    /// Whether the file uses one of these paths, by `use` or in place.
    fn mentions(&self, module: &str) -> bool {
        let inside = |path: &str| path.strip_prefix(module).is_some_and(|rest| !rest.starts_with(is_word));
        used_paths(&self.bare).iter().any(|path| inside(path))
            || paths_in_place(&self.bare).into_iter().any(inside)
    }
}

/// A complaint for each bad line of `text`, with the line's number and words.
fn lines_with(text: &str, what: &str, bad: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| bad(line));
    lines.map(|(at, line)| format!("line {}: {what}: {}", at + 1, line.trim())).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c| !is_word(c)).any(|found| found == word)
}

/// Adding an engine changes no experiment; comments may use engines as examples.
fn experiments_name_no_engine(file: &File) -> Vec<String> {
    const ENGINES: &[&str] = &["docker", "podman", "containerd", "crun", "runc", "youki", "runsc"];
    if !file.path.contains("src/experiment/") && !file.is_in("src/measure") {
        return Vec::new();
    }
    lines_with(&file.code, "an experiment names an engine", |line| {
        let line = line.to_lowercase();
        line.split(|c: char| !c.is_alphanumeric()).any(|word| ENGINES.contains(&word))
    })
}

/// Adding an experiment changes no subject.
fn subjects_name_no_experiment(file: &File) -> Vec<String> {
    if file.is_in("src/subject") && (file.mentions("crate::experiment") || file.mentions("crate::measure")) {
        return vec!["a subject names an experiment".to_owned()];
    }
    Vec::new()
}

/// Raw system calls are in one module, and in the probe's entry.
fn unsafe_has_its_places(file: &File) -> Vec<String> {
    // Tests of the kernel's own behaviour call it directly.
    let places = ["src/sys/", "crates/launch/", "src/probe/entry", "src/main.rs", "tests/"];
    if places.iter().any(|place| file.path.starts_with(place)) {
        return Vec::new();
    }
    lines_with(&file.bare, "unsafe out of its places", |line| has_word(line, "unsafe"))
}

/// Only commands and progress print.
fn printing_has_its_places(file: &File) -> Vec<String> {
    const PRINTERS: &[&str] = &["println!", "eprintln!", "print!", "eprint!"];
    let places = ["src/main.rs", "src/progress"];
    let talks = file.is_in("src/cmd") || places.iter().any(|place| file.path.starts_with(place));
    if file.path.starts_with("tests/") || !file.path.contains("src/") || file.is_in("xtask") || talks {
        return Vec::new();
    }
    lines_with(&file.bare, "prints out of its places", |line| {
        line.split(|c| !is_word(c) && c != '!').any(|word| PRINTERS.contains(&word))
    })
}

/// Missing work is an issue, and tests that do not run are not tests.
fn nothing_is_left_for_later(file: &File) -> Vec<String> {
    // Written in halves, so that this file obeys its own rule.
    const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];
    const CODE: &[&str] = &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"];
    let notes =
        lines_with(file.text, "a note for later", |line| NOTES.iter().any(|note| has_word(line, note)));
    let code = lines_with(&file.bare, "unfinished", |line| CODE.iter().any(|code| line.contains(code)));
    [notes, code].concat()
}

/// The first line opens the module's documentation.
fn a_file_says_what_it_is_for(file: &File) -> Vec<String> {
    if file.text.starts_with("//! ") {
        return Vec::new();
    }
    vec!["does not start with a `//!` line that says what the file is for".to_owned()]
}

/// 400 lines is the aim, 500 the limit.
fn a_long_file_says_why(file: &File) -> Vec<String> {
    let reason =
        |line: &str| line.trim().strip_prefix("// long:").is_some_and(|reason| !reason.trim().is_empty());
    let length = file.text.lines().count();
    if length <= 500 || file.text.lines().any(reason) {
        return Vec::new();
    }
    vec![format!("{length} lines and no `// long:` with a reason")]
}

#[cfg(test)]
mod fires {
    use super::complaints;

    /// The number of complaints about a file with this line after its module documentation.
    fn planted(path: &str, line: &str) -> usize {
        complaints(path, &format!("//! A planted file.\n{line}\n")).len()
    }

    #[test]
    fn on_an_experiment_that_names_an_engine() {
        for line in ["const E: &str = \"docker\";", "fn start_podman() {}", "let x = Crun;"] {
            for path in ["crates/analysis/src/experiment/start.rs", "src/measure/start.rs"] {
                assert_eq!(planted(path, line), 1, "{path} {line}");
            }
            assert_eq!(planted("src/subject/oci.rs", line), 0, "{line}");
        }
        for fine in ["// docker takes longer", "fn truncate() {}"] {
            assert_eq!(planted("src/measure/start.rs", fine), 0, "{fine}");
        }
    }

    #[test]
    fn on_a_subject_that_names_an_experiment() {
        for line in ["use crate::{experiment::start, units};", "crate::measure::find(x);"] {
            assert_eq!(planted("src/subject/oci.rs", line), 1, "{line}");
            assert_eq!(planted("src/session.rs", line), 0, "{line}");
        }
    }

    #[test]
    fn on_unsafe_out_of_its_places() {
        let line = "fn f() { unsafe { g() } }";
        for path in ["src/runner.rs", "src/probe/message.rs", "xtask/src/main.rs", "src/system.rs"] {
            assert_eq!(planted(path, line), 1, "{path}");
        }
        for path in ["src/sys/spawn.rs", "src/probe/entry_x86_64.rs", "src/main.rs", "tests/floor.rs"] {
            assert_eq!(planted(path, line), 0, "{path}");
        }
        assert_eq!(planted("src/lib.rs", "#![deny(unsafe_op_in_unsafe_fn)] // unsafe"), 0);
    }

    #[test]
    fn on_printing_out_of_its_places() {
        for line in ["println!();", "eprintln!(\"a\");", "std::print!(\"a\");", "eprint!(\"\")"] {
            assert_eq!(planted("src/runner.rs", line), 1, "{line}");
            assert_eq!(planted("crates/report/src/csv.rs", line), 1, "{line}");
            for path in ["src/cmd/run.rs", "src/main.rs", "xtask/a.rs"] {
                assert_eq!(planted(path, line), 0, "{path} {line}");
            }
        }
        assert_eq!(planted("src/runner.rs", "my_println!();"), 0);
    }

    #[test]
    fn on_what_is_left_for_later() {
        for line in [
            concat!("// TO", "DO: more"),
            concat!("// FIX", "ME"),
            "todo!();",
            "unimplemented!(\"x\");",
            "dbg!(1);",
            "#[ignore]",
            "#[ignore = \"slow\"]",
        ] {
            assert_eq!(planted("tests/start.rs", line), 1, "{line}");
        }
    }

    #[test]
    fn on_a_file_without_purpose_and_on_a_long_one() {
        assert_eq!(complaints("src/a.rs", "fn f() {}\n").len(), 1);
        assert_eq!(planted("src/a.rs", &"\n".repeat(600)), 1);
        assert_eq!(planted("src/a.rs", &format!("// long:{}", "\n".repeat(600))), 1);
        assert_eq!(planted("src/a.rs", &format!("// long: a table{}", "\n".repeat(600))), 0);
    }
}
