//! What containers inherit, for real: limits that were asked for are found inside every subject, and two subjects with
//! different limits get no cause.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::rootless::user::User;
use crate::running::Running;
use crate::support::{LIMITED, Need, at_hand, lacks, with};
use dunnage::plan::Relation;
use dunnage::record::{self, Recorded};
use dunnage::subject::on_path;
use dunnage::sys::limits::may_be_raised;

/// In how many cells `check` found all of these.
fn with_facts(ran: &Ran, facts: &[&str]) -> usize {
    let has = |line: &&str| facts.iter().all(|fact| line.split_whitespace().any(|word| word == *fact));
    ran.stdout.lines().filter(has).count()
}

#[test]
fn limits_are_in_force_everywhere_and_for_what_enters_too() {
    const TEST: &str = "limits_are_in_force_everywhere_and_for_what_enters_too";
    if lacks(TEST, Need::Root) {
        return;
    }
    // Not another soft limit: Go's runtime raises that in runc now and then while a process enters.
    let all = at_hand(TEST, &LIMITED[..8]);
    let (count, subjects) = (all.len(), with(&all, "ulimit=\"nofile=600,core=0\",cpuset=0"));
    let ran = Dunnage::new().run(&format!("check start exec {subjects} --set prestate=idle"));
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.stdout.contains("differs"), "{ran}");
    let found = with_facts(&ran, &["ulimit=core=0,nofile=600", "cpuset=0"]);
    // The floor has a variant next to it in `start`. crun does not give its limits to what enters.
    let in_exec = if ran.stdout.contains("start prestate=idle crun") { count - 1 } else { count };
    assert_eq!(found, count + 1 + in_exec, "{ran}");
}

#[test]
fn a_limit_that_cannot_be_had_is_refused_with_a_remedy() {
    const TEST: &str = "a_limit_that_cannot_be_had_is_refused_with_a_remedy";
    if lacks(TEST, Need::Root) || may_be_raised() {
        return;
    }
    let ran =
        Dunnage::new().run("check start -s bare:ulimit=100000000 -s floor:cpuset=4000 --set prestate=idle");
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("`ulimit nofile` cannot be raised from"), "{ran}");
    assert!(ran.stdout.contains("CAP_SYS_RESOURCE") && ran.stdout.contains("choose among"), "{ran}");
}

#[test]
fn ctr_takes_limits_only_where_it_has_options_for_them() {
    const TEST: &str = "ctr_takes_limits_only_where_it_has_options_for_them";
    if lacks(TEST, Need::Containerd) {
        return;
    }
    let help = std::process::Command::new("ctr").args(["run", "--help"]).output().expect("ctr");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let dunnage = Dunnage::new();
    for (keys, option) in [("ulimit=500", "--rlimit-nofile"), ("cpuset=0", "--cpuset-cpus")] {
        let ran = dunnage.run(&format!("check start -s containerd:{keys} --set prestate=idle"));
        match help.contains(option) {
            true => assert_eq!(with_facts(&ran, &[keys]), 1, "{ran}"),
            false => assert!(ran.stdout.contains(&format!("it has no option `{option}`")), "{ran}"),
        }
    }
}

