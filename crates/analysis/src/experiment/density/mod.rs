//! What happens with many containers: does each start take longer than the one before, how many starts a second are there if
//! several are made at once, and what do containers use up until no more fit?
//!
//! One sample is a series of starts, each by one detached command: one after the other, or so many at a time. Times are of each
//! start, until its command returns and until its program's first instruction. All containers stay until the last one runs; then
//! they are removed in the same way. What the machine has a fixed number of is counted before the first and with the last.
//!
//! Deliberately absent: what the containers do meanwhile, and attached clients, each of which would stay too.

use super::command;
use super::memory::Own;
use super::network::http;
use super::question::{Event, Experiment, Metric, Replicates, Scope, Shown};
use super::setting::{Setting, SettingKey, fits, is_number};
use super::variation::{Variation, Varied};
use crate::names::{Series, names};
use crate::outcome::Sample;
use crate::stats::{self, Margin};
use crate::subject::room::Resource;
use crate::subject::spec::parse_duration;
use crate::subject::{Layer, Need};
use crate::units::{Better, Nanos, Unit};
use names::{
    ASKED, BEGAN, BUSY, CPUS, ELAPSED, FIRST_RUN, FLUSHES, FLUSHING, LOOKS, OWN_CPU, REMOVED, RETURNED,
    STOLEN, WAITED,
};

pub mod ceiling;
mod of;
pub mod tables;
mod why;

names! {
    Series {
        BEGAN = "starts_began", RETURNED = "starts_returned", FIRST_RUN = "starts_first_instruction", REMOVED = "removals",
        ROOM_MEMORY = "room_memory", ROOM_TASKS = "room_tasks", ROOM_FILES = "room_open_files", ROOM_INOTIFY = "room_inotify",
        ROOM_KEYS = "room_keys", ROOM_MOUNTS = "room_mounts", ROOM_CGROUPS = "room_cgroups", ROOM_PORTS = "room_bridge_ports",
        ROOM_ADDRESSES = "room_addresses", ROOM_LOCKS = "room_locks", ROOM_DISK = "room_disk", ROOM_INODES = "room_inodes",
    }
    Counter {
        ASKED = "starts_asked", AT_ONCE = "starts_at_once", ELAPSED = "starts_elapsed", OWN_CPU = "starts_cpu", BUSY = "machine_busy", STOLEN = "machine_stolen", CPUS = "machine_cpus",
        FLUSHES = "disk_flushes", FLUSHING = "disk_flushing", LOOKS = "lock_looks", WAITED = "lock_waited", IDLED = "idled", IDLE_CPU = "idle_cpu", PREDICTED = "starts_predicted",
    }
    Fact { LOCK = "lock_waited_for", FAILED = "starts_failed", }
}

/// Its name.
pub const NAME: &str = "density";

/// How many containers a series has, and a burst at least.
const SERIES: usize = 50;
const BURST: usize = 16;
/// The most that can be asked for.
const LIMIT: usize = 5000;

/// The name under which a resource's numbers are recorded: in use before the first container, with the last, and the limit.
pub fn recorded(resource: Resource) -> Series {
    match resource {
        Resource::Memory => names::ROOM_MEMORY,
        Resource::Tasks => names::ROOM_TASKS,
        Resource::Files => names::ROOM_FILES,
        Resource::Inotify => names::ROOM_INOTIFY,
        Resource::Keys => names::ROOM_KEYS,
        Resource::Mounts => names::ROOM_MOUNTS,
        Resource::Cgroups => names::ROOM_CGROUPS,
        Resource::Ports => names::ROOM_PORTS,
        Resource::Addresses => names::ROOM_ADDRESSES,
        Resource::Locks => names::ROOM_LOCKS,
        Resource::Disk => names::ROOM_DISK,
        Resource::Inodes => names::ROOM_INODES,
    }
}

