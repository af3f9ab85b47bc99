//! Quotas on planted windows with known truth: which is enough for bursts, and which is not.

use dunnage::document::{Extent, Look, shown};
use dunnage::experiment::fixed_work::THREADS;
use dunnage::experiment::throttle::names::{
    BURSTS_WAITING, BUSY, CPUS, EVERY, LATENCY, LENGTH, LOAD, PERIODS, QUOTA, QUOTA_PERIOD, SYSTEM,
    THROTTLED, THROTTLED_TIME, TURNS, USAGE, USER, WINDOW,
};
use dunnage::experiment::{self, Metric};
use dunnage::outcome::Sample;
use dunnage::plan::{self, Entry, Layer, Relation};
use dunnage::record::Recorded;
use dunnage::report::Report;
use dunnage::stats::Rng;
use dunnage::stats::quota::{self, Demand, Load, Quota};
use dunnage::verdict::{Kind, analyse};

use crate::scripted::planted::{entry, recorded, request, rules};

const ROUNDS: usize = 11;
const MS: u64 = 1_000_000;
const WINDOW_LENGTH: u64 = 1500 * MS;

/// A window of bursts of 45 ms as the model has it, each later by this many nanoseconds for another reason.
fn window(cpus: Option<f64>, later: impl Fn(usize) -> f64) -> Sample {
    let demand = Demand { load: Load::Bursts { work: 45 * MS, every: 100 * MS }, threads: 1, cpus: 2 };
    let each = cpus.map(|cpus| (cpus * 100.0) as u64 * MS);
    let ideal =
        quota::ideal(each.map(|each| Quota { each, period: 100 * MS, burst: 0 }), demand, WINDOW_LENGTH);
    let mut counters = vec![
        (LOAD, 1),
        (BUSY, 45 * MS),
        (EVERY, 100 * MS),
        (LENGTH, WINDOW_LENGTH),
        (THREADS, 1),
        (CPUS, 2),
        (WINDOW, WINDOW_LENGTH),
        (USAGE, ideal.usage),
        (USER, ideal.usage),
        (SYSTEM, 0),
        (TURNS, ideal.usage / 2),
        (BURSTS_WAITING, ideal.waiting),
    ];
    if let Some((each, periods)) = each.zip(ideal.periods) {
        counters.extend([(QUOTA, each), (QUOTA_PERIOD, 100 * MS), (PERIODS, periods)]);
        counters.extend([(THROTTLED, ideal.throttled), (THROTTLED_TIME, ideal.throttled_time)]);
    }
    let latencies = ideal.latencies.iter().enumerate();
    let latencies = latencies.map(|(at, latency)| *latency as i64 + later(at) as i64);
    Sample::default()
        .with(counters.into_iter().map(|(name, value)| (name, value as i64)))
        .with([(LATENCY, latencies.collect())])
}

/// A run of docker without a quota and with these; `later` says how much later each burst of a quota is, in each round.
fn run(quotas: &[&str], later: impl Fn(&str, usize) -> f64) -> Recorded {
    let variant = |cpus: &&str| Entry {
        variant_of: Some("docker".into()),
        only_in: vec!["throttle"],
        ..entry(&format!("docker:cpus={cpus}"), Layer::Engine)
    };
    let subjects = [entry("docker", Layer::Engine)].into_iter().chain(quotas.iter().map(variant));
    let plan = plan::make(request(vec!["throttle"], subjects.collect(), ROUNDS));
    let of_cell = |cell: usize| -> Vec<Sample> {
        let cpus = plan.entry(cell).spec.get("cpus").unwrap_or("none").to_owned();
        let mut rng = Rng::for_stream(5, cell as u64);
        let round = |round: usize| {
            let late = later(&cpus, round) + 20_000.0 * rng.standard_normal().abs();
            window(cpus.parse().ok(), |burst| late + burst as f64)
        };
        (0..ROUNDS).map(round).collect()
    };
    let metrics = experiment::find("throttle").unwrap().metrics;
    let values = |cell: usize| {
        let samples = of_cell(cell);
        let column = |metric: &Metric| {
            samples.iter().map(|sample| metric.value(sample).unwrap_or(f64::NAN)).collect::<Vec<f64>>()
        };
        metrics.iter().map(column).collect()
    };
    let mut run = recorded(plan.clone(), values);
    for (cell, series) in run.series.iter_mut().enumerate() {
        series.samples = of_cell(cell).into_iter().map(Some).collect();
    }
    run
}

