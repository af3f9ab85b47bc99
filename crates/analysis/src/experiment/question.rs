//! What an experiment is before anything is measured: its question, metrics, settings, and who takes part.

use super::setting::{Controlled, Setting, SettingKey, extended, pairs_in, settings};
use super::variation::Variation;
use crate::launch::names::{FIRST, MAIN, READY};
use crate::names::{Counter, Series, Spread, StampName};
use crate::outcome::Sample;
use crate::stats::{Margin, tail};
use crate::subject::{Layer, Need};
use crate::units::{Better, Nanos, Unit};

/// How long the machine rests before an idle launch, an idle entry, or the creation of a container.
pub const QUIET: Nanos = Nanos::from_millis(100);

/// Whether a metric's differences get a verdict or are only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Part of the family of comparisons whose level is adjusted.
    Verdict,
    /// Shown with its interval: explains but does not decide.
    Context,
}

/// Something measured: its name, unit, meaning and the smallest difference that matters.
#[derive(Debug)]
pub struct Metric {
    /// Its name in tables and files.
    pub name: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// Whether it gets verdicts.
    pub weight: Weight,
    /// The smallest difference that matters, unless the user sets another.
    pub margin: Margin,
    /// Whether values below zero make sense.
    pub is_signed: bool,
    /// What exactly the interval covers, for readers who want to check.
    pub meaning: &'static str,
    /// Its value in base units, if the sample has what it needs.
    derive: Derive,
}

/// How the value of a metric is computed from a sample.
#[derive(Debug, Clone, Copy)]
enum Derive {
    /// The time from one stamp to another.
    Span(StampName, StampName),
    /// A counter, with so many of its unit in the base unit.
    Counted(Counter, f64),
    /// The result of this function for the sample and this word.
    Named(fn(&Sample, &str) -> Option<f64>, &'static str),
    /// The result of this function for the sample.
    By(fn(&Sample) -> Option<f64>),
    /// The value that this share of all values of this distribution does not exceed, over all samples of a cell.
    Tail(Spread, f64),
}

/// A counter of nanoseconds, in seconds.
pub(super) fn nanos(sample: &Sample, counter: Counter) -> Option<f64> {
    Some(Nanos(sample.counter(counter)?).seconds())
}

/// A counter for each thing that another one counts, if there is any.
pub(super) fn quotient(sample: &Sample, counter: Counter, of: Counter) -> Option<f64> {
    let count = sample.counter(of).filter(|count| *count > 0)?;
    Some(sample.counter(counter)? as f64 / count as f64)
}

/// The same for a counter of nanoseconds, in seconds.
pub(super) fn each(sample: &Sample, counter: Counter, of: Counter) -> Option<f64> {
    Some(nanos(sample, counter)? / sample.counter(of).filter(|count| *count > 0)? as f64)
}

/// From libc's start, or from the entry of a probe without libc, until its message is ready; in seconds.
pub(super) fn probe_work(sample: &Sample) -> Option<f64> {
    sample.seconds(MAIN, READY).or_else(|| sample.seconds(FIRST, READY))
}

impl Metric {
    /// A time that gets a verdict. In a launch, a difference below 20 µs or 3 % does not matter to anyone who
    /// starts containers.
    const fn time(name: &'static str, derive: Derive) -> Metric {
        let (weight, margin) = (Weight::Verdict, Margin::fixed(20e-6, 0.03));
        let (unit, better) = (Unit::Seconds, Better::Less);
        Metric { name, unit, better, weight, margin, is_signed: false, meaning: "", derive }
    }

    /// The time from one stamp to another.
    pub(super) const fn span(name: &'static str, from: StampName, to: StampName) -> Metric {
        Metric::time(name, Derive::Span(from, to))
    }

    /// A counter of nanoseconds.
    pub(super) const fn nanos(name: &'static str, of: Counter) -> Metric {
        Metric::counted(name, of, 1e9)
    }

    /// A counter with so many of its unit in the base unit.
    pub(super) const fn counted(name: &'static str, of: Counter, per: f64) -> Metric {
        Metric::time(name, Derive::Counted(of, per))
    }

    /// Computed by a function from a sample and a word.
    pub(super) const fn named(
        name: &'static str,
        derive: fn(&Sample, &str) -> Option<f64>,
        of: &'static str,
    ) -> Metric {
        Metric::time(name, Derive::Named(derive, of))
    }

    /// Computed by a function from a sample.
    pub(super) const fn by(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
        Metric::time(name, Derive::By(derive))
    }

