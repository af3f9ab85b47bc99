//! The cleanup journal: every resource is recorded here before it is made, and crossed out after it is gone.
//! So a later dunnage knows what a killed run left.
//!
//! One file per run, one JSON object per line, each appended with a single write. The owner holds a lock on
//! its file, which the kernel releases when the owner dies for any reason: a journal that can be locked is
//! abandoned. Only records of what survives a crash of the kernel and is found by nothing else are synced to the disk:
//! containers have dunnage's label, files are below `runs/`, and processes and mounts do not survive.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{Keeps, Record, failpoint};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

use crate::sys::beneath::{self, Mounts};
use crate::sys::place;

/// How long a journal may stay locked after its owner was killed: a child that the owner had just started
/// holds the lock too, until its exec.
const DYING: Duration = Duration::from_millis(500);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Made { id: u64, resource: Record },
    Gone(u64),
}

/// The journal of this run, shared by its threads.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: File,
    next: u64,
    open: usize,
    /// Whether the last line may be incomplete, as on a full disk.
    is_torn: bool,
}

impl Written {
    fn append(&mut self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_string(line)?;
        let closes = if self.is_torn { "\n" } else { "" };
        let written = self.file.write_all(format!("{closes}{text}\n").as_bytes());
        self.is_torn = written.is_err();
        written
    }
}

/// An entry that must be crossed out later.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Entry(u64);

/// Whether the path still names the open file: another process may have swept it meanwhile.
fn still_there(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.ino() == named.ino() && open.dev() == named.dev(),
        _ => false,
    }
}

impl Journal {
    /// Begins the journal of a run in this directory.
    pub fn begin(directory: &Path, run: &str) -> Result<Journal> {
        let path = directory.join(format!("{run}.jsonl"));
        place::make(directory).with_context(|| format!("cannot make `{}`", directory.display()))?;
        for _ in 0..16 {
            let mut options = OpenOptions::new();
            let file = options
                .create_new(true)
                .append(true)
                .open(&path)
                .with_context(|| format!("cannot make the cleanup journal `{}`", path.display()))?;
            if file.try_lock().is_ok() && still_there(&file, &path) {
                let written = Written { file, next: 0, open: 0, is_torn: false };
                return Ok(Journal { path, written: Mutex::new(written) });
            }
        }
        anyhow::bail!("another process keeps removing the cleanup journal `{}`", path.display())
    }

    /// If a thread panics during a write, its incomplete line is ignored.
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a resource that is about to be made.
    pub fn note(&self, resource: Record, keeps: Keeps) -> Result<Entry> {
        let mut written = self.written();
        let id = written.next;
        let line = Line::Made { id, resource };
        let noted = written.append(&line).and_then(|()| match keeps {
            Keeps::Process => Ok(()),
            Keeps::Crash => written.file.sync_data(),
        });
        noted.with_context(|| format!("cannot write to the cleanup journal `{}`", self.path.display()))?;
        failpoint::reached(&line);
        written.next += 1;
        written.open += 1;
        Ok(Entry(id))
    }

    /// Crosses out what is gone. If that cannot be written, a later sweep looks again for something that does
    /// not exist, which does no harm.
    pub fn cross_out(&self, entry: Entry) {
        let mut written = self.written();
        let line = Line::Gone(entry.0);
        failpoint::reached(&line);
        let _ = written.append(&line);
        written.open -= 1;
    }

    /// What was made and not crossed out, latest first.
    pub fn left(&self) -> Vec<Record> {
        match self.written().open {
            0 => Vec::new(),
            _ => fs::read_to_string(&self.path).map_or_else(|_| Vec::new(), |text| left(&text)),
        }
    }
}

