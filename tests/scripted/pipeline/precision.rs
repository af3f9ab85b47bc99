//! Does a run for a precision find its rounds by a pilot, keep it apart, and say what became of it?

use dunnage::record;
use dunnage::verdict;

use crate::dunnage::Dunnage;

/// What was foretold, what was reached, and with how many rounds.
fn reached(dunnage: &Dunnage, arguments: &str) -> (f64, f64, usize) {
    let ran = dunnage.run(&format!("run start {arguments} --set prestate=idle -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let precision = run.plan.precision.expect("a precision");
    let reached = verdict::analyse(&run).precision.expect("an interval");
    (precision.predicted.expect("a forecast"), reached.share, run.complete_rounds())
}

const NOISY: &str = "-s a=fake:time=1ms,noise=10 -s b=fake:time=1.3ms,noise=10";

#[test]
fn the_planted_noise_decides_the_rounds_and_four_runs_of_five_reach_the_precision() {
    let (mut narrow, mut rounds) = (0, Vec::new());
    let trials = 10;
    for seed in 0..trials {
        let (predicted, share, count) =
            reached(&Dunnage::new(), &format!("{NOISY} --precision 5% --seed {seed}"));
        assert!(predicted <= 0.05, "{predicted}");
        narrow += usize::from(share <= 0.05);
        rounds.push(count);
    }
    // P(Bin(10, 0.8) ≤ 3) = 0.0009.
    assert!(narrow > 3, "{narrow} of {trials}: {rounds:?}");
    let quieter = "-s a=fake:time=1ms,noise=5 -s b=fake:time=1.3ms,noise=5";
    let (_, _, fewer) = reached(&Dunnage::new(), &format!("{quieter} --precision 5% --seed 1"));
    rounds.sort_unstable();
    assert!(fewer < rounds[5], "{fewer}, {rounds:?}");
}

#[test]
fn the_pilot_is_kept_apart_from_the_run() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("run start {NOISY} --precision 20% --seed 7 --events json -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("a pilot of 15 rounds, about"), "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let pilot = record::load(&dunnage.directory().join("pilot")).expect("a run directory of its own");
    assert_eq!((pilot.complete_rounds(), pilot.plan.precision), (15, None));
    assert_eq!(run.complete_rounds(), run.plan.rounds);
    assert_ne!(pilot.plan.seed, run.plan.seed);
    assert_ne!(pilot.series[0].values[0][0], run.series[0].values[0][0]);
    let rounds =
        ran.stdout.lines().filter(|line| line.contains("round_ends") || line.contains("\"end")).count();
    assert!(rounds <= run.plan.rounds + 1, "the stream tells of the pilot too: {ran}");
    let report = dunnage.run("report DIR");
    let text = report.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("±20 % of the longer median was asked for in differences from the baseline; a pilot of 15 rounds foretold ±"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&dunnage.run("report DIR --format json").stdout).expect("JSON");
    assert_eq!(json["precision"]["asked"], 0.2);
    assert!(json["precision"]["reached"].as_f64().expect("a number") > 0.0);
    let resumed = dunnage.run("resume DIR");
    assert_eq!(resumed.code, 0, "{resumed}");
}

#[test]
fn a_precision_that_an_hour_does_not_reach_is_capped_aloud() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("run start {NOISY} --precision 0.2% --seed 7 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let words = "the pilot finds no number of rounds within an hour, or up to 1000, that reaches ±0.20 %: 1000 rounds";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let run = record::load(&dunnage.directory()).expect("a run directory");
    assert!(run.plan.precision.is_some_and(|one| one.capped) && run.plan.rounds == 1000);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("found too many rounds necessary") && text.contains("not reached, but ±"),
        "{text}"
    );
}

#[test]
fn a_plan_file_can_ask_for_a_precision() {
    let dunnage = Dunnage::new();
    let typed = format!("plan start {NOISY} --precision 5% --seed 7 --write DIR.toml");
    let first = dunnage.run(&typed);
    assert!(
        first.code == 0 && first.stdout.contains("for ±5.0 %, a pilot of 15 rounds finds how many"),
        "{first}"
    );
    let again = dunnage.run("plan --plan DIR.toml");
    assert_eq!(first.stdout, again.stdout);
    let text = std::fs::read_to_string(dunnage.directory().with_extension("toml")).expect("a plan file");
    assert!(text.contains("precision = \"5%\"") && !text.contains("rounds"), "{text}");
}
