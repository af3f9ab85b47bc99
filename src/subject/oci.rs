//! OCI runtimes, called with a bundle as an engine would call them: `crun`, `runc`, `youki`, and
//! `runsc`, gVisor's, which runs the container on a kernel of its own.

mod verbs;

use std::path::{Path, PathBuf};

use self::verbs::OfRuntime;
use super::client::{self, Call, Holds, Terminal};
use super::component::insist;
use super::container::{Draft, Verbs};
use super::filter;
use super::limits::{self, Limits};
use super::resources::{self, Made, Offer, Wish};
use super::roots;
use super::treatment::{Cgroup, Expected, Kernel, Network, Own};
use super::{
    Component, Defaults, Facts, Kind, Launch, Need, Order, Place, RunContext, Spec, Subject, Unavailable,
    Work, kinds, on_path,
};
use crate::image::EXECUTABLE;
use crate::image::bundle::{self, Bundle};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::{LIMITS, Task};
use crate::resource;
use crate::resource::Held;
use crate::resource::journal::Entry;
use crate::subject::resources::container;
use crate::sys::cgroup::CpuLimit;
use crate::sys::raw;
use crate::sys::spawn::Program;

/// The kind `crun`.
pub static CRUN: Kind = Kind {
    declared: &kinds::CRUN,
    defaults: || Defaults { as_installed: vec![Spec::plain("crun")], equalised: Vec::new() },
    build,
    sweep: |place, _| sweep(place, "crun"),
};

/// The kind `runc`.
pub static RUNC: Kind = Kind {
    declared: &kinds::RUNC,
    defaults: || Defaults { as_installed: vec![Spec::plain("runc")], equalised: Vec::new() },
    build,
    sweep: |place, _| sweep(place, "runc"),
};

/// The kind `youki`.
pub static YOUKI: Kind = Kind {
    declared: &kinds::YOUKI,
    defaults: || Defaults { as_installed: vec![Spec::plain("youki")], equalised: Vec::new() },
    build,
    sweep: |place, _| sweep(place, "youki"),
};

/// The kind `runsc`.
pub static RUNSC: Kind = Kind {
    declared: &kinds::RUNSC,
    defaults: || Defaults { as_installed: vec![Spec::plain("runsc")], equalised: Vec::new() },
    build,
    sweep: |place, _| sweep(place, "runsc"),
};

/// How a runtime gets here that is not.
fn remedy(runtime: &str) -> String {
    match runtime {
        "youki" => "install a release of youki, or `cargo install youki --no-default-features --features v1,v2,seccomp`, \
                    for which the package `libseccomp-dev` is needed"
            .into(),
        "runsc" => "install a release of gVisor, or `go install gvisor.dev/gvisor/runsc@VERSION` with a version of its branch `go`".into(),
        packaged => format!("install the package `{packaged}`"),
    }
}

struct Oci {
    spec: Spec,
    binary: PathBuf,
    facts: Facts,
    /// Arguments before the verb: an ordinary user's runtime keeps its notes in our own directory,
    /// since its default one is root's.
    global: Vec<String>,
    expected: Expected,
    limit: Option<CpuLimit>,
    /// The bundle of launches.
    bundle: Option<(Bundle, Entry)>,
    /// Those of works, made when the first of each is wanted.
    works: Vec<(Work, (Bundle, Entry))>,
    /// The root of somebody else's image, in a copy that is this subject's own.
    copied: Option<roots::Copied>,
}

fn build(spec: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    let binary = match spec.get("bin") {
        Some(path) => PathBuf::from(path),
        None => on_path(&spec.name)
            .ok_or_else(|| Unavailable::not_installed("not installed").with_remedy(remedy(&spec.name)))?,
    };
    let rootless = raw::user_and_group().0 != 0;
    let limit = limits::cpu_limit(spec)?;
    if rootless && limit.is_some() {
        // Without delegation it may make no cgroup, and goes on without one.
        return Err(Unavailable::because(
            "an ordinary user's runtime is given no cgroup that it could limit",
        )
        .with_remedy("run as root"));
    }
    let component = Component::asked("runtime", &binary)?;
    let facts = Facts { components: vec![component], runtime: Some(spec.name.clone()), notes: Vec::new() };
    let is_gvisor = spec.name == "runsc";
    let expected = Expected {
        network: if spec.get("net") == Some("host") { Network::Host } else { Network::Loopback },
        pid: if spec.get("pid") == Some("host") { Own::Host } else { Own::Private },
        user: if rootless { Own::Private } else { Own::Host },
        kernel: if is_gvisor { Kernel::Own } else { Kernel::Hosts },
        mount: Own::Private,
        ipc: Own::Private,
        uts: Own::Private,
        cgroup: if rootless || is_gvisor { Cgroup::Any } else { Cgroup::Own },
        no_new_privs: Some(1),
        seccomp: Some(if spec.get("seccomp") == Some("off") { 0 } else { 2 }),
        capabilities: Some(raw::DOCKER_CAPABILITIES),
        root: &[],
    };
    let mut global = match rootless {
        true => vec!["--root".to_owned(), place.state.join(&spec.name).display().to_string()],
        false => Vec::new(),
    };
    if is_gvisor {
        global.extend(gvisor_options(rootless));
    }
    Ok(Box::new(Oci {
        spec: spec.clone(),
        binary,
        facts,
        global,
        expected,
        limit,
        bundle: None,
        works: Vec::new(),
        copied: None,
    }))
}

