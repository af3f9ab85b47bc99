//! Predictions on planted data: which hold, which do not, and which stay open; and the pairs that they add to
//! a plan.

use dunnage::plan::prediction::Written;
use dunnage::plan::{self, Layer, Prediction, Relation, Request};
use dunnage::record::Recorded;
use dunnage::report::predicted::{Came, predictions};
use dunnage::verdict::analyse;

use super::{RETURNED, ROUNDS, asked, change, planted};

/// The same with predictions, which must exist before anything is measured.
fn predicted(subjects: &[(&str, Layer, f64)], noise: f64, predictions: &[&str]) -> Recorded {
    let mut run = planted(subjects, noise);
    let read = |text: &&str| Prediction::of(&Written::parse(text).unwrap(), &["start"]).unwrap();
    let predictions = predictions.iter().map(read).collect();
    run.plan = plan::make(Request { predictions, ..asked(subjects) });
    run
}

fn came(run: &Recorded) -> Vec<Came> {
    predictions(run, &analyse(run)).iter().map(|prediction| prediction.came).collect()
}

#[test]
fn predictions_are_set_against_the_planted_truth() {
    let subjects = [
        ("bare", Layer::Bare, 1.0),
        ("floor", Layer::Floor, 3.0),
        ("crun", Layer::Runtime, 20.0),
        ("other=crun", Layer::Runtime, 20.0),
        ("docker", Layer::Engine, 200.0),
    ];
    let run = predicted(
        &subjects,
        0.002,
        &[
            "start.returned: bare < floor < crun < docker",
            "start.returned: docker > crun > floor > bare",
            "start.returned: crun = other",
            "start.returned[prestate=idle]: floor = docker",
            "start.gone: docker < bare",
            "start.returned: crun < other",
            "start.returned: bare < podman < docker",
            "start.returned[prestate=primed]: bare < floor",
        ],
    );
    use Came::{DidNotHold, Held, NotDecided};
    assert_eq!(came(&run), [Held, Held, Held, DidNotHold, DidNotHold, DidNotHold, NotDecided, NotDecided]);
    let links = &predictions(&run, &analyse(&run))[6].links;
    assert_eq!(links.iter().map(|link| link.verdict).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn what_is_not_decided_speaks_neither_for_nor_against_a_prediction() {
    let subjects =
        [("bare", Layer::Bare, 1.0), ("crun", Layer::Runtime, 20.0), ("other=crun", Layer::Runtime, 20.6)];
    let every =
        ["start.returned: crun < other", "start.returned: crun = other", "start.returned: crun > other"];
    let noisy = predicted(&subjects, 0.2, &every);
    assert_eq!(came(&noisy), [Came::NotDecided; 3]);
    // Suspect numbers decide nothing either.
    let mut suspect = predicted(&subjects, 0.002, &["start.returned: bare < crun"]);
    assert_eq!(came(&suspect), [Came::Held]);
    for round in 0..ROUNDS {
        change(&mut suspect, "crun", RETURNED, round, 0.0001);
    }
    assert_eq!(came(&suspect), [Came::NotDecided]);
}

#[test]
fn pairs_that_only_a_prediction_needs_are_compared_and_counted() {
    let subjects =
        [("bare", Layer::Bare, 1.0), ("floor", Layer::Floor, 3.0), ("docker", Layer::Engine, 200.0)];
    let without = predicted(&subjects, 0.01, &[]).plan;
    let with =
        predicted(&subjects, 0.01, &["start.returned: docker > floor", "start.gone: floor < docker"]).plan;
    assert_eq!(with.comparisons.len(), without.comparisons.len() + 1);
    let added = with.comparisons.last().unwrap();
    assert_eq!(added.relation, Relation::Predicted);
    let label = |index: usize| with.subjects[index].label.as_str();
    assert_eq!((label(added.subject), label(added.against)), ("docker", "floor"));
    // One setting, three metrics with verdicts.
    assert_eq!(with.verdicts_asked(), without.verdicts_asked() + 3);
    let known = predicted(&subjects, 0.01, &["start.returned: bare < docker"]).plan;
    assert_eq!(known.comparisons, without.comparisons);
}
