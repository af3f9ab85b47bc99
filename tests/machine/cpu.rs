//! The experiment `cpu`: its verdicts on scripted subjects with known truth, the numbers that it rejects, and
//! that the work is done correctly, and in the right place, on every real subject.

use crate::dunnage;
use crate::planted::{cell_of, entry, recorded, request};

use crate::support::{Need, lacks};
use ::dunnage::experiment::Weight;
use ::dunnage::experiment::cpu::CPU;
use ::dunnage::plan::{self, Layer};
use ::dunnage::record::Recorded;
use ::dunnage::stats::Rng;
use ::dunnage::subject::Spec;
use ::dunnage::verdict::{Analysis, Verdict, analyse};
use dunnage::Dunnage;
use serde_json::Value;

const ROUNDS: usize = 20;
/// Positions of metrics.
const ELAPSED: usize = 0;
const HASHING: usize = 4;
const HASHING_ALL: usize = 9;
const DISTURBED: usize = 14;
const CPU_TIME: usize = 16;
const THROTTLED_TIME: usize = 18;
const THROTTLED_PERIODS: usize = 20;

/// The verdicts about one subject against another, by metric.
fn verdicts(report: &Value, subject: &str, against: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let compared = report["experiments"][0]["comparisons"].as_array().expect("comparisons");
    let own = compared.iter().filter(|one| one["subject"] == subject && one["against"] == against);
    own.map(|one| (text(&one["metric"]), text(&one["verdict"]))).collect()
}

#[test]
fn three_percent_more_are_found_and_none_are_called_the_same() {
    let dunnage = Dunnage::new();
    let subjects =
        "-s one=fake:time=1ms,noise=0.2 -s slow=fake:time=1.03ms,noise=0.2 -s like=fake:time=1ms,noise=0.2";
    let ran = dunnage.run(&format!("run cpu {subjects} --set passes=30 --rounds 20 --seed 5 -o DIR --full"));
    assert_eq!(ran.code, 0, "{ran}");
    let report = dunnage.run("report DIR --format json").stdout;
    let report: Value = serde_json::from_str(&report).expect("the report is JSON");
    for (subject, word) in [("slow", "slower"), ("like", "same")] {
        let all: Vec<_> = verdicts(&report, subject, "one");
        let decided: Vec<_> = all.iter().filter(|(_, verdict)| verdict != "context").collect();
        assert_eq!(decided.len(), 12, "{all:?}");
        assert!(decided.iter().all(|(_, verdict)| verdict == word), "{subject}: {all:?}");
    }
    assert!(ran.stdout.contains("is computing slower?  compared with one: 12 same, 12 slower"), "{ran}");
}

#[test]
fn the_number_of_passes_is_checked_before_anything_is_measured() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run cpu -s fake --set passes=29");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("a whole number from 30 to 512"), "{ran}");
}

/// Computing on two subjects, as the probe would have reported it, with little noise.
fn planted() -> Recorded {
    let subjects = vec![entry("bare", Layer::Bare), entry("crun", Layer::Runtime)];
    let values = |cell: usize| {
        let mut rng = Rng::for_stream(11, cell as u64);
        let column = |metric: usize| {
            let is_time = CPU.metrics[metric].weight == Weight::Verdict || metric == CPU_TIME;
            let is_limited = (THROTTLED_TIME..=THROTTLED_PERIODS + 1).contains(&metric);
            let mut value = || match is_time {
                true => 1e-4 * (1.0 + 0.001 * rng.standard_normal()),
                false if is_limited => f64::NAN,
                false => 0.01,
            };
            (0..ROUNDS).map(|_| value()).collect()
        };
        (0..CPU.metrics.len()).map(column).collect()
    };
    recorded(plan::make(request(vec!["cpu"], subjects, ROUNDS)), values)
}

fn rules(analysis: &Analysis) -> Vec<&'static str> {
    let mut rules = crate::planted::rules(analysis);
    rules.dedup();
    rules
}

/// The verdicts about crun in these metrics.
fn about_crun(run: &Recorded, analysis: &Analysis, metrics: &[usize]) -> Vec<Verdict> {
    let own = analysis
        .findings
        .iter()
        .filter(|one| one.cell == cell_of(run, "crun") && metrics.contains(&one.metric));
    own.filter(|one| run.plan.subjects[run.plan.cells[one.against].subject].label == "bare")
        .map(|one| one.verdict.clone())
        .collect()
}

