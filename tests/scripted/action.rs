//! The step of `action.yml`, run here as GitHub's runner would: its outputs and summary are files.

use std::fs;
use std::path::Path;

use crate::dunnage::{Dunnage, Ran};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/action/measure.sh");

/// One step with these inputs: its result, outputs and summary.
fn step(inputs: &[(&str, &str)]) -> (Ran, String, String) {
    let files = tempfile::tempdir().expect("a directory");
    let [output, summary] = ["output", "summary"].map(|name| files.path().join(name).display().to_string());
    let mut dunnage = Dunnage::new()
        .with("GITHUB_OUTPUT", &output)
        .with("GITHUB_STEP_SUMMARY", &summary)
        .with("INPUT_EXECUTABLE", env!("CARGO_BIN_EXE_dunnage"));
    for (name, value) in inputs {
        dunnage = dunnage.with(name, value);
    }
    let ran = dunnage.through(&format!("sh {SCRIPT}"), "");
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    (ran, read(&output), read(&summary))
}

fn arguments(time: &str) -> String {
    format!("start -s a=fake:time=1ms -s b=fake:time={time} --set prestate=primed --rounds 20 --seed 7")
}

#[test]
fn a_run_is_summarised_packed_and_compared_with_what_was_before() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    let baseline = path("before.dunnage");
    let of = |time: &str, name: &str, limit: &str| {
        step(&[
            ("INPUT_ARGUMENTS", &arguments(time)),
            ("INPUT_OUTPUT", &path(name)),
            ("INPUT_BASELINE", &baseline),
            ("INPUT_FAIL_ON", limit),
        ])
    };
    let (ran, output, summary) = of("10ms", "before", "slower");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(output, format!("run-code=0\ndirectory={}\npack={baseline}\n", path("before")));
    assert!(summary.starts_with("There is no baseline") && summary.contains("# "), "{summary}");
    assert!(Path::new(&baseline).is_file());
    let (ran, output, summary) = of("20ms", "slower", "slower=5%");
    assert_eq!(ran.code, 3, "{ran}\n{summary}");
    assert!(output.contains("\ncompare-code=3\n"), "{output}");
    // Changes come first.
    let [compared, told] = ["## What changed", "\n\n## "].map(|title| summary.find(title));
    assert!(compared == Some(0) && told.is_some(), "{summary}");
    let (ran, output, _) = of("10ms", "alike", "slower=5%");
    assert!(ran.code == 0 && output.contains("\ncompare-code=0\n"), "{ran}\n{output}");
}

#[test]
fn no_input_writes_another_output_or_becomes_an_option() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    for (name, value) in [
        ("INPUT_OUTPUT", path("run\nrun-code=0")),
        ("INPUT_OUTPUT", path("run\r\nrun-code=0")),
        ("INPUT_BASELINE", "x\n# Forged".to_owned()),
    ] {
        let others = [("INPUT_ARGUMENTS", arguments("1ms")), ("INPUT_OUTPUT", path("run"))];
        let mut inputs: Vec<(&str, &str)> =
            others.iter().map(|(name, value)| (*name, value.as_str())).collect();
        inputs.push((name, &value));
        let (ran, output, summary) = step(&inputs);
        assert!(ran.code == 2 && ran.stderr.contains("contains a line end"), "{ran}");
        assert_eq!((output.as_str(), summary.as_str()), ("", ""));
    }
    // The directory of the step is dunnage's own, so that a relative path is in it.
    let all = arguments("1ms");
    let inputs = [("INPUT_ARGUMENTS", all.as_str()), ("INPUT_OUTPUT", "-o"), ("INPUT_BASELINE", "--help")];
    let (ran, output, summary) = step(&inputs);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(output, "run-code=0\ndirectory=./-o\npack=./-o.dunnage\n");
    assert!(summary.starts_with("There is no baseline `./--help` yet"), "{summary}");
    let option = [("INPUT_PLAN", "--help")];
    assert_ne!(step(&option).0.code, 0);
}

#[test]
fn a_step_that_cannot_measure_fails_with_the_programs_own_code_and_words() {
    let (ran, output, summary) = step(&[("INPUT_PLAN", "no-such-plan")]);
    assert_eq!((ran.code, output.as_str(), summary.as_str()), (2, "run-code=2\n", ""), "{ran}");
    assert!(ran.stderr.contains("no-such-plan"), "{ran}");
    // Half of the samples are missing: the rest is reported, and the step fails.
    let place = tempfile::tempdir().expect("a directory");
    let inputs =
        "start -s a=fake:time=1ms -s b=fake:time=1ms,hang=5 --set prestate=primed --rounds 12 --seed 7";
    let directory = place.path().join("run").display().to_string();
    let (ran, output, summary) = step(&[("INPUT_ARGUMENTS", inputs), ("INPUT_OUTPUT", &directory)]);
    assert!(ran.code == 6 && output.contains("pack=") && summary.contains("hangs"), "{ran}\n{summary}");
}

/// The script reads what the action declares, and nothing else.
#[test]
fn inputs_and_outputs_are_those_that_the_script_knows() {
    let script = fs::read_to_string(SCRIPT).expect("the script");
    let action = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/action.yml")).expect("the action");
    let block = |from: &str, to: &str| {
        let start = action.find(from).expect("a block") + from.len();
        let text = &action[start..start + action[start..].find(to).expect("its end")];
        let keys = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        keys.map(|line| line.trim().trim_end_matches(':').to_owned()).collect::<Vec<_>>()
    };
    for input in block("\ninputs:\n", "\noutputs:") {
        let variable = format!("INPUT_{}", input.to_uppercase().replace('-', "_"));
        assert!(script.contains(&variable), "{variable}");
        assert!(action.contains(&format!("{variable}: ${{{{ inputs.{input} }}}}")), "{variable}");
    }
    for output in block("\noutputs:\n", "\nruns:") {
        assert!(script.contains(&format!("\"{output}=")), "{output}");
        assert!(action.contains(&format!("steps.measure.outputs.{output} ")), "{output}");
    }
}
