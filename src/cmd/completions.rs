//! `dunnage completions`: prints a completion script for a shell.
//!
//! The script is generated from the command line's definitions and the program's own lists. The names are added to a copy of
//! the definitions for this verb only; elsewhere, the program's own errors for a wrong name are better than clap's.
//! Deliberately absent: values that a script could only learn by calling the program at every key, such as those of a
//! subject's keys.

use std::io::Write;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

use super::show;
use crate::cli::Cli;
use crate::report::Report;
use crate::{exit, experiment, subject};

/// Runs the verb.
pub fn run(shell: Shell) -> Result<i32> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definitions(), "dunnage", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(exit::FINE)
}

/// The command line with every name that is known in advance.
fn definitions() -> Command {
    named(Cli::command())
}

fn named(command: Command) -> Command {
    command.mut_subcommands(|verb| named(verb.mut_args(with_names)))
}

/// Arguments are recognised by their field, so a new verb with the same argument is completed in the same way.
fn with_names(argument: Arg) -> Arg {
    if !argument.get_possible_values().is_empty() {
        return argument;
    }
    match argument.get_id().as_str() {
        "experiments" => argument.value_parser(PossibleValuesParser::new(experiments())),
        "subjects" => argument.value_parser(PossibleValuesParser::new(subjects())),
        "set" => argument.value_parser(PossibleValuesParser::new(settings())),
        "format" => {
            argument.value_parser(PossibleValuesParser::new(show::names::<Report>().map(PossibleValue::new)))
        }
        "directory" => argument.value_hint(ValueHint::DirPath),
        _ => argument,
    }
}

fn experiments() -> Vec<PossibleValue> {
    let named = experiment::ALL.iter().map(|one| PossibleValue::new(one.name).help(one.question));
    named.chain([PossibleValue::new("all").help("every experiment")]).collect()
}

/// Each kind, also with each runtime that its default list names.
fn subjects() -> Vec<PossibleValue> {
    let of = |kind: &'static subject::Kind| {
        let mut specs: Vec<String> = vec![kind.name.to_owned()];
        specs.extend(kind.as_installed.iter().map(ToString::to_string));
        specs.into_iter().map(|spec| PossibleValue::new(spec).help(kind.meaning))
    };
    unique(subject::shown_kinds().flat_map(of))
}

fn settings() -> Vec<PossibleValue> {
    let keys = experiment::ALL.iter().flat_map(|one| one.all_keys());
    unique(keys.flat_map(|key| {
        let value = |value: &&str| PossibleValue::new(format!("{}={value}", key.name)).help(key.meaning);
        key.values.iter().map(value)
    }))
}

/// The first of each name only.
fn unique(all: impl Iterator<Item = PossibleValue>) -> Vec<PossibleValue> {
    let mut found: Vec<PossibleValue> = Vec::new();
    for one in all {
        if !found.iter().any(|known| known.get_name() == one.get_name()) {
            found.push(one);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_hold_together_with_the_names() {
        definitions().debug_assert();
    }

    #[test]
    fn names_come_from_the_lists_and_stand_once() {
        let names = |values: Vec<PossibleValue>| -> Vec<String> {
            values.iter().map(|value| value.get_name().to_owned()).collect()
        };
        let subjects = names(subjects());
        assert!(subjects.contains(&"bare".to_owned()) && !subjects.contains(&"fake".to_owned()));
        assert_eq!(subjects.iter().filter(|name| *name == "docker").count(), 1);
        assert!(names(experiments()).ends_with(&["all".to_owned()]));
        assert!(names(settings()).contains(&"prestate=idle".to_owned()));
    }
}
