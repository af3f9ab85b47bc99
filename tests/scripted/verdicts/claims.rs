//! The meaning of planted findings for a decision, in sentences.

use dunnage::plan::Layer;
use dunnage::report::summary::{Claim, Meaning, Topic, claims, meanings};
use dunnage::verdict::analyse;

use super::{FIRST, ROUNDS, change, planted};

#[test]
fn when_a_layer_matters_is_told_only_where_all_of_it_is_decided() {
    let layers = |other: f64| -> Vec<Layer> {
        let run = planted(
            &[
                ("bare", Layer::Bare, 20.0),
                ("floor", Layer::Floor, 30.0),
                ("crun", Layer::Runtime, 60.0),
                ("other=crun", Layer::Runtime, other),
            ],
            0.002,
        );
        let all = claims(&run, &analyse(&run));
        let told = all.iter().find(|one| one.topic == Topic::Threshold).expect("a threshold");
        let names = [(Layer::Floor, "the floor adds"), (Layer::Runtime, "a runtime adds")];
        names.into_iter().filter(|(_, name)| told.answer.contains(name)).map(|(layer, _)| layer).collect()
    };
    assert_eq!(layers(70.0), [Layer::Runtime], "the floor is no choice");
    assert_eq!(layers(20.1), [Layer::Floor], "one of the runtimes adds nothing that matters");
}

/// Engines with a chosen runtime are not all compared with each other, and yet one of them is fastest.
#[test]
fn the_least_is_shown_by_comparisons_or_by_way_of_the_baseline() {
    let choice = |docker_with_crun: f64| {
        let engines =
            [("docker", 245.0), ("docker+crun", docker_with_crun), ("podman", 180.0), ("podman+runc", 190.0)];
        let engines = engines.map(|(name, millis)| (name, Layer::Engine, millis));
        let run = planted(&[&[("bare", Layer::Bare, 1.0)], &engines[..]].concat(), 0.005);
        let analysis = analyse(&run);
        claims(&run, &analysis).into_iter().find(|one| one.topic == Topic::Choice).expect("a choice")
    };
    let least = choice(231.0);
    assert!(least.answer.starts_with("podman, by ") && least.question == "which engine?", "{}", least.answer);
    // docker and podman+runc in comparisons of their own, docker+crun by its difference from bare and
    // podman's.
    assert_eq!(least.rests_on.len(), 4);
    // Closer together than the margin: open.
    let open = choice(181.0).answer;
    assert!(open.contains("docker+crun and podman were not shown to differ"), "{open}");
    let other = choice(150.0).answer;
    assert!(other.starts_with("docker+crun, by "), "{other}");
}

/// Podman is far faster than docker in `first_instruction`; in `returned` it is slower, the same, or
/// undecided.
#[test]
fn what_the_first_metric_says_of_a_pair_that_another_one_orders_is_told_as_it_is() {
    let told = |podman: f64, noise: f64| {
        let engines = [("docker", Layer::Engine, 200.0), ("podman", Layer::Engine, podman)];
        let mut run = planted(&[&[("bare", Layer::Bare, 1.0)], &engines[..]].concat(), noise);
        for round in 0..ROUNDS {
            change(&mut run, "podman", FIRST, round, 0.02 + 1e-5 * round as f64);
        }
        let all = claims(&run, &analyse(&run));
        let of_it = |one: &&Claim| {
            one.topic == Topic::Otherwise
                && one.answer.starts_with("podman is ")
                && one.answer.contains("] faster than docker until its program runs")
        };
        all.iter().find(of_it).map(|one| one.answer.clone()).unwrap_or_default()
    };
    let reversed = told(240.0, 0.005);
    assert!(reversed.contains("runs, but 39.4 ms ["), "{reversed}");
    assert!(reversed.ends_with("] slower until it returns"), "{reversed}");
    let same = told(200.0, 0.001);
    assert!(same.ends_with("; until it returns they take the same"), "{same}");
    let open = told(230.0, 0.2);
    assert!(open.ends_with("; until it returns they cannot be told apart"), "{open}");
}

/// Docker takes 299 ms longer than bare: a risk for many short commands; an undecided difference is none.
#[test]
fn a_decided_slower_start_is_a_risk_for_many_short_commands() {
    let of = |docker: f64, noise: f64| -> Vec<Meaning> {
        let run = planted(&[("bare", Layer::Bare, 1.0), ("docker", Layer::Engine, docker)], noise);
        meanings(&run, &analyse(&run))
    };
    let told = of(300.0, 0.005);
    let [one] = &told[..] else { panic!("{told:?}") };
    assert_eq!((one.job, one.experiment), ("many short commands", "start"));
    assert!(
        one.risk.starts_with("each launch (`returned`) costs more than on bare: 299 ms [29"),
        "{}",
        one.risk
    );
    assert!(one.risk.ends_with("] (docker)"), "{}", one.risk);
    // Three percent of ten seconds are 300 ms.
    assert!(
        one.condition.starts_with("jobs of up to 9.9") && one.condition.ends_with("more than 3.0 %"),
        "{}",
        one.condition
    );
    assert!(one.remedy.contains("do more in each launch"), "{}", one.remedy);
    assert_eq!(one.rests_on[0].subject, "docker");
    // Undecided, and without a difference that matters.
    assert!(of(1.0, 0.5).is_empty() && of(1.001, 0.0001).is_empty());
}
