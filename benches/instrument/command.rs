//! Does `command` measure the same time of a program as hyperfine, on the host and in a container, also for
//! large output?

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::experiment::command::names::TOOK;
use dunnage::experiment::{self, Setting};
use dunnage::image::EXECUTABLE;
use dunnage::launch::names::{RETURNED, SPAWN};
use dunnage::measure;
use dunnage::orders::work::Spin;
use dunnage::outcome::{Abort, Sample};
use dunnage::probe::PROBE;
use dunnage::report::text::in_shell;
use dunnage::subject::engine::RUN_LABEL;
use dunnage::subject::{Entrypoint, Spec, Work, docker};
use dunnage::sys::spawn::Program;
use dunnage::units::Nanos;
use serde_json::Value;

use crate::bench::Bench;
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// What the program does: it keeps its CPU busy for this long.
const SPIN: Spin = Spin { millis: 300 };
/// A program that writes 23 MB, on a host with GNU's programs.
const WRITER: [&str; 3] = ["/usr/bin/seq", "1", "3000000"];
/// The directories of it and its libraries.
const PLACES: [&str; 3] = ["/usr", "/lib", "/lib64"];

/// The program of both sides: its words on the host and in the container, and what is bound there.
struct Job<'a> {
    host: Vec<String>,
    inside: Vec<String>,
    places: &'a [&'a str],
}

/// The time of the program on the host, and of a whole `docker run --rm` with it; then the same for a program
/// that writes.
pub fn against_hyperfine(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let own = bench.run.place.executable.display().to_string();
    let order = Work::new(SPIN, Nanos(0));
    let spin = |program: &str| {
        let words = Entrypoint::Work(&order).words(None);
        [program, PROBE].map(str::to_owned).into_iter().chain(words).collect::<Vec<_>>()
    };
    let writer = WRITER.map(str::to_owned).to_vec();
    let calm = Job { host: spin(&own), inside: spin(EXECUTABLE), places: &[] };
    let writing = Job { host: writer.clone(), inside: writer, places: &PLACES };
    let command = |sample: &Sample| sample.counter(TOOK).map(|nanos| Nanos(nanos).seconds());
    let whole = |sample: &Sample| sample.seconds(SPAWN, RETURNED);
    let bare = Target::Ratio(0.97, 1.03);
    let engine = Target::Ratio(0.93, 1.07);
    let mut rows = vec![row(bench, rounds, "command on bare", ("bare", &calm), command, &bare)?];
    for (name, subject, job) in [
        ("command in docker run --rm", "docker", &calm),
        ("output through docker's log", "docker", &writing),
        ("output through docker:log=none", "docker:log=none", &writing),
    ] {
        match docker::find(&Spec::parse(subject)?) {
            Ok(_) => rows.push(row(bench, rounds, name, (subject, job), whole, &engine)?),
            Err(why) => rows.push(Row::not_measured(name, &why.reason)),
        }
    }
    Ok(rows)
}

fn row(
    bench: &mut Bench,
    rounds: usize,
    name: &str,
    (subject, job): (&str, &Job<'_>),
    value: fn(&Sample) -> Option<f64>,
    target: &Target,
) -> Result<Row> {
    let yardstick = match subject {
        "bare" => Program::new(Path::new(&job.host[0]), &job.host[1..])?,
        _ => by_docker(bench, subject, job)?,
    };
    let pairs = compare(bench, rounds, (subject, job), &yardstick, value)?;
    Ok(Row::of_pairs(&format!("{name} / hyperfine -N"), bench, &pairs, target))
}

/// `docker run --rm` with the job.
fn by_docker(bench: &Bench, subject: &str, job: &Job<'_>) -> Result<Program> {
    let spec = Spec::parse(subject)?;
    let engine = docker::find(&spec).map_err(|why| anyhow!("{}", why.reason))?;
    let label = format!("{RUN_LABEL}={}", bench.run.id);
    let mut words = engine.client.global.clone();
    words.extend(["run", "--rm", "--label", &label].map(str::to_owned));
    if spec.get("log") == Some("none") {
        words.extend(["--log-driver", "none"].map(str::to_owned));
    }
    for place in job.places {
        words.extend(["--mount".to_owned(), format!("type=bind,source={place},target={place},readonly")]);
    }
    words.extend(engine.always.iter().cloned());
    words.extend(["--entrypoint".to_owned(), job.inside[0].clone(), bench.run.place.reference.clone()]);
    words.extend_from_slice(&job.inside[1..]);
    Ok(Program::new(&engine.client.path, words)?)
}

fn compare(
    bench: &mut Bench,
    rounds: usize,
    (name, job): (&str, &Job<'_>),
    yardstick: &Program,
    value: fn(&Sample) -> Option<f64>,
) -> Result<dunnage::stats::Pairs> {
    let mut subject = bench.subject(name)?;
    let words = if name == "bare" { &job.host } else { &job.inside };
    let command = in_shell(words);
    let mut setting = Setting(vec![("cmd", experiment::setting::interned(&command)), ("mode", "run")]);
    let mounts: Vec<_> = job.places.iter().map(|place| format!("{place}:{place}:ro")).collect();
    if !mounts.is_empty() {
        setting.0.push(("mount", experiment::setting::interned(&mounts.join(" "))));
    }
    let times = bench.scratch().join("times.json");
    let shown = yardstick.shown();
    take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            by_hyperfine(&shown, &times)
        }),
        // It launches the same subject twice before.
        Box::new(|bench| {
            let sample = measure::once("command", subject.as_mut(), &setting, &bench.run);
            let sample = sample.map_err(|abort| {
                bench.interrupted |= matches!(abort, Abort::Interrupted);
                crate::bench::explained(abort)
            })?;
            value(&sample).ok_or_else(|| anyhow!("the sample does not have the value"))
        }),
    )
}

/// One time by hyperfine, after an untimed run of the same command; hyperfine makes at least two runs, and
/// the second one is used. The output is read from a pipe, as in dunnage.
fn by_hyperfine(command: &str, times: &Path) -> Result<f64> {
    let output = Command::new("hyperfine")
        .args([
            "--shell=none",
            "--style=none",
            "--output=pipe",
            "--runs",
            "2",
            "--prepare",
            command,
            "--export-json",
        ])
        .arg(times)
        .arg(command)
        .stdin(Stdio::null())
        .output()
        .context("cannot run `hyperfine`")?;
    ensure!(output.status.success(), "hyperfine: {}", String::from_utf8_lossy(&output.stderr).trim());
    let told: Value = serde_json::from_slice(&std::fs::read(times)?)?;
    told["results"][0]["times"][1].as_f64().context("hyperfine did not report a second time")
}
