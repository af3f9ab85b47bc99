//! The image that an engine runs: found there, or made and loaded. A loaded one stays, as a labelled
//! cache that `sweep` removes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::component::{answer, question};
use super::Engine;
use crate::image::SmallImage;
use crate::outcome::{Failure, FailureClass};
use crate::subject::Stage;
use crate::sys::journal::Resource;
use crate::sys::signals::Interrupts;

impl Engine {
    /// Writes down for `sweep` whose storage holds images of ours.
    fn remember_user(&self, stage: &Stage) -> Result<(), String> {
        let Some(user) = self.spec.get("rootless").filter(|_| self.login.is_some()) else { return Ok(()) };
        let path = users_with_images(&stage.place.state).join(user);
        let written = std::fs::create_dir_all(users_with_images(&stage.place.state));
        written
            .and_then(|()| std::fs::write(&path, ""))
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    /// Hands an archive over. Another user gets it opened, since the way to it may be closed to them.
    fn load(&self, archive: &Path) -> Result<(), String> {
        if self.login.is_none() {
            return self
                .ask(&["load", "--input", &archive.to_string_lossy()])
                .map(drop)
                .map_err(|why| why.reason);
        }
        let opened = std::fs::set_permissions(archive, Permissions::from_mode(0o644))
            .and_then(|()| std::fs::File::open(archive))
            .map_err(|error| format!("cannot read `{}`: {error}", archive.display()))?;
        let arguments = self.arguments(&["load", "--input", "/dev/stdin"]);
        let program = question(self.login.as_ref(), &self.client, &arguments).map_err(|why| why.reason)?;
        let interrupts = Interrupts::install().ok();
        answer(&program.reading(opened.into()), interrupts.as_ref()).map(drop).map_err(|why| why.reason)
    }

    /// The image to run, loaded if it is ours and not there yet.
    pub(in crate::subject) fn provide_image(&self, stage: &mut Stage) -> Result<String, Failure> {
        let holds = |reference: &str| {
            let asked = self.ask(&["image", "inspect", "--format", "{{.Id}}", reference]);
            asked.map(drop).map_err(|why| why.reason)
        };
        self.provide_image_by(stage, &holds, &|archive| self.load(archive))
    }

    /// The same, by whoever can say whether the engine holds an image, and can load an archive.
    pub(in crate::subject) fn provide_image_by(
        &self,
        stage: &mut Stage,
        holds: &dyn Fn(&str) -> Result<(), String>,
        load: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<String, Failure> {
        let environment = |reason: String| Failure::new(FailureClass::Environment, reason);
        if !self.own_image() {
            let reference = self.spec.get("image").expect("an image that is not ours was named");
            if let Some(login) = self.login.as_ref().filter(|login| !login.may_read(&stage.place.executable))
            {
                return Err(Failure::new(
                    FailureClass::Permission,
                    format!(
                        "user {} cannot read `{}`; set `$DUNNAGE_STATE` to a directory that everybody can enter",
                        login.user(),
                        stage.place.executable.display()
                    ),
                ));
            }
            return match holds(reference) {
                Ok(()) => Ok(reference.to_owned()),
                Err(why) => Err(environment(format!(
                    "{} has no image `{reference}`: {why}; dunnage pulls nothing, since a download is no part of a start",
                    self.spec.name
                ))),
            };
        }
        let reference = stage.place.reference.clone();
        self.remember_user(stage).map_err(environment)?;
        if holds(&reference).is_ok() {
            return Ok(reference);
        }
        with_archive(stage, load)
            .map_err(|reason| environment(format!("{} does not take the image: {reason}", self.spec.name)))?;
        Ok(reference)
    }
}

/// Writes the image `small` as an archive, has it loaded, and removes the archive.
pub(in crate::subject) fn with_archive(
    stage: &mut Stage,
    load: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let archive = stage.workspace().join("small.tar");
    let entry = stage.note(Resource::Directory(stage.workspace())).map_err(|failure| failure.reason)?;
    let written = (|| {
        std::fs::create_dir_all(stage.workspace())?;
        let bytes = std::fs::read(&stage.place.executable)?;
        let mut file = std::io::BufWriter::new(std::fs::File::create(&archive)?);
        SmallImage::new(&bytes).write_archive(&mut file)?;
        std::io::Write::flush(&mut file)
    })();
    let loaded = written
        .map_err(|error| format!("cannot write the image to `{}`: {error}", archive.display()))
        .and_then(|()| load(&archive));
    let _ = std::fs::remove_file(&archive);
    stage.cross_out(entry);
    loaded
}

/// The directory with one file, by their name, for each user whose storage holds images of ours.
pub fn users_with_images(state: &Path) -> PathBuf {
    state.join("images/rootless")
}
