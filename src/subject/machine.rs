//! What measuring asks of the machine around a subject's containers: that time passes, that its page cache is emptied. A scripted subject has a machine of its own, whose time passes in the script.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use super::helpers::own_cgroup;
use super::owners::Owners;
use super::room::{Kept, Room};
use super::storage::{self, Behind};
use super::way::Way;
use super::weight::Weight;
use super::{Path as NetworkPath, RunContext, Subject, addresses};
use crate::outcome::{Abort, Failure, FailureClass, OrEnvironment};
use crate::resource::address::address;
use crate::resource::{Held, mounts};
use crate::sys::block_device::{self, Counters, Number};
use crate::sys::filesystem::{self, Left};
use crate::sys::memory::charged::{Charging, Pressure};
use crate::sys::{clock, memory, page_cache};
use crate::units::{Nanos, Stamp};

/// The machine of a subject. Each default is that of this one.
pub trait Machine: Sync {
    /// Lets this time pass and does nothing.
    fn rest(&self, run: &RunContext, time: Nanos) -> Result<(), Abort> {
        run.quiet(time)
    }

    /// Empties the page cache, and makes sure that nothing of this file is left in it. Returns the bytes in it before and after.
    fn empty_the_cache(&self, file: Option<&Path>) -> Result<[i64; 2], Failure> {
        let before = page_cache::bytes().map_err(not_emptied)?;
        page_cache::empty().map_err(not_emptied)?;
        let after = page_cache::bytes().map_err(not_emptied)?;
        let left = file.map_or(Ok(0), page_cache::resident).map_err(not_emptied)?;
        match file {
            Some(file) if left > 0 => {
                let reason = format!(
                    "not as asked: {left} pages of `{}` are still in the page cache after it was emptied",
                    file.display()
                );
                Err(Failure::new(FailureClass::Treatment, reason))
            }
            _ => Ok([before, after].map(|bytes| bytes as i64)),
        }
    }

    /// The time.
    fn now(&self, _: &RunContext) -> Stamp {
        clock::now()
    }

    /// Writes what is dirty of the filesystem that holds this directory.
    fn settle(&self, directory: &Path) -> Result<(), Failure> {
        File::open(directory)
            .and_then(|place| Ok(rustix::fs::syncfs(place)?))
            .or_environment(format_args!("cannot sync `{}`", directory.display()))
    }

    /// Writes all that is dirty.
    fn settle_all(&self) {
        rustix::fs::sync();
    }

    /// The free space of the filesystem that holds this directory, if that is known.
    fn left(&self, directory: &Path) -> Option<Left> {
        filesystem::left(directory).ok()
    }

    /// A filesystem in memory, mounted.
    fn memory(&self, run: &RunContext) -> Result<Held<PathBuf>, Abort> {
        mounts::mount(&run.owner, mounts::Source::Filesystem("tmpfs", "", None))
    }

    /// What takes the bytes that a container with this first process writes at a path. A kernel of its own shows no mounts to
    /// the host.
    fn behind(&self, first: Option<i32>, path: &Path) -> Option<Behind> {
        storage::behind(first?, path).ok()
    }

    /// What a block device has counted so far.
    fn device(&self, number: Number) -> Option<Counters> {
        block_device::counters(number).ok()
    }

    /// How a file of an image that belongs to root there came to its owner, in such a container.
    fn owners(&self, first: Option<i32>, file: &Path) -> Owners {
        first.map_or(Owners::Unknown, |first| Owners::of(first, file))
    }

    /// The addresses of a container with this first process, without loopback.
    fn addresses(&self, first: Result<i32, Failure>) -> Result<Vec<IpAddr>, Failure> {
        let first = first?;
        addresses::of_process(first)
            .or_environment(format_args!("cannot read the addresses of process {first}"))
    }

    /// An address that the host has from now on for a resolver, with what takes it away again.
    fn address(&self, run: &RunContext) -> Result<(Ipv4Addr, Option<Held<Ipv4Addr>>), Abort> {
        let held = address(&run.owner)?;
        Ok((*held, Some(held)))
    }

    /// What so many containers weigh, where that is known without reading it.
    fn weight(&self, _: &RunContext, _: i64) -> Option<Weight> {
        None
    }

    /// How the memory limit of the container with this first process and name has worked so far.
    fn pressure(&self, first: Result<i32, Failure>, name: &str) -> Result<Pressure, Failure> {
        let charging = Charging::here().or_environment("cannot read memory limits")?;
        let cgroup = own_cgroup(&charging, first?, name)?;
        charging.pressure(&cgroup).or_environment(format_args!("cannot read `{}`", cgroup.display()))
    }

    /// The machine's memory now, where there is a limit to it.
    fn memory_now(&self) -> Option<memory::Machine> {
        memory::machine().ok()
    }

    /// What the machine has a fixed number of, with so many containers of this subject, which are kept here.
    fn room(&self, subject: &dyn Subject, kept: &Kept, _: usize) -> Room {
        Room::now(subject, kept)
    }

    /// Whether its time passes in a script.
    fn is_scripted(&self) -> bool {
        false
    }

    /// How many processes have been killed for want of memory.
    fn killed(&self) -> Option<i64> {
        memory::killed()
    }

    /// Which way packets go on a path, where that is known without looking.
    fn way(&self, _: NetworkPath) -> Option<Way> {
        None
    }
}

fn not_emptied(error: std::io::Error) -> Failure {
    let class = match error.kind() {
        std::io::ErrorKind::PermissionDenied => FailureClass::Permission,
        _ => FailureClass::Environment,
    };
    Failure::new(class, format!("cannot empty the page cache: {error}"))
}

/// This machine.
pub struct Here;

impl Machine for Here {}
