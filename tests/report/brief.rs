//! The answer on one screen: everything in 40 lines of 80 columns, for every kind of run.

use dunnage::experiment;
use dunnage::plan::{Entry, Ladder};
use dunnage::record::Recorded;
use dunnage::report::text::width;
use dunnage::report::{Extent, Glyphs, Look, Report};
use dunnage::stats::Rng;
use dunnage::subject::{Layer, Need};

use crate::report::pictures::{everything, plant, throttle};
use crate::report::scripted::{cells_of, entry, full_ladder, metric, plan, plan_with, run};
use crate::report::{compare, rendered, report, terminal};

/// A verb has one more line, which says where it wrote something.
const LINES: usize = 39;

fn brief_at(run: &Recorded, columns: usize) -> String {
    let look = Look { width: columns, extent: Extent::Brief, place: "runs/r-7".into(), ..Look::default() };
    rendered("terminal", &report(run), &look)
}

fn brief(run: &Recorded) -> String {
    let text = brief_at(run, 80);
    assert!(text.lines().count() <= LINES, "{} lines:\n{text}", text.lines().count());
    assert!(text.lines().all(|line| width(line) <= 80), "{text}");
    assert!(flowing(&text).contains("dunnage report runs/r-7 --full"), "{text}");
    text
}

/// The words of a text, without its line breaks.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Three engines and three runtimes, the engines on both ladders.
fn eleven() -> Vec<Entry> {
    use Ladder::{AsInstalled, Equalised};
    let mut subjects = full_ladder();
    subjects.insert(4, entry("youki", Layer::Runtime, AsInstalled, Some("youki")));
    for (name, runtime) in [("containerd", "runc"), ("containerd+youki", "youki")] {
        subjects.push(entry(name, Layer::Engine, AsInstalled, Some(runtime)));
        subjects.push(entry(&format!("{name}:net=none,log=none"), Layer::Engine, Equalised, Some(runtime)));
    }
    subjects
}

#[test]
fn eleven_subjects_after_both_prestates_and_on_both_grounds_fit_a_screen() {
    let text = brief(&run(plan(eleven(), 20)));
    for label in ["floor", "crun", "runc", "youki", "docker+crun", "podman+runc", "containerd+youki"] {
        assert!(text.lines().any(|line| line.starts_with(&format!("{label} "))), "{label}:\n{text}");
    }
    let told = flowing(&text);
    for words in [
        "start on workbench: 20 rounds in 252 s",
        "equalised, equalised, idle, ms ms primed, ms ms",
        "difference from `bare`, which takes 809 µs [795, 817] (idle), 8",
        "runtimes: crun is fastest (`returned`): 10.",
        "engines as installed: podman is fastest (`returned`): ",
        "engines, equalised: podman is fastest (`returned`): ",
        "choosing youki instead of runc makes no difference that matters",
        "a launch adds less than 3.0 % to jobs longer than ",
        "kernel's share: crun 54.3 % [53.6, 55.1], ",
        "engines 4.54 % [4.47, 4.61] to 6.15 % [6.10, 6.30] (idle)",
    ] {
        assert!(told.contains(words), "`{words}`:\n{text}");
    }
    // A decisive number has its interval.
    for lead in told.split(" is fastest (`returned`): ").skip(1) {
        assert!(lead.split(' ').nth(2).is_some_and(|interval| interval.starts_with('[')), "{lead}");
    }
    assert!(!text.contains("slower"), "in every row it says nothing:\n{text}");
    compare("brief-eleven.txt", &text);
}

/// If the engines take the same time, none of them is named as fastest.
#[test]
fn what_ties_cannot_be_told_apart() {
    let mut run = run(plan(full_ladder(), 20));
    let all = ["docker", "docker (twin)", "docker+crun", "podman", "podman+runc"];
    let model = cells_of(&run, "podman");
    for label in all {
        for (at, cell) in cells_of(&run, label).into_iter().enumerate() {
            for (index, name) in ["returned", "first_instruction", "gone"].into_iter().enumerate() {
                let of = metric(name);
                for round in 0..20 {
                    let noise = Rng::for_stream(7 + cell as u64, (100 * index + round) as u64);
                    let shaken = 1.0 + 0.03 * { noise }.standard_normal();
                    let value = run.series[model[at]].values[of][0] * shaken;
                    run.series[cell].values[of][round] = value;
                }
            }
        }
    }
    let told = flowing(&brief(&run));
    assert!(
        told.contains(
            "engines as installed: docker, docker+crun, podman and podman+runc cannot be told apart"
        ),
        "{told}"
    );
    assert!(told.contains("runtimes: crun is fastest"), "{told}");
    assert!(!told.contains("engines as installed: podman is fastest"), "{told}");
}

/// What only varies another subject in a key is not compared with all others, so it does not keep one of them from being
/// named: its own comparison says what it costs.
#[test]
fn a_variation_of_an_engine_does_not_hide_the_fastest_one() {
    // Without a bare process they are compared with docker, and podman only with what differs from it in one choice.
    let mut subjects = full_ladder();
    subjects.retain(|one| ["docker", "docker+crun", "podman"].contains(&one.label.as_str()));
    subjects.push(entry("docker:tty=true", Layer::Engine, Ladder::AsInstalled, None));
    let mut run = run(plan(subjects, 20));
    let (of_docker, of_its_variation) = (cells_of(&run, "docker"), cells_of(&run, "docker:tty=true"));
    for (cell, like) in of_its_variation.into_iter().zip(of_docker) {
        run.series[cell].values = run.series[like].values.clone();
        for (round, value) in run.series[cell].values.iter_mut().flatten().enumerate() {
            *value *= 1.0 + 0.002 * ((round % 5) as f64 - 2.0);
        }
    }
    let told = flowing(&brief(&run));
    assert!(told.contains("engines as installed: podman is fastest (`returned`): "), "{told}");
    assert!(
        !told.contains("podman and docker:tty=true") && !told.contains("docker:tty=true and podman"),
        "{told}"
    );
}

