//! The real podman as an ordinary user, and the errors where that is impossible.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use dunnage::outcome::{Abort, FailureClass};
use dunnage::subject::limits::Limits;
use dunnage::subject::{Container, ContainerRequest};

use crate::dunnage::Dunnage;
use crate::handles::{ends, run_in, subject};
use crate::rootless::user::{Ids, User};
use crate::support::{self, Need};

#[test]
fn podman_works_as_the_user_and_is_cleared_as_the_user() {
    let test = "podman_works_as_the_user_and_is_cleared_as_the_user";
    let Some(user) = User::new(test, 'a', Ids::Subordinate) else { return };
    // Not accessible to others: the user must get the image all the same.
    let dunnage = Dunnage::new();
    fs::create_dir(dunnage.state()).unwrap();
    fs::set_permissions(dunnage.state(), fs::Permissions::from_mode(0o700)).unwrap();
    let subject = format!("podman:net=none,rootless={}", user.name);

    let ran = dunnage.run(&format!("run start -s bare -s {subject} --rounds 2 --set prestate=primed -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let environment = fs::read_to_string(dunnage.directory().join("env.json")).unwrap();
    assert!(environment.contains(&format!("{} ({})", user.name, user.number)), "{environment}");
    assert!(environment.contains("of a login, as `runuser` gives them"), "{environment}");
    let samples = dunnage.run("report DIR --format csv").stdout;
    let measured = |metric: &str| {
        let ours = |line: &&str| line.contains(&subject) && line.contains(&format!(",{metric},"));
        samples.lines().filter(ours).count()
    };
    assert!(measured("returned") >= 2 && measured("client_cpu") >= 2, "{samples}");
    let treatment = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    assert!(treatment.contains(&format!("0 {} 1,1 ", user.number)), "{treatment}");

    assert_eq!(user.podman(&["ps", "--all", "--quiet"]), Ok(String::new()));
    let listed = ["images", "--filter", "label=dunnage.image", "--format", "{{.Repository}}:{{.Tag}}"];
    let image = user.podman(&listed).unwrap().trim().to_owned();
    assert!(image.starts_with("dunnage.local/small:"), "{image}");
    assert!(dunnage.state().join("images/rootless").join(&user.name).exists());

    // A run that was killed: its container is in the journal, and is removed as this user.
    let name = "dunnage-feedbeef-000001";
    user.podman(&["create", "--name", name, "--net", "none", &image]).unwrap();
    fs::create_dir_all(dunnage.state().join("journal")).unwrap();
    let line = format!(
        "{{\"made\":{{\"id\":0,\"resource\":{{\"kind\":\"container\",\"id\":\"{name}\",\"attributes\":{{\"subject\":\"{subject}\"}}}}}}}}\n"
    );
    fs::write(dunnage.state().join("journal/feedbeef.jsonl"), line).unwrap();
    let ran = dunnage.run("check start -s bare");
    assert!(ran.stderr.contains(&format!("removed `{name}` ({subject}) of run feedbeef")), "{ran}");
    assert_eq!(user.podman(&["ps", "--all", "--quiet"]), Ok(String::new()));

    // Only this user's: parallel tests use the images of other engines.
    let place = tempfile::tempdir().unwrap();
    for engine in ["docker", "podman"] {
        let path = place.path().join(engine);
        let script =
            "#!/bin/sh\n[ $(id -u) = 0 ] && exit 1\nPATH=/usr/local/bin:/usr/bin:/bin exec podman \"$@\"\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let ran = dunnage.with_first_on_path(place.path()).run("sweep");
    let alone = !ran.stderr.contains("another dunnage is running") && !ran.stdout.contains("another dunnage");
    let told = format!("removed image `{image}` from podman:rootless={}", user.name);
    let is_removed = ran.stdout.contains(&told);
    // Another dunnage may begin in the middle, when the image is removed already.
    assert!(is_removed || !alone, "{ran}");
    assert_eq!(user.podman(&listed).unwrap().is_empty(), is_removed, "{ran}");
}

#[test]
fn a_user_without_subordinate_ids_is_told_how_to_get_them() {
    let test = "a_user_without_subordinate_ids_is_told_how_to_get_them";
    let Some(user) = User::new(test, 'b', Ids::Own) else { return };
    let ran = Dunnage::new().run(&format!("check start -s podman:net=none,rootless={}", user.name));
    assert_eq!(ran.code, 4, "{ran}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("has no subordinate user and group ids"), "{ran}");
    assert!(said.contains(&format!("no subuid ranges found for user \\\"{}\\\"", user.name)), "{ran}");
    assert!(said.contains("remedy: `usermod --add-subuids "), "{ran}");
}

#[test]
fn a_user_with_too_few_open_files_fails_with_class_and_remedy() {
    let test = "a_user_with_too_few_open_files_fails_with_class_and_remedy";
    let Some(mut user) = User::new(test, 'c', Ids::Subordinate) else { return };
    // Enough for podman itself; the runtime opens one more descriptor for each mount.
    user.limit("hard nofile 24\nsoft nofile 24");
    let ran = Dunnage::new().run(&format!("check start -s podman:net=none,rootless={}", user.name));
    assert_eq!(ran.code, 4, "{ran}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("environment: ") && said.to_lowercase().contains("too many open files"), "{ran}");
    assert!(said.contains("remedy: the limit of open files is too low"), "{ran}");
}

#[test]
fn whoever_cannot_be_the_user_is_named_with_a_remedy() {
    let test = "whoever_cannot_be_the_user_is_named_with_a_remedy";
    if support::lacks(test, Need::Root) || support::lacks(test, Need::Podman) {
        return;
    }
    let dunnage = Dunnage::new();
    let cases = [
        ("dunnage-nobody", "the user `dunnage-nobody` does not exist", "useradd --create-home"),
        ("root", "`root` is root", "plain `podman` runs as root"),
    ];
    for (user, reason, remedy) in cases {
        let ran = dunnage.run(&format!("check start -s podman:rootless={user}"));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 4, "{ran}");
        assert!(said.contains(reason) && said.contains(remedy), "{ran}");
    }
}

#[test]
fn an_ordinary_user_may_not_name_another() {
    let test = "an_ordinary_user_may_not_name_another";
    let Some(user) = User::new(test, 'd', Ids::Subordinate) else { return };
    let Some(other) = User::new(test, 'e', Ids::Subordinate) else { return };
    let dunnage = Dunnage::new().with("HOME", &format!("/home/{}", user.name));
    let program = dunnage.given_to(user.number);
    let wrapper = format!("runuser -u {} -- {}", user.name, program.display());
    let ran = dunnage.through(&wrapper, &format!("check start -s podman:net=none,rootless={}", other.name));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(said.contains(&format!("permission: only root may start programs as `{}`", other.name)), "{ran}");
    // The user's own name changes nothing: podman runs as that user anyway.
    let ran = dunnage.through(&wrapper, &format!("check start -s podman:net=none,rootless={}", user.name));
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.through(&wrapper, "check start -s podman:net=none");
    assert_eq!(ran.code, 0, "{ran}");
}

/// Networks in user space need one.
fn may_open_a_tunnel(test: &str) -> bool {
    let mode = fs::metadata("/dev/net/tun").map_or(0, |file| file.permissions().mode());
    let may = mode & 0o006 == 0o006;
    if !may {
        support::skip(test, Need::Userns, "an ordinary user may not open /dev/net/tun");
    }
    may
}

#[test]
fn a_published_port_of_a_user_is_held_by_a_helper() {
    let test = "a_published_port_of_a_user_is_held_by_a_helper";
    if !may_open_a_tunnel(test) {
        return;
    }
    let Some(user) = User::new(test, 'f', Ids::Subordinate) else { return };
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!(
        "run net-latency -s podman:rootless={} --set path=published --no-vary --rounds 2 -o DIR",
        user.name
    ));
    assert_eq!(ran.code, 0, "{ran}");
    let samples = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    // Which one depends on the version.
    let holds = |name: &str| samples.contains(&format!("\"listener\":\"{name}"));
    assert!(["pasta", "passt", "rootlessport", "slirp4netns"].into_iter().any(holds), "{samples}");
}

#[test]
fn all_ports_of_a_user_are_read_back_and_their_helpers_counted() {
    let test = "all_ports_of_a_user_are_read_back_and_their_helpers_counted";
    if !may_open_a_tunnel(test) {
        return;
    }
    let Some(user) = User::new(test, 'g', Ids::Subordinate) else { return };
    for (net, has_helpers) in [("slirp4netns", true), ("bridge", true), ("pasta", false)] {
        if net == "pasta" && support::lacks(&format!("{test} ({net})"), Need::Pasta) {
            continue;
        }
        let dunnage = Dunnage::new();
        let subject = format!("podman:net={net},publish=3,rootless={}", user.name);
        let ran = dunnage.run(&format!("run start -s {subject} --set prestate=idle --rounds 2 -o DIR"));
        assert!(ran.code == 0 && !ran.stderr.contains("not available"), "{ran}");
        let environment = fs::read_to_string(dunnage.directory().join("env.json")).unwrap();
        assert!(environment.contains("\"published ports\": \"3 at 127.0.0.1\""), "{environment}");
        let samples = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
        assert_eq!(samples.contains("\"port_helpers\":"), has_helpers, "{net}: {samples}");
    }
}

/// What the user may limit is limited; where that is nothing, as on cgroup v1, this is an error and no container without
/// limits.
#[test]
fn a_limit_that_the_user_may_not_set_is_said() {
    let test = "a_limit_that_the_user_may_not_set_is_said";
    let Some(user) = User::new(test, 'a', Ids::Subordinate) else { return };
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let subject = subject(&format!("podman:net=none,rootless={}", user.name), &run);
    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    let request = ContainerRequest { limits, ..ContainerRequest::default() };
    let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
    match container.start() {
        Ok(_) => {
            let text = container
                .cgroups()
                .unwrap()
                .into_iter()
                .find_map(|own| fs::read_to_string(own.join("memory.max")).ok());
            assert_eq!(text.as_deref().map(str::trim), Some("67108864"));
        }
        Err(Abort::Failed(failure)) => {
            assert_eq!(failure.class, FailureClass::Treatment, "{failure}");
            assert!(
                failure.reason.contains("none is in force") && failure.reason.contains("`Delegate=memory`"),
                "{failure}"
            );
        }
        Err(Abort::Interrupted) => panic!("interrupted"),
    }
    drop(container);
    ends(&dunnage, subject, run);
}
