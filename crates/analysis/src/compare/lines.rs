//! The change of one subject in one metric: in each setting, over all of them together, and whether the
//! subject itself changed.
//!
//! Over settings, the values of one round are combined, since what disturbs a round disturbs all its cells:
//! by their mean logarithm, so that the change is a ratio, or, if a value is not above zero, by their mean in
//! units of the smallest difference that matters. So rounds remain the unit of replication. Close to the
//! timer's resolution, the change is shown in those units and not as a ratio; the decision still uses
//! logarithms, since a slower machine is slower by a share.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Key, Run, Subject, keys};
use crate::experiment::{self, Weight};
use crate::plan::Plan;
use crate::stats::paired::RATIO_FLOORS;
use crate::stats::{self, Alpha, Basis, Between, Estimate, Margin, Ruling, Sample};
use crate::text::listed;
use crate::verdict::{Columns, Kind, Numbers};

/// A subject in a metric.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// The subject's label.
    #[serde(rename = "subject")]
    pub label: String,
    /// Whether it is there to show the machine: `bare` and `floor`.
    pub is_control: bool,
    /// Index into the experiment's metrics.
    #[serde(skip)]
    pub metric: usize,
    /// Its name.
    #[serde(rename = "metric")]
    pub name: &'static str,
    /// By setting.
    pub settings: Vec<InSetting>,
    /// Over all settings that have values on both sides.
    pub together: Option<Together>,
    /// The conclusion.
    pub verdict: Kind,
    /// The reason, with sizes on the scale of `together`; none if nothing was decided.
    pub ruling: Option<Ruling>,
    /// Why it must not be believed: the place of the run, the rule and the evidence.
    pub suspect: Option<String>,
}

/// One setting of a line.
#[derive(Debug, Clone, Serialize)]
pub struct InSetting {
    /// `key=value;…`, empty if the experiment has no keys.
    #[serde(rename = "setting")]
    pub text: String,
    /// The values alone.
    #[serde(skip)]
    pub values: String,
    /// The medians of the old and of the new runs; for several runs, the median of their medians.
    pub medians: [Option<f64>; 2],
    /// The shift from old to new, that of the logarithms, exponentiated, and what matters; none if a side has
    /// no value.
    pub numbers: Option<Numbers>,
    /// Why a side has no value, if it has none.
    pub failure: [Option<String>; 2],
    /// The ruling about this setting alone.
    #[serde(skip)]
    pub(super) ruling: Option<Ruling>,
    /// The shift of the logarithms, and the smallest that matters; none if a value has no logarithm.
    #[serde(skip)]
    pub(super) logarithm: Option<(Between, f64)>,
}

/// Why a cell has no value though its samples were taken and did not fail.
pub(super) const NO_VALUE: &str = "has no value";

/// The change over all settings.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Together {
    /// The change: a ratio, or units of what matters.
    pub change: Estimate,
    /// The smallest change that matters, in the same form: a ratio, or 1.
    pub matters: f64,
    /// Whether it is a ratio.
    pub scale: Scale,
    /// What the interval is computed from.
    pub basis: Basis,
    /// The change as it is decided: in logarithms, or in units of what matters.
    #[serde(skip)]
    pub(super) decided: Between,
    /// The smallest change that matters as a logarithm; none if values have none.
    #[serde(skip)]
    pub(super) log_matters: Option<f64>,
}

/// The form in which a change over several settings is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Scale {
    /// New ÷ old.
    #[serde(rename = "new / old")]
    Ratio,
    /// Units of the smallest difference that matters.
    #[serde(rename = "what matters")]
    Margins,
}

impl Line {
    /// The settings in which the old runs have values and the new ones do not, each with the reason.
    pub fn lost(&self) -> impl Iterator<Item = (&str, &str)> {
        let in_setting = |one: &'_ InSetting| one.medians[0].is_some() && one.medians[1].is_none();
        let lost = self.settings.iter().filter(move |one| in_setting(one));
        lost.map(|one| (one.text.as_str(), one.failure[1].as_deref().unwrap_or(NO_VALUE)))
    }
}

/// A run with lookups.
pub(super) struct Ready<'a> {
    run: &'a Run<'a>,
    cells: BTreeMap<Key, usize>,
    columns: Columns,
}

