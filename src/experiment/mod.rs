//! Experiments: one question, one file. The list below is the only place that knows them all;
//! help, plan, documentation and reports derive from it. No experiment names an engine.

pub mod command;
pub mod cpu;
pub mod exec;
pub mod lifecycle;
pub mod primitives;
pub mod setting;
pub mod start;
pub mod syscall;
pub mod throttle;

pub use setting::{Setting, SettingKey, Taken, parse_setting, settings, settings_of};

use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::Inside;
use crate::stats::Margin;
use crate::subject::{Launch, Need, RunContext, Subject, Work};
use crate::units::{Nanos, Stamp, Unit};
use crate::verdict::exhibit::{Evidence, Exhibit};

/// Every experiment there is.
pub static ALL: &[&dyn Experiment] = &[
    &start::Start,
    &primitives::Primitives,
    &lifecycle::Lifecycle,
    &exec::Exec,
    &command::Command,
    &syscall::Syscall,
    &throttle::Throttle,
    &cpu::Cpu,
];

/// What a run takes on that names no experiment: the main job.
pub static MAIN: &[&str] = &["start", "primitives"];

/// The experiment with this name.
pub fn find(name: &str) -> Option<&'static dyn Experiment> {
    ALL.iter().copied().find(|experiment| experiment.about().name == name)
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

impl Metric {
    /// A time that belongs to a launch: less than 20 µs, or less than 3 %, matters to nobody who starts containers.
    const fn of_launch(
        name: &'static str,
        weight: Weight,
        meaning: &'static str,
        derive: fn(&Sample) -> Option<f64>,
    ) -> Metric {
        Metric { name, unit: Unit::Seconds, weight, margin: Margin::fixed(20e-6, 0.03), meaning, derive }
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
    const fn of(
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

/// One question and how it is put to a subject.
pub trait Experiment: Sync {
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
    /// Tables of its own, beside those that every experiment has.
    fn exhibits(&self, _evidence: &Evidence<'_>) -> Vec<Exhibit> {
        Vec::new()
    }
    /// Takes one sample of a subject. Everything that the subject leaves behind is gone when this
    /// returns, whatever it returns.
    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
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

/// Has a subject's probe work, in a container that is gone when this returns; a work that the subject does not
/// support is a failure of that class.
pub fn worked(subject: &mut dyn Subject, run: &RunContext, work: &Work) -> Result<Launch, Abort> {
    let launch = subject.work(work, run)?;
    match &launch.message.done.refused {
        Some(why) => Err(Failure::new(FailureClass::Unsupported, why.clone()).into()),
        None => Ok(launch),
    }
}

/// The sample of a work: the launch's own stamps and counters, the numbers and series that the work
/// reported, and its facts beside those of the treatment.
pub fn work_sample(launch: &Launch) -> Result<Sample, Failure> {
    let mut sample = start::sample(launch)?;
    let done = &launch.message.done;
    sample.counters.extend(done.results.iter().map(|(name, value)| (name.clone().into(), *value)));
    sample.series.extend(done.series.iter().map(|(name, values)| (name.clone().into(), values.clone())));
    sample.treatment.extend(done.notes.iter().map(|(name, fact)| (name.clone().into(), fact.clone())));
    Ok(sample)
}
