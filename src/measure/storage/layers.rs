//! `layers`: a program inside opens, reads and changes files of an image, or the same files in a mount; each operation
//! has files of its own.

use std::path::PathBuf;

use dunnage_analysis::names::{Counter, Spread};
use dunnage_orders::Ask;
use dunnage_orders::files::{
    self as orders, Action, Change, Class, Each, How, Io, Modify, Operation, Prepare, Read, Single, Touch,
    Write,
};

use super::{Files, INSIDE, Place, Window};
use crate::experiment::Setting;
use crate::experiment::storage::layers::{
    CHANGED, FIRST, LAST, LINE, MANY, SMALL, SMALL_BYTES, at, count, names, size,
};
use crate::measure::sample_of;
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::stats::Rng;
use crate::subject::{Object, ObjectSpec, RunContext, Subject, drivers};
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
const SINGLE: [Counter; 6] =
    [names::APPEND, names::TRUNCATE, names::CHMOD, names::CHOWN, names::RENAME, names::DELETE];
/// How whole files are read and written.
const READING: How = How { class: Class::Cached, io: Io::Plain, block: BLOCK };
const WRITING: How = How { class: Class::Synced, ..READING };

/// What a renamed file is called then.
const RENAMED: &str = "single/renamed";

/// The file of an operation.
fn single(operation: Counter) -> String {
    let number = SINGLE.iter().position(|own| *own == operation).unwrap_or(SINGLE.len());
    format!("single/{number}")
}

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    // Containers stay until they are removed: some engines mount what goes at the end so that syncs do nothing.
    let place = match count(setting) {
        None => Place::in_mount(&mount(subject, size(setting), run)?),
        Some(count) => Place::in_image(image(subject, count, size(setting), run)?, at(setting)),
    };
    let files = Files::begin(subject, &place, run)?;
    let bytes: u64 = own(size(setting)).iter().map(|(_, bytes)| bytes).sum();
    place.has_room(subject.machine(), files.behind.as_ref(), bytes)?;
    let (path, size) = (place.path, size(setting));
    let mut taken = Taken { files, path, size, sample: Sample::default() };
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
fn image(subject: &dyn Subject, count: usize, size: u64, run: &RunContext) -> Result<Object, Abort> {
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
        let left = subject.machine().left(&run.place.state).map_or(u64::MAX, |left| left.bytes);
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
        let made = subject.make(ObjectSpec::Image(&executable, &layers), run)?;
        // An overlay does not sync what is in a lower layer, and dirty pages cannot be dropped.
        subject.machine().settle_all();
        Ok(made)
    })
}

/// A sample that is being taken.
struct Taken<'a> {
    files: Files<'a>,
    path: PathBuf,
    size: u64,
    sample: Sample,
}

