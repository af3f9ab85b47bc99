//! What the options of `plan`, `check` and `run` ask for, worked out once: experiments, subjects,
//! settings, rounds. Everything that a person typed is checked before anything is touched.

use anyhow::Result;

use crate::cli::Selection;
use crate::exit::Special;
use crate::experiment;
use crate::plan::{self, Entry, Ladder, Plan, Request, Rounds};
use crate::session::{self, Found, Origin, Wanted};
use crate::subject::{self, Layer, Spec};
use crate::units::Nanos;

/// How long a run takes without options, trials and report not counted.
const DEFAULT_TIME: Nanos = Nanos::from_millis(265_000);
/// The same with `--quick`.
const QUICK_TIME: Nanos = Nanos::from_millis(45_000);

/// A checked command line.
#[derive(Debug)]
pub struct Asked {
    /// The experiments.
    pub experiments: Vec<&'static str>,
    /// The subjects.
    pub subjects: Vec<Wanted>,
    /// Whether they were named one by one.
    pub named: bool,
    /// Values chosen for settings.
    pub chosen: Vec<(String, Vec<String>)>,
    /// How many rounds.
    pub rounds: Rounds,
    /// Whether everything must be over in a minute.
    pub quick: bool,
    /// The seed.
    pub seed: u64,
    /// How long one launch may take.
    pub allowed: Nanos,
}

fn usage(text: String) -> anyhow::Error {
    Special::Usage(text).into()
}

/// Checks what was typed.
pub fn asked(selection: &Selection) -> Result<Asked> {
    let experiments = experiments(&selection.experiments)?;
    let mut chosen = settings(&selection.set, &experiments)?;
    if selection.quick {
        for experiment in experiments.iter().filter_map(|name| experiment::find(name)) {
            for key in experiment.setting_keys() {
                if chosen.iter().all(|(own, _)| own != key.name) {
                    chosen.push((key.name.to_owned(), vec![key.values[0].to_owned()]));
                }
            }
        }
    }
    let named = !selection.subjects.is_empty();
    let subjects = if named { subjects(&selection.subjects)? } else { default_subjects(selection.quick) };
    let rounds = match selection.rounds {
        Some(rounds) => Rounds::Fixed(rounds as usize),
        None if selection.quick => Rounds::Fit(QUICK_TIME),
        None => Rounds::Fit(DEFAULT_TIME),
    };
    let seed = selection.seed.map_or_else(session::random_seed, Ok)?;
    let allowed = Nanos::from_millis(i64::from(selection.timeout) * 1000);
    Ok(Asked { allowed, experiments, subjects, named, chosen, rounds, quick: selection.quick, seed })
}

fn experiments(names: &[String]) -> Result<Vec<&'static str>> {
    let all = || experiment::ALL.iter().map(|experiment| experiment.name());
    if names.is_empty() {
        return Ok(experiment::MAIN.to_vec());
    }
    if names.iter().any(|name| name == "all") {
        return Ok(all().collect());
    }
    let mut known = Vec::new();
    for name in names {
        let Some(experiment) = experiment::find(name) else {
            let valid = all().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            return Err(usage(format!(
                "there is no experiment `{name}`\n\nhint: experiments are {valid}; `all` means every one"
            )));
        };
        if !known.contains(&experiment.name()) {
            known.push(experiment.name());
        }
    }
    Ok(known)
}

fn subjects(texts: &[String]) -> Result<Vec<Wanted>> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for text in texts {
        let spec = Spec::parse(text).map_err(|error| usage(error.to_string()))?;
        let kind = subject::kind_of(&spec).map_err(|error| usage(error.to_string()))?;
        let spec = spec.without_defaults(kind.keys);
        if wanted.iter().any(|other| other.spec.shown() == spec.shown()) {
            return Err(usage(format!(
                "two subjects are called `{}`\n\nhint: give one a label, as in `other={spec}`; every run measures one subject of each layer twice anyway",
                spec.shown()
            )));
        }
        let equalised = spec.get("net") == Some("none") && spec.get("log") == Some("none");
        let ladder =
            if kind.layer == Layer::Engine && equalised { Ladder::Equalised } else { Ladder::AsInstalled };
        wanted.push(Wanted { spec, ladder, origin: Origin::Named });
    }
    Ok(wanted)
}

fn default_subjects(quick: bool) -> Vec<Wanted> {
    let mut all = session::default_subjects();
    if quick {
        all.retain(|wanted| wanted.ladder == Ladder::AsInstalled);
    }
    all
}

/// `key=value` pairs, checked against the keys of the experiments; one key can be given several
/// times.
fn settings(pairs: &[String], experiments: &[&'static str]) -> Result<Vec<(String, Vec<String>)>> {
    let mut chosen: Vec<(String, Vec<String>)> = Vec::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(usage(format!("`{pair}` is not a setting\n\nhint: the form is `--set key=value`")));
        };
        let keys = || {
            experiments.iter().filter_map(|name| experiment::find(name)).flat_map(|one| one.setting_keys())
        };
        let Some(known) = keys().find(|known| known.name == key) else {
            let valid = keys().map(|key| format!("`{}`", key.name)).collect::<Vec<_>>().join(", ");
            return Err(usage(format!("there is no setting `{key}`\n\nhint: settings are {valid}")));
        };
        if !known.values.contains(&value) {
            let valid = known.values.join(", ");
            return Err(usage(format!("`{key}={value}` is not possible\n\nhint: `{key}` takes {valid}")));
        }
        match chosen.iter_mut().find(|(own, _)| own == key) {
            Some((_, values)) => values.push(value.to_owned()),
            None => chosen.push((key.to_owned(), vec![value.to_owned()])),
        }
    }
    Ok(chosen)
}

/// Makes the plan for the subjects that were found. With `--quick`, subjects are left out from the
/// end, engines with a runtime of one's choice first, until a minute is enough; they are returned
/// by label.
pub fn plan(asked: &Asked, found: &Found) -> Result<(Plan, Vec<String>)> {
    if found.candidates.is_empty() {
        let reasons: Vec<_> =
            found.unavailable.iter().map(|(name, why)| format!("{name}: {}", why.reason)).collect();
        return Err(Special::Nothing(format!(
            "nothing can be measured: no subject works here ({})\n\nhint: `dunnage doctor` says more",
            reasons.join("; ")
        ))
        .into());
    }
    let mut entries: Vec<Entry> = found.candidates.iter().map(|one| one.entry.clone()).collect();
    let mut left_out = Vec::new();
    loop {
        let plan = plan::make(Request {
            experiments: asked.experiments.clone(),
            subjects: entries.clone(),
            chosen: asked.chosen.clone(),
            seed: asked.seed,
            rounds: asked.rounds,
            allowed: asked.allowed,
        });
        let fits = plan.predicted() <= QUICK_TIME || asked.named;
        if !asked.quick || fits || entries.len() <= 2 {
            return Ok((plan, left_out));
        }
        let with_runtime = entries.iter().rposition(|entry| entry.spec.runtime.is_some());
        let dropped = entries.remove(with_runtime.unwrap_or(entries.len() - 1));
        left_out.push(dropped.label);
    }
}
