//! Settings against their controls: planted differences are found within the subject that has them, and nowhere else.

use dunnage::document::{Extent, Look, shown};
use dunnage::outcome::{Failure, FailureClass};
use dunnage::plan::{self, Entry, Layer, Plan, Request, Role};
use dunnage::record::{Cause, FailureRow, Recorded};
use dunnage::report::Report;
use dunnage::report::summary::{Claim, Topic, claims};
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::verdict::{Analysis, Finding, Kind, analyse};

use crate::dunnage::Dunnage;
use crate::scripted::planted::{entry, recorded, request, rules};

const ROUNDS: usize = 30;
/// A round trip inside, and what a bridge adds, in seconds.
const INSIDE: f64 = 20e-6;
const BRIDGE: f64 = 10e-6;

/// What is planted.
#[derive(Clone, Copy)]
struct Planted {
    /// What a published port adds to the bridge of docker, and of podman.
    published: [f64; 2],
    /// The spread of every value.
    noise: f64,
    /// The spread of docker's twin on this path in addition.
    twin: (&'static str, f64),
}

const CALM: Planted = Planted { published: [190e-6, 0.0], noise: 50e-9, twin: ("bridge", 0.0) };

fn plan() -> Plan {
    let subjects = [
        ("bare", Layer::Bare, &[][..]),
        ("floor", Layer::Floor, &[Need::Address]),
        ("docker", Layer::Engine, &[Need::Address, Need::Ports]),
        ("podman", Layer::Engine, &[Need::Address, Need::Ports]),
    ];
    let subject = |(name, layer, more): (&str, Layer, &[Need])| {
        let own = entry(name, layer);
        Entry { offers: [&own.offers[..], more].concat(), ..own }
    };
    plan::make(request(vec!["net-latency"], subjects.map(subject).to_vec(), ROUNDS))
}

/// Rounds have a pace of their own, which all cells share and which is larger than any path.
fn run(planted: Planted) -> Recorded {
    let plan = plan();
    recorded(plan.clone(), |cell| {
        let mut own = Rng::for_stream(11, cell as u64);
        let (path, label) = (plan.cells[cell].setting.get("path").unwrap(), &plan.entry(cell).label);
        let adds = match (path, label.as_str()) {
            ("inside", _) => 0.0,
            ("published", "podman") => BRIDGE + planted.published[1],
            ("published", _) => BRIDGE + planted.published[0],
            _ => BRIDGE,
        };
        let is_noisy = label == "docker (twin)" && path == planted.twin.0;
        let noise = planted.noise + if is_noisy { planted.twin.1 } else { 0.0 };
        let mut values = vec![vec![f64::NAN; ROUNDS]; plan.metrics(&plan.cells[cell]).len()];
        for (round, value) in values[0].iter_mut().enumerate() {
            let pace = 300e-6 * Rng::for_stream(7, round as u64).standard_normal().abs();
            *value = INSIDE + pace + adds + noise * own.standard_normal();
        }
        values
    })
}

/// The findings that compare settings, by subject.
fn of_settings(analysis: &Analysis) -> Vec<(&str, &Finding)> {
    let all = analysis.findings.iter().filter(|one| one.about.relation.is_of_settings());
    all.map(|one| (one.about.subject.as_str(), one)).collect()
}

fn words(run: &Recorded) -> Vec<(String, &'static str)> {
    let analysis = analyse(run);
    of_settings(&analysis).into_iter().map(|(label, one)| (label.to_owned(), one.word())).collect()
}

fn told(run: &Recorded, topic: Topic) -> Vec<String> {
    let all = claims(run, &analyse(run)).into_iter();
    all.filter(|one: &Claim| one.topic == topic).map(|one| one.answer).collect()
}

/// The words of a text, without its line breaks.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_a_published_port_costs_compared_with_the_bridge_is_found_in_its_subject() {
    let run = run(CALM);
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), [""; 0]);
    let [("docker", docker), ("podman", podman)] = of_settings(&analysis)[..] else {
        panic!("{:?}", of_settings(&analysis))
    };
    assert_eq!((docker.kind(), podman.kind()), (Kind::Slower, Kind::Same));
    let difference = docker.difference.unwrap();
    let interval = difference.interval.unwrap();
    assert!(interval.low <= 190e-6 && 190e-6 <= interval.high, "{difference:?}");
    assert!((difference.value - 190e-6).abs() < 0.2e-6, "{difference:?}");
    // At the level of what is asked first, which has grown by two.
    assert_eq!(difference.alpha, run.plan.alpha_for("net-latency", Role::First));
    let [docker, podman] = &told(&run, Topic::Setting)[..] else {
        panic!("{:?}", told(&run, Topic::Setting))
    };
    assert!(docker.starts_with("docker: path=published instead of bridge costs 190 µs [1"), "{docker}");
    assert!(docker.ends_with("] in `p50`"), "{docker}");
    assert_eq!(podman, "podman: path=published instead of bridge makes no difference that matters in `p50`");
}

