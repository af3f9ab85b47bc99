//! What changed of one subject in one metric: in each setting, over all of them together, and whether that
//! is the subject's own.
//!
//! Over settings the values of one round are taken together, since what disturbs a round disturbs all its cells:
//! their mean logarithm, so that the change is a ratio; where a value is not above zero, their mean in units of
//! the smallest difference that matters. So rounds stay what is counted. Too close to what the timer resolves no
//! ratio is told, and those units are; it is decided by logarithms all the same, since a machine that is slower is
//! slower by a share.

mod judge;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Key, Run, Subject, keys};
use crate::experiment::{self, Setting, Weight};
use crate::outcome::FailureClass;
use crate::plan::Plan;
use crate::report::text::clean;
use crate::stats::paired::RATIO_FLOORS;
use crate::stats::{self, Alpha, Basis, Between, Estimate, Interval, Margin, NewRun, Ruling, Sample};
use crate::verdict::{Kind, Suspect, in_parallel};

/// A subject in a metric.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The subject's label.
    #[serde(rename = "subject")]
    pub label: String,
    /// Whether it is there to show what the machine does: `bare` and `floor`.
    pub is_control: bool,
    /// Index into the experiment's metrics.
    #[serde(skip)]
    pub metric: usize,
    /// Its name.
    #[serde(rename = "metric")]
    pub name: &'static str,
    /// By setting.
    pub settings: Vec<InSetting>,
    /// Over all settings in which both sides have values.
    pub together: Option<Together>,
    /// What follows.
    pub verdict: Verdict,
    /// What it says, without its end.
    pub sentence: String,
}

/// One setting of a line.
#[derive(Debug, Clone, Serialize)]
pub struct InSetting {
    /// `key=value;…`, empty where the experiment has no keys.
    #[serde(rename = "setting")]
    pub text: String,
    /// The values alone.
    #[serde(skip)]
    pub values: String,
    /// The medians of the old and of the new runs; of several runs that of their medians.
    pub medians: [Option<f64>; 2],
    /// The shift from old to new, in the unit of the metric.
    pub difference: Option<Estimate>,
    /// The shift of the logarithms, exponentiated.
    pub ratio: Option<Estimate>,
    /// The smallest difference that matters, in the unit of the metric.
    pub matters: f64,
    /// Why a side has no value, where it has none.
    pub failure: [Option<String>; 2],
    /// The ruling about it alone.
    #[serde(skip)]
    ruling: Option<Ruling>,
    /// The shift of the logarithms; none where a value has none.
    #[serde(skip)]
    logarithm: Option<Between>,
}

impl InSetting {
    /// Whether neither side has a value, though nothing failed and nothing was skipped.
    fn is_unmeasured(&self) -> bool {
        self.failure.iter().all(|why| why.as_deref() == Some(NO_VALUE))
    }
}

/// Why a cell has no value whose samples were taken, and which did not fail.
const NO_VALUE: &str = "has no value";

/// The change over all settings.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Together {
    /// The change: a ratio, or units of what matters.
    pub change: Estimate,
    /// The smallest change that matters, likewise: a ratio, or 1.
    pub matters: f64,
    /// Whether it is a ratio.
    pub scale: Scale,
    /// What stands behind the interval.
    pub basis: Basis,
    /// As it is decided: in logarithms, or in units of what matters.
    #[serde(skip)]
    decided: Between,
    /// The smallest change that matters as a logarithm; none where values have none.
    #[serde(skip)]
    log_matters: Option<f64>,
}

/// What a change over several settings is told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scale {
    /// New ÷ old.
    #[serde(rename = "new / old")]
    Ratio,
    /// Units of the smallest difference that matters.
    #[serde(rename = "what matters")]
    Margins,
}

