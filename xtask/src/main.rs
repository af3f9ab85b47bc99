//! Chores of the repository. `main` reads the command line; each chore has its own file.
//!
//! Deliberately absent: anything that measures. Unlike dunnage itself, the helpers here may poll and may call the machine's
//! tools.

mod axe;
mod bench;
mod cargo;
mod cgroups;
mod daemon;
mod dist;
mod guest;
mod lines;
mod lint;
mod machine;
mod packages;
mod prepare;
mod stack;
mod suite;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::lint::Lint;
use crate::machine::Machine;
use crate::suite::{Choice, Extent};

const USAGE: &str = "\
usage: cargo xtask test [--quick | --long] [--no-lint] [--repeat N] [-- PART…]
       cargo xtask ci
       cargo xtask bench [NAME…] [--rounds N] | --help
       cargo xtask dist
       cargo xtask stack RELEASE -- COMMAND…
       cargo xtask lines

test   prepare the machine, check format and lints, build and run the tests, or
       those with one of the parts in their names (`real::floor::`).
       As root on Debian or Ubuntu it installs what the tests need; elsewhere it
       installs nothing and lists what will be skipped.
       --quick  only what needs no engine, no browser and no root; prepares nothing
       --long   also what takes minutes by its nature, for before a release
       --repeat N  each test N times, and how often each failed
ci     the same, but fail without rustfmt or clippy
bench  compare dunnage with yardsticks and print ratios; never fails because of a timing
dist   make an archive of the stripped executable, manual pages and completions, and
       its checksum, in target/dist
stack  run a command as root in another Debian release with its own container stack
lines  count lines of production code per module, without tests, comments and blank lines";

fn main() -> ExitCode {
    match chore(std::env::args().skip(1).collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore(args: Vec<String>) -> Result<ExitCode> {
    let split = args.iter().position(|arg| arg == "--");
    let (ours, filters) = match split {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (&args[..], &[][..]),
    };
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    match ours.as_slice() {
        ["help" | "--help" | "-h"] | ["test" | "ci", "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["bench", benchmarks @ ..] => bench::run(benchmarks),
        ["dist"] => dist::run(),
        ["stack", release] => stack::run(release, filters),
        ["lines"] => lines::print().map(|()| ExitCode::SUCCESS),
        ["test", options @ ..] => test(&asked(options, filters)?),
        ["ci"] => test(&Asked { lint: Lint::Required, ..asked(&[], filters)? }),
        other => bail!("unknown chore `{}`\n\n{USAGE}", other.join(" ")),
    }
}

/// What `test` is asked for.
struct Asked {
    lint: Lint,
    choice: Choice,
}

fn asked(options: &[&str], filters: &[String]) -> Result<Asked> {
    let mut lint = Lint::IfInstalled;
    let mut choice = Choice { extent: Extent::Usual, filters: filters.to_vec(), repeat: 1 };
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--no-lint" => lint = Lint::Skip,
            "--quick" | "--long" if choice.extent != Extent::Usual => {
                bail!("`--quick` and `--long` exclude each other")
            }
            "--quick" => choice.extent = Extent::Quick,
            "--long" => choice.extent = Extent::Long,
            "--repeat" => {
                let number = words.next().and_then(|word| word.parse().ok()).filter(|number| *number > 0);
                choice.repeat = number.context("`--repeat` takes a number from 1")?;
            }
            other => bail!("unknown option `{other}`\n\n{USAGE}"),
        }
    }
    if let Some(part) = filters.iter().find(|part| part.starts_with('-')) {
        bail!("`{part}` is no part of a test's name; options come before `--`");
    }
    Ok(Asked { lint, choice })
}

fn test(asked: &Asked) -> Result<ExitCode> {
    let machine = match asked.choice.extent {
        Extent::Quick => Machine::Foreign("`--quick` needs nothing".to_owned()),
        Extent::Usual | Extent::Long => Machine::read(),
    };
    let scratch = suite::scratch()?;
    let mut prepared = None;
    // Most of preparing is waiting for the archive, while cargo compiles.
    let prepare = || {
        let required = prepared.insert(prepare::machine(&machine, &scratch)?).required(&machine);
        Ok(required)
    };
    let summary = suite::run(&asked.choice, &scratch, prepare, || lint::run(asked.lint));
    let ended = prepared.map_or(Ok(()), prepare::Prepared::end);
    let mut summary = summary.inspect_err(|_| {
        // Only if it is empty.
        let _ = std::fs::remove_dir(&scratch);
    })?;
    summary.print(&scratch);
    ended?;
    if !summary.is_fine() {
        return Ok(ExitCode::FAILURE);
    }
    std::fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
    Ok(ExitCode::SUCCESS)
}
