//! What does one more container cost in memory, and who pays? Containers of a subject that do nothing are started one after the
//! other, and memory is read at several numbers of them and once none is left.
//!
//! A container's weight is what its cgroup says is in use: memory of its processes, shared memory, page cache of files that it was
//! the first to read, and kernel memory. `memory.current` is shown too and is never a weight: each CPU holds up to 64 pages
//! that are charged and not in use. The price of one more is the slope of a line through the steps with at least one container, in
//! each round: the first container, which fills caches, stands apart.
//!
//! Deliberately absent: what a container may use at most, and what a program in it does.

use super::command::{self, Wanted};
use super::network::http::{self, Program};
use super::question::{Event, Experiment, Metric, Scope};
use super::setting::{Setting, SettingKey, fits, is_number};
use crate::names::{Series, names};
use crate::outcome::Sample;
use crate::stats::{self, Margin};
use crate::subject::spec::{parse_duration, parse_size};
use crate::subject::{Layer, Need};
use crate::units::{Better, Nanos, Unit};
use names::{
    AVAILABLE, CALLER, CONTAINERS, DUNNAGE, DYING, HELPER_COUNT, HELPERS_ANON, HELPERS_FILE, HELPERS_KERNEL,
    HELPERS_RSS, HELPERS_SHMEM, LEFT, MACHINE, OTHERS, OWN_ANON, OWN_CHARGED, OWN_FILE, OWN_KERNEL,
    OWN_SHMEM, PAGE_TABLES, PER_CPU, RECLAIMABLE, SAID, SAID_BY_FORMULA, SAID_CHARGED, SAID_WEIGHT, SLAB,
    STACKS, UNCHARGED,
};

pub mod limit;
pub mod tables;

names! {
    Series {
        CONTAINERS = "memory_containers",
        OWN_ANON = "own_anon", OWN_SHMEM = "own_shmem", OWN_FILE = "own_file", OWN_KERNEL = "own_kernel", OWN_CHARGED = "own_charged",
        RECLAIMABLE = "own_reclaimable", STACKS = "own_stacks", PAGE_TABLES = "own_page_tables", PER_CPU = "own_per_cpu", SLAB = "own_slab",
        HELPER_COUNT = "helpers_count", HELPERS_ANON = "helpers_anon", HELPERS_SHMEM = "helpers_shmem", HELPERS_FILE = "helpers_file",
        HELPERS_RSS = "helpers_rss", HELPERS_KERNEL = "helpers_kernel",
        CALLER = "caller", UNCHARGED = "uncharged", MACHINE = "machine_used", AVAILABLE = "machine_available", OTHERS = "others", DUNNAGE = "of_dunnage",
        LEFT = "left_above", DYING = "dying_cgroups",
    }
    Counter {
        UNREAD = "unread_processes", UNSETTLED = "unsettled_steps", SAID = "tool_says", SAID_CHARGED = "tool_charged",
        SAID_WEIGHT = "tool_weight", SAID_BY_FORMULA = "tool_by_formula",
    }
    Fact { GROWN = "grown", ENDED = "ended", FORMULA = "tool_formula", }
}

/// Its name.
pub const NAME: &str = "memory";

/// How many containers there are at most.
const MOST: &str = "20";
const QUICK: &str = "10";
/// The most that can be asked for.
const LIMIT: usize = 1000;
/// What reading a step takes: two readings that agree, and one of all processes.
const READING: Nanos = Nanos::from_millis(3_200);

