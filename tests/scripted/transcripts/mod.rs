//! The command line as a user sees it: transcripts that are tests and documentation at once.
//!
//! In a transcript `$ ` begins a command, `! ` a line of standard error, `? ` the exit code if it is not 0;
//! every other line up to the next command is standard output. `[..]` matches anything within a line, a line
//! `[...]` matches any lines. The same test writes them again with `DUNNAGE_TEST_TRANSCRIPTS=write`.

use crate::dunnage;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use dunnage::{Dunnage, Ran};

fn transcript(dunnage: &Dunnage, old: &str) -> String {
    let mut new = String::new();
    for line in old.lines() {
        if line.starts_with('#') {
            writeln!(new, "{line}").expect("a string");
        }
        if let Some(arguments) = line.strip_prefix("$ dunnage") {
            write(&mut new, line, &dunnage.run(arguments));
        }
    }
    new
}

fn write(text: &mut String, command: &str, ran: &Ran) {
    writeln!(text, "{command}").expect("a string");
    for line in ran.stdout.lines() {
        writeln!(text, "{line}").expect("a string");
    }
    for line in ran.stderr.lines() {
        writeln!(text, "{}", format!("! {line}").trim_end()).expect("a string");
    }
    if ran.code != 0 {
        writeln!(text, "? {}", ran.code).expect("a string");
    }
}

/// The line of a transcript that matches any lines.
const ANY_LINES: &str = "[...]";

/// Removes what differs from machine to machine.
fn without_paths(dunnage: &Dunnage, text: &str) -> String {
    text.replace(&dunnage.directory().display().to_string(), "DIR")
}

fn matches(expected: &str, found: &str) -> bool {
    let Some((first, rest)) = expected.split_once("[..]") else { return expected == found };
    let Some(mut left) = found.strip_prefix(first) else { return false };
    let parts: Vec<&str> = rest.split("[..]").collect();
    let (last, middle) = parts.split_last().expect("a split has a part");
    for part in middle {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

fn check(name: &str, dunnage: &Dunnage) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/scripted/transcripts/{name}.txt"));
    let expected = fs::read_to_string(&path).expect("a transcript");
    let found = without_paths(dunnage, &transcript(dunnage, &expected));
    if std::env::var("DUNNAGE_TEST_TRANSCRIPTS").is_ok_and(|wish| wish == "write") {
        return fs::write(&path, found).expect("a writable transcript");
    }
    // A test that sweeps at the same time is waited for.
    let is_of_this = |line: &&str| !line.starts_with("! waiting for `dunnage sweep`");
    let (mut left, mut any) = (found.lines().filter(is_of_this), false);
    for (number, expected) in expected.lines().enumerate() {
        if expected == ANY_LINES {
            any = true;
            continue;
        }
        let next = left.by_ref().find(|found| !any || matches(expected, found));
        let is_next = next.is_some_and(|found| matches(expected, found));
        assert!(is_next, "{name}.txt:{}: expected\n{expected}\nfound\n{next:?}", number + 1);
        any = false;
    }
    assert!(any || left.next().is_none(), "{name}.txt: found\n{found}");
}

#[test]
fn what_was_typed_wrong_is_said_with_a_hint() {
    let dunnage = Dunnage::new();
    fs::create_dir_all(dunnage.directory().join("something")).expect("a directory");
    check("usage", &dunnage);
    assert!(!dunnage.state().exists(), "a usage error touched the machine");
}

#[test]
fn lists_and_help() {
    check("help", &Dunnage::new());
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let dunnage = Dunnage::new();
    let full = fs::File::options().write(true).open("/dev/full").expect("a full device");
    let ran = dunnage::finished(dunnage.command("--help").stdout(full).output().expect("it starts"));
    assert!(ran.code == 1 && ran.stderr.starts_with("error: cannot write standard output: "), "{ran}");
}

#[test]
fn plans_and_runs() {
    check("run", &Dunnage::new());
}

#[test]
fn anything_within_a_line_is_any_text() {
    assert!(matches("a[..]c", "a b c") && matches("[..]", "") && matches("a", "a"));
    assert!(matches("[..]b[..]d", "a b c d") && !matches("[..]b[..]d", "a b c"));
    assert!(!matches("a[..]c", "b c") && !matches("a[..]a", "a"));
}
