//! The engines and runtimes of a newer Debian release, on this kernel: every subject starts, and with `--long` every experiment has
//! values.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use dunnage::experiment::{self, Experiment};
use dunnage::record::{self, Recorded};

use crate::support::{Need, RELEASE, STACK, lacks};

/// Everything with an exit code leaves it in a file.
const SCRIPT: &str = r#"
cd "$BIND"; export DUNNAGE_STATE="$BIND/state"
./dunnage check start --set prestate=idle -s crun -s runc -s docker -s docker+crun -s podman -s podman+runc \
    -s containerd > check; echo $? > check.code
./dunnage run EXPERIMENTS -s floor -s crun -s runc -s docker -s podman -s containerd --no-vary --no-html --seed 7 \
    --set prestate=idle -o run > report 2> told; echo $? > run.code
# Now that the daemon has answered before, it answers in the short time that doctor waits.
./dunnage doctor --format json > doctor
{ ls state/journal; grep -F "$DUNNAGE_STATE" /proc/self/mounts
for engine in docker podman; do
    $engine ps --all --quiet --filter "label=dunnage.state=$(cat "$DUNNAGE_STATE/id")"
done; } > left
./dunnage sweep > swept; echo $? > sweep.code
"#;

/// The smallest settings: only whether there are values matters.
const ALL: &str = "all --rounds 1 --cmd '/dunnage --version' --ready 'log dunnage' --set way=stamps --set window=1ms --set fixed=10 \
    --set passes=30 --set load=continuous --set seconds=1 --set layers=0 --set at=bind --set files=200";

/// Programs with their versions in Debian 12.
const OLDER: [(&str, &str); 5] =
    [("docker", "20.10.24"), ("podman", "4.3.1"), ("crun", "1.8.1"), ("runc", "1.1.5"), ("ctr", "1.6.20")];

mod long {
    #[test]
    fn every_experiment_works_with_the_engines_of_a_newer_release() {
        super::works("every_experiment_works_with_the_engines_of_a_newer_release", super::ALL);
    }
}

#[test]
fn the_engines_of_a_newer_release_start_and_stop_containers() {
    // Docker 26 loses the output of a container now and then on a busy machine.
    works("the_engines_of_a_newer_release_start_and_stop_containers", "start lifecycle --rounds 3");
}

fn works(test: &str, experiments: &str) {
    if lacks(test, Need::Stack) {
        return;
    }
    let place =
        tempfile::Builder::new().prefix("dunnage-stack-").tempdir_in("/var/tmp").expect("a directory");
    fs::copy(env!("CARGO_BIN_EXE_dunnage"), place.path().join("dunnage")).expect("a copy");
    let done = Command::new("bash")
        .args([STACK, RELEASE, "sh", "-c", &SCRIPT.replace("EXPERIMENTS", experiments)])
        .env("BIND", place.path())
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    let left = |name: &str| fs::read_to_string(place.path().join(name)).unwrap_or_default().trim().to_owned();
    let all = ["check", "told", "report", "left"].map(left).join("\n");
    let told = format!("{all}\n{}", String::from_utf8_lossy(&done.stderr));
    for verb in ["check", "run", "sweep"] {
        assert_eq!(left(&format!("{verb}.code")), "0", "{verb}: {told}");
    }
    assert_eq!(left("left"), "", "{told}");
    let doctor: serde_json::Value = serde_json::from_str(&left("doctor")).expect("JSON");
    let works = doctor["subjects_that_work"].as_array().expect("a list");
    for subject in ["crun", "runc", "docker", "docker+crun", "podman", "podman+runc", "containerd"] {
        assert!(works.iter().any(|one| one == subject), "{subject}: {works:?} of {doctor}");
        let cell = format!("start prestate=idle {subject}");
        let is_fine = |line: &str| line.starts_with("ok ") && line.ends_with(&cell);
        assert!(left("check").lines().any(is_fine), "{subject}: {told}");
    }
    measured(&record::load(&place.path().join("run")).expect("a run directory"), &told);
}

/// Every experiment has values of every engine and runtime, and the programs are newer.
fn measured(run: &Recorded, told: &str) {
    let is_planned = |one: &&&Experiment| run.plan.cells.iter().any(|cell| cell.experiment == one.name);
    for experiment in experiment::ALL.iter().filter(is_planned) {
        let subjects = match experiment.name {
            // Only the floor can be taken apart.
            "primitives" => &["floor"][..],
            // Runtimes make no network.
            "dns" => &["floor", "docker", "podman"],
            _ => &["docker", "podman", "containerd", "crun", "runc"],
        };
        for subject in subjects {
            let has_values = run.plan.cells.iter().zip(&run.series).any(|(cell, series)| {
                cell.experiment == experiment.name
                    && run.plan.subjects[cell.subject].label == *subject
                    && series.values.iter().flatten().any(|value| value.is_finite())
            });
            assert!(has_values, "{} of {subject}: {told}", experiment.name);
        }
    }
    let programs: Vec<_> = run.environment.subjects.values().flat_map(|one| &one.components).collect();
    for (name, old) in OLDER {
        let found = programs.iter().find(|one| Path::new(&one.path).ends_with(name)).expect(name);
        assert!(numbers(&found.version) > numbers(old), "{name}: {}", found.version);
    }
}

/// The numbers of the first version in a text.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let of = |word: &str| word.split(|one: char| !one.is_ascii_digit()).map(str::parse).collect::<Vec<_>>();
    let mut words = text.split_whitespace().filter(|word| word.contains('.')).map(of);
    let version = words.find(|parts| parts[0].is_ok())?;
    Some(version.into_iter().map_while(Result::ok).collect())
}
