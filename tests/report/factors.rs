//! Engine, runtime or network: the page and the JSON of a complete factorial.

use dunnage::plan::{Ladder, Plan, factors};
use dunnage::record::Recorded;
use dunnage::report::Look;
use dunnage::subject::Layer;

use crate::report::scripted::{cells_of, entry, plan, run};
use crate::report::{compare, report};

/// docker and podman, runc and crun, with and without a network, over two controls.
pub fn factorial() -> Plan {
    let mut subjects = vec![
        entry("bare", Layer::Bare, Ladder::AsInstalled, None),
        entry("floor", Layer::Floor, Ladder::AsInstalled, None),
    ];
    for engine in ["docker", "podman"] {
        for (net, ladder) in [("none", Ladder::Equalised), ("bridge", Ladder::AsInstalled)] {
            for runtime in ["runc", "crun"] {
                let text = format!("{engine}+{runtime}:log=none,net={net}");
                subjects.push(entry(&text, Layer::Engine, ladder, Some(runtime)));
            }
        }
    }
    let names = ["engine", "runtime", "net"].map(str::to_owned);
    let specs: Vec<_> = subjects.iter().map(|entry| (&entry.spec, entry.layer)).collect();
    let factorial = factors::complete(&names, &specs).expect("every combination once");
    let mut plan = Plan { factorial: Some(factorial), ..plan(subjects, 40) };
    plan.verdicts = plan.count_verdicts();
    plan
}

/// The page's section on factors.
fn section(run: &Recorded) -> String {
    let page = crate::report::rendered("terminal", &report(run), &Look { width: 80, ..Look::default() });
    let from = page.find("Factors: ").expect("a section of factors");
    let to = page[from..].find("\nVerdicts\n").expect("a section after it");
    page[from..from + to].to_owned()
}

#[test]
fn the_page_says_which_factor_it_is() {
    let run = run(factorial());
    let text = section(&run);
    compare("terminal-factors.txt", &text);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Planted: the bridge costs 71 ms with docker and 38 ms with podman.
    assert!(words.contains("Factors: is it the engine, the runtime or the network?"), "{text}");
    assert!(words.contains("Mainly it is the network: net=bridge takes 5"), "{text}");
    assert!(words.contains("larger with docker than with podman (as a ratio too: +"), "{text}");
    assert!(words.contains("more than podman (+"), "a ratio against the sentence:\n{text}");
}

#[test]
fn too_few_rounds_and_suspects_give_no_answer() {
    let mut run = run(factorial());
    let cell = cells_of(&run, "docker+crun:log=none,net=none")[0];
    for value in &mut run.series[cell].values[0] {
        *value /= 900.0;
    }
    let text = section(&run);
    assert!(text.contains("No answer: its numbers are suspect, see suspect "), "{text}");
    assert!(text.lines().filter(|line| line.contains("  suspect ")).count() >= 7, "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&crate::report::rendered("json", &report(&run), &Look::default()))
            .expect("JSON");
    let effects = json["experiments"][0]["factorial"]["effects"].as_array().expect("effects");
    let suspects = effects.iter().filter(|one| one["verdict"] == "suspect" && one["suspect"].is_u64());
    assert!(suspects.count() >= 7);
    for context in run.contexts.iter_mut().skip(4) {
        *context = None;
    }
    assert!(
        section(&run).contains("No verdict: there are 3 complete rounds, and a verdict needs 1"),
        "{}",
        section(&run)
    );
}
