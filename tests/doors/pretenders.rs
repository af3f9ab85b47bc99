//! Processes of another user that are called like an engine's: none is asked, counted or executed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::dunnage::Dunnage;
use crate::rootless::user::{Ids, User, said};
use crate::support::{Need, lacks};

/// A program that is called `containerd`, whose parent is the first process, as that of the system's is.
fn pretender(user: &User) -> (String, i32) {
    let program = format!("/home/{}/containerd", user.name);
    fs::copy("/bin/sleep", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let begin = format!("setsid {program} 300 >/dev/null 2>&1 </dev/null & echo $!");
    let number = user.shell(&begin).unwrap().trim().parse().unwrap();
    (program, number)
}

#[test]
fn a_process_that_another_user_calls_containerd_is_not_dockers() {
    let test = "a_process_that_another_user_calls_containerd_is_not_dockers";
    if lacks(test, Need::Docker) {
        return;
    }
    let Some(user) = User::ordinary(test, 'c', Ids::Own) else { return };
    let (program, number) = pretender(&user);
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s docker:net=none --rounds 1 --set prestate=primed -o DIR");
    let listed = dunnage.run("list subjects --format json");
    assert_eq!(said("kill", &[&number.to_string()]), Ok(String::new()));
    assert_eq!(ran.code, 0, "{ran}");
    let environment = fs::read_to_string(dunnage.directory().join("env.json")).unwrap();
    assert!(environment.contains("/dockerd") && !environment.contains(&program), "{environment}");
    assert!(!listed.to_string().contains(&program), "{listed}");
}
