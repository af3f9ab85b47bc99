//! Missing things, and missing rights: one line says so, and the rest is measured.

use std::os::unix::fs::PermissionsExt;

use dunnage::record;

use crate::dunnage::{Dunnage, Ran};
use crate::support::{Need, lacks};

/// The subjects that were measured, in every cell of every round.
fn measured(dunnage: &Dunnage) -> Vec<String> {
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(recorded.failures, Vec::new());
    // An experiment adds its own variants.
    let originals =
        recorded.plan.subjects.iter().filter(|entry| entry.twin_of.is_none() && entry.only_in.is_empty());
    originals.map(|entry| entry.label.clone()).collect()
}

fn unavailable(ran: &Ran, subject: &str, words: &str) {
    // One line lists all subjects with the same reason.
    let mut lines = ran.stderr.lines().filter_map(|line| line.strip_prefix("not available: "));
    let names = |line: &str| format!(", {}", line.replace(": ", ", "));
    let told = lines.find(|line| names(line).contains(&format!(", {subject}, ")));
    assert!(told.is_some_and(|line| line.contains(words)), "{ran}");
}

#[test]
fn without_any_engine_bare_and_floor_are_measured() {
    let dunnage = Dunnage::new().with("PATH", "/nowhere");
    let ran = dunnage.run("run start --rounds 1 --set prestate=idle -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    for subject in ["crun", "runc", "docker", "podman"] {
        unavailable(&ran, subject, "not installed");
    }
    let floor_works = !ran.stderr.contains("not available: floor");
    assert_eq!(measured(&dunnage), if floor_works { vec!["bare", "floor"] } else { vec!["bare"] });
    assert!(floor_works || Need::Root.ready().is_err(), "{ran}");
}

#[test]
fn a_sweep_of_a_container_whose_engine_is_gone_says_what_to_do() {
    let dunnage = Dunnage::new().with("PATH", "/nowhere");
    let journal = dunnage.state().join("journal/ab12cd34.jsonl");
    std::fs::create_dir_all(journal.parent().unwrap()).unwrap();
    let container =
        r#"{"kind":"container","id":"dunnage-ab12cd34-000001","attributes":{"subject":"docker"}}"#;
    std::fs::write(&journal, format!("{{\"made\":{{\"id\":0,\"resource\":{container}}}}}\n")).unwrap();
    let swept = dunnage.run("sweep");
    let hint = format!("if the engine is gone for good, delete `{}`\n", journal.display());
    let why = "could not remove `dunnage-ab12cd34-000001` (docker) of run ab12cd34: docker: not installed";
    assert!(swept.code == 1 && swept.stdout.starts_with(why) && swept.stdout.contains(&hint), "{swept}");
    assert!(journal.exists() && swept.stdout.contains("kept the images, because "), "{swept}");
    std::fs::remove_file(&journal).unwrap();
    assert_eq!(dunnage.run("sweep").code, 0);
}

#[test]
fn a_misspelt_runtime_is_a_usage_error_and_an_unknown_one_is_missing() {
    let dunnage = Dunnage::new().with("PATH", "/nowhere");
    let misspelt = dunnage.run("check start -s podman+rcrun");
    assert!(
        misspelt.code == 2 && misspelt.stderr.contains("hint: did you mean `podman+crun`?"),
        "{misspelt}"
    );
    for other in ["podman+kata", "podman+crun"] {
        let missing = dunnage.run(&format!("check start -s {other}"));
        assert!(missing.code == 4 && missing.stderr.contains("not installed"), "{missing}");
    }
}

