//! A container that dunnage makes itself with bare system calls: the kernel's share of what engines ask of
//! it. It needs no engine, and no root where user namespaces are allowed.

mod apart;
mod keys;
mod verbs;

use std::ffi::OsString;

use dunnage_analysis::launch::names;

use self::verbs::OfFloor;
use super::client::{self, Call, Holds, Returned};
use super::component::identified;
use super::confined::Confined;
use super::draft::{Draft, Verbs, recorded};
use super::filter;
use super::limits;
use super::resources::{self, Object, ObjectKind, ObjectSpec};
use super::roots;
use super::treatment::{Cgroup, Expected};
use super::{
    Apart, Attachment, Broom, Description, Entrypoint, Facts, Kind, Launch, Mount, Place, RunContext, Spec,
    Subject, Unavailable, Work, kinds,
};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::{PROBE, Task};
use crate::resource::{Found, Held};
use crate::sys::accounting;
use crate::sys::bounds::Bounds;
use crate::sys::bridge::Bridge;
use crate::sys::cgroup::{self, CgroupPlan, Version, Way};
use crate::sys::container::{self, LaunchError, LaunchFailed, Piece, Pieces, Prepared};
use crate::sys::descriptors::link_or_copy;
use crate::sys::spawn::Ended;
use crate::sys::{place, seccomp};

/// The kind `floor`.
pub static KIND: Kind =
    Kind { declared: &kinds::FLOOR, as_installed: &["floor"], equalised: &[], build, sweep };

struct Floor {
    about: Description,
    bounds: Option<Bounds>,
    /// In a scratch directory that is removed with it.
    prepared: Option<Held<Prepared>>,
    /// The same made in other ways, each prepared when it is first requested.
    variants: Vec<Prepared>,
    /// The same with other work for the probe, each prepared when it is first requested.
    works: Vec<(Work, Prepared)>,
    /// The image's root, once it is on disk.
    root: Option<roots::Root>,
    /// The image's executable, seen from the host.
    executable: std::path::PathBuf,
}

fn build(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    if !container::is_privileged() {
        container::user_namespaces()
            .map_err(|why| Unavailable::because(format!("{:#}", anyhow::Error::new(why))))?;
    }
    let limit = limits::cpu_limit(spec)?;
    let bounds = Confined::of(spec).bounds()?;
    if limit.is_some() {
        limits::cpu_cgroups()?;
        if spec.get("cgroup") == Some("host") {
            return Err(Unavailable::because("a CPU limit needs a cgroup, and `cgroup=host` makes none"));
        }
    }
    let component = identified("maker", &place.executable, env!("CARGO_PKG_VERSION"))?;
    let plan = cgroups();
    let is_none = |plan: &CgroupPlan| no_way(keys::way(spec), keys::mounts(spec), plan);
    if let Some(why) = plan.as_ref().ok().and_then(is_none) {
        return Err(Unavailable::because(why));
    }
    let cgroup = match plan {
        Ok(plan) if !plan.places.is_empty() && plan.refused.is_empty() => Cgroup::Own,
        _ => Cgroup::Any,
    };
    let facts = Facts { components: vec![component], ..Facts::default() };
    let about = Description {
        offers: keys::offers(spec),
        makes: &[ObjectKind::Network, ObjectKind::Image],
        ..Description::new(spec, facts, keys::expected(spec, cgroup))
    };
    Ok(Box::new(Floor {
        about,
        bounds,
        prepared: None,
        variants: Vec::new(),
        works: Vec::new(),
        root: None,
        executable: place.executable.clone(),
    }))
}

/// Why this way does not exist on this host.
fn no_way(way: Way, mounts: container::Mounts, plan: &CgroupPlan) -> Option<&'static str> {
    let is_second = |place: &cgroup::Place| place.hierarchy.version == Version::V2;
    match way {
        Way::Tasks if plan.places.iter().all(is_second) => Some("no cgroup of version 1 can be made here"),
        Way::Born if !plan.places.iter().any(is_second) => Some("no cgroup of version 2 can be made here"),
        Way::Born if !container::can_be_born() => {
            Some("a process cannot start in a cgroup here: that needs `clone3` and Linux 5.7")
        }
        _ => mounts.lacking(),
    }
}

