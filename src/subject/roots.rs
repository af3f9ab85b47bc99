//! The image's root on disk, for subjects that need no engine: `small`, which every session unpacks; `fat`,
//! which is made when it is first asked for; or any other image, exported by an engine that holds it. The
//! last two stay as a cache that `sweep` removes.
//!
//! Programs may write to their root, and the cache is shared. So they run on an overlay or in a copy, which
//! is removed with the launch: each starts from the same root.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::component::{Client, run_within};
use super::{RunContext, Spec, docker, on_path, podman};
use crate::image::export::{Config, Export};
use crate::image::{Image, PATH_VARIABLE, fat};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::resource::Held;
use crate::resource::mounts::{self, Source};
use crate::sys::{clock, container, place};
use crate::units::Nanos;

/// How long copying a root may take.
const COPYING: Nanos = Nanos::from_millis(600_000);

/// A root on disk, which must not be changed.
#[derive(Debug, Clone)]
pub struct Root {
    /// The directory.
    pub path: PathBuf,
    /// The image's configuration; `None` for dunnage's own images, which contain the probe.
    pub config: Option<Config>,
}

impl Root {
    /// The root of one of dunnage's images.
    pub fn ours(path: PathBuf) -> Root {
        Root { path, config: None }
    }

    /// The environment of programs in it: the image's own, with the search path and the home directory that
    /// engines add.
    pub fn environment(&self) -> Vec<String> {
        let Some(config) = &self.config else { return vec![PATH_VARIABLE.to_owned()] };
        let mut all = config.environment.clone();
        for usual in [PATH_VARIABLE, "HOME=/root"] {
            let name = usual.split_inclusive('=').next().unwrap_or_default();
            if !all.iter().any(|entry| entry.starts_with(name)) {
                all.push(usual.to_owned());
            }
        }
        all
    }

    /// The working directory of programs in it.
    pub fn directory(&self) -> &str {
        let own = self.config.as_ref().map(|config| config.directory.as_str());
        own.filter(|directory| !directory.is_empty()).unwrap_or("/")
    }
}

/// The image, if it is not one of dunnage's.
pub fn foreign(spec: &Spec) -> Option<&str> {
    spec.get("image").filter(|name| !["small", fat::NAME].contains(name))
}

/// The root that a subject asks for, made if it is missing.
pub fn root(spec: &Spec, run: &RunContext) -> Result<Root, Abort> {
    if let Some(reference) = foreign(spec) {
        return exported(spec, reference, run);
    }
    ours(spec, run).map(Root::ours).map_err(|error| Failure::environment(format!("{error:#}")).into())
}

fn ours(spec: &Spec, run: &RunContext) -> anyhow::Result<PathBuf> {
    let bytes = std::fs::read(&run.place.executable)?;
    if !fat::is_named(spec.get("image")) {
        return Image::small(&bytes).unpack(&run.place.state, &|| (), &|| true);
    }
    let image = fat::image(&bytes);
    let began = std::cell::Cell::new(None);
    let making = || {
        began.set(Some(clock::now()));
        (run.tell)(&fat::announcement(&image, "the state directory"));
    };
    let root = image.unpack(&run.place.state, &making, &|| !run.interrupts.pending())?;
    if let Some(began) = began.get() {
        (run.tell)(&format!("made the image {} in {}", fat::NAME, clock::now().since(began)));
    }
    Ok(root)
}

/// The root of an image that an engine holds. Docker is asked first; a different image of the same name in
/// podman is reported.
fn exported(spec: &Spec, reference: &str, run: &RunContext) -> Result<Root, Abort> {
    let engines = [docker::find(&Spec::plain("docker")), podman::find(&Spec::plain("podman"))];
    let mut lacking = Vec::new();
    let mut holding = Vec::new();
    for (name, found) in ["docker", "podman"].into_iter().zip(engines) {
        let asked = found.map_err(|why| why.reason).and_then(|engine| {
            let config = engine.image_config(reference)?;
            Ok((engine, config))
        });
        match asked {
            Ok(held) => holding.push(held),
            Err(why) => lacking.push(format!("{name}: {}", why.trim())),
        }
    }
    let Some((engine, config)) = holding.first() else {
        let reason = format!(
            "no engine here holds the image `{reference}` ({}): get it with `docker pull {reference}` or `podman pull \
             {reference}`; dunnage never pulls images",
            lacking.join("; ")
        );
        return Err(Failure::environment(reason).into());
    };
    if let Some((other, _)) = holding.iter().find(|(_, other)| other.id != config.id) {
        (run.tell)(&format!(
            "`{}` runs the image `{reference}` of {}; {} holds a different one under that name",
            spec.shown(),
            engine.about.spec,
            other.about.spec
        ));
    }
    suits(spec, reference, config)?;
    let Export { root: path, config } = engine.export(run, config)?;
    Ok(Root { path, config: Some(config) })
}

/// Refuses an image that would not run as it does under an engine.
fn suits(spec: &Spec, reference: &str, config: &Config) -> Result<(), Failure> {
    let refused = |reason: String| Err(Failure::new(FailureClass::Unsupported, reason));
    if !config.is_for_this_machine() {
        return refused(format!("the image `{reference}` is for {} machines", config.architecture));
    }
    if !config.is_root() {
        return refused(format!(
            "the image `{reference}` runs as its user `{}`, and `{}` starts programs only as root: use an engine for it",
            config.user, spec.name
        ));
    }
    Ok(())
}

