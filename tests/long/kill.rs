//! kill -9 at 50 moments of real runs: everything of dunnage's is gone after the next `sweep` or run, and
//! nothing else is. Prints where each kill struck.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::dunnage::{self, Dunnage};
use crate::left::{self, Foreign};
use crate::support::{Need, lacks, skip};

const MOMENTS: usize = 50;

/// Held from a kill until its remains are removed: the sweep of another state directory cannot remove the
/// shared image while a remaining container uses it.
static LEFT_OVER: Mutex<()> = Mutex::new(());

#[test]
fn nothing_is_left_after_a_kill_at_any_moment() {
    const TEST: &str = "nothing_is_left_after_a_kill_at_any_moment";
    if lacks(TEST, Need::Root) {
        return;
    }
    let needs =
        [(Need::Crun, "crun"), (Need::Docker, "docker"), (Need::Runc, "runc"), (Need::Podman, "podman")];
    let mut subjects = vec!["floor"];
    for (need, subject) in needs {
        match need.ready() {
            Ok(()) => subjects.push(subject),
            Err(reason) => skip(&format!("{TEST} ({subject})"), need, &reason),
        }
    }
    let engines = subjects.iter().copied().filter(|name| ["docker", "podman"].contains(name)).collect();
    let foreign = Foreign::plant(engines);
    let before = temporary_files();
    // Each subject in a pair with the next, so that every phase of each occurs in short runs.
    let pairs: Vec<String> = (0..subjects.len())
        .map(|index| format!("-s {} -s {}", subjects[index], subjects[(index + 1) % subjects.len()]))
        .collect();
    let each = MOMENTS.div_ceil(pairs.len());
    // Two at a time, each with its own state directory: much of a launch is waiting.
    std::thread::scope(|scope| {
        for half in 0..2 {
            let own = pairs.iter().skip(half).step_by(2);
            scope.spawn(|| own.for_each(|pair| strike(pair, each, &foreign)));
        }
    });
    let left: Vec<_> = temporary_files().into_iter().filter(|one| !before.contains(one)).collect();
    assert_eq!(left, Vec::<String>::new());
}

/// What a podman that loads an image keeps where it is not told otherwise.
fn temporary_files() -> Vec<String> {
    let names = fs::read_dir("/var/tmp").expect("a directory").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| ["storage", "oci", "libpod"].iter().any(|start| name.starts_with(start))).collect()
}

/// Kills runs of the pair at this many moments, and checks what is left after a sweep or the next run.
fn strike(pair: &str, moments: usize, foreign: &Foreign) {
    let dunnage = Dunnage::new();
    let whole = whole_run(&dunnage, pair);
    for moment in 0..moments {
        let delay = whole.mul_f64(0.9 * (moment as f64 + 0.5) / moments as f64);
        let (struck, _alone) = kill(&dunnage, pair, delay);
        let clean = if moment.is_multiple_of(2) { "sweep" } else { "run start -s bare --rounds 1 -o DIR" };
        let _ = fs::remove_dir_all(dunnage.directory());
        let cleaned = dunnage.run(clean);
        println!("kill {:>2} after {:>5} ms of `{pair}`: {struck}", moment + 1, delay.as_millis());
        assert_eq!(cleaned.code, 0, "{cleaned}");
        assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{cleaned}");
        for run in &struck.runs {
            assert_eq!(left::of_run(run), Vec::<String>::new(), "{cleaned}");
        }
        assert_eq!(foreign.missing(), Vec::<String>::new(), "{cleaned}");
    }
    let _alone = LEFT_OVER.lock();
    let swept = dunnage.run("sweep");
    assert_eq!(swept.code, 0, "{swept}");
}

fn arguments(pair: &str) -> String {
    format!("run start {pair} --set prestate=idle --rounds 1 --events json -o DIR")
}

/// The duration of an undisturbed run that has to load its image.
fn whole_run(dunnage: &Dunnage, pair: &str) -> Duration {
    let swept = {
        let _alone = LEFT_OVER.lock();
        dunnage.run("sweep")
    };
    assert_eq!(swept.code, 0, "{swept}");
    let _ = fs::remove_dir_all(dunnage.directory());
    let begun = Instant::now();
    let ran = dunnage.run(&arguments(pair));
    assert!(ran.code == 0 && !ran.stderr.contains("not available"), "{ran}");
    begun.elapsed()
}

/// Where a kill struck.
struct Struck {
    runs: Vec<String>,
    phase: String,
}

impl std::fmt::Display for Struck {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.phase)
    }
}

/// The lock is held until the remains are removed.
fn kill(dunnage: &Dunnage, pair: &str, delay: Duration) -> (Struck, MutexGuard<'static, ()>) {
    let _ = fs::remove_dir_all(dunnage.directory());
    let mut command = dunnage.command(&arguments(pair));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(delay);
    let alone = LEFT_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    child.kill().expect("it is our child");
    let said = dunnage::finished(child.wait_with_output().expect("it ends"));
    let journals: Vec<PathBuf> = fs::read_dir(dunnage.state().join("journal"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let open: Vec<String> = journals.iter().flat_map(|path| open_entries(path)).collect();
    let runs = journals.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    let step = said.stdout.lines().rfind(|line| line.contains("begins")).map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        match event["label"].as_str() {
            Some(label) => format!("cell {label}"),
            None => format!("round {}", event["round"]),
        }
    });
    let trial = said.stderr.lines().rfind(|line| line.starts_with("trying ")).map(str::to_owned);
    let at_the_end = said.code == 0;
    let step = step.or(trial).unwrap_or_else(|| "before the first subject".into());
    let phase = match (at_the_end, open.is_empty()) {
        (true, _) => "after its end".to_owned(),
        (false, true) => step,
        (false, false) => format!("{step}, with {}", open.join(" and ")),
    };
    (Struck { runs, phase }, alone)
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
