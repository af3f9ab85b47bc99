//! The tables of `syscall`: which key removes the difference from the baseline, and what the kernel does
//! about filters and speculation inside each subject. This module only words what `cause` computed and what
//! was read inside.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::{self, Cause, Found, Tried};
use super::names::{INDIRECT_BRANCH, SECCOMP_FILTERS, STORE_BYPASS, VDSO};
use crate::distinct;
use crate::experiment::fixed_work::reason;
use crate::group::in_groups;
use crate::launch::names::{SECCOMP, SECCOMP_INSTRUCTIONS};
use crate::names::Fact;
use crate::text::listed;
use crate::units::{Unit, counted};
use crate::verdict::View;
use crate::verdict::finding::Finding;
use crate::verdict::kind::Kind;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen, notes};

const NAME: &str = super::NAME;
/// The fixed work, in words.
const WORK: &str = "a fixed number of calls";
/// If a cause was not resolved, shares below this are counted, not listed.
const LISTED: f64 = 0.1;

/// The columns of the answer: subject and call, by how much it is slower, and because of what.
const ANSWER: [usize; 5] = [0, 1, 2, 3, 5];

/// All tables.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    [Some(causes(view)), conditions(view)].into_iter().flatten().collect()
}

fn causes(view: &View<'_>) -> ExperimentTable {
    let found = cause::causes(view);
    let beside = view.beside_baseline(NAME).into_iter();
    let waits: Vec<String> =
        beside.filter_map(|(cell, against)| reason::sentence(view, [cell, against], WORK, "")).collect();
    let notes = [
        (
            !found.is_empty(),
            "a key is named if leaving it out removes at least 80 % of the difference, with its whole 95 % interval; two \
             keys if each alone does",
        ),
        (
            found.iter().any(is_below_noise),
            "no cause is named for a difference below the noise floor, which is the difference between twins",
        ),
        (
            !waits.is_empty(),
            "a call's figure is its time when nothing disturbs it, which no CPU limit changes; `elapsed`, of many calls in a \
         row, is what a user waits for, with limits and others on the CPU",
        ),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies).map(|(_, note)| note.to_owned());
    let notes = notes.chain(store_bypass(view, &found)).collect();

    let one_window = distinct(view.cells_of(NAME).map(|cell| &view.cell(cell).setting)).len() <= 1;
    let row = |cause: &Cause<'_>| {
        let finding = cause.finding;
        let call = view.metric(finding.cell, finding.metric).name;
        let setting = &view.cell(finding.cell).setting;
        let call = if one_window { call.to_owned() } else { format!("{call}, {setting}") };
        let (named, share) = named(cause);
        vec![
            Item::Text(view.label(finding.cell).to_owned()),
            Item::Text(call),
            Item::interval(finding.difference, "no numbers"),
            Item::value(of_baseline(view, finding), "no numbers"),
            Item::value(rate(view, finding), "no numbers"),
            Item::Text(named),
            share,
            Item::Text(others(cause)),
        ]
    };
    let columns = vec![
        Column::of_texts("subject"),
        Column::of_texts("call"),
        Column::of_values("difference", Unit::Seconds),
        Column::of_values("of the baseline", Unit::Share),
        Column::of_values("per second", Unit::PerSecond),
        Column::of_texts("cause"),
        Column::of_values("share removed", Unit::Share),
        Column::of_texts("other keys"),
    ];
    let above: Vec<usize> = (0..found.len()).filter(|at| !is_below_noise(&found[*at])).collect();
    let title = "calls slower than the baseline, and what removes the difference".to_owned();
    ExperimentTable {
        rows: found.iter().map(row).collect(),
        screen: match above.is_empty() {
            true => Screen::No,
            false => Screen::Part { columns: ANSWER.to_vec(), rows: above },
        },
        answers: [
            Answer::all("what is slower?", summary(view, &found).into_iter().chain(not_listed(view))),
            Answer::all("who waits?", waits),
        ]
        .concat(),
        notes,
        ..ExperimentTable::new(NAME, "causes", title, columns)
    }
}

/// The difference as a share of the baseline's time.
fn of_baseline(view: &View<'_>, finding: &Finding) -> Option<f64> {
    let baseline = view.median(finding.against, finding.metric).filter(|time| *time > 0.0)?;
    Some(finding.difference?.value / baseline)
}

