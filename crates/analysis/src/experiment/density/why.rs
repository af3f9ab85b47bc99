//! Why are bursts of starts slow? One thing is left out of an engine at a time, and it is seen how much quicker they are without it:
//! with `--why`, or where the user named such a subject too.

use super::ceiling::{Cause, ceiling};
use super::of::{Of, estimate, setting};
use super::{NAME, at_once};
use crate::experiment::syscall::cause::others;
use crate::stats::{self, Estimate};
use crate::text::estimated;
use crate::units::Unit;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item};

/// Only what makes starts at least so many times as frequent is named as the cause.
const QUICKER: f64 = 1.1;

/// A subject that lacks one thing.
struct Without {
    /// What: `net=none`.
    what: String,
    cell: usize,
    /// How many times as many starts a second there are, from round to round.
    ratio: Option<Estimate>,
    /// What limits its starts.
    cause: Option<Cause>,
}

impl Without {
    fn is_quicker(&self) -> bool {
        self.ratio.and_then(|ratio| ratio.interval).is_some_and(|one| one.low >= QUICKER)
    }
}

/// The burst with most at once, without each thing that was left out.
fn tried(own: &Of<'_>) -> Vec<Without> {
    let Some(most) = own.bursts.last().copied() else { return Vec::new() };
    let alone = own.of_series("start").map(|one| one.value);
    let one = |(key, value, cell): (String, String, usize)| {
        // What it takes alone was measured with everything: it is at most that.
        let found = own.seen(cell).zip(alone).map(|(seen, alone)| ceiling(&seen, alone, None).cause);
        Without { what: format!("{key}={value}"), cell, ratio: ratio(own, cell, most), cause: found }
    };
    others(own.view.plan(), most).into_iter().map(one).collect()
}

/// By how much one burst is more frequent than another, over the rounds in which both are.
fn ratio(own: &Of<'_>, cell: usize, most: usize) -> Option<Estimate> {
    let rates = |cell: usize| Some(own.view.columns.get(cell, own.view.metric_index(cell, "rate")?));
    let ratios = rates(cell)?.iter().zip(rates(most)?).filter_map(|(one, other)| Some((*one)? / (*other)?));
    let ratios = ratios.filter(|ratio| ratio.is_finite());
    let ratios = stats::Sample::new(ratios.collect::<Vec<_>>())?;
    Some(Estimate::of_median(&ratios, stats::Alpha::FIVE_PERCENT))
}

/// What starts wait for, if they come near another limit once it is left out.
pub fn freed(own: &Of<'_>) -> Option<String> {
    let reaches = |one: &Without| matches!(one.cause, Some(Cause::Cpus | Cause::Disk));
    let those: Vec<String> = tried(own)
        .into_iter()
        .filter(|one| one.is_quicker() && reaches(one))
        .map(|one| format!("`{}`", one.what))
        .collect();
    (!those.is_empty()).then(|| those.join(" or "))
}

/// What there is without each thing.
pub fn table(subjects: &[Of<'_>]) -> Option<ExperimentTable> {
    let mut rows = Vec::new();
    let mut summary = Vec::new();
    for own in subjects {
        let all = tried(own);
        let Some(most) = own.bursts.last().copied().filter(|_| !all.is_empty()) else { continue };
        let count = at_once(setting(own.view, most));
        let values = |cell: usize| {
            let value =
                |metric| Item::value(estimate(own.view, cell, metric).map(|one| one.value), "not known");
            [value("rate"), value("cpu")]
        };
        let mut row = |what: &str, cell: usize, ratio: Item| {
            let [rate, cpu] = values(cell);
            rows.push(vec![Item::Text(own.label.to_owned()), Item::Text(what.to_owned()), rate, ratio, cpu]);
        };
        row("as it is", most, Item::Value(1.0));
        for one in &all {
            let ratio = one.ratio.map_or(Item::Nothing("not known".to_owned()), Item::Interval);
            row(&one.what, one.cell, ratio);
        }
        // Too few rounds have no interval: then it is what was seen.
        let is_seen = |one: &&Without| {
            one.ratio.is_some_and(|ratio| ratio.interval.is_none() && ratio.value >= QUICKER)
        };
        let quicker = all.iter().filter(|one| one.is_quicker() || is_seen(one));
        let quicker = quicker.filter_map(|one| Some((one, one.ratio?)));
        let best = quicker.max_by(|one, other| one.1.value.total_cmp(&other.1.value));
        summary.extend(best.map(|(one, ratio)| {
            let ratio = estimated(Unit::Ratio, &ratio);
            format!(
                "{} with {count} at once: with `{}` {ratio} times as many starts a second",
                own.label, one.what
            )
        }));
    }
    let columns = vec![
        Column::of_texts("subject"),
        Column::of_texts("with"),
        Column::of_values("starts", Unit::PerSecond),
        Column::of_values("times as many", Unit::Ratio),
        Column::of_values("CPU time of each", Unit::Seconds),
    ];
    (!rows.is_empty()).then(|| ExperimentTable {
        rows,
        answers: Answer::all("what slows them?", summary),
        notes: vec![
            "with most at once, one thing is left out at a time; times as many: from round to round"
                .to_owned(),
        ],
        ..ExperimentTable::new(
            NAME,
            "why",
            "how many starts a second there are without one thing".to_owned(),
            columns,
        )
    })
}
