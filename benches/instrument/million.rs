//! How much time and memory are needed from a million samples on disk to verdicts?

use std::borrow::Cow;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use dunnage::launch::names::{CLIENT_CPU, ENGINE_CPU, FIRST, GONE, MAIN, PROCESSES, READY, RETURNED, SPAWN};
use dunnage::outcome::{Failure, FailureClass, Outcome, Sample};
use dunnage::plan::{Entry, Ladder, Layer, Plan, Request, Rounds, make};
use dunnage::record::{self, Environment, RoundContext, Row as Record, Timer};
use dunnage::stats::{Rng, Sample as Values};
use dunnage::subject::{Need, Spec};
use dunnage::units::{Nanos, Stamp, Unit};
use dunnage::verdict;

use crate::bench::{Bench, DUNNAGE};
use crate::c::{Libc, compile};
use crate::table::Row;

/// Asks this executable for the parts, to see the time of each.
pub const INSIDE: &str = "million-inside";

const ROUNDS: usize = 20_000;
const CELLS: usize = 50;
/// The limits: seconds and bytes.
const LIMITS: (f64, f64) = (2.0, 500e6);

/// The ladder of a default run, with builds and keys of the kind that users compare.
const SUBJECTS: [(&str, Layer, Ladder, i64); 21] = {
    use Ladder::{AsInstalled, Equalised};
    use Layer::{Bare, Engine, Floor, Runtime};
    [
        ("bare", Bare, AsInstalled, 700),
        ("floor", Floor, AsInstalled, 2_500),
        ("crun", Runtime, AsInstalled, 12_000),
        ("runc", Runtime, AsInstalled, 45_000),
        ("new=crun:bin=/opt/crun", Runtime, AsInstalled, 11_800),
        ("runc:seccomp=off", Runtime, AsInstalled, 43_000),
        ("crun:net=host", Runtime, AsInstalled, 11_000),
        ("docker", Engine, AsInstalled, 380_000),
        ("docker+crun", Engine, AsInstalled, 330_000),
        ("podman", Engine, AsInstalled, 310_000),
        ("podman+runc", Engine, AsInstalled, 350_000),
        ("docker:seccomp=off", Engine, AsInstalled, 375_000),
        ("docker:memory=64MiB", Engine, AsInstalled, 382_000),
        ("podman:rm=false", Engine, AsInstalled, 320_000),
        ("docker:log=none,net=none", Engine, Equalised, 240_000),
        ("docker+crun:log=none,net=none", Engine, Equalised, 190_000),
        ("podman:log=none,net=none", Engine, Equalised, 170_000),
        ("podman+runc:log=none,net=none", Engine, Equalised, 210_000),
        ("docker:log=none,net=host", Engine, Equalised, 230_000),
        ("podman:log=none,net=host", Engine, Equalised, 165_000),
        ("podman:log=none,net=none,seccomp=off", Engine, Equalised, 168_000),
    ]
};

/// Writes the run, and has `dunnage report` read it in a separate process.
pub fn run(bench: &mut Bench, runs: usize) -> Result<Vec<Row>> {
    let directory = bench.scratch().join("million");
    eprintln!("bench: million: writing {} samples", ROUNDS * CELLS);
    write(&directory, bench.seed)?;
    let usage = compile("usage", Libc::With, bench.scratch())?;
    let own = std::env::current_exe()?;
    let report = |format: &str| -> Result<[f64; 4]> {
        let mut command = Command::new(&usage);
        command.args([DUNNAGE, "report"]).arg(&directory).args(["--format", format]);
        told(&mut command)
    };
    let inside = |command: &mut Command| told(command.arg(&own).arg(INSIDE).arg(&directory));
    // Once untimed: then the file is in memory, as after a run.
    report("json")?;
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs {
        all[0].push(inside(&mut Command::new(&usage))?);
        all[1].push(report("json")?);
        all[2].push(report("html")?);
    }
    let told = Command::new(&own).arg(INSIDE).arg(&directory).output()?;
    eprint!("{}", String::from_utf8_lossy(&told.stdout));
    std::fs::remove_dir_all(&directory)?;
    let [verdicts, json, html] = all;
    Ok(vec![
        row("1,000,000 samples to verdicts", &verdicts, LIMITS)?,
        row("the same and `report --format json`", &json, LIMITS)?,
        row("the same and `report --format html`", &html, LIMITS)?,
    ])
}

