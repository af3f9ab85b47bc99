//! Runs that were never measured, with a known time for each subject and setting, and known noise.

use dunnage::compare::{self, Comparison, Line, Run};
use dunnage::plan::{Entry, Ladder, Layer, Plan};
use dunnage::record::Recorded;
use dunnage::stats::Rng;
use dunnage::verdict::{Quality, analyse, quality};

use crate::report::scripted;

/// The standard deviation of the logarithm of every value.
pub const NOISE: f64 = 0.03;

/// A run of bare, floor and docker whose seed determines the noise; `factor` scales a cell's times, by the
/// subject's label, the value of `prestate`, and the round.
pub fn run(seed: u64, rounds: usize, factor: impl Fn(&str, &str, usize) -> f64) -> Recorded {
    run_of(ladder(), seed, rounds, factor)
}

/// The subjects of most runs here.
pub fn ladder() -> Vec<Entry> {
    let plain = |text, layer| scripted::entry(text, layer, Ladder::AsInstalled, None);
    vec![
        plain("bare", Layer::Bare),
        plain("floor", Layer::Floor),
        scripted::entry("docker", Layer::Engine, Ladder::AsInstalled, Some("runc")),
    ]
}

/// A run of these subjects.
pub fn run_of(
    subjects: Vec<Entry>,
    seed: u64,
    rounds: usize,
    factor: impl Fn(&str, &str, usize) -> f64,
) -> Recorded {
    planted(scripted::plan(subjects, rounds), seed, factor)
}

/// A run of this plan.
pub fn planted(plan: Plan, seed: u64, factor: impl Fn(&str, &str, usize) -> f64) -> Recorded {
    let mut run = scripted::run(plan);
    run.run = format!("r-{seed}");
    for cell in 0..run.plan.cells.len() {
        let planned = &run.plan.cells[cell];
        let entry = &run.plan.subjects[planned.subject];
        let prestate = planned.setting.get("prestate").expect("`start` and `exec` have one");
        let middle = match entry.layer {
            Layer::Bare => 1e-3,
            Layer::Floor => 5e-3,
            _ => 300e-3,
        };
        // A twin is the same subject.
        let label = entry.label.trim_end_matches(" (twin)").to_owned();
        let mut random = Rng::for_stream(seed, cell as u64);
        for round in 0..run.plan.rounds {
            let noise = (NOISE * random.standard_normal()).exp();
            let returned = middle * noise * factor(&label, prestate, round);
            for (name, share) in [("first_instruction", 0.6), ("returned", 1.0), ("gone", 1.1)] {
                let metrics = run.plan.metrics(&run.plan.cells[cell]);
                if let Some(metric) = metrics.iter().position(|metric| metric.name == name) {
                    run.series[cell].values[metric][round] = returned * share;
                }
            }
        }
    }
    run
}

/// Nothing changes.
pub fn plain(_: &str, _: &str, _: usize) -> f64 {
    1.0
}

/// The comparison of these runs; panics if they share nothing, or if the comparison finds other quality
/// issues in a run than its own report.
pub fn compared(old: &[Recorded], new: &[Recorded]) -> Comparison {
    let alone = |run: &Recorded| {
        let alone = quality(run);
        assert_eq!(alone.suspects, analyse(run).suspects);
        alone
    };
    let all = [old, new].map(|side| side.iter().map(alone).collect::<Vec<_>>());
    let names = ["before", "after"];
    let runs = |side: usize, recorded| -> Vec<Run<'_>> {
        std::iter::zip::<&[Recorded], _>(recorded, &all[side])
            .map(|(recorded, quality)| Run { recorded, quality, place: names[side] })
            .collect()
    };
    compare::compare(&runs(0, old), &runs(1, new)).expect("shared cells")
}

/// The same for simulations: the quality of a single run is taken from `alone`, in which nothing is suspect,
/// since computing it for hundreds of runs would take minutes.
pub fn compared_quickly(old: &Recorded, new: &Recorded, alone: &Quality) -> Comparison {
    let of = |recorded, place| Run { recorded, quality: alone, place };
    compare::compare(&[of(old, "before")], &[of(new, "after")]).expect("shared cells")
}

/// The line of a subject in `returned`.
pub fn line<'a>(comparison: &'a Comparison, label: &str) -> &'a Line {
    let metric = scripted::metric("returned");
    let lines = &comparison.experiments[0].lines;
    lines.iter().find(|line| line.label == label && line.metric == metric).expect("the line")
}

/// The word of its verdict.
pub fn word(comparison: &Comparison, label: &str) -> &'static str {
    line(comparison, label).verdict.word()
}

/// What is reported of a subject in `returned`.
pub fn said(comparison: &Comparison, label: &str) -> String {
    compare::sentence(&comparison.experiments[0], &[line(comparison, label)])
}
