//! Does code run slower in a container once it has started? Fixed amounts of work inside, bound to CPUs and
//! timed by the probe itself, so that starting is not included.
//!
//! The expected answer is no. So the smallest difference that matters is small, and the verdict `same` must
//! be earned: the whole interval must be within it. The speed of the core and the time that a user waits are
//! two metrics: calm passes do not see a limit, so there is also a fixed work that never looks at the clock.

pub mod tables;

use super::fixed_work::{self, FIXED_ALL, FIXED_ONE};
use super::question::{Experiment, Metric, Scope};
use super::setting::{Setting, SettingKey, fits};
use crate::names::{Name, Series, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Nanos, Unit};
use names::EMPTY;

/// Its name.
pub const NAME: &str = "cpu";

/// The time of one pass of all kinds, by one thread and by all, including preparation, on a CPU of today: for
/// the prediction only.
pub const PASS: Nanos = Nanos(1_900_000);
/// The same for setting up buffers and threads.
pub const SETTLING: Nanos = Nanos::from_millis(50);
/// The time of one pass of the fixed work by one thread and by all.
pub const FIXED_PASS: Nanos = Nanos(250_000);
/// The minimum number of passes: the third fastest of only a few means little.
const FEWEST_PASSES: usize = 30;
/// The maximum.
const MOST_PASSES: usize = 512;
/// The pass that represents a sample, counted from the fastest, which is 0. The two fastest may have met a clock rate
/// that the CPU keeps only for a moment; if neighbours slow most passes down, passes farther from the fastest
/// measure the neighbours.
const STANDING: usize = 2;

/// A pass counts if none of its threads was off its CPU for more than this share of it.
pub const DISTURBED: f64 = 0.01;

const fn pass(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, Margin::fixed(0.0, 0.01))
}

const fn of_each(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    fixed_work::part(Metric::by(name, derive), Unit::Seconds)
}

