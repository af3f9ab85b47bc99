//! A plan file means the same as its command line, and errors in one are reported with the line.

use std::fs;

use dunnage::record;

use crate::dunnage::Dunnage;

/// A state directory with this plan file in `DIR.toml`.
fn with_plan(text: &str) -> Dunnage {
    let dunnage = Dunnage::new();
    fs::write(dunnage.directory().with_extension("toml"), text).expect("a file");
    dunnage
}

const WHOLE: &str = r#"
about = "a try"
experiments = ["start"]
subjects = ["a=fake:time=1ms", "b=fake:noise=1,time=2ms", "fake:time=3ms"]
rounds = 12
seed = 7
timeout = 30

[settings]
prestate = "primed"

[tags]
commit = "1a2b"
"for whom" = "a \"friend\" = me"

[margins.start]
returned = { absolute = "1ms", relative = "7%" }
gone = { relative = "0.5%" }
"#;

#[test]
fn a_plan_file_is_the_command_line_that_it_stands_for() {
    let dunnage = with_plan(WHOLE);
    let typed = "start -s a=fake:time=1ms -s b=fake:time=2ms,noise=1 -s fake:time=3ms --rounds 12 --seed 7 --timeout 30 \
                 --set prestate=primed";
    let [from_file, typed] =
        ["--plan DIR.toml", typed].map(|arguments| dunnage.run(&format!("plan {arguments}")));
    assert_eq!(from_file.code, 0, "{from_file}");
    assert_eq!(from_file.stdout, typed.stdout);
}

#[test]
fn what_the_command_line_says_replaces_what_the_file_says() {
    let dunnage = with_plan(WHOLE);
    let ran = dunnage.run(
        "run --plan DIR.toml -s c=fake --rounds 2 --set prestate=idle --tag commit=9f --seed 8 -o DIR --full",
    );
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let labels: Vec<_> = run.plan.subjects.iter().map(|entry| entry.label.as_str()).collect();
    assert_eq!((labels, run.plan.rounds, run.plan.seed), (vec!["c", "c (twin)"], 2, 8));
    assert!(run.plan.cells.iter().all(|cell| cell.setting.to_string() == "prestate=idle"));
    let tags: Vec<_> = run.environment.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(tags, ["commit=9f", "for whom=a \"friend\" = me"]);
    assert!(ran.stdout.contains("tags   commit=9f for whom=a \"friend\" = me"), "{ran}");
    let json = dunnage.run("report DIR --format json");
    let report: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(report["tags"]["commit"], "9f");
    // `--quick` overrides the rounds, not the settings that the file chose.
    let quick = dunnage.run("plan --plan DIR.toml --quick");
    assert!(quick.stdout.contains("settings     prestate=primed\n"), "{quick}");
    assert!(!quick.stdout.contains("rounds       12 "), "{quick}");
}

#[test]
fn margins_of_a_person_are_fixed_in_the_plan_and_decide() {
    let dunnage = with_plan(
        "subjects = [\"a=fake:time=1ms,noise=0.5\", \"b=fake:time=1.2ms,noise=0.5\"]\nrounds = 12\nseed = 7\n\
         [margins.start]\nreturned = { relative = \"30%\" }\ngone = { absolute = \"1us\" }\n",
    );
    let ran = dunnage.run("run --plan DIR.toml -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let parts = |name: &str| {
        let found = run.plan.margins.iter().find(|one| one.metric == name).expect("a margin");
        found.margin.parts()
    };
    assert_eq!((parts("returned"), parts("gone")), ((0.0, 0.3), (1e-6, 0.0)));
    assert_eq!(parts("first_instruction"), (20e-6, 0.03), "the program's own");
    let words: Vec<_> =
        dunnage::verdict::analyse(&run).findings.iter().take(3).map(|one| one.kind().word()).collect();
    assert_eq!(words, ["same", "slower", "slower"]);
}

#[test]
fn a_written_plan_makes_the_same_plan_again() {
    let dunnage = with_plan(WHOLE);
    for (index, typed) in [
        "--plan DIR.toml",
        "start -s fake -s x=fake:time=2ms,noise=3 --set prestate=idle --tag who=me",
        "-s fake --rounds 14 --timeout 20",
    ]
    .into_iter()
    .enumerate()
    {
        let first = dunnage.run(&format!("plan {typed} --write DIR-{index}.toml"));
        assert_eq!(first.code, 0, "{first}");
        assert!(first.stderr.contains("run it with"), "{first}");
        let again = dunnage.run(&format!("plan --plan DIR-{index}.toml --write DIR-{index}-again.toml"));
        assert_eq!(first.stdout, again.stdout, "{typed}");
        let text = |end: &str| {
            let path = format!("{}-{index}{end}.toml", dunnage.directory().display());
            fs::read_to_string(path).expect("a plan file")
        };
        assert_eq!(text(""), text("-again"));
        let over = dunnage.run(&format!("plan {typed} --write DIR-{index}.toml"));
        assert!(over.code == 2 && over.stderr.contains("already exists"), "{over}");
    }
}

#[test]
fn what_is_wrong_in_a_plan_file_is_told_with_its_line() {
    for (text, words) in [
        ("experiments = [\n  \"strat\"]", "line 2: unknown experiment `strat`"),
        ("subjects = [\"fake\",\n\"dcoker\"]", "line 2: there is no subject `dcoker`"),
        ("\nsubjects = [\"docker:nte=none\"]", "line 2: `docker` has no key `nte`"),
        ("[settings]\nprestat = \"idle\"", "line 2: unknown setting `prestat`"),
        ("[settings]\n\nprestate = [\"idle\", \"drunk\"]", "line 3: invalid setting `prestate=drunk`"),
        ("[margins.strat]\ngone = { relative = \"1%\" }", "line 1: unknown experiment `strat`"),
        ("[margins.start]\ngane = { relative = \"1%\" }", "line 2: `start` has no metric `gane`"),
        ("[margins.start]\ngone = { relative = \"1\" }", "line 2: `1` is not a percentage"),
        ("[margins.start]\ngone = { absolute = \"1MB\" }", "line 2: `1MB` is not a value of `gone`"),
        ("[margins.start]\ngone = { absolute = -1.0 }", "line 2: a margin of -1"),
    ] {
        let dunnage = with_plan(text);
        let ran = dunnage.run("run --plan DIR.toml -o DIR");
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains(words), "{text}\n{ran}");
        assert!(!dunnage.state().exists() && !dunnage.directory().exists());
    }
}
