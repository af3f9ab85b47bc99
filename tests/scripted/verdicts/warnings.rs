//! What qualifies verdicts: each warning fires on a planted case, and none on clean data.

use dunnage::outcome::{Failure, FailureClass};
use dunnage::plan::Layer;
use dunnage::record::{Cause, FailureRow, RoundContext};
use dunnage::units::Unit;
use dunnage::verdict::{Circumstance, Spike, Warning, analyse};

use super::{GONE, RETURNED, ROUNDS, change, ladder, planted, warns};
use crate::dunnage::Dunnage;
use crate::scripted::planted::cell_of;

#[test]
fn warnings_fire_on_what_was_planted_and_not_on_clean_data() {
    let clean = analyse(&ladder());
    assert_eq!(clean.warnings, []);
    assert_eq!(clean.carry_over_tested, 6);

    let mut drifting = ladder();
    let cell = cell_of(&drifting, "crun");
    let column = &mut drifting.series[cell].values[RETURNED];
    column.iter_mut().enumerate().for_each(|(round, value)| *value *= 1.0 + 0.02 * round as f64);
    assert!(warns(&analyse(&drifting), "drift", "returned of `crun`"));

    let mut spiky = ladder();
    change(&mut spiky, "crun", RETURNED, 9, 0.2);
    assert!(warns(&analyse(&spiky), "outliers", "has 1 value far from the others"));

    let mut heaped = ladder();
    for round in (0..ROUNDS).step_by(2) {
        change(&mut heaped, "crun", RETURNED, round, 0.04 + 1e-5 * round as f64);
    }
    assert!(warns(&analyse(&heaped), "bimodal", "`crun`"));

    let mut volatile = ladder();
    volatile.treatments[0][0].1 = "volatile".into();
    assert!(warns(&analyse(&volatile), "volatile root", "reaches the disk"));
}

/// A label can be the name of an engine.
#[test]
fn values_of_a_script_are_called_so_under_any_label() {
    let dunnage = Dunnage::new();
    for (day, time) in [(1, 9), (2, 10)] {
        let subjects = format!("-s docker=fake:time={time}ms -s podman=fake:time=8ms");
        let ran = dunnage.run(&format!(
            "run start {subjects} --set prestate=idle --rounds 12 --seed {day} --no-html -o DIR/{day}"
        ));
        assert!(ran.code == 0 && ran.stdout.contains("scripted"), "{ran}");
    }
    let told = |arguments: &str, words: &str| {
        let ran = dunnage.run(arguments);
        let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ran.code == 0 && text.contains(words), "{arguments}: {ran}");
    };
    for format in ["terminal --full", "md", "html", "json"] {
        told(&format!("report DIR/1 --format {format}"), "all values follow a script: nothing was measured");
    }
    told("report DIR/1 --format gobench", "scripted: docker podman");
    for verb in ["compare DIR/1 DIR/2", "history DIR"] {
        let words = "only followed a script: nothing of this was measured";
        told(&format!("{verb} --format json"), &format!("`docker`, `podman` {words}"));
        told(&format!("{verb} --format html"), words);
        told(verb, words);
    }

    let mut partly = ladder();
    let entry = partly.plan.subjects.iter_mut().find(|entry| entry.label == "crun").expect("it is there");
    entry.spec.name = "fake".into();
    assert!(warns(
        &analyse(&partly),
        "scripted",
        "the values of crun follow a script: they were not measured"
    ));
}