/// What one more container weighs in its own cgroup.
pub const OWN: [Series; 4] = [OWN_ANON, OWN_SHMEM, OWN_FILE, OWN_KERNEL];
/// What the helpers have more for it.
pub const OF_HELPERS: [Series; 4] = [HELPERS_ANON, HELPERS_SHMEM, HELPERS_FILE, HELPERS_KERNEL];
/// What all payers have.
const ALL: [Series; 10] = [
    OWN_ANON,
    OWN_SHMEM,
    OWN_FILE,
    OWN_KERNEL,
    HELPERS_ANON,
    HELPERS_SHMEM,
    HELPERS_FILE,
    HELPERS_KERNEL,
    CALLER,
    UNCHARGED,
];
/// What is in the balance and known: page cache is the machine's, and no part of it.
const BALANCED: [Series; 10] = [
    OWN_ANON,
    OWN_SHMEM,
    OWN_KERNEL,
    HELPERS_ANON,
    HELPERS_SHMEM,
    HELPERS_KERNEL,
    CALLER,
    UNCHARGED,
    OTHERS,
    DUNNAGE,
];

const MARGIN: Margin = Margin::fixed(65_536.0, 0.05);

const fn bytes(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Bytes, MARGIN)
}

/// What is released at the same time may be more than a part of it grows.
const fn part(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    bytes(name, derive).context().signed()
}

/// The sum of these series at a step.
fn at(sample: &Sample, series: &[Series], step: usize) -> Option<f64> {
    series.iter().map(|one| Some(*sample.series(*one)?.get(step)? as f64)).sum()
}

/// The steps with at least one container on the way up.
fn up(sample: &Sample) -> Option<Vec<(usize, f64)>> {
    let counts = sample.series(CONTAINERS)?;
    let is_up = |step: &usize| counts[*step] > step.checked_sub(1).map_or(0, |before| counts[before]);
    Some((0..counts.len()).filter(is_up).map(|step| (step, counts[step] as f64)).collect())
}

/// What helpers have more once all containers have rested, for each.
fn rested(sample: &Sample) -> Option<f64> {
    let counts = sample.series(CONTAINERS)?;
    let rest = (1..counts.len()).find(|step| counts[*step] > 0 && counts[*step] == counts[step - 1])?;
    Some((at(sample, &OF_HELPERS, rest)? - at(sample, &OF_HELPERS, rest - 1)?) / counts[rest] as f64)
}

/// What one more container adds to the sum of these series.
pub fn slope(sample: &Sample, series: &[Series]) -> Option<f64> {
    let steps = up(sample)?;
    let points: Option<Vec<(f64, f64)>> =
        steps.into_iter().map(|(step, count)| Some((count, at(sample, series, step)?))).collect();
    stats::line::slope(points?.into_iter())
}

/// What each container has of this, of as many as there were at most.
fn mean(sample: &Sample, series: Series) -> Option<f64> {
    let (step, count) = up(sample)?.pop()?;
    Some(at(sample, &[series], step)? / count)
}

/// By how much the first container adds more than a later one.
fn first(sample: &Sample) -> Option<f64> {
    let one = sample.series(CONTAINERS)?.iter().position(|count| *count == 1).filter(|step| *step > 0)?;
    Some(at(sample, &ALL, one)? - at(sample, &ALL, one - 1)? - slope(sample, &ALL)?)
}

/// What there is more without a container in the end than without one at first, for each that was started.
fn remains(sample: &Sample, series: &[Series]) -> Option<f64> {
    let counts = sample.series(CONTAINERS)?;
    let last = counts.len().checked_sub(1).filter(|last| counts[0] == 0 && counts[*last] == 0)?;
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    Some((at(sample, series, last)? - at(sample, series, 0)?) / most as f64)
}

