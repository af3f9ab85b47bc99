//! How experiments about storage are measured: a place for files, a container that has it, and what the block device
//! below counts meanwhile.

pub mod disk;
pub mod layers;
pub mod owners;

use std::path::{Path, PathBuf};

use dunnage_orders::Ask;
use dunnage_orders::files::{Forget, Forgotten};

use crate::experiment::storage::names;
use crate::outcome::{Abort, Failure};
use crate::resource::Held;
use crate::subject::machine::Machine;
use crate::subject::storage::{Behind, Class};
use crate::subject::treatment::Own;
use crate::subject::{Access, Container, ContainerRequest, Mount, Object, ObjectSpec, RunContext, Subject};
use crate::sys::block_device::Counters;
use crate::units::Nanos;

/// The directory of the files in a container's own root, and in a volume.
const INSIDE: &str = "/dunnage-files";
/// How long the device is watched before bytes are written.
const BEFORE: Nanos = Nanos::from_millis(20);
/// How long dropping files from the page cache may take, with their sync.
const FORGETTING: Nanos = Nanos::from_millis(60_000);
/// Of the free space, how much the files of a sample may take: others need some as well.
const SHARE: u64 = 2;

/// Where files are, and what must exist meanwhile.
pub struct Place {
    /// The directory of the files, as the program inside sees it.
    pub path: PathBuf,
    /// What its container has for it.
    pub request: ContainerRequest,
    /// The directory on the host that the bytes go through, if dunnage made one.
    host: Option<PathBuf>,
    /// These go after the container.
    _directory: Option<Held<PathBuf>>,
    _mounted: Option<Held<PathBuf>>,
    _volume: Option<Held<Object>>,
}

/// Where a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A directory of the host's that is mounted.
    Bind,
    /// The container's root.
    Root,
    /// A named volume.
    Volume,
    /// A filesystem in memory that is mounted.
    Memory,
}

impl Place {
    /// Makes a place; a process without a root of its own has a directory of the host's instead of its root and of a volume.
    pub fn make(subject: &dyn Subject, at: At, run: &RunContext) -> Result<Place, Abort> {
        let is_on_host = subject.about().expected.mount == Own::Host;
        let mut place = Place::with(ContainerRequest { may_go: true, ..ContainerRequest::default() });
        match at {
            At::Root | At::Volume | At::Bind if is_on_host || at == At::Bind => {
                let directory = run.empty_directory()?;
                place.bind(&directory);
                place._directory = Some(directory);
            }
            At::Memory => {
                let mounted = subject.machine().memory(run)?;
                place.bind(&mounted);
                place._mounted = Some(mounted);
            }
            At::Volume => {
                let volume = subject.make(ObjectSpec::Volume, run)?;
                let name = volume.name().unwrap_or_default().to_owned();
                place.request.volumes.push((name, INSIDE.into()));
                place.path = Path::new(INSIDE).join("files");
                place._volume = Some(volume);
            }
            At::Root | At::Bind => {}
        }
        Ok(place)
    }

    /// Files of an image that are below this name.
    pub fn in_image(image: Object, name: &str) -> Place {
        let request = ContainerRequest { image: Some(image), ..ContainerRequest::default() };
        Place { path: Path::new(INSIDE).join(name), ..Place::with(request) }
    }

    /// A directory of the host's, with what samples before left there.
    pub fn in_mount(directory: &Path) -> Place {
        let mut place = Place::with(ContainerRequest::default());
        place.bind(directory);
        place
    }

    fn with(request: ContainerRequest) -> Place {
        let path = INSIDE.into();
        Place { path, request, host: None, _directory: None, _mounted: None, _volume: None }
    }

    /// A directory of the host's has the same path inside. Only the user outside that is root inside can reach it.
    fn bind(&mut self, directory: &Path) {
        let own = directory.to_owned();
        self.request.mounts.push(Mount { host: own.clone(), inside: own.clone(), access: Access::Given });
        self.path = directory.join("files");
        self.host = Some(own);
    }

    /// Fails where there is no room for this many bytes.
    pub fn has_room(
        &self,
        machine: &dyn Machine,
        behind: Option<&Behind>,
        bytes: u64,
    ) -> Result<(), Failure> {
        let upper = behind.and_then(|behind| behind.upper.clone());
        let Some(directory) = upper.or_else(|| self.host.clone()) else { return Ok(()) };
        // One that only its own mount namespace has is not to be seen from here.
        let Some(left) = machine.left(&directory) else { return Ok(()) };
        if left.bytes >= SHARE * bytes {
            return Ok(());
        }
        Err(Failure::environment(format!(
            "no space left: {} MB are wanted and half of the free space may be used, but `{}` has {} MB free",
            bytes.div_ceil(1_000_000),
            directory.display(),
            left.bytes / 1_000_000
        )))
    }
}

