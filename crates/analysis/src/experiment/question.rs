//! What an experiment is before anything is measured: its question, metrics, settings, and who takes part.

use super::setting::{Setting, SettingKey, extended, pairs_in, settings};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};

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
    pub derive: fn(&Sample) -> Option<f64>,
}

impl Metric {
    /// A time that belongs to a launch: less than 20 µs, or less than 3 %, matters to nobody who starts containers.
    pub(super) const fn of_launch(
        name: &'static str,
        weight: Weight,
        meaning: &'static str,
        derive: fn(&Sample) -> Option<f64>,
    ) -> Metric {
        let (unit, better) = (Unit::Seconds, Better::Less);
        Metric { name, unit, better, weight, margin: Margin::fixed(20e-6, 0.03), meaning, derive }
    }

    /// The same of which a person wishes for more, or for neither.
    pub(super) const fn with(self, better: Better) -> Metric {
        Metric { better, ..self }
    }
}

impl Metric {
    /// Its value in a sample: as it was given with an imported one, else derived.
    pub fn value(&self, sample: &Sample) -> Option<f64> {
        let given = sample.given.iter().find(|(name, _)| name == self.name).map(|(_, value)| *value);
        given.or_else(|| (self.derive)(sample))
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
pub enum Company {
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
pub enum Occasion {
    /// Of something that happens once in a job, which waits for it: `launch`. The first metric is what it waits for.
    Once(&'static str),
    /// Of a whole work, of which the first metric is the length: its share says all.
    Whole,
    /// Each metric of another thing that a program does many times: `call`.
    Often(&'static str),
    /// Each metric of another work, whose share says all.
    Works,
}

impl Occasion {
    /// Whether the first metric is what counts; else all that are decided upon are of one rank.
    pub fn has_one_answer(self) -> bool {
        matches!(self, Occasion::Once(_) | Occasion::Whole)
    }
}

/// What can be said of an experiment without measuring: a value for each, in its file.
#[derive(Debug)]
pub struct About {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers, as a person would ask it.
    pub question: &'static str,
    /// What a subject must offer to have cells in it.
    pub needs: Need,
    /// What its values are of.
    pub occasion: Occasion,
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
    pub company: Company,
    /// In exactly how many rounds it is, none of them to warm up, where its samples replicate within; as many
    /// as the plan has where there is none. A number of rounds that a person gives goes before it.
    pub rounds: Option<usize>,
    /// What replicates within its samples.
    pub replicates: &'static [Replicates],
    /// Metrics that are worth a map of subjects and settings.
    pub maps: &'static [&'static str],
}

impl About {
    /// The least that each must say. The rest is what holds for most: nothing varied, everybody in company,
    /// as many rounds as the plan has.
    pub(super) const fn of(
        name: &'static str,
        question: &'static str,
        needs: Need,
        metrics: &'static [Metric],
    ) -> About {
        About {
            name,
            question,
            needs,
            occasion: match needs {
                Need::Launch => Occasion::Once("launch"),
                Need::Lifecycle => Occasion::Once("life of a container"),
                Need::Exec => Occasion::Once("entry"),
                Need::Pieces | Need::Work => Occasion::Works,
            },
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
            company: Company::All,
            rounds: None,
            replicates: &[],
            maps: &[],
        }
    }

    /// Whether what it measures first is what a launch, a step of its life or an entry takes, of which the floor
    /// may be said to explain a share; where the probe works inside, it is not.
    pub fn is_about_launches(&self) -> bool {
        self.needs != Need::Work
    }

    /// Whether it gives verdicts; others show and price.
    pub fn decides(&self) -> bool {
        self.metrics.iter().any(|metric| metric.weight == Weight::Verdict)
    }

    /// All keys that its settings may have.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static SettingKey> {
        self.keys.iter().chain(self.guarded)
    }
}

/// One question: what it asks, in which settings, and what a sample of it costs. Plain functions; how it is put to a
/// subject is the program's business.
pub trait Question: Sync {
    /// What it is and what it asks for.
    fn about(&self) -> &'static About;
    /// Whether its keys can have these values together.
    fn has(&self, _setting: &Setting) -> bool {
        true
    }
    /// Why a setting that a person chose cannot be measured anywhere, and which value to change; none where it can.
    fn refuses(&self, _setting: &Setting) -> Option<String> {
        None
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
    /// The time that one sample takes, given the time that one launch of the subject takes from
    /// the command until all is gone.
    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos;
}

/// The settings of an experiment with values that were chosen, and with them the settings that they
/// are told in difference of.
pub fn settings_of(
    experiment: &dyn Question,
    chosen: impl Fn(&SettingKey) -> Vec<&'static str>,
) -> Vec<Setting> {
    let mut all = settings(experiment.about().keys, &chosen);
    for key in experiment.about().guarded {
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

/// The setting of an experiment that prints as this text.
pub fn parse_setting(experiment: &dyn Question, text: &str) -> Option<Setting> {
    let guarded = |key: &SettingKey| experiment.about().guarded.iter().any(|one| one.name == key.name);
    let plain = |key: &SettingKey| if guarded(key) { Vec::new() } else { key.values.to_vec() };
    let every = |key: &SettingKey| key.values.to_vec();
    let mut known = settings_of(experiment, plain).into_iter().chain(settings_of(experiment, every));
    known.find(|one| one.to_string() == text).or_else(|| with_values_of_its_own(experiment, text))
}

/// A setting with values that no key lists: every key of the experiment once, in their order, and guarded
/// ones where they were chosen.
fn with_values_of_its_own(experiment: &dyn Question, text: &str) -> Option<Setting> {
    let mut pairs = pairs_in(text)?.into_iter().peekable();
    let mut taken = Vec::new();
    let guarded = experiment.about().guarded;
    for key in experiment.about().all_keys() {
        match pairs.next_if(|(own, _)| own == key.name) {
            Some((_, value)) => taken.push((key.name, key.take(&value).ok()?)),
            None if guarded.iter().any(|one| one.name == key.name) => {}
            None => return None,
        }
    }
    let setting = Setting(taken);
    (pairs.next().is_none() && experiment.has(&setting)).then_some(setting)
}
