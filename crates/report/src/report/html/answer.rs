//! The answer in one screen: the subjects of the first experiment in their places, and a line for every other.

use super::compared::at_a_glance;
use super::figure::{Figure, figure};
use super::table::Table;
use crate::report::model::{Experiment, Report, Sentence, Topic};
use crate::report::picture;
use crate::report::text::{percent, with_interval};

/// Settings that fit beside each other.
const BESIDE: usize = 2;

/// Pieces that are named.
const DEAREST: usize = 4;

/// What the page says first.
#[derive(Debug)]
pub(super) struct Answer {
    /// The experiment that it is about.
    pub experiment: &'static str,
    /// The question of it.
    pub question: &'static str,
    pub metric: &'static str,
    /// What lies inside the interval.
    pub meaning: &'static str,
    /// What verdicts mean here.
    pub legend: String,
    /// A table a setting.
    pub tables: Vec<Table>,
    /// The ladder, or else what shows most.
    pub figure: Option<Figure>,
    /// What it means, in sentences.
    pub sentences: Vec<String>,
    /// Settings that stand in the section alone.
    pub left_out: usize,
    /// The other experiments, each in a few lines.
    pub others: Vec<Other>,
}

/// Another experiment in short.
#[derive(Debug)]
pub(super) struct Other {
    pub experiment: &'static str,
    pub question: &'static str,
    pub sentences: Vec<String>,
}

/// What the page says first; nothing where nothing was planned.
pub(super) fn answer(report: &Report, labels: &[String]) -> Option<Answer> {
    let lead = lead(report);
    let others = report.experiments.iter().filter(|one| lead.is_none_or(|lead| lead.name != one.name));
    let others: Vec<Other> = others
        .map(|one| Other { experiment: one.name, question: one.question, sentences: in_short(report, one) })
        .collect();
    let Some(lead) = lead else {
        let first = report.experiments.first()?;
        return Some(Answer {
            experiment: first.name,
            question: first.question,
            metric: "",
            meaning: "",
            legend: String::new(),
            tables: Vec::new(),
            figure: drawn(report, first, labels),
            sentences: Vec::new(),
            left_out: 0,
            others,
        });
    };
    let metric = &lead.metrics[0];
    let shown = lead.settings.len().min(BESIDE);
    Some(Answer {
        experiment: lead.name,
        question: lead.question,
        metric: metric.name,
        meaning: metric.meaning,
        legend: legend(lead),
        tables: (0..shown).map(|setting| at_a_glance(lead, setting, 0, report.job.as_ref())).collect(),
        figure: drawn(report, lead, labels),
        sentences: in_words(report, lead),
        left_out: lead.settings.len() - shown,
        others,
    })
}

/// The picture of the whole run; where no layers stand above each other, the first of the experiment.
fn drawn(report: &Report, lead: &Experiment, labels: &[String]) -> Option<Figure> {
    let first = || picture::of_experiment(report, lead).into_iter().next();
    picture::summary(report).or_else(first).map(|one| figure(one, labels))
}

/// The experiment that the answer is about.
fn lead(report: &Report) -> Option<&Experiment> {
    let told =
        |one: &&Experiment| !one.speaks_for_itself() && !one.metrics.is_empty() && !one.settings.is_empty();
    report.experiments.iter().find(told)
}

/// Whether the first picture of an experiment stands in the answer, and so not once more in its section.
pub(super) fn shows_first_of(report: &Report, experiment: &Experiment) -> bool {
    let shown = lead(report).or(report.experiments.first());
    shown.is_some_and(|one| one.name == experiment.name) && picture::summary(report).is_none()
}

/// What the words of verdicts mean in the first metric of an experiment.
pub(super) fn legend(experiment: &Experiment) -> String {
    let Some(metric) = experiment.metrics.first() else { return String::new() };
    let (absolute, relative) = metric.margin;
    format!(
        "Verdicts rest on differences round by round. slower, faster: the interval leaves zero and the difference exceeds \
         {} or {}, whichever is larger; same: the whole interval lies within that; undecided: neither. Places follow \
         from verdicts alone: = shares a place because the difference is too small to matter, a range such as 3–4 is \
         not told apart by this run. Intervals of differences and multiples stand at the level of each verdict, at \
         which all verdicts of the run together hold at 95 %.",
        with_interval(metric.unit, absolute, None),
        percent(relative)
    )
}

/// The dearest pieces of each price list.
fn dearest(experiment: &Experiment) -> Vec<String> {
    let Some(metric) = experiment.metrics.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for list in &experiment.price_lists {
        for (index, prestate) in list.prestates.iter().enumerate() {
            let rungs = list.dearest(index, DEAREST);
            let told: Vec<_> = rungs
                .iter()
                .map(|(piece, price)| format!("{piece} {}", with_interval(metric.unit, *price, None)))
                .collect();
            if !told.is_empty() {
                sentences.push(format!("dearest pieces of {}, {prestate}: {}", list.label, told.join(", ")));
            }
        }
    }
    sentences
}

/// What findings mean for a decision. What two subjects differ by stands in the section.
fn in_words(report: &Report, experiment: &Experiment) -> Vec<String> {
    let own = |one: &&Sentence| one.experiment == experiment.name && one.topic != Topic::Difference;
    report.sentences.iter().filter(own).map(|one| one.text.clone()).collect()
}

/// An experiment in a few sentences.
fn in_short(report: &Report, experiment: &Experiment) -> Vec<String> {
    let mut sentences: Vec<String> =
        experiment.exhibits.iter().flat_map(|exhibit| exhibit.summary.iter().cloned()).collect();
    sentences.extend(dearest(experiment));
    sentences.extend(in_words(report, experiment));
    if experiment.speaks_for_itself() || !sentences.is_empty() {
        return sentences;
    }
    let Some(metric) = experiment.metrics.first() else { return sentences };
    for setting in experiment.settings.iter().take(BESIDE) {
        let Some(ladder) = setting.ladders.first() else { continue };
        let told = ladder.rows.iter().filter(|row| row.variant_of.is_none()).filter_map(|row| {
            let value = row.values.first()?.as_ref()?;
            let doubt = if row.is_suspect(0) { " (suspect)" } else { "" };
            Some(format!("{} {}{doubt}", row.short, with_interval(metric.unit, value.median.value, None)))
        });
        let told: Vec<_> = told.collect();
        let named = if setting.values.is_empty() { String::new() } else { format!(" ({})", setting.values) };
        if !told.is_empty() {
            sentences.push(format!("{}{named}: {}", metric.name, told.join(", ")));
        }
    }
    sentences
}
