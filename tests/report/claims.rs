//! Claims say each thing once, and mark every undecided or hidden comparison as open.

use dunnage::record::Recorded;
use dunnage::report::Look;
use dunnage::report::summary::{Topic, meanings};
use dunnage::verdict::table::Answer;
use dunnage::verdict::{ExperimentTable, analyse};

use crate::report::pictures::everything;
use crate::report::report;
use crate::report::scripted::{cells_of, full_ladder, metric, plan, run};

/// Podman is alternately faster and slower in one setting, and docker's twin in the other, so that docker and
/// docker on another runtime differ by less than docker and itself.
fn unsure() -> Recorded {
    let mut run = run(plan(full_ladder(), 20));
    for cell in [cells_of(&run, "podman")[0], cells_of(&run, "docker (twin)")[1]] {
        // Everything that ends with the command ends later or sooner with it, or the numbers would be
        // suspect.
        for metric in ["returned", "gone"].map(metric) {
            for (round, value) in run.series[cell].values[metric].iter_mut().enumerate() {
                *value += if round % 2 == 0 { 0.05 } else { -0.05 };
            }
        }
    }
    run
}

/// A pair that is only shown side by side has no verdict, and so leaves none open.
#[test]
fn what_is_described_is_not_counted_as_compared() {
    let open = |run: &Recorded| {
        let claims = report(run).claims;
        claims.into_iter().find(|one| one.topic == Topic::Open).expect("something is open").answer
    };
    let mut run = unsure();
    let before = open(&run);
    assert!(run.plan.describe("podman+runc", "docker+crun") > 0);
    assert_eq!(open(&run), before);
}

#[test]
fn what_is_open_is_said_once() {
    let report = report(&unsure());
    let open: Vec<_> = report.claims.iter().filter(|one| one.topic == Topic::Open).collect();
    let [open] = open[..] else { panic!("{:?}", report.claims) };
    assert!(
        open.answer.starts_with("1 of 52 comparisons of subjects, at most 51 % apart: "),
        "{}",
        open.answer
    );

    assert!(open.answer.contains("not above the noise floor"), "{}", open.answer);
    assert!(open.answer.contains(" might decide "), "{}", open.answer);
    for claim in &report.claims {
        let parts: Vec<&str> = claim.answer.split("; ").collect();
        for (index, part) in parts.iter().enumerate() {
            assert!(!parts[..index].contains(part), "`{part}` twice in: {}", claim.answer);
        }
    }
}

/// The meaning is in every format, with its interval and its scope.
#[test]
fn what_it_means_is_in_every_format() {
    let report = report(&run(plan(full_ladder(), 20)));
    assert!(!report.meanings.is_empty());
    for format in ["terminal", "html", "md", "json"] {
        let text = crate::report::rendered(format, &report, &Look { width: 300, ..Look::default() });
        for one in &report.meanings {
            let number =
                one.risk.split(": ").nth(1).and_then(|told| told.split(" (").next()).expect("a number");
            let number = number.trim_start_matches("from ").split(" [").next().expect("an estimate");
            assert!(text.contains(one.job) && text.contains(number), "{format}: {number}");
        }
    }
}

/// A limit has no subject to be compared with: its row is from the model alone.
#[test]
fn a_quota_that_is_the_cause_is_a_risk_for_answers_within_a_time() {
    let run = everything();
    let mut analysis = analyse(&run);
    let table = |decided: &[&str]| ExperimentTable {
        answers: [
            Answer::all("why?", ["open".into()]),
            Answer::decided("why?", decided.iter().map(|one| (*one).to_owned())),
        ]
        .concat(),
        ..ExperimentTable::new("throttle", "quota", String::new(), Vec::new())
    };
    let mut told = |decided: &[&str]| {
        analysis.experiment_tables = vec![table(decided)];
        let all = meanings(&run, &analysis).into_iter().filter(|one| one.experiment == "throttle");
        all.map(|one| format!("{}: {}", one.job, one.risk)).collect::<Vec<_>>()
    };
    assert_eq!(told(&[]), [""; 0]);
    assert_eq!(
        told(&["199 of 199 periods: the quota is the cause"]),
        ["answers within a time, under a CPU limit: 199 of 199 periods: the quota is the cause"]
    );
}
