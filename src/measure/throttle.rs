//! `throttle`: the probe's load inside, for a window.

use dunnage_orders::work::{Load, Throttle};

use super::{work_sample, worked};
use crate::experiment::Setting;
use crate::experiment::throttle::{AROUND, BURSTS, value, window};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::spec::parse_duration;
use crate::subject::{RunContext, Subject, Work};
use crate::units::Nanos;

/// How much longer than that it may take before it counts as hung.
const LATE: Nanos = Nanos::from_millis(5000);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let (launch, done) = worked(subject, run, &work(setting)?)?;
    let mut sample = work_sample(&launch, &done)?;
    if done.result("usage").is_none() {
        let why = done.note("counters").unwrap_or("its cgroup's counters could not be read");
        sample.missing.push(("usage".into(), why.to_owned()));
    }
    Ok(sample)
}

/// The load of a setting.
fn work(setting: &Setting) -> Result<Work, Failure> {
    let nanos = |name| parse_duration(value(setting, name)).map_or(Nanos(0), Nanos::from_seconds);
    let load = match setting.get("load").unwrap_or(BURSTS) {
        "continuous" => Load::Continuous,
        "bursts" => Load::Bursts,
        "alternating" => Load::Alternating,
        other => return Err(Failure::new(FailureClass::Unsupported, format!("there is no load `{other}`"))),
    };
    let threads = value(setting, "threads").parse().unwrap_or(1);
    let (busy, every, length) = (nanos("busy"), nanos("period"), window(setting));
    Ok(Work::new(Throttle { load, busy, every, threads, length }, length + AROUND + LATE))
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
        assert_eq!(usual.order, Throttle { load: Load::Bursts, busy, every, threads: 1, length }.into());
        assert_eq!(usual.takes, Nanos(15_300_000_000));
        let own = asked("load=alternating;busy=20ms;threads=3;seconds=2");
        let (busy, length) = (Nanos::from_millis(20), Nanos::from_millis(2000));
        assert_eq!(own.order, Throttle { load: Load::Alternating, busy, every, threads: 3, length }.into());
    }
}