/// A writable root that starts as another one; changes are removed with it. Made in the way of engines, as an
/// overlay over the other root, or as a copy where the kernel cannot mount an overlay here.
#[derive(Debug)]
pub struct Fresh {
    /// Its path.
    pub path: PathBuf,
    /// Dropped before the directories that it is made of.
    _mount: Option<Held<PathBuf>>,
    _directory: Held<PathBuf>,
}

impl Fresh {
    /// One made from the layers of an image, lowest first, which do not change. They are never copied, since
    /// an image may be large.
    pub fn over_layers(layers: &[PathBuf], run: &RunContext) -> Result<Fresh, Abort> {
        let top = layers.last().and_then(|top| Some((top, top.parent()?)));
        let (top, place) = top.ok_or_else(|| Failure::environment("an image without layers"))?;
        // The options of a mount must fit into a page, and this path is shorter than the layers' own.
        let opened =
            std::fs::File::open(place).or_environment(format_args!("cannot open `{}`", place.display()))?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let lower: Vec<PathBuf> =
            layers.iter().rev().filter_map(|layer| Some(short.join(layer.file_name()?))).collect();
        let made = Fresh::overlay(&lower, top, run)?;
        made.ok_or_else(|| {
            let reason = "an image with layers needs an overlay, which cannot be mounted here";
            Failure::new(FailureClass::Unsupported, reason).into()
        })
    }

    /// One made from this root, which does not change.
    pub fn over(root: &Path, run: &RunContext) -> Result<Fresh, Abort> {
        if let Some(fresh) = Fresh::overlay(&[root.to_owned()], root, run)? {
            return Ok(fresh);
        }
        let directory = run.owner.directory(|own| {
            place::make(own).or_environment(format_args!("cannot make `{}`", own.display()))?;
            copy(root, &own.join("root"))?;
            Ok(own.to_owned())
        })?;
        Ok(Fresh { path: directory.join("root"), _mount: None, _directory: directory })
    }

    /// One over these layers, uppermost first, with the mode of `root`. `None` where an ordinary user may not
    /// mount it, or the kernel cannot on this filesystem.
    fn overlay(lower: &[PathBuf], root: &Path, run: &RunContext) -> Result<Option<Fresh>, Abort> {
        let directory = run.owner.directory(|own| {
            let [_, upper, _] = container::overlay_directories(own);
            let make = |path: &PathBuf| std::fs::create_dir(path);
            let made = place::make(own)
                .and_then(|()| container::overlay_directories(own)[1..].iter().try_for_each(make));
            // The root's mode comes from the upper directory.
            let made = made.and_then(|()| std::fs::set_permissions(upper, root.metadata()?.permissions()));
            made.or_environment(format_args!("cannot make `{}`", own.display()))?;
            Ok(own.to_owned())
        })?;
        let options = container::overlay_over(lower.iter().map(PathBuf::as_path), &directory);
        let overlay = Source::Filesystem("overlay", options.to_str().unwrap_or_default(), None);
        let mount = mounts::mount(&run.owner, overlay).ok();
        Ok(mount.map(|mount| Fresh { path: mount.to_path_buf(), _mount: Some(mount), _directory: directory }))
    }
}

/// Copies a root to a new path, including owners, links and attributes; on filesystems that can, both share
/// their blocks.
fn copy(root: &Path, to: &Path) -> Result<(), Failure> {
    let program = on_path("cp").ok_or("`cp` is not installed".to_owned());
    let copied = program.and_then(|program| {
        let paths = [root.to_string_lossy(), to.to_string_lossy()];
        let program = Client::of(program).program(&["-a", &paths[0], &paths[1]]);
        program.and_then(|program| run_within(COPYING, &program)).map_err(|why| why.reason)
    });
    copied.or_environment(format_args!("cannot copy `{}` to `{}`", root.display(), to.display()))?;
    Ok(())
}

/// The path of a mount in a root: relative to it, without following links.
pub fn inside(root: &Path, mount: &super::Mount) -> Result<PathBuf, Failure> {
    let (host, inside) = (mount.host.display(), mount.inside.display());
    if !mount.host.exists() {
        return Err(Failure::environment(format!("cannot mount `{host}`: it does not exist")));
    }
    let found = crate::image::export::resolve(root, &mount.inside)
        .or_environment(format_args!("cannot mount at `{inside}`"))?;
    if found.as_os_str().is_empty() {
        return Err(Failure::environment(format!("cannot mount `{host}` over the root of the image")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_the_images_with_what_engines_add() {
        let config = |own: &[&str]| Config {
            environment: own.iter().map(|entry| (*entry).to_owned()).collect(),
            ..Config::default()
        };
        let environment = |config| Root { path: PathBuf::new(), config: Some(config) }.environment();
        assert_eq!(environment(config(&[])), [PATH_VARIABLE, "HOME=/root"]);
        let own = ["PATH=/opt", "HOMES=2", "HOME=/srv"];
        assert_eq!(environment(config(&own)), own);
    }

    #[test]
    fn other_machines_and_users_are_refused_with_the_reason() {
        let spec = Spec::plain("bare");
        let fits = Config { user: "root".into(), ..Config::default() };
        assert_eq!(suits(&spec, "x", &fits), Ok(()));
        let other = Config { architecture: "s390x".into(), ..Config::default() };
        let user = Config { user: "www-data".into(), ..Config::default() };
        for (config, word) in [(other, "s390x"), (user, "www-data")] {
            let refused = suits(&spec, "x", &config).unwrap_err();
            assert_eq!(refused.class, FailureClass::Unsupported);
            assert!(refused.reason.contains(word), "{refused}");
        }
    }
}
