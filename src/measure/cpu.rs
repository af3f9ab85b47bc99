//! `cpu`: the passes that the probe makes inside, checked.

use dunnage_orders::work::Cpu;

use super::{work_sample, worked};
use crate::experiment::Setting;
use crate::experiment::cpu::{
    FIXED_PASS, PASS, SETTLING, fixed_of, forget_waiting, passes_of, say_what_is_missing,
};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::{RunContext, Subject, Work};
use crate::units::Nanos;

/// How many times longer than expected it may take: on a slow CPU, without optimisation, under a small limit.
const PATIENCE: i64 = 50;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let (launch, done) = worked(subject, run, &work(passes_of(setting), 0, fixed_of(setting)))?;
    let mut sample = work_sample(&launch, &done)?;
    check(&sample)?;
    if launch.message.inside.has_own_kernel() {
        forget_waiting(&mut sample);
    }
    say_what_is_missing(&mut sample);
    Ok(sample)
}

/// The work of a sample with this many passes, and this many of the fixed work in sequence; `more` is only
/// for benchmarks, which plant this many thousandths of additional work.
pub fn work(passes: usize, more: u32, fixed: u32) -> Work {
    let takes = SETTLING.0 + PASS.0 * passes as i64 + FIXED_PASS.0 * i64::from(fixed);
    Work::new(Cpu { passes, more: more.into(), fixed: fixed.into() }, Nanos(takes * PATIENCE))
}

/// Fails if a result of the work was wrong.
fn check(sample: &Sample) -> Result<(), Failure> {
    let reason = match sample.counter("wrong") {
        Some(0) => return Ok(()),
        Some(wrong) => format!("{wrong} passes had a wrong result"),
        None => "the work did not report whether its results were right".to_owned(),
    };
    Err(Failure::new(FailureClass::WrongOutput, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_result_is_a_failure() {
        let mut one = Sample { counters: vec![("empty".into(), 100)], ..Sample::default() };
        assert_eq!(check(&one).unwrap_err().class, FailureClass::WrongOutput);
        one.counters.push(("wrong".into(), 2));
        assert!(check(&one).unwrap_err().reason.starts_with("2 passes"));
        one.counters[1].1 = 0;
        assert_eq!(check(&one), Ok(()));
    }
}
