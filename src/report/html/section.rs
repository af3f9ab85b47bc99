//! A section an experiment: the question, what lies inside the intervals, pictures, tables of its own, verdicts,
//! what must not be believed, and the rounds as they came.

use super::course::{Courses, courses};
use super::figure::{Figure, figure};
use super::table::Table;
use super::{Suspected, answer, compared, often, own, suspected};
use crate::report::model::{Experiment, Failure, Metric, Notice, Report};
use crate::report::picture;
use crate::report::text::{percent, with_interval};

/// Drawings of rounds over the whole page: as many as leave it below a few megabytes.
const DRAWINGS: usize = 700;

/// All that is said of an experiment.
#[derive(Debug)]
pub(super) struct Section<'a> {
    pub experiment: &'a Experiment,
    pub legend: String,
    pub metrics: Vec<Inside>,
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
    pub notices: Vec<&'a Notice>,
    pub failures: Vec<(&'a Failure, String)>,
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
    /// The smallest difference that matters, where verdicts are given.
    pub margin: String,
}

/// The sections of all experiments.
pub(super) fn sections<'a>(report: &'a Report, labels: &[String]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section> =
        report.experiments.iter().map(|one| section(report, one, labels)).collect();
    // The first metric of every experiment before the others of any.
    let mut left = DRAWINGS;
    let deepest = report.experiments.iter().map(|one| one.metrics.len()).max().unwrap_or(0);
    for metric in 0..deepest {
        for section in &mut sections {
            let experiment = section.experiment;
            if experiment.metrics.get(metric).is_none_or(|one| metric > 0 && !one.decisive) {
                continue;
            }
            for setting in &experiment.settings {
                let Some(drawn) = courses(experiment, setting, metric) else { continue };
                if drawn.drawings.len() <= left {
                    left -= drawn.drawings.len();
                    section.courses.push(drawn);
                }
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
    let (decisive, context): (Vec<usize>, Vec<usize>) =
        (0..experiment.metrics.len()).partition(|&metric| experiment.metrics[metric].decisive);
    let (first, others): (Vec<usize>, Vec<usize>) = decisive.into_iter().partition(|&metric| metric == 0);
    let tables = |metrics: Vec<usize>| -> Vec<Table> {
        let all = metrics.into_iter().filter(|_| is_told).flat_map(of_settings);
        all.filter(|table| !table.is_empty()).collect()
    };
    let beside = |setting| compared::context(experiment, setting, &context);
    let context: Vec<Table> = (0..experiment.settings.len())
        .filter(|_| is_told && !context.is_empty())
        .map(beside)
        .filter(|table| !table.is_empty())
        .collect();
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
        notices: report.notices.iter().filter(|notice| concerns(notice.experiment)).collect(),
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
    let margin = format!("{} or {}", with_interval(metric.unit, absolute, None), percent(relative));
    Inside { metric: *metric, margin: if metric.decisive { margin } else { "no verdicts".into() } }
}