#[test]
fn all_at_once_before_one_alone_is_suspect_and_a_tenth_less_is_not() {
    let mut run = planted();
    assert_eq!(rules(&analyse(&run)), [""; 0]);
    let cell = cell_of(&run, "crun");
    let shrink = |run: &mut Recorded, share: f64| {
        let alone = run.series[cell].values[HASHING].clone();
        for (all, one) in run.series[cell].values[HASHING_ALL].iter_mut().zip(alone) {
            *all = one * share;
        }
    };
    shrink(&mut run, 0.91);
    assert!(!rules(&analyse(&run)).contains(&"shorter together than alone"));
    shrink(&mut run, 0.89);
    let analysis = analyse(&run);
    assert!(rules(&analysis).contains(&"shorter together than alone"), "{:?}", rules(&analysis));
    assert!(matches!(about_crun(&run, &analysis, &[HASHING_ALL])[..], [Verdict::Suspect(_)]));
    assert_eq!(about_crun(&run, &analysis, &[HASHING]), [Verdict::Same]);
}

/// Computing on crun and its twin takes a ninth more wall time, while no pass of a tenth of a millisecond is
/// slower.
fn planted_to_wait() -> Recorded {
    let mut run = planted();
    for cell in 0..run.series.len() {
        if run.plan.subjects[run.plan.cells[cell].subject].label.starts_with("crun") {
            run.series[cell].values[ELAPSED].iter_mut().for_each(|value| *value *= 1.11);
        }
    }
    run
}

/// The effect of `cpus=0.9` on a second of work.
#[test]
fn a_limit_is_seen_by_whoever_waits_and_told_as_the_reason() {
    let mut run = planted_to_wait();
    let cell = cell_of(&run, "crun");
    run.series[cell].values[THROTTLED_TIME] = vec![0.11e-4; ROUNDS];
    run.series[cell].values[THROTTLED_PERIODS] = vec![17.0; ROUNDS];
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), [""; 0]);
    assert_eq!(about_crun(&run, &analysis, &[ELAPSED, HASHING]), [Verdict::More, Verdict::Same]);
    let told = analysis.experiment_tables[0].told().join("\n");
    for words in [
        "fixed work by one thread takes 11.",
        " % longer on `crun` than on `bare`, by the median of the rounds' differences; the medians are 111 µs and 100 µs: its CPU limit is the cause; throttled for 11.0 µs in 17 periods",
    ] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains("by all threads"), "nothing held those back: {told}");
}

/// The same duration without a limit has another reason.
#[test]
fn others_on_the_cpu_are_not_called_a_limit() {
    let told = analyse(&planted_to_wait()).experiment_tables[0].told().join("\n");
    assert!(told.contains("others on its CPUs are the cause, not a limit; CPU time"), "{told}");
}

/// At most nine tenths of each period are used, except what one period lends to the next: so the work takes
/// at least that long, and the kernel's own counters say why.
#[test]
fn nine_tenths_of_a_cpu_are_seen_in_a_second_of_work() {
    const TEST: &str = "nine_tenths_of_a_cpu_are_seen_in_a_second_of_work";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    // The work of all CPUs takes more than a second.
    let options =
        "-s bare -s limited=bare:cpus=0.9 --set passes=30 --set fixed=3000 --rounds 1 -o DIR --full";
    let ran = dunnage.run(&format!("run cpu {options}"));
    assert_eq!(ran.code, 0, "{ran}");
    let lines = std::fs::read_to_string(dunnage.directory().join("samples.jsonl")).expect("samples");
    let samples = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let counters = samples.map(|one| one["counters"].clone());
    let (limited, free): (Vec<Value>, Vec<Value>) = counters
        .filter(|counters| counters["fixed_one"].is_i64())
        .partition(|counters| counters["fixed_one_throttled"].is_i64());
    assert!(limited.len() == 2 && free.len() >= 2, "warmed up once, measured once: {lines}");
    for sample in &limited {
        let number = |name: &str| sample[name].as_f64().unwrap_or_else(|| panic!("{name}: {sample}"));
        for width in ["fixed_one", "fixed_all"] {
            let [cpu, throttled, time] =
                ["_cpu", "_throttled", "_throttled_time"].map(|end| number(&format!("{width}{end}")));
            // One more period may begin, and one may lend to the next what its CPUs were given.
            assert!(cpu <= (number(width) / 100e6 + 1.0) * 90e6 + 2.0 * 5e6, "{width} of {sample}");
            // It has to be throttled in a whole period unless others leave it less than its limit in each; several do not by chance.
            assert!(number(width) >= 400e6, "{width} of {sample}");
            assert!(cpu < number(width) * 0.88 || throttled * time > 0.0, "{width} of {sample}");
            assert!(number(&format!("{width}_periods")) >= throttled, "{width} of {sample}");
        }
        assert!(
            number("fixed_one_throttled_time") <= number("fixed_one") - number("fixed_one_cpu") + 1e6,
            "{sample}"
        );
    }
    let is_throttled =
        limited.last().is_some_and(|sample| sample["fixed_all_throttled_time"].as_i64() > Some(0));
    let told = "fixed work by all threads on `limited` is throttled for";
    assert_eq!(ran.stdout.replace("\n    ", " ").contains(told), is_throttled, "{ran}");
}

