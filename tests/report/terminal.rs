//! The report in a terminal.

use dunnage::outcome::{Failure, FailureClass};
use dunnage::plan::Ladder;
use dunnage::record::{Cause, FailureRow, Recorded};
use dunnage::report::text::{clean, width};
use dunnage::report::{Extent, Glyphs, Look, Style};
use dunnage::subject::Layer;

use crate::report::scripted::{cells_of, crash, entry, fail, full_ladder, metric, plan, run};
use crate::report::{compare, rendered, report};

fn look(width: usize) -> Look {
    Look { width, place: "runs/r-7".into(), ..Look::default() }
}

fn shown(run: &Recorded) -> String {
    rendered("terminal", &report(run), &look(80))
}

pub fn with_failures() -> Recorded {
    let mut run = run(plan(full_ladder(), 20));
    for cell in cells_of(&run, "docker+crun") {
        for round in 0..20 {
            fail(
                &mut run,
                cell,
                round,
                crash(
                    "docker: Error response from daemon: unknown or invalid runtime name: crun.\nSee 'docker run --help'.",
                ),
            );
        }
    }
    let idle = cells_of(&run, "podman")[0];
    for round in [3, 11] {
        fail(&mut run, idle, round, Failure::new(FailureClass::Timeout, "no end within 60 s"));
    }
    let skipped = cells_of(&run, "podman+runc")[0];
    for column in &mut run.series[skipped].values {
        column[5] = f64::NAN;
    }
    let cause = Cause::Skipped("`runc` was removed during the run".into());
    run.failures.push(FailureRow { cell: skipped, round: 6, cause });
    run.environment
        .unavailable
        .insert("youki".into(), "not built for cgroup v1; build it with the feature `v1`".into());
    run
}

pub fn with_a_suspect() -> Recorded {
    let mut run = run(plan(full_ladder(), 20));
    let (primed, returned) = (cells_of(&run, "podman")[1], metric("returned"));
    for value in &mut run.series[primed].values[returned] {
        *value /= 900.0;
    }
    run
}

pub fn unfinished() -> Recorded {
    let mut run = run(plan(full_ladder(), 20));
    for round in 14..20 {
        run.contexts[round + 1] = None;
    }
    if let Some(context) = &mut run.contexts[4] {
        context.disturbed = Some("steal 12 %".into());
    }
    run.cut = true;
    run.resumed = true;
    run
}

fn alone() -> Recorded {
    run(plan(vec![entry("docker", Layer::Engine, Ladder::AsInstalled, Some("runc"))], 20))
}

/// Builds of one runtime that are the same, nearly the same, and different.
fn builds() -> Recorded {
    let build = |text: &str| entry(text, Layer::Runtime, Ladder::AsInstalled, Some("crun"));
    let mut subjects = full_ladder()[..1].to_vec();
    subjects.extend(
        ["crun", "again=crun:bin=./crun", "old=crun:bin=./crun-1.8", "slow=crun:bin=./crun-debug"].map(build),
    );
    let mut run = run(plan(subjects, 40));
    for (label, factor) in [("old", 1.025), ("slow", 1.4)] {
        for cell in cells_of(&run, label) {
            let columns = &mut run.series[cell].values;
            columns.iter_mut().flatten().for_each(|value| *value *= factor);
        }
    }
    run
}

/// Two builds and nothing below them.
fn pair() -> Recorded {
    let build = |text: &str| entry(text, Layer::Runtime, Ladder::AsInstalled, Some("crun"));
    let mut run = run(plan(["old=crun:bin=./crun-1.8", "new=crun"].map(build).to_vec(), 20));
    for cell in cells_of(&run, "new") {
        let columns = &mut run.series[cell].values;
        columns.iter_mut().flatten().for_each(|value| *value *= 1.03);
    }
    run
}

pub fn all() -> Vec<(&'static str, Recorded)> {
    vec![
        ("full", run(plan(full_ladder(), 20))),
        ("failures", with_failures()),
        ("suspect", with_a_suspect()),
        ("unfinished", unfinished()),
        ("alone", alone()),
        ("few", run(plan(full_ladder(), 4))),
        ("builds", builds()),
        ("pair", pair()),
        ("without-engines", run(plan(full_ladder()[..4].to_vec(), 20))),
    ]
}

#[test]
fn every_kind_of_run_reads_as_it_did() {
    for (name, run) in all() {
        let is_whole = ["full", "alone"].contains(&name);
        let extent = if is_whole { Extent::Full } else { Extent::Brief };
        let text = rendered("terminal", &report(&run), &Look { extent, ..look(80) });
        compare(&format!("terminal-{name}.txt"), &text);
    }
}

#[test]
fn a_dumb_terminal_gets_ascii_in_the_same_columns() {
    let report = report(&run(plan(full_ladder(), 20)));
    let unicode = rendered("terminal", &report, &look(80));
    let ascii = rendered("terminal", &report, &Look { glyphs: Glyphs::Ascii, ..look(80) });
    assert!(ascii.is_ascii());
    assert_eq!(ascii.matches("?").count(), unicode.matches("?").count(), "every drawing has an ASCII form");
    assert_eq!(ascii.lines().count(), unicode.lines().count());
    for (one, other) in ascii.lines().zip(unicode.lines()) {
        assert_eq!(width(one), width(other), "{one}\n{other}");
        // What was ASCII before is the same.
        let same = one.chars().zip(other.chars()).all(|(one, other)| !other.is_ascii() || one == other);
        assert!(same && one.chars().count() == other.chars().count(), "{one}\n{other}");
    }
}

