//! Which quota is enough for bursts? One under which they take as long as without a quota, by the verdicts on the same
//! subject with it and without. Deliberately absent: the cause, which the model shows (`cause`).

use super::BURST;
use super::rows::{Row, quota_in_words};
use crate::group::in_groups;
use crate::text::{estimated, listed};
use crate::units::Unit;
use crate::verdict::{Finding, Kind, View};

/// The finding about the bursts of a row, compared with those of the same subject without a quota.
pub(super) fn against_none<'v>(view: &'v View<'_>, row: &Row) -> Option<&'v Finding> {
    row.measured.quota?;
    let metric = view.metric_index(row.cell, BURST)?;
    let is_free = |cell: usize| view.plan().entry(cell).spec.get("cpus").is_none_or(|cpus| cpus == "none");
    let fits = |one: &&Finding| {
        (one.cell, one.metric) == (row.cell, metric)
            && one.about.relation.names_a_cause()
            && is_free(one.against)
    };
    view.findings.iter().find(fits)
}

/// A sentence for each subject and load: the smallest quota that is enough, the largest that is not, and those about which
/// nothing is decided.
pub(super) fn told_of(view: &View<'_>, rows: &[Row]) -> Vec<String> {
    let compared = rows.iter().filter_map(|row| Some((row, against_none(view, row)?)));
    let sentence = |(name, own): (&[String; 2], Vec<(&Row, &Finding)>)| {
        let such = |kind: Kind, word: &str| -> Vec<String> {
            let own = own.iter().filter(|(_, found)| found.word() == kind.word());
            own.filter_map(|(row, found)| told(row, word, found)).collect()
        };
        // The largest quota comes first.
        let enough = such(Kind::Same, "enough").pop();
        let too_small = such(Kind::Slower, "not enough").into_iter().next();
        let open = such(Kind::Undecided, "undecided");
        let is_too_small = |(_, found): &(&Row, &Finding)| found.word() == Kind::Slower.word();
        let larger = own.first().is_some_and(is_too_small);
        let larger = larger.then(|| "and no larger limit was compared".to_owned());
        let told = listed(enough.into_iter().chain(too_small).chain(open).chain(larger), ", ");
        (!told.is_empty()).then(|| {
            let what = "how much longer the median burst takes than without a limit";
            format!("`{}`, {}: {told}; in brackets: {what}", name[0], name[1])
        })
    };
    in_groups(compared, |(row, _)| &row.name).into_iter().filter_map(sentence).collect()
}

/// `0.5 CPUs are enough (1.2 ms [0.8, 1.5])`.
fn told(row: &Row, word: &str, found: &Finding) -> Option<String> {
    let quota = quota_in_words(row.measured.quota);
    let verb = if quota.ends_with("CPU") { "is" } else { "are" };
    Some(format!("{quota} {verb} {word} ({})", estimated(Unit::Seconds, &found.difference?)))
}