impl Ready<'_> {
    pub(super) fn of<'a>(run: &'a Run<'a>) -> Ready<'a> {
        Ready { run, cells: keys(run), columns: Columns::of(run.recorded) }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.run.recorded.plan
    }

    /// The values of a metric in a cell by complete round.
    fn column(&self, key: &Key, metric: usize) -> &[Option<f64>] {
        self.cells.get(key).map_or(&[], |cell| self.columns.get(*cell, metric))
    }

    /// Why a cell has no value.
    fn failure(&self, key: &Key) -> String {
        let Some(cell) = self.cells.get(key) else { return "was not planned".into() };
        let summary = &self.run.quality.cells[*cell];
        match summary.failures.iter().max_by_key(|(_, times, _)| *times) {
            Some((.., reason)) => format!("failed: {reason}"),
            None if summary.skipped > 0 => "was skipped".into(),
            None => NO_VALUE.into(),
        }
    }

    /// The suspect that overrules a difference of this size in a metric of a cell.
    pub(super) fn suspect(&self, key: &Key, metric: usize, size: f64) -> Option<String> {
        let cell = self.cells.get(key)?;
        let found = self.run.quality.suspects.iter().find(|one| one.concerns(&[*cell], metric, size))?;
        Some(format!("`{}`: {}: {}", self.run.place, found.rule, found.evidence))
    }
}

/// The input of one line.
pub(super) struct Measured<'a> {
    pub sides: &'a [Vec<Ready<'a>>; 2],
    pub keys: &'a [&'a Key],
    pub metric: usize,
    pub margin: Margin,
    pub alpha: Alpha,
}

