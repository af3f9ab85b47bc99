//! `doctor`, `plan`, `compare` and `history`: is the answer a screen that begins with the conclusion, and can it be read on
//! any terminal? (`run` and `report`: `tests/report/brief.rs`.) And is the screen of each experiment, made from a recorded run,
//! the one that was read last? With `UPDATE_SNAPSHOTS` set, they are written instead.

use std::fs;
use std::process::{Command, Stdio};

use dunnage::experiment::{ALL, Experiment};
use dunnage::report::text::width;

use crate::dunnage::{Dunnage, finished};
use crate::support::{Need, lacks};

/// The verbs with words of the conclusion, in which line it is at the latest.
const VERBS: [(&str, &str, usize); 4] = [
    ("doctor", "can be measured here", 3),
    ("plan all SUBJECTS --cmd a --rounds 4", "too few rounds for all verdicts", 1),
    ("compare DIR/01 DIR/12", "Slower: ", 3),
    ("history DIR", "slower ", 4),
];

/// Twelve runs of so many subjects, all of them slower from the seventh run on, and each on another kernel and distribution.
fn planted(subjects: usize) -> Dunnage {
    let dunnage = Dunnage::new();
    for day in 1..=12 {
        let time = if day > 6 { 3 } else { 2 };
        let subjects: String =
            (0..subjects).map(|index| format!(" -s subject-{index}=fake:time={time}ms,noise=0.1")).collect();
        let ran = dunnage.run(&format!(
            "run start{subjects} --set prestate=idle --rounds 8 --seed {day} --no-html -o DIR/{day:02}"
        ));
        assert_eq!(ran.code, 0, "{ran}");
        let path = dunnage.directory().join(format!("{day:02}/env.json"));
        let text = fs::read_to_string(&path).expect("the environment");
        let mut environment: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        environment["started"] = format!("2026-10-{day:02}T12:00:00Z").into();
        for fact in
            ["kernel", "kernel_version", "clock_source", "hypervisor", "distribution", "state_filesystem"]
        {
            environment["machine"][fact] = format!("{fact} number {day}, with a long name").into();
        }
        fs::write(&path, environment.to_string()).expect("our own file");
    }
    dunnage
}

fn command(dunnage: &Dunnage, verb: &str) -> Command {
    let subjects: String = (0..20).map(|index| format!("-s subject-{index}=fake ")).collect();
    dunnage.command(&verb.replace("SUBJECTS", &subjects))
}

/// Packs of real runs, and the screens that were made from them.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/screens");

