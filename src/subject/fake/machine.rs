//! The machine around scripted containers.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use dunnage_analysis::subject::room::Resource;

use super::{DEVICE, Fake, OWN, memory};
use crate::outcome::{Abort, Failure};
use crate::resource::Held;
use crate::subject::machine::Machine;
use crate::subject::owners::Owners;
use crate::subject::room::{Kept, Room};
use crate::subject::storage::{Behind, Class};
use crate::subject::way::Way;
use crate::subject::weight::Weight;
use crate::subject::{Path as NetworkPath, RunContext, Subject};
use crate::sys::block_device::{Counters, Number};
use crate::sys::filesystem::Left;
use crate::sys::memory::{self as memory_of, charged::Pressure};
use crate::units::{Nanos, Stamp};

/// Its time passes in the script, and nothing else happens.
impl Machine for Fake {
    fn rest(&self, run: &RunContext, time: Nanos) -> Result<(), Abort> {
        run.pass(time);
        Ok(())
    }

    fn empty_the_cache(&self, _: Option<&Path>) -> Result<[i64; 2], Failure> {
        Ok([0, 0])
    }

    fn now(&self, run: &RunContext) -> Stamp {
        run.pass(Nanos(0))
    }

    fn settle(&self, _: &Path) -> Result<(), Failure> {
        Ok(())
    }

    fn settle_all(&self) {}

    fn left(&self, _: &Path) -> Option<Left> {
        let made = self.script().made;
        Some(Left { bytes: (1 << 50) - made * 1024, files: Some((1 << 40) - made) })
    }

    fn memory(&self, run: &RunContext) -> Result<Held<PathBuf>, Abort> {
        let directory = run.empty_directory()?;
        self.script().memory.push(directory.to_path_buf());
        Ok(directory)
    }

    fn behind(&self, _: Option<i32>, path: &Path) -> Option<Behind> {
        let in_memory = self.script().memory.iter().any(|own| own == path);
        let (mount, class) = match (in_memory, path.is_dir()) {
            (true, _) => ("tmpfs", Class::Memory),
            (_, true) => ("ext4", Class::Synced),
            _ => ("overlay", Class::Synced),
        };
        Some(Behind {
            mount: mount.to_owned(),
            options: Vec::new(),
            class,
            upper: Some(PathBuf::from("/")),
            filesystem: if in_memory { mount } else { "ext4" }.to_owned(),
            device: (!in_memory).then_some(DEVICE),
            device_name: (!in_memory).then(|| "vda".to_owned()),
            backing: None,
        })
    }

    fn device(&self, _: Number) -> Option<Counters> {
        Some(self.script().device)
    }

    fn weight(&self, _: &RunContext, containers: i64) -> Option<Weight> {
        let noise = self.script().rng.as_mut().map_or(0.0, |rng| self.noise * rng.standard_normal());
        Some(memory::weight(self.time, noise, containers))
    }

    fn pressure(&self, _: Result<i32, Failure>, _: &str) -> Result<Pressure, Failure> {
        Ok(self.script().pressure)
    }

    fn memory_now(&self) -> Option<memory_of::Machine> {
        None
    }

    fn room(&self, _: &dyn Subject, _: &Kept, containers: usize) -> Room {
        Room::scripted(Resource::Tasks, 100 + 10 * containers as i64, 32_768)
    }

    fn is_scripted(&self) -> bool {
        true
    }

    fn killed(&self) -> Option<i64> {
        None
    }

    fn addresses(&self, _: Result<i32, Failure>) -> Result<Vec<IpAddr>, Failure> {
        Ok(vec![OWN.into()])
    }

    fn address(&self, _: &RunContext) -> Result<(Ipv4Addr, Option<Held<Ipv4Addr>>), Abort> {
        Ok((OWN, None))
    }

    fn way(&self, _: NetworkPath) -> Option<Way> {
        let links = [
            ("mtu", "eth0 1500"),
            ("mtu", "veth 1500"),
            ("offloads", "eth0 tso gso"),
            ("offloads", "veth gso"),
        ];
        Some(Way {
            translation: Ok("none".to_owned()),
            listener: None,
            interfaces: Vec::new(),
            links: links.map(|(fact, told)| (fact.to_owned(), told.to_owned())).to_vec(),
            helpers: Vec::new(),
            helper_cpu: Nanos(0),
        })
    }

    fn owners(&self, _: Option<i32>, _: &Path) -> Owners {
        Owners::Chowned
    }
}
