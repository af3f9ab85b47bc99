//! From a plan to a plan file that makes the same plan again. Everything that was left to chance or
//! to what fits the time is written as it came out: subjects, settings, rounds, seed.

use std::fmt::Write as _;

use toml::Value;

use super::Variants;
use crate::plan::{FixedMargin, Plan};
use crate::subject::Spec;

/// What is written beside the plan itself.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The experiments, also those in which no subject takes part; those of the plan where none is named.
    pub experiments: Vec<&'static str>,
    /// Labels of the run.
    pub tags: Vec<(String, String)>,
    /// Margins that the person set.
    pub margins: Vec<FixedMargin>,
    /// Whether experiments vary keys of the subjects.
    pub variants: Variants,
    /// The precision from which a pilot will find the rounds.
    pub precision: Option<f64>,
}

/// The text of the plan file.
pub fn write(plan: &Plan, written: &Written) -> String {
    let mut text = String::from("# Made by `dunnage plan --write`; `dunnage run --plan` takes it.\n");
    let mut experiments: Vec<&str> = plan.cells.iter().map(|cell| cell.experiment).collect();
    experiments.dedup();
    if !written.experiments.is_empty() {
        experiments.clone_from(&written.experiments);
    }
    line(&mut text, "experiments", &list(experiments));
    // Variants are made again of what they vary.
    let originals =
        plan.subjects.iter().filter(|entry| entry.twin_of.is_none() && entry.variant_of.is_none());
    let subject = |entry: &crate::plan::Entry| {
        let is_derived = entry.label == entry.spec.to_string();
        let label = (!is_derived).then(|| entry.label.clone());
        let spec = Spec { label: None, ..entry.spec.clone() };
        label.map_or_else(|| spec.to_string(), |label| format!("{label}={spec}"))
    };
    let subjects: Vec<String> = originals.map(subject).collect();
    let quoted: String = subjects.iter().map(|one| format!("    {},\n", quote(one))).collect();
    line(&mut text, "subjects", &format!("[\n{quoted}]"));
    if let Some(factorial) = &plan.factorial {
        line(&mut text, "factors", &list(factorial.factors.iter().map(|factor| factor.name.as_str())));
    }
    match written.precision {
        Some(share) => line(&mut text, "precision", &percent(share)),
        None => line(&mut text, "rounds", &plan.rounds.to_string()),
    }
    if written.variants == Variants::None {
        line(&mut text, "vary", "false");
    }
    line(&mut text, "seed", &plan.seed.to_string());
    line(&mut text, "timeout", &(plan.allowed.0 / 1_000_000_000).to_string());
    if !plan.predictions.is_empty() {
        let all: String =
            plan.predictions.iter().map(|one| format!("    {},\n", quote(&one.to_string()))).collect();
        line(&mut text, "predictions", &format!("[\n{all}]"));
    }
    let settings = settings(plan);
    if !settings.is_empty() {
        text.push_str("\n[settings]\n");
        for (key, values) in settings {
            line(&mut text, key, &list(values));
        }
    }
    if !written.tags.is_empty() {
        text.push_str("\n[tags]\n");
        for (key, value) in &written.tags {
            line(&mut text, &quote(key), &quote(value));
        }
    }
    for (index, one) in written.margins.iter().enumerate() {
        if index == 0 || written.margins[index - 1].experiment != one.experiment {
            let _ = writeln!(text, "\n[margins.{}]", one.experiment);
        }
        let (absolute, relative) = one.margin.parts();
        let relative = percent(relative);
        line(&mut text, &one.metric, &format!("{{ absolute = {absolute:?}, relative = {relative} }}"));
    }
    text
}

fn line(text: &mut String, key: &str, value: &str) {
    let _ = writeln!(text, "{key} = {value}");
}

/// A share, without the digits that only its binary form makes.
fn percent(share: f64) -> String {
    let digits = format!("{:.10}", share * 100.0);
    quote(&format!("{}%", digits.trim_end_matches('0').trim_end_matches('.')))
}

fn quote(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn list<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<_> = all.into_iter().map(quote).collect();
    format!("[{}]", all.join(", "))
}

/// The values of each key that the cells have, in the order of the plan.
fn settings(plan: &Plan) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut all: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for (key, value) in plan.cells.iter().flat_map(|cell| &cell.setting.0) {
        match all.iter_mut().find(|(own, _)| own == key) {
            Some((_, values)) if values.contains(value) => {}
            Some((_, values)) => values.push(value),
            None => all.push((key, vec![value])),
        }
    }
    all
}
