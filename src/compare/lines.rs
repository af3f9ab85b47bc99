//! What changed of one subject in one metric: in each setting, over all of them together, and whether that
//! is the subject's own.
//!
//! Over settings the values of one round are taken together, since what disturbs a round disturbs all its cells:
//! their mean logarithm, so that the change is a ratio; where a value is not above zero, or is too close to what
//! the timer resolves, their mean in units of the smallest difference that matters. So rounds stay what is
//! counted.

use std::collections::BTreeMap;

use super::{Key, Run, Subject, keys};
use crate::experiment::{self, Setting, Weight};
use crate::outcome::FailureClass;
use crate::plan::Plan;
use crate::report::text::clean;
use crate::stats::paired::RATIO_FLOORS;
use crate::stats::{self, Alpha, Basis, Between, Estimate, Interval, Margin, NewRun, Ruling, Sample};
use crate::verdict::{Suspect, in_parallel};

/// A subject in a metric.
#[derive(Debug, Clone)]
pub struct Line {
    /// The subject's label.
    pub label: String,
    /// Whether it is there to show what the machine does: `bare` and `floor`.
    pub is_control: bool,
    /// Index into the experiment's metrics.
    pub metric: usize,
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
#[derive(Debug, Clone)]
pub struct InSetting {
    /// `key=value;…`, empty where the experiment has no keys.
    pub text: String,
    /// The values alone.
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
    ruling: Option<Ruling>,
    /// The logarithm of the ratio.
    logarithm: Option<Between>,
}

/// The change over all settings.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    /// The change: a ratio, or units of what matters.
    pub change: Estimate,
    /// The smallest change that matters, likewise: a ratio, or 1.
    pub matters: f64,
    /// Whether it is a ratio.
    pub scale: Scale,
    /// What stands behind the interval.
    pub basis: Basis,
    /// On the scale on which it is decided.
    decided: Between,
}

/// What a change over several settings is told in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// New ÷ old.
    Ratio,
    /// Units of the smallest difference that matters.
    Margins,
}