/// How many of the call alone fit into a second.
fn rate(view: &View<'_>, finding: &Finding) -> Option<f64> {
    view.median(finding.cell, finding.metric).filter(|time| *time > 0.0).map(|time| 1.0 / time)
}

/// A sentence about the calls without a row: that none is slower if all were decided, otherwise how many were
/// not.
fn not_listed(view: &View<'_>) -> Option<String> {
    let asked = cause::asked(view);
    let kinds = asked.iter().map(|finding| finding.kind());
    let mut open = BTreeMap::<&str, usize>::new();
    for kind in kinds.clone().filter(|kind| *kind != Kind::Same && !kind.is_difference()) {
        *open.entry(kind.word()).or_default() += 1;
    }
    let slower = kinds.filter(|kind| kind.is_worse()).count();
    let open: Vec<_> = open.into_iter().map(|(word, count)| format!("{word}: {count}")).collect();
    match (&open[..], slower, asked.len()) {
        (_, _, 0) => Some("no call is compared with the baseline".into()),
        ([], 0, _) => Some("no call is slower than the baseline by an amount that matters".into()),
        ([], ..) => None,
        (open, 0, all) => Some(format!(
            "no call is known to be slower than the baseline, but not all were decided; of {all} comparisons: {}",
            open.join(", ")
        )),
        (open, _, all) => Some(format!(
            "not all calls were decided; of {all} comparisons of calls with the baseline: {}",
            open.join(", ")
        )),
    }
}

/// How many calls are slower in each subject, and why.
fn summary(view: &View<'_>, found: &[Cause<'_>]) -> Vec<String> {
    let plan = &view.run.plan;
    let subject = |cause: &Cause<'_>| plan.cells[cause.finding.cell].subject;
    let subjects: BTreeSet<_> = found.iter().map(subject).collect();
    let line = |index: usize| {
        let own = found.iter().filter(|cause| subject(cause) == index);
        let (hidden, above): (Vec<&Cause<'_>>, Vec<_>) = own.partition(|cause| is_below_noise(cause));
        let mut known = BTreeMap::<String, usize>::new();
        let (found, unknown): (Vec<&Cause<'_>>, Vec<_>) =
            above.iter().copied().partition(|cause| matches!(cause.found, Found::One(_) | Found::Each(_)));
        found.iter().for_each(|cause| *known.entry(named(cause).0).or_default() += 1);
        let known = known.iter().map(|(cause, count)| format!("{count} because of {cause}"));
        let rest = match (unknown.len(), found.len()) {
            (0, _) => None,
            (_, 0) => Some("no cause found".to_owned()),
            (calls, _) => Some(format!("no cause found for {calls}")),
        };
        let told = listed(known.chain(rest), ", ");
        let are = |count: usize| if count == 1 { "is" } else { "are" };
        let slower = match above.len() {
            0 => "no call is slower than the baseline by more than the noise floor".to_owned(),
            calls => format!(
                "{} {} slower than the baseline by more than the noise floor: {told}",
                counted(calls, "call"),
                are(calls)
            ),
        };
        let below = match hidden.len() {
            0 => String::new(),
            calls => format!("; {calls} by no more than that"),
        };
        format!("{}: {slower}{below}", plan.subjects[index].label)
    };
    subjects.into_iter().map(line).collect()
}

fn is_below_noise(cause: &Cause<'_>) -> bool {
    cause.found == Found::BelowNoise
}

fn shown(tried: &Tried) -> String {
    format!("{}={}", tried.key, tried.value)
}

/// The cause in words, and the share that it removes.
fn named(cause: &Cause<'_>) -> (String, Item) {
    let nothing = |why: &str| Item::Nothing(why.to_owned());
    match &cause.found {
        Found::One(index) => {
            let tried = &cause.tried[*index];
            (tried.key.clone(), Item::interval(tried.removed, "no share"))
        }
        Found::Each(all) => {
            let keys: Vec<_> = all.iter().map(|&index| cause.tried[index].key.as_str()).collect();
            (format!("{} together", keys.join(" and ")), nothing("each alone removes it"))
        }
        Found::NotResolved => ("not resolved".into(), nothing("no key removes 80 %")),
        Found::NotTried => ("not tried".into(), nothing("nothing was left out")),
        Found::BelowNoise => ("not named".into(), nothing("not above the noise floor")),
    }
}

/// The other keys that were left out: noteworthy shares, the largest first, or that there were none.
fn others(cause: &Cause<'_>) -> String {
    let is_named = |index: &usize| matches!(&cause.found, Found::One(one) if one == index);
    let all = (0..cause.tried.len()).filter(|index| !is_named(index)).map(|index| &cause.tried[index]);
    let (known, unknown): (Vec<_>, Vec<_>) = all.partition(|tried| tried.removed.is_some());
    let value = |tried: &Tried| tried.removed.map_or(0.0, |removed| removed.value);
    let (mut large, small): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|tried| value(tried).abs() >= LISTED);
    large.sort_by(|one, other| value(other).abs().total_cmp(&value(one).abs()));
    let percent =
        |tried: &&Tried| format!("{} {:.0} %", shown(tried), 100.0 * value(tried)).replace('-', "−");
    let mut words: Vec<_> = large.iter().map(percent).collect();
    match &small[..] {
        [only] if words.is_empty() => words.push(format!("{} below 10 %", shown(only))),
        several if words.is_empty() && !several.is_empty() => {
            words.push(format!("{} others below 10 %", several.len()));
        }
        _ => {}
    }
    words.extend(unknown.iter().map(|tried| format!("{} without numbers", shown(tried))));
    words.join(", ")
}

/// What was found inside a cell, in the last round with a sample.
fn fact<'a>(view: &View<'a>, cell: usize, name: Fact) -> Option<&'a str> {
    view.run.facts(cell, name).next_back()?
}