    /// The duration that this share of a distribution's values does not exceed, of the values of all rounds together; it
    /// explains and does not decide.
    pub(super) const fn tail(name: &'static str, distribution: Spread, share: f64) -> Metric {
        Metric::time(name, Derive::Tail(distribution, share)).context()
    }

    /// Of which distribution it is the tail, over all rounds, and the share of values up to it.
    pub fn is_tail(&self) -> Option<(Spread, f64)> {
        match self.derive {
            Derive::Tail(distribution, share) => Some((distribution, share)),
            _ => None,
        }
    }

    /// The same in another unit, with another smallest difference.
    pub(super) const fn of(self, unit: Unit, margin: Margin) -> Metric {
        Metric { unit, margin, ..self }
    }

    /// The same, with more as better, or neither.
    pub(super) const fn with(self, better: Better) -> Metric {
        Metric { better, ..self }
    }

    /// The same, but it explains and does not decide.
    pub(super) const fn context(self) -> Metric {
        Metric { weight: Weight::Context, ..self }
    }

    /// The same, of which values below zero make sense.
    pub(super) const fn signed(self) -> Metric {
        Metric { is_signed: true, ..self }
    }

    /// The same, with a description of what the interval covers.
    pub(super) const fn meaning(self, meaning: &'static str) -> Metric {
        Metric { meaning, ..self }
    }

    /// Its value in a sample: as imported if it was, otherwise computed. A tail's is that of the sample's own values, if they
    /// are enough.
    pub fn value(&self, sample: &Sample) -> Option<f64> {
        let given = sample.given.iter().find(|(name, _)| name == self.name).map(|(_, value)| *value);
        given.or_else(|| match self.derive {
            Derive::Span(from, to) => sample.seconds(from, to),
            Derive::Counted(of, per) => Some(sample.counter(of)? as f64 / per),
            Derive::Named(derive, of) => derive(sample, of),
            Derive::By(derive) => derive(sample),
            Derive::Tail(distribution, share) => {
                let values = sample.distribution(distribution)?.count();
                if tail::has_tail(values, share) { sample.quantile(distribution, share) } else { None }
            }
        })
    }
}

/// Values that replicate within a sample and get a picture of their own.
#[derive(Debug)]
pub struct Replicates {
    /// The name of the sample's series.
    pub series: Series,
    /// What a value is, for a title.
    pub what: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// How many counts of the series make one unit.
    pub divisor: f64,
    /// What the horizontal axis shows.
    pub along: &'static str,
    /// The seconds, or places, between two values; none if they have no order.
    pub every: fn(&Sample) -> Option<f64>,
    /// How they are drawn.
    pub shown: Shown,
}

/// How values that replicate within a sample are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As waits: a line over time, and which share took no longer than each wait.
    Waits,
    /// As use in equal parts of time: bars.
    Parts,
    /// Over their places: a line.
    Places,
}

/// Which available subjects take part in an experiment when the user names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those with default options.
    AsInstalled,
    /// Of these, only the first runtime that works, and the engines that filter system calls by default, with their own
    /// runtime: each has variants.
    Few,
    /// Of the same, only the first of each layer that works: for samples that take long and are expected to be the same.
    OneOfEach,
    /// Of these, the floor and the engines: for samples that take very long.
    Engines,
}

/// Which subjects an experiment compares with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Each with the baseline, with the layer below, and with those from which it was chosen apart.
    Layers,
    /// Only those that differ in one key: for what is the same on all others.
    OneKey,
}

