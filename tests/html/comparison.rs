//! The page of a comparison, which has the same properties as a report's. Changes are named and drawn, and
//! everything from outside stays text.

use dunnage::compare::Comparison;
use dunnage::document;
use dunnage::plan::{Ladder, Layer};
use dunnage::record::Recorded;
use dunnage::report::Look;

use crate::html::{EVIL, asks_and_runs_nothing, elements};
use crate::report::scripted::{cells_of, crash, fail};
use crate::scripted::compare::planted::{compared, ladder, plain, run, run_of};

fn page(comparison: &Comparison) -> String {
    document::shown(comparison, "html", &Look::default()).expect("it exists")
}

/// docker is a tenth slower, and nothing else changed.
fn slower() -> Comparison {
    let factor = |label: &str, _: &str, _: usize| if label == "docker" { 1.10 } else { 1.0 };
    compared(&[run(1, 30, plain)], &[run(2, 30, factor)])
}

/// Runs in which everything from outside tries to be more than text.
fn hostile() -> Comparison {
    let side = |seed: u64| -> Recorded {
        let mut subjects = ladder();
        subjects.push(crate::report::scripted::entry("podman", Layer::Engine, Ladder::AsInstalled, None));
        for subject in subjects.iter_mut().skip(2) {
            subject.label = format!("{EVIL}{}", subject.label);
        }
        let mut run = run_of(subjects, seed, 12, plain);
        for cell in cells_of(&run, &format!("{EVIL}podman")) {
            (0..12).for_each(|round| fail(&mut run, cell, round, crash(EVIL)));
        }
        run.run = format!("{EVIL}{seed}");
        run.environment.host = format!("{EVIL}{seed}");
        run.environment.started = EVIL.into();
        run.environment.tags.insert(EVIL.into(), EVIL.into());
        run.environment.machine.insert(EVIL.into(), format!("{EVIL}{seed}"));
        run
    };
    compared(&[side(1)], &[side(2)])
}

#[test]
fn it_names_what_changed_and_asks_the_network_for_nothing() {
    let told = page(&slower());
    for part in [
        "What changed from old to new",
        "Slower: ",
        "+10 %",
        "One run on each side",
        "start: from old to new",
        "No recorded differences",
        "How long does a command take",
    ] {
        assert!(told.contains(part), "no {part:?}");
    }
    let hostile = page(&hostile());
    asks_and_runs_nothing(&told);
    asks_and_runs_nothing(&hostile);
    for bad in ["<script>alert", "<img", "\u{202e}", "\u{1b}", "onerror=alert(2)>\"", "'><"] {
        assert!(!hostile.contains(bad), "{bad:?}");
    }
    assert!(hostile.contains("{{7*7}}"), "what looks like a template is text");
    for name in
        ["table", "tr", "th", "td", "section", "details", "figure", "svg", "g", "ul", "li", "div", "span"]
    {
        assert_eq!(elements(&hostile, name), hostile.matches(&format!("</{name}>")).count(), "{name}");
    }
}

mod in_browser {
    use super::{hostile, page, slower};
    use crate::html::in_browser::{DESK, NIGHT, PHONE, UNFOLD, kept, looks, open_page, shuts_nobody_out};
    use crate::support::{self, Need};

    #[test]
    fn a_comparison_in_a_browser_complains_of_nothing_sorts_and_hides() {
        if support::lacks("a_comparison_in_a_browser_complains_of_nothing_sorts_and_hides", Need::Chromium) {
            return;
        }
        for comparison in [slower(), hostile()] {
            let mut opened = open_page(&page(&comparison), DESK);
            let browser = &mut opened.browser;
            browser.evaluate(UNFOLD);
            assert_eq!(browser.complaints(), Vec::<String>::new());
            assert_eq!(browser.requests(), Vec::<String>::new());
            assert_eq!(browser.evaluate("document.scripts.length + document.images.length"), 1);
        }
        let mut opened = open_page(&page(&slower()), DESK);
        let browser = &mut opened.browser;
        let press = "document.querySelector('#start > .scroll table thead button').click()";
        let first = "document.querySelector('#start > .scroll table tbody th').textContent";
        assert_eq!(browser.evaluate(first), "bare");
        browser.evaluate(press);
        browser.evaluate(press);
        assert_eq!(browser.evaluate(first), "floor");
        let shown = "[...document.querySelectorAll('[data-subject=\"docker\"]')].filter((one) => one.getClientRects().length > 0)\
                     .map((one) => one.localName)";
        let seen = browser.evaluate(shown).to_string();
        assert!(seen.contains("\"g\"") && seen.contains("\"tr\""), "{seen}");
        browser.evaluate("document.querySelector('input[data-label=\"docker\"]').click()");
        assert_eq!(browser.evaluate(shown).to_string(), "[]");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn a_comparison_is_seen_by_day_by_night_and_on_a_phone() {
        if support::lacks("a_comparison_is_seen_by_day_by_night_and_on_a_phone", Need::Chromium) {
            return;
        }
        for (name, comparison) in [("slower", slower()), ("hostile", hostile())] {
            let mut opened = open_page(&page(&comparison), DESK);
            let browser = &mut opened.browser;
            let mut means = Vec::new();
            for (scheme, window) in [("light", DESK), ("dark", NIGHT), ("phone", PHONE)] {
                browser.resize(window);
                let (bytes, pixels) = browser.screenshot();
                kept(&format!("compare-{name}-{scheme}.png"), &bytes);
                let wide = browser.evaluate("document.documentElement.scrollWidth");
                assert!(wide.as_u64() <= Some(window.width.into()), "{name} {scheme}: {wide}");
                means.push(looks(&pixels).0);
            }
            assert!(means[0] > 200.0 && means[1] < 70.0 && means[2] > 200.0, "{name}: {means:?}");
        }
    }

    #[test]
    fn a_comparison_shuts_nobody_out() {
        let test = "a_comparison_shuts_nobody_out";
        if support::lacks(test, Need::Chromium) || support::lacks(test, Need::Axe) {
            return;
        }
        shuts_nobody_out(&mut open_page(&page(&slower()), DESK).browser);
    }
}
