//! Does dunnage measure the same times as hyperfine, for the same command lines in the same prestate?

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::image::EXECUTABLE;
use dunnage::outcome::Abort;
use dunnage::probe::{PROBE, Task};
use dunnage::subject::engine::{Engine, RUN_LABEL};
use dunnage::subject::{Container, ContainerRequest, Spec, Subject, docker, on_path, podman};
use dunnage::sys::spawn::Program;
use serde_json::Value;

use crate::bench::Bench;
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// Timed launches of each side in each round, whose mean is used: hyperfine makes at least two.
pub const LAUNCHES: usize = 2;

/// `NAME run` with the bundle of the subject of this name.
pub fn runtime(bench: &mut Bench, rounds: usize, name: &str) -> Result<Vec<Row>> {
    let binary = on_path(name).with_context(|| format!("`{name}` is not installed"))?;
    let mut subject = bench.subject(name)?;
    let bundle = newest_bundle(&bench.run.workspace())?;
    let bundle = bundle.to_string_lossy();
    let container = bench.run.next_name();
    let command = Program::new(&binary, ["run", "--bundle", &*bundle, &*container])?;
    let row = compare(bench, rounds, name, subject.as_mut(), &container, &command.shown());
    row.map(|pairs| {
        vec![Row::of_pairs(&format!("{name} run / hyperfine"), bench, &pairs, &Target::Ratio(0.93, 1.07))]
    })
}

/// The bundle that a subject has just made.
fn newest_bundle(workspace: &Path) -> Result<PathBuf> {
    let made = |path: &PathBuf| path.join("config.json").metadata().and_then(|file| file.modified()).ok();
    let entries = std::fs::read_dir(workspace)?.filter_map(|entry| Some(entry.ok()?.path()));
    let bundles = entries.filter_map(|path| Some((made(&path)?, path)));
    bundles.max().map(|(_, path)| path).context("the subject did not make a bundle")
}

/// `NAME run --rm` with the arguments of the subject of this name.
pub fn engine(bench: &mut Bench, rounds: usize, name: &str) -> Result<Vec<Row>> {
    let spec = Spec::parse(name)?;
    let found = if name == "docker" { docker::find(&spec) } else { podman::find(&spec) };
    let engine = found.map_err(|why| anyhow!("{}", why.reason))?;
    let mut subject = bench.subject(name)?;
    let container = bench.run.next_name();
    let command = Program::new(&engine.client.path, arguments(&engine, bench, &container))?;
    let row = compare(bench, rounds, name, subject.as_mut(), &container, &command.shown());
    let target = Target::Either(0.93, 1.07, 0.010);
    row.map(|pairs| vec![Row::of_pairs(&format!("{name} run --rm / hyperfine"), bench, &pairs, &target)])
}

/// `NAME exec` into one running container of the subject of this name, on both sides.
pub fn exec(bench: &mut Bench, rounds: usize, name: &str) -> Result<Vec<Row>> {
    let client = on_path(name).with_context(|| format!("`{name}` is not installed"))?;
    let subject = bench.subject(name)?;
    let failed = |abort: Abort| anyhow!("{abort:?}");
    // Listening in the bench's own context stops meanwhile.
    let run = &bench.another_run()?;
    let made = Container::create(subject.as_ref(), &ContainerRequest::default(), run);
    let row = made.and_then(|mut made| made.start().map(|_| made)).map_err(failed).and_then(|mut made| {
        let container = made.name().to_owned();
        let command =
            Program::new(&client, ["exec", &container, EXECUTABLE, PROBE, Task::Enter.argument()])?.shown();
        let times = bench.scratch().join("times.json");
        take_turns(
            bench,
            rounds,
            Box::new(|bench| {
                bench.fall_silent();
                by_hyperfine(&command, &times)
            }),
            Box::new(|_| {
                let mut sum = 0.0;
                for _ in 0..LAUNCHES {
                    made.exec(Task::Enter).map_err(failed)?;
                    let entered = made.exec(Task::Enter).map_err(failed)?;
                    sum += entered.returned.since(entered.spawned).seconds();
                }
                Ok(sum / LAUNCHES as f64)
            }),
        )
    });
    let target = Target::Either(0.93, 1.07, 0.005);
    row.map(|pairs| vec![Row::of_pairs(&format!("{name} exec / hyperfine"), bench, &pairs, &target)])
}

/// The arguments of the subject without keys.
fn arguments(engine: &Engine, bench: &Bench, container: &str) -> Vec<String> {
    let label = format!("{RUN_LABEL}={}", bench.run.id);
    let mut all = engine.client.global.clone();
    all.extend(["run", "--name", container, "--label", &label, "--rm"].map(str::to_owned));
    all.extend(engine.always.iter().cloned());
    all.extend([bench.run.place.reference.clone(), Task::Start.argument().to_owned()]);
    all
}

fn compare(
    bench: &mut Bench,
    rounds: usize,
    name: &str,
    subject: &mut dyn Subject,
    container: &str,
    command: &str,
) -> Result<dunnage::stats::Pairs> {
    let resource = dunnage::subject::resources::container(&name, container);
    let noted = bench.run.note(resource).map_err(|why| anyhow!("{why}"))?;
    let times = bench.scratch().join("times.json");
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            by_hyperfine(command, &times)
        }),
        Box::new(|bench| {
            let mut sum = 0.0;
            for _ in 0..LAUNCHES {
                bench.launch(subject)?;
                let launch = bench.launch(subject)?;
                sum += launch.returned.since(launch.spawned).seconds();
            }
            Ok(sum / LAUNCHES as f64)
        }),
    );
    // Both remove their containers; one is left only if a command was killed.
    if pairs.is_ok() || subject.remove(container).is_ok() {
        bench.run.cross_out(noted);
    }
    pairs
}

/// The mean of hyperfine's times, each after one untimed run of the same command.
pub fn by_hyperfine(command: &str, times: &Path) -> Result<f64> {
    let output = Command::new("hyperfine")
        .args(["--shell=none", "--style=none", "--runs", &LAUNCHES.to_string()])
        .args(["--prepare", command, "--export-json"])
        .arg(times)
        .arg(command)
        .stdin(Stdio::null())
        .output()
        .context("cannot run `hyperfine`")?;
    ensure!(output.status.success(), "hyperfine: {}", String::from_utf8_lossy(&output.stderr).trim());
    let told: Value = serde_json::from_slice(&std::fs::read(times)?)?;
    let values: Vec<f64> =
        told["results"][0]["times"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    ensure!(values.len() == LAUNCHES, "hyperfine reported {} times", values.len());
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}
