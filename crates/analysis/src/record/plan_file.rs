//! `plan.json`: the plan as it was before the first measurement.

use serde::{Deserialize, Serialize};

use anyhow::{Context, Result, bail};

use crate::experiment;
use crate::plan::prediction::Written;
use crate::plan::{
    Cell, Comparison, Entry, Factor, Factorial, FixedMargin, Ladder, Plan, Precision, Prediction, Quota,
    Relation,
};
use crate::stats::Margin;
use crate::subject::{Layer, Need, Spec};
use crate::units::Nanos;

/// A plan as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct PlanFile {
    version: u32,
    seed: u64,
    rounds: usize,
    warmups: usize,
    baseline: usize,
    /// Verdicts that will be given, by experiment; the level of each is 0.05 divided by the number of its kind.
    verdicts: Vec<VerdictsFile>,
    /// Nanoseconds after which a launch counts as hung.
    allowed_ns: i64,
    /// Seconds, as predicted from the trial launches.
    predicted: f64,
    subjects: Vec<EntryFile>,
    cells: Vec<CellFile>,
    comparisons: Vec<ComparisonFile>,
    margins: Vec<MarginFile>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    precision: Option<PrecisionFile>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    factorial: Option<FactorialFile>,
    /// Experiments that are in fewer rounds than there are.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    quotas: Vec<QuotaFile>,
    /// What a person predicted before measuring.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    predictions: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct VerdictsFile {
    experiment: String,
    asked: usize,
    controls: usize,
}

