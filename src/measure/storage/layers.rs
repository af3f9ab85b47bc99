//! `layers`: a program inside opens, reads and changes files of an image, or the same files in a mount; each operation
//! has files of its own.

use std::path::PathBuf;

use super::{Files, INSIDE, Place, Window};
use crate::experiment::Setting;
use crate::experiment::storage::layers::{
    CHANGED, FIRST, LAST, LINE, MANY, NAME, SMALL, SMALL_BYTES, at, count, size,
};
use crate::measure::{sample_of, work_sample, worked};
use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::Done;
use crate::stats::Rng;
use crate::subject::pair::result;
use crate::subject::{Made, RunContext, Subject, Wish, Work, drivers};
use crate::sys::filesystem;
use crate::units::Nanos;

/// The random stream for the order of files.
const STREAM: u64 = 0x66_696c_6573;
/// The slowest device that is waited for, in nanoseconds a byte: ten megabytes a second.
const SLOWEST: i64 = 100;
/// How long a thousand small files may take, each with its sync.
const LONG: Nanos = Nanos::from_millis(60_000);
/// Bytes of a block of large files.
const BLOCK: u64 = 1 << 20;
/// The most that one image may take where each layer is a copy of those below.
const MOST: u64 = 4_000_000_000;
/// An image is once in an archive and once in its engine.
const COPIES: u64 = 2;

/// The operations on a file of a tenth of the size, each by its own number.
const SINGLE: [&str; 6] = ["append", "truncate", "chmod", "chown", "rename", "delete"];

/// What a renamed file is called then.
const RENAMED: &str = "single/renamed";

/// The file of an operation.
fn single(operation: &str) -> String {
    let number = SINGLE.iter().position(|own| *own == operation).unwrap_or(SINGLE.len());
    format!("single/{number}")
}

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    if !subject.has_a_clock() {
        let words = [NAME, at(setting), setting.get("layers").unwrap_or_default()].map(str::to_owned);
        return Ok(work_sample(&worked(subject, run, &Work::new("files", words.into(), Nanos(0)))?)?);
    }
    // Containers stay until they are removed: some engines mount what goes at the end so that syncs do nothing.
    let place = match count(setting) {
        None => Place::in_mount(&mount(subject, size(setting), run)?),
        Some(count) => Place::in_image(image(subject, count, size(setting), run)?, at(setting)),
    };
    let files = Files::begin(subject, &place, run)?;
    let bytes: u64 = own(size(setting)).iter().map(|(_, bytes)| bytes).sum();
    place.has_room(files.behind.as_ref(), bytes)?;
    let path = place.path.to_string_lossy().into_owned();
    let mut taken = Taken { files, path, size: size(setting), sample: Sample::default() };
    let mut treatment = taken.files.treatment()?;
    treatment.extend(taken.metacopy());
    taken.sample = sample_of(Vec::new(), &treatment);
    if count(setting).is_none() {
        taken.prepare()?;
    }
    taken.all()?;
    Ok(taken.sample)
}

/// The files of a place, for all operations: names below it and bytes.
fn own(size: u64) -> Vec<(String, u64)> {
    let numbered = |directory: &'static str, count: u64, bytes: u64| {
        (0..count).map(move |number| (format!("{directory}/{number}"), bytes))
    };
    let line =
        LINE.iter().zip(0..).map(|((percent, _), number)| (format!("line/{number}"), size * percent / 100));
    numbered("big", 1, size)
        .chain(numbered("many", MANY, size / MANY))
        .chain(line)
        .chain(numbered("single", SINGLE.len() as u64, size / MANY))
        .chain(numbered("small", SMALL, SMALL_BYTES))
        .collect()
}

/// The files of an image with so many layers: those of the first and of the last layer below the program's, in a random
/// order, and in every layer one more in their directories of small files, so that none of these ends the
/// search for a name.
fn layers(count: usize, size: u64, seed: u64) -> Vec<Vec<(String, u64)>> {
    let below = INSIDE.trim_start_matches('/');
    let mut rng = Rng::for_stream(seed, STREAM);
    let last = count.saturating_sub(2);
    let layer = |number: usize| {
        let between = |place: &str| (format!("{below}/{place}/small/layer-{number}"), SMALL_BYTES);
        let mut files = [FIRST, LAST].map(between).to_vec();
        let places = [(0, FIRST), (last, LAST)];
        for (_, place) in places.iter().filter(|(own, _)| *own == number) {
            files.extend(
                own(size).into_iter().map(|(name, bytes)| (format!("{below}/{place}/{name}"), bytes)),
            );
        }
        rng.shuffle(&mut files);
        files
    };
    (0..=last).map(layer).collect()
}

/// Bytes that an image takes where each layer is a directory, or where each is a copy of all below it.
fn taken_by(layers: &[Vec<(String, u64)>], copies_every_layer: bool) -> u64 {
    let bytes = |layer: &Vec<(String, u64)>| layer.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let each = layers.iter().map(bytes);
    if !copies_every_layer {
        return each.sum();
    }
    each.scan(0, |below, own| {
        *below += own;
        Some(*below)
    })
    .sum()
}

