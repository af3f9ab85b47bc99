//! Engines and runtimes that misbehave in the middle of a run: scripts in place of the real ones, which they
//! call until then.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dunnage::outcome::FailureClass::{self, Crash, Environment, Timeout, Treatment, WrongOutput};
use dunnage::record::{self, Cause, Recorded};
use tempfile::TempDir;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::support::{Need, lacks};

/// How a program misbehaves, in shell, once `run` has been called more often than the trials do, and the
/// failure that results.
const FAULTS: [(&str, &str, FailureClass, &str); 9] = [
    ("dies", "echo 'it is broken' >&2; exit 1", Crash, "it is broken"),
    ("killed", "kill -9 $$", Crash, "ended with signal 9"),
    ("hangs", "exec sleep 1000", Timeout, "did not end within 2.00 s"),
    ("silent", "exit 0", WrongOutput, "succeeded, but"),
    ("wrong-stream", "exec \"$real\" \"$@\" >&2", WrongOutput, "sent the probe's standard output to"),
    ("floods", "exec head -c 5000000 /dev/zero", WrongOutput, "succeeded, but"),
    ("chatters", "\"$real\" \"$@\"; echo and more", WrongOutput, "succeeded, but"),
    ("pretends", "exec DUNNAGE probe start", Treatment, "its pid namespace is the host's"),
    ("forges", "\"$real\" \"$@\" | sed 's/^entry .*/entry 12/'", WrongOutput, "is stamped before `spawn`"),
];

/// A program that calls the real one for everything but `run`, and for `run` as often as the trials do.
pub fn script(directory: &Path, name: &str, real: &Path, fault: &str) -> PathBuf {
    let path = directory.join(name);
    let fault = fault.replace("DUNNAGE", env!("CARGO_BIN_EXE_dunnage"));
    let real = real.display();
    let text = format!(
        "#!/bin/sh\nreal={real}\nfor word in \"$@\"; do\n  [ \"$word\" = run ] || continue\n  echo >> $0.runs\n  \
         [ $(wc -l < $0.runs) -le 2 ] && break\n  {fault}\n  exit\ndone\nexec \"$real\" \"$@\"\n"
    );
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    path
}

pub fn real(program: &str) -> PathBuf {
    dunnage::subject::on_path(program).expect("it is installed")
}

/// What happened to the cells with this label, other than being measured.
fn causes<'a>(recorded: &'a Recorded, label: &str) -> Vec<&'a Cause> {
    let about = |cell: usize| recorded.plan.subjects[recorded.plan.cells[cell].subject].label == label;
    recorded.failures.iter().filter(|row| about(row.cell)).map(|row| &row.cause).collect()
}

pub fn assert_all_failed(recorded: &Recorded, label: &str, class: FailureClass, words: &str) {
    let found = causes(recorded, label);
    assert_eq!(found.len(), 3, "{label}: {found:?}");
    for cause in found {
        match cause {
            Cause::Failed(failure) => {
                let told = failure.to_string();
                assert!(failure.class == class && told.contains(words), "{label}: {told}");
            }
            Cause::Skipped(reason) => assert!(class == Timeout && reason.contains("timed out"), "{label}"),
        }
    }
}

/// A daemon whose client was killed may do its work later; the sweep is for that.
pub fn assert_nothing_left(dunnage: &Dunnage, recorded: &Recorded) {
    assert_eq!(dunnage.run("sweep").code, 0);
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

fn every_fault_of_a_runtime(runtime: &str) {
    let dunnage = Dunnage::new();
    let place = TempDir::new().expect("a directory");
    let subjects = FAULTS.map(|(label, fault, ..)| {
        let path = script(place.path(), label, &real(runtime), fault);
        format!("-s {label}={runtime}:bin={}", path.display())
    });
    let ran = dunnage.run(&format!(
        "run start -s bare {} --rounds 2 --set prestate=idle --timeout 2 -o DIR",
        subjects.join(" ")
    ));
    assert_eq!(ran.code, 6, "{ran}");
    assert!(!ran.stderr.contains("not available"), "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    for (label, _, class, words) in FAULTS {
        assert_all_failed(&recorded, label, class, words);
    }
    assert!(causes(&recorded, "bare").is_empty());
    assert_nothing_left(&dunnage, &recorded);
}

#[test]
fn every_fault_of_crun_is_a_row_and_the_other_cells_go_on() {
    const TEST: &str = "every_fault_of_crun_is_a_row_and_the_other_cells_go_on";
    if !lacks(TEST, Need::Crun) && !lacks(TEST, Need::Root) {
        every_fault_of_a_runtime("crun");
    }
}

#[test]
fn a_runtime_that_loses_the_output_of_a_trial_is_measured() {
    const TEST: &str = "a_runtime_that_loses_the_output_of_a_trial_is_measured";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let place = TempDir::new().expect("a directory");
    let path = place.path().join("forgetful");
    let real = real("crun");
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *' run '*|'run '*) echo run >> $0.runs; case $(wc -l < $0.runs) in 1|3) exec {0} \"$@\" >/dev/null;; \
         esac;; esac\nexec {0} \"$@\"\n",
        real.display()
    );
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!(
        "run start -s forgetful=crun:bin={} --set prestate=idle --rounds 1 --no-html -o DIR",
        path.display()
    ));
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ran.stderr.matches("once more, since the probe wrote nothing").count(), 2, "{ran}");
    assert!(record::load(&dunnage.directory()).expect("a run").failures.is_empty(), "{ran}");
}

