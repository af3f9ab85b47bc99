//! What does it cost that the files of an image belong to other users inside? A new image of many small files, and
//! three containers on it, one after the other: what an engine does once for an image is in the first alone.
//!
//! Deliberately absent: what the mapping costs a program that runs (`syscall`), and images that an engine has
//! used before.

use super::AROUND;
use crate::experiment::question::{Event, Experiment, Metric, QUIET, Scope, nanos};
use crate::experiment::setting::{Setting, SettingKey, fits};
use crate::experiment::variation::{Variation, Varied};
use crate::names::{Counter, names};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};
use names::{FIRST_TOOK, IMAGE_TOOK, MADE_BYTES, MADE_FILES, REMOVAL_TOOK, SECOND_TOOK, THIRD_TOOK};

pub mod tables;

names! {
    Counter {
        IMAGE_TOOK = "image_took", FIRST_TOOK = "first_took", SECOND_TOOK = "second_took", THIRD_TOOK = "third_took",
        REMOVAL_TOOK = "removal_took", MADE_FILES = "made_files", MADE_BYTES = "made_bytes",
    }
    Fact { OWNERS = "owners", }
}

/// Its name.
pub const NAME: &str = "owners";

/// Layers of the image that have files.
pub const LAYERS: u64 = 4;
/// Bytes of a file.
pub const SIZE: u64 = 1024;

const FILES: &str = "10000";
const QUICK: &str = "1000";
/// The most files of an image.
const MOST: u64 = 1_000_000;
/// What a file takes to be written, loaded, given to another user and removed, as assumed before a trial tells.
const OF_A_FILE: Nanos = Nanos(500_000);

const MARGIN: Margin = Margin::fixed(10e-3, 0.05);

const fn time(name: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    Metric::by(name, derive).of(Unit::Seconds, MARGIN)
}

fn later(sample: &Sample) -> Option<f64> {
    Some((nanos(sample, SECOND_TOOK)? + nanos(sample, THIRD_TOOK)?) / 2.0)
}

fn count(sample: &Sample, counter: Counter) -> Option<f64> {
    sample.counter(counter).map(|count| count as f64)
}

static METRICS: [Metric; 7] = [
    time("first", |sample| nanos(sample, FIRST_TOOK)).meaning(
        "from the command that makes the first container on a new image until the program inside is ready to work",
    ),
    time("later", later).meaning("the same for a second and a third container on this image, on average"),
    time("added", |sample| Some(nanos(sample, FIRST_TOOK)? - later(sample)?))
        .context()
        .meaning("by how much the first container takes longer than the later ones"),
    time("removal", |sample| nanos(sample, REMOVAL_TOOK))
        .context()
        .meaning("to end the first container and to remove it"),
    time("image", |sample| nanos(sample, IMAGE_TOOK))
        .context()
        .meaning("to write the image and to have it loaded; an engine whose users are all mapped in the same way gives the files to their users here"),
    Metric::by("made_files", |sample| count(sample, MADE_FILES))
        .of(Unit::Count, Margin::fixed(10.0, 0.05))
        .with(Better::Neither)
        .context()
        .meaning("files and directories that the filesystem has more when the first container is ready, others' included"),
    Metric::by("made_bytes", |sample| count(sample, MADE_BYTES))
        .of(Unit::Bytes, Margin::fixed(1e6, 0.05))
        .with(Better::Neither)
        .context()
        .meaning("bytes that the filesystem has less room for then, likewise"),
];

static KEYS: [SettingKey; 1] = [SettingKey::of("files", &[FILES])
    .or(|value| {
        let is_known = value.parse().is_ok_and(|files: u64| (LAYERS..=MOST).contains(&files));
        fits(is_known, "a number of files from 4 to 1000000")
    })
    .meaning("files of 1 KiB in the image, in four layers")];

/// The number of files in the image of a setting.
pub fn files(setting: &Setting) -> u64 {
    setting.get("files").and_then(|files| files.parse().ok()).unwrap_or(LAYERS)
}

/// The experiment `owners`.
pub static OWNERS: Experiment = Experiment {
    keys: &KEYS,
    event: Event::Once("first container on an image"),
    scope: Scope::Few,
    differences: &["added", "made_files", "made_bytes"],
    varies: &[
        // Root's users are the same inside with it, so that no file belongs to another one.
        Variation::of("userns", &["keep-id"]).only(Varied::OrdinaryUsers),
        Variation::of("userns", &["auto", "remap"]).only(Varied::Engines),
    ],
    quick_values: |_| &[QUICK],
    cost: |setting, launch| {
        AROUND + Nanos(3 * (QUIET.0 + 2 * launch.0) + OF_A_FILE.0 * files(setting) as i64)
    },
    ..Experiment::of(
        NAME,
        "what does it cost that the files of an image belong to other users inside?",
        Need::Images,
        &METRICS,
    )
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_first_container_adds_is_its_difference_from_the_mean_of_the_others() {
        let counters =
            [("first_took", 900_000_000), ("second_took", 200_000_000), ("third_took", 300_000_000)];
        let sample = Sample {
            counters: counters.map(|(name, value)| (name.into(), value)).to_vec(),
            ..Sample::default()
        };
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        assert_eq!((value("first"), value("later"), value("made_files")), (Some(0.9), Some(0.25), None));
        assert!((value("added").unwrap() - 0.65).abs() < 1e-9);
    }

    #[test]
    fn an_image_has_a_file_in_each_layer() {
        for wrong in ["3", "1000001", "many", "-4"] {
            assert!(KEYS[0].take(wrong).is_err(), "{wrong}");
        }
        assert!(KEYS[0].take("200").is_ok());
        assert_eq!(files(&Setting(vec![("files", "200")])), 200);
    }
}
