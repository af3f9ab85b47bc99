//! `dunnage advise cpu` on real containers: its advice for a load of known size, and its message where there
//! is nothing to watch. Bounds are physical: a load of one thread uses at most one CPU.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output, Stdio};

use ::dunnage::image::Image;
use ::dunnage::subject::{Spec, podman};
use serde_json::Value;

use crate::documented::compare;
use crate::dunnage::{Dunnage, Ran, finished};
use crate::support::{Need, lacks};

/// CPUs that a load uses in any six seconds: 0.28 to 0.30 are wanted, and what comes late is used in the next ones.
const STEADY: std::ops::Range<f64> = 0.25..0.35;
/// The same for the load with two peaks, which wants 0.45 to 0.46, for half of the time 0.8.
const TWO_PEAKED: std::ops::Range<f64> = 0.38..0.53;

/// A container that works until it is dropped.
struct Container {
    engine: &'static str,
    name: String,
    id: String,
}

impl Container {
    /// With this task of the probe, and these options of `run`.
    fn start(engine: &'static str, test: &str, options: &[&str], task: &[&str]) -> Container {
        let name = format!("dunnage-test-{}-{test}", std::process::id());
        let mut arguments: Vec<String> =
            ["run", "--detach", "--network", "none", "--name", &name].map(str::to_owned).to_vec();
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        if engine == "podman" {
            let limits = podman::limits_to_ask_for(&Spec::plain("podman"));
            arguments.extend(
                limits
                    .iter()
                    .flat_map(|(name, most)| ["--ulimit".to_owned(), format!("{name}={most}:{most}")]),
            );
        }
        arguments.push(image(engine));
        arguments.extend(task.iter().map(|word| (*word).to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let id = said(engine, &arguments);
        Container { engine, name, id }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Command::new(self.engine).args(["rm", "--force", &self.name]).output();
    }
}

/// An engine's standard output.
fn said(engine: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(engine).args(arguments).stdin(Stdio::null()).output().expect("the engine's client");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{engine} {arguments:?}: {words}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The image of the program under test, which `check` loads.
fn image(engine: &str) -> String {
    let ran = Dunnage::new().run(&format!("check start -s {engine} --set prestate=primed"));
    assert_eq!(ran.code, 0, "{ran}");
    let bytes = fs::read(env!("CARGO_BIN_EXE_dunnage")).expect("the executable");
    Image::small(&bytes).reference.to_owned()
}

fn begun(dunnage: &Dunnage, arguments: &str) -> Child {
    let mut command = dunnage.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn ended(child: Child) -> Ran {
    finished(child.wait_with_output().expect("it ends"))
}

fn document(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{ran}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// What must be true of a load of one thread without a limit that wants as many CPUs in any six seconds or more.
fn plausible(advice: &Value, wants: std::ops::Range<f64>) {
    let usage = &advice["usage"];
    let quantiles = ["p50", "p95", "max"].map(|name| number(&usage[name]));
    assert!(quantiles.is_sorted() && quantiles[2] > 0.0, "{usage}");
    // The counter may be a tick late at one end of a window of 100 ms, and not at the other.
    assert!(quantiles[2] <= 1.12, "{usage}");
    assert!(wants.contains(&number(&usage["mean"])), "{usage}");
    assert_eq!(advice["watched"]["limit"], Value::Null);
    assert_eq!(advice["is_censored"], false);
    let tried = advice["tried"].as_array().expect("a list");
    let shares: Vec<f64> = tried.iter().map(|one| number(&one["predicted"]["throttled_share"])).collect();
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{tried:?}");
    // A load without a limit is throttled at a twentieth of its mean, and not above its peak.
    assert!(shares[0] > 0.5, "{tried:?}");
    assert_eq!(advice["recommendation"]["kind"], "limit", "{advice:#}");
    let recommended = number(&advice["recommendation"]["cpus"]);
    assert!(recommended >= number(&usage["p50"]) && recommended <= 1.3, "{advice:#}");
}

#[test]
fn a_container_of_docker_is_advised_on_by_name_by_id_and_by_cgroup() {
    const TEST: &str = "a_container_of_docker_is_advised_on_by_name_by_id_and_by_cgroup";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let container = Container::start("docker", "named", &[], &["load", "steady"]);
    let dunnage = Dunnage::new();
    // A whole cycle of the load, so that the limit is tried with the load that gave it.
    let by_name =
        begun(&dunnage, &format!("advise cpu {} --for 10s --limit 0.01 --format json", container.name));
    let by_id = begun(&dunnage, &format!("advise cpu {} --for 6s --every 20ms", &container.id[..12]));
    let by_name = ended(by_name);
    let advice = document(&by_name);
    plausible(&advice, STEADY);
    let target = &advice["target"];
    assert_eq!((&target["engine"], &target["id"]), (&"docker".into(), &container.id.clone().into()));
    assert!(by_name.stderr.contains("watching `"), "{by_name}");
    let settings = advice["settings"]["docker"].as_str().expect("a command line");
    assert!(
        settings.starts_with("docker update --cpus ") && settings.ends_with(&container.name),
        "{settings}"
    );
    // What is printed can be pasted.
    let words: Vec<&str> = settings.split(' ').collect();
    said(words[0], &words[1..]);
    let page = ended(by_id);
    assert!(page.code == 0 && page.stdout.contains("kubernetes:\n  resources:"), "{page}");
    assert!(page.stdout.contains("recommended") && page.stdout.contains("p95 × 1.5"), "{page}");

    let path = target["cgroup"].as_str().expect("a path").to_owned();
    let limited = document(&dunnage.run(&format!("advise cpu {path} --for 10s --format json")));
    assert_eq!(limited["target"]["engine"], Value::Null);
    let limit = &limited["watched"]["limit"];
    assert_eq!(limit["cpus"], advice["recommendation"]["cpus"], "{limited:#}");
    // What the recommendation promises.
    // Of a hundred periods of which one in a hundred is throttled, six are in one run of two thousand; a smaller limit throttles most.
    let counted = |name: &str| limit[name].as_u64().expect("a count");
    assert!((90..=110).contains(&counted("periods")) && counted("throttled_periods") < 6, "{limited:#}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_container_of_podman_is_advised_on() {
    const TEST: &str = "a_container_of_podman_is_advised_on";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) {
        return;
    }
    let container = Container::start("podman", "podman", &[], &["load", "two-peaked"]);
    let ran =
        Dunnage::new().run(&format!("advise cpu {} --for 6s --limit 0.01 --format json", container.name));
    let advice = document(&ran);
    plausible(&advice, TWO_PEAKED);
    assert_eq!(advice["target"]["engine"], "podman");
    assert!(
        advice["settings"]["podman"].as_str().is_some_and(|line| line.starts_with("podman update --cpus "))
    );
}

/// A limit of a sixth of the demand: no advice until it is raised as suggested, and then none below the
/// demand.
#[test]
fn usage_that_a_limit_cut_gives_no_advice_but_the_way_to_some() {
    const TEST: &str = "usage_that_a_limit_cut_gives_no_advice_but_the_way_to_some";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let container = Container::start("docker", "limited", &["--cpus", "0.05"], &["load", "steady"]);
    let dunnage = Dunnage::new();
    let watch = || {
        document(&dunnage.run(&format!("advise cpu {} --for 6s --limit 0.02 --format json", container.name)))
    };
    let advice = watch();
    let limit = &advice["watched"]["limit"];
    assert!(number(&limit["throttled_share"]) > 0.5 && number(&limit["throttled_time"]) > 0.0, "{advice:#}");
    assert_eq!((&limit["cpus"], &advice["is_censored"]), (&0.05.into(), &true.into()));
    for cut in ["rule", "request", "settings"] {
        assert_eq!(advice[cut], Value::Null, "{advice:#}");
    }
    let advised = &advice["recommendation"];
    assert_eq!((&advised["kind"], &advised["cpus"]), (&"raise".into(), &0.05.into()), "{advice:#}");
    let update = |cpus| format!("docker update --cpus {cpus} {}", container.name);
    let commands = &advised["commands"];
    assert_eq!((&commands["raise"], &commands["put_back"]), (&update("0.1").into(), &update("0.05").into()));
    let known = |one: &Value| (number(&one["cpus"]) < 0.05, !one["predicted"].is_null());
    assert!(
        advice["tried"].as_array().expect("a list").iter().map(known).all(|(below, known)| below == known),
        "{advice:#}"
    );
    let page = dunnage.run(&format!("advise cpu {} --for 5s", container.name));
    for words in
        ["No advice: the current limit of 0.05 CPUs throttled", &update("0.1"), "trust the first watch that"]
    {
        assert!(page.stdout.contains(words), "`{words}`: {page}");
    }
    assert!(!page.stdout.contains("1.5"), "the usual rule, of usage that was cut: {page}");

    let mut last = advice.clone();
    while last["is_censored"] == true && number(&last["recommendation"]["cpus"]) < 1.0 {
        let raise = last["recommendation"]["commands"]["raise"].as_str().expect("a command line").to_owned();
        let words: Vec<&str> = raise.split(' ').collect();
        said(words[0], &words[1..]);
        last = watch();
    }
    assert!(number(&last["watched"]["limit"]["cpus"]) >= 0.2, "{last:#}");
    assert_eq!(last["is_censored"], false, "{last:#}");
    assert!(number(&last["recommendation"]["cpus"]) >= number(&last["usage"]["p50"]), "{last:#}");
    assert!(number(&last["rule"]) > 0.05, "{last:#}");
    let text = include_str!("../docs/advise-json.md");
    let (section, _) = text.split_once("## `advise probes`").expect("another section");
    compare("advise-json.md", section, &[advice, last], &[], "asked none recommended trade");
}

/// A watch that has begun, with the rest of its standard error.
fn watching(dunnage: &Dunnage, arguments: &str) -> Child {
    let mut child = begun(dunnage, arguments);
    let mut line = String::new();
    let mut errors = BufReader::with_capacity(1, child.stderr.take().expect("a pipe"));
    errors.read_line(&mut line).expect("a line");
    assert!(line.starts_with("watching `"), "{line}");
    child.stderr = Some(errors.into_inner());
    child
}

#[test]
fn a_container_that_ends_while_it_is_watched_is_told() {
    const TEST: &str = "a_container_that_ends_while_it_is_watched_is_told";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let container = Container::start("docker", "ending", &[], &["load", "steady"]);
    let dunnage = Dunnage::new();
    let child = watching(&dunnage, &format!("advise cpu {} --for 300s", container.name));
    said("docker", &["stop", &container.name]);
    let ran = ended(child);
    assert!(ran.code == 1 && ran.stdout.is_empty(), "{ran}");
    assert!(ran.stderr.contains("it ended after ") && ran.stderr.contains("\n\nhint: "), "{ran}");

    let again = dunnage.run(&format!("advise cpu {}", container.name));
    assert!(again.code == 1 && again.stderr.contains("is not running but exited"), "{again}");
    assert!(again.stderr.contains(&format!("`docker start {}`", container.name)), "{again}");
}

fn interrupt(child: &Child) {
    // SAFETY: signals a process that this test made.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
}

#[test]
fn ctrl_c_ends_watching_early_with_advice_or_says_that_too_little_was_seen() {
    const TEST: &str = "ctrl_c_ends_watching_early_with_advice_or_says_that_too_little_was_seen";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let container = Container::start("docker", "stopped", &[], &["load", "steady"]);
    let dunnage = Dunnage::new();
    let arguments = format!("advise cpu {} --for 300s --format json", container.name);
    let (early, later) = (watching(&dunnage, &arguments), watching(&dunnage, &arguments));
    interrupt(&early);
    let early = ended(early);
    assert!(early.code == 5 && early.stdout.is_empty(), "{early}");
    assert!(early.stderr.contains("advice needs at least"), "{early}");
    std::thread::sleep(std::time::Duration::from_millis(5_600));
    interrupt(&later);
    let advice = document(&ended(later));
    assert_eq!(advice["watched"]["ended_early"], true);
    let seconds = number(&advice["watched"]["seconds"]);
    assert!((5.0..300.0).contains(&seconds), "{advice:#}");
}

#[test]
fn what_is_not_there_is_a_wrong_usage_with_a_hint() {
    const TEST: &str = "what_is_not_there_is_a_wrong_usage_with_a_hint";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    for (wanted, expected) in [
        ("dunnage-no-such-container", "no container `dunnage-no-such-container` in "),
        ("/dunnage/no/such/group", "there is no cgroup `/dunnage/no/such/group`"),
    ] {
        let ran = dunnage.run(&format!("advise cpu {wanted} --for 5s"));
        assert!(ran.code == 2 && ran.stderr.contains(expected) && ran.stderr.contains("\n\nhint: "), "{ran}");
    }
    // With so many ids, several begin with the same digit, and some of these differ from ids of parallel
    // tests.
    let image = image("docker");
    let made: Vec<String> =
        (0..24).map(|_| said("docker", &["create", "--network", "none", &image, "stay"])).collect();
    let first = |id: &String| id[..1].to_owned();
    let running = said("docker", &["ps", "--quiet", "--no-trunc"]);
    let is_free = |id: &&String| running.lines().all(|other| other[..1] != id[..1]);
    let shared = made.iter().filter(is_free);
    let shared =
        shared.clone().find(|id| shared.clone().filter(|other| first(other) == first(id)).count() > 1);
    let ran = shared.map(|id| dunnage.run(&format!("advise cpu {} --engine docker", first(id))));
    let remove: Vec<&str> = ["rm", "--force"].into_iter().chain(made.iter().map(String::as_str)).collect();
    said("docker", &remove);
    let ran = ran.expect("two ids that begin alike");
    assert!(ran.code == 2 && ran.stderr.contains("matches several ids"), "{ran}");
}

#[test]
fn an_engine_that_is_missing_stopped_or_elsewhere_is_told_with_its_remedy() {
    let nowhere = tempfile::tempdir().expect("a directory");
    let told = |dunnage: Dunnage, arguments: &str, expected: [&str; 2]| {
        let ran = dunnage.run(arguments);
        assert!(
            ran.code == 4 && expected.iter().all(|words| ran.stderr.contains(words)),
            "{expected:?} {ran}"
        );
    };
    let without = || Dunnage::new().with("PATH", &nowhere.path().display().to_string());
    told(
        without(),
        "advise cpu web",
        ["neither docker nor podman is installed", "hint: give the path of a cgroup"],
    );
    told(without(), "advise cpu web --engine docker", ["docker: not installed", "hint: "]);
    if lacks("an_engine_that_is_missing_stopped_or_elsewhere_is_told_with_its_remedy", Need::Docker) {
        return;
    }
    let socket = format!("unix://{}/none.sock", nowhere.path().display());
    told(
        Dunnage::new().with("DOCKER_HOST", &socket),
        "advise cpu web --engine docker",
        ["Cannot connect", "hint: start the daemon"],
    );
    let remote = Dunnage::new().with("DOCKER_HOST", "tcp://192.0.2.1:2375");
    told(
        remote,
        "advise cpu web --engine docker",
        [
            "its daemon is at `tcp://192.0.2.1:2375`",
            "hint: run dunnage on the machine where the container runs",
        ],
    );
}

#[test]
fn a_user_whom_docker_refuses_is_told_who_may() {
    const TEST: &str = "a_user_whom_docker_refuses_is_told_who_may";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let copy = place.path().join("dunnage");
    fs::copy(env!("CARGO_BIN_EXE_dunnage"), &copy).expect("a copy");
    let open = |path: &std::path::Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions")
    };
    [place.path(), &copy].into_iter().for_each(open);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]).arg(&copy);
    let output: Output = command
        .args(["advise", "cpu", "web", "--engine", "docker"])
        .env("HOME", place.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("setpriv");
    let ran = finished(output);
    assert!(ran.code == 4 && ran.stderr.to_lowercase().contains("permission denied"), "{ran}");
    assert!(ran.stderr.contains("hint: join the group `docker`, or run as root"), "{ran}");
}

#[test]
fn a_container_that_does_nothing_is_told() {
    const TEST: &str = "a_container_that_does_nothing_is_told";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let container = Container::start("docker", "idle", &[], &["stay"]);
    let ran = Dunnage::new().run(&format!("advise cpu {} --for 5s", container.name));
    assert!(ran.code == 4 && ran.stderr.contains("` used no CPU time in 5.0"), "{ran}");
}