/// How many are being started at a time.
pub fn at_once(setting: &Setting) -> usize {
    setting.get("at_once").and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// How many are started.
pub fn containers(setting: &Setting) -> usize {
    let usual = match at_once(setting) {
        _ if until(setting).is_some() => LIMIT,
        1 => SERIES,
        several => several.max(BURST),
    };
    setting.get("containers").and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// How long all run and do nothing, if they do.
pub fn idle(setting: &Setting) -> Option<Nanos> {
    setting.get("idle").and_then(parse_duration).map(Nanos::from_seconds)
}

/// Which resource is to be used up, if one is.
pub fn until(setting: &Setting) -> Option<Resource> {
    setting.get("until").and_then(Resource::named)
}

/// What a resource has room for, by what the containers of a sample used of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// What each used.
    pub each: f64,
    /// The limit, and what others use of it.
    pub limit: f64,
    /// In use before the first.
    pub others: f64,
    /// So many fit.
    pub fits: f64,
}

/// How much of a resource the containers of a sample used, and how many fit; none if it is not known, or they used none that can be
/// told from what others do meanwhile.
pub fn room(sample: &Sample, resource: Resource) -> Option<Room> {
    let [before, after, limit] = *sample.series(recorded(resource))? else { return None };
    room_for(resource, [before, after, limit], sample.series(RETURNED)?.len())
}

/// The same of a resource of which so much was in use before and with so many containers, and that has this limit.
pub fn room_for(resource: Resource, [before, after, limit]: [i64; 3], containers: usize) -> Option<Room> {
    let count = containers as f64;
    let each = (after - before) as f64 / count;
    // What can only be used as a whole, each uses one of.
    let each = if resource.is_in_bytes() || each < 0.5 { each } else { each.max(1.0) };
    // Less is of something else: what is available changes by mebibytes from one second to the next.
    let least = match resource {
        Resource::Memory => 65_536.0,
        Resource::Disk => 4096.0,
        _ => 0.5,
    };
    let left = (limit - before - resource.reserve(limit)) as f64;
    (count > 0.0 && each >= least).then(|| Room {
        each,
        limit: limit as f64,
        others: before as f64,
        fits: (left / each).max(0.0).floor(),
    })
}

fn seconds(nanos: i64) -> f64 {
    Nanos(nanos).seconds()
}

fn median(sample: &Sample, of: Series) -> Option<f64> {
    Some(stats::Sample::new(sample.series(of)?.iter().map(|one| seconds(*one)))?.median())
}

fn at(sample: &Sample, place: usize) -> Option<f64> {
    sample.series(RETURNED)?.get(place).map(|one| seconds(*one))
}

/// Whether the starts of a sample came one after the other.
fn is_serial(sample: &Sample) -> bool {
    sample.counter(names::AT_ONCE) == Some(1)
}

/// What one more container that runs adds to a start: the median slope over all pairs of starts.
fn slope(sample: &Sample) -> Option<f64> {
    let took = sample.series(RETURNED).filter(|_| is_serial(sample))?;
    let points: Vec<f64> = took.iter().map(|one| seconds(*one)).collect();
    stats::rise(&points)
}

/// A counter for each start, in its own unit.
fn each(sample: &Sample, of: crate::names::Counter) -> Option<f64> {
    let count = sample.series(RETURNED)?.len();
    Some(sample.counter(of)? as f64 / count as f64).filter(|_| count > 0)
}

/// From the first command to the end of the last one.
pub fn lasted(sample: &Sample) -> Option<f64> {
    let (began, took) = (sample.series(BEGAN)?, sample.series(RETURNED)?);
    let end = began.iter().zip(took).map(|(began, took)| began + took).max()?;
    Some(seconds(end - began.iter().min()?))
}

fn rate(sample: &Sample) -> Option<f64> {
    let count = sample.series(RETURNED)?.len();
    Some(count as f64 / lasted(sample)?).filter(|rate| rate.is_finite())
}

/// The resource that ends first, and for how many containers it lasts.
fn fit(sample: &Sample) -> Option<f64> {
    let all = Resource::ALL.iter().filter_map(|one| room(sample, *one));
    all.map(|one| one.fits).min_by(f64::total_cmp).filter(|_| is_serial(sample))
}

const COUNTED: Margin = Margin::fixed(0.5, 0.05);
const TIME: Margin = Margin::fixed(1e-3, 0.05);

const fn time(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, TIME).context()
}

