//! `syscall`: calls made by the probe inside, in batches.

use dunnage_orders::work::{Called, Calls, Syscall};

use super::{add_fixed, start, worked};
use crate::experiment::Setting;
use crate::experiment::fixed_work::{FIXED, names as fixed};
use crate::experiment::syscall::{CALLS, fixed_of, names, takes, window};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::{RunContext, Subject};

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let order = Syscall { window: window(setting), fixed: fixed_of(setting).into(), calls: Vec::new() };
    let (launch, done) = worked(subject, run, (order, takes(setting)))?;
    let mut sample = start::sample(&launch)?;
    add(&mut sample, done)?;
    Ok(sample)
}

/// Adds the times, and for each call that failed inside, why it has none.
fn add(sample: &mut Sample, done: Calls) -> Result<(), Failure> {
    sample.add(names::CPU_BOUND, done.cpu as i64);
    for (name, called) in done.each {
        let known = CALLS.iter().find(|own| own.time.text() == name);
        let unknown = || Failure::new(FailureClass::WrongOutput, format!("there is no call `{name}`"));
        let own = known.ok_or_else(unknown)?;
        match called {
            Ok(Called { picoseconds, calls, batches }) => {
                let counted = [(own.time, picoseconds), (own.calls, calls), (own.batches, batches)];
                sample.extend(counted.map(|(name, value)| (name, value as i64)));
            }
            Err(errno) => {
                sample.add(own.error, errno.into());
                let error = std::io::Error::from_raw_os_error(errno);
                sample.lacks([&own.time.text()], &format!("the call failed inside: {error}"));
            }
        }
    }
    let (words, whole) = done.fixed;
    if let Some(whole) = whole {
        add_fixed(sample, FIXED, &whole);
    }
    sample.extend(done.no_counters.map(|why| (fixed::COUNTERS, why)));
    sample.add(names::VDSO, if done.has_vdso { "present" } else { "absent" }.to_owned());
    let status =
        [names::STORE_BYPASS, names::INDIRECT_BRANCH, names::SECCOMP_FILTERS].into_iter().zip(done.status);
    sample.extend(status.filter_map(|(name, fact)| Some((name, fact?))));
    sample.add(fixed::FIXED_WORK, words);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::syscall::METRICS;
    use crate::sys::calls;

    #[test]
    fn every_call_is_a_metric() {
        let mut names: Vec<_> = METRICS[..CALLS.len()].iter().map(|metric| metric.name).collect();
        let mut calls: Vec<_> = calls::ALL.iter().map(|call| call.name).collect();
        names.sort_unstable();
        calls.sort_unstable();
        assert_eq!(names, calls);
    }

    #[test]
    fn a_call_that_failed_inside_is_missing_with_the_reason() {
        let called = Called { picoseconds: 100_000, calls: 1, batches: 1 };
        let each = vec![("stat".to_owned(), Err(libc::ENOSYS)), ("getpid".to_owned(), Ok(called))];
        let (fixed, status) = (("none".to_owned(), None), [None, None, None]);
        let done = Calls { cpu: 0, each, fixed, has_vdso: true, status, no_counters: None };
        let mut sample = Sample::default();
        add(&mut sample, done).unwrap();
        assert_eq!(sample.missing.len(), 1);
        assert_eq!(&*sample.missing[0].0, "stat");
        assert!(sample.missing[0].1.contains("not implemented"), "{}", sample.missing[0].1);
    }
}