/// Ends the journal. The file stays if something in it could not be removed.
impl Drop for Journal {
    fn drop(&mut self) {
        if self.written().open == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A journal whose owner died, now locked by this process.
#[derive(Debug)]
pub(crate) struct Abandoned {
    /// Its file.
    pub path: PathBuf,
    _locked: File,
    /// What the owner had made and not removed, latest first.
    pub left: Vec<Record>,
}

impl Abandoned {
    /// The run that it belonged to.
    pub fn run(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Removes the journal, after everything in it is gone.
    pub fn finish(self) -> Result<()> {
        fs::remove_file(&self.path).with_context(|| format!("cannot remove `{}`", self.path.display()))
    }
}

/// The abandoned journals in this directory; empty if it does not exist.
pub(crate) fn abandoned(directory: &Path) -> Result<Vec<Abandoned>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot list `{}`", directory.display())),
    };
    let mut found = Vec::new();
    let deadline = Instant::now() + DYING;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list `{}`", directory.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.extend(take_over(path, deadline)?);
        }
    }
    Ok(found)
}

/// The open journal at a path: a file of this user's, and never a link or a pipe.
fn own(path: &Path) -> io::Result<File> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let directory = beneath::at(directory)?;
    let file = beneath::file(directory, Path::new(name), OFlags::RDONLY, Mode::empty(), Mounts::Refused)?;
    match file.metadata()?.uid() == geteuid().as_raw() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user")),
    }
}

fn take_over(path: PathBuf, deadline: Instant) -> Result<Option<Abandoned>> {
    let file = match own(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    };
    while file.try_lock().is_err() {
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if !still_there(&file, &path) {
        return Ok(None);
    }
    let text = io::read_to_string(&file).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(Some(Abandoned { left: left(&text), path, _locked: file }))
}

/// What was made and not crossed out, latest first. The resource of a truncated last line was not made yet,
/// since lines are written first.
fn left(text: &str) -> Vec<Record> {
    let mut open = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Made { id, resource }) => open.push((id, resource)),
            Ok(Line::Gone(id)) => open.retain(|(own, _)| *own != id),
            Err(_) => {}
        }
    }
    open.into_iter().rev().map(|(_, resource)| resource).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(path: &str) -> Record {
        Record::new(&crate::resource::directory::KIND, path)
    }

    #[test]
    fn a_living_journal_is_left_alone_and_a_dead_one_lists_the_latest_first() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::begin(place.path(), "run1").unwrap();
        let first = journal.note(directory("/a"), Keeps::Process).unwrap();
        let _kept = [
            journal.note(directory("/b"), Keeps::Process).unwrap(),
            journal.note(directory("/c"), Keeps::Process).unwrap(),
        ];
        journal.cross_out(first);
        assert!(abandoned(place.path()).unwrap().is_empty());
        drop(journal);
        let mut found = abandoned(place.path()).unwrap();
        assert_eq!(found.len(), 1);
        let dead = found.remove(0);
        assert_eq!(
            (dead.run().as_str(), dead.left.as_slice()),
            ("run1", &[directory("/c"), directory("/b")][..])
        );
        dead.finish().unwrap();
        assert!(abandoned(place.path()).unwrap().is_empty());
    }

    #[test]
    fn a_journal_with_nothing_left_removes_itself() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::begin(place.path(), "run1").unwrap();
        let entry = journal.note(directory("/a"), Keeps::Process).unwrap();
        journal.cross_out(entry);
        drop(journal);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_line_that_does_not_fit_takes_no_other_with_it() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        let (mut reader, file) = (File::from(reader), File::from(writer));
        let mut written = Written { file, next: 0, open: 0, is_torn: false };
        let line = |path: &str| Line::Made { id: 0, resource: directory(path) };
        let long = "/x".repeat(40_000);
        assert!(written.append(&line(&long)).is_err() && written.is_torn);
        let mut text = vec![0; 1 << 17];
        let length = io::Read::read(&mut reader, &mut text).unwrap();
        assert!(0 < length && length < long.len());
        written.append(&line("/a")).unwrap();
        assert!(!written.is_torn);
        let more = io::Read::read(&mut reader, &mut text[length..]).unwrap();
        assert_eq!(left(std::str::from_utf8(&text[..length + more]).unwrap()), [directory("/a")]);
    }

    #[test]
    fn a_cut_line_is_passed_over() {
        let text = "{\"made\":{\"id\":0,\"resource\":{\"kind\":\"directory\",\"id\":\"/a\"}}}\n{\"made\":{\"id\":1,\"reso";
        assert_eq!(left(text), [directory("/a")]);
    }
}
