//! Resources on a real machine: each kind is made and undone; and after kill -9 during or after its making,
//! `sweep` leaves nothing. Remains are found independently of the program.

mod kinds;
pub mod left;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ::dunnage::resource::Place;
use ::dunnage::subject::{Object, RunContext};
use ::dunnage::sys::signals::Interrupts;

use crate::dunnage::Dunnage;
use crate::resources::kinds::{Case, cases};
use crate::resources::left::{cgroups_of, left_of};
use crate::support::{Need, itself, lacks};

/// The number of moments of making one at which a kill strikes.
const MOMENTS: u32 = 2;
const HELD: &str = "DUNNAGE_TEST_HELD";
const STATE: &str = "DUNNAGE_TEST_HELD_STATE";

fn place(state: &Path) -> Place {
    let executable = fs::read(env!("CARGO_BIN_EXE_dunnage")).expect("our executable");
    ::dunnage::session::place_in(state, &executable).expect("the image")
}

fn context(state: &Path, run: &str) -> RunContext {
    let interrupts = Interrupts::install().expect("signals");
    RunContext::begin(place(state), interrupts, run.to_owned(), 1).expect("a journal")
}

/// Eight letters and digits that no other test uses.
fn run_named(number: usize) -> String {
    format!("{number:02x}{:06x}", std::process::id() & 0xff_ffff)
}

fn possible() -> Vec<(usize, Case)> {
    let all = cases().into_iter().enumerate();
    all.filter(|(_, case)| !case.needs.iter().any(|need| lacks(&format!("resources ({})", case.name), *need)))
        .collect()
}

/// What is left of one that was undone. A loop device that was told to go stays as long as other containers have the filesystem: those
/// of other tests began with copies of all mounts.
fn left_after(case: &Case, state: &Path, run: &str) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let left = left_of(state, run, &case.engines());
        let are_devices = !left.is_empty() && left.iter().all(|what| what.starts_with("loop"));
        if !are_devices || case.kind != "filesystem" || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_kind_is_made_and_undone() {
    for (number, case) in possible() {
        let state = Dunnage::new();
        let run = run_named(number);
        let context = context(&state.state(), &run);
        let begun = Instant::now();
        let held = (case.make)(&context).unwrap_or_else(|why| panic!("{}: {why:?}", case.name));
        println!("{} was made in {} ms", case.name, begun.elapsed().as_millis());
        let there = left_of(&state.state(), &run, &case.engines());
        assert!(!there.is_empty(), "{} cannot be seen", case.name);
        held.finish().unwrap_or_else(|why| panic!("{}: {why}", case.name));
        assert_eq!(left_after(&case, &state.state(), &run), Vec::<String>::new(), "{}", case.name);
        drop(context);
        assert_eq!(state.left_in_state(), Vec::<std::path::PathBuf>::new(), "{}", case.name);
    }
}

/// An image with twelve layers and the executable's; where layers have the same file, the uppermost one
/// counts.
#[test]
fn an_image_has_its_layers_and_the_uppermost_file_counts() {
    const TEST: &str = "an_image_has_its_layers_and_the_uppermost_file_counts";
    if lacks(TEST, Need::Root) {
        return;
    }
    let state = Dunnage::new();
    let context = context(&state.state(), &run_named(128));
    let held = kinds::subject("floor", &context).make(kinds::image(), &context).expect("a root");
    let Object::Layers(layers) = &*held else { panic!("{held:?}") };
    assert_eq!(layers.len(), 13);
    let in_layer = |path: &str| layers.iter().rev().find_map(|layer| fs::metadata(layer.join(path)).ok());
    let size = |path: &str| in_layer(path).map(|file| file.len());
    assert_eq!((size("data/0/a"), size("data/11/b"), size("data/same")), (Some(1000), Some(1000), Some(11)));
    if lacks(TEST, Need::Docker) {
        return;
    }
    let held = kinds::subject("docker", &context).make(kinds::image(), &context).expect("an image");
    let Object::Named(name) = &*held else { panic!("{held:?}") };
    let asked = ["image", "inspect", "--format", "{{len .RootFS.Layers}}", name];
    let answered = Command::new("docker").args(asked).output().expect("docker is there");
    assert_eq!(String::from_utf8_lossy(&answered.stdout).trim(), "13");
}

