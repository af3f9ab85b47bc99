//! Does dunnage measure the same time of a system call as by hand? By hand is a static C program that makes
//! the same call on the same CPU, on the host and in a container started by a plain docker command.
//!
//! Both make the call with the `syscall` instruction; a separate row shows what libc's function adds. The
//! statistic is the same on both sides, since the instrument is compared and not the statistic.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::measure;
use dunnage::orders::work::Syscall;
use dunnage::stats::Pairs;
use dunnage::subject::Subject;
use dunnage::subject::resources;
use dunnage::units::Nanos;

use crate::bench::{Bench, explained};
use crate::c::{self, Libc};
use crate::sides::{Side, take_turns};
use crate::table::{Row, Target};

/// How long each side makes calls.
const WINDOW: Nanos = Nanos::from_millis(50);
/// Within 3 % or 3 ns.
const TARGET: Target = Target::Either(0.97, 1.03, 3e-9);
const CALL: &str = "getppid";

/// How the yardstick makes its calls.
#[derive(Clone, Copy)]
enum Way {
    Instruction,
    Libc,
}

/// On the host, in docker, and the difference.
pub fn against_c(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let yardstick = c::compile("syscall", Libc::With, bench.scratch())?;
    let mut bare = bench.subject("bare")?;
    let mut docker = bench.subject("docker")?;
    rows(bench, rounds, &yardstick, bare.as_mut(), docker.as_mut())
}

fn rows(
    bench: &mut Bench,
    rounds: usize,
    yardstick: &Path,
    bare: &mut dyn Subject,
    docker: &mut dyn Subject,
) -> Result<Vec<Row>> {
    let host = |way: Way| -> Side<'_> {
        Box::new(move |bench| {
            bench.fall_silent();
            on_the_host(yardstick, way)
        })
    };
    let on_bare =
        take_turns(bench, rounds, host(Way::Instruction), Box::new(|bench| by_dunnage(bench, bare)))?;
    let container = bench.run.next_name();
    let resource = resources::container(&"docker", &container);
    let noted = bench.run.note(resource).map_err(|why| anyhow!("{why}"))?;
    let in_docker = take_turns(
        bench,
        rounds,
        Box::new(|bench| in_a_container(bench, yardstick, &container)),
        Box::new(|bench| by_dunnage(bench, docker)),
    );
    let added = in_docker.and_then(|in_docker| {
        let added = take_turns(
            bench,
            rounds,
            Box::new(|bench| {
                Ok(in_a_container(bench, yardstick, &container)? - on_the_host(yardstick, Way::Instruction)?)
            }),
            Box::new(|bench| Ok(by_dunnage(bench, docker)? - by_dunnage(bench, bare)?)),
        )?;
        Ok((in_docker, added))
    });
    if added.is_ok() || docker.remove(&container).is_ok() {
        bench.run.cross_out(noted);
    }
    let (in_docker, added): (Pairs, Pairs) = added?;
    let libc = take_turns(bench, rounds, host(Way::Instruction), host(Way::Libc))?;
    Ok(vec![
        Row::of_pairs("getppid on the host / C", bench, &on_bare, &TARGET),
        Row::of_pairs("getppid in docker / C", bench, &in_docker, &TARGET),
        Row::of_pairs("what docker adds / by hand", bench, &added, &Target::Difference(3e-9)),
        Row::of_pairs("libc's getppid / instruction, both C", bench, &libc, &TARGET),
    ])
}

/// Seconds per call, as the experiment measures it.
fn by_dunnage(bench: &mut Bench, subject: &mut dyn Subject) -> Result<f64> {
    let order = Syscall { window: WINDOW, fixed: 0, calls: vec![CALL.to_owned()] };
    bench.interrupted |= bench.run.interrupts.asked();
    ensure!(!bench.interrupted, "interrupted");
    let (_, done) = measure::worked(subject, &bench.run, (order, WINDOW)).map_err(explained)?;
    let called = done.each.iter().find(|(name, _)| name == CALL).and_then(|(_, called)| called.ok());
    let called = called.with_context(|| format!("the probe reports no {CALL}"))?;
    Ok(called.picoseconds as f64 * 1e-12)
}

fn on_the_host(yardstick: &Path, way: Way) -> Result<f64> {
    asked(Command::new(yardstick).arg(WINDOW.0.to_string()), way)
}

fn in_a_container(bench: &Bench, yardstick: &Path, name: &str) -> Result<f64> {
    let mount = format!("{}:/yardstick:ro", yardstick.display());
    let mut docker = Command::new("docker");
    docker.args(["run", "--rm", "--name", name, "--volume", &mount, "--entrypoint", "/yardstick"]);
    docker.args([&bench.run.place.reference, &WINDOW.0.to_string()]);
    asked(&mut docker, Way::Instruction)
}

fn asked(command: &mut Command, way: Way) -> Result<f64> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{command:?}: {words}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [instruction, libc] = numbers[..] else {
        return Err(anyhow!("the yardstick answered `{}`", text.trim()));
    };
    let picoseconds = match way {
        Way::Instruction => instruction,
        Way::Libc => libc,
    };
    Ok(picoseconds * 1e-12)
}
