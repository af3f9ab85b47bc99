//! From samples to verdicts, warnings and suspects: computed once, rendered everywhere. A pure
//! function of what was recorded.
//!
//! What is compared, at which level and with which margin was fixed in the plan. What a verdict
//! says is decided in `stats`; what overrides it stands in `suspect`, what qualifies it in
//! `warning`.

mod doubt;
pub mod exhibit;
pub mod factors;
mod kind;
pub mod noise;
mod own;
pub mod precision;
pub mod prediction;
pub mod price;
pub mod summary;
pub mod suspect;
pub mod warning;

pub use doubt::{Doubts, doubts};
pub use exhibit::{Evidence, Exhibit};
pub use kind::Kind;
pub use noise::Noise;
pub use price::{Price, Sum};
pub use suspect::Suspect;
pub use warning::Warning;

use std::sync::Arc;

use serde::Serialize;

use crate::experiment::{Metric, Weight};
use crate::outcome::FailureClass;
use crate::plan::{Comparison, Plan, Relation, Role};
use crate::record::{Cause, Recorded};
use crate::stats::{self, Alpha, Course, Decision, Estimate, Margin, Pairs, Sample};
use crate::units::{Better, Unit};

/// Everything that can be said about a run.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Complete rounds that count.
    pub rounds: usize,
    /// By cell.
    pub cells: Vec<CellSummary>,
    /// By cell and metric; none where the cell has no value at all.
    pub shapes: Vec<Vec<Option<Shape>>>,
    /// Every comparison in every setting and metric.
    pub findings: Vec<Finding>,
    /// By metric and setting, what twins show.
    pub noise: Vec<Noise>,
    /// Which share of each subject's time the floor alone accounts for.
    pub floor_shares: Vec<FloorShare>,
    /// What settings cost more than others, where an experiment tells them so.
    pub prices: Vec<Price>,
    /// Whether prices add up to the whole.
    pub sums: Vec<Sum>,
    /// What qualifies the verdicts.
    pub warnings: Vec<Warning>,
    /// What must not be believed.
    pub suspects: Vec<Suspect>,
    /// In how many cells carry-over was tested.
    pub carry_over_tested: usize,
    /// Every effect of the factorial, in every setting and decisive metric.
    pub factors: Vec<factors::FactorFinding>,
    /// Tables of the experiments' own.
    pub exhibits: Vec<Exhibit>,
    /// How narrow the comparisons with the baseline are.
    pub precision: Option<precision::Reached>,
}

/// One cell's own values.
#[derive(Debug, Clone)]
pub struct CellSummary {
    /// By metric; none where the cell has no value at all.
    pub metrics: Vec<Option<MetricSummary>>,
    /// Rounds that count in which it failed, by class, and the first reason of each.
    pub failures: Vec<(FailureClass, usize, String)>,
    /// Rounds that count in which it was not tried.
    pub skipped: usize,
}

/// The values of one metric in one cell.
#[derive(Debug, Clone)]
pub struct MetricSummary {
    /// Median with its exact interval at 95 %.
    pub median: Estimate,
    /// The smallest and the largest value.
    pub range: (f64, f64),
}

/// How the values of one metric in one cell are spread, and how they came one after the other.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The quartiles.
    pub quartiles: (f64, f64),
    /// At most [`MOST_STEPS`] order statistics at equal steps, from the smallest to the largest value.
    pub steps: Vec<f64>,
    /// The values over complete rounds, in at most [`MOST_POINTS`] points.
    pub course: Course,
}

/// As many as make a curve of a distribution look smooth.
pub const MOST_STEPS: usize = 101;
/// As many as a page shows side by side.
pub const MOST_POINTS: usize = 200;

/// What a finding is about, in names that mean the same outside of its run.
#[derive(Debug, Clone, Serialize)]
pub struct About {
    /// The machine on which it was measured.
    pub host: Arc<str>,
    /// The run.
    pub run: Arc<str>,
    /// The experiment's name.
    pub experiment: &'static str,
    /// The conditions.
    pub setting: String,
    /// The label of the subject.
    pub subject: String,
    /// The label of what it is compared with.
    pub against: String,
    /// Why: the word of [`crate::plan::Relation::name`].
    pub relation: &'static str,
    /// The one thing in which they differ, where it is one.
    pub key: Option<String>,
    /// The metric's name.
    pub metric: &'static str,
    /// The name of its unit.
    #[serde(serialize_with = "unit_name")]
    pub unit: Unit,
    /// Which of its values a person wishes for.
    #[serde(serialize_with = "better_name")]
    pub better: Better,
}

