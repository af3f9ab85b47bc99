//! Prices on planted data with known truth: stamps within a launch, differences in the same rounds, the
//! reference of each, values below zero, costs that occur elsewhere, whether the pieces add up; and their
//! presentation in reports.

use dunnage::document;
use dunnage::experiment::{self, Setting, primitives};
use dunnage::outcome::{Failure, FailureClass};
use dunnage::plan::{self, Entry, Layer, Plan, Request};
use dunnage::record::{Cause, FailureRow, Recorded};
use dunnage::report::{Look, Report};
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::units::Nanos;
use dunnage::verdict::{Analysis, Price, analyse};

use crate::scripted::planted::{entry, recorded, request};

const ROUNDS: usize = 16;
/// The time of an empty launch, in seconds.
const SPAWN: f64 = 900e-6;
/// The cost of every piece, unless a test says otherwise.
const PIECE: f64 = 100e-6;

/// The time of a setting: the spawn, and one piece for each step of its chain of references.
fn takes(setting: &Setting) -> f64 {
    let definition = experiment::find("primitives").unwrap();
    match (definition.reference)(setting) {
        _ if setting.get("way") == Some("call") => PIECE,
        Some(reference) if setting.get("piece") == Some("least") => takes(&reference),
        Some(reference) => takes(&reference) + PIECE,
        None => SPAWN,
    }
}

/// A run of `start` and `primitives` on the floor and on bare; rounds have a pace of their own, which all
/// cells share and which is larger than any price.
fn planted(prestate: &str) -> Recorded {
    let subject = |text: &str, layer, offers: &[Need]| Entry {
        launch: Nanos::from_millis(2),
        offers: offers.to_vec(),
        ..entry(text, layer)
    };
    let subjects = vec![
        subject("bare", Layer::Bare, &[Need::Launch]),
        subject("floor", Layer::Floor, &[Need::Launch, Need::Pieces]),
    ];
    let ways = ["stamps", "alone", "call", "ladder"].map(str::to_owned).to_vec();
    let chosen = vec![("prestate".into(), vec![prestate.into()]), ("way".into(), ways)];
    let plan = plan::make(Request { chosen, ..request(vec!["start", "primitives"], subjects, ROUNDS) });
    recorded(plan.clone(), |cell| values(&plan, cell))
}

fn values(plan: &Plan, cell: usize) -> Vec<Vec<f64>> {
    let planned = &plan.cells[cell];
    let mut own = Rng::for_stream(11, cell as u64);
    let mut values = vec![vec![f64::NAN; ROUNDS]; plan.metrics(planned).len()];
    for round in (0..ROUNDS).filter(|round| plan.visits(planned.experiment, plan.warmups + round)) {
        let pace = 5e-3 * Rng::for_stream(7, round as u64).standard_normal().abs();
        let noise = 1e-6 * own.standard_normal();
        let (time, second) = match planned.experiment {
            // The probe's own work is a fifth of a millisecond of it.
            "start" if plan.subjects[planned.subject].layer == Layer::Floor => {
                (SPAWN + 14.0 * PIECE + 200e-6, f64::NAN)
            }
            "start" => (SPAWN, f64::NAN),
            _ => (takes(&planned.setting), 20e-6),
        };
        if planned.setting.get("way") == Some("stamps") {
            // As root: no user namespace. The extra cost of `procs` is saved by `born`.
            let more = if planned.setting.get("piece") == Some("procs") { 5.0 * PIECE } else { 0.0 };
            for (metric, name) in primitives::pieces().filter(|(_, name)| *name != "user") {
                values[metric][round] = match name {
                    "exec" => SPAWN - 3.0 * PIECE + pace,
                    "cgroup" => PIECE + more + noise,
                    _ => PIECE + noise,
                };
            }
            values[0][round] = primitives::pieces()
                .map(|(metric, _)| values[metric][round])
                .filter(|one| one.is_finite())
                .sum();
            continue;
        }
        let work = plan.metrics(planned).iter().position(|metric| metric.name == "probe_work");
        values[0][round] = time + pace + noise;
        values[1][round] = second;
        if let Some(work) = work {
            values[work][round] = 200e-6;
        }
    }
    values
}

