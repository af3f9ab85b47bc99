//! Planted effects are found, and planted faults reported.

use std::fs;
use std::path::Path;

use dunnage::record::{self, Cause};
use dunnage::stats::Sample;
use dunnage::verdict::{self, Analysis};

use crate::dunnage::Dunnage;

/// A run of 20 rounds over these subjects; the first is the baseline.
fn analysed(dunnage: &Dunnage, subjects: &str) -> (record::Recorded, Analysis) {
    ended(dunnage, subjects, 0)
}

/// A run that ends with this exit code.
fn ended(dunnage: &Dunnage, subjects: &str, code: i32) -> (record::Recorded, Analysis) {
    let ran = dunnage.run(&format!("run start {subjects} --rounds 20 --seed 7 -o DIR"));
    assert_eq!(ran.code, code, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let analysis = verdict::analyse(&recorded);
    (recorded, analysis)
}

/// The verdicts about `returned` of this subject against the first, one for each setting.
fn verdicts(recorded: &record::Recorded, analysis: &Analysis, label: &str) -> Vec<&'static str> {
    let about = |cell: usize| recorded.plan.subjects[recorded.plan.cells[cell].subject].label.as_str();
    let wanted = |cell: usize, metric: usize| metric == 0 && about(cell) == label;
    let found = analysis.findings.iter().filter(|one| wanted(one.cell, one.metric));
    found.map(|one| one.kind().word()).collect()
}

#[test]
fn what_a_killed_run_left_is_kept_by_a_plan_and_removed_by_a_check() {
    let dunnage = Dunnage::new();
    let (journal, left) = (dunnage.state().join("journal"), dunnage.state().join("runs/ab/left"));
    for place in [&journal, &left] {
        fs::create_dir_all(place).expect("a directory");
    }
    let made = serde_json::json!({"made": {"id": 0, "resource": {"kind": "directory", "id": left}}});
    fs::write(journal.join("ab.jsonl"), format!("{made}\n")).expect("a journal");
    let planned = dunnage.run("plan start -s a=fake --rounds 1");
    assert!(planned.code == 0 && left.exists() && !planned.stderr.contains("removed"), "{planned}");
    let checked = dunnage.run("check start -s a=fake");
    assert!(checked.code == 0 && !left.exists() && checked.stderr.contains("removed"), "{checked}");
}

#[test]
fn a_job_that_nothing_can_be_added_to_is_answered() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run scripted -s a=fake --rounds 3 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run("report DIR --job 2s");
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("--job This run compares no subjects"), "{ran}");
}

#[test]
fn planted_effects_get_their_verdicts() {
    let (recorded, analysis) = analysed(
        &Dunnage::new(),
        "-s a=fake:time=1ms -s slower=fake:time=1.2ms -s faster=fake:time=0.8ms \
         -s same=fake:time=1ms,noise=0.5 -s unclear=fake:time=1.02ms,noise=40",
    );
    let found = |label| verdicts(&recorded, &analysis, label)[..2].to_vec();
    assert_eq!(found("slower"), ["slower", "slower"]);
    assert_eq!(found("faster"), ["faster", "faster"]);
    assert_eq!(found("unclear"), ["undecided", "undecided"]);
    // With 3 % of noise on the other side, 20 rounds cannot show that a difference of 3 % is too much.
    assert!(found("same").iter().all(|word| ["same", "undecided"].contains(word)), "{:?}", found("same"));
    assert!(analysis.suspects.is_empty(), "{:?}", analysis.suspects);
}

#[test]
fn equal_subjects_are_the_same() {
    let subjects = "-s a=fake:time=1ms,noise=0.5 -s b=fake:time=1ms,noise=0.5";
    let (recorded, analysis) = analysed(&Dunnage::new(), subjects);
    assert_eq!(verdicts(&recorded, &analysis, "b"), ["same", "same"]);
    assert_eq!(verdicts(&recorded, &analysis, "a (twin)"), ["same", "same"]);
}

#[test]
fn failures_are_rows_and_the_other_cells_go_on() {
    let (recorded, analysis) = ended(&Dunnage::new(), "-s a=fake -s b=fake:fail=5", 6);
    let failed = recorded.failures.iter().filter(|row| matches!(row.cause, Cause::Failed(_))).count();
    // Two trials, then three launches in each of 21 rounds; if the first one fails, the second one is
    // skipped.
    assert!((10..=13).contains(&failed), "{failed} failures");
    assert_eq!(recorded.complete_rounds(), 20);
    let is_told =
        |one: &verdict::Warning| one.kind == "failures" && one.seen.contains("scripted engine: boom");
    let told = analysis.warnings.iter().any(is_told);
    assert!(told, "{:?}", analysis.warnings);
    let baseline = &recorded.series[0].values[0];
    assert!(Sample::new(baseline.clone()).is_some(), "a hole in the other subject: {baseline:?}");
}

