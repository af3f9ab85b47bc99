//! A launch that takes ten times as long is reported with the machine's activity at that time.

use std::fs;

use serde_json::Value;

use crate::dunnage::Dunnage;

/// Every eleventh launch of `c` takes ten times as long.
const RUN: &str =
    "run start -s a=fake:noise=1 -s c=fake:noise=1,spike=11 --set prestate=idle --rounds 30 --seed 7 -o DIR";

/// The samples far from the others, in JSON.
fn spikes(dunnage: &Dunnage) -> Value {
    let shown = dunnage.run("report DIR --format json").stdout;
    serde_json::from_str::<Value>(&shown).expect("JSON")["experiments"][0]["spikes"].take()
}

/// Records the machine's activity in each counted round, from 1: the share of stolen CPU time, and the number
/// of other running containers.
fn disturb(dunnage: &Dunnage, did: impl Fn(u64) -> (f64, u64)) {
    let path = dunnage.directory().join("samples.jsonl");
    let text = fs::read_to_string(&path).expect("samples");
    let line = |line: &str| match serde_json::from_str::<Value>(line).expect("JSON")["end"].as_u64() {
        None => format!("{line}\n"),
        Some(round) => {
            let (steal, containers) = did(round);
            format!(
                "{{\"end\":{round},\"steal\":{steal},\"cpu_pressure\":0.2,\"containers\":{containers}}}\n"
            )
        }
    };
    fs::write(&path, text.lines().map(line).collect::<String>()).expect("the file is ours");
}

#[test]
fn a_spike_is_told_with_what_the_machine_did_and_a_quiet_one_with_nothing() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let found = spikes(&dunnage);
    let rounds: Vec<u64> = found["samples"]
        .as_array()
        .expect("spikes")
        .iter()
        .map(|one| one["round"].as_u64().unwrap())
        .collect();
    assert!((2..=3).contains(&rounds.len()), "{found:#}");
    // The first distant sample was taken in a round with steal and another container, all others in quiet
    // ones.
    disturb(&dunnage, |round| if round == rounds[0] { (0.3, 1) } else { (0.001, 0) });
    let found = spikes(&dunnage);
    let differs = |spike: usize| found["samples"][spike]["differs"].as_array().unwrap().clone();
    let named: Vec<_> = differs(0).iter().map(|one| one["what"].clone()).collect();
    assert_eq!((named, differs(1)), (vec!["stolen CPU time".into(), "other containers".into()], vec![]));

    let shown = dunnage.run("report DIR --full").stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = &found["samples"][0];
    let place = match first["predecessor"].as_str() {
        Some(before) => format!("place {}, right after {before}", first["position"]),
        None => "place 1, without a predecessor".to_owned(),
    };
    let told = format!("`c` (prestate=idle) round {}, {place}: returned", rounds[0]);
    for expected in [
        &told,
        "the machine differed from other rounds: stolen CPU time 30.0 % (otherwise 0.100 %), other containers 1 (otherwise 0)",
        "the machine was as in other rounds",
        "the machine differed in 1 of",
        "stolen CPU time",
    ] {
        assert!(words.contains(expected), "{expected}\n{shown}");
    }
    // Tables in a terminal depend on its width, so their content is tested in another format.
    let page = dunnage.run("report DIR --format md").stdout;
    assert!(page.contains("standard deviation") && page.contains("Values far from the others"), "{page}");
}

#[test]
fn where_the_machine_is_as_always_nothing_differs() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    // A near miss: every round is equally disturbed.
    disturb(&dunnage, |_| (0.3, 1));
    let found = spikes(&dunnage);
    for spike in found["samples"].as_array().expect("spikes") {
        assert!(
            spike["differs"].as_array().unwrap().is_empty() && spike["readings_compared"] == 3,
            "{spike:#}"
        );
    }
}
