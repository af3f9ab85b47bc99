//! Writes a plan file that makes the same plan again. Random and time-dependent choices are written out: subjects, settings,
//! rounds and seed.

use std::fmt::Write as _;

use dunnage_analysis::distinct;
use dunnage_analysis::group::in_groups;
use toml::Value;

use super::Variants;
use crate::plan::{Cell, Entry, Plan, Request, Rounds};
use crate::report::text::listed;

/// The text of the plan file: the plan, and from the request the experiments that no subject takes part in, the precision for
/// a pilot, and the labels.
pub fn write(plan: &Plan, asked: &Request, tags: &[(String, String)], variants: Variants) -> String {
    let mut text = String::from("# Made by `dunnage plan --write`; run it with `dunnage run --plan`.\n");
    line(&mut text, "experiments", &list(asked.experiments.iter().copied()));
    // The variants are made again from the originals.
    let originals =
        plan.subjects.iter().filter(|entry| entry.twin_of.is_none() && entry.variant_of.is_none());
    let subject = |entry: &Entry| {
        let (label, spec) = (&entry.label, entry.spec.to_string());
        if *label == spec { spec } else { format!("{label}={spec}") }
    };
    line(&mut text, "subjects", &one_a_line(originals.map(subject)));
    if let Some(factorial) = &plan.factorial {
        line(&mut text, "factors", &list(factorial.factors.iter().map(|factor| factor.name.as_str())));
    }
    match asked.rounds {
        Rounds::Precise(share) => line(&mut text, "precision", &percent(share)),
        Rounds::Fixed(_) | Rounds::Fit(_) => line(&mut text, "rounds", &plan.rounds.to_string()),
    }
    match variants {
        Variants::None => line(&mut text, "vary", "false"),
        Variants::Why => line(&mut text, "why", "true"),
        Variants::OfExperiments => {}
    }
    line(&mut text, "seed", &plan.seed.to_string());
    line(&mut text, "timeout", &(plan.allowed.0 / 1_000_000_000).to_string());
    if !plan.predictions.is_empty() {
        line(&mut text, "predictions", &one_a_line(plan.predictions.iter().map(ToString::to_string)));
    }
    let settings = settings(plan.cells.iter());
    if !settings.is_empty() {
        text.push_str("\n[settings]\n");
        for (key, values) in settings {
            line(&mut text, key, &list(values));
        }
    }
    if !tags.is_empty() {
        text.push_str("\n[tags]\n");
        for (key, value) in tags {
            line(&mut text, &quote(key), &quote(value));
        }
    }
    for (index, one) in asked.margins.iter().enumerate() {
        if index == 0 || asked.margins[index - 1].experiment != one.experiment {
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

/// A share in percent, without digits that come only from its binary form.
fn percent(share: f64) -> String {
    let digits = format!("{:.10}", share * 100.0);
    quote(&format!("{}%", digits.trim_end_matches('0').trim_end_matches('.')))
}

fn quote(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn one_a_line(all: impl Iterator<Item = String>) -> String {
    format!("[\n{}]", all.map(|one| format!("    {},\n", quote(&one))).collect::<String>())
}

fn list<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", listed(all.into_iter().map(quote), ", "))
}

/// The values of each key in the cells, in the order of the plan.
pub fn settings<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<(&'static str, Vec<&'static str>)> {
    let by_key = in_groups(cells.flat_map(|cell| cell.setting.0.iter().copied()), |(key, _)| *key);
    let values = |all: Vec<(_, &'static str)>| distinct(all.into_iter().map(|(_, value)| value));
    by_key.into_iter().map(|(key, all)| (key, values(all))).collect()
}
