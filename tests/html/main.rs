//! Is the page whole, self-contained and harmless, whatever the run was like? Its structure is looked at as text
//! here; `in_browser` opens it in a real browser.

mod browser;
mod comparison;
mod in_browser;
#[allow(dead_code, reason = "other tests plant more")]
#[path = "../compare/planted.rs"]
mod planted;
#[allow(dead_code, reason = "the scripted runs serve other tests too")]
#[path = "../report/scripted.rs"]
mod scripted;
#[path = "../support/mod.rs"]
mod support;

use dunnage::record::Recorded;
use dunnage::report::{Look, Report, html};
use dunnage::verdict::analyse;

use crate::scripted::{cells_of, crash, fail, full_ladder, metric, plan, run};

/// The page of a run.
fn page(run: &Recorded) -> String {
    html::render(&Report::of(run, &analyse(run)), &Look { place: "runs/r-7".into(), ..Look::default() })
}

/// Twelve subjects in two settings, one of which has a suspect and one of which failed.
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

/// What tries to be more than text.
const EVIL: &str =
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}\x1b[31m&amp;</style>{{7*7}}";

/// A run in which everything that comes from outside tries to be more than text.
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
        "How long from the command to the first instruction inside",
        "Suspect: do not believe these numbers",
        "unknown or invalid runtime name: crun",
        "What lies inside the timed interval",
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

#[test]
fn nothing_in_it_asks_the_network_or_runs_what_its_policy_does_not_know() {
    for page in [page(&small()), page(&hostile())] {
        asks_and_runs_nothing(&page);
    }
}

/// What holds of every page that dunnage writes.
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
    // What stands between quotes is a value.
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
    // Every element that has an end has one.
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
    // Two builds that are the same, up to what matters.
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
    assert!(page.contains("</html>") && page.contains("0 samples lie in"));
}
