//! `disk`: a program inside writes files, reads them back from the device and from the page cache, appends synced
//! records, and reads and writes at random places; the device's counters are read around what must reach it.

use std::path::PathBuf;

use dunnage_analysis::names::Counter;
use dunnage_orders::files::{
    self as orders, Append, Class, Clear, Direction, How, Io, Limit, Read, Scatter, Scattered, Write,
};

use super::{At, Files, Place, Window};
use crate::experiment::Setting;
use crate::experiment::storage::disk::{
    APPENDS, BIND, RANDOM, ROOT, SMALL, TMPFS, VOLUME, bytes, files, names, place, sync,
};
use crate::measure::sample_of;
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::{Layer, RunContext, Subject, kind_of};
use crate::units::Nanos;

/// Bytes of a block of large files.
const BLOCK: u64 = 1 << 20;
/// The slowest device that is waited for, in nanoseconds a byte: ten megabytes a second.
const SLOWEST: i64 = 100;
/// Writes of a block that show what a device takes, and how many are on their way at a time.
const CEILING: (u64, u32) = (100, 16);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let at = match place(setting) {
        BIND => At::Bind,
        ROOT => At::Root,
        VOLUME => At::Volume,
        TMPFS => At::Memory,
        other => return Err(Failure::environment(format!("there is no place `{other}`")).into()),
    };
    let about = subject.about();
    let is_bare = kind_of(&about.spec).is_ok_and(|kind| kind.layer == Layer::Bare);
    let place = Place::make(subject, at, run)?;
    let files = Files::begin(subject, &place, run)?;
    place.has_room(subject.machine(), files.behind.as_ref(), bytes(setting))?;
    let path = place.path.clone();
    let mut taken = Taken { files, path: path.clone(), how: how(setting)?, sample: Sample::default() };
    let treatment = taken.files.treatment()?;
    taken.sample = sample_of(Vec::new(), &treatment);
    let done = taken.all(setting, is_bare && at == At::Bind);
    // What a container's own root has goes with it; a directory of the host's does not.
    let cleared = taken.files.ask(Clear { path }, Nanos::from_millis(10_000));
    done?;
    cleared?;
    Ok(taken.sample)
}

/// How the files of a setting are written.
fn how(setting: &Setting) -> Result<How, Failure> {
    let unknown = |what: &str| Failure::environment(format!("there is no `{what}`"));
    let class = match sync(setting) {
        "synced" => Class::Synced,
        "direct" => Class::Direct,
        "cached" => Class::Cached,
        other => return Err(unknown(other)),
    };
    let io = match setting.get("io").unwrap_or("plain") {
        "plain" => Io::Plain,
        "uring" => Io::Uring,
        other => return Err(unknown(other)),
    };
    Ok(How { class, io, block: BLOCK })
}

/// A sample that is being taken.
struct Taken<'a> {
    files: Files<'a>,
    path: PathBuf,
    how: How,
    sample: Sample,
}

