//! Planted effects of factors are found by a run of a plan file, counted in the family, and reported.

use std::fs;

use dunnage::record;
use dunnage::verdict::{self, Verdict};

use crate::dunnage::Dunnage;

/// A plan file with all combinations of three factors; c costs 100 ms, a 30 ms, and b 20 ms if c is high;
/// `rest` is appended.
fn plan(rounds: usize, extra: &str, rest: &str) -> String {
    let level = |place: usize, bit: usize| if place >> bit & 1 == 1 { "high" } else { "low" };
    let subject = |place: usize| {
        let (a, b, c) = (level(place, 0), level(place, 1), level(place, 2));
        format!("'fake:a={a},b={b},c={c},effects=\"c=100ms;a=30ms;bc=20ms\",noise=3,time=100ms{extra}'")
    };
    let subjects: Vec<_> = (0..8).map(subject).collect();
    format!(
        "subjects = [{}]\nfactors = [\"a\", \"b\", \"c\"]\nrounds = {rounds}\nseed = 7\nsettings.prestate = \"idle\"\n{rest}",
        subjects.join(", ")
    )
}

fn with_plan(text: &str) -> Dunnage {
    let dunnage = Dunnage::new();
    fs::write(dunnage.directory().with_extension("toml"), text).expect("a file");
    dunnage
}

#[test]
fn planted_effects_of_factors_are_found_and_told() {
    let dunnage = with_plan(&plan(60, "", ""));
    let ran = dunnage.run("run --plan DIR.toml -o DIR --full");
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let factorial = run.plan.factorial.as_ref().expect("a factorial");
    assert_eq!(factorial.subjects, [0, 1, 2, 3, 4, 5, 6, 7]);
    let own = &run.plan.verdicts[0];
    assert_eq!(own.all_asked() + own.controls, run.plan.comparisons.len() * 3 + 7 * 3);
    let analysis = verdict::analyse(&run);
    assert_eq!(analysis.factors.len(), 7 * 3);
    for (factors, planted) in [(0b001, 0.030), (0b010, 0.010), (0b100, 0.110), (0b110, 0.020)] {
        let found = analysis.factors.iter().find(|one| one.factors == factors && one.metric == 0).unwrap();
        assert_eq!(found.verdict, Verdict::More, "{factors:b}");
        let interval = found.effect.unwrap().difference.interval.unwrap();
        assert!(interval.contains(planted), "{factors:b}: {interval:?}");
    }
    for factors in [0b011, 0b101, 0b111] {
        let found = analysis.factors.iter().find(|one| one.factors == factors && one.metric == 0).unwrap();
        assert!(!matches!(found.verdict, Verdict::More | Verdict::Less), "{factors:b}");
    }
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Factors: is it `a`, `b` or `c`?",
        "Mainly it is `c`: c=high takes 1",
        "Then it is `a`: a=high takes ",
        "The factors do not simply add up: the difference between c=high and c=low is ",
        "larger with b=high than with b=low (as a ratio too: +",
    ] {
        assert!(text.contains(words), "{words}\n{ran}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&dunnage.run("report DIR --format json").stdout).expect("JSON");
    let factorial = &json["experiments"][0]["factorial"];
    assert_eq!(factorial["factors"][2]["name"], "c");
    let first = &factorial["effects"][0];
    assert_eq!((&first["verdict"], &first["slower_level"]), (&"slower".into(), &"high".into()));
    assert_eq!(factorial["effects"].as_array().map(Vec::len), Some(21));
}

#[test]
fn a_round_in_which_a_combination_failed_may_have_had_any_contrast() {
    let dunnage = with_plan(&plan(20, "", "").replacen("time=100ms'", "time=100ms,fail=10'", 1));
    let refused = dunnage.run("run --plan DIR.toml -o DIR");
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("also differ in `fail`, which is not a factor"), "{refused}");

    let dunnage = with_plan(&plan(20, ",fail=10", ""));
    let ran = dunnage.run("run --plan DIR.toml -o DIR");
    assert_eq!(ran.code, 6, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let lost: std::collections::BTreeSet<_> = run
        .failures
        .iter()
        .filter(|row| row.round >= 1 && run.plan.cells[row.cell].subject < 8)
        .map(|row| row.round)
        .collect();
    assert!(!lost.is_empty() && lost.len() < 20);
    let analysis = verdict::analyse(&run);
    let counted: Vec<_> = analysis.factors.iter().map(|one| one.effect.unwrap().difference.rounds).collect();
    assert!(counted.iter().all(|rounds| *rounds == 20), "{counted:?} {lost:?}");
}

#[test]
fn what_is_no_complete_factorial_is_refused_before_anything_is_touched() {
    let incomplete = plan(20, "", "").replacen("'fake:a=high,b=low,c=low", "'x=fake:a=high,b=high,c=high", 1);
    for (text, arguments, words) in [
        (incomplete, "", "line 2: `x` and `fake:a=high,b=high,c=high,"),
        (plan(20, "", ""), " -s fake", "line 2: `factors` apply to the subjects of the file"),
    ] {
        let dunnage = with_plan(&text);
        let ran = dunnage.run(&format!("run --plan DIR.toml{arguments} -o DIR"));
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains(words), "{ran}");
        assert!(!dunnage.state().exists() && !dunnage.directory().exists());
    }
}

#[test]
fn a_subject_of_the_factorial_that_does_not_work_stops_the_run() {
    let dunnage = with_plan(
        "subjects = [\"bare\", \"crun\", \"runc\", \"crun:seccomp=off\", \"runc:seccomp=off\"]\nfactors = [\"runtime\", \"seccomp\"]",
    )
    .with("PATH", "/nowhere");
    let ran = dunnage.run("run --plan DIR.toml -o DIR");
    assert_eq!(ran.code, 4, "{ran}");
    // A reason is reported once, with all subjects that it applies to.
    let words = "error: a factorial needs every combination, and some are not available: ";
    let error =
        ran.stderr.lines().find_map(|line| line.strip_prefix(words)).unwrap_or_else(|| panic!("{ran}"));
    let mut reasons: Vec<&str> = error.split("; ").filter_map(|one| Some(one.split_once(": ")?.1)).collect();
    // This machine may have them in another directory or not at all.
    let is_one =
        |reason: &&str| *reason == "not installed" || reason.starts_with("not installed in `$PATH`, but in ");
    assert!(reasons.iter().all(is_one) && ran.stderr.contains("hint: "), "{ran}");
    for subject in ["crun, ", "runc", "crun:seccomp=off", "runc:seccomp=off"] {
        assert!(error.contains(subject), "{ran}");
    }
    let told = reasons.len();
    reasons.dedup();
    assert_eq!(reasons.len(), told, "{ran}");
    assert!(!dunnage.directory().exists());
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_written_plan_keeps_its_factors() {
    let dunnage = with_plan(&plan(20, "", ""));
    let first = dunnage.run("plan --plan DIR.toml --write DIR-again.toml");
    assert!(first.code == 0 && first.stdout.contains("factors      a (low, high), b (low, high)"), "{first}");
    let again = dunnage.run("plan --plan DIR-again.toml");
    assert_eq!(first.stdout, again.stdout);
}
