//! Published ports on the scripted subject: a planted cost of each is found as the slope of a line, and the report shows it.

use dunnage::record;
use dunnage::verdict::table::Item;
use dunnage::verdict::{self, table::ExperimentTable};

use crate::dunnage::Dunnage;

const COUNTS: [u32; 5] = [0, 1, 8, 32, 64];

/// A subject for each number of ports.
fn subjects(label: &str, keys: &str) -> String {
    let one = |count| format!("-s {label}{count}=fake:time=200ms,publish={count},{keys} ");
    COUNTS.map(one).concat()
}

/// The output of a run, and its tables of points and of lines.
fn ran(dunnage: &Dunnage, subjects: &str, more: &str) -> (String, Vec<ExperimentTable>) {
    let ran = dunnage.run(&format!("run start {subjects} {more} --seed 7 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = record::load(&dunnage.directory()).expect("a run directory");
    (ran.stdout, verdict::analyse(&run).experiment_tables)
}

#[test]
fn the_cost_of_each_port_is_the_slope_that_was_planted() {
    let dunnage = Dunnage::new();
    let all = subjects("slow", "noise=2,per_port=20ms") + &subjects("free", "noise=2");
    let (shown, tables) = ran(&dunnage, &all, "--rounds 12 --set prestate=idle --full");
    let [points, lines] = &tables[..] else { panic!("{tables:?}") };
    assert_eq!(points.rows.len(), 10);
    for row in &points.rows {
        let [
            Item::Text(label),
            Item::Value(ports),
            Item::Interval(returned),
            Item::Value(line),
            Item::Value(helpers),
        ] = &row[..]
        else {
            panic!("{row:?}")
        };
        let planted = 0.2 + if label.starts_with("slow") { 0.02 * ports } else { 0.0 };
        assert!((returned.value / planted - 1.0).abs() < 0.05 && returned.interval.is_some(), "{row:?}");
        assert!((line / planted - 1.0).abs() < 0.05, "{row:?}");
        assert_eq!((helpers, &label[4..]), (ports, &*ports.to_string()), "{row:?}");
    }
    for (row, label, planted) in [
        (&lines.rows[0], "fake:noise=2,per_port=20ms,time=200ms", 0.02),
        (&lines.rows[1], "fake:noise=2,time=200ms", 0.0),
    ] {
        let [Item::Text(own), Item::Interval(fixed), Item::Interval(slope)] = &row[..] else {
            panic!("{row:?}")
        };
        assert_eq!(own, label);
        assert!((fixed.value - 0.2).abs() < 0.01 && (slope.value - planted).abs() < 0.0005, "{row:?}");
        // Percentiles of twelve rounds are a little narrow.
        let [low, high] =
            slope.interval.map(|ends| [ends.low - 1e-4, ends.high + 1e-4]).expect("an interval");
        assert!(low < planted && planted < high && high - low < 0.0015, "{row:?}");
    }
    let slow = &lines.told()[0];
    assert!(slow.contains("0 to 64 ports") && slow.ends_with(" and has 64 helper processes"), "{slow}");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["over the number of published ports", "each port adds", "each published port adds"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // The points are a picture too.
    let pictures = dunnage.run("report DIR --format svg -o DIR/pictures");
    assert_eq!(pictures.code, 0, "{pictures}");
    let words = std::fs::read_to_string(dunnage.directory().join("pictures/start-returned-over-publish.txt"));
    let words = words.expect("a picture");
    assert!(
        words.contains("fake:noise=2,per_port=20ms,time=200ms: 20") && words.contains(" at 64"),
        "{words}"
    );
}

#[test]
fn lines_are_apart_by_setting_and_one_number_of_ports_has_none() {
    let (_, tables) = ran(&Dunnage::new(), "-s a=fake:publish=8 -s b=fake:publish=8,time=2ms", "--rounds 6");
    assert_eq!(tables, []);
    let subjects = "-s a=fake:publish=8,per_port=1ms -s b=fake:per_port=1ms";
    let (_, tables) = ran(&Dunnage::new(), subjects, "--rounds 3");
    let [points, lines] = &tables[..] else { panic!("{tables:?}") };
    assert_eq!((points.rows.len(), lines.told().len()), (4, 2));
    for (sentence, prestate) in lines.told().into_iter().zip(["idle", "primed"]) {
        assert!(sentence.contains(&format!("(prestate={prestate})")), "{sentence}");
        assert!(sentence.contains("too few rounds for an interval"), "{sentence}");
    }
}
