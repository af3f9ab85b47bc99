//! The answer on one screen: 30 lines of 80 columns, for every kind of run.

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
const LINES: usize = 29;

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
        "How long does a command take in a new container? 20 rounds, 252 s",
        "after a pause, ms until it returns kernel runtime engine own compared",
        "crun, runc or youki? crun, by 10.",
        "which engine? podman, by ",
        "does it matter? a runtime adds less than 3.0 % to jobs above ",
    ] {
        assert!(told.contains(words), "`{words}`:\n{text}");
    }
    // A decisive number has its interval.
    for lead in told.split(", by ").skip(1) {
        assert!(lead.split(' ').nth(2).is_some_and(|interval| interval.starts_with('[')), "{lead}");
    }
    // The whole is the sum of its parts, as far as three digits show it.
    for line in text.lines().filter(|line| ["docker ", "podman "].iter().any(|own| line.starts_with(own))) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<f64>().unwrap_or_else(|_| panic!("{at}: {line}"));
        let parts: f64 = (4..8).map(number).sum();
        assert!((parts - number(1)).abs() < 1.5, "{line}");
    }
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
        told.contains("docker, docker+crun, podman and podman+runc cannot be told apart, at most "),
        "{told}"
    );
    assert!(told.contains("runc or crun? crun, by ") || told.contains("crun or runc? crun, by "), "{told}");
    assert!(!told.contains("engine? podman, by"), "{told}");
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
    assert!(told.contains("which engine? podman, by "), "{told}");
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
        let question = dunnage::report::text::capital(one.question);
        assert!(flowing(&text).starts_with(&question), "{text}");
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
        let head = text.lines().skip(3);
        head.take_while(|line| !line.starts_with("crun")).collect::<Vec<_>>().join("\n")
    };
    let plain = first(&report(&run));
    assert!(plain.contains("until it returns") && !plain.contains('%'), "{plain}");
    let of_job = first(&report(&run).with_job(2.0));
    assert!(of_job.contains('%') && !of_job.contains("gone"), "{of_job}");
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
        assert!(flowing(&text).contains("podman, by "), "{text}");
    }
    let look = Look { glyphs: Glyphs::Ascii, extent: Extent::Brief, ..Look::default() };
    let ascii = rendered("terminal", &report(&run), &look);
    let asked = |text: &str| text.matches('?').count();
    let unicode = rendered("terminal", &report(&run), &Look { extent: Extent::Brief, ..Look::default() });
    assert!(ascii.is_ascii() && asked(&ascii) == asked(&unicode), "{ascii}");
}

/// A comment begins with the answer and contains the rest.
#[test]
fn markdown_begins_with_the_answer_and_holds_everything() {
    let run = run(plan(full_ladder(), 20));
    let text = rendered("md", &report(&run), &Look::default());
    let answer = text.find("podman, by ").expect("an answer");
    assert!(answer < text.find("### Details").expect("the rest"), "{text}");
    assert!(text.contains("Noise floor") && !text.contains("--full"), "{text}");
}