/// A container that carries out orders about files.
pub struct Files<'a> {
    container: Container<'a>,
    machine: &'a dyn Machine,
    /// What takes the bytes, where the host can see that.
    pub behind: Option<Behind>,
    run: &'a RunContext,
}

/// What the block device counted in a window.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// While the order was carried out; none without a device.
    pub during: Option<Counters>,
    /// Bytes that others would have written in the same time, by what they wrote right before.
    pub others: Option<i64>,
}

impl<'a> Files<'a> {
    /// Starts it.
    pub fn begin(subject: &'a dyn Subject, place: &Place, run: &'a RunContext) -> Result<Files<'a>, Abort> {
        let mut container = crate::subject::pair::begun(subject, place.request.clone(), run)?;
        let above = place.path.parent().unwrap_or(Path::new("/")).to_owned();
        let machine = subject.machine();
        let behind = machine.behind(container.first_process().ok(), &above);
        Ok(Files { container, machine, behind, run })
    }

    /// Carries out an order that takes this long at most.
    pub fn ask<O: Ask>(&mut self, order: O, takes: Nanos) -> Result<O::Answer, Abort> {
        Ok(self.container.ask(order, takes)?.done)
    }

    /// Drops numbered files of a directory from the page cache, and says why a read would not come from a device if some of
    /// their pages stay.
    pub fn forget(&mut self, path: PathBuf, count: u64) -> Result<Option<String>, Abort> {
        let Forgotten { resident, pages } = self.ask(Forget { path, count }, FORGETTING)?;
        let why = || {
            format!("{resident} of {pages} pages stayed in memory, so they would not be read from a device")
        };
        Ok((resident > 0).then(why))
    }

    fn counted(&self) -> Option<Counters> {
        self.machine.device(self.behind.as_ref()?.device?)
    }

    /// Carries out an order after everything older has been written, and says what the device counted while it `took` its time.
    pub fn watched<O: Ask>(
        &mut self,
        order: O,
        takes: Nanos,
        took: fn(&O::Answer) -> Nanos,
    ) -> Result<(O::Answer, Window), Abort> {
        self.settle()?;
        let first = self.counted();
        self.machine.rest(self.run, BEFORE)?;
        let before = self.counted();
        let done = self.ask(order, takes)?;
        let after = self.counted();
        let during = after.zip(before).and_then(|(after, before)| after.since(before));
        let took = took(&done).0;
        let quiet = before.zip(first).and_then(|(before, first)| before.since(first));
        let others = quiet.map(|own| (own.bytes_written as f64 * took as f64 / BEFORE.0 as f64) as i64);
        Ok((done, Window { during, others }))
    }

    /// Writes what is dirty, of the filesystem that takes the bytes alone where it can be reached.
    fn settle(&self) -> Result<(), Failure> {
        let upper = self.behind.as_ref().and_then(|behind| behind.upper.clone());
        let place = upper.filter(|upper| upper.exists()).unwrap_or_else(|| self.run.workspace());
        self.machine.settle(&place)
    }

    /// What was found inside, and what takes the bytes, as recorded.
    pub fn treatment(&mut self) -> Result<Vec<(&'static str, String)>, Abort> {
        let mut facts = self.container.treatment()?;
        let Some(behind) = &self.behind else { return Ok(facts) };
        let durability = match behind.class {
            Class::Synced => "ordinary",
            Class::Volatile => "volatile",
            Class::Memory => "memory",
        };
        let device = match (&behind.device_name, behind.device) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(number)) => Some(format!("{number:?}")),
            (None, None) => (behind.class == Class::Memory).then(|| "none".to_owned()),
        };
        let more = [(names::MOUNT, &behind.mount), (names::FILESYSTEM, &behind.filesystem)];
        facts.extend(more.map(|(name, fact)| (name.text(), fact.clone())));
        facts.push((names::DURABILITY.text(), durability.to_owned()));
        facts.extend(device.map(|device| (names::DEVICE.text(), device)));
        if let Some(backing) = &behind.backing {
            let on = backing.filesystem.as_deref().unwrap_or("an unknown filesystem");
            facts.push((names::BACKING.text(), format!("a file on {on}")));
        }
        Ok(facts)
    }
}