#[test]
fn a_subject_that_hangs_is_left_alone_after_two_timeouts() {
    let dunnage = Dunnage::new();
    let (recorded, analysis) = ended(&dunnage, "-s a=fake -s b=fake:hang=12", 6);
    let count =
        |wanted: fn(&Cause) -> bool| recorded.failures.iter().filter(|row| wanted(&row.cause)).count();
    assert_eq!(count(|cause| matches!(cause, Cause::Failed(_))), 2);
    let skipped = count(|cause| matches!(cause, Cause::Skipped(_)));
    assert!(skipped > 25, "{skipped} skipped");
    let is_told = |one: &verdict::Warning| one.kind == "skipped" && one.seen.contains("timed out 2 times");
    let told = analysis.warnings.iter().any(is_told);
    assert!(told, "{:?}", analysis.warnings);
}

#[test]
fn a_subject_that_is_not_as_asked_is_not_measured() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake -s b=fake:treatment=wrong --rounds 2 -o DIR");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains("not available: b: treatment: not as asked, by its script"), "{ran}");
    let told = ran.stderr.find("requested, but not available: `b`; measuring the rest (exit code 6)");
    assert!(told.is_some_and(|told| told < ran.stderr.find("results in").unwrap()), "{ran}");
    let [.., missing, page] = ran.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{ran}") };
    assert!(
        missing.ends_with("are missing, not counting warm-ups (exit code 6): `b`, which is not available"),
        "{ran}"
    );
    // The last line says where the page is.
    let place = dunnage.directory().join("report.html");
    assert_eq!(page, format!("the whole report, for a browser: {}", place.display()));
    let html = fs::read_to_string(&place).expect("a page");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("</html>"), "{html}");
    let ran = dunnage.run("run start -s a=fake --rounds 2 -o DIR.plain --no-html");
    assert!(ran.code == 0 && !ran.stderr.contains("for a browser"), "{ran}");
    let plain = dunnage.directory().with_extension("plain");
    assert!(plain.join("samples.jsonl").exists() && !plain.join("report.html").exists());
    assert_eq!(dunnage.run("resume DIR").code, 6);
    assert_eq!(dunnage.run("report DIR").code, 0);
    let checked = dunnage.run("check start -s a=fake -s b=fake:treatment=wrong");
    assert_eq!(checked.code, 1, "{checked}");
}

/// Part of what was asked for is missing, also for a program that reads events; if everything is missing, the
/// code is different.
#[test]
fn a_subject_that_failed_in_every_cell_is_exit_code_6() {
    for (subjects, code) in
        [("-s a=fake -s b=fake:hang=3", 6), ("-s a=fake -s b=fake:hang=30", 0), ("-s b=fake:hang=3", 4)]
    {
        for events in ["", "--events json"] {
            let ran = Dunnage::new().run(&format!("run start {subjects} --rounds 3 -o DIR {events}"));
            assert_eq!(ran.code, code, "{ran}");
            assert_eq!(
                ran.stderr.contains("are missing, not counting warm-ups (exit code 6): all 6 samples of `b`"),
                code == 6,
                "{ran}"
            );
            assert!(!ran.stderr.contains("not available"), "{ran}");
        }
    }
}

/// As if a daemon disappeared during the run.
#[test]
fn a_subject_that_failed_in_most_samples_is_exit_code_6_and_its_failure_is_told_once() {
    let ran = Dunnage::new().run("run start -s a=fake -s b=fake:hang=12 --rounds 12 --seed 1 -o DIR");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains(" of 24 samples of `b`\n"), "{ran}");
    let told = || ran.stderr.lines().filter(|line| line.contains("hangs by its script"));
    assert!(told().count() == 2 && told().next_back().unwrap().starts_with("2 times, first in "), "{ran}");
}

/// More than 5 % of a cell's rounds, and at least two, are too many to lose.
#[test]
fn a_subject_that_failed_in_a_part_of_its_samples_is_exit_code_6() {
    for (every, code, words) in [(3, 6, "(exit code 6): 10 of 30 samples of `b`"), (30, 0, "crash")] {
        let ran = Dunnage::new().run(&format!(
            "run start -s a=fake:time=20ms,noise=0.5 -s b=fake:time=20ms,noise=0.5,fail={every} --set prestate=idle --rounds 30 --seed 1 -o DIR"
        ));
        assert_eq!(ran.code, code, "{ran}");
        assert!(format!("{}{}", ran.stderr, ran.stdout).contains(words), "{ran}");
        let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            told.contains("b fails more often than a (0 of 30): in 10 of 30 rounds"),
            code == 6,
            "{ran}"
        );
    }
}