/// The answer about quotas.
fn answer(run: &Recorded) -> String {
    let analysis = analyse(run);
    let table = analysis.experiment_tables.iter().find(|one| one.name == "quota").unwrap();
    table.told().into_iter().find(|one| one.contains("in brackets")).map(str::to_owned).unwrap_or_default()
}

fn word_of(run: &Recorded, cpus: &str) -> &'static str {
    let of = |one: &&dunnage::verdict::Finding| {
        one.about.metric == "burst_p50" && one.about.subject == format!("docker:cpus={cpus}")
    };
    analyse(run).findings.iter().find(of).unwrap_or_else(|| panic!("nothing about {cpus}")).word()
}

#[test]
fn a_quota_above_the_bursts_is_enough_and_one_below_is_not() {
    let run = run(&["0.1", "0.4", "0.5", "1.0"], |_, _| 0.0);
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), [""; 0]);
    let decided: Vec<_> = analysis
        .findings
        .iter()
        .filter(|one| one.kind() != Kind::Context && one.about.relation != Relation::Twin)
        .map(|one| (one.about.subject.as_str(), one.about.against.as_str(), one.word()))
        .collect();
    let of = |label, word| (label, "docker", word);
    let expected = [
        of("docker:cpus=0.1", "slower"),
        of("docker:cpus=0.4", "slower"),
        of("docker:cpus=0.5", "same"),
        of("docker:cpus=1.0", "same"),
    ];
    assert_eq!(decided, expected);
    // The model's bursts under 0.4 CPUs take 135 ms in the median of 1.5 s.
    let told = answer(&run);
    assert!(told.starts_with("`docker`, bursts: 0.5 CPUs are enough ("), "{told}");
    assert!(
        told.contains("), 0.4 CPUs are not enough (90.0 ms [90.0, 90.0]); in brackets: how much longer"),
        "{told}"
    );
    for quota in ["0.1 CPU", "1 CPU"] {
        assert!(!told.contains(quota), "only the two next to the demand: {told}");
    }
    let interval = told.split(['(', ')']).nth(1).unwrap();
    assert!(interval.contains(" [−") && interval.ends_with(']'), "{told}");
}

/// The near misses: what is later by less than the kernel's slices is enough, and what cannot be seen is undecided.
#[test]
fn bursts_that_are_a_little_later_are_no_reason_to_raise_a_quota() {
    let of = |millis: f64| move |cpus: &str, _| if cpus == "0.5" { millis * 1e6 } else { 0.0 };
    assert_eq!(word_of(&run(&["0.5"], of(4.0)), "0.5"), "same");
    assert_eq!(word_of(&run(&["0.5"], of(7.0)), "0.5"), "slower");
    let noisy = |cpus: &str, round: usize| {
        if cpus == "0.5" { 10e6 * Rng::for_stream(3, round as u64).standard_normal() } else { 8e6 }
    };
    let noisy = run(&["0.4", "0.5"], noisy);
    assert_eq!(word_of(&noisy, "0.5"), "undecided");
    let told = answer(&noisy);
    assert!(
        told.starts_with("`docker`, bursts: 0.4 CPUs are not enough (")
            && told.contains("), 0.5 CPUs are undecided ("),
        "{told}"
    );
}

#[test]
fn too_few_windows_say_nothing_about_enough() {
    let mut run = run(&["0.4", "0.5"], |_, _| 0.0);
    run.contexts[run.plan.warmups + 3..].fill(None);
    assert_eq!((answer(&run), word_of(&run, "0.4")), (String::new(), "too few"));
}

#[test]
fn the_answer_is_on_the_first_screen_and_the_table_has_the_verdicts() {
    let run = run(&["0.4", "0.5"], |_, _| 0.0);
    let report = Report::of(&run, &analyse(&run));
    let text = |extent, width| {
        let look = Look { width, extent, ..Look::default() };
        let text = shown(&report, "terminal", &look).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let brief = text(Extent::Brief, 80);
    for words in [
        "`docker`, bursts: 0.5 CPUs are enough (",
        "each burst waited 11.6 ms longer",
        ": the quota is the cause",
    ] {
        assert!(brief.contains(words), "`{words}`: {brief}");
    }
    let full = text(Extent::Full, 200);
    assert!(full.contains("longer than without verdict"), "{full}");
    let row = full.split("bursts 0.4 CPUs").find(|row| row.contains("] slower")).expect("a row");
    assert!(row.contains("90.0 ms [90.0, 90.0] slower"), "{row}");
    // Twins are for the noise floor.
    assert!(!full.contains("docker (twin) bursts") && full.contains("docker bursts"), "{full}");
}
