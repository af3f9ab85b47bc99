//! Is a subject's change the machine's? Yes, if the controls moved the same way at the same run, and the
//! subject moved no further than they did.

use std::collections::BTreeSet;

use super::{Change, SEED, Series, Value};
use crate::stats::{self, Alpha, Rng, Sample};

/// Whether a control moved the same way at the same run: its values on both sides of the change, over the
/// runs of both levels, differ as much as in only a few orders of the runs.
pub(super) fn moved(control: &Series, values: &[Option<Value>], change: &Change) -> bool {
    both_sides(control, values, change)
        .is_some_and(|(runs, cut)| in_its_way(&scaled(&control.values, &runs), cut, change).is_some())
}

/// Whether the subject moved further than a control that moved the same way: their ratio, run by run, changed
/// as well and by more than matters.
pub(super) fn is_beyond(control: &Series, values: &[Option<Value>], change: &Change) -> bool {
    let beyond = || {
        let (runs, cut) = both_sides(control, values, change)?;
        let (own, other) = (logarithms(values, &runs)?, logarithms(&control.values, &runs)?);
        let ratios: Vec<f64> = own.iter().zip(other).map(|(own, other)| own - other).collect();
        let matters = (change.matters / change.levels.0).ln_1p();
        Some(in_its_way(&ratios, cut, change)? > matters)
    };
    beyond().unwrap_or(false)
}

/// The runs of both levels of a change whose values of subject and control are both believed, and how many of
/// them come before it; none if a level has no such run.
fn both_sides(control: &Series, values: &[Option<Value>], change: &Change) -> Option<(Vec<usize>, usize)> {
    let own = usable(values);
    let at = own.iter().position(|&run| run == change.after)?;
    let stretch = &own[at - change.runs.0..at + change.runs.1];
    let believed: BTreeSet<usize> = usable(&control.values).into_iter().collect();
    let runs: Vec<usize> = stretch.iter().copied().filter(|run| believed.contains(run)).collect();
    let cut = runs.iter().filter(|&&run| run < change.after).count();
    (cut > 0 && cut < runs.len()).then_some((runs, cut))
}

/// The absolute difference of values between both sides of a cut, if it has the direction of a change and is
/// as large in only a few orders.
fn in_its_way(values: &[f64], cut: usize, change: &Change) -> Option<f64> {
    let median = |values: &[f64]| Sample::new(values.to_vec()).map_or(f64::NAN, |sample| sample.median());
    let by = median(&values[cut..]) - median(&values[..cut]);
    let same_way = by * (change.levels.1 - change.levels.0) > 0.0;
    let mut rng = Rng::for_stream(SEED, change.after as u64);
    let shown =
        same_way && stats::shifted(values, cut, &mut rng, Alpha::FIVE_PERCENT) <= Alpha::FIVE_PERCENT.get();
    shown.then_some(by.abs())
}

/// The runs whose values decide.
pub(super) fn usable(values: &[Option<Value>]) -> Vec<usize> {
    let believed = |index: &usize| {
        values[*index].is_some_and(|value| !value.is_suspect && value.median.value.is_finite())
    };
    (0..values.len()).filter(believed).collect()
}

/// Values in the form for the search: as logarithms, since changes are proportional; unchanged if one has no
/// logarithm.
pub(super) fn scaled(values: &[Option<Value>], runs: &[usize]) -> Vec<f64> {
    logarithms(values, runs).unwrap_or_else(|| plain(values, runs))
}

fn logarithms(values: &[Option<Value>], runs: &[usize]) -> Option<Vec<f64>> {
    let plain = plain(values, runs);
    plain.iter().all(|value| *value > 0.0).then(|| plain.into_iter().map(f64::ln).collect())
}

fn plain(values: &[Option<Value>], runs: &[usize]) -> Vec<f64> {
    runs.iter().filter_map(|&run| values[run]).map(|value| value.median.value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Estimate;
    use crate::units::Unit;
    use crate::verdict::Kind;

    fn values(of: impl Fn(usize) -> f64) -> Vec<Option<Value>> {
        let value = |run: usize| {
            // A few per cent of noise, the same in every test.
            let noise = 1.0 + 0.02 * Rng::for_stream(9, run as u64).standard_normal();
            let sample = Sample::new(vec![of(run) * noise; 3]).unwrap();
            Some(Value { median: Estimate::of_median(&sample, Alpha::FIVE_PERCENT), is_suspect: false })
        };
        (0..16).map(value).collect()
    }

    fn control(of: impl Fn(usize) -> f64) -> Series {
        Series {
            experiment: "start",
            metric: "returned",
            unit: Unit::Seconds,
            setting: String::new(),
            label: "bare".into(),
            is_control: true,
            values: values(of),
            changes: Vec::new(),
        }
    }

    #[test]
    fn the_machine_is_blamed_only_for_what_moved_the_same_way_at_the_same_run() {
        let step = |run: usize| if run < 8 { 1.0 } else { 1.3 };
        let own = values(step);
        let change = Change {
            before: 7,
            after: 8,
            levels: (1.0, 1.3),
            runs: (8, 8),
            p: 0.001,
            matters: 0.03,
            verdict: Kind::Slower,
            beside: Vec::new(),
        };
        assert!(moved(&control(step), &own, &change));
        assert!(!moved(&control(|_| 1.0), &own, &change));
        assert!(!moved(&control(|run| 2.0 - step(run)), &own, &change), "the other way");
        // It did not move with the machine if it moved by much more; it did if by about as much.
        let further = |share: f64| values(move |run| if run < 8 { 1.0 } else { share });
        let far = Change { levels: (1.0, 1.8), ..change.clone() };
        assert!(moved(&control(step), &further(1.8), &far) && is_beyond(&control(step), &further(1.8), &far));
        let near = Change { levels: (1.0, 1.32), ..change.clone() };
        assert!(!is_beyond(&control(step), &further(1.32), &near));
        assert!(!is_beyond(&control(step), &own, &change));
        // Without a value on one side nothing is shown.
        let mut half = control(step);
        half.values[..8].fill(None);
        assert!(!moved(&half, &own, &change));
    }
}