/// What a comparison of runs comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Any change is smaller than what matters.
    Same,
    /// It changed: what that is called of this metric.
    Changed(Kind),
    /// It changed, and so did bare or floor; or it is one of these.
    Machine,
    /// What holds in one setting does not in another.
    Mixed,
    /// Not decided.
    Undecided {
        /// An effect of this size would just have been seen: a share, or units of what matters.
        smallest_visible: f64,
        /// What new runs would need.
        new_run: Option<NewRun>,
    },
    /// It changed, but bare and floor are not known well enough: up to this size it may be the machine.
    ControlsTooWide(f64),
    /// It changed, but by no more than a run differs from itself.
    Unsteady(f64),
    /// Too few rounds for an interval.
    TooFew {
        /// Rounds of the shorter side.
        have: usize,
        /// Rounds needed on each side.
        need: usize,
    },
    /// The numbers of a run are not to be believed: its place, the rule and the evidence.
    Suspect(String),
    /// A side has no value.
    NoData,
    /// Shown, not decided.
    Context,
}

impl Verdict {
    /// Which of the kinds it is.
    pub fn kind(&self) -> Kind {
        match self {
            Verdict::Same => Kind::Same,
            Verdict::Changed(kind) => *kind,
            Verdict::Machine => Kind::Machine,
            Verdict::Mixed => Kind::Mixed,
            Verdict::Undecided { .. } | Verdict::ControlsTooWide(_) | Verdict::Unsteady(_) => Kind::Undecided,
            Verdict::TooFew { .. } => Kind::TooFew,
            Verdict::Suspect(_) => Kind::Suspect,
            Verdict::NoData => Kind::NoData,
            Verdict::Context => Kind::Context,
        }
    }

    /// The word used in tables and files.
    pub fn word(&self) -> &'static str {
        self.kind().word()
    }
}

/// In its word; its sentence says more.
impl Serialize for Verdict {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.word())
    }
}

/// What lines are made of.
pub(super) struct Context<'a> {
    pub old: &'a [Run<'a>],
    pub new: &'a [Run<'a>],
    pub subjects: &'a [Subject],
    pub shared: &'a [Key],
    pub alpha: Alpha,
}

/// How many intervals of decisive metrics there will be: one for each setting, and one over all where there are
/// several.
pub(super) fn family(plan: &Plan, shared: &[Key]) -> usize {
    let mut settings: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (name, _, label) in shared {
        *settings.entry((name, label)).or_default() += 1;
    }
    let decisive = |name: &str| {
        let metrics = experiment::find(name).map_or(&[][..], |one| one.about().metrics);
        metrics.iter().filter(|metric| metric.weight == Weight::Verdict).count()
    };
    debug_assert!(!plan.cells.is_empty());
    settings.iter().map(|((name, _), count)| decisive(name) * (count + usize::from(*count > 1))).sum()
}

/// A run with what is looked up in it.
struct Ready<'a> {
    run: &'a Run<'a>,
    cells: BTreeMap<Key, usize>,
    complete: Vec<bool>,
}

impl Ready<'_> {
    fn of<'a>(run: &'a Run<'a>) -> Ready<'a> {
        let contexts = run.recorded.contexts.iter().skip(run.recorded.plan.warmups);
        Ready { run, cells: keys(run), complete: contexts.map(Option::is_some).collect() }
    }

    /// The values of a metric in a cell by complete round; not a number where there is none.
    fn column(&self, key: &Key, metric: usize) -> Vec<f64> {
        let Some(values) =
            self.cells.get(key).and_then(|cell| self.run.recorded.series[*cell].values.get(metric))
        else {
            return Vec::new();
        };
        let counted = values.iter().zip(&self.complete).filter(|(_, complete)| **complete);
        counted.map(|(value, _)| if value.is_finite() { *value } else { f64::NAN }).collect()
    }

    /// Why a cell has no value.
    fn failure(&self, key: &Key) -> String {
        let Some(cell) = self.cells.get(key) else { return "was not planned".into() };
        let summary = &self.run.doubts.cells[*cell];
        let worst =
            summary.failures.iter().max_by_key(|(_, times, _): &&(FailureClass, usize, String)| *times);
        match worst {
            Some((.., reason)) => format!("failed: {}", clean(reason)),
            None if summary.skipped > 0 => "was skipped".into(),
            None => NO_VALUE.into(),
        }
    }

    /// The suspect that overrules a difference of this size in a metric of a cell.
    fn suspect(&self, key: &Key, metric: usize, size: f64) -> Option<&Suspect> {
        let cell = self.cells.get(key)?;
        self.run.doubts.suspects.iter().find(|one| {
            one.cells.contains(cell)
                && one.metric.is_none_or(|own| own == metric)
                && one.up_to.is_none_or(|reach| size <= reach)
        })
    }
}

