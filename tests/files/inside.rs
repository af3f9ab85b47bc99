//! The orders in containers, through their channel.

use std::path::Path;

use crate::dunnage::Dunnage;
use ::dunnage::outcome::FailureClass;
use ::dunnage::subject::{self, Container, ContainerRequest, Resident, RunContext, Spec};
use ::dunnage::sys::signals::Interrupts;
use ::dunnage::units::Nanos;

use crate::support::orders::{about_files, answered, failure, number};
use crate::support::{Need, lacks};
use serde_json::Value;

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
    let mut ask = |words: String| answered(&mut container, about_files(&words, Path::new("/")));
    let done = ask(format!("write {place} 1048576 2 65536 synced plain"));
    assert_eq!(number(&done, "bytes"), 2 << 20, "{text}");
    let done = ask(format!("read {place} 2 65536 cached plain"));
    assert_eq!(number(&done, "wrong"), 0, "{text}");
    let done = ask(format!("append {place} 10 4096 0"));
    assert_eq!(number(&done, "count"), 10, "{text}");
    assert_eq!(number(&ask(format!("touch {place}/0")), "size"), 1 << 20, "{text}");
    // Its own place goes too.
    assert_eq!(number(&ask(format!("clear {place}")), "removed"), 4, "{text}");
    assert_eq!(ask(format!("touch {place}/0")), Value::Null, "{text}");
    let refused = failure(&mut container, about_files("open relative", Path::new("/")));
    assert_eq!(refused.class, FailureClass::Unsupported);
    container.stop(subject::GRACE).unwrap();
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
