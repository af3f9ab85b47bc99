//! What can be done with a running container of each kind: stop it with a grace.

use std::fs;

use dunnage::subject::Container;
use dunnage::units::Nanos;

use crate::dunnage::Dunnage;
use crate::handles::{ends, run_in, service, subject};
use crate::running::until;
use crate::support::{LIMITED, at_hand};

/// More than any verb takes that waits for nothing, and less than any grace that engines give unasked.
const SOON: Nanos = Nanos::from_millis(6_000);

/// Makes its program get no signal but SIGKILL, as one that ignores the others.
fn deafen(container: &mut Container<'_>) {
    let first = container.first_process().unwrap();
    // SAFETY: halts the first process of a container of this test, which has not been reaped.
    assert_eq!(unsafe { libc::kill(first, libc::SIGSTOP) }, 0);
    let state = || fs::read_to_string(format!("/proc/{first}/stat")).unwrap();
    until("the program has halted", || {
        state().rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    });
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_its_grace() {
    const TEST: &str = "a_program_that_ignores_sigterm_is_killed_after_its_grace";
    for text in at_hand(TEST, &LIMITED) {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        for grace in [1, 0] {
            let mut container = service(subject.as_ref(), None, &run);
            deafen(&mut container);
            let took = container.stop(grace).unwrap().took();
            let least = Nanos::from_millis(i64::from(grace) * 1000);
            assert!(took >= least && took < least + SOON, "{text}, {grace} s: {took}");
            container.remove().unwrap();
        }
        // One that does not ignore it ends within its grace.
        let mut container = service(subject.as_ref(), None, &run);
        let took = container.stop(60).unwrap().took();
        assert!(took < SOON, "{text}: {took}");
        container.remove().unwrap();
        ends(&dunnage, subject, run);
    }
}
