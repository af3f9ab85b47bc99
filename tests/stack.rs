//! A newer stack on the same kernel: the engines and runtimes of another Debian release, in a root of their own. Does
//! dunnage find them, start every default subject with every experiment, and record what each of them is?

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use dunnage::record;
use dunnage::report::Report;
use dunnage::verdict::analyse;
use support::{Need, RELEASE, STACK, lacks};

/// What is tried there. Everything ends with its exit code in a file.
const SCRIPT: &str = r#"
cd "$BIND"
./dunnage doctor --format json > doctor.json
./dunnage check start lifecycle exec > check; echo $? > check.code
./dunnage run all -s bare -s floor -s crun -s runc -s docker -s podman -s containerd --rounds 1 --no-vary --seed 7 \
    --cmd '/dunnage --version' -o run > report 2> told; echo $? > run.code
./dunnage sweep > sweep; ls /var/lib/dunnage/journal | wc -l > journals
"#;

#[test]
fn every_experiment_works_with_the_engines_of_a_newer_release() {
    let test = "every_experiment_works_with_the_engines_of_a_newer_release";
    if lacks(test, Need::Root) || lacks(test, Need::Stack) {
        return;
    }
    let place =
        tempfile::Builder::new().prefix("dunnage-stack-").tempdir_in("/var/tmp").expect("a directory");
    fs::copy(env!("CARGO_BIN_EXE_dunnage"), place.path().join("dunnage")).expect("a copy");
    let done = Command::new("bash")
        .args([STACK, RELEASE, "sh", "-c", SCRIPT])
        .env("BIND", place.path())
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    let left = |name: &str| fs::read_to_string(place.path().join(name)).unwrap_or_default();
    let told = format!("{}{}\n{}", left("check"), left("told"), String::from_utf8_lossy(&done.stderr));
    assert_eq!((left("check.code").trim(), left("run.code").trim()), ("0", "0"), "{told}");
    assert_eq!(left("journals").trim(), "0", "{told}");
    let check = left("check");
    for subject in ["crun", "runc", "docker", "docker+crun", "podman", "podman+runc", "containerd"] {
        let is_fine = |line: &str| line.starts_with("ok ") && line.split(' ').next_back() == Some(subject);
        assert!(check.lines().any(is_fine), "{subject}: {told}");
    }
    measured(&place.path().join("run"), &told);
}

/// Every cell has a value, and the programs are newer than those of the oldest release that is supported.
fn measured(run: &Path, told: &str) {
    let recorded = record::load(run).expect("a run directory");
    for (index, (cell, series)) in recorded.plan.cells.iter().zip(&recorded.series).enumerate() {
        // A piece that this kernel lacks is one line of a price list.
        let fails = recorded.failures.iter().any(|row| row.cell == index);
        let is_there = series.values.iter().flatten().any(|value| value.is_finite());
        assert!(is_there || (cell.experiment == "primitives" && fails), "{cell:?}: {told}");
    }
    let report = Report::of(&recorded, &analyse(&recorded));
    let major = |role: &str| {
        let program = report.programs.iter().find(|one| one.path.ends_with(role)).expect(role);
        let word = program.version.split(|c: char| c.is_whitespace() || c == ',').find(|word| {
            word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')
        });
        word.and_then(|word| word.trim_start_matches('v').split('.').next()?.parse::<u32>().ok())
    };
    assert!(major("/docker") >= Some(26) && major("/podman") >= Some(5), "{:?}", report.programs);
}
