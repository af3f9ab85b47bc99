//! The probe as a process on the host: what every other subject is compared with.

use super::client::{self, Call, Holds, Terminal};
use super::treatment::Expected;
use super::{Component, Defaults, Facts, Kind, Launch, Layer, Place, Spec, Stage, Subject, Unavailable};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::message::Inside;
use crate::probe::{PROBE, Task};
use crate::sys::spawn::Program;

/// The kind `bare`.
pub static KIND: Kind = Kind {
    name: "bare",
    layer: Layer::Bare,
    meaning: "the probe as a process on the host",
    keys: &[],
    defaults: || Defaults { as_installed: vec![Spec::plain("bare")], equalised: Vec::new() },
    build,
    sweep: super::leaves_nothing,
};

struct Bare {
    program: Program,
    facts: Facts,
}

fn build(_: &Spec, place: &Place) -> Result<Box<dyn Subject>, Unavailable> {
    let program = Program::new(&place.executable, [PROBE, Task::Start.argument()])
        .map_err(|error| Unavailable::because(error.to_string()))?;
    let component = Component::of_file("probe", &place.executable, env!("CARGO_PKG_VERSION"))
        .map_err(|error| Unavailable::because(format!("{error:#}")))?;
    Ok(Box::new(Bare { program, facts: Facts { components: vec![component], ..Facts::default() } }))
}

impl Subject for Bare {
    fn prepare(&mut self, _: &mut Stage) -> Result<(), Abort> {
        Ok(())
    }

    fn launch(&mut self, stage: &mut Stage) -> Result<Launch, Abort> {
        let expected = Expected::bare();
        let name = stage.next_name();
        client::launch(
            stage,
            &Call {
                program: &self.program,
                name: &name,
                daemons: Ok(&[]),
                expected: &expected,
                runtime: None,
                terminal: Terminal::No,
                holds: Holds::OneProcess,
                bundle: None,
                limits: None,
            },
        )
    }

    fn remove(&self, name: &str) -> Result<(), Failure> {
        Err(Failure::new(FailureClass::Unsupported, format!("a bare process has no name, so not `{name}`")))
    }

    fn finish(&mut self, _: &mut Stage) {}

    fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// What a process on the host sees of itself, with which every container is compared.
pub fn view(stage: &mut Stage) -> Result<Inside, Abort> {
    let mut bare = build(&Spec::plain("bare"), &stage.place)
        .map_err(|why| Failure::new(FailureClass::Environment, why.reason))?;
    // Nothing to compare with yet: the first look is the host's own.
    let mut own = read_own_namespaces();
    std::mem::swap(&mut stage.host, &mut own);
    Ok(bare.launch(stage)?.message.inside)
}

/// The namespaces of this process, which a bare child shares.
fn read_own_namespaces() -> Inside {
    let read = |name: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}")).ok()?;
        let digits: String = link.to_str()?.chars().filter(char::is_ascii_digit).collect();
        Some((name.to_owned(), digits.parse().ok()?))
    };
    let names = ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"];
    Inside { namespaces: names.into_iter().filter_map(read).collect(), ..Inside::default() }
}
