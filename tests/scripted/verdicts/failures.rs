//! Rounds in which a side failed: they do not vanish, and what they could have shown is in the verdict.

use dunnage::document::{Extent, Look, shown};
use dunnage::outcome::{Failure, FailureClass};
use dunnage::plan::{self, Layer, Request};
use dunnage::record::{Cause, FailureRow, Recorded};
use dunnage::report::Report;
use dunnage::stats::Rng;
use dunnage::verdict::{Analysis, Finding, Kind, analyse};

use crate::scripted::planted::{cell_of, entry, recorded, request};

const ROUNDS: usize = 30;

/// `old` and `new`, in milliseconds, and the rounds in which each fails in this way.
fn run(times: [f64; 2], fails: [&[usize]; 2], class: FailureClass) -> Recorded {
    let subjects = vec![entry("old=fake", Layer::Engine), entry("new=fake", Layer::Engine)];
    let chosen = vec![("prestate".into(), vec!["idle".into()])];
    let plan = plan::make(Request { chosen, ..request(vec!["start"], subjects, ROUNDS) });
    let values = |cell: usize| {
        let label = &plan.subjects[plan.cells[cell].subject].label;
        let time = times[usize::from(label.starts_with("new"))] * 1e-3;
        let mut rng = Rng::for_stream(5, cell as u64);
        let times: Vec<f64> = (0..ROUNDS).map(|_| time * (0.004 * rng.standard_normal()).exp()).collect();
        let shares = [1.0, 0.6, 1.1].into_iter().chain(std::iter::repeat(f64::NAN));
        let metrics = plan.metrics(&plan.cells[cell]).len();
        shares.take(metrics).map(|share| times.iter().map(|time| time * share).collect()).collect()
    };
    let mut run = recorded(plan.clone(), values);
    for (label, rounds) in ["old", "new"].into_iter().zip(fails) {
        let is_own = |own: &str| own.trim_end_matches(" (twin)") == label;
        let cells = (0..run.plan.cells.len()).filter(|cell| is_own(&run.plan.entry(*cell).label));
        for (cell, &round) in cells
            .collect::<Vec<_>>()
            .into_iter()
            .flat_map(|cell| rounds.iter().map(move |round| (cell, round)))
        {
            run.series[cell].values.iter_mut().for_each(|column| column[round] = f64::NAN);
            let cause = Cause::Failed(Failure::new(class, "it failed as planted"));
            run.failures.push(FailureRow { cell, round: run.plan.warmups + round, cause });
        }
    }
    run
}

fn returned<'a>(run: &Recorded, analysis: &'a Analysis) -> &'a Finding {
    let [old, new] = ["old", "new"].map(|label| cell_of(run, label));
    let mut all = analysis.findings.iter();
    all.find(|one| [one.cell, one.against].contains(&old) && [one.cell, one.against].contains(&new)).unwrap()
}

/// The word of the verdict about `new` against `old`, and the subject that fails more often.
fn judged(run: &Recorded) -> (Kind, Option<String>) {
    let analysis = analyse(run);
    let more_often = analysis.failure_shares.iter().find_map(|shares| shares.more_often);
    let label = more_often.map(|cell| run.plan.entry(cell).label.clone());
    (returned(run, &analysis).kind(), label)
}

fn every(step: usize, from: usize) -> Vec<usize> {
    (from..ROUNDS).step_by(step).collect()
}

#[test]
fn a_subject_that_crashes_in_twelve_of_thirty_rounds_is_not_the_same() {
    let twelve: Vec<usize> = (0..ROUNDS).filter(|round| round % 5 < 2).collect();
    assert_eq!(twelve.len(), 12);
    let crashed = run([20.0, 20.0], [&[], &twelve], FailureClass::Crash);
    assert_eq!(judged(&crashed), (Kind::Undecided, Some("new".into())));
    let analysis = analyse(&crashed);
    let finding = returned(&crashed, &analysis);
    let interval = finding.difference.unwrap().interval.unwrap();
    assert_eq!((finding.failed_rounds, interval.low, interval.high), (12, f64::NEG_INFINITY, f64::INFINITY));
    let report = Report::of(&crashed, &analysis);
    for extent in [Extent::Brief, Extent::Full] {
        let text = shown(&report, "terminal", &Look { width: 100, extent, ..Look::default() }).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = "new fails more often than old (0 of 30): in 12 of 30 rounds";
        assert!(text.contains(words), "{text}");
    }
    for format in ["html", "md", "json", "csv", "terminal"] {
        assert!(
            shown(&report, format, &Look::default()).is_none_or(|text| !text.contains("NaN")),
            "{format}"
        );
    }
}

/// The near miss: a single failure leaves a verdict that holds at both extremes as it is.
#[test]
fn one_failure_in_thirty_rounds_keeps_the_verdict() {
    for class in [FailureClass::Crash, FailureClass::Timeout] {
        assert_eq!(judged(&run([20.0, 20.0], [&[], &[4]], class)), (Kind::Same, None));
        assert_eq!(judged(&run([20.0, 24.0], [&[4], &[]], class)), (Kind::Slower, None));
    }
}

/// A timeout is longer than anything: who has many of them is slower. A crash could have been anything.
#[test]
fn timeouts_are_longer_than_anything() {
    let many: Vec<usize> = (0..ROUNDS).filter(|round| round % 4 != 0).collect();
    let late = run([20.0, 20.0], [&[], &many], FailureClass::Timeout);
    assert_eq!(judged(&late), (Kind::Slower, Some("new".into())));
    let late = run([20.0, 20.0], [&many, &[]], FailureClass::Timeout);
    assert_eq!(judged(&late), (Kind::Faster, Some("old".into())));
    let crashed = run([20.0, 20.0], [&[], &many], FailureClass::Crash);
    assert_eq!(judged(&crashed).0, Kind::Undecided);
    // It is not known that it was slower until its first instruction.
    let analysis = analyse(&late);
    let first = analysis.findings.iter().find(|one| one.metric == 1 && one.failed_rounds > 0).unwrap();
    assert_eq!(first.kind(), Kind::Undecided);
}

#[test]
fn failures_on_both_sides_alike_name_neither() {
    let crashed = run([20.0, 20.0], [&every(5, 0), &every(5, 2)], FailureClass::Crash);
    assert_eq!(judged(&crashed), (Kind::Undecided, None));
}