#[test]
fn the_screen_of_each_experiment_is_the_one_that_was_read() {
    let dunnage = Dunnage::new();
    let all: Vec<String> = fs::read_dir(RECORDED)
        .expect("they are there")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".dunnage")?.to_owned()))
        .collect();
    let mut differing = Vec::new();
    for name in &all {
        let pack = format!("{name}.dunnage");
        fs::create_dir_all(dunnage.directory()).expect("a directory");
        fs::copy(format!("{RECORDED}/{pack}"), dunnage.directory().join(&pack)).expect("it can be copied");
        let mut command = dunnage.command(&format!("report {pack}"));
        command.current_dir(dunnage.directory()).env("COLUMNS", "80").env("LC_ALL", "C.UTF-8");
        let ran = finished(command.output().expect("it starts"));
        assert!(ran.code == 0 && ran.stderr.is_empty(), "{name}: {ran}");
        let text = &ran.stdout;
        assert!(text.lines().count() <= 30 && text.lines().all(|line| width(line) <= 80), "{name}: {ran}");
        let path = format!("{RECORDED}/{name}.txt");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&path, text).expect("it can be written");
        } else if fs::read_to_string(&path).unwrap_or_default() != *text {
            differing
                .push(format!("`{path}` differs; look at it, then run with UPDATE_SNAPSHOTS=1\n\n{text}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    // What the tour shows of them is the same.
    let tour = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tour.md")).expect("the tour");
    for name in &all {
        let screen = fs::read_to_string(format!("{RECORDED}/{name}.txt")).expect("written before");
        let rounds_and_date = screen.lines().nth(1).expect("a second line");
        let is_there = tour.contains(screen.trim_end()) || !tour.contains(rounds_and_date);
        assert!(is_there, "docs/tour.md shows another screen of `{name}` than {RECORDED}/{name}.txt");
    }

    let recorded = |one: &&&Experiment| all.iter().any(|name| name == one.name);
    let without: Vec<_> = ALL.iter().filter(|one| !recorded(one)).map(|one| one.name).collect();
    assert_eq!(without, [""; 0], "recorded by `dunnage run NAME`, then `dunnage pack`");
}

/// Every way is in csv, with where its container was, or that it was refused.
#[test]
fn csv_tells_which_ways_of_nesting_work() {
    let dunnage = Dunnage::new();
    fs::create_dir_all(dunnage.directory()).expect("a directory");
    let pack = dunnage.directory().join("nested.dunnage");
    fs::copy(format!("{RECORDED}/nested.dunnage"), &pack).expect("it can be copied");
    let ran = dunnage.run("report DIR/nested.dunnage --format csv");
    let mut reader = csv::Reader::from_reader(ran.stdout.as_bytes());
    let lines: Vec<csv::StringRecord> = reader.records().map(|line| line.expect("csv")).collect();
    let of = |label: &str, way: &str| -> Vec<(&str, bool)> {
        let is_its = |one: &&csv::StringRecord| {
            (&one[3], &one[5], &one[6], &one[8]) == (format!("way={way}").as_str(), label, "inner", "measure")
        };
        lines.iter().filter(is_its).map(|one| (&one[15], one[13].is_empty())).collect()
    };
    assert_eq!(of("docker", "socket"), [("sibling", false); 2], "{ran}");
    assert_eq!(of("podman", "user-inside"), [("inside", false); 2], "{ran}");
    assert_eq!(of("docker", "privileged"), [("refused", true); 2], "{ran}");
}

/// What can be copied is in one line.
fn is_copied(line: &str) -> bool {
    line.trim_start().starts_with("fix: ")
}

#[test]
fn the_conclusion_comes_first_in_a_screen_of_any_width_and_alphabet() {
    let dunnage = planted(11);
    for (columns, locale) in [(80, "C.UTF-8"), (60, "C.UTF-8"), (40, "C.UTF-8"), (80, "C"), (60, "C")] {
        for (verb, conclusion, line) in VERBS {
            let mut command = command(&dunnage, verb);
            // No engine is asked.
            command.env("COLUMNS", columns.to_string()).env("LC_ALL", locale).env("PATH", "/nowhere");
            let ran = finished(command.output().expect("it starts"));
            let text = &ran.stdout;
            let is_first = text.lines().take(line).any(|line| line.contains(conclusion));
            assert!(is_first || columns < 60, "{verb}: {ran}");
            let fits = |line: &str| width(line) <= columns || is_copied(line);
            assert!(text.lines().all(fits), "{verb}, {columns}: {ran}");
            assert!(columns < 80 || text.lines().count() <= 40, "{verb}: {ran}");
            assert!(text.contains("--full") && !text.contains('\x1b'), "{verb}: {ran}");
            // What the doctor finds here may need no other letters.
            let is_fine = if verb == "doctor" {
                text.is_ascii() || locale != "C"
            } else {
                text.is_ascii() == (locale == "C")
            };
            assert!(is_fine, "{verb}, {locale}: {ran}");
        }
    }
}

#[test]
fn a_terminal_has_colours_unless_they_are_refused() {
    if lacks("a_terminal_has_colours_unless_they_are_refused", Need::Script) {
        return;
    }
    // Colours are the same however many there are.
    let dunnage = planted(1);
    for (verb, ..) in VERBS.iter().filter(|(verb, ..)| *verb != "doctor") {
        for (no_colour, terminal, expected) in
            [("", "xterm", true), ("1", "xterm", false), ("", "dumb", false)]
        {
            let own = command(&dunnage, verb);
            let words = std::iter::once(own.get_program()).chain(own.get_args());
            let line = words.map(|word| format!("'{}'", word.display())).collect::<Vec<_>>().join(" ");
            // Runs it at a terminal of its own.
            let mut script = Command::new("script");
            script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
            script.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
            script.env("NO_COLOR", no_colour).env("TERM", terminal);
            let ran = finished(script.output().expect("it starts"));
            assert!(ran.code == 0 && ran.stdout.contains("--full"), "{verb}: {ran}");
            assert_eq!(ran.stdout.contains('\x1b'), expected, "{verb}, {no_colour} {terminal}: {ran}");
        }
    }
}
