//! The analysis of a user's command: its fixed and proportional cost, and the cost of its output path, each
//! in its own setting.

use dunnage::document::{Extent, Look, shown};
use dunnage::experiment::Setting;
use dunnage::plan::{self, Layer, Request};
use dunnage::record::Recorded;
use dunnage::report::Report;
use dunnage::stats::Rng;
use dunnage::subject::Need;
use dunnage::verdict::table::Item;
use dunnage::verdict::{ExperimentTable, Finding, Kind, analyse};

use super::ROUNDS;
use crate::scripted::planted::{cell_of, entry, recorded, request};

/// A run of commands of one and three seconds, which take this much longer on crun.
fn run(keys: &[(&str, &[&str])], more: fn(&Setting, f64) -> f64) -> Recorded {
    let mut subjects =
        [("bare", Layer::Bare), ("crun", Layer::Runtime)].map(|(name, layer)| entry(name, layer));
    subjects.iter_mut().for_each(|entry| entry.offers = Need::ALL.to_vec());
    let all = [("cmd", &["sleep 1", "sleep 3"][..])];
    let chosen = all
        .iter()
        .chain(keys)
        .map(|(key, values)| ((*key).to_owned(), values.iter().map(|value| (*value).to_owned()).collect()));
    let chosen = chosen.collect();
    let plan = plan::make(Request { chosen, ..request(vec!["command"], subjects.to_vec(), ROUNDS) });
    let values = |cell: usize| {
        let planned = &plan.cells[cell];
        let mut rng = Rng::for_stream(23, cell as u64);
        let is_bare = plan.subjects[planned.subject].layer == Layer::Bare;
        let seconds = if planned.setting.get("cmd") == Some("sleep 3") { 3.0 } else { 1.0 };
        let own = if is_bare { 0.0 } else { more(&planned.setting, seconds) };
        let mut value = |name: &str| match name {
            "returned" => seconds + own + 1e-4 * rng.standard_normal(),
            "command" => seconds,
            "output" => 5e6,
            _ => 0.01,
        };
        let metrics = plan.metrics(planned).iter();
        metrics.map(|metric| (0..ROUNDS).map(|_| value(metric.name)).collect()).collect()
    };
    recorded(plan.clone(), values)
}

#[test]
fn what_a_service_takes_more_is_its_start_and_what_follows() {
    let subjects = [("bare", Layer::Bare), ("crun", Layer::Runtime)];
    let mut subjects = subjects.map(|(name, layer)| entry(name, layer));
    subjects.iter_mut().for_each(|entry| entry.offers = Need::ALL.to_vec());
    let chosen = [("cmd", "serve"), ("ready", "port 80")];
    let chosen = chosen.map(|(key, value)| (key.to_owned(), vec![value.to_owned()])).to_vec();
    let plan = plan::make(Request { chosen, ..request(vec!["service"], subjects.to_vec(), ROUNDS) });
    let values = |cell: usize| {
        let is_bare = plan.entry(cell).layer == Layer::Bare;
        let mut rng = Rng::for_stream(29, cell as u64);
        let mut of = |seconds: f64| -> Vec<f64> {
            (0..ROUNDS).map(|_| seconds + 1e-5 * rng.standard_normal()).collect()
        };
        let [start, rest] = if is_bare { [0.001, 1.0] } else { [0.031, 1.2] };
        vec![of(start + rest), of(start), of(rest)]
    };
    let run = recorded(plan.clone(), values);
    let overhead = table(&run, "overhead").unwrap();
    let own = rows(&overhead).into_iter().find(|(label, _)| label == "crun").unwrap().1;
    for (value, planted) in own.iter().zip([0.23, 0.03, 0.2]) {
        assert!((value - planted).abs() < 1e-3, "{own:?}");
    }
    let told = &overhead.told()[0];
    assert!(
        told.starts_with("crun is 230 ms [")
            && told.contains("slower than `bare` until the same service is ready; its start accounts for +3"),
        "{told}"
    );
}

/// Old, a new build that takes this much longer in each round, and old again under another name.
fn builds(more: impl Fn(usize) -> f64) -> Recorded {
    let mut subjects = ["old=fake", "new=fake", "same=fake"].map(|name| entry(name, Layer::Engine));
    subjects.iter_mut().for_each(|entry| entry.offers = Need::ALL.to_vec());
    let chosen = vec![("cmd".to_owned(), vec!["serve".to_owned()])];
    let plan = plan::make(Request { chosen, ..request(vec!["command"], subjects.to_vec(), ROUNDS) });
    let values = |cell: usize| {
        let is_new = plan.entry(cell).label == "new";
        let mut rng = Rng::for_stream(37, cell as u64);
        let mut value = |name: &str, round: usize| match name {
            "returned" | "command" | "beyond_start" => {
                1.0 + if is_new { more(round) } else { 0.0 } + 1e-4 * rng.standard_normal()
            }
            _ => 0.01 + 1e-5 * rng.standard_normal(),
        };
        let metrics = plan.metrics(&plan.cells[cell]).iter();
        metrics.map(|metric| (0..ROUNDS).map(|round| value(metric.name, round)).collect()).collect()
    };
    recorded(plan.clone(), values)
}

