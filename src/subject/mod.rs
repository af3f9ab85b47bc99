//! Subjects: where the work runs. A kind of subject is one file and one line in `KINDS`; no kind
//! names an experiment. What is common to all that are started through a command line is in
//! `client`, what a run lends to its subjects is in `context`, containers as handles are in `container`.

mod account;
mod addresses;
pub mod api;
pub mod bare;
mod channel;
pub mod client;
pub mod component;
pub mod container;
pub mod containerd;
pub mod context;
pub mod docker;
pub mod engine;
pub mod fake;
pub mod filter;
pub mod floor;
pub mod limits;
pub mod login;
pub mod oci;
pub mod pieces;
pub mod podman;
pub mod resources;
pub mod roots;
pub mod survey;
pub mod treatment;
pub(crate) mod unavailable;
pub mod work;

pub use crate::record::ComponentFacts as Component;
pub use crate::resource::Place;
pub use crate::sys::process::on_path;
pub use container::{Container, Entered, Span};
pub use context::RunContext;
pub use dunnage_analysis::subject::{Access, Key, Layer, Mount, Need, Spec, SpecError, Values, kinds, spec};
pub use pieces::Apart;
pub use resources::{Joint, Made, Offer, Wish};
pub(crate) use unavailable::by_cause;
pub use unavailable::{Cause, Unavailable};
pub use work::{ContainerRequest, Order, Resident, Work};

use std::fmt;

use self::container::{Draft, Verbs};
use self::treatment::Expected;
use crate::outcome::{Abort, Failure};
use crate::probe::Task;
use crate::probe::message::Message;
use crate::resource::{Found, Held};
use crate::units::{Nanos, Stamp};

/// CPU time of one launch, or of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Of the command and all that descends from it.
    pub client: Nanos,
    /// Of daemons and all that they started.
    pub engine: Nanos,
    /// Processes seen.
    pub processes: i64,
}

impl std::ops::AddAssign for Cpu {
    fn add_assign(&mut self, more: Cpu) {
        self.client = self.client + more.client;
        self.engine = self.engine + more.engine;
        self.processes += more.processes;
    }
}

/// One launch, from the command until all was gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Right before the system call that starts the command.
    pub spawned: Stamp,
    /// When its end was reported.
    pub returned: Stamp,
    /// When its last process, mount and cgroup was away.
    pub gone: Stamp,
    /// Ends of the steps of the command that can be told apart, in order, by name; none where it is
    /// seen from outside only.
    pub parts: Vec<(&'static str, Stamp)>,
    /// How long the first look for remains took: what vanished during it counts as gone when the
    /// command returned.
    pub look: Nanos,
    /// What the probe said from inside.
    pub message: Message,
    /// CPU time, or why there is none.
    pub cpu: Result<Cpu, String>,
    /// What was found inside, as recorded with the sample.
    pub treatment: Vec<(&'static str, String)>,
}

/// What a subject is made of: recorded with the run, shown by `list`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// Its programs.
    pub components: Vec<Component>,
    /// The OCI runtime that does the work, where one does.
    pub runtime: Option<String>,
    /// More that a reader needs: storage driver, cgroup driver, uptime of the daemon.
    pub notes: Vec<(&'static str, String)>,
}

/// What can be said of a subject once its programs are found.
#[derive(Debug, Clone)]
pub struct Description {
    /// What it was asked to be.
    pub spec: Spec,
    /// What it is made of.
    pub facts: Facts,
    /// What it can do.
    pub offers: &'static [Need],
    /// What it can make beside containers.
    pub makes: &'static [Offer],
    /// Whether ports of its containers can be had at the host.
    pub publishes_ports: bool,
    /// What the probe must find inside.
    pub expected: Expected,
}

impl Description {
    /// Of a subject that starts containers, one launch each, and makes nothing else.
    fn new(spec: &Spec, facts: Facts, expected: Expected) -> Description {
        let offers = &[Need::Launch, Need::Work];
        Description { spec: spec.clone(), facts, offers, makes: &[], publishes_ports: false, expected }
    }
}

/// Something that can start a container, or stands in for one.
pub trait Subject: Send + Sync {
    /// What can be said of it.
    fn about(&self) -> &Description;
    /// The verbs of a container that is about to be made, for [`Container::create`].
    fn verbs<'a>(&'a self, draft: Draft<'a>) -> Result<Box<dyn Verbs + 'a>, Abort>;
    /// Its pieces, for subjects that offer them.
    fn pieces(&mut self) -> Option<&mut dyn Apart> {
        None
    }
    /// Makes what all launches share: image, bundle. Called once before the first launch; what it made goes with the
    /// subject, except images, which are a labelled cache.
    fn prepare(&mut self, run: &RunContext) -> Result<(), Abort>;
    /// Starts the probe once with this order, waits until all of it is gone, and checks the treatment.
    /// Leaves nothing behind, whatever it returns.
    fn fulfil(&mut self, order: Order<'_>, run: &RunContext) -> Result<Launch, Abort>;
    /// Starts the probe, which ends at once.
    fn launch(&mut self, run: &RunContext) -> Result<Launch, Abort> {
        self.fulfil(Task::Start.into(), run)
    }
    /// Starts the probe, which works; what came of it stands in its message.
    fn work(&mut self, work: &Work, run: &RunContext) -> Result<Launch, Abort> {
        self.fulfil(work.into(), run)
    }
    /// Makes one of these for this run, which holds it.
    fn make(&self, wish: Wish<'_>, run: &RunContext) -> Result<Held<Made>, Abort> {
        let _ = run;
        Err(resources::not_made(&self.about().spec, wish.offer()).into())
    }
    /// Removes one that it made for a run, as after a kill; fine where that has none of this name.
    fn unmake(&self, offer: Offer, name: &str, run: &str) -> Result<Found, Failure> {
        let _ = (name, run);
        Err(resources::not_made(&self.about().spec, offer))
    }
    /// Removes the instance with this name and whatever is left of it, as after a kill.
    fn remove(&self, name: &str) -> Result<Found, Failure>;
    /// Whether its time passes on the kernel's clock; scripted ones have their own.
    fn has_a_clock(&self) -> bool {
        true
    }
}

/// A kind of subject.
pub struct Kind {
    /// What can be said of it without a machine: its name, layer and keys.
    pub declared: &'static kinds::Kind,
    /// What a run without `-s` takes where it works: as a person who just installed it would start it.
    pub as_installed: &'static [&'static str],
    /// The same with the differences between engines taken away.
    pub equalised: &'static [&'static str],
    /// Finds its programs and makes a subject of a checked specification.
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

/// Removes what is ours in a kind's programs and places and belongs to no run that is alive, and says
/// what that was.
pub type Sweep = fn(&Place, Broom) -> Vec<String>;

/// What a sweep takes, and whether it takes it or only says what it would.
#[derive(Debug, Clone, Copy)]
pub struct Broom {
    /// Whether it takes what killed runs left.
    pub containers: bool,
    /// Whether it takes what runs share, such as images; only where nobody runs.
    pub shared: bool,
    /// Whether it removes nothing.
    pub dry: bool,
}

impl Broom {
    /// What it says of something that it removes so, or could not. What went in between is another sweep's to tell.
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

/// The sweep of a kind that leaves nothing with anybody.
fn leaves_nothing(_: &Place, _: Broom) -> Vec<String> {
    Vec::new()
}

/// Every kind of subject, the nearest to the kernel first.
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

/// The kinds that people are told about.
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
