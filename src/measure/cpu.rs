//! `cpu`: the passes that the probe makes inside, checked.

use dunnage_orders::work::{Computed, Cpu, Passes};

use super::{add_fixed, start, worked};
use crate::experiment::Setting;
use crate::experiment::cpu::{
    FIXED_PASS, KINDS, PASS, SETTLING, WIDTHS, fixed_of, forget_waiting, names, names_of, passes_of,
    say_what_is_missing,
};
use crate::experiment::fixed_work::names::{COUNTERS, FIXED_WORK, THREADS};
use crate::experiment::fixed_work::{FIXED_ALL, FIXED_ONE};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::{Launch, RunContext, Subject};
use crate::units::Nanos;

/// How many times longer than expected it may take: on a slow CPU, without optimisation, under a small limit.
const PATIENCE: i64 = 50;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let work = work(passes_of(setting), 0, fixed_of(setting));
    let (launch, done) = worked(subject, run, work)?;
    Ok(sample(&launch, done)?)
}

/// The work of a sample with this many passes, and this many of the fixed work in sequence; `more` is only
/// for benchmarks, which plant this many thousandths of additional work.
pub fn work(passes: usize, more: u32, fixed: u32) -> (Cpu, Nanos) {
    let takes = SETTLING.0 + PASS.0 * passes as i64 + FIXED_PASS.0 * i64::from(fixed);
    (Cpu { passes, more: more.into(), fixed: fixed.into() }, Nanos(takes * PATIENCE))
}

/// The sample of passes whose results were right.
pub fn sample(launch: &Launch, done: Computed) -> Result<Sample, Failure> {
    let Computed { passes, fixed: (words, whole), wrong, empty, threads, cpu, huge_pages, no_counters } =
        done;
    if wrong > 0 {
        return Err(Failure::new(FailureClass::WrongOutput, format!("{wrong} passes had a wrong result")));
    }
    let mut sample = start::sample(launch)?;
    sample.extend([
        (names::WRONG, 0),
        (names::EMPTY, empty.0),
        (THREADS, threads as i64),
        (names::CPU_BOUND, cpu as i64),
        (names::HUGE_PAGES, huge_pages.map_or(-1, |bytes| bytes as i64)),
    ]);
    for (names, whole) in [FIXED_ONE, FIXED_ALL].into_iter().zip(whole.iter().flatten()) {
        add_fixed(&mut sample, names, whole);
    }
    for (kind, widths) in KINDS.into_iter().zip(passes) {
        for (width, Passes { wall, waited }) in WIDTHS.into_iter().zip(widths) {
            let names = names_of(kind, width);
            sample.extend([(names.wall, wall), (names.waited, waited)]);
        }
    }
    sample.extend(
        [(FIXED_WORK, Some(words)), (COUNTERS, no_counters)]
            .into_iter()
            .filter_map(|(name, fact)| Some((name, fact?))),
    );
    if launch.message.inside.has_own_kernel() {
        forget_waiting(&mut sample);
    }
    say_what_is_missing(&mut sample);
    Ok(sample)
}
