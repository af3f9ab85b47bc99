//! `throttle`: the probe's load inside, for a window.

use dunnage_orders::work::{Bursts, Carried, Counted, Load, Throttle};

use super::{start, worked};
use crate::experiment::Setting;
use crate::experiment::fixed_work::names::{COUNTERS, THREADS};
use crate::experiment::throttle::{AROUND, BURSTS, names, value, window};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::spec::parse_duration;
use crate::subject::{Launch, RunContext, Subject};
use crate::units::Nanos;

/// How much longer than that it may take before it counts as hung.
const LATE: Nanos = Nanos::from_millis(5000);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let (order, takes) = work(setting)?;
    let (launch, done) = worked(subject, run, (order, takes))?;
    Ok(sample(&launch, &order, done)?)
}

/// The sample of a window.
pub fn sample(launch: &Launch, order: &Throttle, done: Carried) -> Result<Sample, Failure> {
    let mut sample = start::sample(launch)?;
    sample.extend([
        (THREADS, order.threads as i64),
        (names::CPUS, done.cpus as i64),
        (names::ALIGNED, done.aligned.into()),
        (names::WINDOW, done.window.0),
        (names::USER, done.user.0),
        (names::SYSTEM, done.system.0),
        (names::LOAD, order.load as i64),
        (names::BUSY, order.busy.0),
        (names::EVERY, order.every.0),
        (names::LENGTH, order.length.0),
        (names::TURNS, done.turns as i64),
    ]);
    match done.cgroup {
        Ok(Counted { usage, quota, saved }) => {
            sample.add(names::USAGE, usage.0);
            if let Some((quota, throttled)) = quota {
                sample.extend([
                    (names::QUOTA, quota.each),
                    (names::QUOTA_PERIOD, quota.period),
                    (names::QUOTA_BURST, quota.burst),
                    (names::PERIODS, throttled.periods as i64),
                    (names::THROTTLED, throttled.throttled as i64),
                    (names::THROTTLED_TIME, throttled.time.0),
                ]);
            }
            if let Some((periods, time)) = saved {
                sample.extend([(names::BURST_PERIODS, periods as i64), (names::BURST_TIME, time)]);
            }
        }
        Err(why) => {
            sample.lacks(&["usage"], &why);
            sample.add(COUNTERS, why);
        }
    }
    if let Some(Bursts { done, waiting, latency }) = done.bursts {
        sample.extend([(names::BURSTS_DONE, done as i64), (names::BURSTS_WAITING, waiting as i64)]);
        sample.add(names::LATENCY, latency);
    }
    sample.add(names::PERIOD_CPU, done.period_cpu);
    Ok(sample)
}

/// The load of a setting.
fn work(setting: &Setting) -> Result<(Throttle, Nanos), Failure> {
    let nanos = |name| parse_duration(value(setting, name)).map_or(Nanos(0), Nanos::from_seconds);
    let load = match setting.get("load").unwrap_or(BURSTS) {
        "continuous" => Load::Continuous,
        "bursts" => Load::Bursts,
        "alternating" => Load::Alternating,
        other => return Err(Failure::new(FailureClass::Unsupported, format!("there is no load `{other}`"))),
    };
    let threads = value(setting, "threads").parse().unwrap_or(1);
    let (busy, every, length) = (nanos("busy"), nanos("period"), window(setting));
    Ok((Throttle { load, busy, every, threads, length }, length + AROUND + LATE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse_setting;
    use crate::experiment::throttle::THROTTLE;

    #[test]
    fn what_is_not_chosen_is_as_published() {
        let asked = |text: &str| work(&parse_setting(&THROTTLE, text).unwrap()).unwrap();
        let [busy, every, length] = [50, 100, 10_000].map(Nanos::from_millis);
        let usual = asked("load=bursts");
        assert_eq!(usual.0, Throttle { load: Load::Bursts, busy, every, threads: 1, length });
        assert_eq!(usual.1, Nanos(15_300_000_000));
        let own = asked("load=alternating;busy=20ms;threads=3;seconds=2");
        let (busy, length) = (Nanos::from_millis(20), Nanos::from_millis(2000));
        assert_eq!(own.0, Throttle { load: Load::Alternating, busy, every, threads: 3, length });
    }
}
