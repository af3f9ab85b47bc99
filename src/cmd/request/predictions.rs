//! Checks predictions before anything is touched: their metric must be one that the run decides about, and their settings and
//! subjects must be part of the run.

use anyhow::Result;
use dunnage_analysis::distinct;

use super::words;
use crate::experiment;
use crate::plan::prediction::{FORM, Written};
use crate::plan::{self, Chosen, Prediction};
use crate::plan_file::Typed;
use crate::report::text::quoted;
use crate::session::Wanted;

/// The predictions, each once, with canonical labels.
pub fn checked(
    typed: &[Typed],
    experiments: &[&'static str],
    chosen: &[Chosen],
    subjects: &[Wanted],
) -> Result<Vec<Prediction>> {
    let check = |one: &Typed| check(&one.text, experiments, chosen, subjects).map_err(|why| one.wrong(why));
    Ok(distinct(typed.iter().map(check).collect::<Result<Vec<_>>>()?))
}

fn check(
    text: &str,
    experiments: &[&'static str],
    chosen: &[Chosen],
    subjects: &[Wanted],
) -> Result<Prediction, String> {
    let mut written =
        Written::parse(text).map_err(|why| format!("`{text}` is not a prediction: {why}\n\nhint: {FORM}"))?;
    // A subject may be written in another way than the run writes it.
    for subject in &mut written.subjects {
        if let Some(canonical) = words::canonical(subject) {
            *subject = canonical;
        }
    }
    let prediction = Prediction::of(&written, experiments)?;
    has_setting(&prediction, chosen)?;
    for label in &prediction.written.subjects {
        has_subject(&prediction, label, subjects)?;
    }
    if let Some(link) = prediction.links().find(|link| link.first == link.second) {
        return Err(format!(
            "the prediction compares `{}` with itself\n\nhint: every run already measures one subject of each layer twice",
            link.first
        ));
    }
    Ok(prediction)
}

fn has_setting(prediction: &Prediction, chosen: &[Chosen]) -> Result<(), String> {
    let Some(experiment) = experiment::find(prediction.experiment) else { return Ok(()) };
    let settings = plan::settings(experiment, chosen);
    if settings.iter().any(|setting| prediction.is_about(setting)) {
        return Ok(());
    }
    let valid = match settings.iter().all(|setting| setting.0.is_empty()) {
        true => "none".to_owned(),
        false => quoted(&settings),
    };
    Err(format!(
        "the prediction `{prediction}` is about a setting that this run does not have\n\nhint: settings of `{}` are {valid}",
        prediction.experiment
    ))
}

fn has_subject(prediction: &Prediction, label: &str, subjects: &[Wanted]) -> Result<(), String> {
    let takes_part =
        |wanted: &&Wanted| wanted.only_in.is_empty() || wanted.only_in.contains(&prediction.experiment);
    let valid: Vec<String> = subjects.iter().filter(takes_part).map(|wanted| wanted.spec.shown()).collect();
    if valid.iter().any(|own| own == label) {
        return Ok(());
    }
    Err(format!(
        "the prediction names `{label}`, which is not a subject of `{}` in this run\n\nhint: subjects are {}",
        prediction.experiment,
        quoted(valid)
    ))
}