/// A complete factorial: its factors, and the subject of each combination; bit i of the place in the list
/// stands for the second level of factor i.
#[derive(Debug, Serialize, Deserialize)]
struct FactorialFile {
    factors: Vec<FactorFile>,
    subjects: Vec<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FactorFile {
    name: String,
    levels: [String; 2],
}

/// What was asked of a pilot, and what it foretold.
#[derive(Debug, Serialize, Deserialize)]
struct PrecisionFile {
    asked: f64,
    pilot_rounds: usize,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    predicted: Option<f64>,
    capped: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct QuotaFile {
    experiment: String,
    rounds: usize,
}

const MOST_SUBJECTS: usize = 500;
const MOST_CELLS: usize = 5_000;
const MOST_COMPARISONS: usize = 20_000;
const MOST_PREDICTIONS: usize = 1_000;
const MOST_SAMPLES: usize = 20_000_000;
const LONGEST_LABEL: usize = 300;

#[derive(Debug, Serialize, Deserialize)]
struct EntryFile {
    label: String,
    subject: String,
    layer: String,
    ladder: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    twin_of: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    runtime: Option<String>,
    launch_ns: i64,
    /// Runs from before there was more than one thing to offer have only that.
    #[serde(default = "launches_only")]
    offers: Vec<String>,
    /// The experiments that it is meant for, where not for all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    only_in: Vec<String>,
    /// The label of the subject that it varies in one key.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    variant_of: Option<String>,
}

fn launches_only() -> Vec<String> {
    vec![Need::Launch.name().to_owned()]
}

#[derive(Debug, Serialize, Deserialize)]
struct CellFile {
    experiment: String,
    setting: String,
    subject: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct ComparisonFile {
    experiment: String,
    subject: usize,
    against: usize,
    relation: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    key: Option<String>,
}

/// The smallest difference that matters, as fixed before the run.
#[derive(Debug, Serialize, Deserialize)]
struct MarginFile {
    experiment: String,
    metric: String,
    absolute: f64,
    relative: f64,
}

/// As many as the command line takes; a reader makes room for all of them.
const MOST_ROUNDS: usize = 1_000_000;

const LAYERS: [Layer; 4] = [Layer::Bare, Layer::Floor, Layer::Runtime, Layer::Engine];

fn ladder_name(ladder: Ladder) -> &'static str {
    match ladder {
        Ladder::AsInstalled => "as installed",
        Ladder::Equalised => "equalised",
    }
}

/// The file's form of a plan.
pub fn to_wire(plan: &Plan) -> PlanFile {
    let margins = plan.margins.iter().map(|fixed| {
        let (absolute, relative) = fixed.margin.parts();
        MarginFile { experiment: fixed.experiment.clone(), metric: fixed.metric.clone(), absolute, relative }
    });
    PlanFile {
        version: super::wire::FORMAT,
        seed: plan.seed,
        rounds: plan.rounds,
        warmups: plan.warmups,
        baseline: plan.baseline,
        verdicts: plan
            .verdicts
            .iter()
            .map(|one| VerdictsFile {
                experiment: one.experiment.into(),
                asked: one.asked,
                controls: one.controls,
            })
            .collect(),
        allowed_ns: plan.allowed.0,
        predicted: plan.predicted().seconds(),
        subjects: plan.subjects.iter().map(entry_to_wire).collect(),
        cells: plan
            .cells
            .iter()
            .map(|cell| CellFile {
                experiment: cell.experiment.into(),
                setting: cell.setting.to_string(),
                subject: cell.subject,
            })
            .collect(),
        comparisons: plan
            .comparisons
            .iter()
            .map(|one| ComparisonFile {
                experiment: one.experiment.into(),
                subject: one.subject,
                against: one.against,
                relation: one.relation.name().into(),
                key: match &one.relation {
                    Relation::OneKey(key) => Some(key.clone()),
                    _ => None,
                },
            })
            .collect(),
        margins: margins.collect(),
        precision: plan.precision.map(|one| PrecisionFile {
            asked: one.asked,
            pilot_rounds: one.pilot_rounds,
            predicted: one.predicted,
            capped: one.capped,
        }),
        factorial: plan.factorial.as_ref().map(|one| FactorialFile {
            factors: one
                .factors
                .iter()
                .map(|factor| FactorFile { name: factor.name.clone(), levels: factor.levels.clone() })
                .collect(),
            subjects: one.subjects.clone(),
        }),
        quotas: plan
            .quotas
            .iter()
            .map(|quota| QuotaFile { experiment: quota.experiment.clone(), rounds: quota.rounds })
            .collect(),
        predictions: plan.predictions.iter().map(ToString::to_string).collect(),
    }
}

fn entry_to_wire(entry: &Entry) -> EntryFile {
    EntryFile {
        label: entry.label.clone(),
        subject: entry.spec.to_string(),
        layer: entry.layer.name().into(),
        ladder: ladder_name(entry.ladder).into(),
        twin_of: entry.twin_of,
        runtime: entry.runtime.clone(),
        launch_ns: entry.launch.0,
        offers: entry.offers.iter().map(|need| need.name().to_owned()).collect(),
        only_in: entry.only_in.iter().map(|name| (*name).to_owned()).collect(),
        variant_of: entry.variant_of.clone(),
    }
}

/// Whether a reader will take a plan that is to be written.
pub fn check(plan: &Plan) -> Result<()> {
    from_wire(to_wire(plan)).map(drop)
}

/// The version of a plan's form, without reading anything else of it.
pub fn version(plan: &[u8]) -> serde_json::Result<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice(plan).map(|Versioned { version }| version)
}

/// The plan in a file; every index in it is checked.
pub fn from_wire(file: PlanFile) -> Result<Plan> {
    if file.rounds > MOST_ROUNDS || file.warmups > MOST_ROUNDS {
        bail!("the plan has {} rounds and {} to warm up, more than there can be", file.rounds, file.warmups);
    }
    let subjects: Vec<_> = file.subjects.into_iter().map(entry_from_wire).collect::<Result<_>>()?;
    let count = subjects.len();
    if file.predictions.len() > MOST_PREDICTIONS {
        bail!("the plan has {} predictions, more than can be judged", file.predictions.len());
    }
    check_size(count, file.cells.len(), file.comparisons.len(), file.rounds + file.warmups)?;
    for (index, entry) in subjects.iter().enumerate() {
        let twin_of_an_original =
            |of: usize| of != index && subjects.get(of).is_some_and(|original| original.twin_of.is_none());
        if entry.twin_of.is_some_and(|of| !twin_of_an_original(of)) {
            bail!("subject {index} of the plan is the twin of no other subject");
        }
        if subjects[..index].iter().any(|other| other.label == entry.label) {
            bail!("two subjects of the plan have the same label");
        }
    }
    let in_range = |index: usize| {
        if index < count { Ok(index) } else { bail!("the plan names subject {index} of {count}") }
    };
    let cells = file.cells.into_iter().map(|cell| {
        let experiment = experiment_named(&cell.experiment)?;
        let setting = experiment::parse_setting(experiment, &cell.setting)
            .with_context(|| format!("`{}` is no setting of `{}`", cell.setting, cell.experiment))?;
        Ok(Cell { experiment: experiment.about().name, setting, subject: in_range(cell.subject)? })
    });
    let comparisons = file.comparisons.into_iter().map(|one| {
        let relation = match (one.relation.as_str(), one.key) {
            ("baseline", _) => Relation::Baseline,
            ("twin", _) => Relation::Twin,
            ("one choice", _) => Relation::Choice,
            ("step", _) => Relation::Step,
            ("predicted", _) => Relation::Predicted,
            ("one key", Some(key)) => Relation::OneKey(key),
            (other, _) => bail!("the plan holds a comparison of the unknown kind `{other}`"),
        };
        Ok(Comparison {
            experiment: experiment_named(&one.experiment)?.about().name,
            subject: in_range(one.subject)?,
            against: in_range(one.against)?,
            relation,
        })
    });
    let margins = file.margins.into_iter().map(|fixed| {
        let margin = Margin::new(fixed.absolute, fixed.relative)?;
        Ok(FixedMargin { experiment: fixed.experiment, metric: fixed.metric, margin })
    });
    let factorial = file.factorial.map(|one| factorial_from_wire(one, count)).transpose()?;
    let mut plan = Plan {
        factorial,
        allowed: Nanos(file.allowed_ns),
        margins: margins.collect::<Result<_>>()?,
        seed: file.seed,
        rounds: file.rounds,
        warmups: file.warmups,
        cells: cells.collect::<Result<_>>()?,
        comparisons: comparisons.collect::<Result<_>>()?,
        baseline: in_range(file.baseline)?,
        verdicts: Vec::new(),
        precision: file.precision.map(|one| Precision {
            asked: one.asked,
            pilot_rounds: one.pilot_rounds,
            predicted: one.predicted,
            capped: one.capped,
        }),
        quotas: file
            .quotas
            .into_iter()
            .map(|quota| Quota { experiment: quota.experiment, rounds: quota.rounds })
            .collect(),
        predictions: file.predictions.iter().map(|text| prediction_from_wire(text)).collect::<Result<_>>()?,
        subjects,
    };
    plan.verdicts = plan.count_verdicts();
    let counted = plan.verdicts.iter().map(|one| (one.experiment, one.asked, one.controls));
    if !counted.eq(file.verdicts.iter().map(|one| (one.experiment.as_str(), one.asked, one.controls))) {
        bail!("the plan counts other verdicts than its comparisons make");
    }
    Ok(plan)
}

fn factorial_from_wire(file: FactorialFile, subjects: usize) -> Result<Factorial> {
    let distinct: std::collections::BTreeSet<_> = file.subjects.iter().collect();
    let is_complete = file.factors.len() <= 8
        && file.subjects.len() == 1 << file.factors.len()
        && distinct.len() == file.subjects.len()
        && file.subjects.iter().all(|&index| index < subjects);
    if !is_complete {
        bail!("the plan's factorial is not complete");
    }
    let factors = file.factors.into_iter().map(|one| Factor { name: one.name, levels: one.levels });
    Ok(Factorial { factors: factors.collect(), subjects: file.subjects })
}

fn prediction_from_wire(text: &str) -> Result<Prediction> {
    let all: Vec<&'static str> = experiment::ALL.iter().map(|one| one.about().name).collect();
    let written = Written::parse(text).map_err(anyhow::Error::msg);
    let prediction = written.and_then(|written| Prediction::of(&written, &all).map_err(anyhow::Error::msg));
    prediction.with_context(|| format!("the plan's prediction `{text}` cannot be read"))
}

/// A plan that nobody could have measured is damaged or hostile; it must not fill the memory.
fn check_size(subjects: usize, cells: usize, comparisons: usize, rounds: usize) -> Result<()> {
    let fits = subjects <= MOST_SUBJECTS
        && cells <= MOST_CELLS
        && comparisons <= MOST_COMPARISONS
        && cells.saturating_mul(rounds) <= MOST_SAMPLES;
    if !fits {
        bail!(
            "the plan has {subjects} subjects, {cells} cells, {comparisons} comparisons and {rounds} rounds, more than can be analysed"
        );
    }
    Ok(())
}

fn experiment_named(name: &str) -> Result<&'static dyn experiment::Question> {
    experiment::find(name).with_context(|| format!("this dunnage has no experiment `{name}`"))
}

fn entry_from_wire(entry: EntryFile) -> Result<Entry> {
    if entry.label.chars().count() > LONGEST_LABEL {
        bail!("a label of the plan has more than {LONGEST_LABEL} characters");
    }
    let layer = LAYERS.into_iter().find(|layer| layer.name() == entry.layer);
    let ladder =
        [Ladder::AsInstalled, Ladder::Equalised].into_iter().find(|one| ladder_name(*one) == entry.ladder);
    Ok(Entry {
        spec: Spec::parse(&entry.subject)?,
        layer: layer.with_context(|| format!("there is no layer `{}`", entry.layer))?,
        ladder: ladder.with_context(|| format!("there is no ladder `{}`", entry.ladder))?,
        label: entry.label,
        twin_of: entry.twin_of,
        runtime: entry.runtime,
        launch: Nanos(entry.launch_ns),
        offers: Need::ALL
            .into_iter()
            .filter(|need| entry.offers.iter().any(|one| one == need.name()))
            .collect(),
        only_in: entry
            .only_in
            .iter()
            .map(|name| Ok(experiment_named(name)?.about().name))
            .collect::<Result<_>>()?,
        variant_of: entry.variant_of,
    })
}