impl Taken<'_> {
    fn count(&mut self, name: Counter, value: i64) {
        self.sample.add(name, value);
    }

    /// How files are read: from the device, or through the page cache.
    fn reading(&self) -> How {
        let class = if self.how.class == Class::Direct { Class::Direct } else { Class::Cached };
        How { class, ..self.how }
    }

    /// Everything of a setting.
    fn all(&mut self, setting: &Setting, shows_ceiling: bool) -> Result<(), Abort> {
        let (count, size) = files(setting);
        let takes = Nanos(SLOWEST * bytes(setting) as i64);
        let (path, how) = (self.path.clone(), self.how);
        let write = Write { path, files: orders::Files { count, bytes: size }, how };
        let (done, window) = self.files.watched(write, takes, |done| done.took)?;
        self.count(names::WRITE_TOOK, done.took.0);
        self.count(names::WRITE_CPU, done.cpu.0);
        self.count(names::WRITE_BYTES, done.bytes as i64);
        if let Window { during: Some(during), others: Some(others) } = window {
            self.count(names::DEVICE_BYTES, during.bytes_written as i64);
            self.count(names::OTHERS_BYTES, others);
        }
        self.read(count, takes)?;
        if how.class != Class::Cached {
            self.append()?;
        }
        self.random(count)?;
        if shows_ceiling {
            self.ceiling()?;
        }
        Ok(())
    }

    /// Whether none of the files is in the page cache any more.
    fn forget(&mut self, count: u64, metrics: &[&'static str]) -> Result<bool, Abort> {
        let stayed = self.files.forget(self.path.clone(), count)?;
        if let Some(why) = &stayed {
            self.sample.lacks(metrics, why);
        }
        Ok(stayed.is_none())
    }

    /// From the device, and again from the page cache.
    fn read(&mut self, count: u64, takes: Nanos) -> Result<(), Abort> {
        let how = self.reading();
        let is_cold = self.forget(count, &["read_gb", "read_rate"])?;
        let both = [(names::READ_TOOK, is_cold), (names::READ_AGAIN_TOOK, how.class == Class::Cached)];
        for (name, counts) in both {
            let done = self.files.ask(Read { path: self.path.clone(), count, how }, takes)?;
            if done.wrong > 0 {
                let reason = format!("{} blocks came back changed", done.wrong);
                return Err(Failure::new(FailureClass::WrongOutput, reason).into());
            }
            if name == names::READ_TOOK {
                self.count(names::READ_BYTES, done.bytes as i64);
            }
            if counts {
                self.count(name, done.took.0);
            }
        }
        Ok(())
    }

    /// Records, each with its sync.
    fn append(&mut self) -> Result<(), Abort> {
        let (count, time) = APPENDS;
        let append = Append { path: self.path.clone(), size: SMALL, limit: Limit { count, time } };
        let (done, window) = self.files.watched(append, time, |done| done.took)?;
        self.count(names::APPENDED, done.count as i64);
        self.count(names::APPEND_BYTES, (done.count * SMALL) as i64);
        if let Some(during) = window.during {
            self.count(names::APPEND_DEVICE_BYTES, during.bytes_written as i64);
            if let Some(flushes) = during.flushes {
                self.count(names::FLUSHES, flushes as i64);
            }
        }
        self.sample.add(names::APPEND, done.append);
        Ok(())
    }

    /// Random reads from the device, then random writes.
    fn random(&mut self, files: u64) -> Result<(), Abort> {
        let (count, time) = RANDOM;
        let scatter = |taken: &Self, direction, how: How| {
            let (limit, seed) = (Limit { count, time }, 0);
            let asked =
                Scattered { direction, size: SMALL, class: how.class, io: how.io, depth: 1, limit, seed };
            Scatter { path: taken.path.clone(), asked }
        };
        if self.forget(files, &["random_read", "random_read_p99"])? {
            let order = scatter(self, Direction::Read, self.reading());
            let done = self.files.ask(order, time)?;
            self.sample.add(names::RANDOM_READ, done.random);
        }
        let order = scatter(self, Direction::Write, self.how);
        let done = self.files.ask(order, time)?;
        self.count(names::RANDOM_WRITES, done.operations as i64);
        self.count(names::RANDOM_WRITE_TOOK, done.took.0);
        Ok(())
    }

    /// What the device takes with many writes at once; without io_uring, or past the page cache, that is not known here.
    fn ceiling(&mut self) -> Result<(), Abort> {
        let (count, depth) = CEILING;
        let time = Nanos::from_millis(500);
        let (class, io, limit) = (Class::Direct, Io::Uring, Limit { count, time });
        let asked = Scattered { direction: Direction::Write, size: BLOCK, class, io, depth, limit, seed: 0 };
        match self.files.ask(Scatter { path: self.path.clone(), asked }, time) {
            Ok(done) => {
                self.count(names::CEILING_TOOK, done.took.0);
                self.count(names::CEILING_BYTES, (done.operations * BLOCK) as i64);
            }
            Err(Abort::Failed(failure)) => self.sample.lacks(&["ceiling"], &failure.reason),
            Err(interrupted) => return Err(interrupted),
        }
        Ok(())
    }
}
