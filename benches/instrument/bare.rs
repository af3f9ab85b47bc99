//! What does dunnage add to starting a process? Against a loop of posix_spawn and waitpid in C.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use dunnage::probe::{PROBE, Task};
use dunnage::sys::identity::{Identity, limits_in};
use dunnage::sys::raw;
use dunnage::sys::spawn::{self, Program};
use dunnage::units::Nanos;

use crate::bench::Bench;
use crate::c::{Coprocess, Libc, compile};
use crate::hyperfine::{LAUNCHES, by_hyperfine};
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// Untimed launches before each timed one, on both sides. The listener for CPU time is opened for dunnage's side
/// only. This zeroes megabytes and patches the kernel's code, once in a run but in every round here, and the
/// first launch after it does not yet find the caches as a run has them.
const PRIMES: usize = 4;

/// From right before the spawn until the end was reported.
pub fn whole(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let spawn = compile("spawn", Libc::With, bench.scratch())?;
    let mut command = Command::new(spawn);
    command.arg(&bench.run.place.executable).args([PROBE, Task::Start.argument()]);
    let mut loop_in_c = Coprocess::start(command)?;
    let mut bare = bench.subject("bare")?;
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            for _ in 0..PRIMES {
                loop_in_c.go::<1>()?;
            }
            loop_in_c.go().map(|[nanos]| nanos as f64 / 1e9)
        }),
        Box::new(|bench| {
            for _ in 0..PRIMES {
                bench.launch(bare.as_mut())?;
            }
            let launch = bench.launch(bare.as_mut())?;
            Ok(launch.returned.since(launch.spawned).seconds())
        }),
    )?;
    Ok(vec![Row::of_pairs("bare / C loop", bench, &pairs, &Target::Ratio(0.95, 1.05))])
}

/// The same against hyperfine on a minimal static C program, including libc's start and without a message.
pub fn against_true(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let least = compile("true", Libc::With, bench.scratch())?.display().to_string();
    let times = bench.scratch().join("times.json");
    let mut bare = bench.subject("bare")?;
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            by_hyperfine(&least, &times)
        }),
        Box::new(|bench| {
            let mut sum = 0.0;
            for _ in 0..LAUNCHES {
                bench.launch(bare.as_mut())?;
                let launch = bench.launch(bare.as_mut())?;
                sum += launch.returned.since(launch.spawned).seconds();
            }
            Ok(sum / LAUNCHES as f64)
        }),
    )?;
    Ok(vec![Row::of_pairs("bare / hyperfine of `true`", bench, &pairs, &Target::Ratio(0.0, 1.4))])
}

/// From right before the spawn to the first instruction. Both sides follow untimed launches of the probe:
/// the speed of an exec depends on what the previous process has evicted from the caches, 25 µs here, and the
/// executable without libc evicts nothing.
pub fn entry(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let spawn = compile("spawn", Libc::With, bench.scratch())?;
    // In the probe's directory: the same filesystem, the same depth.
    let beside = bench.run.workspace();
    std::fs::create_dir_all(&beside)?;
    let smallest = compile("nolibc", Libc::Without, &beside)?;
    let mut loop_in_c = Coprocess::start(entry_loop(&spawn, &smallest))?;
    let mut probe_in_c = Coprocess::start(entry_loop(&spawn, &bench.run.place.executable))?;
    let mut bare = bench.subject("bare")?;
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            for _ in 0..PRIMES {
                probe_in_c.go::<2>()?;
            }
            loop_in_c.go().map(|[_, entry]| entry as f64 / 1e9)
        }),
        Box::new(|bench| {
            for _ in 0..PRIMES {
                bench.launch(bare.as_mut())?;
            }
            let launch = bench.launch(bare.as_mut())?;
            Ok(launch.message.entry.since(launch.spawned).seconds())
        }),
    )?;
    let target = Target::Difference(20e-6);
    Ok(vec![Row::of_pairs("first instruction of bare / without libc", bench, &pairs, &target)])
}

/// The same probe started by `posix_spawn`, and by the clone that changes the user: the cost of starting a
/// program as another user.
pub fn identity(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let executable = bench.run.place.executable.clone();
    let plain = Program::new(&executable, [PROBE, Task::Start.argument()])?;
    // With the current user, who can reach the probe and needs no rights for the change.
    let (user, group) = raw::user_and_group();
    let limits = limits_in(&std::fs::read_to_string("/proc/self/limits")?).unwrap_or_default();
    let changed = plain.clone().with_identity(&Arc::new(Identity {
        user: user as u32,
        group: group as u32,
        groups: vec![group as u32],
        limits,
        directory: "/".into(),
        mask: 0o022,
    }));
    let started = |program: &Program| -> Result<f64> {
        let launch = || {
            let ended = spawn::start(program)?.wait(Nanos::from_millis(10_000), None);
            ended.map_err(|why| anyhow::anyhow!("the probe did not end: {why:?}"))
        };
        launch()?;
        let ended = launch()?;
        Ok(ended.returned.since(ended.spawned).seconds())
    };
    let pairs = take_turns(bench, rounds, Box::new(|_| started(&plain)), Box::new(|_| started(&changed)))?;
    Ok(vec![Row::of_pairs("as a user / posix_spawn", bench, &pairs, &Target::Ratio(0.95, 1.05))])
}

fn entry_loop(spawn: &Path, program: &Path) -> Command {
    let mut command = Command::new(spawn);
    command.arg("--entry").arg(program).args([PROBE, Task::Start.argument()]);
    command
}
