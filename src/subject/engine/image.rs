//! The image that an engine runs: found there, or made and loaded. A loaded one stays as a labelled cache
//! that `sweep` removes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::component::run_within;
use super::Engine;
use crate::image::{Image, fat};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::subject::resources::load_image;
use crate::subject::{RunContext, Unavailable};
use crate::sys::{filesystem, place};
use crate::units::Nanos;

/// How long an engine may take to load the image `small`.
const LOADING: Nanos = Nanos::from_millis(20_000);
/// How long it may take to load an image with many files.
pub(super) const LOADING_LARGE: Nanos = Nanos::from_millis(600_000);

impl Engine {
    /// Records for `sweep` which user's storage holds dunnage's images.
    fn remember_user(&self, run: &RunContext) -> Result<(), Failure> {
        let Some(user) = self.about.spec.get("rootless").filter(|_| self.client.login.is_some()) else {
            return Ok(());
        };
        let path = users_with_images(&run.place.state).join(user);
        let written = place::make(&users_with_images(&run.place.state));
        written
            .and_then(|()| std::fs::write(&path, ""))
            .or_environment(format_args!("cannot write `{}`", path.display()))
    }

    /// Loads an archive. For another user it is passed as an open file, since that user may not be able to
    /// reach its path.
    pub(super) fn load(&self, archive: &Path, allowed: Nanos) -> Result<(), String> {
        let path = archive.to_string_lossy();
        let program = match &self.client.login {
            None => {
                // A client that is killed leaves its temporary files behind. There they go with the archive.
                let beside = archive.parent().unwrap_or(archive).as_os_str();
                let program = self.client.program(&["load", "--input", &path]);
                program.and_then(|program| {
                    let placed = program.with_variable("TMPDIR", beside);
                    placed.map_err(|error| Unavailable::because(format!("cannot set TMPDIR: {error}")))
                })
            }
            Some(_) => {
                let opened = std::fs::set_permissions(archive, Permissions::from_mode(0o644))
                    .and_then(|()| std::fs::File::open(archive))
                    .map_err(|error| format!("cannot read `{path}`: {error}"))?;
                let program = self.client.program(&["load", "--input", "/dev/stdin"]);
                program.map(|program| program.reading(opened.into()))
            }
        };
        let loaded = program.and_then(|program| run_within(allowed, &program));
        loaded.map(drop).map_err(|why| why.reason)
    }

    /// The image to run; dunnage's own is loaded if it is missing.
    pub(in crate::subject) fn provide_image(&self, run: &RunContext) -> Result<String, Abort> {
        let holds = |reference: &str| {
            let asked = self.client.ask(&["image", "inspect", "--format", "{{.Id}}", reference]);
            asked.map(drop).map_err(|why| why.reason)
        };
        let allowed = if fat::is_named(self.about.spec.get("image")) { LOADING_LARGE } else { LOADING };
        self.provide_image_by(run, &holds, &|archive| self.load(archive, allowed))
    }

    /// The same with functions that look for an image and load an archive.
    pub(in crate::subject) fn provide_image_by(
        &self,
        run: &RunContext,
        holds: &dyn Fn(&str) -> Result<(), String>,
        load: &dyn Fn(&Path) -> Result<(), String>,
    ) -> Result<String, Abort> {
        if !self.own_image() {
            let reference = self.about.spec.get("image").expect("an image not made by dunnage was named");
            if let Some(login) =
                self.client.login.as_ref().filter(|login| !login.may_read(&run.place.executable))
            {
                return Err(Failure::new(
                    FailureClass::Permission,
                    format!(
                        "user {} cannot read `{}`: set `$DUNNAGE_STATE` to a directory that all users can enter",
                        login.user(),
                        run.place.executable.display()
                    ),
                )
                .into());
            }
            holds(reference)
                .or_environment(format_args!("{} has no image `{reference}`", self.about.spec.name))?;
            return Ok(reference.to_owned());
        }
        let bytes = std::fs::read(&run.place.executable)
            .or_environment(format_args!("cannot read `{}`", run.place.executable.display()))?;
        let is_fat = fat::is_named(self.about.spec.get("image"));
        let image = if is_fat { fat::image(&bytes) } else { Image::small(&bytes) };
        self.remember_user(run)?;
        if holds(&image.reference).is_err() {
            if is_fat {
                self.check_space(&image, run).map_err(|error| Failure::environment(format!("{error:#}")))?;
            }
            load_image(&image, &self.about.spec, run, load)?;
        }
        Ok(image.reference.clone())
    }

    /// Checks that there is room for the archive and for the engine's copy of it, where the storage is known.
    fn check_space(&self, image: &Image<'_>, run: &RunContext) -> anyhow::Result<()> {
        image.check_space(&run.place.state)?;
        let note = |name: &str| {
            let found = self.about.facts.notes.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let Some(storage) = note("data root").or_else(|| note("graph root")).map(Path::new) else {
            return Ok(());
        };
        let Ok(left) = filesystem::left(storage) else { return Ok(()) };
        // `vfs` keeps a full copy of everything below for each layer and each container.
        let copies = if note("storage driver") == Some("vfs") { image.layer_count() as u64 + 1 } else { 2 };
        let needed = copies * image.bytes();
        anyhow::ensure!(
            left.bytes >= needed,
            "no space left for the image {}: it needs {} MB in the engine's storage, and `{}` has {} MB",
            fat::NAME,
            needed.div_ceil(1_000_000),
            storage.display(),
            left.bytes / 1_000_000
        );
        Ok(())
    }
}

/// The directory that has one file, named after the user, for each user whose storage holds dunnage's images.
pub fn users_with_images(state: &Path) -> PathBuf {
    state.join("images/rootless")
}
