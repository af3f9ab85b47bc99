//! `owners`: a new image, and three containers on it, one after the other, each from the command that makes it until its
//! program is ready. What the engine made for the first one is counted by the filesystem.

use std::path::Path;

use dunnage_analysis::names::Counter;

use crate::experiment::storage::owners::{LAYERS, SIZE, files, names};
use crate::experiment::{QUIET, Setting};
use crate::measure::sample_of;
use crate::outcome::{Abort, OrEnvironment, Sample};
use crate::subject::machine::Machine;
use crate::subject::{Container, ContainerRequest, GRACE, Object, ObjectSpec, Resident, RunContext, Subject};
use crate::sys::filesystem::Left;

/// The directory of the files in the image.
const DIRECTORY: &str = "dunnage-files";
/// Files in a directory.
const TOGETHER: u64 = 100;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let count = files(setting);
    let path = &run.place.executable;
    let executable = std::fs::read(path).or_environment(format_args!("cannot read `{}`", path.display()))?;
    let began = subject.machine().now(run);
    let image = subject.make(ObjectSpec::Image(&executable, &layers(count)), run)?;
    let mut taken = Taken::default();
    taken.sample.add(names::IMAGE_TOOK, subject.machine().now(run).since(began).0);
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
        let machine = subject.machine();
        machine.settle(&run.workspace())?;
        machine.rest(run, QUIET)?;
        let before = machine.left(&run.workspace());
        let request = ContainerRequest {
            image: Some(image.clone()),
            program: Resident::Serves,
            ..ContainerRequest::default()
        };
        let mut container = Container::create(subject, &request, run)?;
        container.start()?;
        container.ready()?;
        let ready = machine.now(run);
        if which == names::FIRST_TOOK {
            let treatment = container.treatment()?;
            self.sample.treatment = sample_of(Vec::new(), &treatment).treatment;
            self.look(machine, container.first_process().ok(), (before, &run.workspace()));
        }
        self.sample.add(which, ready.since(container.created().began).0);
        let began = machine.now(run);
        container.stop(GRACE)?;
        container.remove()?;
        if which == names::FIRST_TOOK {
            self.sample.add(names::REMOVAL_TOOK, machine.now(run).since(began).0);
        }
        Ok(())
    }

    /// Looks at what the engine made for the first container.
    fn look(&mut self, machine: &dyn Machine, first: Option<i32>, (before, watched): (Option<Left>, &Path)) {
        let file = Path::new("/").join(path_of(0, 0));
        self.sample.add(names::OWNERS, machine.owners(first, &file).word().to_owned());
        match made(machine, first, (before, watched)) {
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

/// How many files and bytes the filesystem that is watched has more than before, if this container writes there.
fn made(
    machine: &dyn Machine,
    first: Option<i32>,
    (before, watched): (Option<Left>, &Path),
) -> Option<(Option<i64>, i64)> {
    let upper = machine.behind(first, Path::new("/"))?.upper?;
    let number = |path: &Path| rustix::fs::stat(path).ok().map(|facts| facts.st_dev);
    if number(&upper)? != number(watched)? {
        return None;
    }
    let (before, after) = (before?, machine.left(watched)?);
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
