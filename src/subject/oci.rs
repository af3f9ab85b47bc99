//! OCI runtimes, called with a bundle as an engine would call them: `crun`, `runc`, `youki`, and gVisor's
//! `runsc`, which runs the container on its own kernel.

mod verbs;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::verbs::OfRuntime;
use super::client::{self, Call};
use super::component::{Client, program};
use super::confined::Confined;
use super::draft::{Draft, Verbs, recorded};
use super::filter;
use super::limits::{self, Limits};
use super::resources::{self, Object, ObjectKind, ObjectSpec};
use super::roots::{self, Fresh};
use super::treatment::{Cgroup, Expected, Kernel, Network, Own};
use super::{
    Broom, Description, Entrypoint, Facts, Kind, Launch, Mount, Need, Place, RunContext, Spec, Subject,
    Unavailable, kinds,
};
use crate::image::EXECUTABLE;
use crate::image::bundle::Bundle;
use crate::image::spec as config;
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::probe::Task;
use crate::resource::{Found, Held};
use crate::sys::raw;

/// The kind `crun`.
pub static CRUN: Kind = kind(&kinds::CRUN, &["crun"], |place, broom| sweep(place, broom, "crun"));
/// The kind `runc`.
pub static RUNC: Kind = kind(&kinds::RUNC, &["runc"], |place, broom| sweep(place, broom, "runc"));
/// The kind `youki`.
pub static YOUKI: Kind = kind(&kinds::YOUKI, &["youki"], |place, broom| sweep(place, broom, "youki"));
/// The kind `runsc`.
pub static RUNSC: Kind = kind(&kinds::RUNSC, &["runsc"], |place, broom| sweep(place, broom, "runsc"));

const fn kind(
    declared: &'static kinds::Kind,
    as_installed: &'static [&'static str],
    sweep: super::Sweep,
) -> Kind {
    Kind { declared, as_installed, equalised: &[], build, sweep }
}

/// How to install a missing runtime.
fn remedy(runtime: &str) -> String {
    match runtime {
        "youki" => "install a release of youki, or run `cargo install youki --no-default-features --features v1,v2,seccomp`, \
                    which needs the package `libseccomp-dev`"
            .into(),
        "runsc" => "install a release of gVisor, or run `go install gvisor.dev/gvisor/runsc@VERSION` with a version of its branch `go`".into(),
        packaged => format!("install the package `{packaged}`"),
    }
}

struct Oci {
    about: Description,
    /// An ordinary user's runtime keeps its state in a directory of dunnage's, since the default one is
    /// root's.
    client: Client,
    /// The bundle of launches.
    bundle: Option<Held<Bundle>>,
    /// The image not made by dunnage, and a writable root made from it for launches of the probe alone, which
    /// writes nothing.
    image: Option<(roots::Root, Fresh)>,
    /// Where an ordinary user's runtime keeps its state, which newer versions of crun do not clear.
    notes: Option<PathBuf>,
}

impl Drop for Oci {
    fn drop(&mut self) {
        if let Some(notes) = &self.notes {
            forget_cache(notes);
        }
    }
}

fn build(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    let mut client = Client::of(program(spec, &spec.name, &remedy(&spec.name))?);
    let rootless = raw::user_and_group().0 != 0;
    let limit = limits::cpu_limit(spec)?;
    let confined = Confined::of(spec);
    confined.bounds()?;
    if rootless && (limit.is_some() || !confined.cpus.is_empty()) {
        // Without delegation it cannot make a cgroup, and continues without one.
        return Err(Unavailable::because("an ordinary user's runtime has no cgroup to limit")
            .with_remedy("run as root"));
    }
    let component = client.component("runtime")?;
    let facts = Facts { components: vec![component], runtime: Some(spec.name.clone()), notes: Vec::new() };
    let is_gvisor = spec.name == "runsc";
    let expected = Expected {
        network: if spec.get("net") == Some("host") { Network::Host } else { Network::Loopback },
        pid: if spec.get("pid") == Some("host") { Own::Host } else { Own::Private },
        user: if rootless { Own::Private } else { Own::Host },
        kernel: if is_gvisor { Kernel::Own } else { Kernel::Hosts },
        cgroup: if rootless || is_gvisor { Cgroup::Any } else { Cgroup::Own },
        no_new_privs: Some(1),
        seccomp: Some(if spec.get("seccomp") == Some("off") { 0 } else { 2 }),
        capabilities: Some(raw::DOCKER_CAPABILITIES),
        limits: Limits::of(spec),
        confined,
        ..Expected::container()
    };
    // gVisor and youki filter only the system calls of the first process, so a process that enters would not
    // have the treatment asked for.
    let enters_unfiltered = ["runsc", "youki"].contains(&&*spec.name) && spec.get("seccomp") != Some("off");
    // What enters a container of crun gets the limits of the crun that enters it, not the container's.
    let enters_unlimited = spec.name == "crun" && !expected.confined.ulimits.is_empty();
    let offers = if enters_unfiltered {
        vec![Need::Launch, Need::Work]
    } else {
        let is_offered = |need: &Need| !enters_unlimited || !matches!(need, Need::Exec | Need::Lifecycle);
        Need::CONTAINER.into_iter().chain([Need::Images]).filter(is_offered).collect()
    };
    let makes = &[ObjectKind::Image];
    let notes = rootless.then(|| place.state.join(&spec.name));
    if let Some(notes) = &notes {
        client.global.extend(["--root".to_owned(), notes.display().to_string()]);
    }
    if is_gvisor {
        client.global.extend(gvisor_options(rootless));
    }
    Ok(Box::new(Oci {
        about: Description { offers, makes, ..Description::new(spec, facts, expected) },
        client,
        bundle: None,
        image: None,
        notes,
    }))
}

