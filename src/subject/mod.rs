//! Subjects: where the work runs. A kind of subject is one file and one line in `KINDS`; no kind names an
//! experiment. What all subjects with a command line have in common is in `client`, what a run gives to its
//! subjects in `context`, containers as handles in `container`, what a kind does for one of them in `draft`.

mod account;
pub mod addresses;
pub mod api;
pub mod bare;
pub mod burst;
mod channel;
pub mod client;
pub mod component;
mod confined;
pub mod container;
pub mod containerd;
pub mod context;
pub mod docker;
pub mod draft;
pub mod drivers;
pub mod engine;
pub mod fake;
pub mod filter;
pub mod floor;
pub mod helpers;
pub mod limits;
pub mod login;
pub mod lookup;
pub mod machine;
pub mod nested;
pub mod observer;
pub mod oci;
pub mod owners;
pub mod pair;
pub mod pieces;
pub mod podman;
mod private;
pub mod ramp;
pub mod resources;
pub mod room;
pub mod roots;
pub mod storage;
mod subordinate;
pub mod survey;
pub mod treatment;
pub(crate) mod unavailable;
pub mod way;
pub mod weighing;
pub mod weight;
pub mod work;

pub use crate::record::ComponentFacts as Component;
pub use crate::resource::Place;
pub use crate::sys::process::on_path;
pub use container::Container;
pub use context::RunContext;
pub use draft::{Entered, GRACE, Said, Span};
pub use dunnage_analysis::subject::{
    Access, Key, Layer, Mount, Need, Path, Spec, SpecError, Values, instruments, kinds, spec,
};
pub use observer::Observed;
pub use pieces::Apart;
pub use resources::{Attachment, Object, ObjectKind, ObjectSpec};
pub(crate) use unavailable::by_cause;
pub use unavailable::{Cause, Unavailable};
pub use work::{ContainerRequest, Entrypoint, Port, Resident, Transport, Work};

use std::fmt;

use dunnage_analysis::names::StampName;

use self::draft::{Draft, Verbs};
use self::machine::Machine;
use self::treatment::Expected;
use crate::outcome::{Abort, Failure};
use crate::probe::Task;
use crate::probe::message::Message;
use crate::resource::{Found, Held};
use crate::units::{Nanos, Stamp};

/// CPU time of one launch, or of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Of the command and all its descendants.
    pub client: Nanos,
    /// Of daemons and everything that they started; of one that overlaps with others only what they started for its own
    /// container.
    pub engine: Nanos,
    /// The rest of the daemons' time, which belongs to all that overlapped; 0 where nothing did.
    pub shared: Nanos,
    /// Number of processes seen.
    pub processes: i64,
    /// Number of those that run only to forward published ports.
    pub port_helpers: i64,
}

impl std::ops::AddAssign for Cpu {
    fn add_assign(&mut self, more: Cpu) {
        self.client = self.client + more.client;
        self.engine = self.engine + more.engine;
        self.shared = self.shared + more.shared;
        self.processes += more.processes;
        self.port_helpers += more.port_helpers;
    }
}

impl std::ops::Sub for Cpu {
    type Output = Cpu;

    fn sub(self, less: Cpu) -> Cpu {
        Cpu {
            client: Nanos(self.client.0 - less.client.0),
            engine: Nanos(self.engine.0 - less.engine.0),
            shared: Nanos(self.shared.0 - less.shared.0),
            processes: self.processes - less.processes,
            port_helpers: self.port_helpers - less.port_helpers,
        }
    }
}

/// One launch, from the command until all was gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Right before the system call that starts the command.
    pub spawned: Stamp,
    /// When its end was reported.
    pub returned: Stamp,
    /// When its last process, mount and cgroup had disappeared.
    pub gone: Stamp,
    /// Ends of the steps of the command, by name and in order; empty where it is only seen from outside.
    pub parts: Vec<(StampName, Stamp)>,
    /// How long the first look for remains took: what disappeared during it counts as gone when the command
    /// returned.
    pub look: Nanos,
    /// What the probe reported from inside.
    pub message: Message,
    /// What was seen of it from outside.
    pub observed: Observed,
    /// What was found inside, as recorded with the sample.
    pub treatment: Vec<(&'static str, String)>,
}

/// What a subject consists of: recorded with the run, shown by `list`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Its programs.
    pub components: Vec<Component>,
    /// The OCI runtime that does the work, where one does.
    pub runtime: Option<String>,
    /// Other facts for a reader: storage driver, cgroup driver, uptime of the daemon.
    pub notes: Vec<(&'static str, String)>,
}

/// The description of a subject once its programs are found.
#[derive(Debug, Clone)]
pub struct Description {
    /// Its specification.
    pub spec: Spec,
    /// What it consists of.
    pub facts: Facts,
    /// What it can do.
    pub offers: Vec<Need>,
    /// What it can make other than containers.
    pub makes: &'static [ObjectKind],
    /// What the probe must find inside.
    pub expected: Expected,
}

impl Description {
    /// A subject that starts containers, one launch each, and makes nothing else.
    fn new(spec: &Spec, facts: Facts, expected: Expected) -> Description {
        let offers = vec![Need::Launch, Need::Work];
        Description { spec: spec.clone(), facts, offers, makes: &[], expected }
    }
}

