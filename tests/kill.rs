//! kill -9 of real runs, at every write of the journal and at a few other moments: everything of dunnage's is gone after the next
//! `sweep` or run, and nothing else is. Prints where each kill struck.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::dunnage::{self, Dunnage};
use crate::left::{self, Foreign};
use crate::support::{Need, lacks, skip};

/// Kills runs of this subject at each write of the journal: after what is about to be made was written down, and after
/// everything of it was undone.
fn strike_at_every_write(test: &str, need: Need, subject: &str) {
    if lacks(test, Need::Root) || lacks(test, need) {
        return;
    }
    // The floor reads its filter from a container of an engine, as other subjects without one do.
    let concerns = |engine: &str| engine == subject || subject == "floor";
    let engines = left::ENGINES.into_iter().filter(|(engine, need)| concerns(engine) && need.ready().is_ok());
    let engines: Vec<_> = engines.map(|(name, _)| name).collect();
    let look = |run: &str| left::of_run_in(&engines, run);
    let foreign = Foreign::plant(engines.clone());
    let dunnage = Dunnage::new();
    let dunnage = if engines.is_empty() { dunnage.without_engines() } else { dunnage };
    let arguments = format!("run start -s {subject} --set prestate=idle --rounds 1 -o DIR");
    // The image is in the engine, and the directories are made.
    assert_eq!(dunnage.run(&arguments).code, 0);
    let log = dunnage.state().with_file_name("writes");
    let logged = finished(&dunnage, &arguments, ("DUNNAGE_WRITES", &log.to_string_lossy()));
    assert_eq!(logged.code, 0, "{logged}");
    let writes = fs::read_to_string(&log).expect("failpoints are compiled in");
    let count = writes.lines().count();
    assert!(writes.lines().any(|line| line.contains("\"container\"")) && count >= 8, "{writes}");
    for number in 1..=count {
        let killed = finished(&dunnage, &arguments, ("DUNNAGE_KILL_AT_WRITE", &number.to_string()));
        assert_eq!(killed.code, -1, "write {number}: {killed}");
        let (runs, open) = abandoned(&dunnage);
        println!("killed at write {number} of {count} of {subject}, with {}", open.join(" and "));
        assert_eq!(runs.len(), 1, "write {number}: {killed}");
        check(&dunnage, &runs, number, &foreign, &look);
    }
}

fn finished(dunnage: &Dunnage, arguments: &str, (name, value): (&str, &str)) -> dunnage::Ran {
    let _ = fs::remove_dir_all(dunnage.directory());
    dunnage::finished(dunnage.command(arguments).env(name, value).output().expect("it starts"))
}

/// The runs whose journals are there, and what is open in them.
fn abandoned(dunnage: &Dunnage) -> (Vec<String>, Vec<String>) {
    let entries = fs::read_dir(dunnage.state().join("journal")).into_iter().flatten().flatten();
    let journals: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let runs = journals.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    (runs, journals.iter().flat_map(|path| open_entries(path)).collect())
}

/// What is left is removed by a sweep or the next run. Images stay: others use them.
fn check(
    dunnage: &Dunnage,
    runs: &[String],
    number: usize,
    foreign: &Foreign,
    look: &dyn Fn(&str) -> Vec<String>,
) {
    let _ = fs::remove_dir_all(dunnage.directory());
    let clean =
        if number.is_multiple_of(2) { "sweep containers" } else { "run start -s bare --rounds 1 -o DIR" };
    let cleaned = dunnage.run(clean);
    assert_eq!(cleaned.code, 0, "{cleaned}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{cleaned}");
    for run in runs {
        assert_eq!(look(run), Vec::<String>::new(), "{cleaned}");
    }
    assert_eq!(foreign.missing(), Vec::<String>::new(), "{cleaned}");
}

#[test]
fn nothing_is_left_of_a_floor_killed_at_any_write() {
    strike_at_every_write("nothing_is_left_of_a_floor_killed_at_any_write", Need::Root, "floor");
}

#[test]
fn nothing_is_left_of_a_crun_killed_at_any_write() {
    strike_at_every_write("nothing_is_left_of_a_crun_killed_at_any_write", Need::Crun, "crun");
}

#[test]
fn nothing_is_left_of_a_runc_killed_at_any_write() {
    strike_at_every_write("nothing_is_left_of_a_runc_killed_at_any_write", Need::Runc, "runc");
}

#[test]
fn nothing_is_left_of_a_docker_killed_at_any_write() {
    strike_at_every_write("nothing_is_left_of_a_docker_killed_at_any_write", Need::Docker, "docker");
}