fn cell(run: &Recorded, way: &str, piece: &str) -> usize {
    let is_it = |cell: &dunnage::plan::Cell| {
        cell.setting.get("way") == Some(way) && cell.setting.get("piece") == Some(piece)
    };
    run.plan.cells.iter().position(is_it).unwrap()
}

fn price<'a>(run: &Recorded, analysis: &'a Analysis, way: &str, piece: &str) -> &'a Price {
    let cell = cell(run, way, piece);
    analysis.prices.iter().find(|price| price.cell == cell && price.metric == 0).unwrap()
}

/// A path or piece that fails now and then is not cheaper for it: the price holds wherever these rounds are.
#[test]
fn failed_rounds_do_not_make_a_price_smaller() {
    for (failed, is_known) in [(1, true), (6, false)] {
        let mut run = planted("idle");
        let own = cell(&run, "alone", "uts");
        for round in 0..failed {
            run.series[own].values.iter_mut().for_each(|column| column[round] = f64::NAN);
            let cause = Cause::Failed(Failure::new(FailureClass::Crash, "planted"));
            run.failures.push(FailureRow { cell: own, round: run.plan.warmups + round, cause });
        }
        let analysis = analyse(&run);
        let interval = price(&run, &analysis, "alone", "uts").price.interval.unwrap();
        assert_eq!(interval.high.is_finite() && interval.low.is_finite(), is_known, "{interval:?}");
        assert!(interval.contains(PIECE), "{interval:?}");
    }
}

/// Makes a cell take this much more, or less, in every round.
fn add(run: &mut Recorded, way: &str, piece: &str, seconds: f64) {
    let cell = cell(run, way, piece);
    run.series[cell].values[0].iter_mut().for_each(|value| *value += seconds);
}

fn rules(analysis: &Analysis) -> Vec<&'static str> {
    analysis.suspects.iter().map(|suspect| suspect.rule).collect()
}

fn shown(run: &Recorded, analysis: &Analysis, format: &str) -> String {
    document::shown(&Report::of(run, analysis), format, &Look::default()).expect("a format")
}

#[test]
fn prices_are_differences_of_the_same_rounds_whatever_the_rounds_pace() {
    let run = planted("idle");
    let analysis = analyse(&run);
    assert_eq!(rules(&analysis), [""; 0]);
    for (way, piece) in [("alone", "uts"), ("alone", "overlay"), ("ladder", "cgroup"), ("alone", "user")] {
        let price = price(&run, &analysis, way, piece);
        let interval = price.price.interval.unwrap();
        assert!((price.price.value - PIECE).abs() < 3e-6, "{way} {piece}: {price:?}");
        assert!(interval.low > 0.9 * PIECE && interval.high < 1.1 * PIECE, "{way} {piece}: {price:?}");
        assert!(price.shared.interval.is_none_or(|shared| shared.low <= interval.low));
    }
    let overlay = price(&run, &analysis, "alone", "overlay");
    assert_eq!(overlay.reference, Some(cell(&run, "alone", "mount")));
    let first_rung = price(&run, &analysis, "ladder", "mount");
    assert_eq!(first_rung.reference, Some(cell(&run, "alone", "least")));
    // A cell without a reference is its own price, and follows the pace.
    assert_eq!(price(&run, &analysis, "call", "veth_pair").reference, None);
    // They are context: no finding is about them, and they add no verdict to the family.
    assert!(analysis.findings.iter().all(|finding| run.plan.cells[finding.cell].experiment == "start"));
}

