//! Resolves the options of `plan`, `check` and `run`, together with a plan file, into experiments, subjects, settings and
//! rounds. All input is checked before anything is touched. The valid values of single words are in `words`.

mod command;
mod predictions;
mod quick;
mod variants;
mod words;

use anyhow::{Context, Result, ensure};
use dunnage_analysis::distinct;

use self::words::{CACHE, Caches};
use crate::cli::Selection;
use crate::exit::{nothing, usage};
use crate::experiment::{self, Experiment, Setting, SettingKey};
use crate::measure;
use crate::plan::{self, Chosen, Comparison, Entry, Ladder, Plan, Relation, Request, Rounds};
use crate::plan_file::{self, Length, PlanFile, Typed, Variants};
use crate::report::text::listed;
use crate::session::{self, Found, Leftovers, Session, Trial, Wanted};
use crate::subject::{Unavailable, by_cause, context};
use crate::sys::{filesystem, page_cache};
use crate::units::{Nanos, counted};
use crate::variables::Variables;

/// How long a run without options takes, including trials but not the report: five minutes with it.
const DEFAULT_TIME: Nanos = Nanos::from_millis(280_000);
const MINUTE: Nanos = Nanos::from_millis(60_000);
/// The same with `--quick`, which promises a minute, or one for each experiment that is named.
const QUICK_TIME: Nanos = Nanos::from_millis(54_000);
/// Seconds after which a launch counts as hung, by default.
const TIMEOUT: u32 = (plan::ALLOWED.0 / 1_000_000_000) as u32;

/// A checked command line.
#[derive(Debug)]
pub struct Asked {
    /// The request for a plan, without the subjects, which are still to be found.
    pub request: Request,
    /// Experiments of the default run that do not fit in a minute.
    pub without: Vec<&'static str>,
    /// Values of settings that this machine cannot measure, with the reasons.
    pub lacking: Vec<(String, &'static str)>,
    /// The subjects.
    pub subjects: Vec<Wanted>,
    /// Whether they were named, not the default.
    pub named: bool,
    /// Whether the run must fit in these minutes.
    pub quick: bool,
    /// A minute for each experiment that is named, or one.
    pub minutes: i64,
    /// The run's labels.
    pub tags: Vec<(String, String)>,
    /// The values of the command's variables.
    pub variables: Variables,
    /// Whether experiments vary keys of the subjects.
    pub variants: Variants,
    /// The `--timeout` for a launch in seconds, if given.
    pub timeout: Option<u32>,
    /// The factors that the subjects combine completely.
    pub factors: Vec<String>,
}

impl Asked {
    /// Why subjects are left out of a quick run.
    pub fn to_be_quick(&self) -> String {
        let minutes = counted(self.minutes as usize, "minute");
        let limit = if self.minutes == 1 { "a minute" } else { &minutes };
        format!("to stay within {limit}")
    }

    /// The labels of the subjects that the user named, without variants that experiments added.
    pub fn by_name(&self) -> Vec<String> {
        let named = self.subjects.iter().filter(|one| self.named && one.variant_of.is_none());
        named.map(|one| one.spec.shown()).collect()
    }

