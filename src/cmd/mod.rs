//! The verbs, one short file each. This file parses the command line, runs the verb, and turns an error into a
//! message on standard error and an exit code.

mod advise;
mod carry_out;
mod check;
mod compare;
mod completions;
mod doctor;
mod guard;
mod history;
mod import;
mod list;
mod pack;
mod pilot;
mod plan;
mod reference;
mod report;
mod request;
mod resume;
mod run;
mod show;
mod sweep;
mod trial;
mod unpack;

use std::io::{self, ErrorKind, Write};

use clap::Parser;

use crate::cli::{self, Cli, Command};
use crate::exit;
use crate::report::text::harmless;
use show::Output;

/// Runs the command line and returns the exit code.
pub fn main() -> i32 {
    crate::sys::descriptors::keep_inherited();
    crate::sys::signals::fail_instead_of_dying();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print().and_then(|()| io::stdout().flush());
            return match printed {
                _ if error.use_stderr() => exit::USAGE,
                Err(why) if why.kind() != ErrorKind::BrokenPipe => {
                    tell(&format!("error: cannot write standard output: {why}"));
                    exit::ERROR
                }
                _ => exit::FINE,
            };
        }
    };
    let done = match &cli.command {
        Command::Doctor { format, extent } => doctor::run(format, (*extent).into()),
        Command::List { what, name, format } => list::run(*what, name.as_deref(), format),
        Command::Plan(options) => plan::run(options),
        Command::Check(selection) => check::run(selection),
        Command::Run(options) => run::run(options),
        Command::Resume { directory, outcome } => resume::run(directory, *outcome),
        Command::Report { directory, format, output, reference, job, question, between, extent } => {
            let job = job.as_deref().map(report::job).transpose();
            job.and_then(|job| {
                let extras = report::Extras { references: *reference, job, question: *question, between };
                let to = Output { file: output.as_deref(), runs: &[], extent: (*extent).into() };
                report::run(directory, format, to, extras)
            })
        }
        Command::Reference { source, format } => reference::run(source.as_deref(), format),
        Command::Compare(options) => compare::run(options),
        Command::Import { file, output, tags } => import::run(file, output.as_deref(), tags),
        Command::Advise(cli::Advise::Cpu(options)) => advise::run(options),
        Command::Advise(cli::Advise::Probes(options)) => advise::probes::run(options),
        Command::History(options) => history::run(options),
        Command::Pack(options) => pack::run(options),
        Command::Unpack { file, output } => unpack::run(file, output.as_deref()),
        Command::Sweep { what, dry_run } => sweep::run(*what, *dry_run),
        Command::Completions { shell } => completions::run(*shell),
    };
    match done {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => exit::FINE,
        Err(error) => {
            tell(&format!("error: {}", with_hints_last(&error)));
            exit::code_of(&error)
        }
    }
}

/// What begins a hint in a message.
const HINT: &str = "\n\nhint: ";

/// The chain of causes in one line, followed by all hints in it.
fn with_hints_last(error: &anyhow::Error) -> String {
    let all: Vec<String> = error.chain().map(ToString::to_string).collect();
    let causes: Vec<&str> = all.iter().filter_map(|text| text.split(HINT).next()).collect();
    let too_large = is_of_kind(error, ErrorKind::FileTooLarge)
        .then_some("raise the limit on file sizes, which `ulimit -f` shows");
    let full =
        is_of_kind(error, ErrorKind::StorageFull).then_some("free disk space: a run needs up to 100 MiB");
    let hints = too_large.into_iter().chain(full).chain(all.iter().flat_map(|text| text.split(HINT).skip(1)));
    causes.join(": ") + &hints.map(|hint| format!("{HINT}{hint}")).collect::<String>()
}

/// A reader that closes the pipe early is not an error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    is_of_kind(error, ErrorKind::BrokenPipe)
}

fn is_of_kind(error: &anyhow::Error, wanted: ErrorKind) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    kinds.map(io::Error::kind).any(|kind| kind == wanted)
}

/// Prints a line of the result to standard output. It may quote what engines said.
fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{}", harmless(line))
}

/// Prints a message for the user to standard error. File names in it may contain anything.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", harmless(line));
}
