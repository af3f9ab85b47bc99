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
mod stack;
mod suite;
mod totals;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::guest::Guest;
use crate::lint::Lint;
use crate::machine::Machine;

const USAGE: &str = "\
usage: cargo xtask test [--no-lint] [-- CARGO-TEST-ARGS…]
       cargo xtask ci [-- CARGO-TEST-ARGS…]
       cargo xtask bench [NAME…] [--rounds N] | --help
       cargo xtask dist
       cargo xtask stack RELEASE -- COMMAND…
       cargo xtask lines

test   prepare the machine, check format and lints, build and run every test.
       As root on Debian or Ubuntu it installs what the tests need; elsewhere it
       installs nothing and lists what will be skipped.
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
    let (ours, for_cargo) = match split {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (&args[..], &[][..]),
    };
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    match ours.as_slice() {
        ["bench", benchmarks @ ..] => bench::run(benchmarks),
        ["dist"] => dist::run(),
        ["stack", release] => stack::run(release, for_cargo),
        ["lines"] => lines::print().map(|()| ExitCode::SUCCESS),
        ["test"] => test(Lint::IfInstalled, for_cargo),
        ["test", "--no-lint"] => test(Lint::Skip, for_cargo),
        ["ci"] => test(Lint::Required, for_cargo),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("unknown chore `{}`\n\n{USAGE}", other.join(" ")),
    }
}

fn test(lint: Lint, for_cargo: &[String]) -> Result<ExitCode> {
    let machine = Machine::read();
    let scratch = suite::scratch()?;
    let mut stack = None;
    let (daemon, guest) = match &machine {
        Machine::Ours => {
            packages::install_missing()?;
            stack = Some(stack::begin(&scratch)?);
            cgroups::mend();
            axe::ensure();
            (daemon::ensure(&scratch), guest::ensure())
        }
        Machine::Foreign(why) => {
            eprintln!("xtask: not installing or starting anything: {why}");
            eprintln!("xtask: tests that need a missing docker, podman, runc or crun will be skipped");
            (daemon::Docker::look(), Guest::look())
        }
    };
    let lints = lint::run(lint)?;
    let totals = suite::run(suite::required(&machine, &daemon, guest), &scratch, for_cargo)?;
    daemon.end();
    if let Some(mut stack) = stack {
        stack.wait()?;
    }
    suite::conclude(&totals, lints, &scratch)
}
