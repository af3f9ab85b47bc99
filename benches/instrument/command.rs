//! Does `command` see the same time of a program as hyperfine does, on the host and in a container?

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::experiment::{self, Setting};
use dunnage::image::EXECUTABLE;
use dunnage::measure;
use dunnage::outcome::{Abort, Sample};
use dunnage::probe::{PROBE, WORK};
use dunnage::subject::engine::RUN_LABEL;
use dunnage::subject::{Spec, docker};
use dunnage::sys::spawn::Program;
use dunnage::units::Nanos;
use serde_json::Value;

use crate::bench::Bench;
use crate::sides::take_turns;
use crate::table::{Row, Target};

/// How long the program keeps its CPU busy.
const MILLIS: &str = "300";

/// The time of the program on the host, and of the whole of `docker run --rm` with it.
pub fn against_hyperfine(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let own = bench.run.place.executable.clone();
    let program = Program::new(&own, [PROBE, WORK, "-", "spin", MILLIS])?;
    let bare = compare(bench, rounds, "bare", &program, |sample| {
        sample.counter("command").map(|nanos| Nanos(nanos).seconds())
    })?;
    let mut rows =
        vec![Row::of_pairs("command on bare / hyperfine -N", bench, &bare, &Target::Ratio(0.97, 1.03))];
    let engine = match docker::find(&Spec::parse("docker")?) {
        Ok(engine) => engine,
        Err(why) => {
            rows.push(Row::not_measured("command in docker", &why.reason));
            return Ok(rows);
        }
    };
    let label = format!("{RUN_LABEL}={}", bench.run.id);
    let mut words = engine.client.global.clone();
    words.extend(["run", "--rm", "--label", &label].map(str::to_owned));
    words.extend(engine.always.iter().cloned());
    let image = bench.run.place.reference.clone();
    words.extend(["--entrypoint", EXECUTABLE, &image, PROBE, WORK, "-", "spin", MILLIS].map(str::to_owned));
    let program = Program::new(&engine.client.path, words)?;
    let whole = compare(bench, rounds, "docker", &program, |sample| sample.seconds("spawn", "returned"))?;
    rows.push(Row::of_pairs(
        "command in docker run --rm / hyperfine -N",
        bench,
        &whole,
        &Target::Ratio(0.93, 1.07),
    ));
    Ok(rows)
}

fn compare(
    bench: &mut Bench,
    rounds: usize,
    name: &str,
    yardstick: &Program,
    value: fn(&Sample) -> Option<f64>,
) -> Result<dunnage::stats::Pairs> {
    let mut subject = bench.subject(name)?;
    let measure = measure::find("command").context("there is no such experiment")?;
    let executable =
        if name == "bare" { bench.run.place.executable.display().to_string() } else { EXECUTABLE.to_owned() };
    let command = format!("{executable} {PROBE} {WORK} - spin {MILLIS}");
    let setting = Setting(vec![("cmd", experiment::setting::interned(&command)), ("mode", "run")]);
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
            let sample = measure(subject.as_mut(), &setting, &bench.run);
            let sample = sample.map_err(|abort| {
                bench.interrupted |= matches!(abort, Abort::Interrupted);
                crate::bench::explained(abort)
            })?;
            value(&sample).ok_or_else(|| anyhow!("the sample has no such value"))
        }),
    )
}

/// One time by hyperfine, after an untimed run of the same command; it takes no fewer than two, of which
/// the second counts.
fn by_hyperfine(command: &str, times: &Path) -> Result<f64> {
    let output = Command::new("hyperfine")
        .args(["--shell=none", "--style=none", "--runs", "2", "--prepare", command, "--export-json"])
        .arg(times)
        .arg(command)
        .stdin(Stdio::null())
        .output()
        .context("cannot run `hyperfine`")?;
    ensure!(output.status.success(), "hyperfine: {}", String::from_utf8_lossy(&output.stderr).trim());
    let told: Value = serde_json::from_slice(&std::fs::read(times)?)?;
    told["results"][0]["times"][1].as_f64().context("hyperfine told no second time")
}