/// A run without `-s` asks for what works here, which must be complete in the end.
#[test]
fn a_subject_that_was_found_and_failed_is_missing_too() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run("run start -s a=fake -s b=fake:hang=12 --rounds 12 --seed 1 -o DIR").code, 6);
    let path = dunnage.directory().join("env.json");
    let mut environment: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(environment["asked"], serde_json::json!(["a", "b"]));
    environment["asked"] = serde_json::json!([]);
    fs::write(&path, environment.to_string()).unwrap();
    let ran = dunnage.run("resume DIR");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains(" of 24 samples of `b`\n"), "{ran}");
}

#[test]
fn samples_that_cannot_be_shown_have_a_place() {
    let dunnage = Dunnage::new();
    let mut run = dunnage.command("run start -s a=fake --rounds 2 -o DIR");
    let full = fs::File::options().write(true).open("/dev/full").expect("a device of Linux");
    let ran = crate::dunnage::finished(run.stdout(full).output().expect("the program starts"));
    let place =
        format!("error: the samples are in `{}`, but cannot be shown: ", dunnage.directory().display());
    assert!(ran.code == 1 && ran.stderr.contains(&place), "{ran}");
    assert_eq!(dunnage.run("report DIR").code, 0);
}

/// A log contains what matters and not every round.
#[test]
fn without_a_terminal_twenty_lines_tell_how_far_it_is() {
    for (rounds, lines) in [(200, 21), (20, 21), (3, 4)] {
        let ran = Dunnage::new().run(&format!("run start -s a=fake --rounds {rounds} -o DIR"));
        let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" done after ")).collect();
        assert_eq!(told.len(), lines, "{ran}");
        assert!(told.last().unwrap().starts_with(&format!("round {rounds}/{rounds} done")), "{ran}");
    }
}

#[test]
fn an_experiment_without_what_it_needs_is_told_and_left_out() {
    let ran = Dunnage::new().run("plan all -s a=fake --rounds 2");
    assert!(ran.stderr.contains("left out: `command`, because it needs a command"), "{ran}");
    assert!(!ran.stdout.contains("0 verdicts"), "{ran}");
}

#[test]
fn drift_and_spikes_are_told() {
    let (_, analysis) =
        analysed(&Dunnage::new(), "-s a=fake:noise=1 -s b=fake:noise=1,drift=1 -s c=fake:noise=1,spike=10");
    let is_told = |kind: &str, label: &str| {
        analysis.warnings.iter().any(|one| one.kind == kind && one.labels == [label])
    };
    assert!(is_told("drift", "b") && is_told("outliers", "c"), "{:?}", analysis.warnings);
}

#[test]
fn nothing_that_works_is_exit_code_4() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s b=fake:fail=1 --rounds 2 -o DIR");
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("nothing can be measured"), "{ran}");
    assert!(ran.stderr.contains("hint: run `dunnage doctor` for details"), "{ran}");
    assert!(!dunnage.directory().exists());
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let subjects = "-s a=fake -s b=fake:noise=20,fail=7";
    let [one, two] = [Dunnage::new(), Dunnage::new()];
    ended(&one, subjects, 6);
    ended(&two, subjects, 6);
    let [one, two] = [one, two].map(|dunnage| without_clock(&dunnage.directory()));
    assert!(one == two, "samples differ:\n{one:?}\n{two:?}");
    assert!(one.len() > 20 * 6, "{} lines", one.len());
}

/// The lines of the samples without the influence of the machine's clock and state.
fn without_clock(directory: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(directory.join("samples.jsonl")).expect("samples");
    let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
    lines
        .map(|mut line: serde_json::Value| {
            let object = line.as_object_mut().expect("an object");
            if object.contains_key("end") {
                object.retain(|key, _| key == "end");
            }
            object.retain(|key, _| !["at", "started", "run"].contains(&key.as_str()));
            line
        })
        .collect()
}

#[test]
fn between_says_what_it_cannot_add() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake -s b=fake --rounds 6 --seed 7 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let twice = dunnage.run("report DIR --between a a");
    assert!(
        twice.code == 2 && twice.stderr.contains("needs two different subjects, but both are `a`"),
        "{twice}"
    );
    let known = dunnage.run("report DIR --between a b");
    assert!(known.code == 0 && known.stderr.contains("are also compared without `--between`"), "{known}");
}