    /// A session with the requested subjects found and tried.
    pub fn session(&self, leftovers: Leftovers) -> Result<Session> {
        let mut session = Session::begin(self.request.seed, leftovers, super::tell)?;
        session.run.allowed = self.request.allowed;
        session.run.variables = self.variables.clone();
        session.find(self.subjects.clone(), Trial::Twice)?;
        Ok(session)
    }
}

/// Checks the input. The command line takes precedence over the plan file: it replaces the file's experiments, subjects and
/// number of rounds, and the values of the same setting or tag.
pub fn asked(selection: &Selection) -> Result<Asked> {
    let file = selection.plan.as_deref().map(plan_file::open).transpose()?.unwrap_or_default();
    let typed = |all: &[String]| all.iter().map(|one| Typed::on_command_line(one)).collect::<Vec<_>>();
    let instead = |own: Vec<Typed>, files: &[Typed]| if own.is_empty() { files.to_vec() } else { own };
    let length = length(selection, &file)?;
    let quick = length == Some(Length::Quick);
    let names = instead(typed(&selection.experiments), &file.experiments);
    let named_experiments = names.len();
    let asks_for_all = names.iter().any(|name| name.text == "all");
    let mut experiments = words::experiments(&names)?;
    command::services(&mut experiments, &selection.command)?;
    let mut without = Vec::new();
    if quick && names.is_empty() {
        let decides = |name: &&str| experiment::find(name).is_some_and(|one| one.decides());
        (experiments, without) = experiments.into_iter().partition(decides);
    }
    let mut of_file = file.settings.clone();
    if !selection.experiments.is_empty() {
        // The file's settings are for the file's experiments.
        of_file.retain(|pair| words::is_setting_of(&pair.text, &experiments));
    }
    let mut own = typed(&selection.set);
    own.extend(command::settings(&selection.command, &experiments)?);
    let mut pairs = key_by_key(own, &of_file);
    let variables = command::without_values(&mut pairs)?;
    let caches = if selection.drop_caches { Caches::Dropped } else { Caches::Kept };
    let mut chosen = words::settings(&pairs, &experiments, caches)?;
    command::mounts_are_there(&chosen)?;
    experiments = command::with_a_command(experiments, &names, &chosen)?;
    if selection.drop_caches {
        choose_caches(&experiments, &mut chosen)?;
    }
    let by_hand: Vec<String> = chosen.iter().map(|(key, _)| key.clone()).collect();
    command::longer_loads(&experiments, quick, &mut chosen);
    if quick {
        choose_quick_values(&experiments, &mut chosen);
    }
    if asks_for_all {
        choose_modest_values(&experiments, &mut chosen);
    }
    let lacking = leave_out_lacking(&experiments, &by_hand, &mut chosen);
    some_settings(&experiments, &chosen)?;
    let names = instead(typed(&selection.subjects), &file.subjects);
    let named = !names.is_empty();
    let subjects = match named {
        true => words::subjects(&names)?,
        false => variants::in_company(&experiments, default_subjects(quick)),
    };
    let factors = factors(&file, selection, &subjects)?;
    let variants = match (selection.no_vary, selection.why) {
        (true, _) => Variants::None,
        (_, true) => Variants::Why,
        _ => file.variants,
    };
    let subjects = match variants {
        Variants::None => subjects,
        _ if !factors.is_empty() => subjects,
        _ => variants::varied(&experiments, subjects, variants == Variants::Why),
    };
    let rounds = match length {
        Some(Length::Rounds(rounds)) => Rounds::Fixed(rounds as usize),
        Some(Length::Precision(typed)) => Rounds::Precise(words::precision(&typed)?),
        Some(Length::Quick) => Rounds::Fit(QUICK_TIME),
        None => Rounds::Fit(DEFAULT_TIME),
    };
    let tags = words::tags(&key_by_key(typed(&selection.tags), &file.tags))?;
    let margins = words::margins(&file.margins)?;
    let mut told = typed(&selection.predictions);
    told.extend(file.predictions.iter().cloned());
    let predictions = predictions::checked(&told, &experiments, &chosen, &subjects)?;
    let seed = selection.seed.or(file.seed).map_or_else(session::random_seed, Ok)?;
    let timeout = selection.timeout.or(file.timeout);
    let allowed = Nanos::from_millis(i64::from(timeout.unwrap_or(TIMEOUT)) * 1000);
    let request = Request {
        experiments,
        subjects: Vec::new(),
        chosen,
        seed,
        rounds,
        allowed,
        margins,
        factorial: None,
        predictions,
        trial: None,
    };
    let minutes = named_experiments.max(1) as i64;
    Ok(Asked {
        request,
        without,
        lacking,
        subjects,
        named,
        quick,
        minutes,
        tags,
        variables,
        variants,
        timeout,
        factors,
    })
}

fn named(experiments: &[&'static str]) -> impl Iterator<Item = &'static Experiment> {
    experiments.iter().filter_map(|name| experiment::find(name))
}

/// Checked labels for a run that is not measured now.
pub fn tags_of(texts: &[String]) -> Result<std::collections::BTreeMap<String, String>> {
    let typed: Vec<_> = texts.iter().map(|text| Typed::on_command_line(text)).collect();
    Ok(words::tags(&typed)?.into_iter().collect())
}

/// The factors of the file; the subjects must be their complete factorial.
fn factors(file: &PlanFile, selection: &Selection, subjects: &[Wanted]) -> Result<Vec<String>> {
    let Some(first) = file.factors.first() else { return Ok(Vec::new()) };
    if !selection.subjects.is_empty() {
        return Err(first.wrong("`factors` apply to the subjects of the file, so `-s` cannot replace them\n\nhint: write the subjects into your own plan file"));
    }
    let names: Vec<String> = file.factors.iter().map(|one| one.text.clone()).collect();
    let layer = |wanted: &Wanted| crate::subject::kind_of(&wanted.spec).map(|kind| kind.layer);
    let with_layers = subjects.iter().map(|wanted| Ok((&wanted.spec, layer(wanted)?)));
    let with_layers: Vec<_> = with_layers.collect::<Result<_>>()?;
    plan::factors::complete(&names, &with_layers).map_err(|why| first.wrong(why))?;
    Ok(names)
}

/// The option that fixes the number of rounds; the command line may have only one.
fn length(selection: &Selection, file: &PlanFile) -> Result<Option<Length>> {
    let precision = |text: &String| Length::Precision(Typed::on_command_line(text));
    let mut own = [
        selection.rounds.map(|rounds| ("--rounds", Length::Rounds(rounds))),
        selection.quick.then_some(("--quick", Length::Quick)),
        selection.precision.as_ref().map(|text| ("--precision", precision(text))),
    ]
    .into_iter()
    .flatten();
    let first = own.next();
    if let (Some((one, _)), Some((other, _))) = (&first, own.next()) {
        return Err(usage(format!(
            "`{one}` and `{other}` each set the number of rounds: `--rounds` to a given number, `--quick` to what fits into a \
             minute, `--precision` to what a pilot finds necessary\n\nhint: leave one out"
        )));
    }
    Ok(first.map(|(_, own)| own).or_else(|| file.length.clone()))
}

/// The `key=value` pairs of the command line, and those of the file with other keys.
fn key_by_key(own: Vec<Typed>, files: &[Typed]) -> Vec<Typed> {
    let key = |one: &Typed| one.text.split('=').next().unwrap_or_default().to_owned();
    let named: Vec<String> = own.iter().map(key).collect();
    own.into_iter().chain(files.iter().filter(|one| !named.contains(&key(one))).cloned()).collect()
}

/// With `--drop-caches`, selects every value of the setting that it guards, unless some were chosen. Fails before anything is
/// measured if caches cannot be dropped here.
fn choose_caches(experiments: &[&'static str], chosen: &mut Vec<Chosen>) -> Result<()> {
    let mut guarded = named(experiments).flat_map(|one| one.guarded);
    let Some(key) = guarded.find(|key| key.name == CACHE) else {
        return Err(usage(format!(
            "`--drop-caches` has no effect, because no experiment of this run has the setting `{CACHE}`\n\nhint: `start`, `command` and `service` have it"
        )));
    };
    if chosen.iter().all(|(own, _)| own != CACHE) {
        chosen.push((CACHE.to_owned(), key.values.iter().map(|value| (*value).to_owned()).collect()));
    }
    let cold = |(own, values): &Chosen| own == CACHE && values.iter().any(|value| value != key.values[0]);
    if chosen.iter().any(cold) { may_empty_caches() } else { Ok(()) }
}

/// Fails with a hint if the page cache cannot be emptied.
pub fn may_empty_caches() -> Result<()> {
    page_cache::may_be_emptied().with_context(|| {
        format!(
            "cannot empty the page cache: `{}` cannot be written to\n\nhint: run dunnage as root outside of containers, or leave out `--drop-caches`",
            page_cache::SWITCH
        )
    })?;
    let state = context::state_directory()?;
    // The directory may not exist yet.
    let in_memory = state.ancestors().find_map(|place| filesystem::is_in_memory(place).ok());
    ensure!(
        in_memory != Some(true),
        "unsupported: a cold cache needs a probe on a disk, and the state directory `{}` is in memory \
         (tmpfs)\n\nhint: set `$DUNNAGE_STATE` to a directory of your own on a disk",
        state.display()
    );
    Ok(())
}

/// A quick run takes few values of each setting that was not chosen.
fn choose_quick_values(experiments: &[&'static str], chosen: &mut Vec<Chosen>) {
    for experiment in named(experiments) {
        let is_guarded = |key: &SettingKey| experiment.guarded.iter().any(|one| one.name == key.name);
        for key in experiment.all_keys() {
            let values = (experiment.quick_values)(key);
            // The default value of a guarded key is not recorded.
            let holds = is_guarded(key) && key.values.first() == values.first();
            if !holds && chosen.iter().all(|(own, _)| own != key.name) {
                let values = values.iter().map(|value| (*value).to_owned());
                chosen.push((plan::key_of(experiment, key), values.collect()));
            }
        }
    }
}

/// A run of all experiments takes no values that the user should name.
fn choose_modest_values(experiments: &[&'static str], chosen: &mut Vec<Chosen>) {
    for experiment in named(experiments) {
        for (key, values) in experiment.modest {
            let name = format!("{}.{key}", experiment.name);
            if chosen.iter().all(|(own, _)| own != key && *own != name) {
                chosen.push((name, values.iter().map(|value| (*value).to_owned()).collect()));
            }
        }
    }
}

/// Leaves out the values that this machine cannot measure, except those of the keys in `by_hand`. Returns them with the
/// reasons.
fn leave_out_lacking(
    experiments: &[&'static str],
    by_hand: &[String],
    chosen: &mut Vec<Chosen>,
) -> Vec<(String, &'static str)> {
    let mut lacking = Vec::new();
    for experiment in named(experiments) {
        for key in experiment.all_keys() {
            let name = plan::key_of(experiment, key);
            let reason = |value: &str| measure::lacking(experiment.name, key.name, value);
            if by_hand.iter().any(|own| *own == name || own == key.name)
                || !key.values.iter().any(|value| reason(value).is_some())
            {
                continue;
            }
            let at = chosen.iter().position(|(own, _)| *own == name).unwrap_or_else(|| {
                chosen.push((name.clone(), key.values.iter().map(|value| (*value).to_owned()).collect()));
                chosen.len() - 1
            });
            for value in chosen[at].1.extract_if(.., |value| reason(value).is_some()) {
                let reason = reason(&value).expect("it was looked up just now");
                lacking.push((format!("{} {}={value}", experiment.name, key.name), reason));
            }
        }
    }
    lacking
}

fn default_subjects(quick: bool) -> Vec<Wanted> {
    let mut all = session::default_subjects();
    if quick {
        all.retain(|wanted| wanted.ladder == Ladder::AsInstalled);
    }
    all
}

/// The factorial among the found subjects, all of which it needs.
fn factorial(asked: &Asked, found: &Found) -> Result<Option<plan::Factorial>> {
    if asked.factors.is_empty() {
        return Ok(None);
    }
    let subjects: Vec<_> = found.entries.iter().map(|entry| (&entry.spec, entry.layer)).collect();
    // The request was complete, so a combination that is missing now does not work here.
    let complete = plan::factors::complete(&asked.factors, &subjects).map_err(|_| {
        let what = "a factorial needs every combination, and some are not available";
        nothing(format!("{what}: {}", reasons(&found.unavailable)))
    })?;
    Ok(Some(complete))
}

/// Why subjects do not work, each reason once, with the remedies as hints.
fn reasons(unavailable: &[(String, Unavailable)]) -> String {
    let reasons = by_cause(unavailable);
    let mut hints = distinct(reasons.iter().flat_map(|told| told.remedies.iter().copied()));
    if hints.is_empty() {
        hints.push("run `dunnage doctor` for details");
    }
    let reasons = listed(reasons.iter().map(|told| format!("{}: {}", told.names, told.reason)), "; ");
    let hints: String = hints.iter().map(|hint| format!("\n\nhint: {hint}")).collect();
    reasons + &hints
}

/// Refuses values that no setting combines, and settings that cannot be measured.
fn some_settings(experiments: &[&'static str], chosen: &[Chosen]) -> Result<()> {
    for experiment in named(experiments) {
        let (name, settings) = (experiment.name, plan::settings(experiment, chosen));
        let refused = |setting: &Setting| Some((setting.to_string(), (experiment.refuses)(setting)?));
        if let Some((setting, why)) = settings.iter().find_map(refused) {
            return Err(usage(format!("`{name}` cannot measure `{setting}`: {why}")));
        }
        if settings.is_empty() {
            return Err(usage(format!(
                "`{name}` has no setting with all of these values\n\nhint: list its settings with `dunnage plan {name}`"
            )));
        }
    }
    Ok(())
}

/// Makes the plan for the found subjects, in the time that their trials left. With `--quick`, leaves out subjects until the run
/// fits in a minute for each named experiment, unless they are a factorial, and returns their labels.
pub fn plan(asked: &Asked, found: &Found) -> Result<(Plan, Vec<String>)> {
    if found.entries.is_empty() {
        let what = "nothing can be measured, because no subject works here";
        return Err(nothing(format!("{what}: {}", reasons(&found.unavailable))));
    }
    let factorial = factorial(asked, found)?;
    let mut entries: Vec<Entry> = found.entries.clone();
    let mut left_out = Vec::new();
    let left = |time: Nanos| Nanos((time.0 - found.took().0).max(0));
    let rounds = match asked.request.rounds {
        Rounds::Fit(time) => Rounds::Fit(left(time)),
        given => given,
    };
    let most = Nanos(QUICK_TIME.0 + (asked.minutes - 1) * MINUTE.0);
    loop {
        let plan = plan::make(Request {
            factorial: factorial.clone(),
            subjects: entries.clone(),
            rounds,
            ..asked.request.clone()
        });
        let fits = plan.predicted() <= left(most) || factorial.is_some();
        if plan.cells.is_empty() {
            let lacking = plan.lacking(&asked.request).into_iter();
            let lacking = lacking.map(|(experiment, label, why)| format!("{experiment} of `{label}`: {why}"));
            return Err(nothing(format!("nothing can be measured: {}", listed(lacking, "; "))));
        }
        let is_other = |one: &Comparison| one.relation == Relation::Twin || one.relation.is_of_settings();
        if matches!(asked.request.rounds, Rounds::Precise(_)) && plan.comparisons.iter().all(is_other) {
            let text = "`--precision` applies to differences from the baseline, and this run has none\n\nhint: set the number of rounds with `--rounds`";
            return Err(usage(text));
        }
        if !asked.quick || fits {
            return Ok((plan, left_out));
        }
        // If it is compared with no other, one subject with its variants is still useful.
        let are_two = |one: &Comparison| one.subject != one.against && plan.is_original(one.subject);
        let least = if plan.comparisons.iter().any(are_two) { 2 } else { 1 };
        let gone = quick::leave_out(&mut entries, least);
        if gone.is_empty() {
            return Ok((plan, left_out));
        }
        left_out.extend(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_and_each_remedy_is_told_once() {
        let missing = || Unavailable::because("not installed").with_remedy("install it");
        let odd = Unavailable::because("odd").with_remedy("fix it");
        let all = [("a".to_owned(), missing()), ("b".to_owned(), odd), ("a:cpus=1".to_owned(), missing())];
        let told = reasons(&all);
        assert_eq!(told, "a, a:cpus=1: not installed; b: odd\n\nhint: install it\n\nhint: fix it");
        let without = reasons(&[("a".to_owned(), Unavailable::because("odd"))]);
        assert_eq!(without, "a: odd\n\nhint: run `dunnage doctor` for details");
    }
}