#[test]
fn nothing_is_left_of_a_podman_killed_at_any_write() {
    strike_at_every_write("nothing_is_left_of_a_podman_killed_at_any_write", Need::Podman, "podman");
}

/// Between the writes too, where clients and engines are at work.
#[test]
fn nothing_is_left_after_a_kill_at_other_moments() {
    const TEST: &str = "nothing_is_left_after_a_kill_at_other_moments";
    if lacks(TEST, Need::Root) {
        return;
    }
    let needs = [(Need::Docker, "docker"), (Need::Podman, "podman"), (Need::Crun, "crun")];
    let mut subjects = vec!["floor"];
    for (need, subject) in needs {
        match need.ready() {
            Ok(()) => subjects.push(subject),
            Err(reason) => skip(&format!("{TEST} ({subject})"), need, &reason),
        }
    }
    let foreign = Foreign::plant(Vec::new());
    let before = temporary_files();
    // With an image of its own, so that each run has to load it.
    let (dunnage, image) = Dunnage::of_its_own();
    let engines: Vec<&str> =
        subjects.iter().copied().filter(|one| ["docker", "podman"].contains(one)).collect();
    let forget = || {
        for engine in &engines {
            let _ = Command::new(engine).args(["rmi", "--force", &image]).output();
        }
    };
    let subjects: String = subjects.iter().map(|subject| format!(" -s {subject}")).collect();
    // Bursts, so that a kill strikes several starts and removals at once.
    let arguments =
        format!("run density{subjects} --set at_once=4 --set containers=4 --rounds 1 --events json -o DIR");
    let begun = Instant::now();
    let ran = dunnage.run(&arguments);
    assert!(ran.code == 0 && !ran.stderr.contains("not available"), "{ran}");
    let whole = begun.elapsed();
    let mut is_left = false;
    for moment in 0..MOMENTS {
        forget();
        let delay = whole.mul_f64((moment as f64 + 0.5) / MOMENTS as f64);
        let step = kill(&dunnage, &arguments, delay);
        let (runs, open) = abandoned(&dunnage);
        println!("killed after {} ms: {step}, with {}", delay.as_millis(), open.join(" and "));
        is_left |= !open.is_empty();
        check(&dunnage, &runs, moment, &foreign, &left::of_run);
    }
    assert!(is_left, "each kill struck between two containers");
    forget();
    // Those of other tests that load an image now will go.
    let new = || temporary_files().into_iter().filter(|one| !before.contains(one)).collect::<Vec<_>>();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut left = new();
    while !left.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(100));
        left = new().into_iter().filter(|one| left.contains(one)).collect();
    }
    assert_eq!(left, Vec::<String>::new());
}

const MOMENTS: usize = 8;

/// What a podman that loads an image keeps where it is not told otherwise.
fn temporary_files() -> Vec<String> {
    let names = fs::read_dir("/var/tmp").expect("a directory").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| ["storage", "oci", "libpod"].iter().any(|start| name.starts_with(start))).collect()
}

/// Kills a run after a while, and returns how far it was.
fn kill(dunnage: &Dunnage, arguments: &str, delay: Duration) -> String {
    let _ = fs::remove_dir_all(dunnage.directory());
    let mut command = dunnage.command(arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(delay);
    child.kill().expect("it is our child");
    let said = dunnage::finished(child.wait_with_output().expect("it ends"));
    let step = said.stdout.lines().rfind(|line| line.contains("begins")).map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        match event["label"].as_str() {
            Some(label) => format!("cell {label}"),
            None => format!("round {}", event["round"]),
        }
    });
    let trial = said.stderr.lines().rfind(|line| line.starts_with("trying ")).map(str::to_owned);
    step.or(trial).unwrap_or_else(|| "before the first subject".into())
}

/// The open entries of the journal.
fn open_entries(path: &std::path::Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut open: Vec<(u64, String)> = Vec::new();
    for line in lines {
        if let Some(id) = line["gone"].as_u64() {
            open.retain(|(own, _)| *own != id);
        } else if let Some(id) = line["made"]["id"].as_u64() {
            let resource = &line["made"]["resource"];
            let kind = resource["kind"].as_str().unwrap_or_default();
            let subject = resource["attributes"]["subject"].as_str();
            open.push((id, subject.map_or(format!("a {kind}"), |subject| format!("a {kind} of {subject}"))));
        }
    }
    let mut names: Vec<String> = open.into_iter().map(|(_, name)| name).collect();
    names.dedup();
    names
}
