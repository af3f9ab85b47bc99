//! `dns`: names that a program inside resolves, answered in the end by dunnage's resolver on the host.

use dunnage_analysis::launch::names::HELPERS;
use dunnage_orders::network::{Names, Which};

use super::super::sample_of;
use super::wrong;
use crate::experiment::Setting;
use crate::experiment::network::dns::{CONTAINER, FRESH, LASTS, NAMES, is_user_defined, names, which};
use crate::outcome::{Abort, Failure, Sample};
use crate::subject::lookup::Lookup;
use crate::subject::{Need, RunContext, Subject, bare};
use crate::units::Nanos;

/// How much more than the names their loop may take, as a share: writing queries and reading answers.
const LOOP: f64 = 0.2;
/// Of the queries, how many may be lost.
const LOST: f64 = 0.001;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let need = if is_user_defined(setting) { Need::Names } else { Need::Resolver };
    let which = which(setting);
    let host = bare::peer(&run.place);
    let mut lookup = Lookup::begin(subject, &host, (need, Nanos(0)), run)?;
    if which == CONTAINER {
        lookup.join(subject, run)?;
    }
    let before = lookup.queries()?;
    let asked = if which == FRESH { Which::Fresh } else { Which::Repeated };
    let (answer, helpers) = lookup.names(asked, NAMES, LASTS)?;
    let queries = lookup.queries()? - before;
    is_true(&answer.done, which, queries)?;
    let mut sample = sample_of(Vec::new(), &lookup.treatment()?);
    let Names { resolver, count, warm_up, took, wrong, lost, name } = answer.done;
    let counted =
        [(names::RESOLVED, count), (names::WARM_UP, warm_up), (names::WRONG, wrong), (names::LOST, lost)];
    sample.extend(counted.map(|(name, value)| (name, value as i64)));
    sample.extend([(names::TOOK, took.0), (names::QUERIES, queries), (names::HELPER_CPU, helpers.cpu.0)]);
    sample.add(names::NAME_TIME, name);
    sample.extend([(names::RESOLVER, resolver.ip().to_string()), (HELPERS, helpers.names)]);
    Ok(sample)
}

/// Names one after the other are as long as all of them together; each had its own address, few queries were
/// lost, and no cache can have answered for a new name.
fn is_true(done: &Names, which: &str, queries: i64) -> Result<(), Failure> {
    let [count, lost] = [done.count, done.lost].map(|number| number as f64);
    let took = done.took.0 as f64;
    if done.wrong > 0 {
        return Err(wrong(format!("{} of {count} names had another answer", done.wrong)));
    }
    if lost > LOST * count {
        return Err(Failure::environment(format!("{lost} of {count} queries had no answer")));
    }
    if which == FRESH && (queries as f64) < count {
        let reason = format!("dunnage's resolver was asked for {queries} of {count} new names");
        return Err(wrong(reason));
    }
    let mean = done.name.mean().ok_or_else(|| wrong("no name was resolved".into()))?;
    let sum = mean * count;
    // A value of the histogram is known to three digits. A lost query is only in the whole.
    if sum > took * 1.002 || (lost == 0.0 && sum < took * (1.0 - LOOP)) {
        let [mean, sum, took] = [mean, sum, took].map(|nanos| Nanos(nanos as i64));
        return Err(wrong(format!("{count} names of {mean} are {sum}, but all of them took {took}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Distribution, FailureClass};

    fn checked(took: i64, [wrong, lost]: [u64; 2], queries: i64) -> Option<FailureClass> {
        let name = Distribution::of([50_000; 1000]);
        let (resolver, took) = ("192.0.2.1:53".parse().unwrap(), Nanos(took));
        let done = Names { resolver, count: 1000, warm_up: 10, took, wrong, lost, name };
        is_true(&done, FRESH, queries).err().map(|failure| failure.class)
    }

    #[test]
    fn what_cannot_be_true_is_a_failure() {
        let right = 51_000_000;
        assert_eq!(checked(right, [0, 0], 1011), None);
        assert_eq!(checked(right + 200_000_000, [0, 1], 1011), None);
        assert_eq!(checked(right, [1, 0], 1011), Some(FailureClass::WrongOutput));
        assert_eq!(checked(right, [0, 2], 1011), Some(FailureClass::Environment));
        assert_eq!(checked(right, [0, 0], 999), Some(FailureClass::WrongOutput));
        for impossible in [right / 2, right * 2] {
            assert_eq!(checked(impossible, [0, 0], 1011), Some(FailureClass::WrongOutput), "{impossible}");
        }
    }
}
