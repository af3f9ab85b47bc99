//! The page must be complete, self-contained and harmless for every run. Here its structure is checked as
//! text; `in_browser` opens it in a real browser.

mod browser;
mod comparison;
mod in_browser;

use dunnage::document::shown;
use dunnage::plan::Prediction;
use dunnage::plan::prediction::Written;
use dunnage::record::Recorded;
use dunnage::reference::{self, beside};
use dunnage::report::{Look, Report};
use dunnage::verdict::analyse;

use crate::report::scripted::{cells_of, crash, fail, full_ladder, metric, plan, run};

/// The page of a report.
fn page_of(report: &Report, look: &Look) -> String {
    shown(report, "html", look).expect("a format")
}

/// The page of a run.
fn page(run: &Recorded) -> String {
    page_of(&Report::of(run, &analyse(run)), &Look { place: "runs/r-7".into(), ..Look::default() })
}

/// Twelve subjects in two settings; one has a suspect and one failed.
fn small() -> Recorded {
    let mut run = run(plan(full_ladder(), 20));
    let (primed, returned) = (cells_of(&run, "podman")[1], metric("returned"));
    for value in &mut run.series[primed].values[returned] {
        *value /= 900.0;
    }
    let idle = cells_of(&run, "docker+crun")[0];
    for round in 0..20 {
        fail(&mut run, idle, round, crash("unknown or invalid runtime name: crun"));
    }
    run
}

/// Five subjects with a user's predictions, and a reader with a job of two seconds; a program with a long
/// path, and two values far from all others.
fn asked() -> Report {
    let predicted = [
        "start.returned: bare < floor < crun",
        "start.returned: crun < floor",
        "start.returned: bare < podman",
    ];
    let read = |text: &str| Prediction::of(&Written::parse(text).unwrap(), &["start"]).unwrap();
    let mut run = run(plan(full_ladder()[..5].to_vec(), 20));
    run.plan.predictions = predicted.map(read).to_vec();
    for facts in run.environment.subjects.values_mut() {
        facts.components[0].path = format!("/var/lib/{}/rootfs/dunnage", "0123456789abcdef".repeat(4));
    }
    for label in ["crun", "runc"] {
        let cell = cells_of(&run, label)[0];
        for name in ["returned", "gone"] {
            run.series[cell].values[metric(name)][7] *= 4.0;
        }
    }
    Report::of(&run, &analyse(&run)).with_job(2.0)
}

/// Text that tries to be more than text.
const EVIL: &str =
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}\x1b[31m&amp;</style>{{7*7}}";

/// A run in which everything from outside tries to be more than text.
fn hostile() -> Recorded {
    let mut subjects = full_ladder();
    for (index, subject) in subjects.iter_mut().enumerate().skip(2) {
        subject.label = format!("{EVIL}{index}");
    }
    subjects[5].spec.keys.push(("image".into(), format!("{EVIL}/x")));
    let mut run = run(plan(subjects, 20));
    for cell in cells_of(&run, &format!("{EVIL}4")) {
        for round in 0..12 {
            fail(&mut run, cell, round, crash(&EVIL.repeat(3)));
        }
    }
    run.run = EVIL.into();
    let environment = &mut run.environment;
    environment.host = EVIL.into();
    environment.dunnage = EVIL.into();
    environment.started = EVIL.into();
    environment.command = vec!["dunnage".into(), "run".into(), EVIL.into()];
    environment.machine.insert("kernel".into(), EVIL.into());
    environment.machine.insert(EVIL.into(), EVIL.into());
    environment.tags.insert(EVIL.into(), EVIL.into());
    environment.unavailable.insert(EVIL.into(), EVIL.into());
    for facts in environment.subjects.values_mut() {
        facts.components[0].version = EVIL.into();
        facts.components[0].path = EVIL.into();
    }
    run.missing.push((EVIL.into(), EVIL.into()));
    run
}

/// How often an element of this name is opened.
fn elements(page: &str, name: &str) -> usize {
    page.match_indices(&format!("<{name}"))
        .filter(|(at, all)| !page[at + all.len()..].starts_with(|next: char| next.is_alphanumeric()))
        .count()
}

#[test]
fn a_page_holds_every_part_of_the_report() {
    let page = page(&small());
    for part in [
        "What containers cost on workbench",
        "How long does a command take",
        "Suspect: do not believe these numbers",
        "unknown or invalid runtime name: crun",
        "What the timed interval includes",
        "Rounds over time",
        "Noise floor",
        "How to repeat it",
        "--seed 7",
        "AMD EPYC 7763 64-Core Processor",
        "runs/r-7",
    ] {
        assert!(page.contains(part), "no {part:?}");
    }
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}

/// The text between two others.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let after = page.split_once(from).unwrap_or_else(|| panic!("no {from:?}")).1;
    after.split_once(to).unwrap_or_else(|| panic!("no {to:?} after {from:?}")).0
}