/// The event that the metrics' values belong to; it says when a difference matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Once per job, which waits for it: `launch`. The first metric is the wait.
    Once(&'static str),
    /// Each of these holds what the first metric counts, as long as it is there; nothing waits for that: `container`.
    Held(&'static str),
    /// A whole piece of work whose length is the first metric; its share says everything.
    Whole,
    /// Each metric is about something that a program does many times: `call`.
    Often(&'static str),
    /// Each metric is about a different work, whose share says everything.
    Works,
}

impl Event {
    /// Whether the first metric is the answer; otherwise all metrics with verdicts have the same rank.
    pub fn has_one_answer(self) -> bool {
        matches!(self, Event::Once(_) | Event::Held(_) | Event::Whole)
    }
}

/// Who is affected if a layer adds something, and what helps.
#[derive(Debug, Clone, Copy)]
pub struct Concern {
    /// A kind of job: `many short commands`.
    pub job: &'static str,
    /// What a user with such a job can do.
    pub remedy: &'static str,
}

/// The class of a metric's value in a sample of this setting, with the facts that were read back.
pub type Classify = fn(&Setting, &Sample, &[(String, String)], &str) -> Option<&'static str>;

/// Everything about an experiment that needs no measuring: one value each, in its own file.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers, as a person would ask it.
    pub question: &'static str,
    /// What a subject must support to have cells in it.
    pub needs: Need,
    /// What values of its keys need in addition; a subject without it has no cells with this value.
    pub requires: &'static [(&'static str, &'static str, Need)],
    /// The event that its values belong to.
    pub event: Event,
    /// Who its findings with verdicts affect; none if no kind of job is.
    pub concern: Option<Concern>,
    /// What it measures, the most important first.
    pub metrics: &'static [Metric],
    /// Metrics of which the first one is the sum, where that says more than what each layer adds.
    pub parts: &'static [&'static str],
    /// What it varies on its own.
    pub keys: &'static [SettingKey],
    /// Keys that are in a setting only if the user chose values with an option, since they affect more than
    /// what is measured, or were unwritten once. Otherwise the first value holds and is not written down.
    pub guarded: &'static [SettingKey],
    /// Keys with those of their values that are measured if the user asks for everything: others affect more than what is measured.
    pub modest: &'static [(&'static str, &'static [&'static str])],
    /// The settings that it compares with a control.
    pub controls: &'static [Controlled],
    /// Which subjects it compares.
    pub compares: Compared,
    /// The metric that is a launch without any work: no container can be shorter than the quickest process.
    pub empty_launch: Option<&'static str>,
    /// Metrics that are a difference of two launches: noise alone makes single values negative, so only their
    /// median says more.
    pub differences: &'static [&'static str],
    /// Whether a cell that has always failed in the same way so far is worth another try.
    pub recovers: bool,
    /// Keys of subjects that it varies on its own, one at a time.
    pub varies: &'static [Variation],
    /// In which settings these variants take part.
    pub varies_in: fn(&Setting) -> bool,
    /// Which subjects take part when the user names none.
    pub scope: Scope,
    /// Whether whole samples are kept next to the metrics' values: much of the replication is within them. So there is no
    /// warm-up, and there are no more rounds than its verdicts need, unless the user gives a number.
    pub keeps_samples: bool,
    /// The values that replicate within its samples.
    pub replicates: &'static [Replicates],
    /// Metrics that get a map of subjects and settings.
    pub maps: &'static [&'static str],
    /// Whether these values of its keys can be combined.
    pub has: fn(&Setting) -> bool,
    /// In which settings twins of subjects of which layer take part: the noise of a sample that takes long can be shown by one of them.
    pub twins: fn(&Setting, Layer) -> bool,
    /// Why a setting that the user chose cannot be measured anywhere, and which value to change; none if it can.
    pub refuses: fn(&Setting) -> Option<String>,
    /// The values of a key for a run of one minute.
    pub quick_values: fn(&SettingKey) -> &'static [&'static str],
    /// The setting to subtract, round by round and subject by subject: the difference is the price. None if nothing is priced.
    pub reference: fn(&Setting) -> Option<Setting>,
    /// The value of a key in which subjects are compared first, if not its first value.
    pub asked_in: Option<(&'static str, &'static str)>,
    /// The word of the containers that its samples of a subject share in each round, with all experiments that have the same.
    pub shares: Option<&'static str>,
    /// The time of one sample, given that of one launch until nothing is left; without a container that is shared.
    pub cost: fn(&Setting, Nanos) -> Nanos,
    /// How safe what a metric measured was, in a word: `durable`; none where that is no question.
    pub class: Classify,
    /// Whether this adds CPU time to the launch, which a CPU limit stretches.
    pub computes: bool,
    /// Whether it makes the machine busy itself, so that load and waiting are no sign of others.
    pub crowds: bool,
    /// What the user's own work adds, as assumed before a trial tells; it may also fail.
    pub unknown: Option<Nanos>,
}

impl Experiment {
    /// The minimum for each experiment. The rest has defaults: nothing varied, all subjects in scope,
    /// every round, one launch per sample.
    pub(super) const fn of(
        name: &'static str,
        question: &'static str,
        needs: Need,
        metrics: &'static [Metric],
    ) -> Experiment {
        Experiment {
            name,
            question,
            needs,
            requires: &[],
            event: match needs {
                Need::Launch => Event::Once("launch"),
                Need::Lifecycle => Event::Once("life of a container"),
                Need::Exec => Event::Once("entry"),
                _ => Event::Works,
            },
            concern: None,
            metrics,
            parts: &[],
            keys: &[],
            guarded: &[],
            controls: &[],
            compares: Compared::Layers,
            empty_launch: match needs {
                Need::Launch | Need::Exec => Some("returned"),
                _ => None,
            },
            differences: &[],
            recovers: true,
            varies: &[],
            varies_in: |_| true,
            modest: &[],
            scope: Scope::All,
            keeps_samples: false,
            replicates: &[],
            maps: &[],
            has: |_| true,
            twins: |_, _| true,
            refuses: |_| None,
            quick_values: |key| key.values.get(..1).unwrap_or_default(),
            reference: |_| None,
            asked_in: None,
            shares: None,
            cost: |_, launch| launch,
            class: |_, _, _, _| None,
            computes: false,
            crowds: false,
            unknown: None,
        }
    }

