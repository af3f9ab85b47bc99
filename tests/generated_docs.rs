//! The generated documents must agree with the program.
//!
//! `docs/command-line.md` is the help of every verb as the program prints it; `docs/metrics.md`,
//! `docs/subjects.md` and `docs/doctor.md` are tables of the lists that the program uses; `docs/man` has a
//! manual page for the program and for each verb. To write them again: `DUNNAGE_BLESS=1 cargo test --test
//! generated_docs`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::CommandFactory as _;
use dunnage::cli::Cli;
use dunnage::experiment::{self, Experiment, Metric, Weight};
use dunnage::subject::{self, Kind, survey};

/// The variable that makes the test write documents instead of comparing them.
const BLESS: &str = "DUNNAGE_BLESS";
/// The width of the help, in columns.
const WIDTH: &str = "100";

#[test]
fn the_command_line_is_documented_as_it_is() {
    let mut text = preface("Command line", "the help that the program prints");
    let mut verbs = vec![vec!["help".to_owned()]];
    let mut at = 0;
    while let Some(verb) = verbs.get(at).cloned() {
        let words: Vec<&str> = verb.iter().map(String::as_str).collect();
        write!(text, "\n## `dunnage {}`\n\n```text\n{}```\n", words.join(" "), printed(&words)).unwrap();
        let cli = Cli::command();
        let own = words[1..].iter().try_fold(&cli, |verb, name| verb.find_subcommand(name));
        let below = own.expect("a verb").get_subcommands();
        let below = below.map(|one| [&verb[..], &[one.get_name().to_owned()]].concat());
        at += 1;
        verbs.splice(at..at, below.collect::<Vec<_>>());
    }
    compare("docs/command-line.md", &text);
}

#[test]
fn experiments_and_metrics_are_documented_as_they_are() {
    let mut text = preface("Experiments and metrics", "the program's own list of experiments");
    text.push_str("`dunnage list experiments NAME` and `dunnage list metrics` say the same on a terminal.\n");
    for experiment in experiment::ALL {
        describe_experiment(&mut text, experiment);
    }
    compare("docs/metrics.md", &text);
}

#[test]
fn subjects_and_keys_are_documented_as_they_are() {
    let mut text = preface("Subjects and keys", "the program's own list of subjects");
    text.push_str(
        "A subject is written `[LABEL=]NAME[+RUNTIME][:key=value,…]`; a value with a comma, colon or equals sign\n\
         must be in double quotes. `dunnage list subjects` also says what was found on this machine.\n",
    );
    for kind in subject::shown_kinds() {
        describe_kind(&mut text, kind);
    }
    compare("docs/subjects.md", &text);
}

#[test]
fn checks_are_documented_as_they_are() {
    let mut text = preface("What the doctor looks at", "the program's own lists of checks");
    text.push_str("`dunnage doctor` says what it found of each, and how to fix what can be fixed.\n");
    let machine = dunnage::host::checks::CHECKS.iter();
    let machine = machine
        .map(|(group, all)| (*group, all.iter().map(|one| (one.name, one.matters)).collect::<Vec<_>>()));
    let programs = survey::QUESTIONS.iter().map(|one| (one.name, one.matters)).collect();
    for (group, all) in machine.chain([(survey::GROUP, programs)]) {
        let group = sentence(group);
        write!(
            text,
            "\n## {}\n\n| check | what it matters for |\n| --- | --- |\n",
            group.trim_end_matches('.')
        )
        .unwrap();
        for (name, matters) in all {
            row(&mut text, &[&format!("`{name}`"), matters]);
        }
    }
    text.push_str("\n## Subjects\n\nEach default subject is started once, as installed: nothing else proves that it works.\n");
    compare("docs/doctor.md", &text);
}

#[test]
fn the_manual_pages_are_as_the_command_line_is() {
    const PLACE: &str = "docs/man";
    let made = manual_pages();
    let there = Path::new(env!("CARGO_MANIFEST_DIR")).join(PLACE);
    let blessing = std::env::var_os(BLESS).is_some();
    if blessing {
        fs::create_dir_all(&there).expect("the directory can be made");
    }
    for entry in fs::read_dir(&there).expect("`docs/man` is there").map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("our own names");
        let known = made.iter().any(|(page, _)| *page == name);
        if !known && blessing {
            fs::remove_file(entry.path()).expect("the page can be removed");
        } else {
            assert!(
                known,
                "`{PLACE}/{name}` is about no verb; run `{BLESS}=1 cargo test --test quick generated_docs`"
            );
        }
    }
    for (name, text) in &made {
        compare(&format!("{PLACE}/{name}"), text);
    }
}

