//! The page in a real browser: no error, no request; sorting, hiding and the pointer work; everything can be
//! reached by keyboard; light, dark and on a phone it shows something; and axe-core finds no accessibility
//! problem.

use std::fs;
use std::path::{Path, PathBuf};

use dunnage::record::Recorded;
use dunnage::reference::{self, beside};
use dunnage::report::Look;
use resvg::tiny_skia::Pixmap;
use serde_json::Value;
use tempfile::TempDir;

use crate::html::browser::{Browser, Window};
use crate::html::{asked, hostile, page, page_of, small};
use crate::support::{self, Need};

pub const DESK: Window = Window { width: 1280, height: 900, scheme: "light" };
pub const NIGHT: Window = Window { scheme: "dark", ..DESK };
pub const TABLET: Window = Window { width: 800, height: 1100, scheme: "light" };
pub const PHONE: Window = Window { width: 390, height: 844, scheme: "light" };

/// A page on disk, opened as a user would.
pub struct Opened {
    pub browser: Browser,
    _directory: TempDir,
}

fn open(run: &Recorded, window: Window) -> Opened {
    open_page(&page(run), window)
}

/// Opens any page.
pub fn open_page(page: &str, window: Window) -> Opened {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("report.html");
    fs::write(&file, page).expect("it can be written");
    Opened { browser: Browser::open(&file, window), _directory: directory }
}

/// Unfolds everything.
pub const UNFOLD: &str = "document.querySelectorAll('main details').forEach((part) => { part.open = true; })";

#[test]
fn a_browser_has_nothing_to_complain_of_and_nothing_to_fetch() {
    if support::lacks("a_browser_has_nothing_to_complain_of_and_nothing_to_fetch", Need::Chromium) {
        return;
    }
    for run in [small(), hostile()] {
        let mut opened = open(&run, DESK);
        let browser = &mut opened.browser;
        browser.evaluate(UNFOLD);
        assert_eq!(browser.complaints(), Vec::<String>::new());
        assert_eq!(browser.requests(), Vec::<String>::new());
        // Text that looks like an element does not become one.
        assert_eq!(browser.evaluate("document.scripts.length + document.images.length"), 1);
        assert!(browser.evaluate("document.querySelectorAll('main table').length").as_u64() > Some(5));
        assert_eq!(browser.evaluate("document.getElementById('tools').hidden"), false);
    }
}

#[test]
fn a_head_sorts_its_table_up_and_down_and_back() {
    if support::lacks("a_head_sorts_its_table_up_and_down_and_back", Need::Chromium) {
        return;
    }
    let mut opened = open(&small(), DESK);
    let browser = &mut opened.browser;
    let column = "[...document.querySelectorAll('#answer .ranks thead th:not(.group)')].findIndex((head) => head.textContent.startsWith('returned'))";
    let told = format!(
        "(() => {{ const at = {column}; const table = document.querySelector('#answer .ranks table'); \
         return [[...table.tHead.rows].at(-1).cells[at].ariaSort, \
         ...[...table.tBodies[0].rows].map((row) => row.cells[at].dataset.key ?? '')]; }})()"
    );
    let press = format!(
        "[...document.querySelectorAll('#answer .ranks thead th:not(.group)')][{column}].querySelector('button').click()"
    );
    let mut look = || -> (String, Vec<f64>) {
        let value = browser.evaluate(&told);
        let texts: Vec<String> = serde_json::from_value(value).expect("texts");
        let keys = texts[1..].iter().filter_map(|key| key.parse().ok()).collect();
        browser.evaluate(&press);
        (texts[0].clone(), keys)
    };
    let (first, up, down, again) = (look(), look(), look(), look());
    assert_eq!([&*first.0, &*up.0, &*down.0, &*again.0], ["none", "ascending", "descending", "none"]);
    assert!(up.1.len() > 8 && up.1.is_sorted(), "{:?}", up.1);
    assert!(down.1.iter().rev().is_sorted(), "{:?}", down.1);
    assert_eq!(first.1, again.1);
}

