//! `resume` starts the programs that a plan names, so it refuses every run that its user did not begin on this machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::dunnage::{Dunnage, Ran};
use crate::support::{Need, lacks};

const STRANGER: u32 = 54_321;
const FILES: [&str; 3] = ["env.json", "plan.json", "samples.jsonl"];

/// An unfinished run.
fn unfinished(dunnage: &Dunnage) {
    let ran = dunnage.run("run start -s a=fake -s b=fake --rounds 12 --seed 7 --no-html -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let samples = dunnage.directory().join("samples.jsonl");
    let text = fs::read_to_string(&samples).unwrap();
    let half: Vec<&str> = text.lines().take(text.lines().count() / 2).collect();
    fs::write(&samples, half.join("\n") + "\n").unwrap();
}

/// Another user's run, which names a program that leaves a mark. Returns that program's mark.
fn planted(directory: &Path) -> PathBuf {
    let (program, mark) = (directory.with_extension("program"), directory.with_extension("mark"));
    fs::write(&program, format!("#!/bin/sh\necho x > {}\n", mark.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = directory.join("plan.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    plan["subjects"][0]["subject"] = format!("crun:bin={}", program.display()).into();
    fs::write(&path, plan.to_string()).unwrap();
    mark
}

#[track_caller]
fn refused(dunnage: &Dunnage, mark: &Path, why: &str) -> Ran {
    let ran = dunnage.run("resume DIR");
    assert!(!mark.exists(), "the program of a stranger ran: {ran}");
    assert!(
        ran.code == 2 && ran.stderr.contains(why) && ran.stderr.contains("hint: look at it with"),
        "{ran}"
    );
    assert_eq!(dunnage.run("report DIR").code, 0);
    ran
}

#[test]
fn a_run_that_another_user_made_starts_nothing() {
    if lacks("a_run_that_another_user_made_starts_nothing", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    unfinished(&dunnage);
    let own = dunnage.directory();
    let mark = planted(&own);
    // Unpacked or copied by root: everything belongs to root, and nothing was sealed here.
    refused(&dunnage, &mark, "its plan was not made with the state directory");
    let sealed = fs::read(own.join("resume.json")).unwrap();
    fs::remove_file(own.join("resume.json")).unwrap();
    refused(&dunnage, &mark, "it has no `resume.json`");
    // With an invented proof.
    fs::write(own.join("resume.json"), r#"{"proof":"","variables":{}}"#).unwrap();
    fs::set_permissions(own.join("resume.json"), fs::Permissions::from_mode(0o600)).unwrap();
    refused(&dunnage, &mark, "its plan was not made with the state directory");
    fs::write(own.join("resume.json"), &sealed).unwrap();
    // Still the stranger's own.
    for path in FILES.iter().map(|name| own.join(name)).chain([own.join("resume.json"), own.clone()]) {
        chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    }
    refused(&dunnage, &mark, "belongs to user 54321");
    chown(&own, Some(0), Some(0)).unwrap();
    refused(&dunnage, &mark, "belongs to user 54321");
}

#[test]
fn an_own_run_is_resumed_although_others_could_write_to_it_only_if_they_cannot() {
    if lacks("an_own_run_is_resumed_although_others_could_write_to_it_only_if_they_cannot", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    unfinished(&dunnage);
    let own = dunnage.directory();
    let none = own.with_file_name("no mark");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&dunnage, &none, "other users can write to");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    // The samples must not be written to through a link either.
    let (samples, away) = (own.join("samples.jsonl"), own.with_file_name("samples"));
    fs::rename(&samples, &away).unwrap();
    std::os::unix::fs::symlink(&away, &samples).unwrap();
    let before = fs::read(&away).unwrap();
    assert_ne!(dunnage.run("resume DIR").code, 0);
    assert_eq!(fs::read(&away).unwrap(), before);
    fs::rename(&away, &samples).unwrap();
    // A moved run is still its user's.
    fs::rename(&own, own.with_file_name("moved")).unwrap();
    let ran = dunnage.run("resume moved");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(
        fs::metadata(own.with_file_name("moved").join("resume.json")).unwrap().permissions().mode() & 0o777,
        0o600
    );
}
