//! Do the generated documents say what the program says?
//!
//! `docs/command-line.md` is the help of every verb as the program prints it; `docs/metrics.md` and
//! `docs/subjects.md` are tables of the lists from which the program itself works. To write them
//! anew: `DUNNAGE_BLESS=1 cargo test --test generated_docs`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use clap::CommandFactory as _;
use dunnage::cli::Cli;
use dunnage::experiment::{self, Experiment, Metric, Weight};
use dunnage::subject::{self, Kind};

/// What asks for documents to be written instead of compared.
const BLESS: &str = "DUNNAGE_BLESS";
/// The width of the help, in columns.
const WIDTH: &str = "100";

#[test]
fn the_command_line_is_documented_as_it_is() {
    let mut text = preface("Command line", "the help that the program prints");
    let help = |verb: &str| {
        let arguments = ["help", verb];
        let shown = &arguments[..if verb.is_empty() { 1 } else { 2 }];
        (shown.join(" "), printed(shown))
    };
    let cli = Cli::command();
    let verbs = cli.get_subcommands().map(clap::Command::get_name);
    for verb in std::iter::once("").chain(verbs) {
        let (typed, printed) = help(verb);
        write!(text, "\n## `dunnage {typed}`\n\n```text\n{printed}```\n").unwrap();
    }
    compare("docs/command-line.md", &text);
}

#[test]
fn experiments_and_metrics_are_documented_as_they_are() {
    let mut text = preface("Experiments and metrics", "the program's own list of experiments");
    text.push_str("`dunnage list experiments` and `dunnage list metrics` say the same on a terminal.\n");
    for experiment in experiment::ALL {
        describe_experiment(&mut text, *experiment);
    }
    compare("docs/metrics.md", &text);
}

#[test]
fn subjects_and_keys_are_documented_as_they_are() {
    let mut text = preface("Subjects and keys", "the program's own list of subjects");
    text.push_str(
        "A subject is written `[LABEL=]NAME[+RUNTIME][:key=value,…]`; a value with a comma, colon or equals sign\n\
         stands in double quotes. `dunnage list subjects` also says what was found on this machine.\n",
    );
    for kind in subject::shown_kinds() {
        describe_kind(&mut text, kind);
    }
    compare("docs/subjects.md", &text);
}

fn preface(title: &str, source: &str) -> String {
    format!(
        "# {title}\n\n<!-- Generated from {source}: do not edit, run `{BLESS}=1 cargo test --test generated_docs`. -->\n\n"
    )
}

/// What the program prints to these arguments, without blanks at the ends of lines.
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

fn describe_experiment(text: &mut String, experiment: &dyn Experiment) {
    write!(text, "\n## `{}`\n\n{}\n", experiment.name(), sentence(experiment.question())).unwrap();
    if !experiment.setting_keys().is_empty() {
        text.push_str("\n| setting | values | meaning |\n| --- | --- | --- |\n");
    }
    for key in experiment.setting_keys() {
        let values: Vec<_> = key.values.iter().map(|value| format!("`{value}`")).collect();
        row(text, &[&format!("`{}`", key.name), &values.join(", "), key.meaning]);
    }
    text.push_str("\n| metric | unit | verdict | what lies inside |\n| --- | --- | --- | --- |\n");
    for metric in experiment.metrics() {
        row(text, &[&format!("`{}`", metric.name), metric.unit.name(), &verdict(metric), metric.meaning]);
    }
}

/// Whether a metric is decided upon, and from which difference on.
fn verdict(metric: &Metric) -> String {
    match metric.weight {
        Weight::Context => "none: shown beside the others".to_owned(),
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

/// Compares a document with what it must say, or writes it where that is asked for.
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
        "`{name}` is not what the program says, from line {} on:\n  document: {:?}\n  program:  {:?}\nrun `{BLESS}=1 cargo test --test generated_docs`",
        at + 1,
        found.lines().nth(at),
        expected.lines().nth(at),
    );
}
