//! What observers see of launches and of what is done with containers: their four moments, the CPU time of containers that start
//! at the same moment, and helpers that no kind of subject declares.

use std::process::Child;
use std::sync::{Barrier, Mutex};

use ::dunnage::experiment::memory::names::UNREAD;
use ::dunnage::outcome::{Artefact, Word};
use ::dunnage::subject::Cpu;
use ::dunnage::subject::helpers::By;
use ::dunnage::subject::kinds::Duty;
use ::dunnage::subject::observer::{Observed, Observer, Watched};
use ::dunnage::sys::clock;
use ::dunnage::units::Stamp;

use super::*;
use crate::support::skip;

/// How long the first container's probe is busy in addition.
const BUSY: Spin = Spin { millis: 400 };

/// What was seen of a container, and what its first process used by the kernel's own clock.
struct Seen {
    cpu: Cpu,
    first: Nanos,
}

/// Two containers of this subject start at the same moment, and one of them is busy in addition.
fn seen_at_once(text: &str, run: &RunContext) -> [Seen; 2] {
    let subject = subject(text, run);
    let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
    let both = Barrier::new(2);
    let seen = |order: Spin| {
        let mut container = Container::create(subject.as_ref(), &request, run).unwrap();
        both.wait();
        let watched = container.watched(|container| {
            container.start()?;
            container.ready()?;
            container.ask(order, Nanos(0)).map(drop)
        });
        let ((), observed) = watched.unwrap_or_else(|abort| panic!("{text}: {abort:?}"));
        let cpu = observed.cpu.unwrap_or_else(|why| panic!("{text}: {why}"));
        let first = container.cpu().unwrap();
        // Neither goes before both are counted.
        both.wait();
        Seen { cpu, first }
    };
    std::thread::scope(|scope| {
        [BUSY, NOTHING].map(|order| scope.spawn(move || seen(order))).map(|one| one.join().unwrap())
    })
}

fn each_has_its_own(test: &str, text: &str, has_daemons: bool) {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    if let Err(why) = &run.listener {
        return skip(test, Need::PerfEvents, why);
    }
    let [busy, calm] = seen_at_once(text, &run);
    for Seen { cpu, first } in [&busy, &calm] {
        // The client, and for an engine with daemons at least shim, runtime and probe.
        assert!(cpu.client.0 > 0 && cpu.processes >= if has_daemons { 4 } else { 1 }, "{text}: {cpu:?}");
        assert_eq!((cpu.engine.0 > 0, cpu.shared.0 > 0), (has_daemons, has_daemons), "{text}: {cpu:?}");
        // The kernel charges a task from its wake-up, dunnage from its switch.
        let own = if has_daemons { cpu.engine } else { cpu.client };
        assert!(own.0 > first.0 * 9 / 10, "{text}: {cpu:?}, its first process {first}");
    }
    let own = |seen: &Seen| seen.cpu.client.0 + seen.cpu.engine.0;
    let (more, of_first) = (own(&busy) - own(&calm), busy.first.0 - calm.first.0);
    assert!(of_first > 0 && more > of_first / 2, "{text}: {:?}, {:?}: {more} {of_first}", busy.cpu, calm.cpu);
    let id = run.id.clone();
    drop(run);
    assert_eq!(left::of_run(&id), Vec::<String>::new());
}

#[test]
fn containers_that_start_at_the_same_moment_each_have_their_own_cpu_time() {
    const TEST: &str = "containers_that_start_at_the_same_moment_each_have_their_own_cpu_time";
    for (need, text, has_daemons) in [
        (Need::Root, "floor", false),
        (Need::Podman, "podman", false),
        (Need::Docker, "docker", true),
        (Need::Containerd, "containerd", true),
    ] {
        if !lacks(TEST, need) {
            each_has_its_own(TEST, text, has_daemons);
        }
    }
}

/// The moments of the planted observer.
static MOMENTS: Mutex<Vec<(&str, Stamp)>> = Mutex::new(Vec::new());

struct Planted;

impl Planted {
    fn note(&self, moment: &'static str) {
        MOMENTS.lock().unwrap().push((moment, clock::now()));
    }
}