/// The places for dunnage's cgroups on this host.
fn cgroups() -> Result<CgroupPlan, Failure> {
    CgroupPlan::here().or_environment("cannot find the cgroups")
}

/// Removes empty cgroups of containers whose run has lost its journal; one with a process in it stays.
fn sweep(_: &Place, broom: Broom) -> Vec<String> {
    if !broom.shared {
        return Vec::new();
    }
    let told = orphans().into_iter().filter_map(|path| {
        let remove = || Ok::<_, Failure>(Found::when(std::fs::remove_dir(&path).is_ok()));
        broom.take(format!("cgroup `{}`", path.display()), remove)
    });
    let told = told.collect();
    if !broom.dry {
        cgroup::retire();
    }
    told
}

/// Removes the cgroups of the container with this name and kills what is still in them, where dunnage itself
/// was killed before it could.
pub fn remove_cgroups(name: &str) {
    if let Ok(plan) = cgroups() {
        // Only cgroups were made, so there is no overlay to look for.
        let left = container::leftovers(NOWHERE.as_ref(), name, &plan);
        let _ = container::undo(&left);
    }
}

/// Cgroups of containers whose run has lost its journal, if no run is alive.
fn orphans() -> Vec<std::path::PathBuf> {
    let Ok(plan) = cgroups() else { return Vec::new() };
    let parents = plan.directories("any").into_iter().filter_map(|path| Some(path.parent()?.to_owned()));
    let entries = parents.filter_map(|parent| std::fs::read_dir(parent).ok()).flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("dunnage-"));
    ours.map(|entry| entry.path()).collect()
}

/// A scratch directory that no longer exists: only cgroups are left.
const NOWHERE: &str = "/nonexistent";

