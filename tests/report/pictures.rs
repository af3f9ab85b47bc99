//! Pictures must not change unnoticed, be readable, and show foreign text without interpreting it.
//!
//! A picture is compared with its last reviewed version: words must be equal, numbers nearly so. The
//! rasteriser, which knows the typeface, says where letters are.

use std::path::{Path, PathBuf};

use dunnage::experiment::fixed_work::THREADS;
use dunnage::experiment::primitives;
use dunnage::experiment::throttle::names::{EVERY, LATENCY, PERIOD_CPU, QUOTA_PERIOD};
use dunnage::outcome::Sample;
use dunnage::plan::{self, Ladder, Plan, Request, Rounds};
use dunnage::record::Recorded;
use dunnage::report::picture::svg::{Style, draw};
use dunnage::report::picture::{self, Picture};
use dunnage::report::{FORMATS, File, Rendering, Report};
use dunnage::stats::Rng;
use dunnage::subject::{Layer, Need};
use resvg::tiny_skia::Pixmap;
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Group, Node, Options, Rect, Tree, roxmltree};

use crate::report::report;
use crate::report::scripted::{cells_of, crash, entry, fail, full_ladder, plan, run};

/// The function that makes the files of a format.
fn files_of(name: &str) -> fn(&Report) -> anyhow::Result<Vec<File>> {
    match FORMATS.iter().find(|one| one.name == name).map(|one| &one.rendering) {
        Some(Rendering::Files(render)) => *render,
        _ => panic!("`{name}` makes no files"),
    }
}

/// How far numbers may differ: coordinates have one digit after the point.
const TOLERANCE: f64 = 0.2;

/// Every kind of picture: launches, prices, calls, and loads under limits.
pub fn everything() -> Recorded {
    let mut subjects = full_ladder();
    subjects.truncate(6);
    subjects[0].offers = vec![Need::Launch, Need::Work];
    subjects[1].offers = vec![Need::Launch, Need::Pieces, Need::Work];
    for cpus in ["0.1", "0.5"] {
        let mut limited = entry(&format!("floor:cpus={cpus}"), Layer::Floor, Ladder::AsInstalled, None);
        limited.variant_of = Some("floor".into());
        limited.only_in = vec!["throttle"];
        subjects.push(limited);
    }
    let plan = plan::make(Request {
        experiments: vec!["start", "primitives", "syscall", "cpu", "throttle"],
        subjects,
        chosen: vec![
            ("passes".into(), ["100", "200", "400"].map(str::to_owned).to_vec()),
            ("load".into(), ["bursts", "continuous"].map(str::to_owned).to_vec()),
        ],
        seed: 7,
        rounds: Rounds::Fixed(20),
        allowed: plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
        trial: None,
    });
    let mut run = run(plan);
    for cell in 0..run.plan.cells.len() {
        match run.plan.cells[cell].experiment {
            "primitives" | "syscall" | "cpu" => plant(&mut run, cell),
            "throttle" => throttle(&mut run, cell),
            _ => {}
        }
    }
    let failing = cells_of(&run, "docker")[0];
    fail(&mut run, failing, 3, crash("no room"));
    run
}

/// Values that grow with the index of the cell, with some noise.
pub fn plant(run: &mut Recorded, cell: usize) {
    let subject = run.plan.cells[cell].subject as f64;
    for (metric, column) in run.series[cell].values.iter_mut().enumerate() {
        for (round, value) in column.iter_mut().enumerate() {
            let noise = Rng::for_stream(5 + cell as u64, (100 * metric + round) as u64).standard_normal();
            // Above the minimum of a launch, and of a call on the host.
            let unit = if run.plan.cells[cell].experiment == "syscall" { 1e-7 } else { 1e-4 };
            *value = (1.0 + metric as f64 + 0.1 * subject + 0.001 * cell as f64 + 0.01 * noise) * unit;
        }
    }
    if run.plan.cells[cell].setting.get("way") == Some("stamps") {
        // The pieces add up to the whole.
        for round in 0..run.series[cell].values[0].len() {
            let values = &mut run.series[cell].values;
            values[0][round] = primitives::pieces().map(|(metric, _)| values[metric][round]).sum();
        }
    }
}