#[test]
fn two_rounds_cannot_say_that_all_at_once_were_too_fast() {
    let mut run = planted();
    let cell = cell_of(&run, "crun");
    run.series[cell].values[HASHING_ALL] = vec![0.89e-4; ROUNDS];
    for values in run.series.iter_mut().flat_map(|series| &mut series.values) {
        values.iter_mut().skip(2).for_each(|value| *value = f64::NAN);
    }
    assert_eq!(rules(&analyse(&run)), [""; 0]);
}

#[test]
fn a_subject_without_calm_passes_has_no_value_and_no_verdict_and_the_table_says_why() {
    let mut run = planted();
    let cell = cell_of(&run, "crun");
    run.series[cell].values[HASHING] = vec![f64::NAN; ROUNDS];
    run.series[cell].values[DISTURBED] = vec![1.0; ROUNDS];
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), [""; 0]);
    assert_eq!(about_crun(&run, &analysis, &[HASHING]), [Verdict::NoData]);
    assert_eq!(about_crun(&run, &analysis, &[HASHING_ALL]), [Verdict::Same]);
    let notes = analysis.experiment_tables[0].notes.join("\n");
    assert!(notes.contains("`crun` lacks a value of some kind in 20 of 20 rounds"), "{notes}");
}

#[test]
fn the_floor_explains_nothing_of_arithmetic() {
    let mut run = planted();
    run.plan.subjects[0].spec = Spec::parse("floor").unwrap();
    run.plan.subjects[0].layer = Layer::Floor;
    assert!(analyse(&run).floor_shares.is_empty());
}

/// Runs the work on every subject that is here, and checks every value and where it was done.
#[test]
fn it_works_on_every_subject() {
    const TEST: &str = "it_works_on_every_subject";
    let all = [
        ("floor", [Need::Root, Need::Cgroup]),
        ("runc", [Need::Root, Need::Runc]),
        ("crun", [Need::Root, Need::Crun]),
        ("docker", [Need::Docker; 2]),
        ("podman", [Need::Podman; 2]),
    ];
    let here = all.iter().filter(|(_, needs)| !needs.iter().any(|need| lacks(TEST, *need)));
    let subjects: Vec<&str> = ["bare"].into_iter().chain(here.map(|(name, _)| *name)).collect();
    let dunnage = Dunnage::new();
    let named: String = subjects.iter().map(|name| format!(" -s {name}")).collect();
    let ran = dunnage.run(&format!("run cpu{named} --set passes=30 --set fixed=30 --rounds 1 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let plan = ::dunnage::record::load(&dunnage.directory()).expect("a run directory").plan;
    let lines = std::fs::read_to_string(dunnage.directory().join("samples.jsonl")).expect("samples");
    let samples: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let measured: Vec<&Value> = samples.iter().filter(|one| one.get("series").is_some()).collect();
    let label = |sample: &Value| plan.entry(sample["cell"].as_u64().expect("a cell") as usize).label.clone();
    for subject in subjects {
        assert!(measured.iter().any(|sample| label(sample) == subject), "{subject}: {lines}");
    }
    let counter = |sample: &Value, name: &str| sample["counters"][name].as_i64();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as i64;
    for sample in &measured {
        // Right results everywhere: the same executable did the same work.
        assert_eq!(counter(sample, "wrong"), Some(0), "{sample}");
        assert_eq!(counter(sample, "threads"), Some(cpus), "{sample}");
        assert_eq!(counter(sample, "cpu"), counter(measured[0], "cpu"), "{sample}");
        for kind in ["integer", "floating", "hashing", "memory", "chase"] {
            for width in ["one", "all"] {
                let series = sample["series"][format!("{kind}_{width}")].as_array().expect("a series");
                assert_eq!(series.len(), 30, "{sample}");
                assert!(series.iter().all(|wall| wall.as_i64() > counter(sample, "empty")), "{sample}");
            }
        }
    }
    assert_eq!(dunnage.left_in_state(), [""; 0].map(std::path::PathBuf::from));
}
