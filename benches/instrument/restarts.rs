//! Does `compare` find no differences between equal subjects? Short runs of the same subjects, each with its
//! own docker daemon, started before the run and ended after it, so that they include what differs between
//! starts; then every pair of runs is compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::resource::daemon::{Engine, daemon};

use crate::bench::{Bench, DUNNAGE};
use crate::table::Row;

/// The rounds of a run, as many as a verdict of a default run needs.
const ROUNDS: &str = "30";
/// The compared subjects have no network.
const NO_NETWORK: &[&str] =
    &["--bridge", "none", "--iptables=false", "--ip-masq=false", "--ip-forward=false"];

/// Makes the runs, and compares every pair.
pub fn equal(bench: &mut Bench, runs: usize) -> Result<Vec<Row>> {
    let kept = std::env::var_os("DUNNAGE_BENCH_KEEP").map(PathBuf::from);
    let scratch = kept.unwrap_or_else(|| bench.scratch().to_owned());
    let places: Vec<PathBuf> = (0..runs).map(|index| scratch.join(format!("restart-{index:02}"))).collect();
    for (index, place) in places.iter().enumerate() {
        eprintln!("bench: restarts: run {} of {runs}", index + 1);
        let (owner, interrupts) = (&bench.run.owner, &bench.run.interrupts);
        let daemon =
            daemon(owner, interrupts, Engine::Docker, NO_NETWORK).map_err(|why| anyhow!("{why:?}"))?;
        let done = measure(&daemon.socket, place);
        daemon.finish().map_err(|why| anyhow!("{why}"))?;
        done?;
    }
    let count = places.len();
    let all = (0..count).flat_map(|old| (old + 1..count).map(move |new| (old, new)));
    let mut pairs = Vec::new();
    for (old, new) in all {
        pairs.push(((old, new), compared(&places[old], &places[new])?));
    }
    let differ = |pairs: &[&Pair]| pairs.iter().filter(|pair| pair.1.differ > 0).count();
    let every: Vec<&Pair> = pairs.iter().collect();
    // Each run in one pair only: these pairs are independent, and a binomial bound holds.
    let apart: Vec<&Pair> = pairs.iter().filter(|((old, new), _)| old % 2 == 0 && *new == old + 1).collect();
    let lines: usize = pairs.iter().map(|(_, found)| found.lines).sum();
    let wrong: usize = pairs.iter().map(|(_, found)| found.differ).sum();
    for ((old, new), found) in &pairs {
        eprintln!("bench: restarts: {old:02} and {new:02}: {}", found.words);
    }
    let row = |name: &str, wrong: usize, of: usize| {
        let most = most_at_five_percent(of);
        let taken = format!("{wrong} of {of} reported as different");
        Row::of_amount(name, taken, runs, &format!("at most {most} of {of}"), wrong <= most)
    };
    Ok(vec![
        row("equal runs, pairs that share none", differ(&apart), apart.len()),
        row("equal runs, every pair", differ(&every), every.len()),
        row("equal runs, every verdict of every pair", wrong, lines),
    ])
}

/// Two runs by number, and the result of comparing them.
type Pair = ((usize, usize), Found);

struct Found {
    lines: usize,
    differ: usize,
    words: String,
}

fn measure(socket: &Path, place: &Path) -> Result<()> {
    let docker = format!("docker:host=\"unix://{}\",net=none", socket.display());
    let output = Command::new(DUNNAGE)
        .args(["run", "start", "--rounds", ROUNDS, "-s", "bare", "-s", "floor", "-s", "crun", "-s"])
        .arg(format!("docker={docker}"))
        .arg("-o")
        .arg(place)
        .output()
        .context("cannot run dunnage")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// The decided verdicts about subjects; controls describe the machine.
fn compared(old: &Path, new: &Path) -> Result<Found> {
    let output = Command::new(DUNNAGE)
        .args(["compare", "--format", "json"])
        .args([old, new])
        .output()
        .context("cannot run dunnage")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let lines = json["experiments"][0]["lines"].as_array().context("a comparison has lines")?;
    let judged: Vec<(&str, &serde_json::Value)> = lines
        .iter()
        .filter(|line| line["control"] == false)
        .filter_map(|line| Some((line["verdict"].as_str()?, line)))
        .filter(|(verdict, _)| *verdict != "context")
        .collect();
    let is_different = |verdict: &str| ["slower", "faster", "mixed"].contains(&verdict);
    let of = |(verdict, line): &(&str, &serde_json::Value)| {
        let change = line["together"]["value"].as_f64().map_or(f64::NAN, |ratio| (ratio - 1.0) * 100.0);
        let [subject, metric] = ["subject", "metric"].map(|key| line[key].as_str().unwrap_or_default());
        format!("{subject} {metric} {change:+.1} % {verdict}")
    };
    Ok(Found {
        lines: judged.len(),
        differ: judged.iter().filter(|(verdict, _)| is_different(verdict)).count(),
        words: judged.iter().map(of).collect::<Vec<_>>().join(", "),
    })
}

/// The largest count that a binomial number with 5 % exceeds at most once in twenty.
fn most_at_five_percent(trials: usize) -> usize {
    let mut term = 0.95f64.powi(trials as i32);
    let mut sum = term;
    let mut count = 0;
    while sum < 0.95 && count < trials {
        term *= (trials - count) as f64 / (count + 1) as f64 * 0.05 / 0.95;
        sum += term;
        count += 1;
    }
    count
}
