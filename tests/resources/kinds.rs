//! The kinds of resources, each with a way to make one.

use std::sync::Arc;

use dunnage::outcome::Abort;
use dunnage::resource::daemon::{Engine, daemon};
use dunnage::resource::filesystem::{TYPES, filesystem};
use dunnage::resource::mounts::{Source, mount};
use dunnage::resource::{Held, Owner};
use dunnage::sys::signals::Interrupts;

use crate::support::Need;

type Make = fn(&Arc<Owner>, &Interrupts) -> Result<Box<dyn Finish>, Abort>;

/// One way to make one.
pub struct Case {
    pub name: &'static str,
    /// As the journal has it.
    pub kind: &'static str,
    pub needs: &'static [Need],
    pub make: Make,
}

/// Whatever is held.
pub trait Finish {
    fn finish(self: Box<Self>) -> Result<(), String>;
}

impl<T> Finish for Held<T> {
    fn finish(self: Box<Self>) -> Result<(), String> {
        Held::finish(*self)
    }
}

fn boxed<T: 'static>(held: Held<T>) -> Box<dyn Finish> {
    Box::new(held)
}

pub fn cases() -> Vec<Case> {
    let case = |name, kind, needs, make| Case { name, kind, needs, make };
    vec![
        case("tmpfs", "mount", &[Need::Root], |owner, _| {
            mount(owner, Source::Filesystem("tmpfs", "size=1m", None)).map(boxed)
        }),
        case("bind", "mount", &[Need::Root], |owner, _| {
            mount(owner, Source::Bind("/usr".as_ref())).map(boxed)
        }),
        case("ext4", "filesystem", &[Need::Ext4], |owner, interrupts| {
            filesystem(owner, interrupts, TYPES[0], 64 << 20).map(boxed)
        }),
        case("xfs", "filesystem", &[Need::Xfs], |owner, interrupts| {
            filesystem(owner, interrupts, TYPES[1], 0).map(boxed)
        }),
        case("btrfs", "filesystem", &[Need::Btrfs], |owner, interrupts| {
            filesystem(owner, interrupts, TYPES[2], 0).map(boxed)
        }),
        case("containerd", "daemon", &[Need::Dockerd], |owner, interrupts| {
            daemon(owner, interrupts, Engine::Containerd, &[]).map(boxed)
        }),
        case("dockerd", "daemon", &[Need::Dockerd], |owner, interrupts| {
            daemon(owner, interrupts, Engine::Docker, &["--storage-driver", "vfs"]).map(boxed)
        }),
    ]
}
