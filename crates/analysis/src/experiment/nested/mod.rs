//! Which way of running containers in containers works, what does a start inside cost, and what does the way give away?
//!
//! In each sample an outer container is made as the way asks, an engine is started inside, an image is loaded there, and containers
//! are started from it: one detached command each, without a network. Next to it the outer engine starts the same outside, in the same
//! way. Whether a container is really inside is read on the host: a process with a name that only this start was given, with a process
//! id in three namespaces, and with the outer container's first process among its parents.
//!
//! A way that does not work is an answer too, with the engine's words and what helps. Deliberately absent: images from a registry, and
//! what programs do inside.

use super::command::line;
use super::question::{Compared, Event, Experiment, Metric, Scope, quotient};
use super::setting::{SettingKey, fits};
use crate::names::{Fact, names};
use crate::outcome::Sample;
use crate::stats::{self, Margin};
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};
use names::{INNER, LOADED, OUTER, PLACE, REACHED, READ, READ_OUTSIDE, READY, REFUSED, WROTE, WROTE_OUTSIDE};

pub mod tables;

names! {
    Series { INNER = "inner_starts", OUTER = "outer_starts", }
    Counter { LOADED = "inner_image_loaded", READY = "inner_engine_ready", DEPTH = "nesting_depth",
        WROTE = "inner_write_took", READ = "inner_read_took", WROTE_OUTSIDE = "outer_write_took", READ_OUTSIDE = "outer_read_took",
        REACHED = "inner_write_device_bytes", MASKED = "outer_covered_paths", DEVICES = "outer_devices", DISKS = "outer_disks",
    }
    Fact {
        REFUSED = "nesting_refused", REMEDY = "nesting_remedy", PLACE = "nesting_place", CGROUP = "nesting_cgroup",
        DRIVER = "inner_storage_driver", CAPABILITIES = "outer_capabilities", FILTER = "outer_seccomp", PROFILE = "outer_apparmor", UNWRITTEN = "inner_files_refused", BUILT = "inner_build", BOUND = "outer_writes_host",
        OPENS = "outer_opens",
        ASKED = "nesting_options", INSTEAD = "nesting_instead",
    }
}

/// Its name.
pub const NAME: &str = "nested";

/// Where an inner container was found.
pub const INSIDE: &str = "inside";
/// One that the host's daemon made next to the outer container.
pub const SIBLING: &str = "sibling";
/// The class of a sample in which a way did not work.
pub const REFUSED_WAY: &str = "refused";

const MARGIN: Margin = Margin::fixed(10e-3, 0.05);

fn median(sample: &Sample, of: crate::names::Series) -> Option<f64> {
    Some(stats::Sample::new(sample.series(of)?.iter().map(|one| Nanos(*one).seconds()))?.median())
}

/// Bytes that are written, and read again, inside and outside.
pub const STORED: u64 = 16 << 20;

/// The share of what was written inside that the device wrote meanwhile.
fn reached(sample: &Sample) -> Option<f64> {
    Some(sample.counter(REACHED)? as f64 / STORED as f64)
}

const fn times(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Ratio, Margin::fixed(0.05, 0.0)).with(Better::Less).context()
}

static METRICS: [Metric; 10] = [
    Metric::by("inner", |sample| median(sample, INNER)).of(Unit::Seconds, MARGIN).meaning(
        "a start inside: from one detached command until it has returned, without a network; the median of three",
    ),
    Metric::by("outer", |sample| median(sample, OUTER))
        .of(Unit::Seconds, MARGIN)
        .context()
        .meaning("the same by the outer engine, outside"),
    times("times", |sample| Some(median(sample, INNER)? / median(sample, OUTER)?))
        .meaning("how many times as long the start inside takes, in the same round"),
    Metric::nanos("ready", READY)
        .context()
        .meaning("from the first command inside until the inner engine answers, if it has a daemon"),
    Metric::nanos("loaded", LOADED).context().meaning("giving the inner engine an image of a few megabytes"),
    Metric::nanos("write", WROTE).context().meaning("writing 16 MiB to a new file of the inner container's root, and syncing it"),
    times("write_times", |sample| quotient(sample, WROTE, WROTE_OUTSIDE))
        .meaning("how many times as long that takes as in the outer container's root, in the same round"),
    Metric::by("reached", reached).of(Unit::Ratio, Margin::fixed(0.0, 0.0)).with(Better::Neither).context().meaning(
        "of these bytes, the share that the device below wrote meanwhile; more than 1 with a journal or others' bytes, less if a sync does not reach it",
    ),
    Metric::nanos("read", READ).context().meaning("reading them again from the page cache"),
    times("read_times", |sample| quotient(sample, READ, READ_OUTSIDE))
        .meaning("how many times as long that takes as in the outer container, in the same round"),
];

/// The user's own way.
const OWN: &str = "own";
/// A daemon that is a service.
const TLS: &str = "service-tls";