/// Two such runs, and the time and memory of `dunnage compare` for them.
pub fn compared(bench: &mut Bench, runs: usize) -> Result<Vec<Row>> {
    /// Seconds and bytes: twice the memory of one.
    const MOST: (f64, f64) = (3.0, 1e9);
    let directories = ["million-old", "million-new"].map(|name| bench.scratch().join(name));
    for (directory, seed) in directories.iter().zip(bench.seed..) {
        eprintln!("bench: million: writing {} samples", ROUNDS * CELLS);
        write(directory, seed)?;
    }
    let usage = compile("usage", Libc::With, bench.scratch())?;
    let compare =
        || told(Command::new(&usage).args([DUNNAGE, "compare", "--format", "json"]).args(&directories));
    // Once untimed: then the files are in memory, as after a run.
    compare()?;
    let all = (0..runs).map(|_| compare()).collect::<Result<Vec<_>>>()?;
    for directory in &directories {
        std::fs::remove_dir_all(directory)?;
    }
    Ok(vec![row("two times 1,000,000 samples and `compare --format json`", &all, MOST)?])
}

fn told(command: &mut Command) -> Result<[f64; 4]> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().ok().with_context(|| format!("`usage` answered `{}`", text.trim()))
}

fn row(name: &str, runs: &[[f64; 4]], most: (f64, f64)) -> Result<Row> {
    let median = |column: usize, scale: f64| -> Result<f64> {
        let values: Vec<f64> = runs.iter().map(|run| run[column] / scale).collect();
        Ok(Values::new(values).context("no run is complete")?.median())
    };
    let (wall, memory) = (median(0, 1e9)?, median(3, 1.0)?);
    let cpu = median(1, 1e9)? + median(2, 1e9)?;
    let taken =
        format!("{} ({} CPU), {:.0} MB", Unit::Seconds.format(wall), Unit::Seconds.format(cpu), memory / 1e6);
    let reached = wall < most.0 && memory < most.1;
    Ok(Row::of_amount(name, taken, runs.len(), &format!("{:.0} s, {:.0} MB", most.0, most.1 / 1e6), reached))
}

/// The process under `usage`: reads and judges; reports the time of each.
pub fn inside(directory: &str) -> Result<()> {
    let began = Instant::now();
    let recorded = record::load(Path::new(directory))?;
    let read = began.elapsed();
    let analysis = verdict::analyse(&recorded);
    let judged = began.elapsed() - read;
    println!(
        "bench: million: reading {:.2} s, judging {:.2} s: {} findings, {} warnings, {} suspects",
        read.as_secs_f64(),
        judged.as_secs_f64(),
        analysis.findings.len(),
        analysis.warnings.len(),
        analysis.suspects.len()
    );
    Ok(())
}

fn plan(seed: u64) -> Result<Plan> {
    let entry = |(text, layer, ladder, micros): (&str, Layer, Ladder, i64)| -> Result<Entry> {
        let spec = Spec::parse(text)?;
        let runtime = match layer {
            Layer::Bare | Layer::Floor | Layer::None => None,
            Layer::Runtime => Some(spec.name.clone()),
            Layer::Engine if spec.name == "docker" => Some(spec.runtime.clone().unwrap_or("runc".into())),
            Layer::Engine => Some(spec.runtime.clone().unwrap_or("crun".into())),
        };
        let label = spec.shown();
        Ok(Entry {
            label,
            spec,
            layer,
            ladder,
            twin_of: None,
            runtime,
            launch: Nanos(micros * 1000),
            offers: vec![Need::Launch],
            only_in: Vec::new(),
            variant_of: None,
            inherited: Default::default(),
        })
    };
    let plan = make(Request {
        experiments: vec!["start"],
        subjects: SUBJECTS.into_iter().map(entry).collect::<Result<_>>()?,
        chosen: Vec::new(),
        seed,
        rounds: Rounds::Fixed(ROUNDS),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
        trial: None,
    });
    ensure!(plan.cells.len() == CELLS, "the plan has {} cells", plan.cells.len());
    Ok(plan)
}

