//! Runs that were never measured: the same values from the same seed, with the plan of a real run.

use std::collections::BTreeMap;

use dunnage::experiment;
use dunnage::launch::names::{CLIENT_CPU, ENGINE_CPU, FIRST, GONE, READY, RETURNED, SPAWN};
use dunnage::outcome::{Failure, FailureClass, Sample};
use dunnage::plan::{self, Entry, Ladder, Plan, Request, Rounds};
use dunnage::record::{Cause, Environment, FailureRow, Recorded, RoundContext, Series};
use dunnage::stats::Rng;
use dunnage::subject::{Layer, Spec};
use dunnage::units::{Nanos, Stamp};

/// The times of a scripted subject in milliseconds: to the first instruction, to the client's return, until
/// all is gone; and CPU time of client and engine.
type Times = [f64; 5];

/// A subject as in the plan.
pub fn entry(text: &str, layer: Layer, ladder: Ladder, runtime: Option<&str>) -> Entry {
    let spec = Spec::parse(text).expect("a subject");
    Entry {
        label: spec.shown(),
        // In plan files, specifications do not include their labels.
        spec: Spec { label: None, ..spec },
        layer,
        ladder,
        twin_of: None,
        runtime: runtime.map(str::to_owned),
        launch: Nanos::from_millis(50),
        offers: dunnage::subject::Need::CONTAINER.to_vec(),
        only_in: Vec::new(),
        variant_of: None,
        inherited: Default::default(),
    }
}

/// All subjects of a machine with two engines and two runtimes.
pub fn full_ladder() -> Vec<Entry> {
    use Ladder::{AsInstalled, Equalised};
    let mut subjects = vec![
        entry("bare", Layer::Bare, AsInstalled, None),
        entry("floor", Layer::Floor, AsInstalled, None),
        entry("crun", Layer::Runtime, AsInstalled, Some("crun")),
        entry("runc", Layer::Runtime, AsInstalled, Some("runc")),
    ];
    let engines = [("docker", "runc"), ("docker+crun", "crun"), ("podman", "crun"), ("podman+runc", "runc")];
    for (ladder, keys) in [(AsInstalled, ""), (Equalised, ":log=none,net=none")] {
        subjects
            .extend(engines.map(|(name, runtime)| {
                entry(&format!("{name}{keys}"), Layer::Engine, ladder, Some(runtime))
            }));
    }
    subjects
}

/// The plan of these subjects.
pub fn plan(subjects: Vec<Entry>, rounds: usize) -> Plan {
    plan_of(vec!["start"], subjects, rounds)
}

/// The same with these experiments.
pub fn plan_of(experiments: Vec<&'static str>, subjects: Vec<Entry>, rounds: usize) -> Plan {
    plan_with(Vec::new(), experiments, subjects, rounds)
}

/// The same with chosen values of settings.
pub fn plan_with(
    chosen: Vec<plan::Chosen>,
    experiments: Vec<&'static str>,
    subjects: Vec<Entry>,
    rounds: usize,
) -> Plan {
    plan::make(Request {
        experiments,
        subjects,
        chosen,
        seed: 7,
        rounds: Rounds::Fixed(rounds),
        allowed: dunnage::plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
        trial: None,
    })
}

/// A run of this plan without failures.
pub fn run(plan: Plan) -> Recorded {
    let rounds = plan.warmups + plan.rounds;
    let empty = |cell: &plan::Cell| Series {
        values: vec![vec![f64::NAN; plan.rounds]; plan.metrics(cell).len()],
        positions: vec![None; plan.rounds],
        predecessors: vec![None; plan.rounds],
        treatments: vec![Some(0); plan.rounds],
        samples: Vec::new(),
        tails: Vec::new(),
    };
    let mut run = Recorded {
        run: "r-7".into(),
        environment: environment(&plan),
        series: plan.cells.iter().map(empty).collect(),
        failures: Vec::new(),
        contexts: vec![Some(RoundContext::default()); rounds],
        treatments: vec![vec![("network".into(), "loopback".into())]],
        missing: Vec::new(),
        damaged: 0,
        cut: false,
        resumed: false,
        lasted: Some(dunnage::units::Nanos::from_millis(252_000)),
        plan,
    };
    for round in 0..run.plan.rounds {
        let order = run.plan.order(round + run.plan.warmups);
        // A disturbance of a round affects all its cells alike.
        let weather = 1.0 + 0.01 * Rng::for_stream(99, round as u64).standard_normal();
        for (position, &cell) in order.iter().enumerate() {
            let sample = sample(&run.plan, cell, round, weather);
            let metrics = run.plan.metrics(&run.plan.cells[cell]);
            for (metric, column) in metrics.iter().zip(&mut run.series[cell].values) {
                column[round] = metric.value(&sample).unwrap_or(f64::NAN);
            }
            run.series[cell].positions[round] = Some(position);
            run.series[cell].predecessors[round] = position.checked_sub(1).map(|before| order[before]);
        }
    }
    run
}