static KEYS: [SettingKey; 1] = [SettingKey::of(
    "way",
    &[
        "privileged",
        "privileged-own-socket",
        "almost-privileged",
        "socket",
        "relaxed",
        "relaxed-network",
        "fuse",
        "fuse-own-proc",
        "copies",
        "copies-own-proc",
        "daemonless-inside",
        "daemon-inside",
        "user-inside",
        "daemon-of-user",
    ],
)
.or(|value| {
    fits(
        [OWN, TLS].contains(&value),
        "a way that `dunnage list experiments nested` names, or `service-tls`, or `own`, which is yours",
    )
})
.meaning(
    "how the outer container is made, and what is done inside; with `service-tls`, clients reach the daemon at a port, with certificates, as \
     GitLab's jobs do; with `own`, all that is special is in `options`",
)];

/// Options of an engine that dunnage sets, or that make it do something other than a start.
const OURS: [&str; 8] =
    ["--name", "--cidfile", "--entrypoint", "--detach", "-d", "--help", "--pull", "--label"];

/// What is done inside.
pub const DOES: &str = "does";

static GUARDED: [SettingKey; 2] = [SettingKey::of(DOES, &["start", "build", "buildkit"]).meaning(
    "what is done inside besides starts: nothing, or an image is built by the engine's own builder, or by BuildKit",
), SettingKey::of("options", &[])
    .or(|value| {
        let words = line::split(value).map_err(|_| "words as a shell splits them, with every quote closed".to_owned())?;
        let is_ours = |word: &String| OURS.contains(&word.split('=').next().unwrap_or_default());
        match words.iter().find(|word| is_ours(word)) {
            Some(ours) => Err(format!("no `{ours}`, which dunnage needs itself")),
            None => Ok(()),
        }
    })
    .meaning(
        "with `way=own`: options of your outer container, split into words as a shell does it; with `image=` it is yours too, with the engine in it. They are kept in results as written",
    )];

/// How much longer than a launch a sample takes: the daemon inside, the image, the starts.
const AROUND: i64 = 1_500_000_000;
const STARTED: i64 = 12;

/// The experiment `nested`.
pub static NESTED: Experiment = Experiment {
    keys: &KEYS,
    guarded: &GUARDED,
    refuses: |setting| {
        let is_own = setting.get("way") == Some(OWN);
        (setting.get("options").is_some() && !is_own).then(|| "`options` are for `way=own`".to_owned())
    },
    requires: &[
        ("way", "privileged-own-socket", Need::NestsByDaemon),
        ("way", "almost-privileged", Need::NestsByDaemon),
        ("way", "socket", Need::NestsByDaemon),
        ("way", "relaxed", Need::NestsByDaemon),
        ("way", "relaxed-network", Need::NestsByDaemon),
        ("way", TLS, Need::NestsByDaemon),
        ("way", "fuse", Need::NestsByUsers),
        ("way", "fuse-own-proc", Need::NestsByUsers),
        ("way", "copies", Need::NestsByUsers),
        ("way", "copies-own-proc", Need::NestsByUsers),
        ("way", "daemonless-inside", Need::NestsByDaemon),
        ("way", "daemon-inside", Need::NestsByUsers),
        ("way", "user-inside", Need::NestsByUsers),
        ("way", "daemon-of-user", Need::NestsInUsers),
    ],
    event: Event::Once("start inside"),
    class: |_, sample, facts, metric| {
        let of = |wanted: Fact| facts.iter().find(|(name, _)| name == wanted.text()).map(|(_, value)| value);
        let found = match of(PLACE).map(String::as_str) {
            _ if sample.series(INNER).is_none() => of(REFUSED).map(|_| REFUSED_WAY),
            Some(SIBLING) => Some(SIBLING),
            found => found.map(|_| INSIDE),
        };
        found.filter(|_| metric == METRICS[0].name)
    },
    scope: Scope::Engines,

    compares: Compared::OneKey,
    modest: &[(
        "way",
        &[
            "fuse",
            "fuse-own-proc",
            "copies",
            "copies-own-proc",
            "daemonless-inside",
            "user-inside",
            "daemon-of-user",
        ],
    )],
    keeps_samples: true,
    twins: |_, _| false,
    cost: |_, launch| Nanos(AROUND + launch.0 * STARTED),
    ..Experiment::of(
        NAME,
        "which way of running containers in containers works, and what does it cost and give away?",
        Need::Nests,
        &METRICS,
    )
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_inside_is_compared_with_one_outside() {
        let millis = |all: [i64; 3]| all.map(|one| one * 1_000_000).to_vec();
        let sample =
            Sample::default().with([(INNER, millis([90, 120, 300])), (OUTER, millis([100, 80, 101]))]);
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        assert_eq!((value("inner"), value("outer")), (Some(0.12), Some(0.1)));
        assert!((value("times").unwrap() - 1.2).abs() < 1e-9);
        // A way that does not work has no start inside.
        let refused = Sample::default().with([(OUTER, millis([100, 80, 101]))]);
        assert_eq!(METRICS[0].value(&refused), None);
    }
}