    /// Whether it gives verdicts; the others show values and prices.
    pub fn decides(&self) -> bool {
        self.metrics.iter().any(|metric| metric.weight == Weight::Verdict)
    }

    /// What a setting needs of a subject, apart from what the experiment needs, with the value that needs it.
    pub fn required(&self, setting: &Setting) -> impl Iterator<Item = (&'static str, &'static str, Need)> {
        let own = self.requires.iter().copied();
        own.filter(|(key, value, _)| setting.get(key) == Some(*value))
    }

    /// In which order people ask about settings, the first one least: with the value of [`Self::asked_in`], then those that are no
    /// reference of others, then by the order of values. It does not depend on how settings were chosen.
    pub fn rank_of(&self, setting: &Setting) -> impl Ord + use<> {
        let is_apart = |(key, value): (&str, &str)| setting.get(key) != Some(value);
        let has_reference = (self.reference)(setting).is_some_and(|reference| reference != *setting);
        let place = |(name, value): &(&'static str, &'static str)| {
            let values = self.all_keys().find(|key| key.name == *name).map_or(&[][..], |key| key.values);
            (*name, values.iter().position(|own| own == value).unwrap_or(usize::MAX), *value)
        };
        let places: std::collections::BTreeSet<_> = setting.0.iter().map(place).collect();
        (self.asked_in.is_some_and(is_apart), !has_reference, places)
    }

    /// All keys that its settings can have.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static SettingKey> {
        self.keys.iter().chain(self.guarded)
    }
}

/// The settings of an experiment with the chosen values.
pub fn chosen_settings(
    experiment: &Experiment,
    chosen: impl Fn(&SettingKey) -> Vec<&'static str>,
) -> Vec<Setting> {
    let mut all = settings(experiment.keys, &chosen);
    for key in experiment.guarded {
        let values = chosen(key);
        if !values.is_empty() {
            all = extended(all, std::slice::from_ref(key), |_| values.clone());
        }
    }
    all.retain(|setting| (experiment.has)(setting));
    all
}

/// The same, and the reference settings that they are compared with.
pub fn settings_of(
    experiment: &Experiment,
    chosen: impl Fn(&SettingKey) -> Vec<&'static str>,
) -> Vec<Setting> {
    let mut all = chosen_settings(experiment, chosen);
    let mut at = 0;
    while at < all.len() {
        if let Some(reference) = (experiment.reference)(&all[at])
            && !all.contains(&reference)
        {
            all.push(reference);
        }
        at += 1;
    }
    all
}

/// The setting of an experiment that prints as this text. Imported data may have none.
pub fn parse_setting(experiment: &Experiment, text: &str) -> Option<Setting> {
    if text.is_empty() {
        return Some(Setting::default());
    }
    let guarded = |key: &SettingKey| experiment.guarded.iter().any(|one| one.name == key.name);
    let plain = |key: &SettingKey| if guarded(key) { Vec::new() } else { key.values.to_vec() };
    let every = |key: &SettingKey| key.values.to_vec();
    let mut known = settings_of(experiment, plain).into_iter().chain(settings_of(experiment, every));
    known.find(|one| one.to_string() == text).or_else(|| with_values_of_its_own(experiment, text))
}

/// A setting with values that are on no key's list: every key of the experiment once, in order, and guarded
/// keys if they were chosen.
fn with_values_of_its_own(experiment: &Experiment, text: &str) -> Option<Setting> {
    let mut pairs = pairs_in(text)?.into_iter().peekable();
    let mut taken = Vec::new();
    let guarded = experiment.guarded;
    for key in experiment.all_keys() {
        match pairs.next_if(|(own, _)| own == key.name) {
            Some((_, value)) => taken.push((key.name, key.take(&value).ok()?)),
            None if guarded.iter().any(|one| one.name == key.name) => {}
            None => return None,
        }
    }
    let setting = Setting(taken);
    (pairs.next().is_none() && (experiment.has)(&setting)).then_some(setting)
}
