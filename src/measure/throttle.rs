//! `throttle`: the probe's load inside, for a window.

use super::{work_sample, worked};
use crate::experiment::Setting;
use crate::experiment::throttle::{AROUND, BURSTS, NAME, value, window};
use crate::outcome::{Abort, Sample};
use crate::subject::spec::parse_duration;
use crate::subject::{RunContext, Subject, Work};
use crate::units::Nanos;

/// How much longer than that it may take before it counts as hung.
const LATE: Nanos = Nanos::from_millis(5000);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let launch = worked(subject, run, &work(setting))?;
    let mut sample = work_sample(&launch)?;
    let mut lacks = |name: &'static str, why: &str| sample.missing.push((name.into(), why.to_owned()));
    let done = &launch.message.done;
    let told = |name: &str| done.results.iter().any(|(own, _)| own == name);
    if !told("usage") {
        let why = done.notes.iter().find(|(name, _)| name == "counters");
        lacks("usage", why.map_or("its cgroup's counters could not be read", |(_, why)| why));
    }
    Ok(sample)
}

/// The probe's arguments, all times in nanoseconds.
fn work(setting: &Setting) -> Work {
    let nanos =
        |name| parse_duration(value(setting, name)).map_or(Nanos(0), Nanos::from_seconds).0.to_string();
    let words = vec![
        setting.get("load").unwrap_or(BURSTS).to_owned(),
        nanos("busy"),
        nanos("period"),
        value(setting, "threads").to_owned(),
        window(setting).0.to_string(),
    ];
    Work::new(NAME, words, window(setting) + AROUND + LATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse_setting;
    use crate::experiment::throttle::THROTTLE;

    #[test]
    fn what_is_not_chosen_is_as_published() {
        let asked = |text: &str| work(&parse_setting(&THROTTLE, text).unwrap());
        let usual = asked("load=bursts");
        assert_eq!(usual.arguments, ["bursts", "50000000", "100000000", "1", "10000000000"]);
        assert_eq!(usual.takes, Nanos(15_300_000_000));
        let own = asked("load=alternating;busy=20ms;threads=3;seconds=2");
        assert_eq!(own.arguments, ["alternating", "20000000", "100000000", "3", "2000000000"]);
    }
}
