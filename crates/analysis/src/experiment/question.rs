//! What an experiment is before anything is measured: its question, metrics, settings, and who takes part.

use serde::Serialize;

use super::setting::{Setting, SettingKey, extended, pairs_in, settings};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};

/// How long the kernel is left alone before an idle launch, an idle entry, or a container that is created.
pub const QUIET: Nanos = Nanos::from_millis(100);

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
    /// The base unit of its values.
    pub unit: Unit,
    /// Which of them a person wishes for.
    pub better: Better,
    /// Whether it is decided upon.
    pub weight: Weight,
    /// The smallest difference that matters, unless the person says otherwise.
    pub margin: Margin,
    /// What lies inside the interval, for a person who wants to object.
    pub meaning: &'static str,
    /// Its value in base units, if the sample holds what it needs.
    derive: Derive,
}

/// What a run tells of a metric beside its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricFacts {
    /// Its name.
    pub name: &'static str,
    /// The base unit of its values.
    pub unit: Unit,
    /// Which of them a person wishes for.
    pub better: Better,
    /// What lies inside the interval.
    pub meaning: &'static str,
    /// Whether verdicts are given about it.
    pub decisive: bool,
    /// The smallest difference that matters: absolute in the base unit, and as a share.
    pub margin: (f64, f64),
}

/// How the value of a metric follows from a sample.
#[derive(Debug, Clone, Copy)]
enum Derive {
    /// The time from one stamp to another.
    Span(&'static str, &'static str),
    /// What this makes of what the sample has by this name.
    Named(fn(&Sample, &str) -> Option<f64>, &'static str),
    /// What this makes of it.
    By(fn(&Sample) -> Option<f64>),
}

/// A counter of nanoseconds, in seconds.
pub(super) fn nanos(sample: &Sample, counter: &str) -> Option<f64> {
    Some(Nanos(sample.counter(counter)?).seconds())
}

/// From where libc has started, or the entry of a probe that does without it, until its message is ready, in seconds.
pub(super) fn probe_work(sample: &Sample) -> Option<f64> {
    sample.seconds("main", "ready").or_else(|| sample.seconds("first", "ready"))
}

impl Metric {
    /// A time that is decided upon. Of what belongs to a launch, less than 20 µs, or less than 3 %, matters to nobody
    /// who starts containers.
    const fn time(name: &'static str, derive: Derive) -> Metric {
        let (weight, margin) = (Weight::Verdict, Margin::fixed(20e-6, 0.03));
        Metric { name, unit: Unit::Seconds, better: Better::Less, weight, margin, meaning: "", derive }
    }

    /// The time from one stamp to another.
    pub(super) const fn span(name: &'static str, from: &'static str, to: &'static str) -> Metric {
        Metric::time(name, Derive::Span(from, to))
    }

    /// What a function makes of what a sample has by a name.
    pub(super) const fn named(
        name: &'static str,
        derive: fn(&Sample, &str) -> Option<f64>,
        of: &'static str,
    ) -> Metric {
        Metric::time(name, Derive::Named(derive, of))
    }

    /// What a function makes of a sample.
    pub(super) const fn by(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
        Metric::time(name, Derive::By(derive))
    }

    /// The same in another unit, of which another difference matters.
    pub(super) const fn of(self, unit: Unit, margin: Margin) -> Metric {
        Metric { unit, margin, ..self }
    }

    /// The same of which a person wishes for more, or for neither.
    pub(super) const fn with(self, better: Better) -> Metric {
        Metric { better, ..self }
    }

    /// The same, which explains and does not decide.
    pub(super) const fn context(self) -> Metric {
        Metric { weight: Weight::Context, ..self }
    }

    /// The same with what lies inside the interval.
    pub(super) const fn meaning(self, meaning: &'static str) -> Metric {
        Metric { meaning, ..self }
    }

    /// Its value in a sample: as it was given with an imported one, else derived.
    pub fn value(&self, sample: &Sample) -> Option<f64> {
        let given = sample.given.iter().find(|(name, _)| name == self.name).map(|(_, value)| *value);
        given.or_else(|| match self.derive {
            Derive::Span(from, to) => sample.seconds(from, to),
            Derive::Named(derive, of) => derive(sample, of),
            Derive::By(derive) => derive(sample),
        })
    }
}

/// A key of subjects that an experiment varies by itself.
#[derive(Debug)]
pub struct Variation {
    /// The key; subjects whose kind does not know it are not varied.
    pub key: &'static str,
    /// Its values, each of which makes a subject of its own beside the one that was asked for. A value that the
    /// kind does not take, or that holds anyway, is left out.
    pub values: &'static [&'static str],
    /// Whether only a subject of a layer above needs them, so that they are made where such a one is measured.
    pub for_layers_above: bool,
}

impl Variation {
    /// Of every subject that knows the key.
    pub const fn of(key: &'static str, values: &'static [&'static str]) -> Variation {
        Variation { key, values, for_layers_above: false }
    }

    /// The same, made only beneath a subject of a layer above.
    pub(super) const fn for_layers_above(self) -> Variation {
        Variation { for_layers_above: true, ..self }
    }
}

/// What replicates within a sample and is worth a picture of its own.
#[derive(Debug)]
pub struct Replicates {
    /// The name of the sample's series.
    pub series: &'static str,
    /// What a value is, as in a title.
    pub what: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// How many of what the series counts make one of the unit.
    pub divisor: f64,
    /// What runs from one value to the next, as beside an axis.
    pub along: &'static str,
    /// How many seconds lie between two values; none where they are in no order.
    pub every: fn(&Sample) -> Option<f64>,
    /// How they are shown.
    pub shown: Shown,
}

/// How values that replicate within a sample are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As what was waited for: a line over time, and which share took no longer.
    Waits,
    /// As what was used in equal parts of time: bars.
    Parts,
}