#[test]
fn a_subject_is_hidden_everywhere_at_once() {
    if support::lacks("a_subject_is_hidden_everywhere_at_once", Need::Chromium) {
        return;
    }
    let mut opened = open(&small(), DESK);
    let browser = &mut opened.browser;
    browser.evaluate(UNFOLD);
    let of = |label: &str| {
        format!(
            "[...document.querySelectorAll('[data-subject=\"{label}\"], [data-against=\"{label}\"]')]\
             .map((mark) => [mark.localName, mark.getClientRects().length > 0])"
        )
    };
    let shown = |browser: &mut Browser, label: &str| -> Vec<(String, bool)> {
        serde_json::from_value(browser.evaluate(&of(label))).expect("marks")
    };
    let before = shown(browser, "podman");
    for kind in ["tr", "g", "figure"] {
        assert!(before.iter().any(|(name, is_shown)| name == kind && *is_shown), "no {kind} of podman");
    }
    let others = shown(browser, "bare");
    browser.evaluate("document.querySelector('input[data-label=\"podman\"]').click()");
    assert!(shown(browser, "podman").iter().all(|(_, is_shown)| !is_shown));
    // Comparisons of podman with bare are shown and hidden with podman.
    let kept = shown(browser, "bare").iter().filter(|(_, is_shown)| *is_shown).count();
    assert!(kept > 0 && kept <= others.len());
    assert_eq!(browser.evaluate("document.getElementById('shown').textContent"), "11 of 12");
    browser.evaluate("document.getElementById('all').click()");
    assert_eq!(shown(browser, "podman"), before);
}

#[test]
fn the_pointer_tells_a_round_and_its_value() {
    if support::lacks("the_pointer_tells_a_round_and_its_value", Need::Chromium) {
        return;
    }
    let mut opened = open(&small(), DESK);
    let browser = &mut opened.browser;
    browser.evaluate(UNFOLD);
    browser.evaluate("document.querySelector('.course svg').scrollIntoView({ block: 'center' })");
    let place = browser.evaluate("(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document.querySelector('.course svg').getBoundingClientRect())");
    let [x, y]: [f64; 2] = serde_json::from_value(place).expect("a place");
    browser.point(x, y);
    let tip = browser
        .evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent");
    let tip = tip.as_str().unwrap_or_default();
    assert!(tip.starts_with("round 11: ") && tip.ends_with('s'), "{tip:?}");
}

#[test]
fn the_keyboard_reaches_everything_and_shows_where_it_is() {
    if support::lacks("the_keyboard_reaches_everything_and_shows_where_it_is", Need::Chromium) {
        return;
    }
    let mut opened = open(&small(), DESK);
    let browser = &mut opened.browser;
    let wanted = "[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex=\"0\"]')]\
                  .filter((one) => one.checkVisibility()).length";
    let wanted = browser.evaluate(wanted).as_u64().expect("a number");
    assert!(wanted > 20, "{wanted}");
    browser.evaluate("globalThis.reached = new Set()");
    browser.press("Tab");
    assert_eq!(
        browser.evaluate("document.activeElement.className"),
        "skip",
        "the first stop skips to the answer"
    );
    let mut unseen = Vec::new();
    for _ in 0..wanted {
        let seen = browser.evaluate(
            "(() => { const here = document.activeElement; reached.add(here); const style = getComputedStyle(here); \
             return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1 ? '' : here.outerHTML.slice(0, 99); })()",
        );
        unseen.extend(seen.as_str().filter(|text| !text.is_empty()).map(str::to_owned));
        browser.press("Tab");
    }
    assert_eq!(unseen, Vec::<String>::new(), "the focus must be visible");
    assert_eq!(browser.evaluate("reached.size").as_u64(), Some(wanted));
    // Keys do what the pointer does: sort, unfold, hide.
    browser.evaluate("document.querySelector('#answer .ranks thead button').focus()");
    browser.press("Enter");
    assert_eq!(
        browser.evaluate("document.querySelector('#answer .ranks thead button').closest('th').ariaSort"),
        "ascending"
    );
    browser.evaluate("document.querySelector('#subjects summary').focus()");
    browser.press("Enter");
    browser.evaluate("document.querySelector('#subjects input').focus()");
    browser.press("Space");
    assert_eq!(browser.evaluate("document.getElementById('shown').textContent"), "11 of 12");
    browser.press("Escape");
    assert_eq!(browser.evaluate("document.getElementById('subjects').open"), false);
    assert_eq!(browser.evaluate("document.activeElement.localName"), "summary");
}