fn unit_name<S: serde::Serializer>(unit: &Unit, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(unit.name())
}

fn better_name<S: serde::Serializer>(better: &Better, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(better.name())
}

/// What one comparison says in one setting about one metric.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What it is about.
    pub about: About,
    /// Index into the plan's comparisons.
    pub comparison: usize,
    /// The cell of the subject.
    pub cell: usize,
    /// The cell of what it is compared with.
    pub against: usize,
    /// Index into the experiment's metrics.
    pub metric: usize,
    /// The numbers, unless no round has both values.
    pub numbers: Option<Numbers>,
    /// What follows from them.
    pub verdict: Verdict,
    /// The noise floor of its layers, where a difference was decided that does not rise above it.
    pub noise: Option<f64>,
}

impl Finding {
    /// Which of the kinds of verdict it is.
    pub fn kind(&self) -> Kind {
        self.verdict.kind(self.about.unit, self.about.better)
    }
}

/// The numbers behind a verdict.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Median of the paired differences, with its interval at the level that its experiment shares.
    pub difference: Estimate,
    /// Median of the paired ratios, where the baseline is far enough above the timer's floor.
    pub ratio: Option<Estimate>,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
}

/// What a comparison comes to. What a difference is called depends on the metric: [`Kind::of_difference`].
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Any difference is smaller than what matters.
    Same,
    /// More of it.
    More,
    /// Less of it.
    Less,
    /// Not decided.
    Undecided {
        /// An effect of this size would just have been seen.
        smallest_visible: f64,
        /// How many rounds a new run would need, and for what.
        new_run: Option<stats::NewRun>,
    },
    /// Too few rounds for any verdict at this level.
    TooFew {
        /// Complete rounds.
        have: usize,
        /// Rounds needed.
        need: usize,
    },
    /// The numbers are not to be believed; index into the suspects.
    Suspect(usize),
    /// One side has no values.
    NoData,
    /// Shown with its interval, but outside the family: nothing is decided.
    Context,
}

impl Verdict {
    /// Which of the kinds it is, of a metric.
    pub fn kind(&self, unit: Unit, better: Better) -> Kind {
        match self {
            Verdict::Same => Kind::Same,
            Verdict::More | Verdict::Less => Kind::of_difference(*self == Verdict::More, unit, better),
            Verdict::Undecided { .. } => Kind::Undecided,
            Verdict::TooFew { .. } => Kind::TooFew,
            Verdict::Suspect(_) => Kind::Suspect,
            Verdict::NoData => Kind::NoData,
            Verdict::Context => Kind::Context,
        }
    }
}

/// More rounds than anybody will run.
pub const HOPELESS: usize = 5000;

/// How much of a subject's `returned` the floor alone would take.
#[derive(Debug, Clone)]
pub struct FloorShare {
    /// The subject's cell.
    pub cell: usize,
    /// Median of the paired ratios floor ÷ subject.
    pub share: Estimate,
}

/// Says everything that can be said about a run.
pub fn analyse(run: &Recorded) -> Analysis {
    let columns = Columns::of(run);
    let all: Vec<usize> = (0..run.plan.cells.len()).collect();
    let cells = in_parallel(&all, |&cell| summary(run, &columns, cell));
    let mut findings = findings(run, &columns, |_, _| true);
    let noise = noise::of_twins(&run.plan, &columns, &cells, &findings);
    let prices = price::all(run, &columns);
    let view = suspect::View {
        run,
        columns: &columns,
        cells: &cells,
        findings: &findings,
        noise: &noise,
        prices: &prices,
    };
    let suspects = suspect::all(&view);
    for (index, suspect) in suspects.iter().enumerate() {
        suspect.overrule(index, &mut findings);
    }
    for finding in &mut findings {
        finding.noise = noise::above(&run.plan, &noise, finding);
    }
    let mut effects = factors::findings(run, &columns);
    factors::overrule(&suspects, &mut effects);
    let (warnings, carry_over_tested) = warning::all(run, &columns, &cells);
    // What experiments show beside their findings rests on rounds, or on whole samples, and blocks have neither.
    let exhibits = match run.is_in_blocks() {
        true => Vec::new(),
        false => own::tables(&Evidence {
            run,
            columns: &columns,
            cells: &cells,
            findings: &findings,
            noise: &noise,
        }),
    };
    Analysis {
        rounds: run.complete_rounds(),
        floor_shares: floor_shares(run, &columns),
        factors: effects,
        exhibits,
        precision: precision::reached(&run.plan, &columns, &findings),
        sums: own::sums(run, &columns, &prices),
        shapes: in_parallel(&all, |&cell| shapes(run, &columns, cell)),
        prices,
        cells,
        findings,
        noise,
        warnings,
        suspects,
        carry_over_tested,
    }
}