/// All lines of an experiment.
pub(super) fn lines(
    name: &'static str,
    metrics: &'static [experiment::Metric],
    context: &Context<'_>,
) -> Vec<Line> {
    let sides = [context.old, context.new].map(|side| side.iter().map(Ready::of).collect::<Vec<_>>());
    let own = |subject: &&Subject| subject.shared.iter().any(|(own, _)| *own == name);
    let subjects: Vec<&Subject> = context.subjects.iter().filter(own).collect();
    let wanted: Vec<(usize, &Subject)> =
        (0..metrics.len()).flat_map(|metric| subjects.iter().map(move |one| (metric, *one))).collect();
    let mut lines = in_parallel(&wanted, |(metric, subject)| {
        let keys: Vec<&Key> =
            context.shared.iter().filter(|(own, _, label)| *own == name && *label == subject.label).collect();
        let margin = context.old[0].recorded.plan.margin_of(name, &metrics[*metric]);
        let name = metrics[*metric].name;
        let measured =
            Measured { sides: &sides, keys: &keys, metric: *metric, name, margin, alpha: context.alpha };
        let line = measured.line(subject, metrics[*metric].weight);
        let own = measured.own_move(&line.settings);
        (line, own)
    });
    // What only one side can have (the requests of one that is asked over an API) is no gap, nor is what nobody
    // measured (others' files have a column or two).
    lines.retain(|(line, _)| match line.verdict {
        Verdict::Context => line.settings.iter().any(|one| one.difference.is_some()),
        _ => !line.settings.iter().all(InSetting::is_unmeasured),
    });
    let controls: Vec<Line> =
        lines.iter().map(|(line, _)| line).filter(|line| line.is_control).cloned().collect();
    let judged = |(mut line, own): (Line, f64)| {
        if line.verdict != Verdict::Context {
            let metric = &metrics[line.metric];
            judge::judge(&mut line, metric, &controls, own);
            overrule(&mut line, name, &sides);
        }
        line
    };
    lines.into_iter().map(judged).collect()
}

/// What one line is computed from.
struct Measured<'a> {
    sides: &'a [Vec<Ready<'a>>; 2],
    keys: &'a [&'a Key],
    metric: usize,
    name: &'static str,
    margin: Margin,
    alpha: Alpha,
}