/// What the bundle asks for and gVisor gives only when its own options say so too: the capability for
/// raw sockets, the system call filter, and loopback in a network without a way out.
fn gvisor_options(rootless: bool) -> Vec<String> {
    let mut options = ["--network=none", "--net-raw", "--oci-seccomp"].map(str::to_owned).to_vec();
    if rootless {
        options.extend(["--rootless".to_owned(), "--ignore-cgroups".to_owned()]);
    }
    options
}

/// The directory in which an ordinary user's runtime keeps its notes; only while it is empty, since
/// what is in it is not known to be ours to remove.
fn sweep(place: &Place, runtime: &str) -> Vec<String> {
    forget_cache(&place.state.join(runtime));
    Vec::new()
}

/// Newer versions of crun keep the filters that they compiled beside their notes.
fn forget_cache(notes: &Path) {
    let _ = std::fs::remove_dir_all(notes.join(".cache"));
    let _ = std::fs::remove_dir(notes);
}

impl Oci {
    fn arguments<'a>(&'a self, verb: &[&'a str]) -> Vec<&'a str> {
        self.global.iter().map(String::as_str).chain(verb.iter().copied()).collect()
    }

    /// The bundle's description; `name` is the cgroup's and the host's.
    fn bundle_spec(&self, run: &RunContext, name: &str, order: Order<'_>) -> bundle::Spec {
        let arguments = order.words(self.limit.map(|_| LIMITS));
        let mut spec = bundle::Spec::like_docker(&arguments, "dunnage", &format!("/dunnage/{name}"));
        let dropped = |namespace| match namespace {
            bundle::Namespace::Network => self.spec.get("net") == Some("host"),
            bundle::Namespace::Pid => self.spec.get("pid") == Some("host"),
            _ => false,
        };
        spec.cpu = self.limit.map(|CpuLimit { quota_us, period_us, burst_us }| bundle::CpuQuota {
            quota_us,
            period_us,
            burst_us,
        });
        spec.namespaces.retain(|namespace| !dropped(*namespace));
        spec.mounts.extend(order.mounts().iter().map(|mount| {
            let access = match mount.access {
                super::Access::ReadOnly => bundle::Access::ReadOnly,
                super::Access::ReadWrite => bundle::Access::ReadWrite,
            };
            bundle::Mount::bind(&mount.host.to_string_lossy(), &mount.inside.to_string_lossy(), access)
        }));
        if self.spec.get("seccomp") != Some("off") {
            spec.seccomp = run.filter().map(|filter| filter.oci.clone());
        }
        let (user, group) = raw::user_and_group();
        if user != 0 {
            let one = |outside: usize| vec![bundle::IdRange { inside: 0, outside: outside as u32, count: 1 }];
            spec.cgroups_path = None;
            spec.user_namespace = Some(bundle::UserNamespace { uids: one(user), gids: one(group) });
        }
        spec
    }
}

impl Oci {
    /// A bundle whose program is the probe with this order.
    fn make_bundle(&mut self, run: &RunContext, order: Order<'_>) -> Result<(Bundle, Entry), Failure> {
        let name = run.next_name();
        let directory = run.workspace().join(&name);
        let entry = run.note(resource::directory(&directory))?;
        let spec = self.bundle_spec(run, &name, order);
        let made = self.write_bundle(run, &directory, spec);
        match made {
            Ok(bundle) => Ok((bundle, entry)),
            Err(failure) => {
                run.cross_out(entry);
                Err(failure)
            }
        }
    }

    fn write_bundle(
        &mut self,
        run: &RunContext,
        directory: &Path,
        spec: bundle::Spec,
    ) -> Result<Bundle, Failure> {
        std::fs::create_dir_all(run.workspace()).map_err(|error| no_bundle(error.into()))?;
        if roots::foreign(&self.spec).is_none() {
            let root = roots::root(&self.spec, run)?;
            return Bundle::write(directory, root.path(), &spec).map_err(no_bundle);
        }
        let root = roots::Copied::of(&mut self.copied, &self.spec, run)?.path().to_owned();
        Bundle::around(directory, &root, &self.dressed(spec, run)).map_err(no_bundle)
    }

    /// The description with what somebody else's image asks for, and the probe laid into it.
    fn dressed(&self, mut spec: bundle::Spec, run: &RunContext) -> bundle::Spec {
        if let Some(own) = &self.copied {
            spec.directory = own.image.directory().to_owned();
            spec.env.retain(|entry| !entry.starts_with("PATH="));
            spec.env.splice(0..0, own.image.environment());
            let probe = run.place.executable.to_string_lossy();
            spec.mounts.push(bundle::Mount::bind(&probe, EXECUTABLE, bundle::Access::ReadOnly));
        }
        spec
    }

