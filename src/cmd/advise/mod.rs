//! `dunnage advise cpu`: watches a running container and suggests a CPU limit.
//!
//! Finds the container, watches it, replays its usage under other limits, and reports. It starts nothing and does not change the
//! container.

mod document;
pub(super) mod probes;

use std::path::Path;

use anyhow::{Context, Result, anyhow};

use self::document::Advised;
use super::show::{self, Output, show};
use crate::advise::recommend::{self, Watched};
use crate::advise::{Cpus, Quota};
use crate::cli;
use crate::exit::{self, Special, nothing, usage};
use crate::subject::spec::parse_duration;
use crate::sys::signals::Interrupts;
use crate::units::Nanos;
use crate::watch::sampler::{self, End, Lost, Pace};
use crate::watch::target::{self, Target};

/// Fewer than fifty periods do not give a p99.
const LEAST: Nanos = Nanos::from_millis(5_000);
/// A replay keeps all readings in memory, so a day would be too much.
const MOST: Nanos = Nanos::from_millis(3_600_000);
/// Below a tick of the slowest kernels in use, nothing new is seen.
const FINEST: Nanos = Nanos::from_millis(1);
/// The period of most limits. With less than one reading in each, bursts are not seen.
const COARSEST: Nanos = Quota::USUAL_PERIOD;

/// Runs the verb. Ctrl-C ends the watch early, with advice on the usage so far; if that is too short, the exit code is 5.
pub fn run(options: &cli::AdviseCpu) -> Result<i32> {
    show::known::<Advised>(&options.format)?;
    let pace = pace(options)?;
    let cpus = std::thread::available_parallelism().context("cannot find the number of CPUs")?.get();
    let asked = options.limits.iter().map(|text| limit(text)).collect::<Result<Vec<_>>>()?;
    let interrupts = Interrupts::install().context("cannot collect signals")?;
    let target = target::find(&options.container, options.engine)?;
    if interrupts.asked() {
        return Err(Special::Interrupted.into());
    }
    let (name, Pace { duration, every }) = (&target.name, pace);
    super::tell(&format!("watching `{name}` for {duration}, every {every}; press Ctrl-C to stop early"));
    let seen = sampler::watch(&target.group, target.process.as_ref(), pace, &interrupts)
        .map_err(|lost| of_lost(&target, lost))?;
    let time = seen.usage.duration();
    if seen.end == End::Asked && time < LEAST {
        super::tell(&format!("watched for only {time}: advice needs at least {LEAST}"));
        return Err(Special::Interrupted.into());
    }
    if seen.usage.total() == Nanos(0) {
        return Err(nothing(format!(
            "`{name}` used no CPU time in {time}\n\nhint: watch it while it is busy"
        )));
    }
    let watched = Watched {
        usage: seen.usage.clone(),
        limit: seen.in_force(),
        throttling: seen.throttling,
        kernel: sampler::kernel(),
        cpus,
    };
    let advice = recommend::advise(&watched, &asked).context("the watch did not cover a whole period")?;
    let advised = Advised { target, pace, seen, advice };
    show(&advised, &options.format, Path::new("."), Output::default())?;
    Ok(exit::FINE)
}

fn of_lost(target: &Target, lost: Lost) -> anyhow::Error {
    let name = &target.name;
    match lost {
        Lost::Ended(after) if after > LEAST => anyhow!(
            "no advice on `{name}`: {lost}\n\nhint: watch it for a shorter time with `--for`, or while it has more to do"
        ),
        Lost::Ended(_) => anyhow!(
            "no advice on `{name}`: {lost}\n\nhint: watch it while it has more to do; advice needs at least {LEAST}"
        ),
        Lost::Nothing => Special::Interrupted.into(),
        Lost::Unreadable(..) | Lost::Uncounted(_) => anyhow!("no advice on `{name}`: {lost}"),
    }
}

fn pace(options: &cli::AdviseCpu) -> Result<Pace> {
    let duration = time("--for", &options.watch, (LEAST, MOST), "30s")?;
    let every = time("--every", &options.every, (FINEST, COARSEST), "20ms")?;
    Ok(Pace { duration, every })
}

fn time(option: &str, text: &str, (least, most): (Nanos, Nanos), example: &str) -> Result<Nanos> {
    let time = parse_duration(text).map(Nanos::from_seconds);
    time.filter(|time| (least..=most).contains(time)).ok_or_else(|| {
        let hint = match text.parse::<f64>() {
            Ok(number) if number > 0.0 => format!("the unit is missing: `{text}s` or `{text}ms`; "),
            _ => String::new(),
        };
        usage(format!("invalid value `{option} {text}`\n\nhint: {hint}use a time from {least} to {most}, such as `{example}`"))
    })
}

/// A limit that the kernel can keep: at least a millisecond in each period, and no more CPUs than any machine has.
fn limit(text: &str) -> Result<Cpus> {
    let number: Option<f64> =
        text.parse().ok().filter(|_| text.chars().all(|c| c.is_ascii_digit() || c == '.'));
    number.filter(|cpus| (0.01..=4096.0).contains(cpus)).map(Cpus).ok_or_else(|| {
        usage(format!(
            "invalid value `--limit {text}`\n\nhint: use a number of CPUs from 0.01 to 4096, such as `0.5`"
        ))
    })
}
