//! What does dunnage add to making a container with bare system calls, and how much faster than the fastest
//! runtime does that stay?

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use dunnage::image::EXECUTABLE;
use dunnage::probe::{PROBE, Task};
use dunnage::sys::cgroup::CgroupPlan;
use dunnage::sys::seccomp::Profile;
use dunnage::sys::{container, seccomp};

use crate::bench::Bench;
use crate::c::{Coprocess, Libc, compile};
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// From before the first step until everything is removed, against the same steps in C.
pub fn against_c(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let program = compile("floor", Libc::With, bench.scratch())?;
    let filter = bench.scratch().join("filter");
    write_filter(&filter)?;
    let scratch = bench.run.workspace().join(bench.run.next_name());
    std::fs::create_dir_all(&scratch)?;
    clear(&scratch)?;
    // Makes the cgroup directories that both share.
    let mut floor = bench.subject("floor")?;
    let mut command = Command::new(program);
    command.args([&bench.run.place.rootfs, &scratch, &filter]);
    command.args([EXECUTABLE, PROBE, Task::Start.argument()]);
    let mut in_c = Coprocess::start(command)?;
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            in_c.go::<1>()?;
            in_c.go().map(|[nanos]| nanos as f64 / 1e9)
        }),
        Box::new(|bench| {
            bench.launch(floor.as_mut())?;
            let launch = bench.launch(floor.as_mut())?;
            Ok(launch.returned.since(launch.spawned).seconds())
        }),
    );
    drop(in_c);
    clear(&scratch)?;
    std::fs::remove_dir_all(&scratch)?;
    Ok(vec![Row::of_pairs("floor / C floor", bench, &pairs?, &Target::Ratio(0.0, 1.25))])
}

/// Removes what the yardstick leaves if a step is refused, since it cannot start over that.
fn clear(scratch: &Path) -> Result<()> {
    /// The name of its container.
    const NAME: &str = "c-floor";
    let cgroups = CgroupPlan::here()?;
    container::undo(&container::leftovers(scratch, NAME, &cgroups))?;
    Ok(())
}

/// The filter's program in the kernel's format: code, both jumps, constant.
fn write_filter(path: &Path) -> Result<()> {
    let filter = seccomp::compile(&Profile::from_oci(&seccomp::built_in())?);
    let bytes: Vec<u8> = filter
        .iter()
        .flat_map(|one| {
            let [first, second] = one.code.to_ne_bytes();
            let constant = one.k.to_ne_bytes();
            [first, second, one.jt, one.jf].into_iter().chain(constant)
        })
        .collect();
    std::fs::write(path, bytes).with_context(|| format!("cannot write `{}`", path.display()))
}

/// `crun run` of a bundle with the same root, as the program calls it, against the floor.
pub fn against_crun(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let mut floor = bench.subject("floor")?;
    let mut crun = bench.subject("crun")?;
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.launch(floor.as_mut())?;
            let launch = bench.launch(floor.as_mut())?;
            Ok(launch.returned.since(launch.spawned).seconds())
        }),
        Box::new(|bench| {
            bench.launch(crun.as_mut())?;
            let launch = bench.launch(crun.as_mut())?;
            Ok(launch.returned.since(launch.spawned).seconds())
        }),
    );
    Ok(vec![Row::of_pairs("crun run / floor", bench, &pairs?, &Target::Ratio(4.0, f64::INFINITY))])
}