    fn prepared(&self) -> &(Bundle, Entry) {
        self.bundle.as_ref().expect("`prepare` makes the bundle before any launch")
    }
}

impl Oci {
    /// The bundle of an order.
    fn bundle_for(&mut self, order: Order<'_>, run: &RunContext) -> Result<&Bundle, Failure> {
        let Order::Work(work) = order else {
            return Ok(&self.prepared().0);
        };
        let at = match self.works.iter().position(|(own, _)| own == work) {
            Some(at) => at,
            None => {
                let made = self.make_bundle(run, order)?;
                self.works.push((work.clone(), made));
                self.works.len() - 1
            }
        };
        let (_, (bundle, _)) = &self.works[at];
        Ok(bundle)
    }
}

fn no_bundle(error: anyhow::Error) -> Failure {
    Failure::new(FailureClass::Environment, format!("cannot make a bundle: {error:#}"))
}

fn remove_bundle((bundle, entry): (Bundle, Entry), run: &RunContext) {
    let _ = std::fs::remove_dir_all(bundle.directory());
    run.cross_out(entry);
}

impl Subject for Oci {
    fn offers(&self) -> &'static [Need] {
        // gVisor and youki filter the system calls of the first process only, so one that enters is not
        // treated as asked.
        if ["runsc", "youki"].contains(&self.spec.name.as_str()) && self.spec.get("seccomp") != Some("off") {
            return &[Need::Launch, Need::Work];
        }
        &Need::CONTAINER
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn makes(&self) -> &'static [Offer] {
        &[Offer::Image]
    }

    fn make(&self, wish: Wish<'_>, run: &RunContext) -> Result<Held<Made>, Abort> {
        match wish {
            Wish::Image(executable, layers) => resources::unpacked(executable, layers, run),
            other => Err(resources::not_made(&self.spec, other.offer()).into()),
        }
    }

    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort> {
        let (prepared, _) = self.prepared();
        let spec = self.dressed(self.bundle_spec(draft.run, &draft.name, draft.order()), draft.run);
        let root = self.copied.as_ref().map_or_else(|| prepared.root(), |own| own.path().to_owned());
        // All share the root that is there already, as containers of one image share its layers.
        let bundle = Bundle::around(&draft.directory.join("bundle"), &root, &spec).map_err(no_bundle)?;
        Ok(Box::new(OfRuntime { oci: self, draft, bundle, first: None }))
    }

    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort> {
        if self.spec.get("seccomp") != Some("off") {
            filter::choose(run)?;
        }
        self.bundle = Some(self.make_bundle(run, Task::Start.into())?);
        Ok(())
    }

    fn fulfil(&mut self, order: Order<'_>, run: &RunContext) -> Result<Launch, Abort> {
        let directory = self.bundle_for(order, run)?.directory().to_owned();
        let name = run.next_name();
        let entry = run.note(container(&self.spec, &name))?;
        let bundle_name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let directory = directory.to_string_lossy().into_owned();
        let program = Program::new(&self.binary, self.arguments(&["run", "--bundle", &directory, &name]))
            .map_err(|error| Failure::new(FailureClass::Environment, error.to_string()))?;
        // youki begins to listen for the end of the container after it has started it, and waits for ever
        // for one that was quicker.
        let program = if self.spec.name == "youki" { program.keeping_ends_of_children() } else { program };
        let launched = client::launch(
            run,
            &Call {
                program: &program,
                name: &name,
                daemons: Ok(&[]),
                expected: &self.expected,
                // It is started here by its path; an own build may be a script around the program.
                runtime: None,
                terminal: Terminal::No,
                holds: Holds::More,
                bundle: Some(&bundle_name),
                allowed: order.allowed(run),
                limits: Limits::of(&self.spec),
            },
        );
        if launched.is_err() {
            let _ = self.remove(&name);
            // One that was struck down before it wrote down what it made does not know of its cgroups.
            super::floor::remove_cgroups(&bundle_name);
        }
        run.cross_out(entry);
        launched
    }

    fn remove(&self, name: &str) -> Result<(), Failure> {
        match insist(&self.binary, &self.arguments(&["delete", "--force", name])) {
            Ok(_) => Ok(()),
            Err(why) if why.reason.contains("does not exist") || why.reason.contains("No such file") => {
                Ok(())
            }
            Err(why) => Err(Failure::new(FailureClass::Environment, why.reason)),
        }
    }

    fn finish(&mut self, run: &RunContext) {
        let works = self.works.drain(..).map(|(_, bundle)| bundle);
        let all: Vec<_> = works.chain(self.bundle.take()).collect();
        for bundle in all {
            remove_bundle(bundle, run);
        }
        if let Some(copied) = self.copied.take() {
            copied.remove(run);
        }
        if raw::user_and_group().0 != 0 {
            forget_cache(&run.place.state.join(&self.spec.name));
        }
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }
}