/// Makes a resource and holds it, until the other process of this test kills this one.
fn hold(name: &str) -> ! {
    let state = std::env::var(STATE).expect("a state directory");
    let (name, run) = name.rsplit_once(' ').expect("a kind and a run");
    let case = cases().into_iter().find(|case| case.name == name).expect("a kind");
    let context = context(Path::new(&state), run);
    println!("\nbegun");
    let _held = (case.make)(&context).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    println!("\nmade");
    // Until the other process has ended, if it does not kill this one.
    let _ = std::io::stdin().read_line(&mut String::new());
    panic!("not killed");
}

/// Starts it, and waits until it reports that it begins.
fn holder(case: &Case, state: &Path, run: &str) -> Talking {
    let child = itself::again()
        .env(HELD, format!("{} {run}", case.name))
        .env(STATE, state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test starts itself");
    Talking::to(child)
}

/// A child that reports its progress, beginning with a line of that name.
struct Talking {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talking {
    fn to(mut child: Child) -> Talking {
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut talking = Talking { child, lines };
        talking.await_line("begun");
        talking
    }

    fn await_line(&mut self, wanted: &str) {
        let found = self.lines.by_ref().map_while(Result::ok).any(|line| line == wanted);
        assert!(found, "it was not {wanted}");
    }

    fn kill(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it ends");
    }
}

#[test]
fn nothing_is_left_of_one_that_was_killed() {
    if let Ok(name) = std::env::var(HELD) {
        hold(&name);
    }
    for (number, case) in possible() {
        let dunnage = Dunnage::new();
        let dunnage = if case.engines().is_empty() { dunnage.without_engines() } else { dunnage };
        let run = run_named(64 + number);
        let mut child = holder(&case, &dunnage.state(), &run);
        let begun = Instant::now();
        child.await_line("made");
        let took = begun.elapsed();
        child.kill();
        check(&case, &dunnage, &run, "made");
        if FOUND_WITHOUT.contains(&case.kind) {
            let mut child = holder(&case, &dunnage.state(), &run);
            child.await_line("made");
            child.kill();
            check(&case, &dunnage, &run, LOST);
        }
        for moment in 0..MOMENTS {
            let child = holder(&case, &dunnage.state(), &run);
            let delay = took.mul_f64(0.9 * f64::from(moment) / f64::from(MOMENTS));
            std::thread::sleep(delay);
            child.kill();
            check(&case, &dunnage, &run, &format!("after {} ms", delay.as_millis()));
        }
    }
}

/// Waits until Docker's daemon loads no image: it finishes what it was sent by a process that was killed since.
fn await_loads() {
    let deadline = Instant::now() + Duration::from_secs(60);
    let loads = || {
        let entries = fs::read_dir("/var/lib/docker/tmp").into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("docker-import-")).count()
    };
    while loads() > 0 {
        assert!(Instant::now() < deadline, "a load that does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// As after a power cut: a journal may not have reached the disk.
const LOST: &str = "made, with its journal lost";
/// The kinds that are found without a journal, since they are in the run's directory.
const FOUND_WITHOUT: [&str; 4] = ["mount", "filesystem", "store", "daemon"];

/// What exists is in the journal; after a sweep nothing exists.
fn check(case: &Case, dunnage: &Dunnage, run: &str, when: &str) {
    let engines = case.engines();
    if case.name == "docker api image" {
        await_loads();
    }
    let there = left_of(&dunnage.state(), run, &engines);
    let journal = dunnage.state().join(format!("journal/{run}.jsonl"));
    let journal = fs::read_to_string(journal).unwrap_or_default();
    println!("{} killed {when}: {} things there", case.name, there.len());
    let written = format!("\"kind\":\"{}\"", case.kind);
    if when == LOST {
        assert!(!there.is_empty(), "{} cannot be seen", case.name);
        fs::remove_file(dunnage.state().join(format!("journal/{run}.jsonl"))).expect("a journal");
    }
    assert!(there.is_empty() || journal.contains(&written), "{} {when}: {there:?}, {journal}", case.name);
    let groups = cgroups_of(&dunnage.state(), run);
    // The next run does the same as `sweep`, but only for journals.
    let swept = match when {
        "made" | LOST => dunnage.run("sweep").to_string(),
        _ => format!("{:?}", ::dunnage::sweep::abandoned(&place(&dunnage.state()))),
    };
    assert_eq!(
        left_after(case, &dunnage.state(), run),
        Vec::<String>::new(),
        "{} {when}: {swept}",
        case.name
    );
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{} {when}: {swept}", case.name);
    assert!(groups.iter().all(|group| !group.exists()), "{} {when}: {groups:?}, {swept}", case.name);
}
