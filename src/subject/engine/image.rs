//! The image that an engine runs: found there, or made and loaded. A loaded one stays, as a labelled
//! cache that `sweep` removes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::component::{question, run_within};
use super::Engine;
use crate::image::{LayeredImage, SmallImage, fat};
use crate::outcome::{Failure, FailureClass};
use crate::resource;
use crate::subject::{RunContext, Spec};
use crate::sys::signals::Interrupts;
use crate::sys::{clock, filesystem};
use crate::units::Nanos;

/// How long an engine may take to load the image `small`.
const LOADING: Nanos = Nanos::from_millis(20_000);
/// How long it may take to load one of many files.
pub(super) const LOADING_LARGE: Nanos = Nanos::from_millis(600_000);

impl Engine {
    /// Writes down for `sweep` whose storage holds images of ours.
    fn remember_user(&self, run: &RunContext) -> Result<(), String> {
        let Some(user) = self.spec.get("rootless").filter(|_| self.login.is_some()) else { return Ok(()) };
        let path = users_with_images(&run.place.state).join(user);
        let written = std::fs::create_dir_all(users_with_images(&run.place.state));
        written
            .and_then(|()| std::fs::write(&path, ""))
            .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }

    /// Hands an archive over. Another user gets it opened, since the way to it may be closed to them.
    pub(super) fn load(&self, archive: &Path, allowed: Nanos) -> Result<(), String> {
        let interrupts = Interrupts::install().ok();
        let path = archive.to_string_lossy();
        let program = match &self.login {
            None => question(None, &self.client, &self.arguments(&["load", "--input", &path])),
            Some(_) => {
                let opened = std::fs::set_permissions(archive, Permissions::from_mode(0o644))
                    .and_then(|()| std::fs::File::open(archive))
                    .map_err(|error| format!("cannot read `{path}`: {error}"))?;
                let arguments = self.arguments(&["load", "--input", "/dev/stdin"]);
                question(self.login.as_ref(), &self.client, &arguments)
                    .map(|program| program.reading(opened.into()))
            }
        };
        let loaded = program.and_then(|program| run_within(allowed, &program, interrupts.as_ref()));
        loaded.map(drop).map_err(|why| why.reason)
    }

    /// The image to run, loaded if it is ours and not there yet.
    pub(in crate::subject) fn provide_image(&self, run: &RunContext) -> Result<String, Failure> {
        let holds = |reference: &str| {
            let asked = self.ask(&["image", "inspect", "--format", "{{.Id}}", reference]);
            asked.map(drop).map_err(|why| why.reason)
        };
        let allowed = if fat::is_named(self.spec.get("image")) { LOADING_LARGE } else { LOADING };
        self.provide_image_by(run, &holds, &|archive| self.load(archive, allowed))
    }

    /// The same, by whoever can say whether the engine holds an image, and can load an archive.
    pub(in crate::subject) fn provide_image_by(
        &self,
        run: &RunContext,
        holds: &dyn Fn(&str) -> Result<(), String>,
        load: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<String, Failure> {
        let environment = |reason: String| Failure::new(FailureClass::Environment, reason);
        if !self.own_image() {
            let reference = self.spec.get("image").expect("an image that is not ours was named");
            if let Some(login) = self.login.as_ref().filter(|login| !login.may_read(&run.place.executable)) {
                return Err(Failure::new(
                    FailureClass::Permission,
                    format!(
                        "user {} cannot read `{}`; set `$DUNNAGE_STATE` to a directory that everybody can enter",
                        login.user(),
                        run.place.executable.display()
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
        let bytes = std::fs::read(&run.place.executable).map_err(|error| environment(error.to_string()))?;
        let fat = fat::is_named(self.spec.get("image")).then(|| fat::image(&bytes));
        let reference = match &fat {
            Some(image) => image.reference().to_owned(),
            None => run.place.reference.clone(),
        };
        self.remember_user(run).map_err(environment)?;
        if holds(&reference).is_ok() {
            return Ok(reference);
        }
        if let Some(image) = &fat {
            self.check_space(image, run).map_err(|error| environment(format!("{error:#}")))?;
        }
        with_archive(run, &self.spec, load)
            .map_err(|reason| environment(format!("{} does not take the image: {reason}", self.spec.name)))?;
        Ok(reference)
    }

    /// Room for the archive, and for what the engine makes of it, where its storage can be seen.
    fn check_space(&self, image: &LayeredImage<'_>, run: &RunContext) -> anyhow::Result<()> {
        image.check_space(&run.place.state)?;
        let note = |name: &str| {
            let found = self.facts.notes.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let Some(storage) = note("data root").or_else(|| note("graph root")).map(Path::new) else {
            return Ok(());
        };
        let Ok(left) = filesystem::left(storage) else { return Ok(()) };
        // `vfs` keeps a whole copy of everything below for each layer, and for each container.
        let copies = if note("storage driver") == Some("vfs") { image.layer_count() as u64 + 1 } else { 2 };
        let needed = copies * image.bytes();
        anyhow::ensure!(
            left.bytes >= needed,
            "the image {} needs {} MB free in the engine's storage, and `{}` has {} MB: no space left",
            fat::NAME,
            needed.div_ceil(1_000_000),
            storage.display(),
            left.bytes / 1_000_000
        );
        Ok(())
    }
}

/// Writes the image of ours that a subject asks for as an archive, has it loaded, and removes the archive.
/// How long that takes is told of the fat one.
pub(in crate::subject) fn with_archive(
    run: &RunContext,
    spec: &Spec,
    load: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let archive = run.workspace().join("image.tar");
    let entry = run.note(resource::directory(&run.workspace())).map_err(|failure| failure.reason)?;
    let began = clock::now();
    let written = (|| {
        std::fs::create_dir_all(run.workspace())?;
        let bytes = std::fs::read(&run.place.executable)?;
        let mut file = std::io::BufWriter::new(std::fs::File::create(&archive)?);
        if fat::is_named(spec.get("image")) {
            let image = fat::image(&bytes);
            (run.tell)(&fat::announcement(&image, &spec.to_string()));
            image.write_archive(&mut file, &|| !run.interrupts.pending())?;
        } else {
            SmallImage::new(&bytes).write_archive(&mut file)?;
        }
        std::io::Write::flush(&mut file)
    })();
    let loaded = written
        .map_err(|error| format!("cannot write the image to `{}`: {error}", archive.display()))
        .and_then(|()| load(&archive));
    let _ = std::fs::remove_file(&archive);
    run.cross_out(entry);
    if loaded.is_ok() && fat::is_named(spec.get("image")) {
        (run.tell)(&format!("made the image {} in {}", fat::NAME, clock::now().since(began)));
    }
    loaded
}

/// The directory with one file, by their name, for each user whose storage holds images of ours.
pub fn users_with_images(state: &Path) -> PathBuf {
    state.join("images/rootless")
}