/// Suspects, failures and warnings have one line each, however little room there is.
#[test]
fn suspects_failures_and_warnings_stand_in_a_line_each() {
    let suspect = brief(&terminal::with_a_suspect());
    assert_eq!(suspect.matches("SUSPECT: do not believe these numbers").count(), 1, "{suspect}");
    let failures = brief(&terminal::with_failures());
    for words in
        ["crash   `docker+crun`: 40 of 40 samples: ", "timeout  `podman`: 2 of 20 samples: no end within"]
    {
        let words = flowing(words);
        assert!(failures.lines().any(|line| flowing(line).starts_with(&words)), "`{words}`:\n{failures}");
    }
    let unfinished = brief(&terminal::unfinished());
    for kind in ["unfinished", "resumed", "damaged", "disturbed"] {
        assert_eq!(
            unfinished.lines().filter(|line| line.trim().starts_with(kind)).count(),
            1,
            "{kind}:\n{unfinished}"
        );
    }
}

/// Thirty samples far from the others are one line.
#[test]
fn a_disturbed_machine_is_one_line() {
    let mut run = run(plan(eleven(), 30));
    for cell in 0..run.plan.cells.len() {
        for of in ["returned", "gone"].map(metric) {
            run.series[cell].values[of][cell % 30] *= 3.0;
        }
    }
    let text = brief(&run);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("far from the others")).collect();
    let [line] = lines[..] else { panic!("{text}") };
    let count: usize = line.split_whitespace().find_map(|word| word.parse().ok()).expect("a count");
    assert!(count >= 30, "{line}");
}

#[test]
fn every_kind_of_run_fits_a_screen() {
    for (name, run) in terminal::all().into_iter().chain([("everything", everything())]) {
        assert!(brief(&run).lines().count() > 4, "{name}");
    }
}

/// Each experiment alone has its answer on one screen.
#[test]
fn every_experiment_answers_in_a_screen() {
    for one in experiment::ALL {
        let mut subjects = eleven();
        subjects.iter_mut().for_each(|entry| entry.offers = Need::ALL.to_vec());
        let chosen = match one.name {
            "command" => vec![("cmd", "sleep 1")],
            "service" => vec![("cmd", "serve"), ("ready", "port 80")],
            _ => Vec::new(),
        };
        let chosen =
            chosen.into_iter().map(|(key, value)| (key.to_owned(), vec![value.to_owned()])).collect();
        let mut run = run(plan_with(chosen, vec![one.name], subjects, 20));
        for cell in 0..run.plan.cells.len() {
            match one.name {
                "start" => {}
                "throttle" => throttle(&mut run, cell),
                _ => plant(&mut run, cell),
            }
        }
        let text = brief(&run);
        assert!(text.lines().count() > 8, "{}:\n{text}", one.name);
        assert!(text.starts_with(&format!("{} on workbench: ", one.name)), "{text}");
    }
}

/// Only the first metric has a share of a job; no other column shows it again.
#[test]
fn what_is_added_to_a_job_is_in_one_column() {
    let chosen = vec![("start.prestate".to_owned(), vec!["primed".to_owned()])];
    let run = run(plan_with(chosen, vec!["start"], full_ladder(), 20));
    let look = Look { width: 120, extent: Extent::Brief, ..Look::default() };
    let first = |report: &Report| {
        let text = rendered("terminal", report, &look);
        let head = text.lines().skip_while(|line| !line.starts_with("start")).skip(1);
        head.take_while(|line| !line.starts_with("crun")).collect::<Vec<_>>().join("\n")
    };
    let plain = first(&report(&run));
    assert!(plain.contains("returned, ms") && plain.contains("gone, ms"), "{plain}");
    let of_job = first(&report(&run).with_job(2.0));
    assert!(of_job.contains('%') && !of_job.contains("ms") && !of_job.contains("gone"), "{of_job}");
}

/// On a narrow terminal no line is cut, and an ASCII terminal gets nothing but ASCII.
#[test]
fn it_reads_on_a_narrow_terminal_and_without_unicode() {
    let run = run(plan(eleven(), 20));
    for columns in [40, 60, 79] {
        let text = brief_at(&run, columns);
        for line in text.lines() {
            let is_whole = !line.contains('…') || line.starts_with("  outliers");
            assert!(width(line) <= columns && is_whole, "{columns}: {line}");
        }
        assert!(flowing(&text).contains("podman is fastest"), "{text}");
    }
    let look = Look { glyphs: Glyphs::Ascii, extent: Extent::Brief, ..Look::default() };
    let ascii = rendered("terminal", &report(&run), &look);
    assert!(ascii.is_ascii() && !ascii.contains('?'), "{ascii}");
}

/// A comment begins with the answer and contains the rest.
#[test]
fn markdown_begins_with_the_answer_and_holds_everything() {
    let run = run(plan(full_ladder(), 20));
    let text = rendered("md", &report(&run), &Look::default());
    let answer = text.find("is fastest").expect("an answer");
    assert!(answer < text.find("### Details").expect("the rest"), "{text}");
    assert!(text.contains("Noise floor") && !text.contains("--full"), "{text}");
}
