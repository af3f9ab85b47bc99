//! Does `cpu` reach verdicts for a margin of 1 %, and how soon? The program is run as a user would, on three
//! subjects; and 3 % more work, and none, are planted in one subject, with an argument of the probe that only
//! benchmarks use.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use dunnage::experiment::cpu::CPU;
use dunnage::experiment::{Metric, Weight};
use dunnage::measure::{self, worked};
use dunnage::outcome::Sample;
use dunnage::stats::{self, Alpha, Decision, Pairs, Rng};
use dunnage::units::{Nanos, Unit};

use crate::bench::{Bench, DUNNAGE, explained};
use crate::table::Row;

const PASSES: usize = 100;
/// The planted work, in thousandths.
const PLANTED: u32 = 30;
/// As many rounds as fit into that time with three subjects and their twins.
const ROUNDS: &str = "40";
/// The longest that three subjects may take.
const LONGEST: f64 = 90.0;

/// Verdicts and time of a run on three subjects, and the verdicts about planted work.
pub fn decided(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = planted(bench, rounds)?;
    rows.push(three_subjects(bench)?);
    Ok(rows)
}

fn three_subjects(bench: &Bench) -> Result<Row> {
    let directory = bench.scratch().join("cpu");
    let began = Instant::now();
    let ran = Command::new(DUNNAGE)
        .args([
            "run", "cpu", "-s", "bare", "-s", "floor", "-s", "docker", "--set", "fixed=0", "--rounds",
            ROUNDS, "-o",
        ])
        .arg(&directory)
        .output()?;
    let took = began.elapsed().as_secs_f64();
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let report = Command::new(DUNNAGE).arg("report").arg(&directory).args(["--format", "json"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&report.stdout)?;
    let compared = report["experiments"][0]["comparisons"].as_array().context("no comparisons")?;
    let words = compared.iter().filter_map(|one| one["verdict"].as_str());
    let words: Vec<&str> = words.filter(|word| !["context", "no data"].contains(word)).collect();
    let decided = words.iter().filter(|word| ["same", "slower", "faster"].contains(word)).count();
    let taken = format!("{}, in {took:.0} s", counted(&words));
    let reached = decided == words.len() && took < LONGEST;
    let target = format!("all decided in {LONGEST:.0} s");
    Ok(Row::of_amount("cpu bare floor docker", taken, 1, &target, reached))
}

/// The number of times that each word occurs.
fn counted(words: &[&str]) -> String {
    let mut distinct: Vec<&str> = words.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let one = |word: &&str| format!("{} {word}", words.iter().filter(|other| *other == word).count());
    distinct.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The same subject with its own work, with the same again, and with more, in turns.
fn planted(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let mut subject = bench.subject("bare")?;
    let more = [0, 0, PLANTED];
    let mut samples: [Vec<Sample>; 3] = Default::default();
    let began = Instant::now();
    for round in 0..rounds {
        let mut order = [0, 1, 2];
        Rng::for_stream(bench.seed, round as u64).shuffle(&mut order);
        for side in order {
            let work = measure::cpu::work(PASSES, more[side], 0);
            let (launch, done) = worked(subject.as_mut(), &bench.run, work).map_err(explained)?;
            let sample = measure::cpu::sample(&launch, done);
            samples[side].push(sample.map_err(|failure| anyhow::anyhow!("{failure}"))?);
        }
    }
    let took = Nanos::from_seconds(began.elapsed().as_secs_f64());
    let first = &samples[0][0];
    let is_decisive = |metric: &&Metric| metric.weight == Weight::Verdict && metric.value(first).is_some();
    let decisive = || CPU.metrics.iter().filter(is_decisive);
    let level = Alpha::shared_by(2 * decisive().count());
    let verdict = |metric: &Metric, side: usize| -> Result<&'static str> {
        let column =
            |side: usize| samples[side].iter().map(|sample| metric.value(sample)).collect::<Vec<_>>();
        let pairs = Pairs::align(&column(0), &column(side)).context("no round has both values")?;
        Ok(match stats::compare(&pairs, metric.margin, level).decision {
            Decision::Same => "same",
            Decision::More => "slower",
            Decision::Less => "faster",
            Decision::Undecided { .. } => "undecided",
            Decision::TooFew { .. } => "too few",
        })
    };
    let row = |name: &str, side: usize, wanted: &str| -> Result<Row> {
        let words = decisive().map(|metric| verdict(metric, side)).collect::<Result<Vec<_>>>()?;
        let missed = decisive().zip(&words).filter(|(_, word)| **word != wanted);
        let missed: Vec<_> = missed.map(|(metric, word)| format!("{} {word}", metric.name)).collect();
        let shown = Unit::Seconds.format(took.seconds());
        let taken = format!("{} (3 sides in {shown}) {}", counted(&words), missed.join(", "));
        Ok(Row::of_amount(name, taken, rounds, &format!("all {wanted}"), missed.is_empty()))
    };
    Ok(vec![row("cpu, 0 % planted", 1, "same")?, row("cpu, 3 % planted", 2, "slower")?])
}