/// The values of a run with holes as such, reduced to complete rounds.
pub struct Columns {
    by_cell: Vec<Vec<Vec<Option<f64>>>>,
}

impl Columns {
    fn of(run: &Recorded) -> Columns {
        let complete: Vec<_> = run.contexts.iter().skip(run.plan.warmups).map(Option::is_some).collect();
        let column = |values: &Vec<f64>| -> Vec<Option<f64>> {
            let counted = values.iter().zip(&complete).filter(|(_, complete)| **complete);
            counted.map(|(value, _)| Some(*value).filter(|value| value.is_finite())).collect()
        };
        let by_cell = in_parallel(&run.series, |series| series.values.iter().map(column).collect());
        Columns { by_cell }
    }

    /// The values of a metric in a cell by complete round.
    pub fn get(&self, cell: usize, metric: usize) -> &[Option<f64>] {
        &self.by_cell[cell][metric]
    }

    /// The same without the holes.
    pub fn sample(&self, cell: usize, metric: usize) -> Option<Sample> {
        Sample::new(self.get(cell, metric).iter().flatten().copied().collect::<Vec<_>>()).ok()
    }
}

fn summary(run: &Recorded, columns: &Columns, cell: usize) -> CellSummary {
    let metrics = run.plan.metrics(&run.plan.cells[cell]);
    let of_metric = |metric| {
        let sample = columns.sample(cell, metric)?;
        let median = Estimate::of_median(&sample, Alpha::FIVE_PERCENT);
        Some(MetricSummary { median, range: (sample.min(), sample.max()) })
    };
    let mut failures: Vec<(FailureClass, usize, String)> = Vec::new();
    let mut skipped = 0;
    for row in run.failures.iter().filter(|row| row.cell == cell && row.round >= run.plan.warmups) {
        match &row.cause {
            Cause::Skipped(_) => skipped += 1,
            Cause::Failed(failure) => match failures.iter_mut().find(|(class, ..)| *class == failure.class) {
                Some((_, count, _)) => *count += 1,
                None => failures.push((failure.class, 1, failure.to_string())),
            },
        }
    }
    CellSummary { metrics: (0..metrics.len()).map(of_metric).collect(), failures, skipped }
}

fn shapes(run: &Recorded, columns: &Columns, cell: usize) -> Vec<Option<Shape>> {
    let of_metric = |metric| {
        let sample = columns.sample(cell, metric)?;
        let [low, high] = sample.quantiles([0.25, 0.75]);
        Some(Shape {
            quartiles: (low, high),
            steps: stats::steps(&sample, MOST_STEPS),
            course: stats::course(columns.get(cell, metric), MOST_POINTS),
        })
    };
    (0..run.plan.metrics(&run.plan.cells[cell]).len()).map(of_metric).collect()
}

/// The index of the cell with the same experiment and setting and another subject.
pub fn sibling(plan: &Plan, cell: usize, subject: usize) -> Option<usize> {
    let own = &plan.cells[cell];
    let fits = |other: &crate::plan::Cell| {
        other.subject == subject && other.experiment == own.experiment && other.setting == own.setting
    };
    plan.cells.iter().position(fits)
}

/// What comparisons say about metrics, of those that are wanted.
fn findings(
    run: &Recorded,
    columns: &Columns,
    is_wanted: impl Fn(&Comparison, &Metric) -> bool,
) -> Vec<Finding> {
    let plan = &run.plan;
    let mut wanted = Vec::new();
    for (index, comparison) in plan.comparisons.iter().enumerate() {
        for (cell, planned) in plan.cells.iter().enumerate() {
            if planned.subject != comparison.subject || planned.experiment != comparison.experiment {
                continue;
            }
            if let Some(against) = sibling(plan, cell, comparison.against) {
                let metrics = plan.metrics(planned).iter().enumerate();
                let metrics = metrics.filter(|(_, metric)| is_wanted(comparison, metric));
                wanted.extend(metrics.map(|(metric, _)| (index, cell, against, metric)));
            }
        }
    }
    let (host, name): (Arc<str>, Arc<str>) = (run.environment.host.as_str().into(), run.run.as_str().into());
    let timer = run.environment.timer.step as f64 / 1e9;
    let one = |&(comparison, cell, against, metric): &(usize, usize, usize, usize)| {
        let definition = &plan.metrics(&plan.cells[cell])[metric];
        let margin = plan.margin_of(plan.cells[cell].experiment, definition);
        let pairs = Pairs::align(columns.get(against, metric), columns.get(cell, metric)).ok();
        let role = plan.comparisons[comparison].relation.role();
        let alpha = plan.alpha_for(plan.cells[cell].experiment, role);
        let (numbers, mut verdict) = judge(definition, margin, pairs.as_ref(), timer, alpha);
        if role == Role::Described && numbers.is_some() {
            verdict = Verdict::Context;
        }
        let about = about(run, &host, &name, (comparison, cell, metric));
        Finding { about, comparison, cell, against, metric, numbers, verdict, noise: None }
    };
    let mut findings = in_parallel(&wanted, one);
    // What only one side can have (the requests of one that is asked over an API) is no gap.
    let is_context =
        |finding: &Finding| plan.metrics(&plan.cells[finding.cell])[finding.metric].weight == Weight::Context;
    findings.retain(|finding| finding.numbers.is_some() || !is_context(finding));
    findings
}