#[test]
fn what_was_predicted_and_what_a_job_pays_stand_in_the_answer() {
    let page = page_of(&asked(), &Look::default());
    let answer = between(&page, "<section id=\"answer\"", "<section class=\"experiment\"");
    let (first, rest) = answer.split_once("class=\"glance\"").expect("the answer at a glance");
    // What the user asked comes before what the program always reports.
    assert!(first.contains("3 predictions: 1 held, 1 did not hold, 1 not decided"), "{first}");
    for (word, text) in [
        ("held\"><span>held", "start.returned: bare &#60; floor &#60; crun"),
        ("failed\"><span>did not hold", "start.returned: crun &#60; floor"),
        ("open\"><span>not decided", "start.returned: bare &#60; podman"),
    ] {
        assert!(
            first.contains(&format!("{word}</span></strong> <span><code>{text}</code>")),
            "{text}: {first}"
        );
    }
    assert!(between(first, "crun &#60; floor</code>", "</li>").contains("<small>"), "a reason: {first}");
    assert!(between(first, "Every step", "</details>").matches("<tr").count() > 6);
    // The column first, then the intervals.
    let (glance, rest) = rest.split_once("Added to a job of 2.00 s").expect("a place for the job");
    assert_eq!(glance.matches("% of 2.00\u{a0}s").count(), 2);
    assert!(rest.contains("For each launch (start), compared with bare") && rest.contains("idle, %"));
    let nobody = self::page(&small());
    assert!(!nobody.contains("Predicted before") && !nobody.contains("Added to a job"));
}

#[test]
fn the_same_thing_is_shown_once() {
    let report = asked();
    for report in [&report, &Report { references: Vec::new(), ..report.clone() }] {
        let page = page_of(report, &Look::default());
        let mut names: Vec<&str> =
            page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "every element has a name of its own");
        // Rounds are drawn in one way, with their numbers below.
        assert!(!page.contains("each subject against its own median"));
        let rounds = between(&page, "<summary>Rounds over time</summary>", "</section>");
        assert_eq!(rounds.matches("class=\"courses\"").count(), rounds.matches("<caption>").count());
        // Warnings of one kind have one piece of advice.
        let warnings = between(&page, "<summary>Warnings", "</details>");
        assert!(warnings.matches("far from the others").count() > 1, "{warnings}");
        assert_eq!(warnings.matches("the list of such values says").count(), 1, "{warnings}");
        // Comparisons with the baseline are among the verdicts, and not repeated.
        assert!(!page.contains("crun against bare</span>"));
    }
}

#[test]
fn what_others_published_stands_beside_ours_with_its_cautions() {
    let mut report = asked();
    report.references = beside::beside(reference::sources(), &report);
    let page = page_of(&report, &Look::default());
    let published = between(&page, "id=\"published\"", "id=\"run\"");
    for part in ["Caution", "Differs: ", "10 single values: ", "machine", "licence"] {
        assert!(published.contains(part), "no {part:?}");
    }
    assert!(!published.contains("single value 3"), "repetitions are listed once, not each with its name");
    // No ranks or verdicts across sources.
    for word in [">slower<", ">faster<", "place"] {
        assert!(!published.contains(word), "{word:?}");
    }
}

