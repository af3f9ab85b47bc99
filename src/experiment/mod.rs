//! Experiments: one question, one file. The list below is the only place that knows them all;
//! help, plan, documentation and reports derive from it. No experiment names an engine.

pub mod exec;
pub mod lifecycle;
pub mod primitives;
pub mod start;

use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::Inside;
use crate::stats::Margin;
use crate::subject::{Launch, Need, Stage, Subject, Work};
use crate::units::{Nanos, Stamp, Unit};

/// Every experiment there is.
pub static ALL: &[&dyn Experiment] =
    &[&start::Start, &primitives::Primitives, &lifecycle::Lifecycle, &exec::Exec];

/// What a run takes on that names no experiment: the main job.
pub static MAIN: &[&str] = &["start", "primitives"];

/// The experiment with this name.
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().copied().find(|experiment| experiment.name() == name)
}

/// Whether a metric's differences get a verdict, or are shown beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Belongs to the family of comparisons whose level is adjusted.
    Verdict,
    /// Shown with its interval; explains, does not decide.
    Context,
}

/// Something measured: its name, unit, meaning and the smallest difference that matters.
#[derive(Debug)]
pub struct Metric {
    /// Its name in tables and files.
    pub name: &'static str,
    /// The base unit of its values. Smaller is better in all units there are so far.
    pub unit: Unit,
    /// Whether it is decided upon.
    pub weight: Weight,
    /// The smallest difference that matters, unless the person says otherwise.
    pub margin: Margin,
    /// What lies inside the interval, for a person who wants to object.
    pub meaning: &'static str,
    /// Its value in base units, if the sample holds what it needs.
    pub derive: fn(&Sample) -> Option<f64>,
}

/// The conditions that an experiment itself chooses in one cell, as `key=value` in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Setting(pub Vec<(&'static str, &'static str)>);

impl Setting {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&'static str> {
        self.0.iter().find(|(own, _)| *own == key).map(|(_, value)| *value)
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        out.pad(&parts.join(";"))
    }
}

/// A key that an experiment's settings vary, with the values it can take.
#[derive(Debug)]
pub struct SettingKey {
    /// Its name in `--set key=value`.
    pub name: &'static str,
    /// Its values, the one for `--quick` first.
    pub values: &'static [&'static str],
    /// What it means, for people.
    pub meaning: &'static str,
}

/// One question and how it is put to a subject.
pub trait Experiment: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// The question it answers, as a person would ask it.
    fn question(&self) -> &'static str;
    /// What a subject must offer to have cells in it.
    fn needs(&self) -> Need;
    /// What it measures, the most important first.
    fn metrics(&self) -> &'static [Metric];
    /// What it varies by itself.
    fn setting_keys(&self) -> &'static [SettingKey];
    /// Keys that a setting has only where a person chose values for them by an option of their own, since
    /// they hit more than what is measured. Without it, the first value holds and is not written down.
    fn guarded_keys(&self) -> &'static [SettingKey] {
        &[]
    }
    /// Whether its keys can have these values together.
    fn has(&self, _setting: &Setting) -> bool {
        true
    }
    /// The values of a key that are enough where a minute must do.
    fn quick_values(&self, key: &SettingKey) -> Vec<&'static str> {
        key.values.iter().copied().take(1).collect()
    }
    /// The setting of which this one is told in difference, round by round and subject by subject: what
    /// it has more is what is priced. None where the value itself is the price, or nothing is priced.
    fn reference(&self, _setting: &Setting) -> Option<Setting> {
        None
    }
    /// Takes one sample of a subject. Everything that the subject leaves behind is gone when this
    /// returns, whatever it returns.
    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        stage: &mut Stage,
    ) -> Result<Sample, Abort>;
    /// The time that one sample takes, given the time that one launch of the subject takes from
    /// the command until all is gone.
    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos;
}