/// The directory of the host's for files of this size; empty when it is first needed.
fn mount(subject: &dyn Subject, size: u64, run: &RunContext) -> Result<PathBuf, Abort> {
    run.kept(subject, &format!("a mount, {size} bytes"), || run.empty_directory())
}

/// The image of this run with so many layers; made when it is first needed.
fn image(subject: &dyn Subject, count: usize, size: u64, run: &RunContext) -> Result<Made, Abort> {
    run.kept(subject, &format!("{count} layers, {size} bytes"), || {
        let layers = layers(count, size, run.seed);
        let copies_every_layer = drivers::copies_every_layer(subject.about());
        let own = taken_by(&layers, copies_every_layer);
        if copies_every_layer && own > MOST {
            return Err(Failure::environment(format!(
                "an image of {count} layers would take {} MB where each layer is a copy of those below, and {} MB are allowed: choose \
                 fewer layers, or a smaller size with `--set size=…`",
                own / 1_000_000,
                MOST / 1_000_000
            ))
            .into());
        }
        let needed = COPIES * own;
        let left = filesystem::left(&run.place.state).map_or(u64::MAX, |left| left.bytes);
        if left < needed {
            return Err(Failure::environment(format!(
                "no space left: an image of {count} layers needs {} MB, and `{}` has {} MB free",
                needed.div_ceil(1_000_000),
                run.place.state.display(),
                left / 1_000_000
            ))
            .into());
        }
        let executable = std::fs::read(&run.place.executable)
            .map_err(|error| Failure::environment(format!("cannot read dunnage's own executable: {error}")))?;
        let made = subject.make(Wish::Image(&executable, &layers), run)?;
        // An overlay does not sync what is in a lower layer, and dirty pages cannot be dropped.
        rustix::fs::sync();
        Ok(made)
    })
}

/// A sample that is being taken.
struct Taken<'a> {
    files: Files<'a>,
    path: String,
    size: u64,
    sample: Sample,
}

