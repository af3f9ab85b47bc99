//! Do sentences say each thing once, and of every undecided or hidden comparison that it is open?

use dunnage::record::Recorded;
use dunnage::report::summary::Topic;

use crate::report;
use crate::scripted::{cells_of, full_ladder, metric, plan, run};

/// Podman takes by turns more and less in one setting, and in the other docker's twin does, so that docker and
/// docker on another runtime differ by less than docker and itself.
fn unsure() -> Recorded {
    let mut run = run(plan(full_ladder(), 20));
    for cell in [cells_of(&run, "podman")[0], cells_of(&run, "docker (twin)")[1]] {
        // All that ends with the command ends later or sooner with it, or the numbers would be suspect.
        for metric in ["returned", "gone"].map(metric) {
            for (round, value) in run.series[cell].values[metric].iter_mut().enumerate() {
                *value += if round % 2 == 0 { 0.05 } else { -0.05 };
            }
        }
    }
    run
}

/// A pair that a reader wants to see beside each other has no verdict, and so leaves none open.
#[test]
fn what_is_described_is_not_counted_as_compared() {
    let open = |run: &Recorded| {
        let sentences = report(run).sentences;
        sentences.into_iter().find(|one| one.topic == Topic::Open).expect("something is open").text
    };
    let mut run = unsure();
    let before = open(&run);
    assert!(run.plan.describe("podman+runc", "docker+crun") > 0);
    assert_eq!(open(&run), before);
}

#[test]
fn what_is_open_is_said_once() {
    let report = report(&unsure());
    let open: Vec<_> = report.sentences.iter().filter(|one| one.topic == Topic::Open).collect();
    let [open] = open[..] else { panic!("{:?}", report.sentences) };
    assert!(open.text.contains(" not decided, "), "{}", open.text);
    assert!(open.text.contains("does not rise above the noise floor"), "{}", open.text);
    assert!(open.text.contains(" might decide "), "{}", open.text);
    for sentence in &report.sentences {
        let parts: Vec<&str> = sentence.text.split("; ").collect();
        for (index, part) in parts.iter().enumerate() {
            assert!(!parts[..index].contains(part), "`{part}` twice in: {}", sentence.text);
        }
    }
}