#[test]
fn an_image_that_is_missing_is_not_pulled() {
    for (need, engine) in [(Need::Docker, "docker"), (Need::Podman, "podman")] {
        if lacks("an_image_that_is_missing_is_not_pulled", need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let subject = format!("{engine}:image=nosuch");
        let ran = dunnage.run(&format!("run start -s bare -s {subject} --rounds 1 -o DIR"));
        assert_eq!(ran.code, 6, "{ran}");
        unavailable(&ran, &subject, "has no image `nosuch`");
        assert_eq!(measured(&dunnage), ["bare"]);
    }
}

#[test]
fn a_daemon_that_is_not_there_is_said_with_the_remedy() {
    if lacks("a_daemon_that_is_not_there_is_said_with_the_remedy", Need::Docker) {
        return;
    }
    let dunnage = Dunnage::new();
    let subject = "docker:host=\"unix:///nonexistent.sock\"";
    let ran = dunnage.run(&format!("run start -s bare -s {subject} --rounds 1 -o DIR"));
    assert_eq!(ran.code, 6, "{ran}");
    unavailable(&ran, subject, "unix:///nonexistent.sock");
    assert!(ran.stderr.contains("remedy: start the daemon"), "{ran}");
    assert_eq!(measured(&dunnage), ["bare"]);
    let alone = dunnage.run(&format!("run start -s {subject} --rounds 1 -o elsewhere"));
    assert_eq!(alone.code, 4, "{alone}");
}

/// A node with many containers has as many network links: the probe's message stays complete.
#[test]
fn a_host_with_hundreds_of_network_links_is_measured() {
    if lacks("a_host_with_hundreds_of_network_links_is_measured", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let script = dunnage.directory().parent().expect("a directory of the test").join("linked");
    let text = "#!/bin/sh\nset -e\nfor i in $(seq 200); do echo link add a$i type veth peer name b$i; done | ip -batch -\n\
        [ $(grep -c : /proc/self/net/dev) -gt 400 ]\nexec \"$@\"\n";
    std::fs::write(&script, text).expect("a script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("our file");
    let wrapper = format!("unshare --net {} {}", script.display(), env!("CARGO_BIN_EXE_dunnage"));
    let ran = dunnage
        .through(&wrapper, "run start -s bare -s floor:net=host --rounds 1 --set prestate=idle -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(measured(&dunnage), ["bare", "floor:net=host"], "{ran}");
}

#[test]
fn nobody_measures_bare_and_floor_or_hears_why_not() {
    const TEST: &str = "nobody_measures_bare_and_floor_or_hears_why_not";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let copy = dunnage.given_to(65534);
    let wrapper = "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all";
    let arguments = "run start --rounds 1 --set prestate=idle -o DIR";
    let ran = dunnage.through(&format!("{wrapper} {}", copy.display()), arguments);
    assert_eq!(ran.code, 0, "{ran}");
    let measured = measured(&dunnage);
    assert!(measured.contains(&"bare".to_owned()), "{ran}");
    if !measured.contains(&"floor".to_owned()) {
        let may = dunnage.through(&format!("{wrapper} unshare --user --map-root-user"), "true").code == 0;
        let why =
            if may { "in a user namespace" } else { "containers of an ordinary user need user namespaces" };
        unavailable(&ran, "floor", why);
    }
    if !lacks(TEST, Need::Docker) {
        unavailable(&ran, "docker", "permission denied");
        assert!(ran.stderr.contains("remedy: join the group `docker`, or run as root"), "{ran}");
    }
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
}

#[test]
fn an_error_that_nobody_can_be_told_is_still_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let dunnage = Dunnage::new();
    let status = dunnage.command("report nosuch").stderr(full).status().expect("it starts");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn what_was_typed_controls_no_terminal() {
    let dunnage = Dunnage::new();
    for words in ["plan -s a\x1b[31mb=bare", "plan --set \x1b[31mx=y", "plan --plan /no\x1b[31msuch.toml"] {
        let ran = dunnage.run(words);
        assert!([1, 2].contains(&ran.code) && ran.stderr.contains("error: "), "{ran}");
        assert!(!ran.stderr.contains('\x1b'), "{ran}");
    }
}

#[test]
fn experiments_instead_of_a_plans_own_leave_its_settings_behind() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("plan --plan ladder lifecycle -s fake --rounds 3");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("lifecycle") && !ran.stdout.contains("prestate"), "{ran}");
    let ran = dunnage.run("plan lifecycle -s fake --set prestate=idle");
    assert!(ran.code == 2 && ran.stderr.contains("hint: lifecycle has no settings"), "{ran}");
}
