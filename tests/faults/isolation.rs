//! Runtimes that start a container without part of what was asked for: directly, and under an engine that
//! trusts them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dunnage::outcome::FailureClass::Treatment;
use dunnage::record;
use tempfile::TempDir;

use crate::dunnage::Dunnage;
use crate::faults::engines::{assert_all_failed, assert_nothing_left, real, script};
use crate::support::{Need, lacks};

/// What a runtime leaves out, in shell, and the message. `edit` changes the bundle's `config.json`.
const LEAKS: [(&str, &str, &str); 6] = [
    ("alone", "cd \"$directory\" && exec rootfs/dunnage probe start", "its pid namespace is the host's"),
    (
        "network",
        "edit 's/{\"type\": *\"network\"[^}]*},\\?//'; exec \"$real\" \"$@\"",
        "its network namespace is the host's",
    ),
    (
        "pid",
        "edit 's/{\"type\": *\"pid\"[^}]*},\\?//'; exec \"$real\" \"$@\"",
        "its pid namespace is the host's",
    ),
    (
        "ipc",
        "edit 's/{\"type\": *\"ipc\"[^}]*},\\?//'; exec \"$real\" \"$@\"",
        "its ipc namespace is the host's",
    ),
    (
        "seccomp",
        "edit 's/\"seccomp\":/\"nothing\":/'; exec \"$real\" \"$@\"",
        "seccomp mode 2 was asked for and 0",
    ),
    ("cgroup", "exec \"$real\" --cgroup-manager=disabled \"$@\"", "its cgroup is not its own"),
];

/// In shell: finds the bundle's directory, and edits its `config.json` before the real runtime reads it.
const BUNDLE: &str = "last=; for argument in \"$@\"; do\n  case \"$last\" in --bundle|-b) directory=$argument;; esac\n  \
    last=$argument\ndone\nedit() { sed -i \"$1\" \"$directory/config.json\"; }\n";

#[test]
fn a_runtime_that_leaves_out_a_part_is_found_out() {
    const TEST: &str = "a_runtime_that_leaves_out_a_part_is_found_out";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let (dunnage, place) = (Dunnage::new(), TempDir::new().expect("a directory"));
    let subjects = LEAKS.map(|(label, leak, _)| {
        let path = script(place.path(), label, &real("crun"), &format!("{BUNDLE}{leak}"));
        format!("-s {label}=crun:bin={}", path.display())
    });
    let ran = dunnage.run(&format!(
        "run start -s bare -s crun {} --rounds 2 --set prestate=idle -o DIR",
        subjects.join(" ")
    ));
    assert_eq!(ran.code, 6, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    for (label, _, words) in LEAKS {
        assert_all_failed(&recorded, label, Treatment, words);
    }
    let labels = recorded.failures.iter().map(|row| {
        let cell = &recorded.plan.cells[row.cell];
        recorded.plan.subjects[cell.subject].label.as_str()
    });
    assert!(labels.into_iter().all(|label| label != "bare" && label != "crun"), "{ran}");
    assert_nothing_left(&dunnage, &recorded);
}

/// What a podman client adds to `run`, and the message.
const ADDED: [(&str, &str); 5] = [
    ("--network=host", "its network namespace is the host's"),
    ("--pid=host", "its pid namespace is the host's"),
    ("--ipc=host", "its ipc namespace is the host's"),
    ("--security-opt=seccomp=unconfined", "seccomp mode 2 was asked for and 0"),
    ("--cgroups=disabled", "its cgroup is not its own"),
];

fn assert_found_out(dunnage: &Dunnage, subject: &str, words: &str) {
    let ran = dunnage.run(&format!("check start -s {subject} --set prestate=idle"));
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stdout.contains("treatment: ") && ran.stdout.contains(words), "{ran}");
    assert_eq!(dunnage.run("sweep").code, 0);
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn a_podman_that_leaves_out_a_part_is_found_out() {
    const TEST: &str = "a_podman_that_leaves_out_a_part_is_found_out";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) {
        return;
    }
    for (option, words) in ADDED {
        let place = TempDir::new().expect("a directory");
        let text = format!(
            "seen=\nfor word in \"$@\"; do\n  [ -z \"$seen\" ] && set --; seen=yes\n  \
             set -- \"$@\" \"$word\"\n  [ \"$word\" = run ] && set -- \"$@\" {option}\ndone\nexec {} \"$@\"",
            real("podman").display()
        );
        program(place.path(), "podman", &text);
        let dunnage = Dunnage::new().with_first_on_path(place.path());
        // Only one of the options for networks may be given.
        let subject = if option.starts_with("--network") { "podman" } else { "podman:net=none" };
        assert_found_out(&dunnage, subject, words);
    }
}

/// podman accepts any program as crun that its configuration names.
#[test]
fn a_runtime_that_starts_another_one_under_podman_is_found_out() {
    const TEST: &str = "a_runtime_that_starts_another_one_under_podman_is_found_out";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let place = TempDir::new().expect("a directory");
    let exec = format!("exec {} --cgroup-manager=disabled \"$@\"", real("crun").display());
    let runtime = program(place.path(), "leaky", &exec);
    let known = place.path().join("containers.conf");
    let table = format!("[engine.runtimes]\ncrun = [\"{}\"]\n", runtime.display());
    std::fs::write(&known, table).expect("a configuration");
    let dunnage = Dunnage::new().with("CONTAINERS_CONF", &known.display().to_string());
    assert_found_out(&dunnage, "podman+crun:net=none", "did not run");
}

fn program(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("our file");
    path
}
