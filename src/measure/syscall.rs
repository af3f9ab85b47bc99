//! `syscall`: calls made by the probe inside, in batches.

use dunnage_orders::work::Syscall;

use super::{work_sample, worked};
use crate::experiment::Setting;
use crate::experiment::syscall::{fixed_of, takes, window};
use crate::outcome::{Abort, Sample};
use crate::subject::{RunContext, Subject, Work};
use crate::sys::calls;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let order = Syscall { window: window(setting), fixed: fixed_of(setting).into(), calls: Vec::new() };
    let (launch, done) = worked(subject, run, &Work::new(order, takes(setting)))?;
    Ok(with_failures(work_sample(&launch, &done)?))
}

/// Adds, for each call that failed inside, why it has no value.
fn with_failures(mut sample: Sample) -> Sample {
    for call in calls::ALL {
        if let Some(errno) = sample.counter(&format!("{}.errno", call.name)) {
            let error = std::io::Error::from_raw_os_error(errno as i32);
            sample.missing.push((call.name.into(), format!("the call failed inside: {error}")));
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::syscall::{CALLS, METRICS};

    #[test]
    fn every_call_is_a_metric() {
        let mut names: Vec<_> = METRICS[..CALLS].iter().map(|metric| metric.name).collect();
        let mut calls: Vec<_> = calls::ALL.iter().map(|call| call.name).collect();
        names.sort_unstable();
        calls.sort_unstable();
        assert_eq!(names, calls);
    }

    #[test]
    fn a_call_that_failed_inside_is_missing_with_the_reason() {
        let counters = vec![("stat.errno".into(), i64::from(libc::ENOSYS)), ("getpid".into(), 100_000)];
        let sample = with_failures(Sample { counters, ..Sample::default() });
        assert_eq!(sample.missing.len(), 1);
        assert_eq!(&*sample.missing[0].0, "stat");
        assert!(sample.missing[0].1.contains("not implemented"), "{}", sample.missing[0].1);
    }
}
