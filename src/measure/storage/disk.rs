//! `disk`: a program inside writes files, reads them back from the device and from the page cache, appends synced
//! records, and reads and writes at random places; the device's counters are read around what must reach it.

use super::{At, Files, Place, Window};
use crate::experiment::Setting;
use crate::experiment::storage::disk::{
    APPENDS, BIND, RANDOM, ROOT, SMALL, TMPFS, VOLUME, bytes, files, place, sync,
};
use crate::measure::{sample_of, work_sample, worked};
use crate::outcome::{Abort, Failure, FailureClass, Name, Sample};
use crate::probe::message::Done;
use crate::subject::pair::result;
use crate::subject::{Layer, RunContext, Subject, Work, kind_of};
use crate::units::Nanos;

/// Bytes of a block of large files.
const BLOCK: u64 = 1 << 20;
/// The slowest device that is waited for, in nanoseconds a byte: ten megabytes a second.
const SLOWEST: i64 = 100;
/// Writes of a block that show what a device takes, and how many are on their way at a time.
const CEILING: (u64, u64) = (100, 16);

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    if !subject.has_a_clock() {
        let words = ["disk", place(setting), sync(setting)].map(str::to_owned);
        return Ok(work_sample(&worked(subject, run, &Work::new("files", words.into(), Nanos(0)))?)?);
    }
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
    place.has_room(files.behind.as_ref(), bytes(setting))?;
    let mut taken =
        Taken { files, path: place.path.to_string_lossy().into_owned(), sample: Sample::default() };
    let treatment = taken.files.treatment()?;
    taken.sample = sample_of(Vec::new(), &treatment);
    let done = taken.all(setting, is_bare && at == At::Bind);
    // What a container's own root has goes with it; a directory of the host's does not.
    let path = taken.path.clone();
    let cleared = taken.files.ask(&["clear", &path], Nanos::from_millis(10_000));
    done?;
    cleared?;
    Ok(taken.sample)
}

/// A sample that is being taken.
struct Taken<'a> {
    files: Files<'a>,
    path: String,
    sample: Sample,
}