/// One sample with bursts that take longer the less CPU time is available.
pub fn throttle(run: &mut Recorded, cell: usize) {
    let label = &run.plan.subjects[run.plan.cells[cell].subject].label;
    let slower = if label.contains("0.1") { 9 } else { 1 };
    let is_bursts = run.plan.cells[cell].setting.get("load") == Some("bursts");
    let mut sample = Sample::default()
        .with([(EVERY, 100_000_000), (THREADS, 1), (QUOTA_PERIOD, 100_000_000)])
        .with([(PERIOD_CPU, (0..100).map(|at| 50_000_000 / slower + at * 1000).collect())]);
    if is_bursts {
        let latency = (0..100 / slower).map(|at| 50_000_000 + (slower - 1) * at * 40_000_000).collect();
        sample.add(LATENCY, latency);
    }
    let rounds = run.series[cell].values[0].len();
    run.series[cell].samples = vec![None; rounds];
    run.series[cell].samples[0] = Some(sample);
    for (metric, column) in run.series[cell].values.iter_mut().enumerate() {
        column.fill(f64::NAN);
        column[0] = 0.1 * (metric + 1) as f64 / slower as f64;
    }
}

fn pictures(run: &Recorded) -> Vec<Picture> {
    picture::all(&report(run))
}

/// The baseline of every strip is a named line.
#[test]
fn strips_of_multiples_have_a_line_at_one() {
    let all = pictures(&everything());
    let strips: Vec<&Picture> =
        all.iter().filter(|one| one.title.contains("against its own median")).collect();
    assert!(!strips.is_empty());
    for one in strips {
        let drawn = texts(tree(&draw(one, Style::Standalone)).root());
        let named = drawn.iter().filter(|(text, _)| text == "1×").count();
        assert_eq!(named, one.table.columns.len() - 1, "{}", one.name);
    }
}

/// As the rasteriser sees it, with dunnage's letters.
fn tree(svg: &str) -> Tree {
    let mut typefaces = Database::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/report/src/report/picture/font");
    for name in ["DejaVuSans.ttf", "DejaVuSans-Bold.ttf"] {
        typefaces.load_font_data(std::fs::read(directory.join(name)).expect("a typeface"));
    }
    let options = Options {
        fontdb: std::sync::Arc::new(typefaces),
        font_family: "DejaVu Sans".into(),
        ..Options::default()
    };
    Tree::from_str(svg, &options).unwrap_or_else(|why| panic!("{why}\n{svg}"))
}

/// Every text with its bounding box.
fn texts(group: &Group) -> Vec<(String, Rect)> {
    let of_node = |node: &Node| match node {
        Node::Group(group) => texts(group),
        Node::Text(text) => {
            let words: String = text.chunks().iter().map(|chunk| chunk.text()).collect();
            vec![(words, text.abs_bounding_box())]
        }
        _ => Vec::new(),
    };
    group.children().iter().flat_map(of_node).collect()
}

fn meet(one: &Rect, other: &Rect) -> bool {
    let across = one.right().min(other.right()) - one.left().max(other.left());
    let down = one.bottom().min(other.bottom()) - one.top().max(other.top());
    across > 0.5 && down > 0.5
}

/// Texts do not overlap or exceed the edge.
fn assert_readable(name: &str, svg: &str) {
    let tree = tree(svg);
    let texts = texts(tree.root());
    let (width, height) = (tree.size().width(), tree.size().height());
    assert!(texts.len() > 6, "{name}: {texts:?}");
    for (index, (words, room)) in texts.iter().enumerate() {
        let is_inside =
            room.left() >= 0.0 && room.top() >= 0.0 && room.right() <= width && room.bottom() <= height;
        assert!(is_inside, "{name}: `{words}` at {room:?} of {width}×{height}");
        for (others, other) in &texts[index + 1..] {
            assert!(!meet(room, other), "{name}: `{words}` {room:?} and `{others}` {other:?}");
        }
    }
}

