//! Do the documents say what is true of the program? Every command in them is one that it takes, every link leads
//! somewhere, and README stays short.
//!
//! Deliberately absent: what the commands print, which depends on the machine; transcripts of the scripted subject are
//! tested in `tests/scripted`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;
use dunnage::cli::Cli;
use dunnage::experiment::command::line;
use dunnage::subject::kind_of;
use dunnage::subject::spec::Spec;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// What README may have, in lines.
const README: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every document, by its path from the root of the repository.
fn documents() -> BTreeMap<PathBuf, String> {
    let entries =
        [root().to_owned(), root().join("docs")].map(|place| fs::read_dir(place).expect("documents"));
    let paths = entries.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let documents: BTreeMap<_, _> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "md"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a document in UTF-8");
            (path.strip_prefix(root()).expect("below the root").to_owned(), text)
        })
        .collect();
    assert!(documents.len() > 10, "{:?}", documents.keys());
    documents
}

fn events(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The command lines that begin with `dunnage`: those of shell blocks, those after a prompt, and those in a line of text,
/// where a verb may stand for itself.
fn commands(text: &str) -> Vec<(String, Where)> {
    let mut found = Vec::new();
    let mut block = None;
    for event in events(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                block = Some(language.into_string())
            }
            Event::End(TagEnd::CodeBlock) => block = None,
            Event::Text(text) if block.is_some() => {
                let prompt = if block.as_deref() == Some("sh") { "dunnage " } else { "$ dunnage " };
                let text = text.replace("\\\n", " ");
                let lines = text.lines().filter(|line| line.starts_with(prompt));
                found.extend(lines.map(|line| (line.trim_start_matches("$ ").to_owned(), Where::Block)));
            }
            // These say that it is not a whole command.
            Event::Code(code) if code.starts_with("dunnage ") && !code.contains(['…', '[']) => {
                found.push((code.into_string(), Where::Text));
            }
            _ => {}
        }
    }
    found
}

/// Where a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Block,
    Text,
}

/// Why the program would refuse a command line, apart from what it needs of a machine.
fn refused((command, place): &(String, Where)) -> Option<String> {
    let words = line::split(command).map_err(|error| format!("{command}: {error}"));
    let words = match words {
        Ok(words) => words,
        Err(error) => return Some(error),
    };
    // What a shell takes for itself.
    let end = words.iter().position(|word| [">", "|", "||", "&&"].contains(&word.as_str()));
    let words = &words[..end.unwrap_or(words.len())];
    let is_name = |error: &clap::Error| {
        error.kind() == ErrorKind::MissingRequiredArgument && *place == Where::Text || error.exit_code() == 0
    };
    if let Some(error) = Cli::try_parse_from(words).err().filter(|error| !is_name(error)) {
        return Some(format!("{command}: {error}"));
    }
    let subjects = words.windows(2).filter(|pair| pair[0] == "-s").map(|pair| &pair[1]);
    // `history -s` takes labels, and `NAME` is to be replaced.
    let subjects =
        subjects.filter(|one| words.get(1).is_some_and(|verb| verb != "history") && *one != "NAME");
    subjects
        .map(|one| Spec::parse(one).and_then(|spec| kind_of(&spec).map(drop)))
        .find_map(|checked| checked.err().map(|error| format!("{command}: {error}")))
}

#[test]
fn every_command_in_a_document_is_one_that_the_program_takes() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (path, text) in documents() {
        // What the program used to take.
        if path == Path::new("CHANGELOG.md") {
            continue;
        }
        let commands = commands(&text);
        seen += commands.len();
        wrong
            .extend(commands.iter().filter_map(|one| Some(format!("{}: {}", path.display(), refused(one)?))));
    }
    assert!(seen > 80, "{seen} commands were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_command_that_the_program_refuses_is_found() {
    let text = "Try `dunnage rum` or `dunnage report …`.\n\n```sh\ndunnage run -s docker:nett=none \\\n    --rounds 3 # text\n```\n\n\
                ```console\n$ dunnage list > x\ndunnage 0.1.0\n```\n";
    let found = commands(text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found.iter().filter(|one| refused(one).is_some()).count(), 2, "{found:?}");
}

/// What GitHub makes of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

fn anchors(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut heading: Option<String> = None;
    for event in events(text) {
        match (&mut heading, event) {
            (_, Event::Start(Tag::Heading { .. })) => heading = Some(String::new()),
            (Some(text), Event::Text(part) | Event::Code(part)) => text.push_str(&part),
            (_, Event::End(TagEnd::Heading(_))) => all.extend(heading.take().map(|text| anchor(&text))),
            _ => {}
        }
    }
    all
}

#[test]
fn every_link_within_the_repository_leads_somewhere() {
    let documents = documents();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (path, text) in &documents {
        for event in events(text) {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
                continue;
            };
            if dest_url.contains("://") {
                continue;
            }
            seen += 1;
            let (file, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
            let target = match file {
                "" => path.clone(),
                file => normal(&path.parent().unwrap_or(Path::new("")).join(file)),
            };
            let leads = match documents.get(&target) {
                Some(text) => anchor.is_empty() || anchors(text).iter().any(|one| one == anchor),
                None => anchor.is_empty() && root().join(&target).exists(),
            };
            if !leads {
                wrong.push(format!("{}: {dest_url}", path.display()));
            }
        }
    }
    assert!(seen > 50, "{seen} links were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part.as_os_str() == ".." {
            true => drop(normal.pop()),
            false => normal.push(part),
        }
    }
    normal
}

#[test]
fn readme_stays_short() {
    let lines = documents()[Path::new("README.md")].lines().count();
    assert!(
        lines <= README,
        "README.md has {lines} lines, more than {README}: what is not for a first reader belongs into docs"
    );
}