/// If `crun` takes ten times as long in two rounds, one of which is disturbed, both are reported.
#[test]
fn each_spike_has_its_round_its_predecessor_and_what_the_machine_did() {
    let mut run = ladder();
    let quiet =
        RoundContext { steal: Some(0.001), load: Some(0.8), containers: Some(0), ..RoundContext::default() };
    run.contexts = vec![Some(quiet.clone()); run.contexts.len()];
    for (round, value) in [(9, 0.2), (14, 0.3)] {
        for metric in [RETURNED, GONE] {
            change(&mut run, "crun", metric, round, value);
        }
    }
    let disturbed = Some("30.0 % of the CPU time was stolen".into());
    let stolen = RoundContext { steal: Some(0.3), load: Some(1.5), containers: Some(1), disturbed, ..quiet };
    run.contexts[run.plan.warmups + 9] = Some(stolen);
    let cell = cell_of(&run, "crun");
    run.series[cell].positions[9] = Some(4);
    let before = run.series[cell].predecessors[9].map(|before| run.plan.named(before));
    let analysis = analyse(&run);
    let [spikes] = &analysis.spikes[..] else { panic!("{:?}", analysis.spikes) };
    let [quiet, stolen] = &spikes.samples[..] else { panic!("{spikes:?}") };
    let metrics = |one: &Spike| one.values.iter().map(|far| far.metric).collect::<Vec<_>>();
    assert_eq!((quiet.round, &quiet.differs[..], quiet.compared), (15, &[][..], 3));
    assert_eq!((stolen.round, stolen.position, &stolen.predecessor), (10, Some(5), &before));
    assert_eq!((metrics(stolen), metrics(quiet)), (vec!["returned", "gone"], vec!["returned", "gone"]));
    let differs = |what: &str, unit, far, ordinary| Circumstance { what: what.into(), unit, far, ordinary };
    let expected = [
        differs("stolen CPU time", Unit::Share, 0.3, 0.001),
        differs("other containers", Unit::Count, 1.0, 0.0),
    ];
    assert_eq!(stolen.differs, expected);
    // Steal in one of two, and in none of the others.
    let marked = differs("in a disturbed round", Unit::Share, 0.5, 0.0);
    assert!(spikes.circumstances.contains(&marked), "{:?}", spikes.circumstances);
    assert!(warns(&analysis, "outliers", "the machine differed in 1 of 2 rounds"));
    assert!(analyse(&ladder()).spikes.is_empty());
}

#[test]
fn another_file_under_the_same_name_is_warned_of() {
    let mut run = ladder();
    let (other, hosts) = ("other program", "the host's program");
    let clean = analyse(&run);
    assert!(!warns(&clean, other, "") && !warns(&clean, hosts, ""));
    let file = |sum: &str| {
        [("program", "/bin/x"), ("program_sha256", sum)].map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    // All execute the same file, which on the host is the file itself.
    run.treatments[0].extend(file("1234"));
    let analysis = analyse(&run);
    assert!(warns(&analysis, hosts, "/bin/x") && !warns(&analysis, other, ""));
    // One subject executes another.
    let mut treatment = run.treatments[0].clone();
    treatment.last_mut().unwrap().1 = "5678".into();
    run.treatments.push(treatment);
    let cell = cell_of(&run, "crun");
    let last = run.treatments.len() - 1;
    run.series[cell].treatments.iter_mut().for_each(|number| *number = Some(last));
    assert!(warns(&analyse(&run), other, "5678… by crun"));
}

#[test]
fn carry_over_is_found_where_a_predecessor_makes_a_difference() {
    let mut run = planted(
        &[("bare", Layer::Bare, 1.0), ("floor", Layer::Floor, 3.0), ("crun", Layer::Runtime, 20.0)],
        0.002,
    );
    let cell = cell_of(&run, "crun");
    for round in 0..ROUNDS {
        let Some(before) = run.series[cell].predecessors[round] else { continue };
        if run.plan.subjects[run.plan.cells[before].subject].spec.name == "bare" {
            run.series[cell].values[RETURNED][round] *= 1.3;
        }
    }
    let analysis = analyse(&run);
    let is_told = |one: &&Warning| one.kind == "carry-over" && one.labels == ["crun"];
    let seen = &analysis.warnings.iter().find(is_told).expect("carry-over").seen;
    assert!(seen.contains(" right after bare ") && !seen.contains('−'), "{seen}");
}

#[test]
fn failures_are_counted_by_class_and_leave_holes_not_numbers() {
    let mut run = ladder();
    let cell = cell_of(&run, "crun");
    for round in [2, 5] {
        for column in &mut run.series[cell].values {
            column[round] = f64::NAN;
        }
        let failure = Failure::new(FailureClass::Crash, "boom");
        run.failures.push(FailureRow {
            cell,
            round: run.plan.warmups + round,
            cause: Cause::Failed(failure),
        });
    }
    let analysis = analyse(&run);
    assert_eq!(analysis.cells[cell].failures, [(FailureClass::Crash, 2, "crash: boom".to_owned())]);
    let finding = analysis.findings.iter().find(|one| one.cell == cell && one.metric == RETURNED).unwrap();
    assert_eq!((finding.difference.unwrap().rounds, finding.failed_rounds), (ROUNDS, 2));
    assert!(warns(&analysis, "failures", "failed in 2 rounds: crash: boom"));
}