/// The filter's mechanism in older kernels, if it is active.
fn store_bypass(view: &View<'_>, causes: &[Cause<'_>]) -> Option<String> {
    let differs = |cause: &&Cause<'_>| {
        let filter = matches!(cause.found, Found::One(index) if cause.tried[index].key == "seccomp");
        let [own, bare] =
            [cause.finding.cell, cause.finding.against].map(|cell| fact(view, cell, STORE_BYPASS));
        filter && own.is_some() && bare.is_some() && own != bare
    };
    let cause = causes.iter().find(differs)?;
    let state = fact(view, cause.finding.cell, STORE_BYPASS)?;
    Some(format!(
        "with the filter, the kernel treats speculative store bypass as `{state}`, as Linux before 5.16 does for every \
         filtered process; that disappears with seccomp too, not only the filter's instructions"
    ))
}

/// One row per subject; none if no sample has facts.
fn conditions(view: &View<'_>) -> Option<ExperimentTable> {
    const FACTS: [(Fact, &str); 6] = [
        (SECCOMP, "seccomp mode"),
        (SECCOMP_FILTERS, "filters"),
        (SECCOMP_INSTRUCTIONS, "instructions"),
        (STORE_BYPASS, "store bypass"),
        (INDIRECT_BRANCH, "indirect branches"),
        (VDSO, "vDSO"),
    ];
    let subject = |cell: &usize| view.cell(*cell).subject;
    let originals = view.cells_of(NAME).filter(|cell| view.plan().is_original(subject(cell)));
    let row = |(_, own): (usize, Vec<usize>)| {
        let facts = FACTS.map(|(name, _)| fact(view, own[0], name));
        let items = facts.map(|fact| Item::text(fact, "not read"));
        let label = Item::Text(view.label(own[0]).to_owned());
        facts.iter().any(Option::is_some).then(|| [label].into_iter().chain(items).collect())
    };
    let rows: Vec<_> = in_groups(originals, subject).into_iter().filter_map(row).collect();
    let mut columns = vec![Column::of_texts("subject")];
    columns.extend(FACTS.map(|(_, title)| Column::of_texts(title)));
    let title = "what a system call goes through inside each subject".to_owned();
    (!rows.is_empty()).then(|| ExperimentTable {
        rows,
        notes: notes([
            "store bypass and indirect branches in the words of /proc/self/status; before Linux 5.16, seccomp enabled the \
             mitigation of speculative store bypass for every process with a filter",
            "instructions: of all the process's filters, as far as they can be known from outside",
        ]),
        ..ExperimentTable::new(NAME, "conditions", title, columns)
    })
}