static METRICS: [Metric; 22] = [
    fixed_work::elapsed("elapsed", FIXED_ONE).meaning(
        "one thread: 675 million steps of `integer` (9,000 passes without looking at the clock), a second or more, \
         including all delays: a CPU limit, others on its CPU. What a user waits for",
    ),
    fixed_work::elapsed("elapsed_all", FIXED_ALL).meaning(
        "the same by a thread on each allowed CPU at once, each doing all of it, from the first start to the last end",
    ),
    pass("integer", |sample| fixed(sample, Kind::Integer, Width::One)).meaning(
        "one thread: 75,000 64-bit multiplications, additions, shifts and exclusive ors, each waiting for \
         the one before; the third fastest pass",
    ),
    pass("floating", |sample| fixed(sample, Kind::Floating, Width::One)).meaning(
        "one thread: 56,000 steps of the logistic map in four independent chains of 64-bit \
         multiplications and subtractions; the third fastest pass",
    ),
    pass("hashing", |sample| fixed(sample, Kind::Hashing, Width::One)).meaning(
        "one thread: SHA-256 of 32 KiB (16 KiB twice), without the CPU's SHA instructions; the third fastest \
         pass",
    ),
    pass("memory", |sample| fixed(sample, Kind::Memory, Width::One)).meaning(
        "one thread: 1.5 MiB read one word after the other, flushed from all caches before; small \
         pages; the third fastest pass",
    ),
    pass("chase", |sample| fixed(sample, Kind::Chase, Width::One)).meaning(
        "one thread: 1,500 loads, each giving the address of the next, along a random cycle through \
         32 MiB, flushed from all caches before; small pages; the third fastest pass",
    ),
    pass("integer_all", |sample| fixed(sample, Kind::Integer, Width::All)).meaning(
        "`integer` by a thread on each allowed CPU at once, from the first start to the last end; \
         the third fastest pass",
    ),
    pass("floating_all", |sample| fixed(sample, Kind::Floating, Width::All)).meaning(
        "`floating` by a thread on each allowed CPU at once, from the first start to the last end; \
         the third fastest pass",
    ),
    pass("hashing_all", |sample| fixed(sample, Kind::Hashing, Width::All)).meaning(
        "`hashing` by a thread on each allowed CPU at once, from the first start to the last end; \
         the third fastest pass",
    ),
    pass("memory_all", |sample| fixed(sample, Kind::Memory, Width::All)).meaning(
        "`memory` by a thread on each allowed CPU at once, each with its own buffer, from the \
         first start to the last end; the third fastest pass",
    ),
    pass("chase_all", |sample| fixed(sample, Kind::Chase, Width::All)).meaning(
        "`chase` by a thread on each allowed CPU at once, each on its own cycle, from the first \
         start to the last end; the third fastest pass",
    ),
    Metric::by("waiting", |sample| waiting(sample, Width::One)).of(Unit::Share, Margin::fixed(0.01, 0.0)).context().meaning("the share of all passes' time in which the one thread was not on its CPU, as the \
                   scheduler counts it: others ran there, or a limit held it back; the metrics above leave this out"),
    Metric::by("waiting_all", |sample| waiting(sample, Width::All)).of(Unit::Share, Margin::fixed(0.01, 0.0)).context().meaning("the same for all threads at once: in each pass, the thread that waited longest"),
    Metric::by("disturbed", |sample| disturbed(sample, Width::One)).of(Unit::Share, Margin::fixed(0.1, 0.0)).context().meaning("the share of one thread's passes that do not count because it was off its CPU for more than 1 \
                   % of the pass; for the kind of work with the most"),
    Metric::by("disturbed_all", |sample| disturbed(sample, Width::All)).of(Unit::Share, Margin::fixed(0.1, 0.0)).context().meaning("the same for all threads at once; a pass does not count if any thread was off its CPU for more \
                   than 1 %"),
    fixed_work::part(Metric::nanos("cpu_time", FIXED_ONE.cpu), Unit::Seconds).meaning("CPU time of the thread during `elapsed`, as the scheduler counts it"),
    of_each("cpu_time_all", |sample| fixed_work::of_each(sample, FIXED_ALL.cpu)).meaning("CPU time of the threads during `elapsed_all`, divided by their number"),
    fixed_work::part(Metric::nanos("throttled_time", FIXED_ONE.throttled_time), Unit::Seconds).meaning("how long a CPU limit held the thread back during `elapsed`, from the `cpu.stat` of its own cgroup; \
                   does not apply without a limit"),
    of_each("throttled_time_all", |sample| fixed_work::of_each(sample, FIXED_ALL.throttled_time)).meaning("the same for all threads at once, divided by their number"),
    fixed_work::part(Metric::counted("throttled_periods", FIXED_ONE.throttled, 1.0), Unit::Count).meaning("in how many of the limit's periods the thread was held back (`nr_throttled`)"),
    fixed_work::part(Metric::counted("throttled_periods_all", FIXED_ALL.throttled, 1.0), Unit::Count).meaning("the same for all threads at once"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("passes", &["100"])
    .or(|value| match value.parse() {
        Ok(FEWEST_PASSES..=MOST_PASSES) => Ok(()),
        _ => Err(format!("a whole number from {FEWEST_PASSES} to {MOST_PASSES}")),
    })
    .meaning(
        "how many passes of each kind of work a sample has, by one thread and by all; from 30 to 512. More \
         passes find more calm moments on a busy machine",
    )];

static GUARDED: [SettingKey; 1] = [SettingKey::of("fixed", &["9000"])
    .or(|value| fits(matches!(value.parse(), Ok(0..=1_000_000)), "a whole number from 0 to 1000000"))
    .meaning("how many passes of `integer` in a row are the fixed work of `elapsed`; 0 for none")];

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A chain of operations on integers.
    Integer,
    /// Four chains of operations on floating-point numbers.
    Floating,
    /// SHA-256.
    Hashing,
    /// Memory that is read in its order.
    Memory,
    /// Memory whose words lead from one to the next.
    Chase,
}

/// How many threads work at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One.
    One,
    /// One on each CPU that may be used.
    All,
}

/// All kinds, in the order in which they are done.
pub const KINDS: [Kind; 5] = [Kind::Integer, Kind::Floating, Kind::Hashing, Kind::Memory, Kind::Chase];
/// Both widths.
pub const WIDTHS: [Width; 2] = [Width::One, Width::All];

names! {
    Counter { EMPTY = "empty", WRONG = "wrong", CPU_BOUND = "cpu", HUGE_PAGES = "huge_pages", }
}

/// The names of the passes of a kind and a width, and of the metric that is made of them.
#[derive(Debug, Clone, Copy)]
pub struct PassNames {
    /// The metric.
    metric: &'static str,
    /// Their wall times.
    pub wall: Series,
    /// How long their threads were off their CPUs.
    pub waited: Series,
}

macro_rules! passes {
    ($($kind:literal)*) => {
        [$([passes!($kind, $kind, "_one"), passes!(concat!($kind, "_all"), $kind, "_all")]),*]
    };
    ($metric:expr, $kind:literal, $width:literal) => {
        PassNames {
            metric: $metric,
            wall: Name::declared(concat!($kind, $width)),
            waited: Name::declared(concat!($kind, $width, "_waited")),
        }
    };
}