fn about(
    run: &Recorded,
    host: &Arc<str>,
    name: &Arc<str>,
    (comparison, cell, metric): (usize, usize, usize),
) -> About {
    let (plan, cell) = (&run.plan, &run.plan.cells[cell]);
    let comparison = &plan.comparisons[comparison];
    let metric = &plan.metrics(cell)[metric];
    About {
        host: Arc::clone(host),
        run: Arc::clone(name),
        experiment: cell.experiment,
        setting: cell.setting.to_string(),
        subject: plan.subjects[comparison.subject].label.clone(),
        against: plan.subjects[comparison.against].label.clone(),
        relation: comparison.relation.name(),
        key: match &comparison.relation {
            Relation::OneKey(key) => Some(key.clone()),
            _ => None,
        },
        metric: metric.name,
        unit: metric.unit,
        better: metric.better,
    }
}

/// Applies a pure function to all items, on all CPUs, keeping their order.
pub fn in_parallel<T: Sync, U: Send>(items: &[T], apply: impl Fn(&T) -> U + Sync) -> Vec<U> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let size = items.len().div_ceil(workers).max(1);
    if items.len() < 16 {
        return items.iter().map(apply).collect();
    }
    std::thread::scope(|scope| {
        let started: Vec<_> = items
            .chunks(size)
            .map(|chunk| scope.spawn(|| chunk.iter().map(&apply).collect::<Vec<_>>()))
            .collect();
        started
            .into_iter()
            .flat_map(|worker| worker.join().expect("a pure function does not panic"))
            .collect()
    })
}

fn judge(
    metric: &Metric,
    margin: Margin,
    pairs: Option<&Pairs>,
    timer: f64,
    alpha: Alpha,
) -> (Option<Numbers>, Verdict) {
    let Some(pairs) = pairs else { return (None, Verdict::NoData) };
    let compared = stats::compare(pairs, margin, alpha);
    let numbers = Numbers {
        difference: compared.difference,
        ratio: pairs.ratio(timer, alpha).ok(),
        matters: compared.matters,
    };
    let verdict = match compared.decision {
        _ if metric.weight == Weight::Context => Verdict::Context,
        Decision::Same => Verdict::Same,
        Decision::Less => Verdict::Less,
        Decision::More => Verdict::More,
        Decision::Undecided { smallest_visible, new_run } => Verdict::Undecided { smallest_visible, new_run },
        Decision::TooFew { have, need } => Verdict::TooFew { have, need },
    };
    (Some(numbers), verdict)
}

/// Shares are told of the first metric, the one that people wait for, where it is about launches: that
/// arithmetic takes as long on the floor explains nothing.
fn floor_shares(run: &Recorded, columns: &Columns) -> Vec<FloorShare> {
    let plan = &run.plan;
    let original =
        |name: &str| plan.subjects.iter().position(|one| one.spec.name == name && one.twin_of.is_none());
    let Some(floor) = original("floor") else { return Vec::new() };
    let timer = run.environment.timer.step as f64 / 1e9;
    let share = |cell: usize| {
        let entry = &plan.subjects[plan.cells[cell].subject];
        let experiment = crate::experiment::find(plan.cells[cell].experiment)?;
        let is_told = experiment.about().is_about_launches() && entry.layer > crate::plan::Layer::Floor;
        if entry.twin_of.is_some() || !is_told {
            return None;
        }
        let floor = sibling(plan, cell, floor)?;
        let pairs = Pairs::align(columns.get(cell, 0), columns.get(floor, 0)).ok()?;
        Some(FloorShare { cell, share: pairs.ratio(timer, Alpha::FIVE_PERCENT).ok()? })
    };
    (0..plan.cells.len()).filter_map(share).collect()
}
