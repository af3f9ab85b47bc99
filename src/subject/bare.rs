//! The probe as a process on the host: the baseline for every other subject.

mod confined;
mod image;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use self::confined::Confinement;
use super::client::{self, Call, Holds, Terminal};
use super::component::identified;
use super::confined::Confined;
use super::draft::{Draft, Entered, Said, Span, Verbs, nothing_runs, recorded, seconds, stopped};
use super::limits::Limits;
use super::roots::{self, Fresh};
use super::treatment::{Expected, Own};
use super::{
    Attachment, Description, Entrypoint, Facts, Kind, Launch, Mount, Need, Place, RunContext, Spec, Subject,
    Unavailable, kinds,
};
use crate::image::fat;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::message::{CgroupInUse, Inside};
use crate::probe::{CGROUP_DIRECTORIES, PROBE};
use crate::resource::{Found, command};
use crate::sys::bounds::Bounds;
use crate::sys::spawn::{self, Child, Program};
use crate::sys::{clock, network, raw};
use crate::units::Nanos;

/// The kind `bare`.
pub static KIND: Kind = Kind {
    declared: &kinds::BARE,
    as_installed: &["bare"],
    equalised: &[],
    build,
    sweep: super::leaves_nothing,
};

/// Any directory of the host is as good as a volume to a process.
const OFFERS: [Need; 6] =
    [Need::Launch, Need::Exec, Need::Work, Need::Network, Need::Resolver, Need::Volumes];

struct Bare {
    about: Description,
    executable: PathBuf,
    /// The image, where one is given, and a writable root made from it for launches of the probe alone, which
    /// writes nothing.
    image: Option<(roots::Root, Fresh)>,
    confinement: Option<Confinement>,
    bounds: Option<Bounds>,
}

fn build(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    if let Some(image @ ("small" | fat::NAME)) = spec.get("image") {
        return Err(Unavailable::because(format!(
            "the image {image} holds only the probe, which `bare` runs without an image"
        ))
        .with_remedy("leave `image` out, or name an image that docker or podman has"));
    }
    let has_image = roots::foreign(spec).is_some();
    if has_image && raw::user_and_group().0 != 0 {
        return Err(Unavailable::because("permission: only root may change to the root of an image")
            .with_remedy("run dunnage as root, or take `floor` with this image"));
    }
    let component = identified("probe", &place.executable, env!("CARGO_PKG_VERSION"))?;
    let facts = Facts { components: vec![component], ..Facts::default() };
    // Only its mounts are private; nothing else about it is a container's.
    let mount = if has_image { Own::Private } else { Own::Host };
    let confined = Confined::of(spec);
    let bounds = confined.bounds()?;
    let expected = Expected { mount, limits: Limits::of(spec), confined, ..Expected::bare() };
    let confinement = Confinement::of(spec)?;
    let about = Description::new(spec, facts, expected);
    Ok(Box::new(match confinement {
        // The cgroup exists only while its process does, so it cannot be entered.
        Some(_) => Bare { about, confinement, bounds, ..Bare::plain(place) },
        None => {
            Bare { about: Description { offers: OFFERS.to_vec(), ..about }, bounds, ..Bare::plain(place) }
        }
    }))
}

/// The host as a peer of a subject: its processes are clients and load generators, each with its own CPU
/// account. One that joins a network made by dunnage reaches the containers there.
pub fn peer(place: &Place) -> impl Subject + use<> {
    Bare::plain(place)
}

impl Bare {
    fn plain(place: &Place) -> Bare {
        Bare {
            about: Description {
                offers: OFFERS.to_vec(),
                ..Description::new(&Spec::plain("bare"), Facts::default(), Expected::bare())
            },
            executable: place.executable.clone(),
            image: None,
            confinement: None,
            bounds: None,
        }
    }

    /// A private, writable root, where there is an image.
    fn fresh(&self, run: &RunContext) -> Result<Option<Fresh>, Abort> {
        self.image.as_ref().map(|(image, _)| Fresh::over(&image.path, run)).transpose()
    }