/// The words of a text, with its numbers separate.
fn apart(text: &str) -> (String, Vec<f64>) {
    let mut words = String::new();
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(from) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let digits = rest[from..].find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let to = digits.map_or(rest.len(), |length| from + length);
        words.push_str(&rest[..from]);
        words.push('#');
        numbers.extend(rest[from..to].trim_end_matches('.').parse::<f64>());
        rest = &rest[to..];
    }
    (words + rest, numbers)
}

fn snapshot(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/pictures").join(name)
}

/// The previous file; written instead if asked for.
fn before(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = snapshot(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
        std::fs::write(&path, bytes).expect("it can be written");
    }
    std::fs::read(&path)
        .unwrap_or_else(|why| panic!("{}: {why}; run with UPDATE_SNAPSHOTS=1 and look at it", path.display()))
}

#[test]
fn every_kind_of_picture_looks_as_it_did() {
    let all = pictures(&everything());
    for name in [
        "summary",
        "start-returned",
        "start-distribution-returned-idle",
        "start-rounds-returned-primed",
        "start-worked",
        "primitives-waterfall-floor",
        "syscall-differences",
        "cpu-integer-over-passes",
        "throttle-latency-over-time-bursts",
        "throttle-period_cpu-over-time-continuous",
        "throttle-map-usage",
    ] {
        let names = || all.iter().map(|picture| picture.name.as_str()).collect::<Vec<_>>();
        let picture = all
            .iter()
            .find(|picture| picture.name == name)
            .unwrap_or_else(|| panic!("{name}: {:?}", names()));
        let text = draw(picture, Style::Standalone).replace("><", ">\n<");
        let old = String::from_utf8(before(&format!("{name}.svg"), text.as_bytes())).expect("text");
        let ((old_words, old_numbers), (words, numbers)) = (apart(&old), apart(&text));
        assert_eq!(old_words, words, "{name}: words differ; look at it, then run with UPDATE_SNAPSHOTS=1");
        let far = old_numbers.iter().zip(&numbers).find(|(old, new)| (*old - *new).abs() > TOLERANCE);
        assert_eq!(far, None, "{name}: a number differs; look at it, then run with UPDATE_SNAPSHOTS=1");
    }
}

#[test]
fn a_picture_has_the_same_pixels_in_both_sizes() {
    let render = files_of("png");
    let mut few = full_ladder();
    few.truncate(3);
    let files = render(&report(&run(plan(few, 20)))).expect("pictures");
    let bytes = |name: &str| -> Vec<u8> {
        files.iter().find(|file| file.name == name).expect("the file").bytes.clone()
    };
    let once = Pixmap::decode_png(&bytes("summary.png")).expect("an image");
    let twice = Pixmap::decode_png(&bytes("summary@2x.png")).expect("an image");
    assert_eq!((2 * once.width(), 2 * once.height()), (twice.width(), twice.height()));
    let old = Pixmap::decode_png(&before("summary.png", &bytes("summary.png"))).expect("an image");
    assert_eq!((old.width(), old.height()), (once.width(), once.height()));
    let far = |(old, new): (&u8, &u8)| old.abs_diff(*new) > 24;
    let differing = old.data().iter().zip(once.data()).filter(|pair| far(*pair)).count();
    assert!(differing * 500 < old.data().len(), "{differing} of {} bytes differ", old.data().len());
    // Not an empty page: it has colours of several layers.
    let colours: std::collections::BTreeSet<&[u8]> = once.data().chunks(4).collect();
    assert!(colours.len() > 20, "{}", colours.len());
    assert_eq!(&once.data()[..4], [255, 255, 255, 255], "white paper");
}

