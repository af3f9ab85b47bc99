//! A run of an ordinary user, which leaves no process of an engine that it does not measure.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::dunnage::Dunnage;
use crate::rootless::user::{Ids, User, said};
use crate::support::{Need, lacks};

/// The command lines of a user's processes.
fn processes(user: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|facts| facts.uid() == user));
    let lines = own.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.map(|line| line.replace('\0', " ")).collect()
}

#[test]
fn a_run_without_podman_leaves_no_process_of_podman() {
    let test = "a_run_without_podman_leaves_no_process_of_podman";
    if lacks(test, Need::Crun) {
        return;
    }
    let Some(user) = User::new(test, 'p', Ids::Subordinate) else { return };
    let dunnage = Dunnage::new().with("HOME", &format!("/home/{}", user.name));
    let program = dunnage.given_to(user.number);
    let wrapper = format!(
        "setpriv --reuid {0} --regid {0} --init-groups --inh-caps=-all {1}",
        user.number,
        program.display()
    );
    // Where podman's process would be recorded, another user has put something that can be waited for without an end.
    let planted = format!("/tmp/podman-run-{}", user.number);
    fs::create_dir_all(format!("{planted}/libpod/tmp")).unwrap();
    assert_eq!(said("mkfifo", &[&format!("{planted}/libpod/tmp/pause.pid")]), Ok(String::new()));
    let ran = dunnage.through(&wrapper, "check start -s bare -s crun");
    fs::remove_dir_all(&planted).unwrap();
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(processes(user.number), Vec::<String>::new(), "{ran}");
}