/// A crun that is another file, and lowers its limits in this way first.
fn another_crun(dunnage: &Dunnage, lowers: &str) -> PathBuf {
    let path = dunnage.state().with_file_name("other-crun");
    let crun = on_path("crun").expect("crun").display().to_string();
    fs::write(&path, format!("#!/bin/sh\n{lowers}\nexec {crun} \"$@\"\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    path
}

/// A run of crun and another crun, its report, and how the two are compared.
fn two_cruns(dunnage: &Dunnage, lowers: &str) -> (Recorded, Ran, Relation) {
    let other = another_crun(dunnage, lowers).display().to_string();
    let ran = dunnage
        .run(&format!("run start -s crun -s other=crun:bin={other} --rounds 2 --set prestate=primed -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let place = |label: &str| run.plan.subjects.iter().position(|one| one.label == label).unwrap();
    let (crun, other) = (place("crun"), place("other"));
    let comparison = run.plan.comparisons.iter().find(|one| one.subject == other && one.against == crun);
    let relation = comparison.expect("a comparison").relation.clone();
    (run, dunnage.run("report DIR --full --format md"), relation)
}

#[test]
fn no_cause_is_named_where_a_limit_differs_too() {
    const TEST: &str = "no_cause_is_named_where_a_limit_differs_too";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Crun) {
        return;
    }
    let (run, report, relation) = two_cruns(&Dunnage::new(), "ulimit -n 512; umask 027");
    assert_eq!(relation, Relation::KeyAndMore { key: "bin".into() }, "{report}");
    let limits = |label: &str| {
        let entry = run.plan.subjects.iter().find(|one| one.label == label).unwrap();
        entry.inherited["ulimit nofile"].clone()
    };
    assert_eq!(limits("other"), "512");
    let text = report.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let both = format!("ulimit nofile (512 and {})", limits("crun"));
    assert!(
        text.contains("no cause is named, since they also differ in") && text.contains(&both),
        "{report}"
    );
    assert!(!text.contains("One thing differs") && !text.contains("choosing other"), "{report}");
}

#[test]
fn the_cause_is_named_where_only_the_program_is_another() {
    const TEST: &str = "the_cause_is_named_where_only_the_program_is_another";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Crun) {
        return;
    }
    let (_, report, relation) = two_cruns(&Dunnage::new(), "true");
    assert_eq!(relation, Relation::OneKey { key: "bin".into() }, "{report}");
    assert!(report.stdout.contains("One thing differs"), "{report}");
    assert!(!report.stdout.contains("no cause is named, since"), "{report}");
}

#[test]
fn a_comparison_of_runs_names_another_limit() {
    const TEST: &str = "a_comparison_of_runs_names_another_limit";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Crun) {
        return;
    }
    let dunnage = Dunnage::new();
    let low = format!("prlimit --nofile=600:600 {}", env!("CARGO_BIN_EXE_dunnage"));
    let measure = |low_in: &str, directory: &str| {
        let arguments = format!("run start -s crun --rounds 1 --set prestate=primed -o DIR-{directory}");
        let ran = match low_in == directory {
            true => dunnage.through(&low, &arguments),
            false => dunnage.run(&arguments),
        };
        assert_eq!(ran.code, 0, "{ran}");
    };
    for directory in ["old", "same", "low"] {
        measure("low", directory);
    }
    let compared = |new: &str| dunnage.run(&format!("compare DIR-old DIR-{new}"));
    let (same, low) = (compared("same"), compared("low"));
    assert!(low.stdout.contains("ulimit nofile") && low.stdout.contains("Not comparable"), "{low}");
    assert!(!same.stdout.contains("ulimit") && !same.stdout.contains("Not comparable"), "{same}");
}

#[test]
fn a_run_is_not_resumed_from_a_shell_with_another_limit() {
    const TEST: &str = "a_run_is_not_resumed_from_a_shell_with_another_limit";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Crun) {
        return;
    }
    let dunnage = Dunnage::new();
    let mut run = Running::start(&dunnage, "run start -s crun --rounds 20 --set prestate=primed -o DIR");
    run.await_event(&["\"cell ends\"", "crun"]);
    run.signal_with(libc::SIGINT, |id| vec![id.to_owned()]);
    let low = format!("prlimit --nofile=600:600 {}", env!("CARGO_BIN_EXE_dunnage"));
    let refused = dunnage.through(&low, "resume DIR");
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("what `crun` inherits: ulimit nofile ("), "{refused}");
    let resumed = dunnage.run("resume DIR");
    assert_eq!(resumed.code, 0, "{resumed}");
}

#[test]
fn a_private_daemon_gets_the_limits_of_the_users_or_both_are_named() {
    const TEST: &str = "a_private_daemon_gets_the_limits_of_the_users_or_both_are_named";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Dockerd) {
        return;
    }
    let Some(_user) = User::closed(TEST, 'q') else { return };
    let dunnage = Dunnage::new();
    // Root of a remapped docker must be able to enter it.
    let above = dunnage.directory().parent().unwrap().to_owned();
    fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |ran: Ran| {
        assert_eq!(ran.code, 0, "{ran}");
        let run = record::load(&dunnage.directory()).expect("a run directory");
        assert_eq!(left::of_run(&run.run), Vec::<String>::new(), "{ran}");
        fs::remove_dir_all(dunnage.directory()).expect("ours");
        let place = |label: &str| run.plan.subjects.iter().position(|one| one.label == label).unwrap();
        let limit = |label: &str| run.plan.subjects[place(label)].inherited["ulimit nofile"].clone();
        let pair = (place("docker:userns=remap"), place("docker"));
        let comparison = run.plan.comparisons.iter().find(|one| (one.subject, one.against) == pair);
        let relation = comparison.expect("a comparison").relation.clone();
        (limit("docker"), limit("docker:userns=remap"), relation, ran.stderr)
    };
    let arguments = "run start -s docker -s docker:userns=remap --rounds 1 --set prestate=primed -o DIR";
    let (users, private, relation, said) = run(dunnage.run(arguments));
    assert_eq!((&private, relation), (&users, Relation::OneKey { key: "userns".into() }), "{said}");
    // From a shell with a low limit.
    let low = format!("prlimit --nofile=1024:1024 {}", env!("CARGO_BIN_EXE_dunnage"));
    let (again, private, relation, said) = run(dunnage.through(&low, arguments));
    assert_eq!(again, users, "{said}");
    if may_be_raised() {
        assert_eq!((private, relation), (users, Relation::OneKey { key: "userns".into() }), "{said}");
        return;
    }
    assert_eq!(
        (private.as_str(), relation),
        ("1024", Relation::KeyAndMore { key: "userns".into() }),
        "{said}"
    );
    let named = format!("ulimit nofile 1024 where the user's daemon has {users}");
    assert!(said.contains(&named), "{said}");
}
