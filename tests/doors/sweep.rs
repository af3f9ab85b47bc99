//! What `sweep` must not take for dunnage's own, and what it must: labels, names and processes that anyone could have made.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::dunnage::Dunnage;
use crate::rootless::user::{Ids, User, said};
use crate::support::{Need, Sweeps, lacks};

/// A container that was made and not started; it is removed with the result.
struct Created(String);

impl Created {
    fn new(name: &str, options: &[&str], image: &str) -> Created {
        let arguments = [&["create", "--name", name][..], options, &[image, "start"]].concat();
        Created(said("docker", &arguments).unwrap().trim().to_owned())
    }

    fn is_there(&self) -> bool {
        said("docker", &["container", "inspect", &self.0]).is_ok()
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let _ = said("docker", &["rm", "--force", &self.0]);
    }
}

#[test]
fn labels_and_names_of_others_are_not_believed() {
    let test = "labels_and_names_of_others_are_not_believed";
    if lacks(test, Need::Docker) {
        return;
    }
    let _turn = Sweeps::begin();
    let (dunnage, image) = Dunnage::of_its_own();
    let ran = dunnage.run("check start -s docker --set prestate=primed");
    assert_eq!(ran.code, 0, "{ran}");
    let id = fs::read_to_string(dunnage.state().join("id")).unwrap();
    let number = std::process::id() % 1_000_000;
    let name = |run: &str, which: u32| format!("dunnage-{run}-{:06}", number + which);
    let pipe = dunnage.state().with_file_name("pipe");
    assert_eq!(said("mkfifo", &[&pipe.display().to_string()]), Ok(String::new()));
    let state = |value: &str| format!("dunnage.state={value}");
    let (own, elsewhere) = (state(&id), state("0123456789abcdef0123456789abcdef"));
    let run = "dunnage.run=feedbeef";
    let create = |name: &str, state: &str| Created::new(name, &["--label", run, "--label", state], &image);
    // Another name, another program, labels over two lines, a path as in older versions that would never open.
    let innocent = create(&format!("innocent-{number}"), &own);
    let dead = create(&name("feedbeef", 1), &own);
    let other_program = ["--label", run, "--label", &own, "--entrypoint", "/bin/true"];
    let program = Created::new(&name("feedbeef", 2), &other_program, &image);
    let lines = format!("dunnage.run=x\n{} feedbeef {id}", innocent.0);
    let two = Created::new(&format!("lines-{number}"), &["--label", &lines, "--label", &own], &image);
    let blocks = create(&name("feedbeef", 3), &state(&pipe.display().to_string()));
    // That of a run in a state directory that cannot be seen from here, as in a CI job with this socket.
    let foreign = create(&name("feedbeef", 4), &elsewhere);
    // An image with the label alone, and one that its container needs.
    let tag = format!("innocent:{number}");
    let empty = dunnage.state().with_file_name("empty.tar");
    assert_eq!(said("tar", &["-cf", &empty.display().to_string(), "-T", "/dev/null"]), Ok(String::new()));
    said("docker", &["import", "--change", "LABEL dunnage.image=x", &empty.display().to_string(), &tag])
        .unwrap();

    let begun = Instant::now();
    let swept = dunnage.run("sweep");
    assert!(begun.elapsed() < Duration::from_secs(60), "{swept}");
    let stay = [&innocent, &program, &two, &blocks, &foreign].map(Created::is_there);
    let has_image = said("docker", &["image", "inspect", &tag]).is_ok();
    let _ = said("docker", &["rmi", &tag]);
    assert!(stay == [true; 5] && has_image, "{stay:?} {has_image} {swept}");
    for which in [3, 4] {
        let told = format!(
            "left container `{}` in docker: it belongs to another state directory",
            name("feedbeef", which)
        );
        assert!(swept.stdout.contains(&told) && swept.stdout.contains("docker rm --force"), "{swept}");
    }
    // And what is a dead run's of this state directory goes, with everything that proves it.
    assert!(!dead.is_there(), "{swept}");
    assert_eq!(swept.code, 0, "{swept}");
    drop([innocent, program, two, blocks, foreign]);
    let _ = said("docker", &["rmi", &image]);
}

/// A process of the user that is called `dunnage` and seems to sweep.
struct Pretender(Child);

impl Drop for Pretender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_of_another_user_that_seems_to_sweep_holds_nothing_up() {
    let test = "a_program_of_another_user_that_seems_to_sweep_holds_nothing_up";
    let Some(user) = User::ordinary(test, 's', Ids::Own) else { return };
    let dunnage = Dunnage::new().without_engines();
    let place = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/tmp").unwrap();
    fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = place.path().join("dunnage");
    assert!(Command::new("cp").arg("/bin/tail").arg(&program).status().unwrap().success());
    // `tail` waits for a file called `sweep`.
    fs::write(place.path().join("sweep"), "").unwrap();
    let mut command = Command::new(&program);
    std::os::unix::process::CommandExt::uid(&mut command, user.number);
    command.args(["sweep", "-f"]).current_dir(place.path()).stdout(Stdio::null());
    let pretender = Pretender(command.spawn().unwrap());
    let ran = dunnage.run("check start -s bare");
    // Tests that sweep may run at the same time.
    let is_waited_for = ran.stderr.contains(&format!("`dunnage sweep` (process {})", pretender.0.id()));
    assert!(ran.code == 0 && !is_waited_for, "{ran}");
}
