//! A section an experiment: the question, what lies inside the intervals, pictures, tables of its own, verdicts,
//! what must not be believed, and the rounds as they came.

use super::course::{Courses, courses};
use super::figure::{Figure, figure};
use super::table::Table;
use super::{Suspected, Warned, answer, compared, often, own, suspected, warned};
use crate::report::model::{Experiment, Failure, Metric, Report};
use crate::report::picture;
use crate::report::text::{percent, with_interval};

/// Drawings of rounds over the whole page: as many as leave it below a few megabytes.
const DRAWINGS: usize = 700;
/// Values that stand below them in numbers: likewise.
const VALUES: usize = 25_000;

/// Metrics without verdicts that fit beside each other on paper.
const BESIDE: usize = 4;

/// All that is said of an experiment.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub experiment: &'a Experiment,
    pub legend: String,
    pub metrics: Vec<Inside>,
    /// Without the one that stands in the answer.
    pub figures: Vec<Figure>,
    pub own: Vec<Table>,
    pub factors: Option<Answered>,
    /// The first metric in every setting.
    pub verdicts: Vec<Table>,
    /// The other metrics that verdicts are given about.
    pub further: Vec<Table>,
    /// Metrics that decide nothing.
    pub context: Vec<Table>,
    pub pairs: Vec<Table>,
    pub noise: Table,
    pub courses: Vec<Courses>,
    pub suspects: Vec<Suspected<'a>>,
    pub notices: Vec<Warned<'a>>,
    pub failures: Vec<(&'a Failure, String)>,
}

impl Section<'_> {
    /// How often something was seen that qualifies verdicts.
    pub fn count_warnings(&self) -> usize {
        self.notices.iter().map(|one| one.seen.len()).sum()
    }
}

/// What a factorial says.
#[derive(Debug)]
pub(super) struct Answered {
    pub question: String,
    /// Each with its title.
    pub answers: Vec<(String, String)>,
    /// All of them.
    pub effects: Table,
}

/// What lies inside an interval.
#[derive(Debug)]
pub(super) struct Inside {
    pub metric: Metric,
    /// The smallest difference that matters, or that none is judged.
    pub margin: String,
}

/// The sections of all experiments.
pub(super) fn sections<'a>(report: &'a Report, labels: &[String]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> =
        report.experiments.iter().map(|one| section(report, one, labels)).collect();
    // The first metric of every experiment before the others of any.
    let (mut left, mut values) = (DRAWINGS, VALUES);
    let deepest = report.experiments.iter().map(|one| one.metrics.len()).max().unwrap_or(0);
    for metric in 0..deepest {
        for section in &mut sections {
            let experiment = section.experiment;
            if experiment.metrics.get(metric).is_none_or(|one| metric > 0 && !one.decisive) {
                continue;
            }
            for mut drawn in courses(experiment, metric) {
                if drawn.drawings.len() > left {
                    continue;
                }
                left -= drawn.drawings.len();
                match values.checked_sub(drawn.values()) {
                    Some(rest) => values = rest,
                    None => drawn.numbers = Table::default(),
                }
                section.courses.push(drawn);
            }
        }
    }
    sections
}

fn section<'a>(report: &'a Report, experiment: &'a Experiment, labels: &[String]) -> Section<'a> {
    let of_settings = |metric: usize| {
        (0..experiment.settings.len()).map(move |setting| compared::verdicts(experiment, setting, metric))
    };
    let is_told = !experiment.speaks_for_itself();
    let is_shown = answer::shows_first_of(report, experiment);
    let (decisive, context): (Vec<usize>, Vec<usize>) =
        (0..experiment.metrics.len()).partition(|&metric| experiment.metrics[metric].decisive);
    let (first, others): (Vec<usize>, Vec<usize>) = decisive.into_iter().partition(|&metric| metric == 0);
    let tables = |metrics: Vec<usize>| -> Vec<Table> {
        let all = metrics.into_iter().filter(|_| is_told).flat_map(of_settings);
        all.filter(|table| !table.is_empty()).collect()
    };
    let settings = (0..experiment.settings.len()).filter(|_| is_told);
    let beside =
        |setting| context.chunks(BESIDE).map(move |metrics| compared::context(experiment, setting, metrics));
    let context: Vec<Table> = settings.flat_map(beside).filter(|table| !table.is_empty()).collect();
    let concerns = |name: Option<&str>| name == Some(experiment.name);
    let factors = experiment.factors.as_ref().map(|factors| Answered {
        question: factors.question.clone(),
        answers: own::answers(experiment, factors),
        effects: own::effects(experiment, factors),
    });
    Section {
        legend: answer::legend(experiment),
        metrics: experiment.metrics.iter().map(inside).collect(),
        figures: picture::of_experiment(report, experiment)
            .into_iter()
            .skip(usize::from(is_shown))
            .map(|one| figure(one, labels))
            .collect(),
        own: own::prices(experiment).into_iter().chain(own::exhibits(experiment, labels)).collect(),
        factors,
        verdicts: tables(first),
        further: tables(others),
        context,
        pairs: if is_told { compared::pairs(experiment) } else { Vec::new() },
        noise: if is_told { compared::noise(experiment) } else { Table::default() },
        courses: Vec::new(),
        suspects: suspected(report).filter(|one| concerns(one.suspicion.experiment)).collect(),
        notices: warned(report, Some(experiment.name)),
        failures: report
            .failures
            .iter()
            .filter(|failure| failure.experiment == experiment.name)
            .map(|failure| (failure, often(failure)))
            .collect(),
        experiment,
    }
}

fn inside(metric: &Metric) -> Inside {
    let (absolute, relative) = metric.margin;
    let margin = match metric.decisive {
        true => format!(
            "Differences matter from {} or {} on, whichever is larger.",
            with_interval(metric.unit, absolute, None),
            percent(relative)
        ),
        false => "For context: no verdicts.".into(),
    };
    Inside { metric: *metric, margin }
}