impl Measured<'_> {
    fn line(&self, subject: &Subject, weight: Weight) -> Line {
        let settings: Vec<InSetting> = self.keys.iter().map(|key| self.in_setting(key)).collect();
        let decisive = weight == Weight::Verdict;
        Line {
            label: clean(&subject.label),
            is_control: subject.is_control,
            metric: self.metric,
            name: self.name,
            together: decisive.then(|| self.together(&settings)).flatten(),
            settings,
            verdict: if decisive { Verdict::NoData } else { Verdict::Context },
            sentence: String::new(),
        }
    }

    fn in_setting(&self, key: &Key) -> InSetting {
        let columns = self
            .sides
            .each_ref()
            .map(|side| -> Vec<Vec<f64>> { side.iter().map(|run| run.column(key, self.metric)).collect() });
        let samples = columns.each_ref().map(|side| samples(side, |value| value));
        let medians = samples.each_ref().map(|side| middle(side.as_deref()?));
        let matters = self.margin.at(medians[0].unwrap_or(0.0));
        let [old, new] = &samples;
        let both = old.as_deref().zip(new.as_deref());
        let between = |(old, new): (&[Sample], &[Sample])| stats::between(old, new, self.alpha);
        let is_positive = columns.iter().flatten().flatten().all(|value| value.is_nan() || *value > 0.0);
        let logarithm = both.filter(|_| is_positive).and_then(|_| {
            let [old, new] = columns.each_ref().map(|side| samples_of_logs(side));
            between((&old?, &new?))
        });
        let failure = |side: usize| {
            let empty = |run: &&Ready<'_>| run.column(key, self.metric).iter().all(|value| value.is_nan());
            self.sides[side].iter().find(empty).map(|run| run.failure(key))
        };
        let (_, setting, _) = key;
        InSetting {
            text: clean(&setting.to_string()),
            values: values_of(setting),
            medians,
            difference: both.and_then(between).map(|found| found.shift),
            ratio: logarithm.filter(|_| self.has_ratio(medians)).map(|found| exponentiated(found.shift)),
            matters,
            failure: [failure(0), failure(1)],
            ruling: None,
            logarithm,
        }
    }

    /// Whether a ratio says something: both middles are far enough from what the timer resolves.
    fn has_ratio(&self, medians: [Option<f64>; 2]) -> bool {
        let timers = self.sides.iter().flatten().map(|run| run.run.recorded.environment.timer.step);
        let floor = timers.max().unwrap_or(0) as f64 / 1e9;
        medians.iter().flatten().all(|median| *median >= RATIO_FLOORS * floor)
    }

    fn together(&self, settings: &[InSetting]) -> Option<Together> {
        let usable = self.usable(settings);
        if usable.is_empty() {
            return None;
        }
        let count = usable.len() as f64;
        let unit = |one: &InSetting| -> f64 {
            let median = one.medians[0].unwrap_or(0.0).abs();
            let candidates = [one.matters, median, 1.0];
            candidates.into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
        };
        let keys: Vec<&Key> = usable.iter().map(|(key, _)| *key).collect();
        let between = |of_round: &dyn Fn(&[f64]) -> f64| {
            let [old, new] = self.sides.each_ref().map(|side| self.rounds(side, &keys, of_round));
            stats::between(&old?, &new?, self.alpha)
        };
        let in_margins = || {
            let scaled = |(value, (_, one)): (&f64, &(&Key, &InSetting))| value / unit(one);
            between(&|values| values.iter().zip(&usable).map(scaled).sum::<f64>() / count)
        };
        let matters = if usable.iter().all(|(_, one)| one.matters > 0.0) { 1.0 } else { 0.0 };
        let scale = match usable.iter().all(|(_, one)| one.ratio.is_some()) {
            true => Scale::Ratio,
            false => Scale::Margins,
        };
        if usable.iter().any(|(_, one)| one.logarithm.is_none()) {
            let decided = in_margins()?;
            let (change, basis) = (decided.shift, decided.basis);
            return Some(Together { change, matters, scale, basis, decided, log_matters: None });
        }
        let decided = between(&mean_logarithm)?;
        let share = |one: &InSetting| one.matters / one.medians[0].unwrap_or(f64::INFINITY);
        let log_matters = usable.iter().map(|(_, one)| share(one).ln_1p()).sum::<f64>() / count;
        let (change, matters) = match scale {
            Scale::Ratio => (exponentiated(decided.shift), log_matters.exp()),
            Scale::Margins => (in_margins()?.shift, matters),
        };
        let (basis, log_matters) = (decided.basis, Some(log_matters));
        Some(Together { change, matters, scale, basis, decided, log_matters })
    }

    /// The cells that have values on both sides.
    fn usable<'a>(&'a self, settings: &'a [InSetting]) -> Vec<(&'a Key, &'a InSetting)> {
        self.keys.iter().copied().zip(settings).filter(|(_, one)| one.difference.is_some()).collect()
    }

    /// One number for each round in which all these cells have a value, run by run.
    fn rounds(
        &self,
        side: &[Ready<'_>],
        keys: &[&Key],
        of_round: &dyn Fn(&[f64]) -> f64,
    ) -> Option<Vec<Sample>> {
        let of_run = |run: &Ready<'_>| {
            let columns: Vec<Vec<f64>> = keys.iter().map(|key| run.column(key, self.metric)).collect();
            let rounds = columns.first().map_or(0, Vec::len);
            let values = (0..rounds).filter_map(|round| {
                let values: Vec<f64> = columns.iter().map(|column| column[round]).collect();
                let value = of_round(&values);
                value.is_finite().then_some(value)
            });
            Sample::new(values.collect::<Vec<_>>()).ok()
        };
        side.iter().map(of_run).collect()
    }

    /// The largest move of a run against itself over all settings, on the scale of logarithms.
    fn own_move(&self, settings: &[InSetting]) -> f64 {
        let keys: Vec<&Key> = self.usable(settings).into_iter().map(|(key, _)| key).collect();
        let runs = self.sides.iter().filter_map(|side| self.rounds(side, &keys, &mean_logarithm));
        runs.flatten().map(|run| stats::own_move(&run, self.alpha)).fold(0.0, f64::max)
    }
}

