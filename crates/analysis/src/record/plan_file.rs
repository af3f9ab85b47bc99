//! `plan.json`: the plan as it was before the first measurement. Its fields are those of the plan; this
//! module checks them, since anyone can have written the file.

use anyhow::{Error, Result, bail};
use serde::{Deserialize, Serialize};

use crate::plan::{Factorial, Plan, Verdicts};
use crate::stats::Margin;
use crate::units::Nanos;

const MOST_SUBJECTS: usize = 500;
const MOST_CELLS: usize = 5_000;
const MOST_COMPARISONS: usize = 20_000;
/// Each is a line of the report.
const MOST_VERDICTS: usize = 200_000;
const MOST_PREDICTIONS: usize = 1_000;
const MOST_SAMPLES: usize = 20_000_000;
const LONGEST_LABEL: usize = 300;
/// Facts of what a subject inherits, and bytes of one: the names of a hundred variables.
const MOST_FACTS: usize = 64;
const LONGEST_FACT: usize = 1 << 14;
/// The command line's own limit; a reader allocates room for all of them.
const MOST_ROUNDS: usize = 1_000_000;

/// The file's form of a plan.
pub fn to_wire(plan: &Plan) -> impl Serialize + '_ {
    #[derive(Serialize)]
    struct PlanFile<'a> {
        version: u32,
        /// In seconds, from the trial launches; for users.
        predicted: Nanos,
        #[serde(flatten)]
        plan: &'a Plan,
    }
    PlanFile { version: super::wire::FORMAT, predicted: plan.predicted(), plan }
}

/// Checks that a reader will accept a plan before it is written.
pub fn check(plan: &Plan) -> Result<()> {
    read(&serde_json::to_vec(&to_wire(plan))?).map(drop)
}

/// The version of a plan's format, without reading anything else.
pub fn version(plan: &[u8]) -> serde_json::Result<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice(plan).map(|Versioned { version }| version)
}

/// The plan in a file; every index in it is checked.
pub fn read(file: &[u8]) -> Result<Plan> {
    let plan: Plan = serde_json::from_slice(file)?;
    if plan.rounds > MOST_ROUNDS || plan.warmups > MOST_ROUNDS {
        bail!(
            "the plan has {} rounds and {} warm-up rounds, more than dunnage allows",
            plan.rounds,
            plan.warmups
        );
    }
    if plan.predictions.len() > MOST_PREDICTIONS {
        bail!("the plan has {} predictions, more than dunnage can judge", plan.predictions.len());
    }
    let looks = &plan.looks;
    if !looks.is_empty()
        && (looks[0] == 0 || looks.last() != Some(&plan.rounds) || !looks.is_sorted_by(|a, b| a < b))
    {
        bail!("the plan looks after {looks:?} of {} rounds", plan.rounds);
    }
    check_size(&plan)?;
    check_subjects(&plan)?;
    let count = plan.subjects.len();
    let compared = plan.comparisons.iter().flat_map(|one| [one.subject, one.against]);
    let named = plan.cells.iter().map(|cell| cell.subject).chain(compared).chain([plan.baseline]);
    if let Some(index) = named.into_iter().find(|index| *index >= count) {
        bail!("the plan names subject {index} of {count}");
    }
    for fixed in &plan.margins {
        let (absolute, relative) = fixed.margin.parts();
        Margin::new(absolute, relative).map_err(Error::msg)?;
    }
    if plan.factorial.as_ref().is_some_and(|factorial| !is_complete(factorial, count)) {
        bail!("the plan's factorial is not complete");
    }
    let verdicts = plan.count_verdicts();
    let count: usize = verdicts.iter().map(|one| one.all_asked() + one.controls).sum();
    if count > MOST_VERDICTS {
        bail!("the plan asks for {count} verdicts, more than dunnage can give");
    }
    // An older version has all in one family.
    let as_one = |own: &Verdicts| Verdicts { first: 0, asked: own.all_asked(), ..own.clone() };
    let is_older = || verdicts.iter().map(as_one).eq(plan.verdicts.iter().cloned());
    if verdicts != plan.verdicts && !is_older() {
        bail!("the plan's number of verdicts does not match its comparisons");
    }
    Ok(plan)
}

/// A plan that cannot have been measured is damaged or hostile; it must not fill the memory.
fn check_size(plan: &Plan) -> Result<()> {
    let (subjects, cells, comparisons) = (plan.subjects.len(), plan.cells.len(), plan.comparisons.len());
    let rounds = plan.rounds + plan.warmups;
    let fits = subjects <= MOST_SUBJECTS
        && cells <= MOST_CELLS
        && comparisons <= MOST_COMPARISONS
        && cells.saturating_mul(rounds) <= MOST_SAMPLES;
    if !fits {
        bail!(
            "the plan has {subjects} subjects, {cells} cells, {comparisons} comparisons and {rounds} rounds, more than dunnage can analyse"
        );
    }
    Ok(())
}

fn check_subjects(plan: &Plan) -> Result<()> {
    for (index, entry) in plan.subjects.iter().enumerate() {
        if entry.label.chars().count() > LONGEST_LABEL {
            bail!("a label of the plan has more than {LONGEST_LABEL} characters");
        }
        let is_long =
            |(name, value): (&String, &String)| name.len() > LONGEST_LABEL || value.len() > LONGEST_FACT;
        if entry.inherited.len() > MOST_FACTS || entry.inherited.iter().any(is_long) {
            bail!("subject {index} of the plan inherits more than a process can");
        }
        let is_original = |of: usize| {
            of != index && plan.subjects.get(of).is_some_and(|original| original.twin_of.is_none())
        };
        if entry.twin_of.is_some_and(|of| !is_original(of)) {
            bail!("subject {index} of the plan is not the twin of another subject");
        }
        if plan.subjects[..index].iter().any(|other| other.label == entry.label) {
            bail!("two subjects of the plan have the same label");
        }
    }
    Ok(())
}

fn is_complete(factorial: &Factorial, subjects: usize) -> bool {
    let distinct: std::collections::BTreeSet<_> = factorial.subjects.iter().collect();
    factorial.factors.len() <= 8
        && factorial.subjects.len() == 1 << factorial.factors.len()
        && distinct.len() == factorial.subjects.len()
        && factorial.subjects.iter().all(|&index| index < subjects)
}