#[test]
fn colours_are_beside_the_words() {
    let report = report(&with_a_suspect());
    let plain = rendered("terminal", &report, &look(100));
    let coloured = rendered("terminal", &report, &Look { style: Style::Colour, ..look(100) });
    assert!(coloured.contains("\x1b["));
    let words = |text: &str| text.lines().map(clean).collect::<Vec<_>>();
    assert_eq!(words(&coloured), words(&plain));
}

fn hostile() -> Recorded {
    let evil = "e\x1b[2J\x1b]0;owned\x07vil\u{202e}\u{9b}31m\r\n=cmd|日本語日本語日本語日本語日本語日本語日本語日本語日本語";
    let mut subjects = full_ladder();
    for (index, subject) in subjects.iter_mut().enumerate().skip(3) {
        subject.label = format!("{evil}{index}");
    }
    subjects[5].spec.keys.push(("image".into(), format!("{evil}/x")));
    let mut run = run(plan(subjects, 20));
    for cell in cells_of(&run, &format!("{evil}4")) {
        for round in 0..12 {
            fail(&mut run, cell, round, crash(&evil.repeat(9)));
        }
    }
    run.run = evil.into();
    run.environment.host = evil.into();
    run.environment.machine.insert("kernel".into(), evil.repeat(3));
    run.environment.tags.insert(evil.into(), evil.into());
    run.environment.unavailable.insert(evil.into(), evil.into());
    run.missing.push((evil.into(), evil.into()));
    run
}

#[test]
fn no_line_is_wider_than_the_page_and_nothing_controls_the_terminal() {
    let runs = all().into_iter().chain([("hostile", hostile())]);
    for (name, run) in runs {
        let report = report(&run);
        for columns in [20, 80, 100, 120] {
            let text = rendered(
                "terminal",
                &report,
                &Look { place: "a\x1b[31m/very/long/place".repeat(9), ..look(columns) },
            );
            for line in text.lines() {
                assert!(width(line) <= columns.max(80), "{name} at {columns}: {line:?}");
                assert_eq!(line, line.trim_end(), "{name}");
            }
            let control = text.chars().find(|letter| letter.is_control() && *letter != '\n');
            assert_eq!(control, None, "{name}");
            assert!(!text.contains('\u{202e}'), "{name}");
        }
    }
}

#[test]
fn causes_are_named_only_where_one_thing_differs() {
    let report = report(&run(plan(full_ladder(), 20)));
    let text = rendered("md", &report, &look(80));
    let says = |phrase: &str| {
        text.lines().any(|line| line.starts_with(&format!("| {phrase} ")) && line.contains("returned"))
    };
    assert!(says("choosing crun instead of runc under docker"), "{text}");
    assert!(says("choosing podman instead of docker with crun (log=none, net=none)"), "{text}");
    assert!(!says("choosing podman instead of docker with crun |"), "{text}");
}

#[test]
fn a_limit_that_differs_too_is_named_with_both_values_in_place_of_a_cause() {
    let with = |docker: &str, crun: &str| {
        let mut subjects = full_ladder();
        for entry in &mut subjects {
            let files = if entry.label.starts_with("docker+crun") { crun } else { docker };
            entry.inherited.insert("ulimit nofile".into(), files.into());
        }
        let report = report(&run(plan(subjects, 20)));
        let claims = report.claims.iter().map(|one| one.answer.as_str());
        let claims = claims.collect::<Vec<_>>().join("\n");
        format!("{claims}\n{}", rendered("md", &report, &look(80)))
    };
    let cause = "choosing crun instead of runc under docker";
    let named = "docker+crun against docker; no cause is named, since they also differ in ulimit nofile (1024 and 20000)";
    let step = "the step from crun to docker+crun (log=none, net=none), which also differ in ulimit nofile (1024 and 20000)";
    let other = with("20000", "1024");
    assert!(!other.contains(cause) && other.contains(named) && other.contains(step), "{other}");
    let claim = "than docker; no cause is named, since they also differ in ulimit nofile (1024 and 20000)";
    assert!(other.contains(claim), "{other}");
    let equal = with("20000", "20000");
    assert!(equal.contains(cause) && !equal.contains("no cause is named, since"), "{equal}");
    assert!(!equal.contains("also differ"), "{equal}");
}

#[test]
fn warnings_about_the_run_are_counted_without_naming_cells() {
    let with = |reasons: usize| {
        let mut run = run(plan(full_ladder(), 20));
        run.missing = (0..reasons).map(|each| ("gone".to_owned(), format!("reason {each}"))).collect();
        shown(&run)
    };
    let text = with(12);
    assert!(text.contains("gone is missing from samples: reason 1\n"), "{text}");
    assert!(text.contains("and 2 more of this kind: see `--format json`\n"), "{text}");
    assert!(!text.contains("reason 11"), "{text}");
    assert!(!with(10).contains("more of this kind"));
}