impl Taken<'_> {
    fn count(&mut self, name: impl Into<Name>, value: i64) {
        self.sample.counters.push((name.into(), value));
    }

    fn lacks(&mut self, names: &[&'static str], why: &str) {
        self.sample.missing.extend(names.iter().map(|name| ((*name).into(), why.to_owned())));
    }

    /// Everything of a setting.
    fn all(&mut self, setting: &Setting, shows_ceiling: bool) -> Result<(), Abort> {
        let (count, size) = files(setting);
        let (sync, io) = (sync(setting), setting.get("io").unwrap_or("plain"));
        let [size, count, block] = [size, count, BLOCK].map(|number| number.to_string());
        let takes = Nanos(SLOWEST * bytes(setting) as i64);
        let path = self.path.clone();
        let (done, window) = self.files.watched(&["write", &path, &size, &count, &block, sync, io], takes)?;
        self.count("write_took", result(&done, "took")?);
        self.count("write_cpu", result(&done, "cpu")?);
        self.count("write_bytes", result(&done, "bytes")?);
        if let Window { during: Some(during), others: Some(others) } = window {
            self.count("device_bytes", during.bytes_written as i64);
            self.count("others_bytes", others);
        }
        self.read(&count, &block, (sync, io), takes)?;
        if sync != "cached" {
            self.append()?;
        }
        self.random(&count, (sync, io))?;
        if shows_ceiling {
            self.ceiling()?;
        }
        Ok(())
    }

    /// Whether none of the files is in the page cache any more.
    fn forget(&mut self, count: &str, metrics: &[&'static str]) -> Result<bool, Abort> {
        let stayed = self.files.forget(&self.path, count)?;
        if let Some(why) = &stayed {
            self.lacks(metrics, why);
        }
        Ok(stayed.is_none())
    }

    /// From the device, and again from the page cache.
    fn read(
        &mut self,
        count: &str,
        block: &str,
        (sync, io): (&str, &str),
        takes: Nanos,
    ) -> Result<(), Abort> {
        let class = if sync == "direct" { "direct" } else { "cached" };
        let path = self.path.clone();
        let words = ["read", &path, count, block, class, io];
        let is_cold = self.forget(count, &["read_gb", "read_rate"])?;
        let names: &[(&str, bool)] = &[("read_took", is_cold), ("read_again_took", class == "cached")];
        for (name, counts) in names.iter().copied() {
            let done = self.files.ask(&words, takes)?;
            let wrong = result(&done, "wrong")?;
            if wrong > 0 {
                let reason = format!("{wrong} blocks came back changed");
                return Err(Failure::new(FailureClass::WrongOutput, reason).into());
            }
            if name == "read_took" {
                self.count("read_bytes", result(&done, "bytes")?);
            }
            if counts {
                self.count(name, result(&done, "took")?);
            }
        }
        Ok(())
    }

    /// Records, each with its sync.
    fn append(&mut self) -> Result<(), Abort> {
        let (most, lasts) = APPENDS;
        let [most, size, nanos] = [most, SMALL, lasts.0 as u64].map(|number| number.to_string());
        let path = self.path.clone();
        let (done, window) = self.files.watched(&["append", &path, &most, &size, &nanos], lasts)?;
        let appends = result(&done, "appends")?;
        self.count("appends", appends);
        self.count("append_bytes", appends * SMALL as i64);
        if let Some(during) = window.during {
            self.count("append_device_bytes", during.bytes_written as i64);
            if let Some(flushes) = during.flushes {
                self.count("flushes", flushes as i64);
            }
        }
        self.spread(&done, "append", "append");
        Ok(())
    }

    /// The distribution of a work under a name of its own.
    fn spread(&mut self, done: &Done, name: &str, own: &'static str) {
        let found = done.distributions.iter().find(|(known, _)| known == name);
        self.sample.distributions.extend(found.map(|(_, values)| (own.into(), values.clone())));
    }

    /// Random reads from the device, then random writes.
    fn random(&mut self, count: &str, (sync, io): (&str, &str)) -> Result<(), Abort> {
        let (most, lasts) = RANDOM;
        let [most, size, nanos] = [most, SMALL, lasts.0 as u64].map(|number| number.to_string());
        let path = self.path.clone();
        let class = if sync == "direct" { "direct" } else { "cached" };
        if self.forget(count, &["random_read", "random_read_p99"])? {
            let done =
                self.files.ask(&["random", &path, "read", &most, &size, class, io, "1", &nanos], lasts)?;
            self.spread(&done, "random", "random_read");
        }
        let done = self.files.ask(&["random", &path, "write", &most, &size, sync, io, "1", &nanos], lasts)?;
        self.count("random_writes", result(&done, "operations")?);
        self.count("random_write_took", result(&done, "took")?);
        Ok(())
    }

    /// What the device takes with many writes at once; without io_uring, or past the page cache, that is not known here.
    fn ceiling(&mut self) -> Result<(), Abort> {
        let (blocks, depth) = CEILING;
        let [blocks, size, depth] = [blocks, BLOCK, depth].map(|number| number.to_string());
        let lasts = Nanos::from_millis(500);
        let (path, nanos) = (self.path.clone(), lasts.0.to_string());
        let words = ["random", &path, "write", &blocks, &size, "direct", "uring", &depth, &nanos];
        match self.files.ask(&words, lasts) {
            Ok(done) => {
                self.count("ceiling_took", result(&done, "took")?);
                self.count("ceiling_bytes", result(&done, "operations")? * BLOCK as i64);
            }
            Err(Abort::Failed(failure)) => self.lacks(&["ceiling"], &failure.reason),
            Err(interrupted) => return Err(interrupted),
        }
        Ok(())
    }
}