/// Which of the subjects that work here take part in an experiment where none is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    All,
    /// Those that are started as a person who just installed them would start them.
    AsInstalled,
    /// Of these the first runtime only, and no engine with a runtime of one's choice: for samples that take long.
    Few,
    /// The floor, and of these the engines: for samples that take very long.
    Engines,
}

/// What the values of an experiment's metrics are of, so that one can say when a difference matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Of something that happens once in a job, which waits for it: `launch`. The first metric is what it waits for.
    Once(&'static str),
    /// Of a whole work, of which the first metric is the length: its share says all.
    Whole,
    /// Each metric of another thing that a program does many times: `call`.
    Often(&'static str),
    /// Each metric of another work, whose share says all.
    Works,
}

impl Event {
    /// Whether the first metric is what counts; else all that are decided upon are of one rank.
    pub fn has_one_answer(self) -> bool {
        matches!(self, Event::Once(_) | Event::Whole)
    }
}

/// Whom it concerns that a layer takes more, and what helps.
#[derive(Debug, Clone, Copy)]
pub struct Concern {
    /// A kind of job: `many short commands`.
    pub job: &'static str,
    /// What whoever has one can do.
    pub remedy: &'static str,
}

/// What can be said of an experiment without measuring: a value for each, in its file.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers, as a person would ask it.
    pub question: &'static str,
    /// What a subject must offer to have cells in it.
    pub needs: Need,
    /// What its values are of.
    pub event: Event,
    /// Whom its decided findings concern; none where nothing follows from them for a kind of job.
    pub concern: Option<Concern>,
    /// What it measures, the most important first.
    pub metrics: &'static [Metric],
    /// What it varies by itself.
    pub keys: &'static [SettingKey],
    /// Keys that a setting has only where a person chose values for them by an option of their own, since
    /// they hit more than what is measured. Without it, the first value holds and is not written down.
    pub guarded: &'static [SettingKey],
    /// The metric that is a launch in which nothing is asked for: no container takes less than the quickest process.
    pub empty_launch: Option<&'static str>,
    /// Metrics that are a difference of two launches: noise alone takes one value of them below zero, and
    /// only their median says more.
    pub differences: &'static [&'static str],
    /// Whether a cell that has only failed so far, always in the same way, is worth another try.
    pub recovers: bool,
    /// Keys of subjects that it varies by itself, one at a time.
    pub varies: &'static [Variation],
    /// Which subjects take part where none is named.
    pub scope: Scope,
    /// In exactly how many rounds it is, none of them to warm up, where its samples replicate within; as many
    /// as the plan has where there is none. A number of rounds that a person gives goes before it.
    pub rounds: Option<usize>,
    /// What replicates within its samples.
    pub replicates: &'static [Replicates],
    /// Metrics that are worth a map of subjects and settings.
    pub maps: &'static [&'static str],
    /// Whether its keys can have these values together.
    pub has: fn(&Setting) -> bool,
    /// Why a setting that a person chose cannot be measured anywhere, and which value to change; none where it can.
    pub refuses: fn(&Setting) -> Option<String>,
    /// The values of a key that are enough where a minute must do.
    pub quick_values: fn(&SettingKey) -> &'static [&'static str],
    /// The setting of which one is told in difference, round by round and subject by subject: what it has more is what is
    /// priced. None where the value itself is the price, or nothing is priced.
    pub reference: fn(&Setting) -> Option<Setting>,
    /// The time that one sample takes, given the time that one launch of the subject takes from the command until all is
    /// gone.
    pub cost: fn(&Setting, Nanos) -> Nanos,
    /// Whether what that adds to the launch is CPU time, which a CPU limit stretches.
    pub computes: bool,
    /// What comes on top that only a trial tells, and what that is taken for before one: the work is a person's own, which may
    /// fail too.
    pub unknown: Option<Nanos>,
}

impl Experiment {
    /// The least that each must say. The rest is what holds for most: nothing varied, everybody in scope,
    /// as many rounds as the plan has, a launch for each sample.
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
            event: match needs {
                Need::Launch => Event::Once("launch"),
                Need::Lifecycle => Event::Once("life of a container"),
                Need::Exec => Event::Once("entry"),
                Need::Pieces | Need::Work | Need::Network => Event::Works,
            },
            concern: None,
            metrics,
            keys: &[],
            guarded: &[],
            empty_launch: match needs {
                Need::Launch | Need::Exec => Some("returned"),
                _ => None,
            },
            differences: &[],
            recovers: true,
            varies: &[],
            scope: Scope::All,
            rounds: None,
            replicates: &[],
            maps: &[],
            has: |_| true,
            refuses: |_| None,
            quick_values: |key| key.values.get(..1).unwrap_or_default(),
            reference: |_| None,
            cost: |_, launch| launch,
            computes: false,
            unknown: None,
        }
    }

    /// Whether it gives verdicts; others show and price.
    pub fn decides(&self) -> bool {
        self.metrics.iter().any(|metric| metric.weight == Weight::Verdict)
    }

    /// Whether its samples are kept as they are, beside the values of its metrics: what replicates lies within.
    pub fn keeps_samples(&self) -> bool {
        self.rounds.is_some()
    }

    /// All keys that its settings may have.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static SettingKey> {
        self.keys.iter().chain(self.guarded)
    }
}

/// The settings of an experiment with values that were chosen, and with them the settings that they
/// are told in difference of.
pub fn settings_of(
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

/// The setting of an experiment that prints as this text. What others measured may say none.
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

/// A setting with values that no key lists: every key of the experiment once, in their order, and guarded
/// ones where they were chosen.
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