#[test]
fn every_format_says_it_and_places_and_differences_from_the_baseline_stay_those_of_subjects() {
    let run = run(CALM);
    let report = Report::of(&run, &analyse(&run));
    for (format, extent) in [
        ("terminal", Extent::Brief),
        ("terminal", Extent::Full),
        ("md", Extent::Full),
        ("html", Extent::Full),
    ] {
        let text = shown(&report, format, &Look { width: 100, extent, ..Look::default() }).unwrap();
        let said = flowing(&text.replace(['`', '\\'], "").replace("<code>", "").replace("</code>", ""));
        for words in ["docker: path=published instead of bridge costs 190 µs", "in p50"] {
            assert!(said.contains(words), "{format}: `{words}`: {said}");
        }
    }
    let json = shown(&report, "json", &Look::default()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let found = json["experiments"][0]["comparisons"].as_array().unwrap();
    let found: Vec<_> = found.iter().filter(|one| one["relation"] == "one setting").collect();
    assert_eq!(found.len(), 2);
    for one in found {
        assert_eq!(
            (&one["key"], &one["value"], &one["control"]),
            (&"path".into(), &"published".into(), &"bridge".into())
        );
        assert_eq!(one["subject"], one["against"]);
    }
    // Bare has one path; floor, docker and podman are compared with it there.
    let compared = report.experiments[0].rows().filter_map(|(_, _, row)| row.found(0));
    let compared: Vec<_> =
        compared.map(|one| (one.about.subject.as_str(), one.about.against.as_str())).collect();
    assert_eq!(compared, ["floor", "docker", "podman"].map(|label| (label, "bare")));
}

/// The near misses: equal settings are never slower, and neither is what does not matter or is not seen.
#[test]
fn equal_settings_are_the_same_or_undecided() {
    let both = |word| ["docker", "podman"].map(|label| (label.to_owned(), word));
    let of = |published: f64, noise: f64| words(&run(Planted { published: [published; 2], noise, ..CALM }));
    assert_eq!(of(0.0, 50e-9), both("same"));
    assert_eq!(of(0.0, 12e-6), both("undecided"));
    // The margin is 3 % of the control, which has the pace of its round.
    assert_eq!(of(1e-6, 50e-9), both("same"));
    assert_eq!(of(100e-6, 50e-9), both("slower"));
    assert_eq!(of(-9e-6, 50e-9), both("faster"));
}

/// Twins show how far apart two cells of one subject are by chance; on either path that may hide a difference.
#[test]
fn a_difference_within_the_noise_of_either_setting_is_not_believed() {
    let of = |path| {
        let planted = Planted { published: [12e-6, 0.0], twin: (path, 60e-6), ..CALM };
        words(&run(planted)).first().expect("docker").1
    };
    assert_eq!(["published", "bridge", "inside"].map(of), ["in noise", "in noise", "slower"]);
}

#[test]
fn a_path_that_drops_rounds_fails_more_often_than_its_control() {
    let mut run = run(CALM);
    let is_it = |cell: &usize| {
        run.plan.entry(*cell).label == "podman"
            && run.plan.cells[*cell].setting.get("path") == Some("published")
    };
    let cell = (0..run.plan.cells.len()).find(is_it).unwrap();
    for round in (0..ROUNDS).filter(|round| round % 5 < 2) {
        run.series[cell].values.iter_mut().for_each(|column| column[round] = f64::NAN);
        let cause = Cause::Failed(Failure::new(FailureClass::Crash, "it failed as planted"));
        run.failures.push(FailureRow { cell, round: run.plan.warmups + round, cause });
    }
    // It is no longer the same: the rounds that failed could have shown anything.
    assert_eq!(words(&run)[1], ("podman".to_owned(), "undecided"));
    let [failing] = &told(&run, Topic::Failures)[..] else { panic!("{:?}", told(&run, Topic::Failures)) };
    let both = "podman (published) fails more often than docker (0 of 30) and podman (bridge) (0 of 30): in 12 of 30 rounds";
    assert_eq!(failing, both);
}

#[test]
fn a_precision_is_that_of_differences_from_the_baseline() {
    let run = run(Planted { noise: 20e-6, ..CALM });
    let analysis = analyse(&run);
    let widest = &analysis.findings[analysis.precision.expect("intervals").finding].about;
    assert_eq!(widest.against, "bare");
    assert!(!widest.relation.is_of_settings(), "{widest:?}");
}

/// A subject alone is its own baseline, and yet its settings are compared.
#[test]
fn a_single_subject_has_an_answer_about_its_settings() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run disk -s a=fake:time=1s --no-vary --rounds 14 --seed 5 --no-html -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let said = flowing(&ran.stdout);
    // The script's root takes twice as long as its volume, whose bytes never arrive at a device.
    let (_, answer) =
        said.split_once("a: place=volume instead of root saves ").unwrap_or_else(|| panic!("{ran}"));
    for words in ["5", " s [", "] in `read_gb` and 0.99 ms [", "] in `random_read`"] {
        assert!(answer.contains(words), "`{words}`: {answer}");
    }
    let analysis = analyse(&dunnage::record::load(&dunnage.directory()).unwrap());
    let kinds: Vec<_> = of_settings(&analysis)
        .into_iter()
        .filter(|(_, one)| one.kind() != Kind::Context)
        .map(|(_, one)| (one.about.metric, one.word()))
        .collect();
    let expected = [
        ("write_gb", "suspect"),
        ("read_gb", "faster"),
        ("fsync", "suspect"),
        ("random_read", "faster"),
        ("random_write", "suspect"),
    ];
    assert_eq!(kinds, expected);
    assert!(said.contains("3 comparisons of disk rest on suspect numbers"), "{ran}");
}