/// By kind and width.
static PASSES: [[PassNames; WIDTHS.len()]; KINDS.len()] =
    passes!["integer" "floating" "hashing" "memory" "chase"];

/// The names of the passes of a kind and a width.
pub fn names_of(kind: Kind, width: Width) -> PassNames {
    PASSES[kind as usize][width as usize]
}

/// Those of all, as they are recorded.
pub(super) fn recorded() -> impl Iterator<Item = &'static str> {
    PASSES.as_flattened().iter().flat_map(|own| [own.wall, own.waited]).map(Name::text)
}

/// The experiment `cpu`.
pub static CPU: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    // Part of the fixed work: it shows a limit of nine tenths of a CPU, but not to the percent.
    quick_values: |key| if key.name == "fixed" { &["1000"] } else { &["60"] },
    // Computing is expected to be the same everywhere, and a sample takes seconds.
    scope: Scope::OneOfEach,
    cost: |setting, launch| {
        let passes = PASS.0 * passes_of(setting) as i64 + FIXED_PASS.0 * i64::from(fixed_of(setting));
        launch + SETTLING + Nanos(passes)
    },
    computes: true,
    ..Experiment::of(NAME, "does code run slower in a container once it has started?", Need::Work, &METRICS)
};

/// The number of passes that a setting asks for.
pub fn passes_of(setting: &Setting) -> usize {
    setting.get("passes").and_then(|value| value.parse().ok()).unwrap_or(MOST_PASSES)
}

/// The number of passes in a row that are the fixed work.
pub fn fixed_of(setting: &Setting) -> u32 {
    setting.get("fixed").unwrap_or(GUARDED[0].values[0]).parse().unwrap_or(0)
}

/// A subject with its own kernel counts CPU time in its own way, perhaps in ticks longer than a pass.
pub fn forget_waiting(sample: &mut Sample) {
    const REASON: &str = "the kernel inside is not the host's, so its CPU time is not the host scheduler's";
    PASSES.as_flattened().iter().for_each(|own| sample.forget(own.waited));
    [FIXED_ONE, FIXED_ALL].into_iter().for_each(|own| sample.forget(own.cpu));
    let lost = ["waiting", "waiting_all", "disturbed", "disturbed_all", "cpu_time", "cpu_time_all"];
    sample.lacks(&lost, REASON);
}

/// Reports the times that are missing because too few passes were calm.
pub fn say_what_is_missing(sample: &mut Sample) {
    const REASON: &str =
        "fewer than three of its passes were calm, and a disturbed pass does not show the CPU's speed";
    for own in PASSES.as_flattened() {
        if passes(sample, *own).is_some_and(|passes| standing(&passes).is_none()) {
            sample.lacks([&own.metric], REASON);
        }
    }
}

/// One pass: its wall time, and how long the thread that waited longest was off its CPU; in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// From the first start to the last end.
    pub wall: i64,
    /// As the scheduler counts it; none where it does not.
    pub waited: Option<i64>,
}

impl Pass {
    /// Whether something else ran on one of its CPUs meanwhile.
    pub fn is_disturbed(&self) -> bool {
        self.waited.is_some_and(|waited| waited as f64 > DISTURBED * self.wall as f64)
    }
}

/// The passes with these names.
pub fn passes(sample: &Sample, names: PassNames) -> Option<Vec<Pass>> {
    let waited = sample.series(names.waited);
    let pass =
        |(at, &wall): (usize, &i64)| Pass { wall, waited: waited.and_then(|all| all.get(at)).copied() };
    Some(sample.series(names.wall)?.iter().enumerate().map(pass).collect())
}

/// The pass that represents a sample: the third fastest of those that were not disturbed; none if there are
/// fewer.
pub fn standing(passes: &[Pass]) -> Option<Pass> {
    let mut calm: Vec<Pass> = passes.iter().filter(|pass| !pass.is_disturbed()).copied().collect();
    calm.sort_unstable_by_key(|pass| pass.wall);
    calm.get(STANDING).copied()
}

/// In seconds, without the cost of reading the clock twice.
fn fixed(sample: &Sample, kind: Kind, width: Width) -> Option<f64> {
    let wall = standing(&passes(sample, names_of(kind, width))?)?.wall;
    Some(Nanos(wall.saturating_sub(sample.counter(EMPTY)?)).seconds())
}

/// All passes by one thread or by all, by kind.
fn by_kind(sample: &Sample, width: Width) -> Option<Vec<Vec<Pass>>> {
    KINDS.iter().map(|kind| passes(sample, names_of(*kind, width))).collect()
}