#[test]
fn manual_pages_are_typeset_without_a_warning() {
    if crate::support::lacks("manual_pages_are_typeset_without_a_warning", crate::support::Need::Groff) {
        return;
    }
    for (name, text) in manual_pages() {
        let mut groff = Command::new("groff")
            .args(["-man", "-ww", "-Tutf8", "-P-cbou"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("groff starts");
        groff.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("groff reads");
        let done = groff.wait_with_output().expect("groff ends");
        let complaints = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && complaints.is_empty(), "{name}: {complaints}");
        assert!(String::from_utf8_lossy(&done.stdout).contains("SYNOPSIS"), "{name} is not typeset");
    }
}

/// A page for the program and for each verb, by file name.
fn manual_pages() -> Vec<(String, String)> {
    let place = tempfile::tempdir().expect("a directory");
    clap_mangen::generate_to(Cli::command(), place.path()).expect("pages can be made");
    let entries = fs::read_dir(place.path()).expect("our directory").map(|entry| entry.expect("an entry"));
    let page = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("our own names");
        (name, typesettable(&fs::read_to_string(entry.path()).expect("a page is UTF-8")))
    };
    let mut pages: Vec<_> = entries.map(page).collect();
    pages.sort();
    pages
}

/// The page in ASCII, which every roff can read, with examples in lines as they were written.
fn typesettable(page: &str) -> String {
    let unfilled =
        page.replace(".SH EXTRA\n", ".SH NOTES\n.nf\n").replace(".SH VERSION\n", ".fi\n.SH VERSION\n");
    // Pages of verbs are headed by the program too, since they are parts of it.
    let heading = |line: &str| match line.strip_prefix(".TH ").and_then(|rest| rest.split(' ').next()) {
        Some(title) => format!(".TH {title} 1 \"\" \"dunnage {}\"\n", env!("CARGO_PKG_VERSION")),
        None => format!("{line}\n"),
    };
    let unfilled: String = unfilled.lines().map(heading).collect();
    let character = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        c => format!("\\[u{:04X}]", c as u32),
    };
    unfilled.chars().map(character).collect()
}

fn preface(title: &str, source: &str) -> String {
    format!(
        "# {title}\n\n<!-- Generated from {source}: do not edit, run `{BLESS}=1 cargo test --test quick generated_docs`. -->\n\n"
    )
}

/// What the program prints for these arguments, without trailing blanks.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dunnage"))
        .args(arguments)
        // Without a terminal on any stream the width comes from here.
        .env("COLUMNS", WIDTH)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("help is UTF-8");
    text.lines().fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

fn describe_experiment(text: &mut String, about: &Experiment) {
    write!(text, "\n## `{}`\n\n{}\n", about.name, sentence(about.question)).unwrap();
    if !about.keys.is_empty() {
        text.push_str("\n| setting | values | meaning |\n| --- | --- | --- |\n");
    }
    for key in about.all_keys() {
        let values: Vec<_> = key.values.iter().map(|value| format!("`{value}`")).collect();
        row(text, &[&format!("`{}`", key.name), &values.join(", "), key.meaning]);
    }
    for one in about.controls {
        let (key, value, control) = (one.key, one.value, one.control);
        write!(text, "\nWithin each subject, `{key}={value}` is compared with `{key}={control}`.\n").unwrap();
    }
    text.push_str("\n| metric | unit | verdict | what lies inside |\n| --- | --- | --- | --- |\n");
    for metric in about.metrics {
        row(text, &[&format!("`{}`", metric.name), metric.unit.name(), &verdict(metric), metric.meaning]);
    }
}

/// Whether a metric has a verdict, and its smallest difference.
fn verdict(metric: &Metric) -> String {
    match metric.weight {
        Weight::Context => "none: shown with the others".to_owned(),
        Weight::Verdict => {
            let (absolute, relative) = metric.margin.parts();
            let absolute = metric.unit.format(absolute);
            format!("differences below {absolute} or {} %, the larger, do not matter", relative * 100.0)
        }
    }
}

fn describe_kind(text: &mut String, kind: &Kind) {
    let layer = kind.layer.name();
    write!(text, "\n## `{}`\n\nLayer: {layer}. {}\n", kind.name, sentence(kind.meaning)).unwrap();
    if kind.keys.is_empty() {
        text.push_str("\nIt has no keys.\n");
        return;
    }
    text.push_str("\n| key | values | meaning |\n| --- | --- | --- |\n");
    for key in kind.keys {
        row(text, &[&format!("`{}`", key.name), &key.values.described(), key.meaning]);
    }
}

fn row(text: &mut String, cells: &[&str]) {
    let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    writeln!(text, "| {} |", cells.join(" | ")).unwrap();
}

/// A phrase of the program as a sentence of a document.
fn sentence(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if phrase.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}

/// Compares a document with its expected content, or writes it if asked to.
fn compare(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, expected).expect("the document can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    let at = differs.unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
    assert!(
        found == expected,
        "`{name}` is not what the program says, from line {} on:\n  document: {:?}\n  program:  {:?}\nrun `{BLESS}=1 cargo test --test quick generated_docs`",
        at + 1,
        found.lines().nth(at),
        expected.lines().nth(at),
    );
}