    /// The probe with this order, in this root, or in the image's where there is one.
    fn program(
        &self,
        entrypoint: Entrypoint<'_>,
        mounts: &[Mount],
        own: Option<&Fresh>,
    ) -> Result<Program, Failure> {
        let mut words = vec![PROBE.to_owned()];
        if let Some((image, root)) = &self.image {
            words.extend(image::inside_words(image, &own.unwrap_or(root).path, mounts)?);
        } else if let Some(mount) = mounts.iter().find(|mount| mount.host != mount.inside) {
            let reason = format!(
                "`bare` without an image mounts nothing, so `{}` is not at `{}`; give the same path twice, or give \
                 `bare` an image",
                mount.host.display(),
                mount.inside.display()
            );
            return Err(Failure::new(FailureClass::Unsupported, reason));
        }
        words.extend(entrypoint.words(self.about.expected.detail()));
        let program = Program::new(&self.executable, words);
        let program = match &self.image {
            Some((image, _)) => program.and_then(|own| own.with_environment(&image.environment())),
            None => program,
        };
        let program = program.or_environment("cannot start the probe")?;
        Ok(match &self.bounds {
            Some(bounds) => program.bounded(bounds),
            None => program,
        })
    }
}

/// What runs in place of a container. Since the host always runs, there is nothing to make, start, stop or
/// remove unless a program is to serve; entering it is a fork and an exec. These verbs take no time because
/// they do nothing, so `lifecycle` is not offered.
struct OfHost<'a> {
    bare: &'a Bare,
    draft: Draft<'a>,
    root: Option<Fresh>,
    /// The network namespace that it is started in, where that is not the host's.
    port: Option<OwnedFd>,
    /// The program that serves.
    child: Option<Child>,
}

impl Verbs for OfHost<'_> {
    fn create(&mut self) -> Result<Span, Abort> {
        Ok(Span::none())
    }

    fn start(&mut self) -> Result<Span, Abort> {
        if self.draft.request.channel.is_none() {
            return Ok(Span::none());
        }
        let program =
            self.bare.program(self.draft.entrypoint(), &self.draft.request.mounts, self.root.as_ref())?;
        let start = || spawn::start(&program);
        let child = self.port.as_ref().map_or_else(start, |port| network::within(port, start));
        let child = child.map_err(|error| command::cannot_start(&program, &error))?;
        let span = Span { began: child.spawned, ended: clock::now() };
        self.child = Some(child);
        Ok(span)
    }

    fn exec(&mut self, entrypoint: Entrypoint<'_>) -> Result<Entered, Abort> {
        let program = self.bare.program(entrypoint, &self.draft.request.mounts, self.root.as_ref())?;
        self.draft.enter_by(&program, entrypoint, Terminal::No)
    }

    fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        let Some(child) = self.child.take() else { return Ok(Span::none()) };
        let began = clock::now();
        let sent = if grace > 0 { child.signal(libc::SIGTERM) } else { Ok(()) };
        // At the end of its grace it is killed.
        let ended = stopped(child.wait(seconds(grace), Some(&self.draft.run.interrupts)))?;
        sent.or_environment("cannot send SIGTERM")?;
        Ok(Span { began, ended })
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        Ok(Span::none())
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        self.child.as_ref().map(|child| child.pid).ok_or_else(nothing_runs)
    }

    fn logs(&mut self) -> Result<Said, Abort> {
        Ok(Said::known(self.child.as_mut().ok_or_else(nothing_runs)?.output()))
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        if let Some(child) = self.child.take() {
            // With a deadline that has passed, `wait` kills and reaps it.
            let _ = child.wait(Nanos(0), None);
        }
        Ok(Found::Yes)
    }
}

