//! What do files of an image cost? An image has files in its first and in its last layer; a program opens them, reads
//! them from the device, and changes them in every way, each of which it also does to files of a directory that is
//! mounted into the container, and on the host.
//!
//! Deliberately absent: an intermediate layer without files, and files that two operations share, since the
//! first change of a file copies it.

use super::class::Class;
use super::{AROUND, is_size, share};
use crate::experiment::question::{Event, Experiment, Metric, Scope, quotient};
use crate::experiment::setting::{Setting, SettingKey, fits};
use crate::experiment::variation::{Variation, Varied};
use crate::names::{Counter, names};
use crate::stats::Margin;
use crate::subject::Need;
use crate::subject::spec::parse_size;
use crate::units::{Nanos, Unit};
use names::{
    APPEND, BYTES, CHMOD, CHOWN, COPIED_BYTES, DELETE, DEVICE_BYTES, MODIFY, MODIFY_1, MODIFY_4, MODIFY_25,
    MODIFY_MANY, MODIFY_SMALL, NEW, OPEN, OPEN_AGAIN, OTHERS_BYTES, READ, READ_AGAIN, RENAME, TRUNCATE,
};

mod answers;
pub mod tables;

names! {
    [crate::experiment::storage::names]
    Counter {
        BYTES = "size", COPIED_BYTES = "copied_bytes", MODIFY = "modify", MODIFY_MANY = "modify_many",
        MODIFY_1 = "modify_1", MODIFY_4 = "modify_4", MODIFY_25 = "modify_25", NEW = "new", READ = "read",
        READ_AGAIN = "read_again", CHMOD = "chmod", CHOWN = "chown", APPEND = "append", TRUNCATE = "truncate",
        RENAME = "rename", DELETE = "delete",
    }
    Spread { OPEN = "open", OPEN_AGAIN = "open_again", MODIFY_SMALL = "modify_small", }
    Fact { METACOPY = "metacopy", }
}

/// Its name.
pub const NAME: &str = "layers";

/// A directory of the host's, bound into the container; it has no layers.
pub const BIND: &str = "bind";
/// The first layer of the image, below all others.
pub const FIRST: &str = "first";
/// The last layer of the image that has files.
pub const LAST: &str = "last";
/// The number of layers of a mount.
const NO_LAYERS: &str = "0";

const SIZE: &str = "100MB";
const QUICK: &str = "10MB";
/// Numbers of layers that a user can ask for.
const LAYER_COUNTS: std::ops::RangeInclusive<usize> = 3..=500;

/// Files of a tenth of the size that are read and changed together.
pub const MANY: u64 = 10;
/// Small files, which are opened.
pub const SMALL: u64 = 1000;
/// Of these, the number that is changed.
pub const CHANGED: u64 = 30;
/// Bytes of a small file, and of what is appended.
pub const SMALL_BYTES: u64 = 4096;
/// Shares of the size, in percent, with the metric of such a file's change; the largest are `modify_many` and `modify`.
pub const LINE: [(u64, Counter); 3] = [(1, MODIFY_1), (4, MODIFY_4), (25, MODIFY_25)];

/// A file of the size: tenths of a second.
const LARGE: Margin = Margin::fixed(1e-3, 0.05);
/// Bytes from a device, in any layer.
const READING: Margin = Margin::fixed(1e-3, 0.03);
/// A single call, without waiting for a device.
const CALL: Margin = Margin::fixed(1e-6, 0.05);

const fn timed(counter: Counter, margin: Margin) -> Metric {
    Metric::nanos(counter.text(), counter).of(Unit::Seconds, margin)
}

