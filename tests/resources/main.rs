//! Resources on a real machine: each kind is made and undone, and after kill -9 in the middle of making it, or with it
//! made, `sweep` leaves nothing. What is left is looked for without the program's own eyes.

#[path = "../support/dunnage.rs"]
mod dunnage;
mod kinds;
mod left;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::dunnage::resource::{Owner, Place};
use ::dunnage::sys::signals::Interrupts;

use crate::dunnage::Dunnage;
use crate::kinds::{Case, cases};
use crate::left::left_of;
use crate::support::lacks;

/// Kills strike at so many moments of making one.
const MOMENTS: u32 = 4;
const HELD: &str = "DUNNAGE_TEST_HELD";
const STATE: &str = "DUNNAGE_TEST_HELD_STATE";

fn owner(state: &Path, run: &str) -> Arc<Owner> {
    let place = Place {
        state: state.to_owned(),
        executable: env!("CARGO_BIN_EXE_dunnage").into(),
        rootfs: state.join("none"),
        reference: String::new(),
        digest: String::new(),
    };
    Owner::begin(place, run.to_owned()).expect("a journal")
}

/// Eight letters and digits that no other test has.
fn run_named(number: usize) -> String {
    format!("{number:02x}{:06x}", std::process::id() & 0xff_ffff)
}

fn possible() -> Vec<(usize, Case)> {
    let all = cases().into_iter().enumerate();
    all.filter(|(_, case)| !case.needs.iter().any(|need| lacks(&format!("resources ({})", case.name), *need)))
        .collect()
}

#[test]
fn each_kind_is_made_and_undone() {
    let interrupts = Interrupts::install().unwrap();
    for (number, case) in possible() {
        let state = Dunnage::new();
        let run = run_named(number);
        let owner = owner(&state.state(), &run);
        let begun = Instant::now();
        let held = (case.make)(&owner, &interrupts).unwrap_or_else(|why| panic!("{}: {why:?}", case.name));
        println!("{} was made in {} ms", case.name, begun.elapsed().as_millis());
        let there = left_of(&state.state(), &run);
        assert!(!there.is_empty(), "{} cannot be seen", case.name);
        held.finish().unwrap_or_else(|why| panic!("{}: {why}", case.name));
        assert_eq!(left_of(&state.state(), &run), Vec::<String>::new(), "{}", case.name);
        drop(owner);
        assert_eq!(state.left_in_state(), Vec::<std::path::PathBuf>::new(), "{}", case.name);
    }
}

/// No test: what the next one starts and kills.
#[test]
fn hold() {
    let (Ok(name), Ok(state)) = (std::env::var(HELD), std::env::var(STATE)) else { return };
    let (name, run) = name.split_once(' ').expect("a kind and a run");
    let case = cases().into_iter().find(|case| case.name == name).expect("a kind");
    let interrupts = Interrupts::install().unwrap();
    let owner = owner(Path::new(&state), run);
    println!("\nbegun");
    let _held = (case.make)(&owner, &interrupts).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    println!("\nmade");
    std::thread::sleep(Duration::from_secs(600));
}

/// Starts it, and waits until it says this.
fn holder(case: &Case, state: &Path, run: &str, until: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold", "--nocapture"])
        .env(HELD, format!("{} {run}", case.name))
        .env(STATE, state)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test starts itself");
    // The pipe stays open: it goes on to write.
    let lines = BufReader::new(child.stdout.as_mut().expect("piped")).lines();
    let found = lines.map_while(Result::ok).any(|line| line == until);
    assert!(found, "{} was not {until}", case.name);
    child
}

fn kill(mut child: Child) {
    child.kill().expect("it is our child");
    child.wait().expect("it ends");
}

#[test]
fn nothing_is_left_of_one_that_was_killed() {
    for (number, case) in possible() {
        let dunnage = Dunnage::new();
        let begun = Instant::now();
        let run = run_named(64 + number);
        kill(holder(&case, &dunnage.state(), &run, "made"));
        let took = begun.elapsed();
        check(&case, &dunnage, &run, "made");
        for moment in 0..MOMENTS {
            let child = holder(&case, &dunnage.state(), &run, "begun");
            let delay = took.mul_f64(0.9 * f64::from(moment) / f64::from(MOMENTS));
            std::thread::sleep(delay);
            kill(child);
            check(&case, &dunnage, &run, &format!("after {} ms", delay.as_millis()));
        }
    }
}

/// What is there stands in the journal; after a sweep there is nothing.
fn check(case: &Case, dunnage: &Dunnage, run: &str, when: &str) {
    let there = left_of(&dunnage.state(), run);
    let journal = dunnage.state().join(format!("journal/{run}.jsonl"));
    let journal = fs::read_to_string(journal).unwrap_or_default();
    println!("{} killed {when}: {} things there", case.name, there.len());
    let written = format!("\"kind\":\"{}\"", case.kind);
    assert!(there.is_empty() || journal.contains(&written), "{} {when}: {there:?}, {journal}", case.name);
    let swept = dunnage.run("sweep");
    assert_eq!(swept.code, 0, "{swept}");
    assert_eq!(left_of(&dunnage.state(), run), Vec::<String>::new(), "{} {when}: {swept}", case.name);
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{} {when}: {swept}", case.name);
}
