//! Does a quota grant what it says, by the cgroup's counters and by the process's own account? The yardstick
//! is the model: a load that never ends uses its quota, and one that is busy for 50 ms of every 100 ms is
//! throttled for 40 ms in every period with a quota of a tenth of a CPU.

use anyhow::{Context, Result};
use dunnage::experiment::throttle::Measured;
use dunnage::measure::{throttle, worked};
use dunnage::orders::work::{Load, Throttle};
use dunnage::units::{Nanos, Unit};

use crate::bench::{Bench, explained};
use crate::table::Row;

const WINDOW: i64 = 10_000;
const SUBJECTS: [&str; 3] = ["bare", "floor", "docker"];
const QUOTAS: [&str; 3] = ["0.1", "0.5", "1.0"];

/// One window for each subject and quota, in each round.
pub fn against_the_model(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for subject in SUBJECTS {
        for cpus in QUOTAS {
            let name = format!("throttle {subject}:cpus={cpus}");
            rows.push(match windows(bench, rounds, subject, cpus, Load::Continuous) {
                Ok(all) => usage(&name, cpus.parse()?, &all),
                Err(error) => Row::not_measured(&name, &format!("{error:#}")),
            });
        }
        let name = format!("throttle {subject}, 50/50 by the clock");
        rows.push(match windows(bench, rounds, subject, "0.1", Load::Alternating) {
            Ok(all) => each(&name, &all),
            Err(error) => Row::not_measured(&name, &format!("{error:#}")),
        });
    }
    Ok(rows)
}

fn windows(bench: &mut Bench, rounds: usize, subject: &str, cpus: &str, load: Load) -> Result<Vec<Measured>> {
    let mut subject = bench.subject(&format!("{subject}:cpus={cpus}"))?;
    let window = Nanos::from_millis(WINDOW);
    let [busy, every] = [50, 100].map(Nanos::from_millis);
    let order = Throttle { load, busy, every, threads: 1, length: window };
    let takes = window + Nanos::from_millis(1000);
    let mut one = || -> Result<Measured> {
        let (launch, done) = worked(subject.as_mut(), &bench.run, (order, takes)).map_err(explained)?;
        let sample =
            throttle::sample(&launch, &order, done).map_err(|failure| anyhow::anyhow!("{failure}"))?;
        Measured::of(&sample).context("the probe did not report what it measured")
    };
    (0..rounds).map(|_| one()).collect()
}

fn usage(name: &str, quota: f64, all: &[Measured]) -> Row {
    let by = |share: fn(&Measured) -> Option<f64>| {
        all.iter().map(|one| share(one).map_or(f64::NAN, |share| share / quota)).collect::<Vec<_>>()
    };
    let (cgroup, own) = (by(Measured::usage_share), by(|one| Some(one.own_share())));
    let reached = cgroup.iter().chain(&own).all(|ratio| (ratio - 1.0).abs() <= 0.01);
    let shown = |all: &[f64]| all.iter().map(|ratio| format!("{ratio:.4}")).collect::<Vec<_>>().join(" ");
    let taken = format!("{} of the quota by the cgroup, {} by rusage", shown(&cgroup), shown(&own));
    Row::of_amount(name, taken, all.len(), "0.99 to 1.01", reached)
}

fn each(name: &str, all: &[Measured]) -> Row {
    let throttled =
        |one: &Measured| one.throttling.map_or((0, 0), |[periods, throttled, _]| (throttled, periods));
    let wait = |one: &Measured| one.throttled_per_period().unwrap_or(f64::NAN);
    let reached =
        all.iter().all(|one| throttled(one).0 == throttled(one).1 && (wait(one) - 0.040).abs() <= 0.003);
    let shown = |one: &Measured| {
        let (throttled, periods) = throttled(one);
        format!("{throttled} of {periods} periods, {} each", Unit::Seconds.format(wait(one)))
    };
    let taken = all.iter().map(shown).collect::<Vec<_>>().join("; ");
    Row::of_amount(name, taken, all.len(), "all, 37 to 43 ms", reached)
}
