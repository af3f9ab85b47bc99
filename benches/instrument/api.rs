//! Do requests to an engine's API take as long from dunnage as by hand? By hand is curl: one process that
//! makes, starts, waits for and removes a container over one connection, with the same bodies.
//!
//! curl reports the time of each request itself. Its own start and end are not subtracted from anything: they
//! are in a separate row, next to the row of the requests.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use dunnage::launch::names::{ATTACHED, CREATED, REMOVED};
use dunnage::names::StampName;
use dunnage::probe::Task;
use dunnage::subject::api::requests::ContainerConfig;
use dunnage::subject::resources;
use dunnage::subject::{Launch, Spec, Subject, docker};

use crate::bench::Bench;
use crate::sides::take_turns;
use crate::table::{Row, Target};

const SUBJECT: &str = "docker:client=api";
/// The requests of both sides. Between the first two, dunnage attaches to the output, which is in neither
/// side's figure.
const REQUESTS: usize = 4;

/// Which of curl's times is used.
#[derive(Clone, Copy)]
enum Time {
    /// The sum of the times that it reports for its requests (`%{time_total}`).
    Requests,
    /// The process, seen from outside.
    Process,
}

/// Docker over its API against curl.
pub fn against_curl(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let mut subject = bench.subject(SUBJECT)?;
    let rows =
        [("docker API / curl's requests", Time::Requests), ("docker API / curl process", Time::Process)];
    let rows = rows.map(|(name, time)| compare(bench, rounds, subject.as_mut(), name, time));
    rows.into_iter().collect()
}

fn compare(
    bench: &mut Bench,
    rounds: usize,
    subject: &mut dyn Subject,
    name: &str,
    time: Time,
) -> Result<Row> {
    let note = subject.about().facts.notes.iter().find(|(name, _)| *name == "api version");
    let version = note.context("the subject does not report its API version")?.1.clone();
    let address = docker::address(None);
    let socket = address.strip_prefix("unix://").context("the daemon does not listen on a socket")?;
    let container = bench.run.next_name();
    let body = bench.scratch().join("create.json");
    std::fs::write(&body, create_body(bench)?)?;
    let resource = resources::container(&SUBJECT, &container);
    let noted = bench.run.note(resource).map_err(|why| anyhow!("{why}"))?;
    let arguments = arguments(&version, Path::new(socket), &body, &container);
    let pairs = take_turns(
        bench,
        rounds,
        Box::new(|bench| {
            bench.fall_silent();
            by_curl(&arguments, time)?;
            by_curl(&arguments, time)
        }),
        Box::new(|bench| {
            bench.launch(subject)?;
            requests(&bench.launch(subject)?)
        }),
    );
    // curl removes its containers; one is left only if curl was killed.
    if pairs.is_ok() || subject.remove(&container).is_ok() {
        bench.run.cross_out(noted);
    }
    Ok(Row::of_pairs(name, bench, &pairs?, &Target::Either(0.9, 1.1, 0.010)))
}

/// The same body as the subject's.
fn create_body(bench: &Bench) -> Result<String> {
    let wish = ContainerConfig {
        spec: &Spec::parse(SUBJECT)?,
        image: &bench.run.place.reference,
        executable: None,
        detail: None,
        ulimits: &[],
        run: &bench.run.id,
        state: &bench.run.place.id,
    };
    Ok(wish.body(Task::Start.into()).to_string())
}

fn arguments(version: &str, socket: &Path, body: &Path, container: &str) -> Vec<String> {
    let containers = format!("http://localhost/v{version}/containers");
    let requests: [(&str, String, Vec<String>); REQUESTS] = [
        (
            "POST",
            format!("{containers}/create?name={container}"),
            vec![
                "--header".into(),
                "Content-Type: application/json".into(),
                "--data-binary".into(),
                format!("@{}", body.display()),
            ],
        ),
        ("POST", format!("{containers}/{container}/start"), Vec::new()),
        ("POST", format!("{containers}/{container}/wait"), Vec::new()),
        ("DELETE", format!("{containers}/{container}?v=1"), Vec::new()),
    ];
    let mut all = Vec::new();
    for (index, (method, target, more)) in requests.into_iter().enumerate() {
        if index > 0 {
            all.push("--next".to_owned());
        }
        all.extend(["--silent", "--show-error", "--output", "/dev/null", "--write-out"].map(str::to_owned));
        all.push("%{http_code} %{time_total}\\n".into());
        all.extend(["--unix-socket".into(), socket.display().to_string(), "--request".into(), method.into()]);
        all.extend(more);
        all.push(target);
    }
    all
}

fn by_curl(arguments: &[String], time: Time) -> Result<f64> {
    let began = Instant::now();
    let output =
        Command::new("curl").args(arguments).stdin(Stdio::null()).output().context("cannot run `curl`")?;
    let process = began.elapsed().as_secs_f64();
    ensure!(output.status.success(), "curl: {}", String::from_utf8_lossy(&output.stderr).trim());
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let times: Vec<f64> = told
        .lines()
        .filter_map(|line| {
            let (status, time) = line.split_once(' ')?;
            status.starts_with('2').then(|| time.parse().ok())?
        })
        .collect();
    ensure!(times.len() == REQUESTS, "the answers to curl's requests are {told:?}");
    Ok(match time {
        Time::Requests => times.iter().sum(),
        Time::Process => process,
    })
}

/// The same four requests of a launch.
fn requests(launch: &Launch) -> Result<f64> {
    let at = |name: StampName| {
        let found = launch.parts.iter().find(|(own, _)| *own == name);
        found.map(|(_, at)| *at).with_context(|| format!("the launch has no stamp `{name}`"))
    };
    let create = at(CREATED)?.since(launch.spawned);
    let rest = at(REMOVED)?.since(at(ATTACHED)?);
    Ok((create + rest).seconds())
}