static METRICS: [Metric; 21] = [
    timed(MODIFY, LARGE).meaning(
        "the time to change one byte of a file of the size that is not in the page cache: open it for reading and writing, write, \
         sync",
    ),
    timed(MODIFY_MANY, LARGE)
        .meaning("as `modify`, of ten files of a tenth of the size, one after the other"),
    Metric::by("modify_small", |sample| sample.quantile(MODIFY_SMALL, 0.5))
        .of(Unit::Seconds, Margin::fixed(20e-6, 0.05))
        .meaning("as `modify`, of a file of 4 KiB that is in the page cache: the median of thirty"),
    timed(NEW, LARGE).meaning("the time to write a new file of the size and to sync it"),
    timed(READ, READING).meaning("the time to read a file of the size that is not in the page cache"),
    Metric::by("open", |sample| sample.quantile(OPEN, 0.5)).of(Unit::Seconds, CALL).meaning(
        "the median time to open and close a file for the first time in a container, of a thousand in one directory",
    ),
    timed(CHMOD, Margin::fixed(100e-6, 0.05))
        .meaning("the time to change the mode of a file of a tenth of the size"),
    timed(CHOWN, LARGE).context().meaning("as `chmod`, to change its group"),
    timed(APPEND, LARGE)
        .context()
        .meaning("the time to append 4 KiB to a file of a tenth of the size, and to sync it"),
    timed(TRUNCATE, LARGE)
        .context()
        .meaning("the time to replace the contents of a file of a tenth of the size by as many bytes, and to sync it"),
    timed(RENAME, LARGE).context().meaning("the time to rename a file of a tenth of the size"),
    timed(DELETE, LARGE).context().meaning("the time to remove a file of a tenth of the size"),
    timed(READ_AGAIN, READING).context().meaning("as `read`, when the file is in the page cache"),
    Metric::by("open_again", |sample| sample.quantile(OPEN_AGAIN, 0.5))
        .of(Unit::Seconds, CALL)
        .context()
        .meaning("as `open`, for the second time"),
    Metric::tail("open_p99", OPEN, 0.99)
        .of(Unit::Seconds, CALL)
        .meaning("as `open`, the 99th percentile over all rounds"),
    timed(MODIFY_1, LARGE).context().meaning("as `modify`, of a file of 1 % of the size"),
    timed(MODIFY_4, LARGE).context().meaning("as `modify`, of a file of 4 % of the size"),
    timed(MODIFY_25, LARGE).context().meaning("as `modify`, of a file of 25 % of the size"),
    share("copied", |sample| quotient(sample, COPIED_BYTES, BYTES))
        .meaning("bytes that arrived at the device during `modify`, as a share of the file's"),
    share("device_share", |sample| quotient(sample, DEVICE_BYTES, BYTES))
        .meaning("bytes that arrived at the device during `new`, as a share of the file's"),
    share("others_share", |sample| quotient(sample, OTHERS_BYTES, BYTES)).meaning(
        "bytes that others would have written to the device in the time of `new`, if they went on as right before, likewise",
    ),
];

static KEYS: [SettingKey; 3] = [
    SettingKey::of("layers", &["10", "20", NO_LAYERS])
        .or(|value| {
            let is_known = value.parse().is_ok_and(|count| LAYER_COUNTS.contains(&count));
            fits(is_known, "a number of layers from 3 to 500")
        })
        .meaning(
            "layers of the image, none of which is empty; the program is alone in the uppermost one. `0`: a mount, which has none",
        ),
    SettingKey::of("at", &[FIRST, LAST, BIND]).meaning(
        "where the files are: `first`: in the first layer, below all others; `last`: in the last one below the program's; `bind`: in a directory \
         of the host's that is mounted into the container",
    ),
    SettingKey::of("size", &[SIZE]).or(is_size).meaning("bytes of the largest file, such as `100MB` or `1GB`"),
];

/// The layers of the image of a setting; none for a mount.
pub fn count(setting: &Setting) -> Option<usize> {
    setting.get("layers").and_then(|count| count.parse().ok()).filter(|count| LAYER_COUNTS.contains(count))
}

/// Where the files of a setting are.
pub fn at(setting: &Setting) -> &'static str {
    setting.get("at").unwrap_or(BIND)
}

/// The bytes of its largest file.
pub fn size(setting: &Setting) -> u64 {
    setting.get("size").and_then(parse_size).unwrap_or(1)
}

/// Metrics that promise that bytes are on the device.
pub const DURABLE: [&str; 6] = ["modify", "modify_many", "modify_small", "new", "append", "truncate"];

