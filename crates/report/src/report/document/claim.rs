//! One claim, opened: its numbers, what they rest on, and what would turn it round.

use dunnage_analysis::group::in_groups;

use super::own;
use crate::document::{Block, Cell, Column, Document, Item, Table};
use crate::report::model::{Experiment, Report};
use crate::report::summary::Claim;
use crate::report::text::{confidence, estimated, in_brackets, in_percent, joined, with_interval};
use crate::report::words::in_words;
use crate::stats::Estimate;
use crate::units::counted;
use crate::verdict::table::ExperimentTable;
use crate::verdict::{About, Finding, Verdict};

/// Comparisons that are named before what is said of all of them.
const NAMED: usize = 3;

/// The claim with this number, from 1; with one that there is not, all of them.
pub(crate) fn opened(report: &Report, number: usize) -> Document {
    let Some(claim) = number.checked_sub(1).and_then(|at| report.claims.get(at)) else { return all(report) };
    let mut document = Document::titled(&claim.question);
    document.about = vec![claim.experiment.to_owned()];
    document.answer.push(Block::words(&claim.answer));
    let experiment = report.experiments.iter().find(|one| one.name == claim.experiment);
    let Some(experiment) = experiment else { return document };
    if claim.rests_on.is_empty() {
        let labels: Vec<String> = experiment.rows().map(|(.., row)| row.label.clone()).collect();
        let is_its = |one: &&ExperimentTable| one.answers.iter().any(|own| own.text == claim.answer);
        let tables = experiment.experiment_tables.iter().filter(is_its);
        document.answer.extend(own::experiment_tables(tables, &labels));
        return document;
    }
    let found: Vec<&Finding> = claim.rests_on.iter().filter_map(|about| finding(experiment, about)).collect();
    document.answer.push(Block::Table(numbers(experiment, &found)));
    document.answer.push(Block::title("What would turn it round"));
    let placed = |one: &Finding| {
        let setting = in_words(experiment.values_of(&one.about.setting));
        format!("{}{}", sides(one), in_brackets(&setting))
    };
    let turns = found.iter().map(|one| (placed(one), turns(one)));
    // What is the same for several is said once.
    let items = in_groups(turns, |(_, text)| text.clone()).into_iter().map(|(text, all)| {
        let more = all.len().saturating_sub(NAMED);
        let named = all.iter().take(NAMED).map(|(sides, _)| sides.clone());
        let named =
            joined(&named.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>(), "and");
        Item::of(format!("{named}: {text}"))
    });
    document.answer.push(Block::List(items.collect()));
    let metrics = found.iter().map(|one| &experiment.metrics[one.metric]);
    let meanings: Vec<(String, String)> =
        crate::distinct(metrics.map(|metric| (metric.name.to_owned(), metric.meaning.to_owned())));
    document.answer.push(Block::title("What lies inside"));
    document.answer.push(Block::facts(meanings));
    document
}

/// All claims with their numbers.
fn all(report: &Report) -> Document {
    let mut document = Document::titled("Every claim of this run");
    let item = |(at, claim): (usize, &Claim)| {
        Item::of(format!("{}: {} {}", claim.experiment, claim.question, claim.answer))
            .named((at + 1).to_string())
    };
    document.answer.push(Block::List(report.claims.iter().enumerate().map(item).collect()));
    document
}

/// The finding with this subject matter, among pairs and comparisons with the baseline.
fn finding<'a>(experiment: &'a Experiment, about: &About) -> Option<&'a Finding> {
    let pairs = experiment.comparisons.iter().map(|told| &told.finding);
    let rows = experiment.rows().flat_map(|(_, _, row)| row.against_baseline.iter().flatten());
    pairs.chain(rows).find(|one| one.about == *about)
}

fn sides(finding: &Finding) -> String {
    format!("{} against {}", finding.about.subject, finding.about.against)
}

/// Every finding with its numbers.
fn numbers(experiment: &Experiment, found: &[&Finding]) -> Table {
    let columns = vec![
        Column::words("comparison"),
        Column::words("setting"),
        Column::words("metric"),
        Column::numbers("difference"),
        Column::numbers("ratio").with_room(),
        Column::numbers("rounds").with_room(),
        Column::words("verdict"),
    ];
    let mut table = Table::of("What it rests on", columns);
    for one in found {
        let about = &one.about;
        let estimate = |one: &Option<Estimate>, shown: &dyn Fn(&Estimate) -> String| {
            one.as_ref().map_or(Cell::nothing("–"), |one| Cell::words(shown(one)).key(one.value))
        };
        let rounds = one.difference.map_or(0, |own| own.rounds);
        let cells = vec![
            Cell::words(sides(one)),
            Cell::words(in_words(experiment.values_of(&about.setting))),
            Cell::words(about.metric),
            estimate(&one.difference, &|own| estimated(about.unit, own)),
            estimate(&one.ratio, &in_percent),
            Cell::words(rounds.to_string()).key(rounds as f64),
            super::compared::decided(one),
        ];
        table.row(&[&about.subject, &about.against], cells);
    }
    let level = found.iter().find_map(|one| one.difference).map(|one| {
        let level = confidence(one.alpha);
        format!("Medians of the differences round by round, each with its interval at {level}.")
    });
    level.into_iter().fold(table, Table::note)
}

/// What would have to be otherwise for another verdict.
fn turns(finding: &Finding) -> String {
    let unit = finding.about.unit;
    let told = |size: f64| with_interval(unit, size.abs(), None);
    let ends = finding.difference.and_then(|one| one.interval);
    let matters = told(finding.matters.unwrap_or(0.0));
    match (&finding.verdict, ends) {
        (Verdict::Suspect(_), _) => "nothing: its numbers are suspect".to_owned(),
        (Verdict::More | Verdict::Less, Some(ends)) => {
            let nearest = ends.low.abs().min(ends.high.abs());
            format!(
                "if every value of one of them were {} off, it would not be decided; a difference below {matters} would count as none",
                told(nearest)
            )
        }
        (Verdict::Same, Some(ends)) => {
            format!("less than {matters} to matter: the interval reaches {}", told(ends.farthest_end()))
        }
        (Verdict::Undecided { new_run, .. }, Some(ends)) => {
            let more = new_run.as_ref().map_or(String::new(), |one| {
                format!("; a new run of {} might decide it", counted(one.rounds, "round"))
            });
            let most = told(ends.farthest_end());
            format!("it is not decided: at most {most} apart, and {matters} would matter{more}")
        }
        (Verdict::TooFew { have, need }, _) => format!("more rounds: it has {have} and needs {need}"),
        _ => "it has no verdict".to_owned(),
    }
}
