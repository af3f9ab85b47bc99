//! Writes a run directory: environment and plan before the first round, then every sample immediately in a single write, so
//! that nothing measured is lost if the program is killed. Deliberately absent: flushing to disk, which would disturb the next
//! launch.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::wire::{Begin, HEADER_FORMAT, Header, Pairs, SampleLine, Stop, Treatment};
use super::{ENVIRONMENT, Environment, FORMAT, PLAN, RoundContext, SAMPLES, plan_file, pretty};
use crate::exit::usage;
use crate::outcome::{Artefact, Outcome, Word};
use crate::plan::Plan;
use crate::sys::directory::{Access, Directory};

/// An open run directory.
#[derive(Debug)]
pub struct Writer {
    directory: Directory,
    path: PathBuf,
    samples: File,
    treatments: HashMap<Vec<(Word, String)>, usize>,
    /// Number of treatments in the file, including those of earlier sessions.
    numbered: usize,
}

/// Nanoseconds since 1970.
pub fn since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// Fails unless a directory can be used for a new run: empty, or not existing. `or` extends the hint.
pub fn check_empty(directory: &Path, or: &str) -> Result<()> {
    match fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => match Directory::open(directory).and_then(|found| found.check()) {
            Err(why) => {
                Err(usage(format!("cannot use `{}` for the run: {why}{CHOOSE_NEW}", directory.display())))
            }
            Ok(()) => Ok(()),
        },
        Ok(false) => Err(usage(format!(
            "`{}` is not empty\n\nhint: choose another directory with `-o`{or}",
            directory.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(usage(format!(
            "`{}` is not a directory\n\nhint: name a new or empty directory with `-o`",
            directory.display()
        ))),
        Err(error) => Err(error).with_context(|| format!("cannot use `{}` for the run", directory.display())),
    }
}

/// The hint where another user could change what is in a directory.
const CHOOSE_NEW: &str = "\n\nhint: name a directory that does not exist yet with `-o`";

/// Creates a run directory. It may contain this run's pilot, but no other run. It belongs to this process's user, and files
/// are made by its descriptor, so that nothing is written elsewhere although another user may own the directory above.
pub fn create(directory: &Path, run: &str, environment: &Environment, plan: &Plan) -> Result<Writer> {
    let place = Directory::own(directory)
        .map_err(|why| anyhow::anyhow!("cannot create `{}`: {why}{CHOOSE_NEW}", directory.display()))?;
    let path = directory.join(SAMPLES);
    let samples =
        place.create(SAMPLES, 0o644).with_context(|| format!("cannot create `{}`", path.display()))?;
    claim(&samples, &path)?;
    let mut writer = Writer { directory: place, path, samples, treatments: HashMap::new(), numbered: 0 };
    let begun = writer.begin(run, environment, plan);
    if begun.is_err() {
        // A partial run directory would be in the way of the next run.
        [ENVIRONMENT, PLAN, SAMPLES].iter().for_each(|file| drop(writer.directory.remove(file)));
        let _ = fs::remove_dir(directory);
    }
    begun.map(|()| writer)
}

/// Opens the directory of an unfinished run to resume it. An incomplete last line is terminated, so that the following lines
/// can be read.
pub fn reopen(directory: &Path) -> Result<Writer> {
    let path = directory.join(SAMPLES);
    let place = Directory::open(directory).and_then(|place| place.check().map(|()| place));
    let place = place.with_context(|| format!("cannot write to `{}`", directory.display()))?;
    let opened = place.open_own(SAMPLES, Access::Appending);
    let mut samples = opened.with_context(|| format!("cannot write to `{}`", path.display()))?;
    claim(&samples, &path)?;
    let mut last = [b'\n'];
    if samples.seek(SeekFrom::End(-1)).is_ok() {
        samples.read_exact(&mut last).with_context(|| format!("cannot read `{}`", path.display()))?;
    }
    // Treatments are numbered on from those already in the file.
    let numbered = treatments(&samples).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut writer = Writer { directory: place, path, samples, treatments: HashMap::new(), numbered };
    if last != *b"\n" {
        writer.write(b"\n")?;
    }
    Ok(writer)
}

/// The beginning of a line that defines a treatment; the lines of samples contain its number.
const TREATMENT: &[u8] = b"{\"treatment\":";

/// The number of treatments in a file, whose lines may be of any length.
fn treatments(mut samples: &File) -> io::Result<usize> {
    samples.rewind()?;
    let (mut lines, mut line, mut found) = (io::BufReader::new(samples), Vec::new(), 0);
    while dunnage_analysis::record::read_line(&mut lines, &mut line)? > 0 {
        found += usize::from(line.starts_with(TREATMENT));
    }
    Ok(found)
}

/// Locks the samples for this process until it ends.
fn claim(samples: &File, path: &Path) -> Result<()> {
    if samples.try_lock().is_err() {
        bail!("another dunnage is writing to `{}`", path.display());
    }
    Ok(())
}

fn write_json(directory: &Directory, name: &str, value: &impl Serialize) -> Result<()> {
    let path = directory.path().join(name);
    let mut bytes = Vec::new();
    pretty(value, &mut bytes).with_context(|| format!("cannot convert `{}` to JSON", path.display()))?;
    directory
        .create(name, 0o644)
        .and_then(|mut file| file.write_all(&bytes))
        .with_context(|| format!("cannot write {} bytes to `{}`", bytes.len(), path.display()))
}

impl Writer {
    fn begin(&mut self, run: &str, environment: &Environment, plan: &Plan) -> Result<()> {
        write_json(&self.directory, ENVIRONMENT, environment)?;
        write_json(&self.directory, PLAN, &plan_file::to_wire(plan))?;
        self.append(&Header {
            format: HEADER_FORMAT.into(),
            version: FORMAT,
            run: run.into(),
            host: environment.host.clone(),
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.samples
            .write_all(bytes)
            .with_context(|| format!("cannot write {} bytes to `{}`", bytes.len(), self.path.display()))
    }

    fn append(&mut self, line: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(line).context("cannot convert a line to JSON")?;
        bytes.push(b'\n');
        self.write(&bytes)
    }

    /// The run directory, open.
    pub(super) fn place(&self) -> &Directory {
        &self.directory
    }

    /// A round begins.
    pub fn begin_round(&mut self, round: usize) -> Result<()> {
        self.append(&Begin { begin: round, at: since_1970() })
    }

    /// A round is complete.
    pub fn end_round(&mut self, round: usize, context: &RoundContext) -> Result<()> {
        self.append(&RoundContext { end: round, ..context.clone() })
    }

    /// The run ends after this many counted rounds, because it has reached its precision.
    pub fn stop(&mut self, rounds: usize) -> Result<()> {
        self.append(&Stop { stop: rounds })
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The outcome of a cell.
    pub fn sample(&mut self, sample: &super::Row<'_>) -> Result<()> {
        let mut line = SampleLine {
            cell: sample.cell,
            round: sample.round,
            position: sample.position,
            predecessor: sample.predecessor,
            started: sample.started,
            ..SampleLine::default()
        };
        match sample.outcome.as_ref() {
            Outcome::Measured(measured) => {
                line.treatment = Some(self.treatment(&measured.treatment)?);
                let artefacts = line.measured(measured.clone());
                line.artefacts = self.artefacts(sample, artefacts)?;
            }
            Outcome::Skipped(reason) => line.skipped = Some(reason.clone()),
            Outcome::Failed(failure) => line.failed = Some(failure.clone()),
        }
        self.append(&line)
    }

    /// Writes the files of a sample before its line, so that no line names a missing file.
    fn artefacts(&self, row: &super::Row<'_>, all: Vec<(Word, Artefact)>) -> Result<Pairs<Artefact>> {
        if all.is_empty() {
            return Ok(Pairs(Vec::new()));
        }
        let shown = |name: &str| self.path.with_file_name(Artefact::DIRECTORY).join(name);
        let directory = self
            .directory
            .own_inside(Artefact::DIRECTORY)
            .with_context(|| format!("cannot write into `{}`", shown("").display()))?;
        let written = |(name, artefact): (Word, Artefact)| {
            let Artefact::Bytes(bytes) = artefact else { return Ok((name, artefact)) };
            let file = format!("{}-{}-{name}", row.round, row.cell);
            let path = format!("{}/{file}", Artefact::DIRECTORY);
            debug_assert!(Artefact::is_path(&path), "{path}");
            // An interrupted attempt at the round may have left one.
            let _ = directory.remove(&file);
            directory.create(&file, 0o644).and_then(|mut made| made.write_all(&bytes)).with_context(
                || format!("cannot write {} bytes to `{}`", bytes.len(), shown(&file).display()),
            )?;
            Ok((name, Artefact::File(path)))
        };
        all.into_iter().map(written).collect::<Result<_>>().map(Pairs)
    }

    /// The number of a treatment, which is defined in the file at its first use.
    fn treatment(&mut self, facts: &[(Word, String)]) -> Result<usize> {
        if let Some(number) = self.treatments.get(facts) {
            return Ok(*number);
        }
        let number = self.numbered;
        self.numbered += 1;
        self.append(&Treatment { treatment: number, facts: Pairs(facts.to_vec()) })?;
        self.treatments.insert(facts.to_vec(), number);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::outcome::Sample;

    fn sample(fact: &str) -> super::super::Row<'static> {
        let treatment = vec![("root".into(), fact.to_owned())];
        let mut sample = Sample::default();
        sample.treatment = treatment;
        let outcome = Cow::Owned(Outcome::Measured(sample));
        super::super::Row { cell: 0, round: 0, position: 0, predecessor: None, started: 0, outcome }
    }

    /// The next number follows the last one, even if many samples use a treatment.
    #[test]
    fn numbers_of_treatments_go_on_after_those_that_were_written() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(SAMPLES), "").unwrap();
        for (fact, expected) in [("one", 0), ("two", 1), ("three", 2)] {
            let mut writer = reopen(place.path()).unwrap();
            for _ in 0..5 {
                writer.sample(&sample(fact)).unwrap();
            }
            let text = fs::read_to_string(place.path().join(SAMPLES)).unwrap();
            let last = text.lines().rfind(|line| line.as_bytes().starts_with(TREATMENT)).unwrap();
            assert!(last.starts_with(&format!("{{\"treatment\":{expected},")), "{last}");
            drop(writer);
        }
    }
}