static METRICS: [Metric; 31] = [
    bytes("sum", |sample| slope(sample, &ALL)).meaning(
        "what one more container adds to all who pay: its cgroup, helpers, the caller, and kernel memory charged to no cgroup",
    ),
    part("container", |sample| slope(sample, &OWN))
        .meaning("in the container's own cgroup: processes, shared memory, page cache that it was the first to fill, kernel memory"),
    part("anon", |sample| slope(sample, &[OWN_ANON, OWN_SHMEM])).meaning("of it, memory of processes, and shared memory"),
    part("kernel", |sample| slope(sample, &[OWN_KERNEL])).meaning("of it, kernel memory"),
    part("file", |sample| slope(sample, &[OWN_FILE])).meaning("of it, page cache of files"),
    part("reclaimable", |sample| slope(sample, &[RECLAIMABLE])).meaning(
        "of it, what the kernel can take back without writing: clean page cache, and slabs that say so; only cgroup v2 tells it apart",
    ),
    part("stacks", |sample| slope(sample, &[STACKS])).meaning("of the kernel memory, stacks of threads; only cgroup v2"),
    part("page_tables", |sample| slope(sample, &[PAGE_TABLES])).meaning("of the kernel memory, page tables; only cgroup v2"),
    part("per_cpu", |sample| slope(sample, &[PER_CPU]))
        .meaning("of the kernel memory, that of which each CPU has its own; only cgroup v2"),
    part("slab", |sample| slope(sample, &[SLAB])).meaning("of the kernel memory, slabs; only cgroup v2"),
    part("charged", |sample| mean(sample, OWN_CHARGED)).meaning(
        "what `memory.current` says of the container's cgroup: its weight, and up to 64 pages that each CPU holds unused",
    ),
    part("helpers", |sample| slope(sample, &OF_HELPERS)).meaning(
        "in processes that the engine keeps or starts for containers, each page divided by those who map it (PSS), with the kernel \
         memory of their cgroups and of those above the containers'",
    ),
    part("helpers_rss", |sample| slope(sample, &[HELPERS_RSS]))
        .meaning("the same with each page counted once for every process (RSS), as `ps` and `top` show it"),
    part("helper_count", |sample| slope(sample, &[HELPER_COUNT])).of(Unit::Count, Margin::fixed(0.05, 0.0))
        .with(Better::Neither)
        .meaning("how many of these processes there are more"),
    part("caller", |sample| slope(sample, &[CALLER])).meaning(
        "in the cgroup of dunnage and its clients once they have ended: what they made for the container and left",
    ),
    part("uncharged", |sample| slope(sample, &[UNCHARGED])).meaning("kernel memory that is charged to no cgroup"),
    part("machine", |sample| slope(sample, &[MACHINE]))
        .meaning("what the machine uses more altogether, without page cache of files"),
    part("free", |sample| slope(sample, &[AVAILABLE]).map(std::ops::Neg::neg)).with(Better::Neither).meaning(
        "what `free` shows as used more: all memory less `MemAvailable`, which is the kernel's estimate of what it could give to programs",
    ),
    part("unexplained", |sample| Some(slope(sample, &[MACHINE])? - slope(sample, &BALANCED)?))
        .with(Better::Neither)
        .meaning("the machine's own change without what is known: payers, dunnage itself, and other processes"),
    part("others", |sample| slope(sample, &[OTHERS]))
        .with(Better::Neither)
        .meaning("in processes and cgroups of others, which may have grown for other reasons"),
    part("tool", |sample| Some(sample.counter(SAID)? as f64)).meaning(
        "what the engine's own tool says of one container, by a formula of its own, with the ramp at its highest",
    ),
    part("unused", |sample| Some((sample.counter(SAID_CHARGED)? - sample.counter(SAID_WEIGHT)?) as f64))
        .meaning("what is charged to that container's cgroup then and not in use"),
    part("left_out", |sample| Some((sample.counter(SAID_CHARGED)? - sample.counter(SAID)?) as f64))
        .with(Better::Neither)
        .meaning("what is charged to it and left out by the tool's formula"),
    part("off_formula", |sample| Some((sample.counter(SAID)? - sample.counter(SAID_BY_FORMULA)?) as f64))
        .with(Better::Neither)
        .meaning("by how much the tool's figure differs from its formula on the figures of the cgroup right before"),
    part("weighed", |sample| Some(sample.counter(SAID_WEIGHT)? as f64))
        .meaning("what that container weighs then: what the tool says, less what is unused, with what it leaves out"),
    part("first", first).meaning("by how much the first container adds more than each later one"),
    part("fixed", |sample| at(sample, &[HELPERS_ANON, HELPERS_SHMEM, HELPERS_FILE], 0))
        .meaning("what helpers have without any container: the engine's daemons"),
    part("rested", rested).with(Better::Neither)
        .meaning("with `rest`: what helpers have more after that time with all containers running, for each one"),
    part("grown", |sample| remains(sample, &OF_HELPERS))
        .meaning("what helpers have more once all containers are gone, for each one that was started"),
    part("left", |sample| remains(sample, &[LEFT]))
        .meaning("what is still charged to the cgroups above the containers' then, page cache too, for each one"),
    part("dying", |sample| remains(sample, &[DYING]))
        .of(Unit::Count, Margin::fixed(0.05, 0.0))
        .meaning("how many memory cgroups the kernel still keeps then, for each one"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("containers", &[MOST])
    .or(|value| fits(is_number(value, 2..=LIMIT), "a number of containers from 2 to 1000"))
    .meaning("how many run at most; memory is read at 0, 1, half of them, all, and 0 again")];

static GUARDED: [SettingKey; 10] = {
    let [shell, workdir, env, mount, ..] = command::GIVEN;
    let [serve, port, request] = http::SERVES;
    [
        command::CMD.meaning("your own program, which the probe in each container starts; it is weighed together with the probe"),
        serve,
        shell,
        workdir,
        env,
        mount,
        port,
        request,
        SettingKey::of("rest", &[])
            .or(|value| {
                let is_time = parse_duration(value).is_some_and(|seconds| (1.0..=600.0).contains(&seconds));
                fits(is_time, "a time from 1s to 600s")
            })
            .meaning("read it once more after this time with all containers running: shims give memory back after 30 s, and programs in Go after two minutes"),
        SettingKey::of("reserve", &[])
            .or(|value| fits(parse_size(value).is_some(), "a size such as 4GiB"))
            .meaning("so much memory stays available to others: before one more would take of it, no more are started (default: 512 MiB, or 5 % of all)"),
    ]
};

/// A program of the user's in every container.
#[derive(Debug)]
pub struct Own {
    /// How it is started.
    pub wanted: Wanted,
    /// The port where it listens inside and the path of a request, if its first answer is awaited.
    pub port: Option<(u16, String)>,
}

impl Own {
    /// The program of a setting, or why it makes no sense; none if the containers do nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(setting: &Setting) -> Result<Option<Own>, String> {
        if let Some(Program { wanted, port, path, .. }) = Program::of(setting)? {
            return Ok(Some(Own { wanted, port: Some((port, path.to_owned())) }));
        }
        let command = setting.get(command::CMD.name).map(|_| Wanted::of(setting)).transpose()?;
        let of_a_program =
            |(key, _): &&(&str, &str)| command::GIVEN.iter().chain(&http::SERVES).any(|own| own.name == *key);
        if let (None, Some((key, _))) = (&command, setting.0.iter().find(of_a_program)) {
            return Err(format!(
                "`{key}` is about a program of yours, and there is none\n\nhint: add it, as in `--cmd 'node app.js'`"
            ));
        }
        Ok(command.map(|wanted| Own { wanted, port: None }))
    }
}