/// What the bundle asks for but gVisor grants only with its own options: the capability for raw sockets, the
/// system call filter, and loopback in a network without a way out.
fn gvisor_options(rootless: bool) -> Vec<String> {
    let mut options = ["--network=none", "--net-raw", "--oci-seccomp"].map(str::to_owned).to_vec();
    if rootless {
        options.extend(["--rootless".to_owned(), "--ignore-cgroups".to_owned()]);
    }
    options
}

/// The state directory of an ordinary user's runtime; removed only while it is empty, since what is in it may
/// not be dunnage's.
fn sweep(place: &Place, broom: Broom, runtime: &str) -> Vec<String> {
    if broom.containers && !broom.dry {
        forget_cache(&place.state.join(runtime));
    }
    Vec::new()
}

/// Newer versions of crun keep compiled filters in their state directory.
fn forget_cache(notes: &Path) {
    let _ = std::fs::remove_dir_all(notes.join(".cache"));
    let _ = std::fs::remove_dir(notes);
}

fn name_of(directory: &Path) -> String {
    directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Oci {
    /// The bundle's `config.json`; `name` is that of the cgroup and the host. With an image not made by
    /// dunnage it has that image's settings, and the probe is mounted into it.
    fn config(&self, run: &RunContext, name: &str, entrypoint: Entrypoint<'_>) -> Value {
        let arguments = entrypoint.words(self.about.expected.detail());
        let mut all = config::like_docker(&arguments, "dunnage", &format!("/dunnage/{name}"));
        for (controller, limit) in entrypoint.limits(&self.about.spec).resources() {
            all["linux"]["resources"][&controller] = limit;
        }
        let confined = &self.about.expected.confined;
        config::confine(&mut all, &confined.ulimits, &confined.cpus);
        for (key, kind) in [("net", "network"), ("pid", "pid")] {
            if self.about.spec.get(key) == Some("host") {
                config::share_namespace(&mut all, kind);
            }
        }
        entrypoint.mounts().iter().for_each(|mount| config::add_bind(&mut all, mount));
        if let Some(filter) = run.filter().filter(|_| self.about.spec.get("seccomp") != Some("off")) {
            all["linux"]["seccomp"] = filter.oci.clone();
        }
        let (user, group) = raw::user_and_group();
        if user != 0 {
            // The runtime cannot make a cgroup here, and continues only if the path is its own choice.
            all["linux"].as_object_mut().and_then(|linux| linux.remove("cgroupsPath"));
            config::add_user_namespace(&mut all, (user, group), 1);
        }
        let foreign = self.image.as_ref().filter(|_| entrypoint.image().is_none());
        if let Some((image, _)) = foreign {
            let usual = all["process"]["env"].as_array().into_iter().flatten().cloned();
            let usual = usual.filter(|entry| !entry.as_str().unwrap_or_default().starts_with("PATH="));
            let env = image.environment().into_iter().map(Value::from).chain(usual);
            all["process"]["env"] = env.collect();
            all["process"]["cwd"] = json!(image.directory());
        }
        if run.lays_in_the_probe || foreign.is_some() {
            let (host, inside) = (run.place.executable.clone(), EXECUTABLE.into());
            config::add_bind(&mut all, &Mount { host, inside, access: super::Access::ReadOnly });
        }
        all
    }

    /// A bundle around an existing root; `name` is the container's for the kernel.
    fn bundle_around(
        &self,
        directory: &Path,
        root: &Fresh,
        name: &str,
        run: &RunContext,
        entrypoint: Entrypoint<'_>,
    ) -> Result<Bundle, Failure> {
        Bundle::around(directory, &root.path, &self.config(run, name, entrypoint))
            .or_environment("cannot make a bundle")
    }

    /// A private, writable root.
    fn fresh(&self, run: &RunContext) -> Result<Fresh, Abort> {
        match &self.image {
            Some((image, _)) => Fresh::over(&image.path, run),
            None => Fresh::over(&self.prepared().root(), run),
        }
    }

    fn prepared(&self) -> &Bundle {
        self.bundle.as_deref().expect("`prepare` makes the bundle before any launch")
    }

    /// Removes what is left of a container. If the runtime was killed before it recorded its state, the
    /// container's cgroups are unknown to it.
    fn discard(&self, name: &str, cgroup: &str) -> Result<Found, Failure> {
        let removed = self.remove(name);
        super::floor::remove_cgroups(cgroup);
        removed.map(|_| Found::Yes)
    }
}

impl Subject for Oci {
    fn about(&self) -> &Description {
        &self.about
    }

    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        match asked {
            ObjectSpec::Image(executable, layers) => resources::unpacked(executable, layers, run),
            other => Err(resources::not_made(&self.about.spec, other.kind()).into()),
        }
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        if draft.request.limits != Limits::default()
            && (self.notes.is_some() || self.about.expected.kernel == Kernel::Own)
        {
            let reason = "an ordinary user's runtime and gVisor have no cgroup to limit: take `floor`, `crun` or `runc` as root";
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        let directory = draft.directory.join("bundle");
        let layers = draft.request.image.as_ref().and_then(Object::layers);
        let root = match layers {
            Some(layers) => Fresh::over_layers(layers, draft.run)?,
            None => self.fresh(draft.run)?,
        };
        let bundle = self.bundle_around(&directory, &root, &draft.name, draft.run, draft.entrypoint())?;
        Ok(Box::new(OfRuntime { oci: self, draft, bundle, _root: root, first: None }))
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        if self.about.spec.get("seccomp") != Some("off") {
            filter::choose(run)?;
        }
        if self.notes.is_none() {
            // The runtime makes its cgroups below them.
            run.cgroups()?;
        }
        if roots::foreign(&self.about.spec).is_some() {
            let image = roots::root(&self.about.spec, run)?;
            let root = Fresh::over(&image.path, run)?;
            self.image = Some((image, root));
        }
        let entrypoint = Task::Start.into();
        let bundle = run.owner.directory(|directory| {
            let name = name_of(directory);
            if let Some((_, root)) = &self.image {
                return Ok(self.bundle_around(directory, root, &name, run, entrypoint)?);
            }
            let root = roots::root(&self.about.spec, run)?;
            let made = Bundle::write(directory, &root.path, &self.config(run, &name, entrypoint));
            Ok(made.or_environment("cannot make a bundle")?)
        })?;
        self.bundle = Some(bundle);
        Ok(())
    }

    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort> {
        let (root, own);
        let bundle = match entrypoint {
            Entrypoint::Work(_) => {
                root = self.fresh(run)?;
                own = run.owner.directory(|directory| {
                    Ok(self.bundle_around(directory, &root, &name_of(directory), run, entrypoint)?)
                })?;
                &own
            }
            Entrypoint::Task(Task::StartLibc | Task::Inherit) => {
                let root = self.image.as_ref().map_or(self.prepared().root(), |(_, root)| root.path.clone());
                own = run.owner.directory(|directory| {
                    let config = self.config(run, &name_of(directory), entrypoint);
                    Ok(Bundle::around(directory, &root, &config).or_environment("cannot make a bundle")?)
                })?;
                &own
            }
            Entrypoint::Task(_) | Entrypoint::Stay(_) => self.prepared(),
        };
        let name = run.next_name();
        let (bundle_name, directory) = (name_of(bundle.directory()), bundle.directory().to_string_lossy());
        let program = self.client.program(&["run", "--bundle", &directory, &name])?;
        // youki starts to wait for the end of the container after it has started it, and waits forever if the
        // container has already ended.
        let program =
            if self.about.spec.name == "youki" { program.keeping_ends_of_children() } else { program };
        // `bin` may be a script around the program; here the program's own path is checked.
        let expected = &self.about.expected;
        let call = Call { bundle: Some(&bundle_name), ..Call::new(&name, expected, entrypoint) };
        let part = || client::by_command(run, &program, entrypoint);
        let launch = || client::launch(run, Ok(&[]), &call, part);
        recorded(run, &self.about.spec, &name, launch, || self.discard(&name, &bundle_name))
    }

    fn remove(&self, name: &str) -> Result<Found, Failure> {
        // With `--force` a runtime does not say that the container does not exist.
        let found = Found::when(self.client.insist(&["state", name]).is_ok());
        match self.client.insist(&["delete", "--force", name]) {
            Err(why)
                if !["does not exist", "No such file"].iter().any(|words| why.reason.contains(words)) =>
            {
                Err(why.into())
            }
            _ => Ok(found),
        }
    }
}