/// What a comparison of runs comes to. All metrics there are get better as they get smaller.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Any change is smaller than what matters.
    Same,
    /// More in the new runs.
    Slower,
    /// Less in the new runs.
    Faster,
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
    /// The word used in tables and files.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Machine => "machine changed",
            Verdict::Mixed => "mixed",
            Verdict::Undecided { .. } | Verdict::ControlsTooWide(_) | Verdict::Unsteady(_) => "undecided",
            Verdict::TooFew { .. } => "too few",
            Verdict::Suspect(_) => "suspect",
            Verdict::NoData => "no data",
            Verdict::Context => "context",
        }
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
        let summary = &self.run.analysis.cells[*cell];
        let worst =
            summary.failures.iter().max_by_key(|(_, times, _): &&(FailureClass, usize, String)| *times);
        match worst {
            Some((.., reason)) => format!("failed: {}", clean(reason)),
            None if summary.skipped > 0 => "was skipped".into(),
            None => "has no value".into(),
        }
    }

    /// The suspect that overrules a difference of this size in a metric of a cell.
    fn suspect(&self, key: &Key, metric: usize, size: f64) -> Option<&Suspect> {
        let cell = self.cells.get(key)?;
        self.run.analysis.suspects.iter().find(|one| {
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
        let measured = Measured { sides: &sides, keys: &keys, metric: *metric, margin, alpha: context.alpha };
        (measured.line(subject, metrics[*metric].weight), measured.own_move())
    });
    // What only one side can have (the requests of one that is asked over an API) is no gap.
    lines.retain(|(line, _)| {
        line.verdict != Verdict::Context || line.settings.iter().any(|one| one.difference.is_some())
    });
    let controls: Vec<Line> =
        lines.iter().map(|(line, _)| line).filter(|line| line.is_control).cloned().collect();
    let judged = |(mut line, own): (Line, f64)| {
        if line.verdict != Verdict::Context {
            judge(&mut line, &controls, own);
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
        let logarithm = both.filter(|_| self.has_ratio(&columns, medians)).and_then(|_| {
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
            ratio: logarithm.map(|found| exponentiated(found.shift)),
            matters,
            failure: [failure(0), failure(1)],
            ruling: None,
            logarithm,
        }
    }

    /// Whether logarithms say something: all values above zero, and the old middle far enough from what the timer
    /// resolves.
    fn has_ratio(&self, columns: &[Vec<Vec<f64>>; 2], medians: [Option<f64>; 2]) -> bool {
        let timers = self.sides.iter().flatten().map(|run| run.run.recorded.environment.timer.step);
        let floor = timers.max().unwrap_or(0) as f64 / 1e9;
        let positive = columns.iter().flatten().flatten().all(|value| value.is_nan() || *value > 0.0);
        positive && medians.iter().flatten().all(|median| *median >= RATIO_FLOORS * floor)
    }

    fn together(&self, settings: &[InSetting]) -> Option<Together> {
        let usable: Vec<(&Key, &InSetting)> =
            self.keys.iter().copied().zip(settings).filter(|(_, one)| one.difference.is_some()).collect();
        if usable.is_empty() {
            return None;
        }
        let count = usable.len() as f64;
        let scale = match usable.iter().all(|(_, one)| one.logarithm.is_some()) {
            true => Scale::Ratio,
            false => Scale::Margins,
        };
        let unit = |one: &InSetting| -> f64 {
            let median = one.medians[0].unwrap_or(0.0).abs();
            let candidates = [one.matters, median, 1.0];
            candidates.into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
        };
        let matters: f64 = match scale {
            Scale::Ratio => {
                let share = |one: &InSetting| one.matters / one.medians[0].unwrap_or(f64::INFINITY);
                usable.iter().map(|(_, one)| share(one).ln_1p()).sum::<f64>() / count
            }
            Scale::Margins if usable.iter().all(|(_, one)| one.matters > 0.0) => 1.0,
            Scale::Margins => 0.0,
        };
        let of_round = |values: &[f64]| -> f64 {
            let scaled = values.iter().zip(&usable).map(|(value, (_, one))| match scale {
                Scale::Ratio => value.ln(),
                Scale::Margins => value / unit(one),
            });
            scaled.sum::<f64>() / count
        };
        let keys: Vec<&Key> = usable.iter().map(|(key, _)| *key).collect();
        let [old, new] = self.sides.each_ref().map(|side| self.rounds(side, &keys, &of_round));
        let decided = stats::between(&old?, &new?, self.alpha)?;
        let (change, matters) = match scale {
            Scale::Ratio => (exponentiated(decided.shift), matters.exp()),
            Scale::Margins => (decided.shift, matters),
        };
        Some(Together { change, matters, scale, basis: decided.basis, decided })
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
    fn own_move(&self) -> f64 {
        let count = self.keys.len() as f64;
        let mean_log = |values: &[f64]| values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let runs = self.sides.iter().filter_map(|side| self.rounds(side, self.keys, &mean_log));
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

/// Applies the rules of two runs to a line.
fn judge(line: &mut Line, controls: &[Line], own: f64) {
    let Some(together) = line.together else { return };
    let others: Vec<&Line> = match line.is_control {
        true => Vec::new(),
        false => controls.iter().filter(|control| control.metric == line.metric).collect(),
    };
    let is_ratio = together.scale == Scale::Ratio;
    let own = if is_ratio { own } else { 0.0 };
    let of_controls: Vec<Estimate> = others
        .iter()
        .filter_map(|control| control.together)
        .filter(|control| is_ratio && control.scale == Scale::Ratio)
        .map(|control| control.decided.shift)
        .collect();
    let matters = if is_ratio { together.matters.ln() } else { together.matters };
    let ruling = stats::rule(&together.decided, matters, &of_controls, own);
    for one in &mut line.settings {
        one.ruling = one.logarithm.map(|change| {
            let same = |control: &&Line| control.settings.iter().find(|own| own.text == one.text)?.logarithm;
            let of_controls: Vec<Estimate> =
                others.iter().filter_map(same).map(|control| control.shift).collect();
            let share = one.matters / one.medians[0].unwrap_or(f64::INFINITY);
            stats::rule(&change, share.ln_1p(), &of_controls, own)
        });
    }
    let any = |ruling: Ruling| line.settings.iter().any(|one| one.ruling == Some(ruling));
    let (up, down) = (any(Ruling::More), any(Ruling::Less));
    line.verdict = match ruling {
        // A control that changed is what a changed machine is known by.
        Ruling::More | Ruling::Less if line.is_control => Verdict::Machine,
        Ruling::More if down => Verdict::Mixed,
        Ruling::Less if up => Verdict::Mixed,
        Ruling::More => Verdict::Slower,
        Ruling::Less => Verdict::Faster,
        _ if up && down => Verdict::Mixed,
        Ruling::Same if up || down => Verdict::Mixed,
        Ruling::Same => Verdict::Same,
        Ruling::Machine => Verdict::Machine,
        Ruling::ControlsTooWide(bound) => Verdict::ControlsTooWide(bound.exp_m1()),
        Ruling::Unsteady(bound) => Verdict::Unsteady(bound.exp_m1()),
        Ruling::Undecided { smallest_visible, new_run } => Verdict::Undecided {
            smallest_visible: if is_ratio { smallest_visible.exp_m1() } else { smallest_visible },
            new_run,
        },
        Ruling::TooFew { have, need } => Verdict::TooFew { have, need },
    };
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