#[test]
fn two_builds_of_a_runtime_stand_side_by_side() {
    const TEST: &str = "two_builds_of_a_runtime_stand_side_by_side";
    if lacks(TEST, Need::Runc) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let place = TempDir::new().expect("a directory");
    let copy = place.path().join("runc-of-mine");
    fs::copy(real("runc"), &copy).expect("a copy");
    let subjects = format!("-s old=runc -s new=runc:bin={}", copy.display());
    let ran = dunnage.run(&format!("run start {subjects} --rounds 2 --set prestate=idle -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(recorded.failures, Vec::new());
    let path = |label: &str| recorded.environment.subjects[label].components[0].path.clone();
    assert_eq!((path("old"), path("new")), (real("runc").display().to_string(), copy.display().to_string()));
}

/// The engine's client misbehaves from the third `run` on.
fn fault_of_an_engine(engine: &str, label: &str, fault: &str, class: FailureClass, words: &[&str]) {
    let place = TempDir::new().expect("a directory");
    script(place.path(), engine, &real(engine), fault);
    let dunnage = Dunnage::new().with_first_on_path(place.path());
    let subject = format!("-s bare -s {label}={engine}");
    let ran = dunnage.run(&format!("run start {subject} --rounds 1 --set prestate=idle --timeout 4 -o DIR"));
    assert_eq!(ran.code, 6, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let found = causes(&recorded, label);
    assert_eq!(found.len(), 2, "{ran}");
    for cause in found {
        let Cause::Failed(failure) = cause else { panic!("{cause:?}") };
        assert!(
            failure.class == class && words.iter().any(|words| failure.to_string().contains(words)),
            "{failure}"
        );
    }
    assert!(causes(&recorded, "bare").is_empty());
    assert_nothing_left(&dunnage, &recorded);
}

const AWAY: &str = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1";

#[test]
fn a_docker_that_dies_is_a_row() {
    if !lacks("a_docker_that_dies_is_a_row", Need::Docker) {
        fault_of_an_engine("docker", "dies", AWAY, Environment, &["Cannot connect to the Docker daemon"]);
    }
}

/// Where another container's runtime runs meanwhile, what is read back tells.
#[test]
fn a_docker_that_pretends_is_a_row() {
    if !lacks("a_docker_that_pretends_is_a_row", Need::Docker) {
        fault_of_an_engine(
            "docker",
            "pretends",
            "exec DUNNAGE probe start",
            Treatment,
            &["did not run", "not as asked"],
        );
    }
}

#[test]
fn a_docker_that_hangs_after_its_work_leaves_nothing() {
    if !lacks("a_docker_that_hangs_after_its_work_leaves_nothing", Need::Docker) {
        let fault = "\"$real\" \"$@\"; exec sleep 1000";
        fault_of_an_engine("docker", "hangs", fault, Timeout, &["did not end within"]);
    }
}

#[test]
fn a_podman_that_hangs_leaves_nothing() {
    if !lacks("a_podman_that_hangs_leaves_nothing", Need::Podman)
        && !lacks("a_podman_that_hangs_leaves_nothing", Need::Root)
    {
        fault_of_an_engine("podman", "hangs", "exec sleep 1000", Timeout, &["did not end within"]);
    }
}

/// An engine that gives this answer when it is asked for its facts.
fn answers(engine: &str, answer: &str, words: &str) -> (Ran, Recorded) {
    let place = TempDir::new().expect("a directory");
    let path = place.path().join(engine);
    fs::write(&path, format!("#!/bin/sh\n{answer}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    let dunnage = Dunnage::new().with_first_on_path(place.path());
    let ran = dunnage.run(&format!("run start -s bare -s {engine} --rounds 1 --set prestate=idle -o DIR"));
    assert_eq!(ran.code, 6, "{ran}");
    assert!(
        ran.stderr.contains(&format!("not available: {engine}: ")) && ran.stderr.contains(words),
        "{ran}"
    );
    assert_eq!(dunnage.run("sweep").code, 0);
    (ran, record::load(&dunnage.directory()).expect("a run directory"))
}

#[test]
fn of_a_long_output_one_line_names_the_cause_and_the_run_directory_has_the_rest() {
    for engine in ["docker", "podman"] {
        let output =
            "seq -f 'level=info step %g' 30 >&2; echo 'Error: no way' >&2; echo 'See --help' >&2; exit 7";
        let (ran, recorded) = answers(engine, output, "exit code 7: Error: no way");
        assert!(!ran.stderr.contains("step") && !ran.stderr.contains("See"), "{ran}");
        assert!(!recorded.environment.unavailable[engine].contains("step"));
        assert!(recorded.environment.words[engine].contains("step 30 Error: no way See --help"));
    }
}

#[test]
fn an_engine_that_answers_nonsense_is_not_available_and_says_why() {
    for engine in ["docker", "podman"] {
        answers(engine, "echo hello", &format!("cannot parse the answer of `{engine} info`"));
        // Podman's answer may lack everything, and then it says the same where the probe's message should be.
        let words = match engine {
            "docker" => "the daemon did not identify itself",
            _ => "succeeded, but standard output begins with `",
        };
        answers(engine, "echo '[1, 2]'", words);
        answers(engine, "echo '{}'", words);
        answers(engine, "exit 0", &format!("cannot parse the answer of `{engine} info`"));
        answers(engine, "echo 'no way' >&2; exit 7", "exit code 7: no way");
        answers(engine, "head -c 5000000 /dev/zero", &format!("cannot parse the answer of `{engine} info`"));
    }
}