static METRICS: [Metric; 17] = [
    Metric::by("start", |sample| median(sample, RETURNED))
        .of(Unit::Seconds, TIME)
        .meaning("from a detached start's command until it has returned: the median of all starts of the sample"),
    time("first_instruction", |sample| median(sample, FIRST_RUN))
        .meaning("from the command until the first instruction of the container's program: the median of all starts"),
    time("first", |sample| at(sample, 0).filter(|_| is_serial(sample)))
        .meaning("the first start of a series, with no other container of it running"),
    time("tenth", |sample| at(sample, 9).filter(|_| is_serial(sample))).meaning("the tenth"),
    time("last", |sample| at(sample, sample.series(RETURNED)?.len().checked_sub(1)?).filter(|_| is_serial(sample)))
        .meaning("the last, with all others running"),
    time("slope", slope)
        .signed()
        .meaning("what one more container that runs adds to a start: the median slope over all pairs of starts of a series"),
    time("longer", |sample| Some(slope(sample)? * (sample.series(RETURNED)?.len() as f64 - 1.0)))
        .signed()
        .meaning("by how much the last start takes longer than the first, along that slope"),
    Metric::by("rate", rate)
        .of(Unit::PerSecond, Margin::fixed(0.0, 0.05))
        .with(Better::More)
        .context()
        .meaning("starts a second: all that were started, over the time from the first command to the end of the last one"),
    time("cpu", |sample| each(sample, OWN_CPU).map(|nanos| nanos / 1e9)).meaning(
        "CPU time of clients, daemons, all that they start, and dunnage meanwhile, for each start",
    ),
    Metric::by("busy", |sample| {
        let all = seconds(sample.counter(ELAPSED)?) * sample.counter(CPUS)? as f64;
        Some(seconds(sample.counter(BUSY)? + sample.counter(STOLEN)?) / all).filter(|share| share.is_finite())
    })
    .of(Unit::Share, Margin::fixed(0.02, 0.0))
    .with(Better::Neither)
    .context()
    .meaning("how much of all CPUs was used or stolen meanwhile"),
    Metric::by("flushes", |sample| each(sample, FLUSHES))
        .of(Unit::Count, COUNTED)
        .context()
        .meaning("flushes of the disk on which the containers are, for each start"),
    time("flushing", |sample| each(sample, FLUSHING).map(|nanos| nanos / 1e9))
        .meaning("what these took, for each start"),
    Metric::by("waiting", |sample| {
        let looks = sample.counter(LOOKS).filter(|looks| *looks > 0)?;
        Some(sample.counter(WAITED)? as f64 / looks as f64)
    })
    .of(Unit::Share, Margin::fixed(0.05, 0.0))
    .with(Better::Neither)
    .context()
    .meaning("in how many of the looks, every 10 ms, some process waited for the same lock on a file, the one most waited for"),
    time("removal", |sample| median(sample, REMOVED))
        .meaning("killing and removing a container, as many at a time as were started: the median of all"),
    time("idle_cpu", |sample| {
        let share = sample.counter(names::IDLE_CPU)? as f64 / sample.counter(names::IDLED)? as f64;
        Some(share * 60.0).filter(|time| time.is_finite())
    })
    .meaning("with `idle`: CPU time of daemons and helpers in a minute in which all containers run and do nothing"),
    Metric::by("failed", |sample| {
        Some((sample.counter(ASKED)? - sample.series(RETURNED)?.len() as i64) as f64)
    })
    .of(Unit::Count, COUNTED)
    .context()
    .meaning("how many of the starts failed"),
    Metric::by("fit", fit)
        .of(Unit::Count, COUNTED)
        .with(Better::More)
        .context()
        .meaning("how many containers fit next to what others use, until the first of the resources ends that were counted"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("at_once", &["1", "4", "16"])
    .or(|value| fits(is_number(value, 1..=LIMIT), "a number from 1 to 5000"))
    .meaning(
        "how many are being started at a time: 1 is a series, in which each start waits for the one before",
    )];

static GUARDED: [SettingKey; 11] = {
    let [shell, workdir, env, mount, ..] = command::GIVEN;
    let [serve, port, request] = http::SERVES;
    [
        SettingKey::of("containers", &[])
            .or(|value| fits(is_number(value, 2..=LIMIT), "a number of containers from 2 to 5000"))
            .meaning("how many are started: 50 in a series, 16 if several are made at once, or as many as that"),
        SettingKey::of("until", &[])
            .or(|value| {
                let all = Resource::ALL.into_iter().filter(|one| !one.is_everyones());
                let is_one = all.clone().any(|one| one.key() == value);
                let all: Vec<&str> = all.map(Resource::key).collect();
                fits(is_one, &format!("a resource that others do not need: {}", all.join(", ")))
            })
            .meaning(
                "start containers until there is no more of this: how many fit is predicted from the first ten, and what happens then is shown",
            ),
        SettingKey::of("idle", &[])
            .or(|value| {
                let is_time = parse_duration(value).is_some_and(|seconds| (1.0..=3600.0).contains(&seconds));
                fits(is_time, "a time from 1s to 3600s")
            })
            .meaning("let all containers run so long before they are removed, and count what their engine computes meanwhile"),
        command::CMD.meaning(
            "your own program, which the probe in each container starts once all have been started; what it uses counts for how many fit",
        ),
        serve,
        shell,
        workdir,
        env,
        mount,
        port,
        request,
    ]
};

/// Most of what ends does so before that many: a bridge has 1,023 ports.
const FEW_ENDS: usize = 1024;

/// What removing takes, as a share of starting.
const REMOVING: f64 = 0.6;

/// The experiment `density`.
pub static DENSITY: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    refuses: |setting| {
        let (at_once, count) = (at_once(setting), containers(setting));
        let too_many = at_once > count;
        let too_many = too_many
            .then(|| format!("`at_once={at_once}` are more than the {count} containers that there are\n\nhint: say how many, as in `--set at_once=1`"));
        too_many.or_else(|| Own::of(setting).err())
    },
    event: Event::Often("start"),
    scope: Scope::Few,
    keeps_samples: true,
    replicates: &[Replicates {
        series: RETURNED,
        what: "time of each start",
        unit: Unit::Seconds,
        divisor: 1e9,
        along: "containers that run already",
        every: |sample| is_serial(sample).then_some(1.0),
        shown: Shown::Places,
    }],
    empty_launch: None,
    quick_values: |key| if key.name == "at_once" { &["1", "16"] } else { key.values },
    twins: |_, layer| layer == Layer::Floor,
    crowds: true,
    varies: &[
        Variation::of("net", &["none", "host"]).only(Varied::Engines).if_asked(),
        Variation::of("log", &["none"]).only(Varied::Engines).if_asked(),
        Variation::of("client", &["api"]).only(Varied::Engines).if_asked(),
    ],
    varies_in: |setting| at_once(setting) > 1,
    cost: |setting, launch| {
        let most = if until(setting).is_some() { FEW_ENDS } else { LIMIT };
        let starts = containers(setting).min(most) as f64 * (1.0 + REMOVING) + 2.0;
        Nanos((launch.0 as f64 * starts) as i64 + idle(setting).map_or(0, |idle| idle.0))
    },
    ..Experiment::of(NAME, "what happens with many containers, and how many fit?", Need::Lifecycle, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A series of starts, each of which takes so many milliseconds and begins when the one before has ended.
    fn series(millis: &[i64]) -> Sample {
        let took: Vec<i64> = millis.iter().map(|one| one * 1_000_000).collect();
        let began = (0..took.len()).map(|place| took[..place].iter().sum()).collect();
        Sample::default()
            .with([(BEGAN, began), (RETURNED, took)])
            .with([(ASKED, millis.len() as i64), (names::AT_ONCE, 1)])
    }

    fn value(sample: &Sample, name: &str) -> Option<f64> {
        METRICS.iter().find(|one| one.name == name).unwrap().value(sample)
    }

    #[test]
    fn a_series_has_a_slope_and_a_burst_has_none() {
        let rising: Vec<i64> = (0..20).map(|place| 100 + 2 * place).collect();
        let sample = series(&rising);
        let near = |name: &str, wanted: f64| (value(&sample, name).unwrap() - wanted).abs() < 1e-9;
        assert!(near("slope", 0.002) && near("longer", 0.038) && near("first", 0.1) && near("last", 0.138));
        assert!(near("tenth", 0.118) && near("start", 0.119));
        assert!((value(&sample, "rate").unwrap() - 20.0 / 2.38).abs() < 1e-9);
        let burst = Sample::default()
            .with([(BEGAN, vec![0, 0, 0, 0]), (RETURNED, vec![1_000_000_000; 4])])
            .with([(ASKED, 5), (names::AT_ONCE, 4)]);
        assert_eq!((value(&burst, "slope"), value(&burst, "first")), (None, None));
        assert_eq!((value(&burst, "rate"), value(&burst, "failed")), (Some(4.0), Some(1.0)));
    }

    #[test]
    fn room_is_what_is_left_by_what_each_uses() {
        let sample = series(&[10; 10])
            .with([(names::ROOM_ADDRESSES, vec![0, 10, 13]), (names::ROOM_TASKS, vec![100, 220, 1000])])
            .with([(names::ROOM_MEMORY, vec![1 << 30, (1 << 30) + (10 << 20), 4 << 30])])
            // As many keys as before, and mounts of others that have gone.
            .with([(names::ROOM_KEYS, vec![4, 4, 200]), (names::ROOM_MOUNTS, vec![50, 45, 1000])]);
        let fits = |resource| room(&sample, resource).map(|one| one.fits);
        assert_eq!((fits(Resource::Addresses), fits(Resource::Tasks)), (Some(13.0), Some(75.0)));
        // Of 3 GiB, 512 MiB stay free.
        assert_eq!(fits(Resource::Memory), Some(2560.0));
        assert_eq!((fits(Resource::Keys), fits(Resource::Mounts), fits(Resource::Disk)), (None, None, None));
        assert_eq!(value(&sample, "fit"), Some(13.0));
    }

    #[test]
    fn a_burst_has_at_least_as_many_as_are_made_at_once() {
        let of = |text: &[(&'static str, &'static str)]| containers(&Setting(text.to_vec()));
        assert_eq!(
            (of(&[("at_once", "1")]), of(&[("at_once", "4")]), of(&[("at_once", "32")])),
            (50, 16, 32)
        );
        assert_eq!(of(&[("at_once", "4"), ("containers", "8")]), 8);
        let refused = |at_once, count| {
            (DENSITY.refuses)(&Setting(vec![("at_once", at_once), ("containers", count)])).is_some()
        };
        assert!(refused("16", "8") && !refused("8", "8"));
    }
}