#[test]
fn the_rungs_add_up_to_the_floor_measured_whole() {
    let run = planted("primed");
    let analysis = analyse(&run);
    let [stamps, sum] = &analysis.sums[..] else { panic!("{:?}", analysis.sums) };
    assert_eq!((stamps.prestate, sum.prestate), ("primed", "primed"));
    // Fourteen pieces, and five that any process has.
    assert!((stamps.last.value - sum.last.value).abs() < 20e-6, "{stamps:?} {sum:?}");
    assert!((stamps.rungs - stamps.last.value).abs() < 20e-6, "{stamps:?}");
    let spawn = price(&run, &analysis, "alone", "spawn").price.value;
    assert!((sum.rungs - (spawn + 14.0 * PIECE)).abs() < 20e-6, "{sum:?}");
    let whole = sum.whole.as_ref().unwrap();
    // Medians with a skewed pace; both were measured in the same rounds, or more.
    assert!((whole.value - sum.last.value).abs() < 2e-3, "{sum:?}");
    let text = shown(&run, &analysis, "terminal");
    assert!(text.contains("primed: the pieces add up to"), "{text}");
    assert!(text.contains("`floor` as a whole takes "), "{text}");
}

/// The notes of the table of this name.
fn notes(analysis: &Analysis, name: &str) -> String {
    let table =
        analysis.experiment_tables.iter().find(|one| one.experiment == "primitives" && one.name == name);
    table.unwrap_or_else(|| panic!("no table {name}")).notes.join("\n")
}

#[test]
fn the_price_list_comes_from_the_stamps_with_intervals_that_no_launch_widens() {
    let run = planted("primed");
    let analysis = analyse(&run);
    let whole = cell(&run, "stamps", "whole");
    let of = |name: &str| {
        let (metric, _) = primitives::pieces().find(|(_, own)| *own == name).unwrap();
        analysis.prices.iter().find(|price| price.cell == whole && price.metric == metric)
    };
    let uts = of("uts").expect("it has a price").price;
    // The pace of a launch is fifty times a price, and belongs to the process itself.
    assert!((uts.value - PIECE).abs() < 2e-6 && uts.interval.unwrap().half_width() < 2e-6, "{uts:?}");
    assert!(of("user").is_none());
    let text = shown(&run, &analysis, "terminal");
    assert!(text.contains("time of each piece of floor, from stamps within one launch"), "{text}");
    assert!(text.contains("floor, primed: of"), "{text}");
    let drawn = dunnage::report::picture::all(&Report::of(&run, &analysis));
    let waterfall = drawn.iter().find(|one| one.name.contains("waterfall")).expect("a waterfall");
    assert_eq!(waterfall.table.rows.len(), 18 + 2, "{:?}", waterfall.table);
}

#[test]
fn a_run_without_stamps_has_its_waterfall_from_the_ladder() {
    let mut run = planted("primed");
    for (cell, planned) in run.plan.cells.iter().enumerate() {
        if planned.setting.get("way") == Some("stamps") {
            run.series[cell].values.iter_mut().for_each(|column| column.fill(f64::NAN));
        }
    }
    let drawn = dunnage::report::picture::all(&Report::of(&run, &analyse(&run)));
    let waterfall = drawn.iter().find(|one| one.name.contains("waterfall")).expect("a waterfall");
    // Spawn, least, fourteen rungs; the last launch, and the floor measured as a whole.
    assert_eq!(waterfall.table.rows.len(), 16 + 2, "{:?}", waterfall.table);
}

#[test]
fn what_falls_elsewhere_is_told_and_only_that() {
    let mut run = planted("primed");
    assert!(!notes(&analyse(&run), "stamps").contains("differs from its stamps"), "nothing does");
    // What is torn down later makes the launch with it longer, but no interval between its stamps.
    for piece in ["mount", "overlay", "filesystems", "masked", "read_only"] {
        add(&mut run, "alone", piece, 3.0 * PIECE);
    }
    let told = notes(&analyse(&run), "stamps");
    let (_, pieces) = told.split_once("differs from its stamps by: mount +").expect(&told);
    let microseconds = pieces.split(' ').next().and_then(|value| value.parse::<f64>().ok());
    assert!(microseconds.is_some_and(|value| (value - 300.0).abs() < 10.0), "{told}");
    assert!(pieces.contains("µs. The excess is paid"), "no other piece: {told}");
}