impl Floor {
    fn make_network(&self, run: &RunContext) -> Result<Held<Object>, Abort> {
        let pieces = keys::pieces(&self.about.spec);
        if !container::is_privileged() || pieces.has(Piece::User) || !pieces.has(Piece::Network) {
            let reason = "`floor` joins containers to a network only as root, and without `userns=private` and `net=host`";
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        let name = run.next_name();
        let record = resources::of_subject(ObjectKind::Network.resource(), &self.about.spec, &name);
        run.owner.make(ObjectKind::Network.resource(), record, || {
            let bridge = Bridge::new().or_environment("cannot make a bridge")?;
            Ok(Object::Network(Attachment::new(name, Some(bridge))))
        })
    }

    /// A container in this scratch directory whose program is the probe with this order.
    fn container(
        &self,
        run: &RunContext,
        scratch: &std::path::Path,
        entrypoint: Entrypoint<'_>,
    ) -> Result<Prepared, Failure> {
        let layers = entrypoint.image().and_then(Object::layers).and_then(<[_]>::split_last);
        let (root, below) = match layers {
            Some((top, below)) => (roots::Root::ours(top.clone()), below),
            None => {
                (self.root.clone().unwrap_or_else(|| roots::Root::ours(run.place.rootfs.clone())), &[][..])
            }
        };
        let pieces = keys::pieces(&self.about.spec);
        let is_whole = pieces.has(Piece::Mounts) && pieces.has(Piece::Overlay);
        // With the host's own mounts, a path is the same inside and outside.
        let is_there = |mount: &Mount| !pieces.has(Piece::Mounts) && mount.host == mount.inside;
        let mounts = keys::mounts(&self.about.spec);
        let takes_mounts = is_whole && mounts != container::Mounts::OpenTree;
        let has_mounts = !entrypoint.mounts().iter().all(is_there);
        if has_mounts && !takes_mounts || (root.config.is_some() || layers.is_some()) && !is_whole {
            let reason = "mounts and images other than `small` and `fat` need a private root: leave out `mounts` and `overlay`";
            return Err(Failure::new(FailureClass::Unsupported, reason));
        }
        let additions = if is_whole {
            additions(&root, entrypoint.mounts(), run)?
        } else {
            container::Additions::default()
        };
        let cgroups = CgroupPlan { way: keys::way(&self.about.spec), ..run.cgroups()? };
        let filter = match self.about.spec.get("seccomp") {
            Some("off") => None,
            _ => {
                let chosen = run.filter().expect("`prepare` chooses it");
                Some(seccomp::compile(&chosen.profile))
            }
        };
        place::make(scratch).or_environment(format_args!("cannot make `{}`", scratch.display()))?;
        let words = entrypoint.words(self.about.expected.detail());
        // In a root without an overlay the mount points are made in place, and the image must not change.
        let is_plain = pieces.has(Piece::Mounts) && !pieces.has(Piece::Overlay) && is_small(&self.about.spec);
        let rootfs = if is_plain { own_root(&root.path, scratch)? } else { root.path.clone() };
        container::prepare(container::Spec {
            rootfs,
            below: below.iter().rev().cloned().collect(),
            scratch: scratch.to_owned(),
            program: program_in(pieces, &self.executable).into(),
            arguments: std::iter::once(PROBE.into()).chain(words).map(OsString::from).collect(),
            environment: root.environment().into_iter().map(OsString::from).collect(),
            pieces,
            mounts,
            metacopy: keys::copies_metadata_alone(&self.about.spec),
            stamped: false,
            seccomp: filter,
            cgroups,
            limits: entrypoint.limits(&self.about.spec).of_cgroup(),
            bounds: self.bounds.clone().unwrap_or_default(),
            additions,
            tied: entrypoint.tied(),
        })
        .map_err(|error| Failure::environment(format!("{error:#}")))
    }

    fn prepared(&self) -> &Held<Prepared> {
        self.prepared.as_ref().expect("`prepare` comes before any launch")
    }
}

/// Turns the failure of a launch into dunnage's; a limit that the kernel refused gets the usual message.
fn cannot_make(failed: LaunchFailed, class: FailureClass) -> Failure {
    match &failed.error {
        LaunchError::Step(error) if error.is_of_a_limit() => limits::refused(error),
        _ => Failure::new(class, format!("cannot make a container: {}", failed.told())),
    }
}

/// What a container gets in addition to its image: the probe where the image was not made by dunnage, its
/// working directory, and mounts.
fn additions(
    root: &roots::Root,
    mounts: &[Mount],
    run: &RunContext,
) -> Result<container::Additions, Failure> {
    let is_foreign = root.config.is_some();
    let is_laid_in = is_foreign || run.lays_in_the_probe;
    let probe = || (run.place.executable.clone(), EXECUTABLE.trim_start_matches('/').to_owned());
    let bind = |mount: &Mount| Ok(Mount { inside: roots::inside(&root.path, mount)?, ..mount.clone() });
    Ok(container::Additions {
        directory: is_foreign.then(|| root.directory().into()),
        files: is_laid_in.then(probe).into_iter().collect(),
        binds: mounts.iter().map(bind).collect::<Result<_, Failure>>()?,
    })
}

fn is_small(spec: &Spec) -> bool {
    matches!(spec.get("image"), None | Some("small"))
}

/// A root that contains only the same executable.
fn own_root(image: &std::path::Path, scratch: &std::path::Path) -> Result<std::path::PathBuf, Failure> {
    let name = EXECUTABLE.trim_start_matches('/');
    let (source, root) = (image.join(name), scratch.join(".root"));
    let target = root.join(name);
    let made = std::fs::create_dir_all(&root).and_then(|()| match target.exists() {
        true => Ok(()),
        false => link_or_copy(&source, &target),
    });
    made.or_environment(format_args!("cannot make `{}`", target.display()))?;
    Ok(root)
}

/// The path of the executable: a container without its own root runs on the host's, where the path is
/// different.
fn program_in(pieces: Pieces, on_the_host: &std::path::Path) -> &std::path::Path {
    if pieces.has(Piece::Mounts) { EXECUTABLE.as_ref() } else { on_the_host }
}

/// One launch of what is prepared. Its mounts are in its own namespace, its only process is reaped, and its cgroups are removed
/// before it returns.
fn launch_prepared(
    spec: &Spec,
    prepared: &mut Prepared,
    expected: &Expected,
    class_of: impl Fn(&LaunchFailed) -> FailureClass,
    entrypoint: Entrypoint<'_>,
    run: &RunContext,
) -> Result<Launch, Abort> {
    let name = run.next_name();
    let left = prepared.leftovers(&name);
    let call = Call { holds: Holds::NoMore, ..Call::new(&name, expected, entrypoint) };
    let part = || {
        let reading = entrypoint.reading();
        let mut running = prepared.launch(&name).map_err(|failed| {
            let class = class_of(&failed);
            cannot_make(failed, class)
        })?;
        running.child = running.child.read(reading);
        let client = accounting::Client::Child(running.child.pid);
        let gone = running.wait(entrypoint.allowed(run), Some(&run.interrupts));
        gone.removed.or_environment("a container was left behind")?;
        let ended = Ended { returned: gone.returned, ..gone.end.map_err(verbs::unfinished)? };
        let shown = "the probe inside".to_owned();
        Ok(Returned { shown, ended, client, client_cpu: gone.own_cpu, parts: gone.stamps })
    };
    let launch = || client::launch(run, Ok(&[]), &call, part);
    recorded(run, spec, &name, launch, || undone(&left).map(|_| Found::Yes))
}

/// Removes what a container left, if anything.
fn undone(left: &container::Leftovers) -> Result<Found, Failure> {
    let found = Found::when(left.cgroups.iter().chain([&left.scratch]).any(|path| path.exists()));
    container::undo(left).map(|()| found).map_err(|error| Failure::environment(format!("{error:#}")))
}

impl Subject for Floor {
    fn about(&self) -> &Description {
        &self.about
    }

    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        match asked {
            ObjectSpec::Image(executable, layers) => resources::unpacked(executable, layers, run),
            ObjectSpec::Network => self.make_network(run),
            ObjectSpec::Volume => Err(resources::not_made(&self.about.spec, ObjectKind::Volume).into()),
        }
    }

