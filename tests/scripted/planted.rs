//! Runs that were never measured, with values of known truth.

use dunnage::plan::{self, Entry, Ladder, Layer, Plan, Request, Rounds};
use dunnage::record::{Environment, Recorded, RoundContext, Series, Timer};
use dunnage::subject::{Need, Spec};
use dunnage::units::Nanos;
use dunnage::verdict::Analysis;

/// A subject as in a plan.
pub fn entry(text: &str, layer: Layer) -> Entry {
    let spec = Spec::parse(text).unwrap();
    Entry {
        label: spec.shown(),
        spec,
        layer,
        ladder: Ladder::AsInstalled,
        twin_of: None,
        runtime: None,
        launch: Nanos::from_millis(1),
        offers: Need::CONTAINER.to_vec(),
        only_in: Vec::new(),
        variant_of: None,
        inherited: Default::default(),
    }
}

/// The request for a plan of them, with all settings.
pub fn request(experiments: Vec<&'static str>, subjects: Vec<Entry>, rounds: usize) -> Request {
    Request {
        experiments,
        subjects,
        chosen: Vec::new(),
        seed: 3,
        rounds: Rounds::Fixed(rounds),
        allowed: plan::ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
        trial: None,
    }
}

/// A run of this plan in which every cell has these values, by metric and round.
pub fn recorded(plan: Plan, mut values: impl FnMut(usize) -> Vec<Vec<f64>>) -> Recorded {
    let mut series = |cell: usize| Series {
        values: values(cell),
        positions: vec![None; plan.rounds],
        predecessors: vec![None; plan.rounds],
        treatments: vec![Some(0); plan.rounds],
        samples: Vec::new(),
        tails: Vec::new(),
    };
    Recorded {
        run: "test".into(),
        environment: Environment { timer: Timer { step: 30, cost: 30 }, ..Environment::default() },
        series: (0..plan.cells.len()).map(&mut series).collect(),
        failures: Vec::new(),
        contexts: vec![Some(RoundContext::default()); plan.warmups + plan.rounds],
        treatments: vec![vec![("root_durability".into(), "ordinary".into())]],
        missing: Vec::new(),
        damaged: 0,
        cut: false,
        resumed: false,
        lasted: None,
        plan,
    }
}

/// The first cell of the subject with this label.
pub fn cell_of(run: &Recorded, label: &str) -> usize {
    let is_it = |cell: &plan::Cell| run.plan.subjects[cell.subject].label == label;
    run.plan.cells.iter().position(is_it).unwrap()
}

/// The rules for suspect numbers that fired.
pub fn rules(analysis: &Analysis) -> Vec<&'static str> {
    analysis.suspects.iter().map(|suspect| suspect.rule).collect()
}