/// The sample of a cell in a round.
pub fn sample(plan: &Plan, cell: usize, round: usize, weather: f64) -> Sample {
    let planned = &plan.cells[cell];
    let entry = &plan.subjects[planned.subject];
    let mut random = Rng::for_stream(41 + cell as u64, round as u64);
    let noise = weather * (1.0 + 0.02 * random.standard_normal());
    let primed = planned.setting.get("prestate") == Some("primed");
    let [first, returned, gone, client, engine] = times(entry, primed).map(|time| time * noise);
    let stamp = |millis: f64| Stamp(1_000_000_000 + (millis * 1e6) as u64);
    let stamps =
        [(SPAWN, 0.0), (FIRST, first), (READY, first + 0.31 * noise), (RETURNED, returned), (GONE, gone)];
    let counter = |millis: f64| (millis * 1e6) as i64;
    Sample::default()
        .with(stamps.map(|(name, at)| (name, stamp(at))))
        .with([(CLIENT_CPU, counter(client)), (ENGINE_CPU, counter(engine))])
}

fn times(entry: &Entry, primed: bool) -> Times {
    let runtime = |name: Option<&str>| if name == Some("crun") { 4.1 } else { 14.6 };
    let own = runtime(entry.runtime.as_deref());
    let quiet = if primed { 0.0 } else { 1.0 };
    let equalised = if entry.ladder == Ladder::Equalised { 1.0 } else { 0.0 };
    match entry.spec.name.as_str() {
        "bare" => [0.41, 0.80, 0.83, 0.52, 0.0],
        "floor" => [1.32, 1.94 + quiet * 9.0, 2.61 + quiet * 9.0, 1.61, 0.0],
        "crun" | "runc" | "youki" => {
            [own * 0.7 + quiet * 11.0, own + 1.3 + quiet * 15.0, own + 1.9 + quiet * 15.0, own * 0.8, 0.0]
        }
        "docker" => {
            let base = 205.0 + own + quiet * 22.0 - equalised * 71.0;
            [base * 0.72, base, base * 1.02, 14.2, 61.0 + own]
        }
        _ => {
            let base = 148.0 + own + quiet * 26.0 - equalised * 38.0;
            [base * 0.61, base, base * 1.21, 96.0 + own, 0.0]
        }
    }
}

fn environment(plan: &Plan) -> Environment {
    let fact = |(name, fact): (&str, &str)| (name.to_owned(), fact.to_owned());
    let component = |entry: &Entry| dunnage::record::SubjectFacts {
        components: vec![dunnage::record::ComponentFacts {
            role: entry.layer.name().into(),
            path: format!("/usr/bin/{}", entry.spec.name),
            version: match entry.spec.name.as_str() {
                "docker" => "Docker version 20.10.24+dfsg1, build 297e128".into(),
                "bare" | "floor" => String::new(),
                other => format!("{other} version 1.8.1\ncommit: f8a096be060b22ccd3d5f3ebe44108517fbf6c30"),
            },
            sha256: "b".repeat(64),
        }],
        notes: BTreeMap::new(),
    };
    Environment {
        asked: Vec::new(),
        dunnage: "0.1.0".into(),
        probe: "5f2c9a1d04e7".repeat(6)[..64].to_owned(),
        run: "r-7".into(),
        host: "workbench".into(),
        started: "2026-11-21T06:15:39Z".into(),
        command: vec!["dunnage".into(), "run".into()],
        tags: BTreeMap::from([fact(("purpose", "scripted"))]),
        machine: BTreeMap::from(
            [
                ("kernel", "6.1.0-18-amd64"),
                ("distribution", "Debian GNU/Linux 12 (bookworm)"),
                ("cpu", "AMD EPYC 7763 64-Core Processor"),
                ("cpu_usable", "2"),
                ("memory_bytes", "8328855552"),
                ("hypervisor", "kvm"),
            ]
            .map(fact),
        ),
        timer: dunnage::record::Timer { step: 1, cost: 25 },
        subjects: plan.subjects.iter().map(|entry| (entry.label.clone(), component(entry))).collect(),
        unavailable: BTreeMap::new(),
        words: BTreeMap::new(),
        no_cpu_accounting: None,
        filter: None,
        origin: None,
    }
}

/// Replaces a cell's values of a round by a failure.
pub fn fail(run: &mut Recorded, cell: usize, round: usize, failure: Failure) {
    for column in &mut run.series[cell].values {
        column[round] = f64::NAN;
    }
    let round = round + run.plan.warmups;
    run.failures.push(FailureRow { cell, round, cause: Cause::Failed(failure) });
}

/// The cells of the subject with this label.
pub fn cells_of(run: &Recorded, label: &str) -> Vec<usize> {
    let is_it = |cell: &usize| run.plan.subjects[run.plan.cells[*cell].subject].label == label;
    (0..run.plan.cells.len()).filter(is_it).collect()
}

/// The index of a metric of `start`.
pub fn metric(name: &str) -> usize {
    let metrics = experiment::find("start").expect("it exists").metrics;
    metrics.iter().position(|metric| metric.name == name).expect("it exists")
}

/// A failure in an engine's own words.
pub fn crash(words: &str) -> Failure {
    Failure::new(FailureClass::Crash, "`docker run` ended with code 125").with_words(words.as_bytes())
}