/// The experiment `layers`.
pub static LAYERS: Experiment = Experiment {
    keys: &KEYS,
    requires: &[("at", FIRST, Need::Images), ("at", LAST, Need::Images)],
    event: Event::Works,
    scope: Scope::Few,
    varies: &[Variation::of("overlay", &["metacopy"]).only(Varied::Floor)],
    maps: &["modify", "open"],
    has: |setting| (at(setting) == BIND) == (setting.get("layers") == Some(NO_LAYERS)),
    twins: |setting, _| at(setting) == BIND,
    quick_values: |key| match key.name {
        "size" => &[QUICK],
        "layers" => &["10", NO_LAYERS],
        "at" => &[FIRST, BIND],
        _ => key.values,
    },
    reference: |setting| (at(setting) != BIND).then(|| setting.with("layers", NO_LAYERS).with("at", BIND)),
    // Files of about three sizes are copied or written, and of two are read.
    cost: |setting, launch| AROUND + Nanos(2 * launch.0 + 4 * size(setting) as i64),
    class: |_, sample, facts, metric| {
        DURABLE.contains(&metric).then(|| Class::of_sample("synced", sample, facts, BYTES).word())
    },
    ..Experiment::of(NAME, "what do opening and changing files of an image cost?", Need::Network, &METRICS)
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings_of;
    use crate::outcome::Sample;

    fn setting(layers: &'static str, at: &'static str) -> Setting {
        Setting(vec![("layers", layers), ("at", at), ("size", SIZE)])
    }

    #[test]
    fn a_mount_has_no_layers_and_is_what_every_layer_is_compared_with() {
        let all = settings_of(&LAYERS, |key| key.values.to_vec());
        let shown: Vec<_> = all.iter().map(|one| (count(one), at(one))).collect();
        let expected =
            [(Some(10), FIRST), (Some(10), LAST), (Some(20), FIRST), (Some(20), LAST), (None, BIND)];
        assert_eq!(shown, expected);
        assert!(all.iter().all(|one| size(one) == 100_000_000));
        let references: Vec<_> = all.iter().filter_map(LAYERS.reference).collect();
        assert!(references.len() == 4 && references.iter().all(|one| *one == setting(NO_LAYERS, BIND)));
        let of_50 =
            settings_of(&LAYERS, |key| if key.name == "layers" { vec!["50"] } else { key.values.to_vec() });
        assert_eq!(of_50, [setting("50", FIRST), setting("50", LAST), setting(NO_LAYERS, BIND)]);
    }

    #[test]
    fn impossible_numbers_of_layers_are_refused() {
        assert!(KEYS[0].take("3").is_ok() && KEYS[0].take("500").is_ok());
        for wrong in ["1", "2", "501", "many", "-1"] {
            assert!(KEYS[0].take(wrong).is_err(), "{wrong}");
        }
        assert!(!(LAYERS.has)(&setting("10", BIND)) && !(LAYERS.has)(&setting(NO_LAYERS, LAST)));
    }

    #[test]
    fn what_arrives_at_the_device_gives_class_and_copy() {
        let counters = [
            ("modify", 60_000_000),
            ("size", 100_000_000),
            ("copied_bytes", 101_000_000),
            ("device_bytes", 100_500_000),
            ("others_bytes", 0),
        ];
        let sample = Sample {
            counters: counters.map(|(name, value)| (name.into(), value)).to_vec(),
            ..Sample::default()
        };
        let value = |name: &str| METRICS.iter().find(|one| one.name == name).unwrap().value(&sample);
        assert_eq!((value("modify"), value("copied"), value("read")), (Some(0.06), Some(1.01), None));
        let facts = [("device".to_owned(), "vda".to_owned())];
        let own = setting("10", FIRST);
        assert_eq!((LAYERS.class)(&own, &sample, &facts, "modify"), Some("durable"));
        assert_eq!((LAYERS.class)(&own, &sample, &facts, "open"), None);
        let volatile = [facts[0].clone(), ("durability".to_owned(), "volatile".to_owned())];
        assert_eq!((LAYERS.class)(&own, &sample, &volatile, "new"), Some("volatile"));
    }
}
