//! Do the predictions of `advise cpu` come true? A load runs in a docker container without a limit and is
//! watched; each limit is predicted from that, then set with `docker update`, and the kernel's counters are
//! read from the cgroup.
//!
//! The loads repeat every ten seconds, and every window is a whole number of repetitions, so that prediction
//! and count are about the same work. If less than 10 % or more than 90 % of the periods are throttled nearly
//! every model is right, so those rows have no target.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::advise::recommend::{self, Advice, Watched};
use dunnage::advise::{Cpus, Throttling};
use dunnage::subject::engine::{RUN_LABEL, STATE_LABEL};
use dunnage::subject::resources;
use dunnage::sys::signals::Interrupts;
use dunnage::units::Nanos;
use dunnage::watch::sampler::{self, End, Pace, Seen};
use dunnage::watch::target::{self, Engine, Target};

use crate::bench::Bench;
use crate::table::Row;

/// The period of the loads.
const CYCLE: Nanos = Nanos::from_millis(10_000);
/// The default interval of `advise`.
const EVERY: Nanos = Nanos::from_millis(10);
/// After this long, work that was waiting when a limit changed is done.
const SETTLE: Nanos = Nanos::from_millis(2_000);
/// The largest difference between prediction and count.
const TARGET: f64 = 0.1;

/// The loads of one container, and the limits to try on it. With several loads, the last one is entered into
/// the container.
const TRIED: [(&str, &[&str], &[f64]); 4] = [
    ("steady", &["steady"], &[0.32, 0.35, 0.38]),
    ("bursty", &["bursty"], &[0.4, 0.5, 0.6]),
    ("two-peaked", &["two-peaked"], &[0.5, 0.6, 0.7]),
    ("two processes", &["bursty", "steady"], &[0.7, 0.8, 0.9]),
];

/// All loads; each window is this many repetitions long.
pub fn come_true(bench: &mut Bench, repetitions: usize) -> Result<Vec<Row>> {
    // docker needs its image.
    drop(bench.subject("docker")?);
    let window = Nanos(CYCLE.0 * repetitions as i64);
    let mut rows = Vec::new();
    for (name, loads, limits) in TRIED {
        rows.extend(with_container(bench, loads, |bench, container| {
            tried(bench, name, container, limits, window)
        })?);
    }
    Ok(rows)
}

fn with_container(
    bench: &mut Bench,
    loads: &[&str],
    then: impl FnOnce(&mut Bench, &str) -> Result<Vec<Row>>,
) -> Result<Vec<Row>> {
    let name = bench.run.next_name();
    let resource = resources::container(&"docker", &name);
    let noted = bench.run.note(resource).map_err(|why| anyhow!("{why}"))?;
    let (run, state) = (&bench.run.id, bench.run.place.state.display());
    let labels = [format!("{RUN_LABEL}={run}"), format!("{STATE_LABEL}={state}")];
    let reference = bench.run.place.reference.clone();
    let started = docker(&[
        "run", "--detach", "--name", &name, "--label", &labels[0], "--label", &labels[1], &reference, "load",
        loads[0],
    ]);
    let entered = started.and_then(|()| {
        loads[1..]
            .iter()
            .try_for_each(|load| docker(&["exec", "--detach", &name, "/dunnage", "probe", "load", load]))
    });
    let done = entered.and_then(|()| then(bench, &name));
    if docker(&["rm", "--force", &name]).is_ok() {
        bench.run.cross_out(noted);
    }
    done
}

/// The rows of one container.
fn tried(bench: &mut Bench, name: &str, container: &str, limits: &[f64], window: Nanos) -> Result<Vec<Row>> {
    let interrupts = Interrupts::install()?;
    let target = target::find(container, Some(Engine::Docker))?;
    let mut watch = |duration| -> Result<Seen> {
        let seen = sampler::watch(
            &target.group,
            target.process.as_ref(),
            Pace { duration, every: EVERY },
            &interrupts,
        )?;
        bench.interrupted |= seen.end == End::Asked;
        ensure!(!bench.interrupted, "interrupted");
        Ok(seen)
    };
    watch(SETTLE)?;
    let advice = advice(&watch(window)?, limits)?;
    let mut rows = Vec::new();
    for &cpus in limits {
        docker(&["update", "--cpus", &cpus.to_string(), container])?;
        watch(SETTLE)?;
        let counted = watch(window)?.throttling;
        docker(&["update", "--cpu-quota", "-1", container])?;
        watch(SETTLE)?;
        rows.push(row(&format!("{name}, {cpus} CPUs"), &target, &advice, cpus, counted)?);
    }
    Ok(rows)
}

fn advice(seen: &Seen, limits: &[f64]) -> Result<Advice> {
    let watched = Watched {
        usage: seen.usage.clone(),
        limit: seen.limit,
        throttling: seen.throttling,
        kernel: sampler::kernel(),
        cpus: std::thread::available_parallelism()?.get(),
    };
    let asked: Vec<Cpus> = limits.iter().map(|&cpus| Cpus(cpus)).collect();
    recommend::advise(&watched, &asked).context("not enough was watched")
}

fn row(name: &str, target: &Target, advice: &Advice, cpus: f64, counted: Throttling) -> Result<Row> {
    let tried = advice.tried.iter().find(|tried| (tried.cpus.0 - cpus).abs() < 1e-9);
    let predicted =
        tried.and_then(|tried| tried.prediction.as_ref()?.throttled).context("there is no prediction")?;
    let why = || format!("the kernel counted no periods of `{}`", target.name);
    let measured = counted.share().with_context(why)?;
    Ok(Row::of_shares(name, measured, predicted, counted.periods, TARGET))
}

fn docker(arguments: &[&str]) -> Result<()> {
    let output = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot run `docker`")?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "docker {}: {}", arguments.join(" "), words.trim());
    Ok(())
}