/// A run as the program writes it, without the waiting.
fn write(directory: &Path, seed: u64) -> Result<()> {
    let plan = plan(seed)?;
    let environment = Environment {
        run: "0123abcd".into(),
        host: "bench".into(),
        timer: Timer { step: 30, cost: 30 },
        ..Environment::default()
    };
    let mut writer = record::create(directory, "0123abcd", &environment, &plan)?;
    let mut scripted = Scripted { rng: Rng::for_stream(seed, u64::MAX), now: 1_000_000_000_000 };
    for round in 0..plan.warmups + plan.rounds {
        writer.begin_round(round)?;
        let mut predecessor = None;
        for (position, cell) in plan.order(round).into_iter().enumerate() {
            let outcome = Cow::Owned(scripted.outcome(&plan, cell));
            writer.sample(&Record { cell, round, position, predecessor, started: 0, outcome })?;
            predecessor = Some(cell);
        }
        let context = RoundContext {
            steal: Some(0.001),
            busy: Some(scripted.rng.uniform()),
            load: Some(0.8),
            cpu_pressure: Some(0.05),
            containers: Some(0),
            ..RoundContext::default()
        };
        writer.end_round(round, &context)?;
    }
    Ok(())
}

/// Plausible samples: log-normal around the subject's own time, one spike in a hundred, one failure in five
/// hundred.
struct Scripted {
    rng: Rng,
    now: u64,
}

impl Scripted {
    fn outcome(&mut self, plan: &Plan, cell: usize) -> Outcome {
        let planned = &plan.cells[cell];
        let subject = &plan.subjects[planned.subject];
        let idle = if planned.setting.get("prestate") == Some("idle") { 1.8 } else { 1.0 };
        let spike = if self.rng.uniform() < 0.01 { 2.5 } else { 1.0 };
        let returned = subject.launch.0 as f64 * idle * spike * (0.08 * self.rng.standard_normal()).exp();
        if subject.layer >= Layer::Runtime && self.rng.uniform() < 0.002 {
            let reason = format!("`{} run` ended with exit code 126", subject.spec.name);
            let words = b"error during container init: open /proc/self/fd: no such file or directory";
            let failure = Failure::new(FailureClass::Crash, reason).with_words(words);
            return Outcome::Failed(Failure { took: Nanos(returned as i64), ..failure });
        }
        let from = self.now;
        self.now += 2 * returned as u64;
        let at = |share: f64| Stamp(from + (returned * share) as u64);
        let gone = if subject.layer == Layer::Engine { 1.0 + 0.02 * self.rng.uniform() } else { 1.0 };
        let stamps = [(SPAWN, 0.0), (FIRST, 0.55), (MAIN, 0.56), (READY, 0.6), (RETURNED, 1.0), (GONE, gone)];
        let engine = if subject.spec.name == "docker" { 0.4 } else { 0.0 };
        let counters = [
            (CLIENT_CPU, (returned * 0.3) as i64),
            (ENGINE_CPU, (returned * engine) as i64),
            (PROCESSES, 1 + 6 * subject.layer as i64),
        ];
        let treatment = [
            ("namespaces", format!("{:?}", subject.layer)),
            ("seccomp", if subject.spec.get("seccomp") == Some("off") { "0" } else { "2" }.to_owned()),
            ("root", if subject.layer >= Layer::Floor { "overlay" } else { "ext4" }.to_owned()),
            ("network", subject.spec.get("net").unwrap_or("default").to_owned()),
        ];
        let stamps = stamps.map(|(name, share)| (name, at(share)));
        let mut sample = Sample::default().with(stamps).with(counters);
        sample.treatment.extend(treatment.map(|(name, fact)| (name.into(), fact)));
        Outcome::Measured(sample)
    }
}
