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
use crate::stats::{self, Alpha, Basis, Between, Estimate, FAR, Margin, Ruling, Sample};
use crate::text::listed;
use crate::verdict::{Columns, Kind, Numbers, lost_too_many};

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
    /// Where rounds failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedRounds>,
    /// Over all settings that have values on both sides.
    pub together: Option<Together>,
    /// The conclusion.
    pub verdict: Kind,
    /// The reason, with sizes on the scale of `together`; none if nothing was decided.
    pub ruling: Option<Ruling>,
    /// Why it must not be believed: the place of the run, the rule and the evidence.
    pub suspect: Option<String>,
}

/// The failed rounds of one setting, which have the same values in every metric.
#[derive(Debug, Clone, Serialize)]
pub struct FailedRounds {
    /// `key=value;…`, empty if the experiment has no keys.
    pub setting: String,
    /// Rounds that failed in the old and in the new runs.
    pub failed: [usize; 2],
    /// The rounds that were tried.
    pub rounds: [usize; 2],
    /// Whether the new runs were shown to fail more often (`worse`), or less often (`better`); otherwise `undecided`.
    pub verdict: Kind,
    /// Whether a run lost more of its rounds than may be: 5 %, and at least two.
    pub too_many: bool,
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
    pub(super) logarithm: Option<(Failing, f64)>,
}

/// A shift with an interval that holds wherever failed rounds are, and the shifts with all of them at the lowest and at the
/// highest place, if any failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failing {
    pub over_both: Between,
    pub extremes: Option<[Between; 2]>,
}

impl Failing {
    /// The ruling about it.
    pub fn rule(&self, matters: f64, controls: &[Estimate], own: f64) -> Ruling {
        match self.extremes {
            None => stats::rule(&self.over_both, matters, controls, own),
            Some(extremes) => stats::rule_at_both(extremes, matters, controls, own),
        }
    }
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
    pub(super) decided: Failing,
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

    /// Whether a cell lost any sample.
    fn has_lost(&self, key: &Key) -> bool {
        self.cells.get(key).is_some_and(|cell| self.columns.has_lost(*cell))
    }

    /// How many rounds of a cell failed, of how many that were tried.
    pub(super) fn failed(&self, key: &Key) -> (usize, usize) {
        self.cells.get(key).map_or((0, 0), |cell| self.columns.failed_of(*cell))
    }