impl<'a> Observer<'a> for Planted {
    fn arm(&mut self, of: &Watched<'a>) -> Result<(), Abort> {
        assert!(of.own.is_empty() && of.daemons == Ok(&[]));
        self.note("arm");
        Ok(())
    }

    fn stop(&mut self, _: &Watched<'a>) {
        self.note("stop");
    }

    fn facts(&mut self, _: &Watched<'a>, found: &mut Observed) -> Result<(), Abort> {
        self.note("facts");
        found.counters.push((UNREAD, 42));
        found.facts.push(("planted", "fact".to_owned()));
        Ok(())
    }

    fn artefacts(&mut self) -> Vec<(Word, Artefact)> {
        self.note("artefacts");
        vec![("planted".into(), Artefact::Bytes(b"file".to_vec()))]
    }
}

#[test]
fn an_observer_is_armed_before_a_launch_and_stopped_after_it() {
    let dunnage = Dunnage::new();
    let mut run = run_in(&dunnage.state());
    run.observers.push(|_| Box::new(Planted));
    let mut subject = subject("floor", &run);
    MOMENTS.lock().unwrap().clear();
    let launch = subject.launch(&run).unwrap();
    let moments = std::mem::take(&mut *MOMENTS.lock().unwrap());
    let names: Vec<&str> = moments.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["arm", "stop", "facts", "artefacts"]);
    assert!(moments[0].1 <= launch.spawned && launch.gone <= moments[1].1, "{moments:?}");
    let observed = &launch.observed;
    assert_eq!(observed.counters, [(UNREAD, 42)]);
    assert_eq!(observed.artefacts, [("planted".into(), Artefact::Bytes(b"file".to_vec()))]);
    assert_eq!(observed.facts, [("planted", "fact".to_owned())]);
    ends(&dunnage, subject, run);
}

/// A process in a cgroup of its own, until this is dropped.
struct Placed(Child, PathBuf);

impl Placed {
    fn at(place: PathBuf) -> Placed {
        std::fs::create_dir(&place).unwrap();
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        std::fs::write(place.join("cgroup.procs"), child.id().to_string()).unwrap();
        Placed(child, place)
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        until("its cgroup is empty", || std::fs::remove_dir(&self.1).is_ok());
    }
}

#[test]
fn a_helper_that_no_kind_declares_is_found_by_its_cgroup() {
    if lacks("a_helper_that_no_kind_declares_is_found_by_its_cgroup", Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject("floor", &run);
    let mut container = service(subject.as_ref(), None, &run);
    let helpers = container.helpers();
    assert!(helpers.is_empty(), "a container of the floor has no helpers: {helpers:?}");
    let name = container.name().to_owned();
    let own = container.cgroups().unwrap().into_iter().find(|path| path.ends_with(&name)).unwrap();
    let watcher = Placed::at(own.with_file_name(format!("watch-{name}")));
    let other = Placed::at(own.with_file_name(format!("watch-of-another-{}", run.id)));
    let helpers = container.helpers();
    let found: Vec<_> = helpers.iter().map(|one| (one.process.pid, one.by, one.container)).collect();
    assert_eq!(found, [(watcher.0.id() as i32, By::Cgroup, Some(0))]);
    drop((watcher, other, container));
    ends(&dunnage, subject, run);
}

#[test]
fn the_shim_of_a_container_is_found_and_declared() {
    const TEST: &str = "the_shim_of_a_container_is_found_and_declared";
    for (need, text) in [(Need::Docker, "docker"), (Need::Podman, "podman"), (Need::Containerd, "containerd")]
    {
        if lacks(TEST, need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let mut container = service(subject.as_ref(), None, &run);
        let helpers = container.helpers();
        let is_shim = |by: By| matches!(by, By::Declared(duty) if duty.has_containers());
        let shims = helpers.iter().filter(|one| is_shim(one.by) && one.container == Some(0)).count();
        let daemons = helpers.iter().filter(|one| one.by == By::Declared(Duty::Daemon)).count();
        let known = subject.daemons().unwrap().len();
        assert_eq!((shims, daemons), (1, known), "{text}: {helpers:?}");
        drop(container);
        ends(&dunnage, subject, run);
    }
}