#[test]
fn nothing_in_it_asks_the_network_or_runs_what_its_policy_does_not_know() {
    for page in [page(&small()), page(&hostile())] {
        asks_and_runs_nothing(&page);
    }
}

/// What must be true of every page that dunnage writes.
fn asks_and_runs_nothing(page: &str) {
    let policy = page.split("http-equiv=\"Content-Security-Policy\" content=\"").nth(1).expect("a policy");
    let policy = policy.split('"').next().expect("its end").replace("&#39;", "'");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!([elements(page, "script"), elements(page, "style")], [1, 1]);
    // Elements that load, and attributes that run.
    for name in ["img", "iframe", "object", "embed", "form", "base", "image", "use"] {
        assert_eq!(elements(page, name), 0, "{name}");
    }
    assert_eq!(elements(page, "link"), 1);
    assert!(page.contains("<link rel=\"icon\" href=\"data:,\">"));
    // Text between quotes is a value.
    let tags = page.split('<').map(|tag| tag.split('>').next().unwrap_or_default());
    let inside: String = tags.flat_map(|tag| tag.split('"').step_by(2)).collect();
    for attribute in [" onclick=", " onerror=", " onload=", " style=", " src="] {
        assert!(!inside.contains(attribute), "{attribute}");
    }
    let addresses = page.matches("http://").count() + page.matches("https://").count();
    assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
}

#[test]
fn what_comes_from_outside_stays_text() {
    let page = page(&hostile());
    for bad in ["<script>alert", "<img", "\u{202e}", "\u{1b}", "onerror=alert(2)>\"", "'><"] {
        assert!(!page.contains(bad), "{bad:?}");
    }
    assert!(page.contains("{{7*7}}"), "what looks like a template is text");
    assert!(page.contains("&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;&#62;&#60;img"));
    // Every element with an end tag has one.
    for name in [
        "table", "tr", "th", "td", "section", "details", "figure", "svg", "g", "ul", "li", "dl", "div",
        "span",
    ] {
        assert_eq!(elements(&page, name), page.matches(&format!("</{name}>")).count(), "{name}");
    }
}

#[test]
fn subjects_share_a_place_only_where_a_verdict_says_so() {
    let report = |run: &Recorded| Report::of(run, &analyse(run));
    let places = |report: &Report| -> Vec<(String, String)> {
        let ranked = dunnage::report::ranking::places(&report.experiments[0], 1, metric("returned"));
        ranked.iter().map(|(row, place)| (row.label.clone(), place.text())).collect()
    };
    let ranked = places(&report(&run(plan(full_ladder(), 20))));
    let place = |label: &str| &ranked.iter().find(|(own, _)| own == label).expect("it is ranked").1;
    assert_eq!([place("bare"), place("floor"), place("crun"), place("runc")], ["1", "2", "3", "4"]);
    let few = places(&report(&run(plan(full_ladder(), 4))));
    assert!(few.iter().all(|(_, place)| place == "1–12"), "{few:?}");
    // Two builds that are the same within the margin.
    let mut same = run(plan(full_ladder()[..4].to_vec(), 40));
    let [crun, runc] = ["crun", "runc"].map(|label| cells_of(&same, label)[1]);
    same.series[runc].values = same.series[crun].values.clone();
    for column in &mut same.series[runc].values {
        column.iter_mut().enumerate().for_each(|(round, value)| *value *= 1.0 + 0.0003 * (round % 5) as f64);
    }
    let shared = places(&report(&same));
    let shared: Vec<&str> = shared.iter().map(|(_, place)| place.as_str()).collect();
    assert_eq!(shared, ["1", "2", "3=", "3="]);
}

#[test]
fn a_run_without_a_single_sample_has_a_page() {
    let mut empty = run(plan(full_ladder()[..2].to_vec(), 5));
    for series in &mut empty.series {
        series.values.iter_mut().flatten().for_each(|value| *value = f64::NAN);
    }
    let page = page(&empty);
    assert!(page.contains("</html>") && page.contains("0 samples are in"));
}