/// The mean of red, green and blue, and the number of colours.
pub fn looks(pixels: &Pixmap) -> (f64, usize) {
    let sum: u64 = pixels
        .pixels()
        .iter()
        .map(|one| u64::from(one.red()) + u64::from(one.green()) + u64::from(one.blue()))
        .sum();
    let colours: std::collections::HashSet<[u8; 3]> =
        pixels.pixels().iter().map(|one| [one.red(), one.green(), one.blue()]).collect();
    (sum as f64 / (pixels.pixels().len() * 3) as f64, colours.len())
}

/// Where screenshots may be kept for inspection.
pub fn kept(name: &str, bytes: &[u8]) {
    let directory = std::env::var_os("DUNNAGE_TEST_SCREENSHOTS").map(PathBuf::from);
    if let Some(directory) = directory {
        fs::create_dir_all(&directory).expect("a directory");
        fs::write(directory.join(name), bytes).expect("it can be written");
    }
}

#[test]
fn it_is_seen_by_day_by_night_and_on_a_phone() {
    if support::lacks("it_is_seen_by_day_by_night_and_on_a_phone", Need::Chromium) {
        return;
    }
    let mut opened = open(&small(), DESK);
    let browser = &mut opened.browser;
    let mut shot = |name: &str, window: Window| -> (f64, usize) {
        browser.resize(window);
        let (bytes, pixels) = browser.screenshot();
        kept(name, &bytes);
        assert_eq!((pixels.width(), pixels.height()), (window.width, window.height));
        // The page itself is not wider than the window; tables scroll in their own boxes.
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(window.width.into()), "{name}: {wide}");
        looks(&pixels)
    };
    let (light, dark, phone) = (shot("light.png", DESK), shot("dark.png", NIGHT), shot("phone.png", PHONE));
    for (name, (_, colours)) in [("light", light), ("dark", dark), ("phone", phone)] {
        assert!(colours > 40, "{name} has {colours} colours");
    }
    assert!(light.0 > 200.0 && phone.0 > 200.0 && dark.0 < 70.0, "{light:?} {dark:?} {phone:?}");
    // The reader's choice overrides the system's.
    browser.resize(DESK);
    browser.evaluate("(() => { const theme = document.getElementById('theme'); theme.value = 'dark'; theme.dispatchEvent(new Event('change')); })()");
    let (chosen, _) = looks(&browser.screenshot().1);
    assert!(chosen < 70.0, "{chosen}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The smallest letters in pictures and in texts as displayed, in pixels.
const SMALLEST: &str = "(() => { const seen = (one) => one.getClientRects().length > 0; \
    const drawn = [...document.querySelectorAll('svg.picture text')].filter(seen).map((text) => \
      parseFloat(text.getAttribute('font-size')) * text.ownerSVGElement.getBoundingClientRect().width / text.ownerSVGElement.viewBox.baseVal.width); \
    const written = [...document.querySelectorAll('body *')].filter((one) => seen(one) && !one.closest('svg') && \
      [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((one) => parseFloat(getComputedStyle(one).fontSize)); \
    return [Math.min(...drawn), Math.min(...written)]; })()";

/// Cells whose text overflows into the next one.
const CUT_OFF: &str = "[...document.querySelectorAll('th, td, dt, dd')].filter((cell) => cell.getClientRects().length > 0 \
    && cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)";

#[test]
fn nothing_is_cut_off_or_too_small_at_any_size() {
    if support::lacks("nothing_is_cut_off_or_too_small_at_any_size", Need::Chromium) {
        return;
    }
    let mut report = asked();
    report.references = beside::beside(reference::sources(), &report);
    let mut opened = open_page(&page_of(&report, &Look::default()), DESK);
    let browser = &mut opened.browser;
    browser.evaluate(UNFOLD);
    for window in [DESK, TABLET, PHONE] {
        browser.resize(window);
        let wide = browser.evaluate("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(window.width.into()), "{wide} at {}", window.width);
        assert_eq!(browser.evaluate(CUT_OFF), Value::Array(Vec::new()), "at {}", window.width);
        let [drawn, written]: [f64; 2] = serde_json::from_value(browser.evaluate(SMALLEST)).expect("sizes");
        assert!(drawn >= 9.0 && written >= 11.5, "{drawn} and {written} px at {}", window.width);
    }
}

#[test]
fn paper_holds_everything_but_controls_and_the_numbers_behind_pictures() {
    if support::lacks("paper_holds_everything_but_controls_and_the_numbers_behind_pictures", Need::Chromium) {
        return;
    }
    // A4 without the margins of a browser.
    let mut opened = open_page(&page_of(&asked(), &Look::default()), Window { width: 718, ..TABLET });
    let browser = &mut opened.browser;
    let open = "[...document.querySelectorAll('main details')].map((part) => [part.open, part.classList.contains('data')])";
    let folded = |browser: &mut Browser| -> Vec<(bool, bool)> {
        serde_json::from_value(browser.evaluate(open)).expect("parts")
    };
    let before = folded(browser);
    assert!(before.iter().any(|(is_open, _)| !is_open));
    browser.print();
    browser.evaluate("dispatchEvent(new Event('beforeprint'))");
    assert!(folded(browser).iter().all(|(is_open, is_data)| is_open != is_data), "{:?}", folded(browser));
    let shown = "[...document.querySelectorAll('.bar, .skip, .data')].filter((one) => one.getClientRects().length > 0).length";
    assert_eq!(browser.evaluate(shown), 0);
    let wide = browser.evaluate("document.documentElement.scrollWidth");
    assert!(wide.as_u64() <= Some(718), "{wide}: what is wider is cut off, or makes all letters smaller");
    assert_eq!(browser.evaluate(CUT_OFF), Value::Array(Vec::new()));
    browser.evaluate("dispatchEvent(new Event('afterprint'))");
    assert_eq!(folded(browser), before);
}

#[test]
fn nothing_shuts_anybody_out() {
    let test = "nothing_shuts_anybody_out";
    if support::lacks(test, Need::Chromium) || support::lacks(test, Need::Axe) {
        return;
    }
    let mut report = asked();
    report.references = beside::beside(reference::sources(), &report);
    for page in [page(&small()), page_of(&report, &Look::default())] {
        shuts_nobody_out(&mut open_page(&page, DESK).browser);
    }
}

/// Runs axe-core on all of an open page, light, dark and on a phone.
pub fn shuts_nobody_out(browser: &mut Browser) {
    let axe = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(support::AXE)).expect("axe-core");
    browser.evaluate(UNFOLD);
    browser.evaluate(&axe);
    for window in [DESK, NIGHT, PHONE] {
        browser.resize(window);
        let found = browser.evaluate(
            "axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations.map((one) => \
             [one.id, one.help, one.nodes.length, ...one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary)]))",
        );
        assert_eq!(found, Value::Array(Vec::new()), "at {} in {}", window.width, window.scheme);
    }
}