/// What a screen says about one difference rests on one interval, that of its verdict. With five rounds of twenty on the other
/// side, an interval at 95 % alone would exclude zero, and the one of the family does not.
#[test]
fn a_difference_has_one_interval_and_one_verdict_on_a_screen() {
    for (against, words, kind) in
        [(5, "cannot be told apart", Kind::Undecided), (0, "slower than `old`", Kind::Slower)]
    {
        let run = builds(|round| if round < against { -0.02 } else { 0.07 });
        let analysis = analyse(&run);
        let [old, new] = ["old", "new"].map(|label| cell_of(&run, label));
        let of_pair = |one: &&Finding| (one.cell, one.against, one.metric) == (new, old, 0);
        let finding = analysis.findings.iter().find(of_pair).unwrap();
        assert_eq!(finding.kind(), kind);
        let overhead = analysis.experiment_tables.iter().find(|table| table.name == "overhead").unwrap();
        let is_new = |row: &&Vec<Item>| row[0] == Item::Text("new".into());
        let row = overhead.rows.iter().find(is_new).unwrap();
        assert_eq!(row[1], Item::Interval(finding.difference.unwrap()));
        assert!(overhead.told()[0].contains(words), "{:?}", overhead.told());
        for extent in [Extent::Brief, Extent::Full] {
            let look = Look { width: 200, extent, ..Look::default() };
            let text = shown(&Report::of(&run, &analysis), "terminal", &look).unwrap();
            let told = text.lines().filter(|line| line.contains("`new` is") || line.contains("new is "));
            assert!(told.clone().all(|line| line.contains("slower") == (kind == Kind::Slower)), "{text}");
        }
    }
}

fn table(run: &Recorded, name: &str) -> Option<ExperimentTable> {
    analyse(run).experiment_tables.into_iter().find(|table| table.name == name)
}

/// The texts of each row, and its values.
fn rows(table: &ExperimentTable) -> Vec<(String, Vec<f64>)> {
    let row = |row: &Vec<Item>| {
        let texts =
            row.iter().filter_map(|item| if let Item::Text(text) = item { Some(&**text) } else { None });
        let values = row.iter().filter_map(|item| match item {
            Item::Interval(estimate) => Some(estimate.value),
            _ => None,
        });
        (texts.collect::<Vec<_>>().join(" "), values.collect())
    };
    table.rows.iter().map(row).collect()
}

#[test]
fn fixed_and_proportional_cost_are_found_as_planted_and_each_mode_by_itself() {
    let run = run(&[("mode", &["run", "exec"])], |setting, seconds| match setting.get("mode") {
        Some("run") => 0.5 + 0.02 * seconds,
        _ => 0.05 + 0.1 * seconds,
    });
    let found = rows(&table(&run, "fixed-and-proportional").unwrap());
    for (label, expected) in [("crun mode=run", [0.5, 0.02]), ("crun mode=exec", [0.05, 0.1])] {
        let own = found.iter().filter(|(texts, _)| texts == label).map(|(_, values)| values);
        let own: Vec<_> = own.collect();
        assert_eq!(own.len(), 1, "{found:?}");
        for (value, planted) in own[0].iter().zip(expected) {
            assert!((value - planted).abs() < 2e-4, "{label}: {own:?}");
        }
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn the_way_of_the_output_has_its_price_where_both_ways_were_measured() {
    let both: (&str, &[&str]) = ("output", &["through", "discard"]);
    let run_of_both = run(&[both], |setting, seconds| match setting.get("output") {
        Some("through") => 0.3 + seconds,
        _ => 0.3,
    });
    let found = rows(&table(&run_of_both, "way-out").unwrap());
    let crun: Vec<_> = found.iter().filter(|(texts, _)| texts.starts_with("crun")).collect();
    assert_eq!(crun.len(), 2, "{found:?}");
    for (row, planted) in crun.iter().zip([1.0, 3.0]) {
        assert!(row.1[0] == 5e6 && (row.1[1] - planted).abs() < 2e-4, "{row:?}");
    }
    // No line is possible through both of them.
    assert_eq!(rows(&table(&run_of_both, "fixed-and-proportional").unwrap()).len(), 2);
    assert!(table(&run(&[], |_, _| 0.3), "way-out").is_none());
}

#[test]
fn an_empty_page_cache_has_its_price_where_both_were_measured() {
    let both: (&str, &[&str]) = ("cache", &["warm", "cold"]);
    let run = run(&[both], |setting, _| if setting.get("cache") == Some("cold") { 0.45 } else { 0.3 });
    let table = table(&run, "cold-cache").unwrap();
    let crun: Vec<_> = rows(&table).into_iter().filter(|(texts, _)| texts.starts_with("crun")).collect();
    assert_eq!(crun.len(), 2, "{crun:?}");
    assert!(crun.iter().all(|row| (row.1[0] - 0.15).abs() < 2e-4), "{crun:?}");
    let told = table.told().into_iter().filter(|sentence| sentence.starts_with("crun"));
    let says =
        |sentence: &str| sentence.contains("is 150 ms") && sentence.contains("slower than with a warm one");
    assert!(told.clone().count() == 2 && told.clone().all(says), "{:?}", table.told());
}

/// A user's command is itself a job, or part of one that waits for it once.
#[test]
fn what_a_command_adds_is_a_share_of_a_job_too() {
    let run = run(&[], |_, _| 0.72);
    let report = Report::of(&run, &analyse(&run)).with_job(7200.0);
    let shares = report.job.expect("a job was asked for").shares;
    assert_eq!(shares.len(), 2, "crun, for each of two commands");
    for one in shares {
        assert_eq!((one.event, one.finding.about.subject.as_str()), ("command", "crun"));
        assert!((one.share.value - 1e-4).abs() < 1e-6, "{:?}", one.share);
    }
}
