//! A section for each experiment: the question, what the timed interval includes, pictures, its own tables, verdicts,
//! suspects, and the rounds over time.

use super::rounds::rounds;
use super::{compared, own, shows_first_of, spread, warned};
use crate::document::html::NUMBERS;
use crate::document::{Block, Item, Section, Table, Tone};
use crate::report::model::{Experiment, Failure, Report};
use crate::report::picture;
use crate::report::text::{capital, in_brackets, listed};
use crate::report::words::{inside, insides};
use crate::units::counted;

/// Drawings of rounds on the whole page, which keep it below a few megabytes.
const DRAWINGS: usize = 700;
/// Values below them in tables, for the same reason.
const VALUES: usize = 25_000;
/// Metrics without verdicts that fit next to each other on paper.
const BESIDE: usize = 4;

/// The sections of all experiments.
pub(super) fn sections(report: &Report, labels: &[String]) -> Vec<Section> {
    let mut drawn: Vec<Vec<Block>> = report.experiments.iter().map(|_| Vec::new()).collect();
    // The first metric of every experiment comes before the other metrics.
    let (mut left, mut values) = (DRAWINGS, VALUES);
    let deepest = report.experiments.iter().map(|one| one.metrics.len()).max().unwrap_or(0);
    for metric in 0..deepest {
        for (experiment, drawn) in report.experiments.iter().zip(&mut drawn) {
            if experiment.metrics.get(metric).is_none_or(|one| metric > 0 && !one.decisive) {
                continue;
            }
            for (drawings, mut numbers) in rounds(experiment, metric) {
                if drawings.drawings.len() > left {
                    continue;
                }
                left -= drawings.drawings.len();
                match values.checked_sub(drawings.values()) {
                    Some(rest) => values = rest,
                    None => numbers = Table::default(),
                }
                drawn.push(Block::Rounds(drawings));
                drawn.push(Block::hidden(NUMBERS, vec![Block::Table(numbers)]));
            }
        }
    }
    let all = report.experiments.iter().zip(drawn);
    all.map(|(experiment, drawn)| section(report, experiment, labels, drawn)).collect()
}

fn section(report: &Report, experiment: &Experiment, labels: &[String], drawn: Vec<Block>) -> Section {
    let is_told = !experiment.speaks_for_itself();
    let of = |decisive: bool| {
        let all = experiment.metrics.iter().enumerate();
        all.filter(|(_, one)| one.decisive == decisive).map(|(index, _)| index).collect::<Vec<_>>()
    };
    let settings = || (0..experiment.settings.len()).filter(|_| is_told);
    let (decisive, context) = (of(true), of(false));
    let tables = |metrics: &[usize]| -> Vec<Block> {
        let all = metrics.iter().flat_map(|metric| settings().map(move |setting| (setting, *metric)));
        all.map(|(setting, metric)| Block::Table(compared::verdicts(experiment, setting, metric))).collect()
    };
    let first = usize::from(decisive.first() == Some(&0));
    let beside = settings().flat_map(|setting| context.chunks(BESIDE).map(move |metrics| (setting, metrics)));
    let context =
        beside.map(|(setting, metrics)| Block::Table(compared::context(experiment, setting, metrics)));
    let suspects =
        report.suspects.iter().enumerate().filter(|(_, one)| one.experiment == Some(experiment.name));
    let suspects = suspects
        .map(|(index, one)| Item::of(&one.evidence).marked(Tone::Alarm, format!("Suspect {}", index + 1)));
    let failures = report.failures.iter().filter(|one| one.experiment == experiment.name).map(failed);
    let warnings = warned(report, Some(experiment.name));
    let is_measured = |metric: &usize| experiment.rows().any(|(_, _, row)| row.value(*metric).is_some());
    let measured = (0..experiment.metrics.len()).filter(is_measured).map(|index| &experiment.metrics[index]);
    let inside = measured.map(|metric| (metric.name.to_owned(), inside(metric)));
    let skipped = usize::from(shows_first_of(report, experiment));
    let pictures = picture::of_experiment(report, experiment).into_iter().skip(skipped);
    let pairs = |wanted: fn(usize) -> bool| -> Vec<Block> {
        let all = if is_told { compared::pairs(experiment, wanted) } else { Vec::new() };
        all.into_iter().map(Block::Table).collect()
    };
    let mut blocks = vec![Block::words(capital(experiment.question))];
    blocks.extend(experiment.rounds.map(|rounds| Block::note(format!("In {rounds} of the planned rounds."))));
    blocks.push(Block::List(suspects.collect()));
    blocks.push(Block::hidden(insides(&experiment.metrics), vec![Block::Facts(inside.collect())]));
    blocks.extend(own::factors(experiment));
    blocks.extend(pictures.map(Block::picture));
    blocks.extend(own::experiment_tables(&experiment.experiment_tables, labels));
    blocks.extend(own::prices(experiment).into_iter().map(Block::Table));
    let too_few = experiment.too_few().filter(|_| is_told).map(|(have, need)| {
        let is = if have == 1 { "is" } else { "are" };
        let have = counted(have, "round");
        let text = format!("no verdicts: there {is} {have}, and this many comparisons need {need}");
        Block::Words(Tone::Open, text)
    });
    let shares = settings().filter_map(|setting| compared::floor_shares(experiment, setting));
    let verdicts = too_few.into_iter().chain(tables(&decisive[..first])).chain(shares).collect();
    blocks.extend(Block::titled("Verdicts", verdicts));
    blocks.extend(Block::titled("Failures", vec![Block::List(failures.collect())]));
    let counted_warnings = match warnings.iter().map(|one| one.details.len()).sum::<usize>() {
        0 => String::new(),
        count => format!(" ({count})"),
    };
    blocks.extend([
        Block::folded(format!("Warnings{counted_warnings}"), vec![Block::List(warnings)]),
        spread::far(experiment),
        Block::folded("The other metrics with verdicts", tables(&decisive[first..])),
        Block::folded("Parts and CPU time, for context", context.collect()),
        Block::folded("Differences between subjects, and their causes", pairs(|metric| metric == 0)),
        Block::hidden("Differences in the other metrics", pairs(|metric| metric > 0)),
    ]);
    blocks.push(spread::means(experiment));
    if is_told {
        blocks.push(Block::folded("Noise floor", vec![Block::Table(compared::noise(experiment))]));
    }
    let how = Block::note(
        "All rounds in order, from left to right. Each drawing has its own axis, whose ends are shown at its side; the \
         dotted line is the median. Point at a round to see its value. Spikes and drift show here.",
    );
    if !drawn.is_empty() {
        blocks.push(Block::hidden("Rounds over time", [how].into_iter().chain(drawn).collect()));
    }
    Section { name: experiment.name.into(), title: experiment.name.into(), blocks }
}

fn failed(one: &Failure) -> Item {
    let settings = in_brackets(&listed(one.settings.iter().filter(|one| !one.is_empty()), ", "));
    let often = format!("{} of {}", one.times, counted(one.planned, "sample"));
    let item = Item::of(&one.reason).named(format!("`{}`{settings}: {}, {often}", one.label, one.class));
    Item { subject: Some(one.label.clone()), ..item }
}