/// How many containers of a setting run at most.
pub fn most(setting: &Setting) -> usize {
    setting.get("containers").and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// How long they rest with all running, if they do.
pub fn rest(setting: &Setting) -> Option<Nanos> {
    setting.get("rest").and_then(parse_duration).map(Nanos::from_seconds)
}

/// How much memory stays available to others, if that was chosen.
pub fn reserve(setting: &Setting) -> Option<i64> {
    setting.get("reserve").and_then(parse_size)?.try_into().ok()
}

/// How many containers there are at each step.
pub fn steps(most: usize) -> Vec<usize> {
    let mut steps = vec![0, 1, most / 2, most, 0];
    steps.dedup();
    steps
}

/// The experiment `memory`.
pub static MEMORY: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    refuses: |setting| Own::of(setting).err(),
    event: Event::Held("container"),
    scope: Scope::Few,
    keeps_samples: true,
    empty_launch: None,
    twins: |_, layer| layer == Layer::Floor,
    quick_values: |key| if key.name == "containers" { &[QUICK] } else { key.values },
    cost: |setting, launch| {
        let most = most(setting);
        let rest = rest(setting).map_or(0, |rest| rest.0 + READING.0);
        Nanos(launch.0 * (most as i64 + 1) + READING.0 * steps(most).len() as i64 + rest)
    },
    ..Experiment::of(
        NAME,
        "what does one more container cost in memory, and who pays?",
        Need::Lifecycle,
        &METRICS,
    )
};

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(counts: &[i64], series: &[(Series, &[i64])]) -> Sample {
        let all = series.iter().map(|(name, values)| (*name, values.to_vec()));
        Sample::default().with([(CONTAINERS, counts.to_vec())]).with(all)
    }

    fn value(sample: &Sample, name: &str) -> Option<f64> {
        METRICS.iter().find(|one| one.name == name).unwrap().value(sample)
    }

    #[test]
    fn the_first_container_and_what_stays_are_apart_from_the_slope() {
        let counts = [0, 1, 10, 20, 0];
        let mut all: Vec<(Series, &[i64])> = ALL.iter().map(|one| (*one, &[0; 5][..])).collect();
        all.retain(|(name, _)| ![OWN_ANON, HELPERS_ANON].contains(name));
        all.push((OWN_ANON, &[0, 700, 1600, 2600, 0]));
        all.push((HELPERS_ANON, &[9000, 9050, 9500, 10000, 9200]));
        let sample = ramp(&counts, &all);
        let close = |name: &str, to: f64| (value(&sample, name).unwrap() - to).abs() < 1e-6;
        assert!(
            close("anon", 100.0) && close("helpers", 50.0) && close("sum", 150.0) && close("first", 600.0)
        );
        assert_eq!((value(&sample, "fixed"), value(&sample, "grown")), (Some(9000.0), Some(10.0)));
        assert_eq!(value(&sample, "machine"), None);
    }

    #[test]
    fn half_a_ramp_has_a_slope_and_nothing_to_say_about_what_stays() {
        let sample = ramp(&[0, 1, 7], &[(OWN_KERNEL, &[0, 300, 1500])]);
        assert_eq!((value(&sample, "kernel"), value(&sample, "left")), (Some(200.0), None));
        assert_eq!(value(&ramp(&[0, 1], &[(OWN_KERNEL, &[0, 300])]), "kernel"), None);
    }

    #[test]
    fn a_rest_is_no_part_of_the_slope() {
        let flat = [0, 0, 0, 0, 0];
        let helpers = [HELPERS_SHMEM, HELPERS_FILE, HELPERS_KERNEL].map(|one| (one, &flat[..]));
        let all =
            [&helpers[..], &[(HELPERS_ANON, &[0, 500, 800, 200, 0][..]), (OWN_KERNEL, &[0, 10, 40, 90, 0])]]
                .concat();
        let sample = ramp(&[0, 1, 4, 4, 0], &all);
        assert_eq!((value(&sample, "rested"), value(&sample, "kernel")), (Some(-150.0), Some(10.0)));
        assert_eq!(value(&ramp(&[0, 1, 4, 0], &all), "rested"), None);
    }

    #[test]
    fn steps_go_up_and_down_once() {
        assert_eq!(steps(20), [0, 1, 10, 20, 0]);
        assert_eq!((steps(2), steps(3)), (vec![0, 1, 2, 0], vec![0, 1, 3, 0]));
    }
}