impl Taken<'_> {
    fn count(&mut self, name: Counter, value: i64) {
        self.sample.add(name, value);
    }

    /// Whether the root is an overlay that copies only metadata where that is enough.
    fn metacopy(&self) -> Option<(&'static str, String)> {
        let behind = self.files.behind.as_ref().filter(|behind| behind.mount == "overlay")?;
        let is_on = behind.options.iter().any(|option| option == "metacopy=on");
        Some((names::METACOPY.text(), if is_on { "on" } else { "off" }.to_owned()))
    }

    fn ask<O: Ask>(&mut self, order: O) -> Result<O::Answer, Abort> {
        let takes = self.takes();
        self.files.ask(order, takes)
    }

    /// Carries out an order whose time is a counter.
    fn timed<O: Ask>(
        &mut self,
        counter: Counter,
        order: O,
        took: impl FnOnce(O::Answer) -> Nanos,
    ) -> Result<(), Abort> {
        match self.ask(order) {
            Ok(done) => self.count(counter, took(done).0),
            Err(Abort::Failed(failure)) if failure.class == FailureClass::Unsupported => {
                self.sample.lacks([&counter.text()], &failure.reason);
            }
            Err(abort) => return Err(abort),
        }
        Ok(())
    }

    /// Does this to the file with this name.
    fn change(&mut self, name: &str, action: Action) -> Result<Single, Abort> {
        self.ask(Change { file: self.path.join(name), action })
    }

    /// How long an order may take at the slowest device.
    fn takes(&self) -> Nanos {
        LONG + Nanos(SLOWEST * self.size as i64)
    }

    /// The files of the image, in a mount. They are made once in a run; what a sample removed, renamed or made, which no new
    /// container undoes there, is undone here.
    fn prepare(&mut self) -> Result<(), Abort> {
        let is_there = |taken: &mut Self, name: &str| {
            let file = taken.path.join(name);
            Ok::<_, Abort>(taken.ask(Touch { file })?.is_some())
        };
        let mut missing = own(self.size);
        if is_there(self, "big/0")? {
            missing.retain(|(name, _)| *name == single(names::DELETE));
            if is_there(self, &missing[0].0)? {
                missing.clear();
            }
            if is_there(self, RENAMED)? {
                let back = self.path.join(single(names::RENAME));
                self.change(RENAMED, Action::Rename(back))?;
            }
            if is_there(self, "new/0")? {
                self.change("new/0", Action::Delete)?;
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let files = missing.into_iter().map(|(name, bytes)| (name.into(), bytes)).collect();
        self.ask(Prepare { path: self.path.clone(), files })
    }

    /// Drops numbered files from the page cache; those that stay fail the metrics that need them cold.
    fn is_cold(&mut self, directory: &str, files: u64, metrics: &[&'static str]) -> Result<bool, Abort> {
        let stayed = self.files.forget(self.path.join(directory), files)?;
        if let Some(why) = &stayed {
            self.sample.lacks(metrics, why);
        }
        Ok(stayed.is_none())
    }

    /// All operations: first those that change nothing.
    fn all(&mut self) -> Result<(), Abort> {
        self.count(names::BYTES, self.size as i64);
        for name in [names::OPEN, names::OPEN_AGAIN] {
            self.each(name, Operation::Open, SMALL)?;
        }
        self.read()?;
        // Before the copies, which are none in a mount: a device may be slower right after many bytes.
        self.write()?;
        self.modify()?;
        self.each(names::MODIFY_SMALL, Operation::Modify, CHANGED)?;
        self.single()
    }

    /// An operation on each of the small files.
    fn each(&mut self, name: Spread, operation: Operation, count: u64) -> Result<(), Abort> {
        let done = self.ask(Each { operation, path: self.path.join("small"), count })?;
        self.sample.add(name, done.each);
        Ok(())
    }

    fn read(&mut self) -> Result<(), Abort> {
        let order = Read { path: self.path.join("big"), count: 1, how: READING };
        if self.is_cold("big", 1, &["read"])? {
            self.timed(names::READ, order.clone(), |done| done.took)?;
        }
        self.timed(names::READ_AGAIN, order, |done| done.took)
    }

    fn modify(&mut self) -> Result<(), Abort> {
        if self.is_cold("big", 1, &["modify", "copied"])? {
            let order = Modify { file: self.path.join("big/0") };
            let (done, window) = self.files.watched(order, self.takes(), |done| done.all.took)?;
            self.count(names::MODIFY, done.all.took.0);
            if let Some(during) = window.during {
                self.count(names::COPIED_BYTES, during.bytes_written as i64);
            }
        }
        if self.is_cold("many", MANY, &["modify_many"])? {
            let order = Each { operation: Operation::Modify, path: self.path.join("many"), count: MANY };
            self.timed(names::MODIFY_MANY, order, |done| done.all.took)?;
        }
        let line = LINE.map(|(_, metric)| metric);
        if self.is_cold("line", LINE.len() as u64, &line.map(Counter::text))? {
            for (number, metric) in line.into_iter().enumerate() {
                let file = self.path.join(format!("line/{number}"));
                self.timed(metric, Modify { file }, |done| done.all.took)?;
            }
        }
        Ok(())
    }

    /// One operation on each of the files of a tenth.
    fn single(&mut self) -> Result<(), Abort> {
        if !self.is_cold("single", SINGLE.len() as u64, &SINGLE.map(Counter::text))? {
            return Ok(());
        }
        let actions = [
            Action::Append(SMALL_BYTES),
            Action::Truncate(self.size / MANY),
            Action::Chmod,
            Action::Chown,
            Action::Rename(self.path.join(RENAMED)),
            Action::Delete,
        ];
        for (operation, action) in SINGLE.into_iter().zip(actions) {
            let file = self.path.join(single(operation));
            self.timed(operation, Change { file, action }, |done| done.took)?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Abort> {
        let files = orders::Files { count: 1, bytes: self.size };
        let order = Write { path: self.path.join("new"), files, how: WRITING };
        let (done, window) = self.files.watched(order, self.takes(), |done| done.took)?;
        self.count(names::NEW, done.took.0);
        if let Window { during: Some(during), others: Some(others) } = window {
            self.count(names::DEVICE_BYTES, during.bytes_written as i64);
            self.count(names::OTHERS_BYTES, others);
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
