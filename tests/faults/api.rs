//! An engine's API whose answers are partial, late, garbage or refusals, or that goes away: each is a failure
//! of the right class in the engine's words, and the container is removed.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use dunnage::record;
use tempfile::TempDir;

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::server::{Reply, Server, kind};
use crate::support::{Need, lacks};

/// A program, a directory for sockets, and the subject that uses the one in it.
struct Scene {
    dunnage: Dunnage,
    place: TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene { dunnage: Dunnage::new(), place: TempDir::new().expect("a directory") }
    }

    fn socket(&self) -> PathBuf {
        self.place.path().join("engine.sock")
    }

    fn subject(&self) -> String {
        format!("docker:client=api,host=\"unix://{}\"", self.socket().display())
    }

    fn run(&self) -> Ran {
        self.run_within(2)
    }

    /// With this many seconds for each request.
    fn run_within(&self, seconds: u32) -> Ran {
        let subject = self.subject();
        self.dunnage.run(&format!(
            "run start -s bare -s {subject} --rounds 2 --set prestate=idle --timeout {seconds} -o DIR"
        ))
    }
}

/// A daemon that behaves normally except for one kind of request, while dunnage tries the subject: the run
/// continues without it and says why. Returns the requests.
fn tried(
    kind_of_fault: &'static str,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
    words: &[&str],
) -> Vec<String> {
    let scene = Scene::new();
    let server = Server::start(&scene.socket(), None, move |shown, _| {
        if kind(shown) == kind_of_fault { reply() } else { Reply::Usual }
    });
    let ran = scene.run();
    assert_eq!(ran.code, 6, "{ran}");
    let line = ran.stderr.lines().find(|line| line.starts_with("not available: docker:client=api"));
    let line = line.unwrap_or_else(|| panic!("{ran}"));
    assert!(words.iter().all(|words| line.contains(words)), "{words:?} in {line}");
    assert_eq!(left_after_another(&scene.dunnage), Vec::<PathBuf>::new());
    server.requests()
}

/// What is left after the next session has removed what this one could not. Not after `sweep`, which would
/// also remove the images that parallel tests use.
fn left_after_another(dunnage: &Dunnage) -> Vec<PathBuf> {
    let next = dunnage.run("check start -s bare");
    assert_eq!(next.code, 0, "{next}");
    dunnage.left_in_state()
}

/// The name of the container that was to be made, and what happened to it after the fault.
fn removed_by_force(requests: &[String]) -> bool {
    let created = requests.iter().find_map(|shown| shown.split_once("/containers/create?name="));
    let Some((_, name)) = created else { return false };
    let removal = format!("DELETE /v1.41/containers/{name}?v=1&force=1");
    assert!(name.starts_with("dunnage-"), "{name}");
    requests.contains(&removal)
}

#[test]
fn half_an_answer_is_a_crash_and_the_container_is_removed() {
    let half: [fn() -> Reply; 3] = [
        || Reply::Raw("HTTP/1.1 201 Cre".into()),
        || Reply::Raw("HTTP/1.1 201 Created\r\nContent-Length: 88\r\n\r\n{\"Id\":\"0123".into()),
        || Reply::Raw("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n58\r\n{\"Id\"".into()),
    ];
    for reply in half {
        let words = "crash: the engine closed the connection in the middle of its answer to `POST /v1.41/containers/create";
        assert!(removed_by_force(&tried("create", reply, &[words])));
    }
    let before = "crash: the engine closed the connection before its answer to `POST /v1.41/containers/";
    assert!(removed_by_force(&tried("start", || Reply::Raw(String::new()), &[before])));
    assert!(removed_by_force(&tried("wait", || Reply::Raw(String::new()), &[before])));
}

#[test]
fn a_late_answer_is_a_timeout_and_the_container_is_removed() {
    for kind in ["create", "attach", "start", "wait"] {
        let requests = tried(kind, || Reply::Hang, &["timeout: `POST ", "was not answered within 2.00 s"]);
        assert!(removed_by_force(&requests), "{requests:?}");
    }
}