#[test]
fn every_picture_says_what_it_shows_and_has_its_data() {
    let all = pictures(&everything());
    assert!(all.len() > 20, "{}", all.len());
    assert_eq!(all[0].name, "summary");
    for picture in &all {
        let named = all.iter().filter(|other| other.name == picture.name).count();
        assert_eq!(named, 1, "{}", picture.name);
        assert!(picture.alternative.len() > 40 && !picture.caption.is_empty(), "{picture:?}");
        assert!(!picture.table.rows.is_empty(), "{}", picture.name);
        for row in &picture.table.rows {
            assert_eq!(row.len(), picture.table.columns.len(), "{}", picture.name);
        }
        for style in [Style::Standalone, Style::Inline] {
            let text = draw(picture, style);
            let document = roxmltree::Document::parse(&text).expect("well-formed");
            let root = document.root_element();
            assert_eq!(root.attribute("role"), Some("img"));
            let said = |tag: &str| {
                root.children()
                    .find(|node| node.has_tag_name(tag))
                    .and_then(|node| node.text())
                    .map(str::to_owned)
            };
            assert_eq!(said("title").as_ref(), Some(&picture.title));
            assert_eq!(said("desc").as_ref(), Some(&picture.alternative));
            let marks = document.descendants().filter(|node| node.attribute("data-subject").is_some());
            assert!(marks.clone().count() > 0, "{}", picture.name);
            for mark in marks {
                let hover = mark.children().find(|node| node.has_tag_name("title"));
                assert!(
                    hover.and_then(|node| node.text()).is_some_and(|text| text.len() > 3),
                    "{}",
                    picture.name
                );
            }
            assert_eq!(text.contains("<style>"), style == Style::Standalone);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{}", picture.name);
        }
    }
}

#[test]
fn words_do_not_lie_on_each_other() {
    for picture in pictures(&everything()) {
        assert_readable(&picture.name, &draw(&picture, Style::Standalone));
    }
}

/// Thirty subjects, most of them with long names.
fn crowd() -> Plan {
    let mut subjects = full_ladder();
    for index in 0..18 {
        let text = format!("docker:net=none,memory={}MiB", 64 + index);
        let mut more = entry(&text, Layer::Engine, Ladder::AsInstalled, Some("runc"));
        more.label = format!("docker with a name that says more than there is room for, number {index}");
        subjects.push(more);
    }
    assert_eq!(subjects.len(), 30);
    plan(subjects, 8)
}

#[test]
fn thirty_subjects_have_room() {
    let all = pictures(&run(crowd()));
    for picture in &all {
        assert_readable(&picture.name, &draw(picture, Style::Standalone));
    }
    // Each has its line in the pictures of intervals, with any name.
    let intervals = all.iter().find(|picture| picture.name == "start-returned").expect("a picture");
    for index in 0..18 {
        let text = draw(intervals, Style::Inline);
        assert!(text.contains(&format!("room for, number {index}\"")), "{index}");
    }
}

#[test]
fn what_outsiders_wrote_stays_text() {
    let evil = "</title><script>alert('1')</script>\"&]]>\u{202e}\u{0}\u{fffe}<a href=\"javascript:x\">";
    let mut subjects = full_ladder();
    for (index, subject) in subjects.iter_mut().enumerate() {
        subject.label = format!("{evil}{index}");
    }
    let run = run(plan(subjects, 20));
    let render = files_of("svg");
    let files: Vec<File> = render(&report(&run)).expect("pictures");
    picture::png::draw_at(&pictures(&run)[0], 1.0).expect("pixels");
    for file in &files {
        assert!(file.name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.@".contains(letter)));
        if file.name.ends_with(".svg") {
            let text = String::from_utf8(file.bytes.clone()).expect("text");
            let document = roxmltree::Document::parse(&text).expect("well-formed");
            let known = ["svg", "title", "desc", "style", "rect", "text", "path", "g", "circle"];
            for node in document.descendants().filter(|node| node.is_element()) {
                assert!(known.contains(&node.tag_name().name()), "{}: {node:?}", file.name);
                assert!(node.attributes().all(|attribute| !attribute.name().starts_with("on")));
            }
            let labelled = document.descendants().filter_map(|node| node.attribute("data-subject"));
            assert!(labelled.clone().count() > 0);
            assert!(labelled.into_iter().all(|label| label.contains("<script>alert('1')</script>\"&]]>")));
        }
    }
}