fn waiting(sample: &Sample, width: Width) -> Option<f64> {
    let (mut wall, mut waited) = (0_i64, 0_i64);
    for pass in by_kind(sample, width)?.iter().flatten() {
        // A damaged file can hold any numbers.
        (wall, waited) = (wall.saturating_add(pass.wall), waited.saturating_add(pass.waited?));
    }
    Some(waited as f64 / wall as f64).filter(|share| share.is_finite())
}

fn disturbed(sample: &Sample, width: Width) -> Option<f64> {
    let share = |passes: &Vec<Pass>| {
        passes.first()?.waited?;
        let disturbed = passes.iter().filter(|pass| pass.is_disturbed()).count();
        Some(disturbed as f64 / passes.len() as f64)
    };
    by_kind(sample, width)?.iter().map(share).try_fold(0.0, |most: f64, share| Some(most.max(share?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Weight;

    fn sample(wall: &[i64], waited: &[i64]) -> Sample {
        let of = |own: &PassNames| [(own.wall, wall.to_vec()), (own.waited, waited.to_vec())];
        Sample::default().with([(EMPTY, 100)]).with(PASSES.as_flattened().iter().flat_map(of))
    }

    fn value(sample: &Sample, name: &str) -> Option<f64> {
        METRICS.iter().find(|metric| metric.name == name).unwrap().value(sample)
    }

    #[test]
    fn the_third_fastest_calm_pass_stands_for_a_sample() {
        // The fastest pass was disturbed, so it does not count.
        let one = sample(&[5_100, 7_100, 90_000, 6_100, 8_100], &[1_000, 0, 20, 60, 0]);
        for metric in METRICS.iter().filter(|one| one.weight == Weight::Verdict).skip(2) {
            assert_eq!(metric.value(&one), Some(8e-6), "{}", metric.name);
        }
    }

    #[test]
    fn fewer_than_three_calm_passes_are_no_value_and_the_sample_says_so() {
        let three = sample(&[6_100, 7_100, 9_100], &[0, 0, 0]);
        assert_eq!(value(&three, "integer"), Some(9e-6));
        let mut none_calm = sample(&[6_100, 7_100, 9_100], &[1_000, 1_000, 1_000]);
        assert_eq!((value(&none_calm, "integer"), value(&none_calm, "disturbed")), (None, Some(1.0)));
        assert_eq!(value(&sample(&[6_100, 7_100, 9_100], &[0, 0, 1_000]), "chase_all"), None);
        say_what_is_missing(&mut none_calm);
        let named: Vec<_> = none_calm.missing.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(named.len(), 10);
        assert!(named.contains(&"hashing".to_owned()) && named.contains(&"chase_all".to_owned()));
        let mut calm = three;
        say_what_is_missing(&mut calm);
        assert_eq!(calm.missing, []);
        assert_eq!(value(&Sample::default(), "integer"), None);
        assert_eq!(value(&sample(&[], &[]), "integer"), None);
    }

    #[test]
    fn a_planted_slowdown_of_every_pass_is_in_the_value() {
        let walls: Vec<i64> = (0..40).map(|at| 100_100 + (at * 7919) % 3001).collect();
        let slower: Vec<i64> = walls.iter().map(|wall| (wall - 100) * 103 / 100 + 100).collect();
        let calm = vec![0; 40];
        let [one, other] = [walls, slower].map(|walls| value(&sample(&walls, &calm), "hashing").unwrap());
        assert!((other / one - 1.03).abs() < 1e-4, "{one} {other}");
    }

    #[test]
    fn waiting_is_a_share_of_all_passes_and_unknown_in_a_kernel_of_its_own() {
        let mut one = sample(&[5_000, 5_000, 20_000, 30_000], &[0, 0, 7_500, 7_500]);
        assert_eq!((value(&one, "waiting"), value(&one, "disturbed_all")), (Some(0.25), Some(0.5)));
        forget_waiting(&mut one);
        for name in ["waiting", "waiting_all", "disturbed", "disturbed_all"] {
            assert!(value(&one, name).is_none() && one.missing.iter().any(|(own, _)| own == name), "{name}");
        }
        assert_eq!(value(&one, "memory_all"), Some(19.9e-6));
    }

    #[test]
    fn passes_are_a_number_that_can_be_done() {
        let key = &KEYS[0];
        assert_eq!(key.take("320"), Ok("320"));
        assert_eq!((key.take("30"), key.take("512")), (Ok("30"), Ok("512")));
        for bad in ["0", "1", "29", "513", "-1", "many", "1.5"] {
            assert!(key.take(bad).is_err(), "{bad}");
        }
    }
}