#[test]
fn garbage_is_wrong_output() {
    let garbage = || Reply::Raw("SSH-2.0-OpenSSH_9.2\r\n\r\n".into());
    assert!(removed_by_force(&tried("create", garbage, &["wrong output: ", "its answer is not HTTP"])));
    let nonsense = || Reply::Json(200, "<html>hello</html>".into());
    assert!(removed_by_force(&tried("wait", nonsense, &["wrong output: ", "is not JSON", "<html>"])));
    let nothing = || Reply::Json(200, "{}".into());
    assert!(removed_by_force(&tried(
        "wait",
        nothing,
        &["wrong output: ", "does not say how the container ended"]
    )));
    tried("version", garbage, &["its answer is not HTTP"]);
    tried("info", nonsense, &["is not JSON"]);
    tried("version", || Reply::Json(200, r#"{"ApiVersion":"1.19"}"#.into()), &["the engine supports API"]);
}

#[test]
fn a_no_is_told_in_the_words_of_the_engine_and_the_container_is_removed() {
    let no = |status, message: &str| Reply::Json(status, format!("{{\"message\":\"{message}\"}}"));
    let requests = tried(
        "create",
        move || no(404, "No such image: gone:latest"),
        &["environment: `POST /v1.41/containers/create", "404", "No such image: gone:latest"],
    );
    assert!(removed_by_force(&requests));
    for kind in ["attach", "start", "wait"] {
        let reply = move || no(500, "it broke in the middle");
        assert!(removed_by_force(&tried(kind, reply, &["crash: `POST ", "500", "it broke in the middle"])));
    }
    let words = ["crash: `DELETE ", "it broke in the middle"];
    assert!(removed_by_force(&tried("remove", move || no(500, "it broke in the middle"), &words)));
    let failed = || Reply::Json(200, r#"{"Error":null,"StatusCode":126}"#.into());
    assert!(removed_by_force(&tried("wait", failed, &["crash: ", "ended with exit code 126"])));
    // Every request succeeds and nothing ran: the output is empty.
    assert!(removed_by_force(&tried("nothing", || Reply::Usual, &["wrong output: ", "succeeded, but"])));
}

#[test]
fn what_cannot_be_asked_is_said_with_the_remedy() {
    let scene = Scene::new();
    let ran = scene.run();
    let told = format!("cannot connect to the docker daemon at `unix://{}`", scene.socket().display());
    assert!(
        ran.code == 6 && ran.stderr.contains(&told) && ran.stderr.contains("remedy: start the daemon"),
        "{ran}"
    );
    for host in ["tcp://127.0.0.1:1", "ssh://user@host"] {
        let ran = scene.dunnage.run(&format!("check start -s docker:client=api,host=\"{host}\""));
        assert_eq!(ran.code, 4, "{ran}");
        let told = format!("`client=api` needs a Unix socket, and `{host}` is not one");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(&told), "{ran}");
    }
    let ran = scene.dunnage.run("check start -s docker:client=api,bin=/bin/true");
    assert!(
        ran.code == 4 && format!("{}{}", ran.stdout, ran.stderr).contains("`bin` names a build of"),
        "{ran}"
    );
}

#[test]
fn a_socket_that_is_closed_to_us_is_a_matter_of_permission() {
    const TEST: &str = "a_socket_that_is_closed_to_us_is_a_matter_of_permission";
    if lacks(TEST, Need::Root) {
        return;
    }
    let scene = Scene::new();
    let _server = Server::start(&scene.socket(), None, |_, _| Reply::Usual);
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    open(&scene.socket(), 0o600);
    open(scene.place.path(), 0o755);
    let copy = scene.dunnage.given_to(65534);
    let wrapper = "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all";
    let arguments = format!("run start -s bare -s {} --rounds 1 --set prestate=idle -o DIR", scene.subject());
    let ran = scene.dunnage.through(&format!("{wrapper} {}", copy.display()), &arguments);
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains("permission denied while trying to connect to `unix://"), "{ran}");
    assert!(ran.stderr.contains("remedy: join the group `docker`, or run as root"), "{ran}");
}

/// In front of the real daemon, a fault in the first launch after the two trials.
fn in_the_first_round(scene: &Scene, fault: &'static str, reply: fn() -> Reply) -> Server {
    let real = std::path::Path::new("/var/run/docker.sock");
    Server::start(&scene.socket(), Some(real), move |shown, before| {
        if kind(shown) == fault && before == 2 { reply() } else { Reply::Usual }
    })
}

#[test]
fn a_real_daemon_that_falls_silent_leaves_nothing() {
    const TEST: &str = "a_real_daemon_that_falls_silent_leaves_nothing";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    for fault in ["create", "start", "wait"] {
        let scene = Scene::new();
        let _server = in_the_first_round(&scene, fault, || Reply::Swallow);
        // A real daemon on a busy machine takes seconds for undisturbed requests, too.
        let ran = scene.run_within(8);
        assert_eq!(ran.code, 0, "{ran}");
        let recorded = record::load(&scene.dunnage.directory()).expect("a run directory");
        let told = format!("{:?}", recorded.failures);
        assert!(
            told.contains("Timeout") && told.contains("was not answered within 8.00 s"),
            "{fault}: {told}"
        );
        assert_eq!(left_after_another(&scene.dunnage), Vec::<PathBuf>::new());
        assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{fault}");
    }
}

#[test]
fn a_real_daemon_that_goes_away_is_rows_and_its_container_is_swept_when_it_is_back() {
    const TEST: &str = "a_real_daemon_that_goes_away_is_rows_and_its_container_is_swept_when_it_is_back";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let scene = Scene::new();
    let server = in_the_first_round(&scene, "start", || Reply::Die);
    let ran = scene.run_within(8);
    assert_eq!(ran.code, 6, "{ran}");
    let recorded = record::load(&scene.dunnage.directory()).expect("a run directory");
    let told = format!("{:?}", recorded.failures);
    assert!(told.contains("closed the connection before its answer to `POST "), "{told}");
    assert!(told.contains("cannot connect to the docker daemon"), "{told}");
    let next = scene.dunnage.run("check start -s bare");
    assert!(next.stderr.contains("could not remove `dunnage-"), "{next}");
    drop(server);
    let _back = in_the_first_round(&scene, "nothing", || Reply::Usual);
    assert_eq!(left_after_another(&scene.dunnage), Vec::<PathBuf>::new());
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new());
}