impl Measured<'_> {
    pub(super) fn line(&self, subject: &Subject, metric: &experiment::Metric) -> Line {
        let settings: Vec<InSetting> = self.keys.iter().map(|key| self.in_setting(key)).collect();
        let decisive = metric.weight == Weight::Verdict;
        Line {
            label: subject.label.clone(),
            is_control: subject.is_control,
            metric: self.metric,
            name: metric.name,
            together: if decisive { self.together(&settings) } else { None },
            settings,
            verdict: if decisive { Kind::NoData } else { Kind::Context },
            ruling: None,
            suspect: None,
        }
    }

    fn in_setting(&self, key: &Key) -> InSetting {
        let samples = |transform: fn(f64) -> f64| {
            self.sides.each_ref().map(|side| -> Option<Vec<Sample>> {
                let one = |run: &Ready<'_>| {
                    let values = run.column(key, self.metric).iter().flatten().copied();
                    Sample::new(values.map(transform))
                };
                side.iter().map(one).collect()
            })
        };
        let between = |[old, new]: [Option<Vec<Sample>>; 2]| stats::between(&old?, &new?, self.alpha);
        let plain = samples(|value| value);
        let medians = plain.each_ref().map(|side| middle(side.as_deref()?));
        let matters = self.margin.at(medians[0].unwrap_or(0.0));
        let mut runs = self.sides.iter().flatten();
        let is_positive =
            runs.all(|run| run.column(key, self.metric).iter().flatten().all(|value| *value > 0.0));
        let logarithm = if is_positive { between(samples(f64::ln)) } else { None };
        let numbers = between(plain).map(|found| Numbers {
            difference: found.shift,
            ratio: logarithm.filter(|_| self.has_ratio(medians)).map(|found| found.shift.map(f64::exp)),
            matters,
        });
        let failure = |side: usize| {
            let empty = |run: &&Ready<'_>| run.column(key, self.metric).iter().all(Option::is_none);
            self.sides[side].iter().find(empty).map(|run| run.failure(key))
        };
        let share = matters / medians[0].unwrap_or(f64::INFINITY);
        InSetting {
            text: key.1.to_string(),
            values: listed(key.1.0.iter().map(|(_, value)| value), " "),
            medians,
            numbers,
            failure: [failure(0), failure(1)],
            ruling: None,
            logarithm: logarithm.map(|found| (found, share.ln_1p())),
        }
    }

    /// Whether a ratio is meaningful: both medians are far enough above the timer's resolution.
    fn has_ratio(&self, medians: [Option<f64>; 2]) -> bool {
        let timers = self.sides.iter().flatten().map(|run| run.run.recorded.environment.timer.step);
        let floor = timers.max().unwrap_or(0) as f64 / 1e9;
        medians.iter().flatten().all(|median| *median >= RATIO_FLOORS * floor)
    }

    fn together(&self, settings: &[InSetting]) -> Option<Together> {
        let usable = self.usable(settings);
        let numbers: Vec<&Numbers> = usable.iter().map(|(_, _, numbers)| *numbers).collect();
        let count = usable.len() as f64;
        let between = |of_round: &dyn Fn(&[f64]) -> f64| {
            let [old, new] = self.sides.each_ref().map(|side| self.rounds(side, &usable, of_round));
            stats::between(&old?, &new?, self.alpha)
        };
        let in_margins = || {
            let unit = |(_, one, numbers): &Usable<'_>| -> f64 {
                let median = one.medians[0].unwrap_or(0.0).abs();
                [numbers.matters, median].into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
            };
            let scaled = |(value, one): (&f64, &Usable<'_>)| value / unit(one);
            between(&|values| values.iter().zip(&usable).map(scaled).sum::<f64>() / count)
        };
        let matters = if numbers.iter().all(|one| one.matters > 0.0) { 1.0 } else { 0.0 };
        let shares: Option<Vec<f64>> = usable.iter().map(|(_, one, _)| Some(one.logarithm?.1)).collect();
        let Some(shares) = shares.filter(|all| !all.is_empty()) else {
            let decided = in_margins().filter(|_| !usable.is_empty())?;
            let (change, basis, scale, log_matters) = (decided.shift, decided.basis, Scale::Margins, None);
            return Some(Together { change, matters, scale, basis, decided, log_matters });
        };
        let decided = between(&mean_logarithm)?;
        let log_matters = shares.iter().sum::<f64>() / count;
        let (scale, change, matters) = match numbers.iter().all(|one| one.ratio.is_some()) {
            true => (Scale::Ratio, decided.shift.map(f64::exp), log_matters.exp()),
            false => (Scale::Margins, in_margins()?.shift, matters),
        };
        let (basis, log_matters) = (decided.basis, Some(log_matters));
        Some(Together { change, matters, scale, basis, decided, log_matters })
    }

    /// The cells that have values on both sides.
    fn usable<'a>(&'a self, settings: &'a [InSetting]) -> Vec<Usable<'a>> {
        let has_numbers = |(key, one): (&&'a Key, &'a InSetting)| Some((*key, one, one.numbers.as_ref()?));
        self.keys.iter().zip(settings).filter_map(has_numbers).collect()
    }

    /// One number for each round in which all these cells have a value, run by run.
    fn rounds(
        &self,
        side: &[Ready<'_>],
        cells: &[Usable<'_>],
        of_round: &dyn Fn(&[f64]) -> f64,
    ) -> Option<Vec<Sample>> {
        let of_run = |run: &Ready<'_>| {
            let columns: Vec<_> = cells.iter().map(|(key, ..)| run.column(key, self.metric)).collect();
            let rounds = columns.first().map_or(0, |column| column.len());
            let in_round =
                |round: usize| columns.iter().map(|column| column[round]).collect::<Option<Vec<f64>>>();
            let values = (0..rounds).filter_map(|round| Some(of_round(&in_round(round)?)));
            Sample::new(values.filter(|value| value.is_finite()))
        };
        side.iter().map(of_run).collect()
    }

    /// The largest difference of a run from itself over all settings, on the scale of logarithms.
    pub(super) fn own_move(&self, settings: &[InSetting]) -> f64 {
        let usable = self.usable(settings);
        let runs = self.sides.iter().filter_map(|side| self.rounds(side, &usable, &mean_logarithm));
        runs.flatten().map(|run| stats::own_move(&run, self.alpha)).fold(0.0, f64::max)
    }
}

/// A cell that has values on both sides.
type Usable<'a> = (&'a Key, &'a InSetting, &'a Numbers);

fn mean_logarithm(values: &[f64]) -> f64 {
    values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64
}

/// The median of the runs' medians.
fn middle(runs: &[Sample]) -> Option<f64> {
    Sample::new(runs.iter().map(Sample::median)).map(|medians| medians.median())
}