    /// How many rounds a cell lost, if they are too many, of the planned ones.
    pub(super) fn lost_too_many(&self, key: &Key) -> Option<(usize, usize)> {
        let cell = *self.cells.get(key)?;
        let lost = lost_too_many(self.run.recorded, cell)?;
        Some((lost, self.plan().rounds_of(self.plan().cells[cell].experiment)))
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
    pub failure_level: Alpha,
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
            failures: if self.metric == 0 { self.failures() } else { Vec::new() },
            settings,
            verdict: if decisive { Kind::NoData } else { Kind::Context },
            ruling: None,
            suspect: None,
        }
    }

    /// The settings in which rounds failed.
    fn failures(&self) -> Vec<FailedRounds> {
        let of = |key: &&Key| {
            let counts = self.sides.each_ref().map(|side| {
                let all = side.iter().map(|run| run.failed(key));
                all.fold((0, 0), |(failed, of), one| (failed + one.0, of + one.1))
            });
            let mut runs = self.sides.iter().flatten();
            let too_many = runs.any(|run| run.lost_too_many(key).is_some());
            let is_shown = stats::more_often_of(counts) <= self.failure_level.get();
            let [old, new] = counts.map(|(failed, of)| failed as f64 / of.max(1) as f64);
            let verdict = match (is_shown, new > old) {
                (true, true) => Kind::Worse,
                (true, false) => Kind::Better,
                (false, _) => Kind::Undecided,
            };
            let [failed, rounds] = [counts.map(|(failed, _)| failed), counts.map(|(_, rounds)| rounds)];
            let setting = key.1.to_string();
            (too_many || failed != [0, 0]).then_some(FailedRounds {
                setting,
                failed,
                rounds,
                verdict,
                too_many,
            })
        };
        self.keys.iter().filter_map(of).collect()
    }

    fn in_setting(&self, key: &Key) -> InSetting {
        let cells = [key];
        let between =
            |transform: fn(f64) -> f64| self.between(&cells, &|values: &[f64]| transform(values[0]));
        let medians = self.sides.each_ref().map(|side| {
            let samples = side.iter().map(|run| Sample::new(run.column(key, self.metric).iter().flatten()));
            middle(&samples.collect::<Option<Vec<_>>>()?)
        });
        let matters = self.margin.at(medians[0].unwrap_or(0.0));
        let mut runs = self.sides.iter().flatten();
        let is_positive =
            runs.all(|run| run.column(key, self.metric).iter().flatten().all(|value| *value > 0.0));
        let logarithm = if is_positive { between(f64::ln) } else { None };
        let numbers = between(|value| value).map(|found| Numbers {
            difference: found.over_both.shift,
            ratio: logarithm.filter(|_| self.has_ratio(medians)).map(|one| one.over_both.shift.map(f64::exp)),
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
        let keys: Vec<&Key> = usable.iter().map(|(key, ..)| *key).collect();
        let between = |of_round: &dyn Fn(&[f64]) -> f64| self.between(&keys, of_round);
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
            let Between { shift: change, basis } = decided.over_both;
            let (scale, log_matters) = (Scale::Margins, None);
            return Some(Together { change, matters, scale, basis, decided, log_matters });
        };
        let decided = between(&mean_logarithm)?;
        let log_matters = shares.iter().sum::<f64>() / count;
        let (scale, change, matters) = match numbers.iter().all(|one| one.ratio.is_some()) {
            true => (Scale::Ratio, decided.over_both.shift.map(f64::exp), log_matters.exp()),
            false => (Scale::Margins, in_margins()?.over_both.shift, matters),
        };
        let (basis, log_matters) = (decided.over_both.basis, Some(log_matters));
        Some(Together { change, matters, scale, basis, decided, log_matters })
    }

    /// The cells that have values on both sides.
    fn usable<'a>(&'a self, settings: &'a [InSetting]) -> Vec<Usable<'a>> {
        let has_numbers = |(key, one): (&&'a Key, &'a InSetting)| Some((*key, one, one.numbers.as_ref()?));
        self.keys.iter().zip(settings).filter_map(has_numbers).collect()
    }

    /// The shift of one number for each round in which all these cells have a value or failed.
    fn between(&self, cells: &[&Key], of_round: &dyn Fn(&[f64]) -> f64) -> Option<Failing> {
        let at = |places: [Option<f64>; 2]| {
            let rounds = |side: usize| self.rounds(&self.sides[side], cells, of_round, places[side]);
            stats::between(&rounds(0)?, &rounds(1)?, self.alpha)
        };
        let known = at([None; 2])?;
        let mut runs = self.sides.iter().flatten();
        if !runs.any(|run| cells.iter().any(|key| run.has_lost(key))) {
            return Some(Failing { over_both: known, extremes: None });
        }
        let extremes = [at([Some(FAR), Some(-FAR)])?, at([Some(-FAR), Some(FAR)])?];
        Some(Failing { over_both: stats::over_both(known, extremes), extremes: Some(extremes) })
    }

    /// One number for each round of these cells, run by run.
    fn rounds(
        &self,
        side: &[Ready<'_>],
        cells: &[&Key],
        of_round: &dyn Fn(&[f64]) -> f64,
        failed: Option<f64>,
    ) -> Option<Vec<Sample>> {
        let of_run = |run: &Ready<'_>| {
            let cells: Option<Vec<usize>> = cells.iter().map(|key| run.cells.get(*key).copied()).collect();
            run.columns.rounds(&cells?, self.metric, of_round, failed)
        };
        side.iter().map(of_run).collect()
    }

    /// The largest difference of a run from itself over all settings, on the scale of logarithms.
    pub(super) fn own_move(&self, settings: &[InSetting]) -> f64 {
        let keys: Vec<&Key> = self.usable(settings).iter().map(|(key, ..)| *key).collect();
        let runs = self.sides.iter().filter_map(|side| self.rounds(side, &keys, &mean_logarithm, None));
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
