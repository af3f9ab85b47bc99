//! A run for a precision determines its rounds by a pilot, keeps the pilot separate, and reports the result.

use dunnage::plan::Role;
use dunnage::record;
use dunnage::verdict;

use crate::dunnage::Dunnage;

/// The predicted precision, the reached one, and the rounds.
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
    // The pilot has no events in the stream.
    let events = ran.stdout.lines().filter(|line| line.starts_with("{\"")).map(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    });
    let count = |name: &str| events.clone().filter(|event| event["event"] == name).count();
    let rounds = run.plan.warmups + run.plan.rounds;
    assert_eq!([count("round begins"), count("round ends")], [rounds; 2], "{ran}");
    assert_eq!(count("cell ends"), run.plan.samples_before(rounds), "{ran}");
    let report = dunnage.run("report DIR");
    let text = report.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("requested ±20 % of the longer median in differences from the baseline; a pilot of 15 rounds predicted ±"), "{text}");
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
    let words = "no number of rounds within an hour, or up to 1000, reaches ±0.20 %: the run has 1000 rounds";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
    let run = record::load(&dunnage.directory()).expect("a run directory");
    assert!(run.plan.precision.is_some_and(|one| one.capped) && run.plan.rounds == 1000);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("found that more rounds are needed than allowed") && text.contains("reached only ±"),
        "{text}"
    );
}

/// Both are ten times as noisy in their first launches, all of which are in the pilot, as in later ones.
const SETTLING: &str = "run start -s a=fake:time=1ms,noise=2,settles=20 -s b=fake:time=1.3ms,noise=2,settles=20 \
                        --set prestate=idle --precision 5% --seed 7 -o DIR";

#[test]
fn a_run_ends_at_the_first_look_at_which_its_precision_is_reached() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(SETTLING);
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let looks = run.plan.looks.clone();
    let [first, half, all] = looks[..] else { panic!("{looks:?}: {ran}") };
    assert!(all >= 100 && half == all.div_ceil(2) && first >= all / 4, "{looks:?}");
    assert_eq!((run.complete_rounds(), run.plan.rounds), (first, first), "{ran}");
    for told in [
        format!("the run ends earlier if it reaches ±5.0 % after {first} and {half} rounds"),
        format!("look 1 of 3, after {first} of {all} rounds: the precision is reached"),
    ] {
        assert!(ran.stderr.contains(&told), "{told}\n{ran}");
    }
    // Every interval has a third of the error that it would have without interim looks.
    let analysis = verdict::analyse(&run);
    let own = run.plan.verdicts_of("start").expect("verdicts");
    let asked = analysis.findings.iter().find(|one| one.about.subject == "b").expect("a comparison");
    let level = match run.plan.role(asked.comparison, asked.cell, asked.metric) {
        Role::First => 0.05 / (3 * own.first) as f64,
        _ => 0.05 / (3 * own.asked) as f64,
    };
    assert!((asked.difference.expect("an interval").alpha.get() / level - 1.0).abs() < 1e-9);
    assert!(analysis.precision.expect("an interval").share <= 0.05);
    assert!(analysis.warnings.iter().all(|one| one.kind != "unfinished"), "{:?}", analysis.warnings);

    let shown = dunnage.run("report DIR").stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = format!("ended at look 1 (looks after {first}, {half}, {all} rounds");
    assert!(words.contains(&told), "{told}\n{shown}");
    let json = dunnage.run("report DIR --format json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["precision"]["ended_at_look"], &json["precision"]["looks"][2]),
        (&1.into(), &all.into())
    );
    let resumed = dunnage.run("resume DIR");
    assert!(resumed.code == 0 && resumed.stderr.contains("is complete"), "{resumed}");
    // The pack's run ends at the same point.
    let packed = dunnage.run("pack DIR -o DIR.pack");
    assert_eq!(packed.code, 0, "{packed}");
    let pack = record::open(&dunnage.directory().with_extension("pack")).expect("a pack");
    assert_eq!((pack.plan.rounds, pack.complete_rounds()), (first, first));
}

#[test]
fn a_subject_that_timed_out_is_left_alone_in_every_stage() {
    let dunnage = Dunnage::new();
    // Its thirtieth launch is after the pilot, in the first stage.
    let subjects = format!("{NOISY} -s c=fake:time=1ms,hang=30");
    let ran =
        dunnage.run(&format!("run start {subjects} --set prestate=idle --precision 5% --seed 7 -o DIR"));
    assert!(ran.stderr.contains("look 2 of 3, after"), "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let hanging = run.plan.subjects.iter().filter(|one| one.spec.to_string().contains("hang")).count();
    let samples = std::fs::read_to_string(dunnage.directory().join("samples.jsonl")).expect("samples");
    assert_eq!(samples.matches("hangs by its script").count(), 2 * hanging, "{ran}");
    assert!(samples.contains("it timed out 2 times in a row"), "{ran}");
}

#[test]
fn an_interrupted_run_in_stages_goes_on_to_the_look_that_ends_it() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(SETTLING).code, 0);
    let path = dunnage.directory().join("samples.jsonl");
    let text = std::fs::read_to_string(&path).expect("samples");
    let rounds = record::load(&dunnage.directory()).expect("a run directory").plan.rounds;
    let stop = text.rfind("{\"stop\":").expect("it says where it ended");
    // Killed before it could look, and in the middle of a stage.
    for end in [stop, stop / 2] {
        std::fs::write(&path, &text[..end]).expect("the file is ours");
        let cut = record::load(&dunnage.directory()).expect("a run directory");
        assert!(cut.plan.rounds > rounds && cut.complete_rounds() <= rounds, "{}", cut.plan.rounds);
        let ran = dunnage.run("resume DIR");
        assert_eq!(ran.code, 0, "{ran}");
        assert!(ran.stderr.contains("look 1 of 3, after"), "{ran}");
        let run = record::load(&dunnage.directory()).expect("a run directory");
        assert_eq!((run.complete_rounds(), run.plan.rounds), (rounds, rounds), "{ran}");
    }
}

#[test]
fn a_plan_file_can_ask_for_a_precision() {
    let dunnage = Dunnage::new();
    let typed = format!("plan start {NOISY} --precision 5% --seed 7 --write DIR.toml");
    let first = dunnage.run(&typed);
    assert!(first.code == 0 && first.stdout.contains("for ±5.0 %, a pilot of 15"), "{first}");
    let again = dunnage.run("plan --plan DIR.toml");
    assert_eq!(first.stdout, again.stdout);
    let text = std::fs::read_to_string(dunnage.directory().with_extension("toml")).expect("a plan file");
    assert!(text.contains("precision = \"5%\"") && !text.contains("rounds"), "{text}");
}