#[test]
fn a_plan_lists_the_settings_that_it_compares() {
    let dunnage = Dunnage::new();
    let plan = |more: &str| {
        flowing(&dunnage.run(&format!("plan disk -s a=fake -s b=fake --rounds 14 {more}")).stdout)
    };
    assert!(
        plan("").contains("each (also place=volume against root), plus 20 of twins as controls"),
        "{}",
        plan("")
    );
    let full = plan("--full");
    for pair in ["`a` and itself: place=volume against root", "`b` and itself: place=volume against root"] {
        assert!(full.contains(pair), "`{pair}`: {full}");
    }
    let without = plan("--set place=bind --set place=root --full");
    assert!(!without.contains("itself") && !without.contains("(also "), "{without}");
    // A precision is of differences between subjects.
    let refused = dunnage.run("plan disk -s a=fake --precision 5%");
    assert!(refused.code == 2 && refused.stderr.contains("this run has none"), "{refused}");
}

#[test]
fn a_request_for_a_path_without_its_control_compares_nothing() {
    let chosen = vec![("path".to_owned(), vec!["published".to_owned()])];
    let request = request(vec!["net-latency"], plan().subjects[..4].to_vec(), ROUNDS);
    let plan = plan::make(Request { chosen, ..request });
    assert!(plan.cells.iter().any(|cell| cell.setting.get("path") == Some("published")));
    assert!(plan.comparisons.iter().all(|one| !one.relation.is_of_settings()));
}

/// What is compared is what the plan says, so a run of a version that compared no settings stays as it was.
#[test]
fn a_run_that_compared_no_settings_is_read_and_has_no_verdicts_on_them() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run disk -s a=fake -s b=fake --no-vary --rounds 14 --seed 5 --no-html -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let path = dunnage.directory().join("plan.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let comparisons = file["comparisons"].as_array_mut().unwrap();
    comparisons.retain(|one| one["relation"] != "one setting");
    // Two subjects in four places and five metrics.
    assert_eq!(file["verdicts"][0]["asked"], 4 * 5 + 2 * 5 - 3);
    assert_eq!(file["verdicts"][0]["first"], 3);
    let write = |file: &serde_json::Value| std::fs::write(&path, file.to_string()).unwrap();
    write(&file);
    let refused = dunnage.run("report DIR");
    assert!(refused.code == 1 && refused.stderr.contains("does not match its comparisons"), "{refused}");
    file["verdicts"][0]["asked"] = (4 * 5 - 1).into();
    file["verdicts"][0]["first"] = 1.into();
    write(&file);
    let shown = dunnage.run("report DIR");
    assert!(shown.code == 0 && !shown.stdout.contains("instead of root"), "{shown}");
    let analysis = analyse(&dunnage::record::load(&dunnage.directory()).unwrap());
    assert!(of_settings(&analysis).is_empty() && !analysis.findings.is_empty());
}