impl Subject for Bare {
    fn about(&self) -> &Description {
        &self.about
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        let mut draft = draft;
        if draft.request.limits != Limits::default() {
            let reason = "`bare` has no cgroup of its own to limit: take `floor` with these limits";
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        if draft.request.channel.is_some() && self.confinement.is_some() {
            let reason = "`bare` with a CPU limit cannot serve: use `floor` with this limit";
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        // Without a root of its own it sees the host's paths.
        if let (None, Some(own)) = (&self.image, draft.request.mounts.last_mut())
            && draft.request.channel.as_ref() == Some(&own.inside)
        {
            own.inside = own.host.clone();
            draft.request.channel = Some(own.host.clone());
        }
        // A network kept by an engine is already reachable from the host's own.
        draft.request.network.take_if(|attachment| attachment.bridge.is_none());
        let attachment = draft.request.network.as_ref();
        let port = attachment.map(Attachment::namespace).transpose()?.flatten();
        let root = self.fresh(draft.run)?;
        Ok(Box::new(OfHost { bare: self, draft, root, port, child: None }))
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        if roots::foreign(&self.about.spec).is_some() {
            let image = roots::root(&self.about.spec, run)?;
            let root = Fresh::over(&image.path, run)?;
            self.image = Some((image, root));
        }
        if self.confinement.is_some() {
            run.cgroups()?;
        }
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        let name = run.next_name();
        let own = if let Entrypoint::Work(_) = entrypoint { self.fresh(run)? } else { None };
        let program = self.program(entrypoint, entrypoint.mounts(), own.as_ref())?;
        let call = Call { holds: Holds::NoMore, ..Call::new(&name, &self.about.expected, entrypoint) };
        let launched = |program: &Program| {
            client::launch(run, Ok(&[]), &call, || client::by_command(run, program, entrypoint))
        };
        let Some(confinement) = &self.confinement else { return launched(&program) };
        let program = program.in_cgroups(&confinement.plan, &name);
        let launch = || {
            confinement.make(&name)?;
            let launched = launched(&program)?;
            confinement.remove(&name)?;
            Ok(launched)
        };
        recorded(run, &self.about.spec, &name, launch, || confinement.remove(&name))
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        match &self.confinement {
            Some(confinement) => confinement.remove(name),
            None => {
                let reason = format!("a bare process has no name, so there is no `{name}`");
                Err(Failure::new(FailureClass::Unsupported, reason))
            }
        }
    }
}

/// What a process on the host sees of itself; every container is compared with it.
pub fn view(run: &RunContext) -> Result<Inside, Abort> {
    let mut bare = Bare::plain(&run.place);
    // There is nothing to compare with yet.
    bare.about.expected = Expected::anything();
    let mut seen = bare.launch(run)?.message.inside;
    seen.cgroups_in_use = cgroups_in_use();
    Ok(seen)
}

/// The cgroups that processes are in now, and the roots: a container's own cgroup is none of these. The
/// kernel gives every new cgroup a new number and never reuses one.
fn cgroups_in_use() -> BTreeSet<CgroupInUse> {
    let mut in_use = BTreeSet::new();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let listed = processes.filter_map(|one| std::fs::read_to_string(one.path().join("cgroup")).ok());
    let listed: BTreeSet<String> = listed.collect();
    for (controller, directory, filesystem) in CGROUP_DIRECTORIES {
        if raw::inode_on(directory, filesystem).is_none() {
            continue;
        }
        let root = Path::new(OsStr::from_bytes(directory.to_bytes()));
        let of_process = |text: &String| {
            let lines =
                Inside { cgroup_path: text.lines().map(str::to_owned).collect(), ..Inside::default() };
            lines.path_in(controller).map(str::to_owned)
        };
        for path in listed.iter().filter_map(of_process).chain(["/".to_owned()]) {
            if let Ok(status) = root.join(path.trim_start_matches('/')).metadata() {
                in_use.insert(CgroupInUse { controller: controller.into(), path, inode: status.ino() });
            }
        }
    }
    in_use
}