impl Taken<'_> {
    fn count(&mut self, name: impl Into<Name>, value: i64) {
        self.sample.counters.push((name.into(), value));
    }

    /// Whether the root is an overlay that copies only metadata where that is enough.
    fn metacopy(&self) -> Option<(&'static str, String)> {
        let behind = self.files.behind.as_ref().filter(|behind| behind.mount == "overlay")?;
        let is_on = behind.options.iter().any(|option| option == "metacopy=on");
        Some(("metacopy", if is_on { "on" } else { "off" }.to_owned()))
    }

    /// An order about what has this name at the place.
    fn ask(&mut self, order: &[&str], name: &str, more: &[&str]) -> Result<Done, Abort> {
        let path = if name.is_empty() { self.path.clone() } else { format!("{}/{name}", self.path) };
        let words: Vec<&str> =
            order.iter().copied().chain([path.as_str()]).chain(more.iter().copied()).collect();
        self.files.ask(&words, self.takes())
    }

    /// The same, whose time is a counter.
    fn timed(
        &mut self,
        counter: &'static str,
        order: &[&str],
        name: &str,
        more: &[&str],
    ) -> Result<(), Abort> {
        match self.ask(order, name, more) {
            Ok(done) => self.count(counter, result(&done, "took")?),
            Err(Abort::Failed(failure)) if failure.class == FailureClass::Unsupported => {
                self.sample.missing.push((counter.into(), failure.reason));
            }
            Err(abort) => return Err(abort),
        }
        Ok(())
    }

    /// How long an order may take at the slowest device.
    fn takes(&self) -> Nanos {
        LONG + Nanos(SLOWEST * self.size as i64)
    }

    /// The files of the image, in a mount. They are made once in a run; what a sample removed, renamed or made, which no new
    /// container undoes there, is undone here.
    fn prepare(&mut self) -> Result<(), Abort> {
        let is_there = |taken: &mut Self, name: &str| {
            Ok::<_, Abort>(result(&taken.ask(&["touch"], name, &[])?, "exists")? == 1)
        };
        let mut missing = own(self.size);
        if is_there(self, "big/0")? {
            missing.retain(|(name, _)| *name == single("delete"));
            if is_there(self, &missing[0].0)? {
                missing.clear();
            }
            if is_there(self, RENAMED)? {
                let back = format!("{}/{}", self.path, single("rename"));
                self.ask(&["rename"], RENAMED, &[&back])?;
            }
            if is_there(self, "new/0")? {
                self.ask(&["delete"], "new/0", &[])?;
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let words = missing.into_iter().map(|(name, bytes)| format!("{name}:{bytes}")).collect::<Vec<_>>();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.ask(&["prepare"], "", &words).map(drop)
    }

    /// Drops numbered files from the page cache; those that stay fail the metrics that need them cold.
    fn is_cold(&mut self, directory: &str, files: u64, metrics: &[&'static str]) -> Result<bool, Abort> {
        let stayed = self.files.forget(&format!("{}/{directory}", self.path), &files.to_string())?;
        if let Some(why) = &stayed {
            self.sample.missing.extend(metrics.iter().map(|name| ((*name).into(), why.clone())));
        }
        Ok(stayed.is_none())
    }

    /// All operations: first those that change nothing.
    fn all(&mut self) -> Result<(), Abort> {
        self.count("size", self.size as i64);
        for name in ["open", "open_again"] {
            self.each(name, "open", SMALL)?;
        }
        self.read()?;
        // Before the copies, which are none in a mount: a device may be slower right after many bytes.
        self.write()?;
        self.modify()?;
        self.each("modify_small", "modify", CHANGED)?;
        self.single()
    }

    /// An operation on each of the small files.
    fn each(&mut self, name: &'static str, operation: &str, count: u64) -> Result<(), Abort> {
        let done = self.ask(&["each", operation], "small", &[&count.to_string()])?;
        let found = done.distributions.into_iter().find(|(own, _)| own == "each");
        self.sample.distributions.extend(found.map(|(_, values)| (name.into(), values)));
        Ok(())
    }

    fn read(&mut self) -> Result<(), Abort> {
        let more = ["1", &BLOCK.to_string(), "cached", "plain"];
        if self.is_cold("big", 1, &["read"])? {
            self.timed("read", &["read"], "big", &more)?;
        }
        self.timed("read_again", &["read"], "big", &more)
    }

    fn modify(&mut self) -> Result<(), Abort> {
        if self.is_cold("big", 1, &["modify", "copied"])? {
            let (done, window) = self.watched(&["modify"], "big/0", &[])?;
            self.count("modify", result(&done, "took")?);
            if let Some(during) = window.during {
                self.count("copied_bytes", during.bytes_written as i64);
            }
        }
        if self.is_cold("many", MANY, &["modify_many"])? {
            self.timed("modify_many", &["each", "modify"], "many", &[&MANY.to_string()])?;
        }
        let line = LINE.map(|(_, metric)| metric);
        if self.is_cold("line", LINE.len() as u64, &line)? {
            for (number, metric) in line.into_iter().enumerate() {
                self.timed(metric, &["modify"], &format!("line/{number}"), &[])?;
            }
        }
        Ok(())
    }

    fn watched(&mut self, order: &[&str], name: &str, more: &[&str]) -> Result<(Done, Window), Abort> {
        let path = format!("{}/{name}", self.path);
        let words: Vec<&str> =
            order.iter().copied().chain([path.as_str()]).chain(more.iter().copied()).collect();
        let takes = self.takes();
        self.files.watched(&words, takes)
    }

    /// One operation on each of the files of a tenth.
    fn single(&mut self) -> Result<(), Abort> {
        if !self.is_cold("single", SINGLE.len() as u64, &SINGLE)? {
            return Ok(());
        }
        let (small, tenth) = (SMALL_BYTES.to_string(), (self.size / MANY).to_string());
        let new = format!("{}/{RENAMED}", self.path);
        for operation in SINGLE {
            let (order, more): (&str, &[&str]) = match operation {
                "append" => ("append-to", &[&small]),
                "truncate" => ("truncate", &[&tenth]),
                "rename" => ("rename", &[&new]),
                other => (other, &[]),
            };
            self.timed(operation, &[order], &single(operation), more)?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Abort> {
        let [size, block] = [self.size, BLOCK].map(|number| number.to_string());
        let (done, window) = self.watched(&["write"], "new", &[&size, "1", &block, "synced", "plain"])?;
        self.count("new", result(&done, "took")?);
        if let Window { during: Some(during), others: Some(others) } = window {
            self.count("device_bytes", during.bytes_written as i64);
            self.count("others_bytes", others);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_layer_is_empty_and_the_first_and_the_last_have_all_files() {
        let all = layers(10, 10_000_000, 7);
        assert_eq!(all.len(), 9);
        let of = |layer: usize, place: &str| {
            let prefix = format!("dunnage-files/{place}/");
            all[layer].iter().filter(|(name, _)| name.starts_with(&prefix)).count()
        };
        let whole = own(10_000_000).len() + 1;
        assert_eq!([of(0, FIRST), of(0, LAST)], [whole, 1]);
        assert_eq!([of(8, FIRST), of(8, LAST)], [1, whole]);
        assert!((1..8).all(|layer| of(layer, FIRST) == 1 && of(layer, LAST) == 1));
        let names: std::collections::BTreeSet<_> = all.iter().flatten().map(|(name, _)| name).collect();
        assert_eq!(names.len(), all.iter().flatten().count(), "a file is in two layers");
        let order = |seed: u64| {
            layers(10, 10_000_000, seed)[0].iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        assert!(order(7) == order(7) && order(7) != order(8));
    }

    #[test]
    fn a_driver_that_copies_every_layer_takes_the_sum_of_all_below() {
        let all = vec![vec![("a".to_owned(), 5)], vec![("b".to_owned(), 1)], vec![("c".to_owned(), 1)]];
        assert_eq!((taken_by(&all, false), taken_by(&all, true)), (7, 5 + 6 + 7));
    }
}