/// Stamps in their order, by name.
type Stamps = Vec<(&'static str, Stamp)>;
/// Metrics that a sample lacks, with the reason.
type Missing = Vec<(Name, String)>;

/// The stamps that count, in their order, and what is missing for want of the others: stamps of a kernel
/// that came with the container are of another clock, which began with it.
fn on_one_clock<const N: usize>(
    inside: &Inside,
    stamps: [(&'static str, Stamp); N],
    lost: &[&'static str],
) -> (Stamps, Missing) {
    const STAMPED_INSIDE: [&str; 3] = ["first", "main", "ready"];
    const REASON: &str = "the kernel inside is not the host's, and its clock begins with the container; only stamps from outside count";
    if !inside.has_own_kernel() {
        return (stamps.to_vec(), Vec::new());
    }
    let outside = stamps.into_iter().filter(|(name, _)| !STAMPED_INSIDE.contains(name)).collect();
    (outside, lost.iter().map(|name| ((*name).into(), REASON.to_owned())).collect())
}

/// Refuses stamps that cannot have come in this order from one clock.
fn in_order(stamps: &[(&str, Stamp)]) -> Result<(), Failure> {
    let Some(pair) = stamps.windows(2).find(|pair| pair[1].1 < pair[0].1) else { return Ok(()) };
    let [(earlier, _), (later, _)] = [pair[0], pair[1]];
    let reason =
        format!("`{later}` is stamped before `{earlier}`: the clock inside is not the clock outside");
    Err(Failure::new(FailureClass::WrongOutput, reason))
}

/// Has a subject's probe work, in a container that is gone when this returns. What the work takes is
/// allowed on top of what a launch may take; a work that the subject does not support is a failure of that
/// class.
pub(crate) fn worked(subject: &mut dyn Subject, stage: &mut Stage, work: &Work) -> Result<Launch, Abort> {
    let allowed = stage.allowed;
    stage.allowed = allowed + work.takes;
    let launched = subject.work(work, stage);
    stage.allowed = allowed;
    let launch = launched?;
    match &launch.message.done.refused {
        Some(why) => Err(Failure::new(FailureClass::Unsupported, why.clone()).into()),
        None => Ok(launch),
    }
}

/// The sample of a work: the launch's own stamps and counters, the numbers and series that the work
/// reported, and its facts beside those of the treatment.
pub(crate) fn work_sample(launch: &Launch) -> Result<Sample, Failure> {
    let mut sample = start::sample(launch)?;
    let done = &launch.message.done;
    sample.counters.extend(done.results.iter().map(|(name, value)| (name.clone().into(), *value)));
    sample.series.extend(done.series.iter().map(|(name, values)| (name.clone().into(), values.clone())));
    sample.treatment.extend(done.notes.iter().map(|(name, fact)| (name.clone().into(), fact.clone())));
    Ok(sample)
}

/// All combinations of the values of an experiment's keys, in the order of declaration.
pub fn settings(keys: &[SettingKey], chosen: impl Fn(&SettingKey) -> Vec<&'static str>) -> Vec<Setting> {
    extended(vec![Setting::default()], keys, chosen)
}

/// All these settings with all combinations of the values of more keys.
pub fn extended(
    settings: Vec<Setting>,
    keys: &[SettingKey],
    chosen: impl Fn(&SettingKey) -> Vec<&'static str>,
) -> Vec<Setting> {
    keys.iter().fold(settings, |settings, key| {
        let values = chosen(key);
        let extended = |setting: &Setting, value| {
            let mut pairs = setting.0.clone();
            pairs.push((key.name, value));
            Setting(pairs)
        };
        settings
            .iter()
            .flat_map(|setting| values.iter().map(|value| extended(setting, value)).collect::<Vec<_>>())
            .collect()
    })
}

/// The settings of an experiment with values that were chosen, and with them the settings that they
/// are told in difference of.
pub fn settings_of(
    experiment: &dyn Experiment,
    chosen: impl Fn(&SettingKey) -> Vec<&'static str>,
) -> Vec<Setting> {
    let mut all = settings(experiment.setting_keys(), &chosen);
    for key in experiment.guarded_keys() {
        let values = chosen(key);
        if !values.is_empty() {
            all = extended(all, std::slice::from_ref(key), |_| values.clone());
        }
    }
    all.retain(|setting| experiment.has(setting));
    let mut at = 0;
    while at < all.len() {
        if let Some(reference) = experiment.reference(&all[at])
            && !all.contains(&reference)
        {
            all.push(reference);
        }
        at += 1;
    }
    all
}

/// Whether an experiment gives verdicts; others show and price.
pub fn decides(experiment: &dyn Experiment) -> bool {
    experiment.metrics().iter().any(|metric| metric.weight == Weight::Verdict)
}

/// The setting of an experiment that prints as this text.
pub fn parse_setting(experiment: &dyn Experiment, text: &str) -> Option<Setting> {
    let guarded = |key: &SettingKey| experiment.guarded_keys().iter().any(|one| one.name == key.name);
    let plain = |key: &SettingKey| if guarded(key) { Vec::new() } else { key.values.to_vec() };
    let every = |key: &SettingKey| key.values.to_vec();
    let mut known = settings_of(experiment, plain).into_iter().chain(settings_of(experiment, every));
    known.find(|one| one.to_string() == text)
}
