//! The orders in containers, through their channel.

use std::path::Path;

use crate::dunnage::Dunnage;
use ::dunnage::outcome::{Abort, FailureClass};
use ::dunnage::subject::{self, Container, ContainerRequest, Resident, RunContext, Spec, Work, pair::result};
use ::dunnage::sys::signals::Interrupts;
use ::dunnage::units::Nanos;

use crate::support::{Need, lacks};

fn run_in(state: &Path) -> RunContext {
    std::fs::create_dir_all(state).unwrap();
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_dunnage")).unwrap();
    let place = ::dunnage::session::place_in(state, &bytes).unwrap();
    let id = format!("{:08x}", ::dunnage::session::random_seed().unwrap());
    let mut run = RunContext::begin(place, Interrupts::install().unwrap(), id, 1).unwrap();
    run.host = subject::bare::view(&run).unwrap();
    run.allowed = Nanos::from_millis(30_000);
    run
}

fn order(words: &str) -> Work {
    Work::new("files", words.split(' ').map(str::to_owned).collect(), Nanos(0))
}

fn works(text: &str, place: &str) {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let spec = Spec::parse(text).unwrap();
    let mut subject = (subject::kind_of(&spec).unwrap().build)(&spec, &run.place).unwrap();
    subject.prepare(&run).unwrap();
    let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
    let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
    container.start().unwrap();
    container.ready().unwrap();
    let mut ask = |words: String| {
        container.ask(&order(&words)).unwrap_or_else(|abort| panic!("{text}: {words}: {abort:?}")).done
    };
    let done = ask(format!("write {place} 1048576 2 65536 synced plain"));
    assert_eq!(result(&done, "bytes").unwrap(), 2 << 20, "{text}");
    let done = ask(format!("read {place} 2 65536 cached plain"));
    assert_eq!(result(&done, "wrong").unwrap(), 0, "{text}");
    let done = ask(format!("append {place} 10 4096 0"));
    assert_eq!(result(&done, "appends").unwrap(), 10, "{text}");
    assert_eq!(result(&ask(format!("touch {place}/0")), "size").unwrap(), 1 << 20, "{text}");
    // Its own place goes too.
    assert_eq!(result(&ask(format!("clear {place}")), "removed").unwrap(), 4, "{text}");
    assert_eq!(result(&ask(format!("touch {place}/0")), "exists").unwrap(), 0, "{text}");
    let Err(Abort::Failed(failure)) = container.ask(&order("nonsense")) else { panic!("it did nonsense") };
    assert_eq!(failure.class, FailureClass::Unsupported);
    container.stop().unwrap();
    container.remove().unwrap();
}

#[test]
fn a_process_on_the_host_carries_out_orders() {
    let room = crate::files::room();
    works("bare", &room.path().join("own").to_string_lossy());
}

#[test]
fn containers_carry_out_orders_in_their_own_root() {
    const TEST: &str = "containers_carry_out_orders_in_their_own_root";
    for (need, text) in [
        (Need::Root, "floor"),
        (Need::Crun, "crun"),
        (Need::Docker, "docker:net=none"),
        (Need::Podman, "podman:net=none"),
    ] {
        if !lacks(TEST, need) {
            works(text, "/own-files");
        }
    }
}