/// The values of each run, transformed; none where a run has none.
fn samples(columns: &[Vec<f64>], transform: impl Fn(f64) -> f64) -> Option<Vec<Sample>> {
    let one = |column: &Vec<f64>| {
        let values = column.iter().filter(|value| !value.is_nan()).map(|value| transform(*value));
        Sample::new(values.collect::<Vec<_>>()).ok()
    };
    columns.iter().map(one).collect()
}

fn mean_logarithm(values: &[f64]) -> f64 {
    values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64
}

fn samples_of_logs(columns: &[Vec<f64>]) -> Option<Vec<Sample>> {
    samples(columns, f64::ln)
}

/// The median of the runs' medians.
fn middle(runs: &[Sample]) -> Option<f64> {
    Sample::new(runs.iter().map(Sample::median).collect::<Vec<_>>()).ok().map(|medians| medians.median())
}

fn exponentiated(log: Estimate) -> Estimate {
    let interval = log.interval.map(|one| Interval { low: one.low.exp(), high: one.high.exp(), ..one });
    Estimate { value: log.value.exp(), interval, ..log }
}

fn values_of(setting: &Setting) -> String {
    clean(&setting.0.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(" "))
}

/// What is suspect in a run by itself is suspect here.
fn overrule(line: &mut Line, name: &'static str, sides: &[Vec<Ready<'_>>; 2]) {
    for run in sides.iter().flatten() {
        for (key, cell) in &run.cells {
            if key.0 != name || clean(&key.2) != line.label {
                continue;
            }
            let text = clean(&run.run.recorded.plan.cells[*cell].setting.to_string());
            let Some(one) = line.settings.iter().find(|one| one.text == text) else { continue };
            let size = one.difference.map_or(0.0, |difference| difference.value.abs());
            if let Some(suspect) = run.suspect(key, line.metric, size) {
                let words =
                    format!("`{}`: {}: {}", clean(run.run.place), suspect.rule, clean(&suspect.evidence));
                line.verdict = Verdict::Suspect(words);
                return;
            }
        }
    }
}

/// The setting of all lines, where they have one and the same.
pub(super) fn one_setting<'a>(lines: &[&'a Line]) -> Option<&'a str> {
    let first = lines.first()?.settings.first()?;
    let is_only = |line: &&Line| line.settings.len() == 1 && line.settings[0].text == first.text;
    lines.iter().all(is_only).then_some(first.text.as_str())
}