#[test]
fn another_way_to_make_a_piece_is_priced_and_may_save_something() {
    let run = planted("primed");
    let analysis = analyse(&run);
    let of = |piece| price(&run, &analysis, "stamps", piece).price.value;
    assert!((of("procs") - 5.0 * PIECE).abs() < 5e-6 && (of("born") + 5.0 * PIECE).abs() < 5e-6);
    assert_eq!(rules(&analysis), [""; 0], "to save is not suspect");
    let table = analysis.experiment_tables.iter().find(|one| one.name == "alternatives").expect("a table");
    assert_eq!(table.rows.len(), 4, "{table:?}");
}

#[test]
fn a_price_below_zero_is_shown_as_it_is_and_suspect() {
    let mut run = planted("idle");
    add(&mut run, "alone", "uts", -PIECE - 30e-6);
    let analysis = analyse(&run);
    let uts = price(&run, &analysis, "alone", "uts");
    assert!(uts.is_below_zero() && (uts.price.value + 30e-6).abs() < 3e-6, "{uts:?}");
    assert_eq!(rules(&analysis), ["negative price", "shorter than a bare spawn"]);
    let evidence = &analysis.suspects[0].evidence;
    assert!(evidence.contains("piece=uts") && evidence.contains("piece=least"), "{evidence}");
    let text = shown(&run, &analysis, "terminal");
    let line = text.lines().find(|line| line.starts_with("uts") && line.contains("(below zero)"));
    assert!(line.is_some_and(|line| line.contains("[−30")), "{text}");
    assert!(text.contains("SUSPECT"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&shown(&run, &analysis, "json")).unwrap();
    let lines = json["experiments"][1]["prices"].as_array().unwrap();
    let uts = lines.iter().find(|one| one["piece"] == "uts" && one["way"] == "alone").unwrap();
    let uts = uts["amounts"].as_array().unwrap().iter().find(|one| one["metric"] == "time").unwrap();
    assert_eq!((&uts["below_zero"], &uts["suspect"]), (&true.into(), &true.into()));
    assert!(uts["price"]["estimate"].as_f64().unwrap() < -25e-6);
    assert_eq!(uts["reference"], "way=alone;piece=least;prestate=idle");
}

#[test]
fn a_price_whose_interval_holds_zero_is_not_suspect() {
    let mut run = planted("idle");
    add(&mut run, "alone", "uts", -PIECE);
    let uts = cell(&run, "alone", "uts");
    // Half of the rounds a little below zero, half above.
    for (round, value) in run.series[uts].values[0].iter_mut().enumerate() {
        *value += if round % 2 == 0 { -9e-6 } else { 8e-6 };
    }
    let analysis = analyse(&run);
    assert!(!price(&run, &analysis, "alone", "uts").is_below_zero());
    assert_eq!(rules(&analysis), [""; 0]);
}

#[test]
fn a_launch_that_is_shorter_than_a_bare_spawn_is_suspect() {
    let mut run = planted("idle");
    // Every rung from the network on is equally short, so only the first of them has a price below zero.
    for piece in ["net", "pid", "cgroup"] {
        add(&mut run, "ladder", piece, -5.0 * PIECE - 20e-6);
    }
    let found = rules(&analyse(&run));
    assert!(found.contains(&"negative price") && found.contains(&"shorter than a bare spawn"), "{found:?}");
    let mut near = planted("idle");
    for piece in ["net", "pid", "cgroup"] {
        add(&mut near, "ladder", piece, -3.0 * PIECE);
    }
    assert!(!rules(&analyse(&near)).contains(&"shorter than a bare spawn"));
}

#[test]
fn what_cannot_be_done_is_a_line_with_its_class_and_reason() {
    let mut run = planted("idle");
    let lost = cell(&run, "call", "veth_pair");
    run.series[lost].values.iter_mut().for_each(|column| column.fill(f64::NAN));
    let failure = Failure::new(FailureClass::Unsupported, "cannot create veth pair");
    for round in run.plan.warmups..run.plan.warmups + run.plan.rounds {
        run.failures.push(FailureRow { cell: lost, round, cause: Cause::Failed(failure.clone()) });
    }
    let text = shown(&run, &analyse(&run), "terminal");
    let line = text.lines().find(|line| line.starts_with("veth_pair ")).unwrap();
    assert!(line.contains("unsupported"), "{line}");
    assert!(text.contains("unsupported (cannot create veth pair)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
