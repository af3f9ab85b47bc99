//! `owners`: a new image, and three containers on it, one after the other, each from the command that makes it until its
//! program is ready. What the engine made for the first one is counted by the filesystem.

use std::path::{Path, PathBuf};

use dunnage_analysis::names::Counter;

use crate::experiment::storage::owners::{LAYERS, SIZE, files, names};
use crate::experiment::{QUIET, Setting};
use crate::measure::{sample_of, scripted};
use crate::outcome::{Abort, Failure, OrEnvironment, Sample};
use crate::subject::owners::Owners;
use crate::subject::storage;
use crate::subject::{Container, ContainerRequest, GRACE, Object, ObjectSpec, Resident, RunContext, Subject};
use crate::sys::clock;
use crate::sys::filesystem::{self, Left};

/// The directory of the files in the image.
const DIRECTORY: &str = "dunnage-files";
/// Files in a directory.
const TOGETHER: u64 = 100;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let count = files(setting);
    if !subject.has_a_clock() {
        return scripted(subject, run, ("owners", [&count.to_string()]));
    }
    let path = &run.place.executable;
    let executable = std::fs::read(path).or_environment(format_args!("cannot read `{}`", path.display()))?;
    let began = clock::now();
    let image = subject.make(ObjectSpec::Image(&executable, &layers(count)), run)?;
    let mut taken = Taken::default();
    taken.sample.add(names::IMAGE_TOOK, clock::now().since(began).0);
    taken.container(names::FIRST_TOOK, subject, &image, run)?;
    taken.container(names::SECOND_TOOK, subject, &image, run)?;
    taken.container(names::THIRD_TOOK, subject, &image, run)?;
    drop(image);
    Ok(taken.sample)
}

/// The path of a file in the image.
fn path_of(layer: u64, number: u64) -> String {
    format!("{DIRECTORY}/{layer}/{}/{number}", number / TOGETHER)
}

/// This many files, as evenly as possible in all layers.
fn layers(count: u64) -> Vec<Vec<(String, u64)>> {
    let own = |layer: u64| (layer..count).step_by(LAYERS as usize);
    (0..LAYERS).map(|layer| own(layer).map(|number| (path_of(layer, number), SIZE)).collect()).collect()
}

/// A sample that is being taken.
#[derive(Default)]
struct Taken {
    sample: Sample,
}

impl Taken {
    /// Makes a container, waits until it is ready, and removes it.
    fn container(
        &mut self,
        which: Counter,
        subject: &dyn Subject,
        image: &Object,
        run: &RunContext,
    ) -> Result<(), Abort> {
        settle(&run.workspace())?;
        run.quiet(QUIET)?;
        let before = filesystem::left(&run.workspace()).ok();
        let request = ContainerRequest {
            image: Some(image.clone()),
            program: Resident::Serves,
            ..ContainerRequest::default()
        };
        let mut container = Container::create(subject, &request, run)?;
        container.start()?;
        container.ready()?;
        let ready = clock::now();
        if which == names::FIRST_TOOK {
            let treatment = container.treatment()?;
            self.sample.treatment = sample_of(Vec::new(), &treatment).treatment;
            self.look(&mut container, before, run);
        }
        self.sample.add(which, ready.since(container.created().began).0);
        let began = clock::now();
        container.stop(GRACE)?;
        container.remove()?;
        if which == names::FIRST_TOOK {
            self.sample.add(names::REMOVAL_TOOK, clock::now().since(began).0);
        }
        Ok(())
    }

    /// Looks at what the engine made for the first container.
    fn look(&mut self, container: &mut Container<'_>, before: Option<Left>, run: &RunContext) {
        let Ok(first) = container.first_process() else { return };
        let file = Path::new("/").join(path_of(0, 0));
        self.sample.add(names::OWNERS, Owners::of(first, &file).word().to_owned());
        match made(first, before, &run.workspace()) {
            Some((files, bytes)) => {
                self.sample.extend(files.map(|files| (names::MADE_FILES, files)));
                self.sample.add(names::MADE_BYTES, bytes);
            }
            None => {
                let reason = "the image is not on the filesystem that was watched";
                self.sample.lacks(&["made_files", "made_bytes"], reason);
            }
        }
    }
}

/// Writes what is dirty of the filesystem that holds this directory, so that no container waits for it.
fn settle(directory: &PathBuf) -> Result<(), Failure> {
    std::fs::File::open(directory)
        .and_then(|place| Ok(rustix::fs::syncfs(place)?))
        .or_environment(format_args!("cannot sync `{}`", directory.display()))
}

/// How many files and bytes the filesystem that is watched has more than before, if this container writes there.
fn made(first: i32, before: Option<Left>, watched: &Path) -> Option<(Option<i64>, i64)> {
    let upper = storage::behind(first, Path::new("/")).ok()?.upper?;
    let number = |path: &Path| rustix::fs::stat(path).ok().map(|facts| facts.st_dev);
    if number(&upper)? != number(watched)? {
        return None;
    }
    let (before, after) = (before?, filesystem::left(watched).ok()?);
    let files = before.files.zip(after.files).map(|(before, after)| before as i64 - after as i64);
    Some((files, before.bytes as i64 - after.bytes as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_in_all_layers() {
        let all = layers(10);
        assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 2, 2]);
        assert_eq!(all[0][0].0, path_of(0, 0));
        assert_eq!(all.concat().iter().map(|(_, bytes)| bytes).sum::<u64>(), 10 * SIZE);
    }
}