/// Something that can start a container, or a substitute for one.
pub trait Subject: Send + Sync {
    /// Its description.
    fn about(&self) -> &Description;
    /// The verbs of a container that is about to be made, for [`Container::create`].
    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort>;
    /// The daemons that work for it, or why some of them are not known.
    fn daemons(&self) -> Result<&[i32], &str> {
        Ok(&[])
    }
    /// Its pieces, for subjects that offer them.
    fn pieces(&mut self) -> Option<&mut dyn Apart> {
        None
    }
    /// Makes what all launches share: image, bundle. Called once before the first launch; what it made is
    /// removed with the subject, except images, which are a labelled cache.
    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort>;
    /// Starts the probe once with this order, waits until the launch is completely gone, and checks the
    /// treatment. Leaves nothing behind, also when it fails.
    fn fulfil(&mut self, entrypoint: Entrypoint<'_>, run: &RunContext) -> Result<Launch, Abort>;
    /// Starts the probe, which ends at once.
    fn launch(&mut self, run: &RunContext) -> Result<Launch, Abort> {
        self.fulfil(Task::Start.into(), run)
    }
    /// Starts the probe, which works; its message has the result.
    fn work(&mut self, work: &Work, run: &RunContext) -> Result<Launch, Abort> {
        self.fulfil(work.into(), run)
    }
    /// Makes one of these for this run, which owns it.
    fn make(&self, asked: ObjectSpec<'_>, run: &RunContext) -> Result<Held<Object>, Abort> {
        let _ = run;
        Err(resources::not_made(&self.about().spec, asked.kind()).into())
    }
    /// Removes one that it made for a run, for instance after a kill; finding none of this name is fine.
    fn unmake(&self, object: ObjectKind, name: &str, run: &str) -> Result<Found, Failure> {
        let _ = (name, run);
        Err(resources::not_made(&self.about().spec, object))
    }
    /// Removes the instance with this name and everything left of it, for instance after a kill.
    fn remove(&self, name: &str) -> Result<Found, Failure>;
    /// Whether it has a container of this name.
    fn knows(&self, _name: &str) -> bool {
        false
    }
    /// What tells its store of images from those of other instances of the same specification, if it has one of its own.
    fn own_store(&self) -> Option<usize> {
        None
    }
    /// How many more locks its engine has for containers, where it has a fixed number of them.
    fn free_locks(&self) -> Option<i64> {
        None
    }
    /// Where programs outside of its containers run.
    fn host<'a>(&'a self, usual: &'a dyn Subject) -> &'a dyn Subject {
        usual
    }
    /// The machine around its containers.
    fn machine(&self) -> &dyn Machine {
        &machine::Here
    }
}

/// A kind of subject.
pub struct Kind {
    /// Its declaration, which needs no machine: name, layer and keys.
    pub declared: &'static kinds::Kind,
    /// What a run without `-s` measures where it works: defaults as in a fresh installation.
    pub as_installed: &'static [&'static str],
    /// The same without the differences between engines.
    pub equalised: &'static [&'static str],
    /// Finds its programs and makes a subject from a checked specification.
    pub build: Build,
    /// Removes what killed runs left with it.
    pub sweep: Sweep,
}

impl std::ops::Deref for Kind {
    type Target = kinds::Kind;

    fn deref(&self) -> &kinds::Kind {
        self.declared
    }
}

/// Finds the programs of a kind and makes a subject.
pub type Build = fn(&Spec, &Place) -> Result<Box<dyn Subject>, Unavailable>;

/// Removes what dunnage made in a kind's programs and places and no living run owns, and says what that was.
pub type Sweep = fn(&Place, Broom) -> Vec<String>;

/// What a sweep removes, and whether it removes it or only reports it.
#[derive(Debug, Clone, Copy)]
pub struct Broom {
    /// Whether to remove what killed runs left.
    pub containers: bool,
    /// Whether to remove what runs share, such as images; only where no run is alive.
    pub shared: bool,
    /// Whether to remove nothing.
    pub dry: bool,
}

impl Broom {
    /// The message about one thing that it removes, or could not. What disappeared meanwhile is another
    /// sweep's to report.
    pub fn take<E: fmt::Display>(
        self,
        what: impl fmt::Display,
        remove: impl FnOnce() -> Result<Found, E>,
    ) -> Option<String> {
        if self.dry {
            return Some(format!("would remove {what}"));
        }
        match remove() {
            Ok(Found::Yes) => Some(format!("removed {what}")),
            Ok(Found::No) => None,
            Err(why) => Some(format!("could not remove {what}: {why}")),
        }
    }
}

/// The sweep of a kind that leaves nothing behind.
fn leaves_nothing(_: &Place, _: Broom) -> Vec<String> {
    Vec::new()
}

/// Every kind of subject, nearest to the kernel first.
pub static KINDS: &[&Kind] = &[
    &bare::KIND,
    &floor::KIND,
    &oci::CRUN,
    &oci::RUNC,
    &oci::YOUKI,
    &oci::RUNSC,
    &containerd::KIND,
    &docker::KIND,
    &podman::KIND,
    &fake::KIND,
];

/// The kinds that users see.
pub fn shown_kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().copied().filter(|kind| kind.name != kinds::FAKE.name)
}

/// The kind of a specification, after checking its name, runtime and keys.
pub fn kind_of(spec: &Spec) -> Result<&'static Kind, SpecError> {
    let declared = kinds::of(spec)?;
    Ok(KINDS
        .iter()
        .find(|kind| kind.name == declared.name)
        .expect("every kind that is declared can be built"))
}