    fn unmake(&self, _: ObjectKind, _: &str, _: &str) -> Result<Found, Failure> {
        // A bridge disappears with its last holder.
        Ok(Found::No)
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        Ok(Box::new(OfFloor::new(self, draft)?))
    }

    fn pieces(&mut self) -> Option<&mut dyn Apart> {
        Some(self)
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        if self.about.spec.get("seccomp") != Some("off") {
            filter::choose(run)?;
        }
        if !is_small(&self.about.spec) {
            self.root = Some(roots::root(&self.about.spec, run)?);
        }
        let made = run.owner.directory(|scratch| Ok(self.container(run, scratch, Task::Start.into())?))?;
        self.prepared = Some(made);
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        if let Entrypoint::Work(work) = entrypoint
            && !self.works.iter().any(|(own, _)| own == work)
        {
            let prepared = self.container(run, self.prepared().id().as_ref(), entrypoint)?;
            self.works.push((work.clone(), prepared));
        }
        let mut own = match entrypoint {
            Entrypoint::Task(Task::StartLibc | Task::Inherit) => {
                Some(self.container(run, self.prepared().id().as_ref(), entrypoint)?)
            }
            _ => None,
        };
        let prepared = match entrypoint {
            Entrypoint::Task(Task::StartLibc | Task::Inherit) => own.as_mut(),
            Entrypoint::Task(_) | Entrypoint::Stay(_) => self.prepared.as_deref_mut(),
            Entrypoint::Work(work) => {
                self.works.iter_mut().find(|(own, _)| own == work).map(|(_, prepared)| prepared)
            }
        };
        let prepared = prepared.expect("`prepare` comes before any launch, and works are made above");
        let instructions = prepared.filter_instructions();
        let Description { spec, expected, .. } = &self.about;
        let class_of = |_: &LaunchFailed| FailureClass::Environment;
        let mut launch = launch_prepared(spec, prepared, expected, class_of, entrypoint, run)?;
        if let Entrypoint::Work(_) = entrypoint {
            launch.treatment.push((names::SECCOMP_INSTRUCTIONS.text(), instructions.to_string()));
        }
        Ok(launch)
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        // The overlay's directory is in the scratch directory, which has its own line in the journal.
        let scratch = self.prepared.as_ref().map_or(NOWHERE, |prepared| prepared.id());
        undone(&container::leftovers(scratch.as_ref(), name, &cgroups()?))
    }
}
