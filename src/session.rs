//! Prepares a run: finds its state directory, clears leftovers of killed runs, makes the image, finds the subjects and tries
//! each of them before planning.

mod place;

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::exit::{stopped_early, usage};
use crate::host::facts;
use crate::outcome::Abort;
use crate::plan::{Entry, Ladder, Layer, Plan};
use crate::probe::Task;
use crate::probe::inherited::{Inherited, Values};
use crate::probe::message::NOTHING;
use crate::record::{Environment, FilterFacts, SubjectFacts, Timer};
use crate::report::text::{in_shell, meant};
use crate::resource;
use crate::runner::Tried;
use crate::subject::context::CHOOSE_STATE;
use crate::subject::{self, Cause, RunContext, Spec, Subject, Unavailable, roots};
use crate::sweep;
use crate::sys::clock;
use crate::sys::signals::Interrupts;
use crate::units::{Nanos, Stamp};
use crate::variables::without_values;

pub use self::place::{own_digest, place, place_in, place_without_image};

/// A run being prepared and carried out. When it is dropped, its subjects go before the context that they use.
pub struct Session {
    /// The subjects that work, prepared, followed by the second instances of those that have a twin.
    pub subjects: Vec<Box<dyn Subject>>,
    /// The result of the search for subjects.
    pub found: Found,
    /// The context that the subjects use.
    pub run: RunContext,
    /// The outcomes of all rounds so far, including a pilot's.
    pub tried: Tried,
}

/// The result of a search for subjects.
#[derive(Debug)]
pub struct Found {
    /// The subjects that work, as entries of the plan.
    pub entries: Vec<Entry>,
    /// The subjects that do not work, by the requested label, with the reason.
    pub unavailable: Vec<(String, Unavailable)>,
    /// The start of the search.
    pub began: Stamp,
    /// The values of variables inside that were seen, by the numbers that are recorded for them.
    pub values: Values,
}

impl Found {
    /// How long the search and the trials have taken so far.
    pub fn took(&self) -> Nanos {
        clock::now().since(self.began)
    }
}

/// A requested subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The subject.
    pub spec: Spec,
    /// The ladder that it is on.
    pub ladder: Ladder,
    /// Where the request comes from.
    pub origin: Origin,
    /// The experiments that it is for; all if empty.
    pub only_in: Vec<&'static str>,
    /// Those of them in which it is only needed if no earlier subject of its layer works.
    pub spare_in: Vec<&'static str>,
    /// The label of the subject that this one varies in one key.
    pub variant_of: Option<String>,
}

impl Wanted {
    /// A subject for every experiment.
    pub fn new(spec: Spec, ladder: Ladder, origin: Origin) -> Wanted {
        Wanted { spec, ladder, origin, only_in: Vec::new(), spare_in: Vec::new(), variant_of: None }
    }
}

/// The experiments in which a subject of this layer is needed, given those found before it; none if it is not needed at all.
fn needed_in(wanted: &Wanted, layer: Layer, found: &Found) -> Option<Vec<&'static str>> {
    let stands_for_it = |entry: &Entry| match &wanted.variant_of {
        Some(original) => entry.label == *original,
        None => entry.layer == layer && entry.variant_of.is_none(),
    };
    let is_needed = |experiment: &&&'static str| {
        let is_there =
            || found.entries.iter().any(|entry| stands_for_it(entry) && entry.takes_part_in(experiment));
        !wanted.spare_in.contains(experiment) || is_there() == wanted.variant_of.is_some()
    };
    let only_in: Vec<_> = wanted.only_in.iter().filter(is_needed).copied().collect();
    (wanted.only_in.is_empty() || !only_in.is_empty()).then_some(only_in)
}

/// Where a request for a subject comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The default list, which includes every runtime of an engine.
    Default,
    /// The user, or a plan.
    Named,
}

/// Eight random hexadecimal digits, to tell runs apart.
fn run_name() -> Result<String> {
    let mut bytes = [0u8; 4];
    use std::io::Read;
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read `/dev/urandom`")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A random seed.
pub fn random_seed() -> Result<u64> {
    Ok(u64::from_str_radix(&run_name()?, 16)?)
}

/// The subjects of a run without `-s`.
pub fn default_subjects() -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for kind in subject::shown_kinds() {
        let on = |ladder, texts: &[&str]| {
            let one = |text: &&str| {
                let spec = Spec::parse(text).expect("kinds name subjects");
                Wanted::new(spec, ladder, Origin::Default)
            };
            texts.iter().map(one).collect::<Vec<_>>()
        };
        wanted.extend(on(Ladder::AsInstalled, kind.as_installed));
        wanted.extend(on(Ladder::Equalised, kind.equalised));
    }
    wanted
}

/// Adds a remedy if one is known; for a build given with `bin=`, to try that build.
fn remedied(why: Unavailable, spec: &Spec) -> Unavailable {
    let why = why.with_known_remedy();
    let Some(path) = spec.get("bin").filter(|_| why.remedy.is_none()) else { return why };
    let (name, typed) = (&spec.name, in_shell([path]));
    why.with_remedy(format!("name a build of {name} that works here with `bin=`: try `{typed} --version`"))
}

/// Waits until no `dunnage sweep` is running, since it may be about to remove the images that this run would find.
fn wait_for_sweep(interrupts: &Interrupts, tell: fn(&str)) -> Result<()> {
    let mut told = None;
    while let Some(pid) = resource::sweeper() {
        if told.replace(pid) != Some(pid) {
            tell(&format!("waiting for `dunnage sweep` (process {pid}) to end"));
        }
        if interrupts.sleep(Nanos::from_millis(20).0 as u64) {
            return Err(stopped_early());
        }
    }
    Ok(())
}

/// What happens to the leftovers of killed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftovers {
    /// A command that measures removes them.
    Removed,
    /// A command that only looks removes nothing.
    Kept,
}

/// The error for an engine's runtime that is not there and whose name resembles that of a known one.
fn misspelt(spec: &Spec, why: &Unavailable) -> Option<anyhow::Error> {
    let runtime = spec.runtime.as_deref().filter(|name| subject::on_path(name).is_none())?;
    let known = || subject::shown_kinds().filter(|kind| kind.layer == Layer::Runtime).map(|kind| kind.name);
    let meant = meant(runtime, known());
    let is_absent = matches!(why.cause, Cause::NotInstalled | Cause::UnknownRuntime);
    (is_absent && !meant.is_empty() && known().all(|name| name != runtime)).then(|| {
        let (engine, meant) = (&spec.name, meant.replacen('`', &format!("`{}+", spec.name), 1));
        usage(format!(
            "there is no runtime `{runtime}` for `{engine}`\n\nhint: {meant}a runtime of another name must be in `$PATH`, or \
             registered with docker's daemon"
        ))
    })
}

/// How often to try a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Once, to see whether it works.
    Once,
    /// Once to warm it up, and once more to see how long it takes.
    Twice,
}

impl Session {
    /// Begins a session: clears leftovers of killed runs if asked to, and looks at the host from a bare process.
    pub fn begin(seed: u64, leftovers: Leftovers, tell: fn(&str)) -> Result<Session> {
        let began = clock::now();
        let interrupts = Interrupts::install().context("cannot collect signals")?;
        let place = place(&interrupts)?;
        wait_for_sweep(&interrupts, tell)?;
        if leftovers == Leftovers::Removed {
            sweep::abandoned(&place)?.iter().for_each(|line| tell(line));
        }
        let shown = format!("cannot use the state directory `{}`{CHOOSE_STATE}", place.state.display());
        let mut run = RunContext::begin(place, interrupts, run_name()?, seed).context(shown)?;
        run.tell = tell;
        run.host = subject::bare::view(&run).map_err(|abort| match abort {
            Abort::Failed(failure) => {
                anyhow::anyhow!("the probe does not work on the host itself: {failure}")
            }
            Abort::Interrupted => stopped_early(),
        })?;
        let found = Found { entries: Vec::new(), unavailable: Vec::new(), began, values: Values::new() };
        Ok(Session { run, found, subjects: Vec::new(), tried: Tried::default() })
    }

    /// Prepares the requested subjects and tries each. Failures are listed with their reason. An engine's default runtime is not
    /// listed a second time by its name.
    pub fn find(&mut self, wanted: Vec<Wanted>, trial: Trial) -> Result<()> {
        let Session { run, found, subjects, .. } = self;
        let is_foreign = |one: &Wanted| one.spec.name != "bare" && roots::foreign(&one.spec).is_some();
        run.lays_in_the_probe |= wanted.iter().any(is_foreign);
        for wanted in wanted {
            if run.interrupts.pending() {
                return Err(stopped_early());
            }
            let kind = subject::kind_of(&wanted.spec)?;
            let Some(only_in) = needed_in(&wanted, kind.layer, found) else { continue };
            let Wanted { spec, ladder, origin, variant_of, .. } = wanted;
            let label = spec.shown();
            if let Some(why) = hung(&spec, found) {
                found.unavailable.push((label, why));
                continue;
            }
            let mut subject = match (kind.build)(&spec, &run.place) {
                Ok(subject) => subject,
                Err(_) if run.interrupts.asked() => return Err(stopped_early()),
                Err(why) => {
                    if let Some(error) = misspelt(&spec, &why).filter(|_| origin == Origin::Named) {
                        return Err(error);
                    }
                    found.unavailable.push((label, remedied(why, &spec)));
                    continue;
                }
            };
            let runtime = subject.about().facts.runtime.clone();
            if origin == Origin::Default && is_default_runtime(&spec, found) {
                continue;
            }
            (run.tell)(&format!("trying {label}"));
            // Its original has warmed up what they share.
            let trial = if variant_of.is_some() { Trial::Once } else { trial };
            let tried = match try_out(subject.as_mut(), trial, run) {
                Ok(_) if run.interrupts.asked() => Err(Abort::Interrupted),
                tried => tried,
            };
            match tried {
                Ok((launch, inherited)) => {
                    let inherited = inherited.map(|own| own.facts(&mut found.values)).unwrap_or_default();
                    let (offers, layer) = (subject.about().offers.clone(), kind.layer);
                    subjects.push(subject);
                    found.entries.push(Entry {
                        label,
                        layer,
                        ladder,
                        twin_of: None,
                        runtime,
                        launch,
                        spec,
                        offers,
                        only_in,
                        variant_of,
                        inherited,
                    });
                }
                Err(Abort::Failed(failure)) => {
                    let why = Unavailable::failed(&failure);
                    found.unavailable.push((label, remedied(why, &spec)));
                }
                Err(Abort::Interrupted) => return Err(stopped_early()),
            }
        }
        Ok(())
    }

    /// Drops the subjects with these labels.
    pub fn leave_out(&mut self, labels: &[String]) {
        for label in labels {
            if let Some(index) = self.found.entries.iter().position(|entry| entry.label == *label) {
                self.found.entries.remove(index);
                self.subjects.remove(index);
            }
        }
    }

    /// Makes a second instance of each subject that has a twin, in the order of the plan.
    pub fn add_twins(&mut self, plan: &Plan) -> Result<()> {
        for entry in plan.subjects.iter().filter(|entry| entry.twin_of.is_some()) {
            self.subjects.push(twin(entry, &self.run)?);
        }
        Ok(())
    }

    /// What a reader needs to know about the machine and the programs to judge the run.
    pub fn environment(&self) -> Environment {
        let Session { run, found, subjects, .. } = self;
        let labels = found.entries.iter().map(|entry| entry.label.clone());
        let subjects = labels.zip(subjects.iter().map(|subject| facts_of(&subject.about().facts)));
        let unavailable = found.unavailable.iter().map(|(name, why)| {
            let remedy = why.remedy.as_ref().map(|remedy| format!(" (remedy: {remedy})")).unwrap_or_default();
            (name.clone(), format!("{}{remedy}", why.in_short()))
        });
        let words = found.unavailable.iter().filter(|(_, why)| why.in_short() != why.reason);
        let floor = clock::timer_floor();
        Environment {
            dunnage: env!("CARGO_PKG_VERSION").into(),
            probe: run.place.digest.clone(),
            run: run.id.clone(),
            host: facts::host_name().unwrap_or_default(),
            started: jiff::Timestamp::now().to_string(),
            command: without_values(std::env::args_os(), &run.variables),
            asked: Vec::new(),
            tags: BTreeMap::new(),
            machine: facts::told(&run.place.state),
            timer: Timer { step: floor.step.0, cost: floor.cost.0 },
            subjects: subjects.collect(),
            unavailable: unavailable.collect(),
            words: words.map(|(name, why)| (name.clone(), why.reason.clone())).collect(),
            no_cpu_accounting: run.listener.as_ref().err().cloned(),
            filter: run.filter().map(|filter| FilterFacts {
                origin: filter.origin.clone(),
                sha256: filter.sha256.clone(),
                profile: Some(filter.oci.to_string()),
            }),
            origin: None,
        }
    }
}

/// The reason for skipping a subject whose program, asked in the same way, already did not answer: each attempt would wait as
/// long again.
fn hung(spec: &Spec, found: &Found) -> Option<Unavailable> {
    let alike = |other: &Spec| {
        other.name == spec.name
            && ["bin", "host", "rootless"].iter().all(|key| other.get(key) == spec.get(key))
    };
    let asked = found.unavailable.iter().find(|(name, why)| {
        why.cause == Cause::NoAnswer && Spec::parse(name).is_ok_and(|other| alike(&other))
    });
    asked.map(|(_, why)| why.clone())
}

/// Whether the same engine without a chosen runtime was found and uses this runtime.
fn is_default_runtime(spec: &Spec, found: &Found) -> bool {
    let Some(runtime) = &spec.runtime else { return false };
    let plain = Spec { runtime: None, ..spec.clone() };
    found.entries.iter().any(|one| one.spec == plain && one.runtime.as_ref() == Some(runtime))
}

/// How long a launch takes until everything is gone, and what the first one found to be inherited.
fn try_out(
    subject: &mut dyn Subject,
    trial: Trial,
    run: &RunContext,
) -> Result<(Nanos, Option<Inherited>), Abort> {
    subject.prepare(run)?;
    let launches = if trial == Trial::Twice { 2 } else { 1 };
    let shown = subject.about().spec.shown().to_string();
    let mut launch = heard(&shown, run, || subject.fulfil(Task::Inherit.into(), run))?;
    let inherited = launch.message.inside.inherited.take();
    for _ in 1..launches {
        launch = heard(&shown, run, || subject.launch(run))?;
    }
    Ok((launch.gone.since(launch.spawned), inherited))
}

/// A try of something with this name, once more if its output was lost: on a busy machine, engines now and then lose all output of a container that ends at
/// once. In a round that is a failure, but it is no reason to leave the subject out.
pub fn heard<T>(
    name: &str,
    run: &RunContext,
    mut attempt: impl FnMut() -> Result<T, Abort>,
) -> Result<T, Abort> {
    match attempt() {
        Err(Abort::Failed(failure)) if failure.reason.ends_with(NOTHING) => {
            (run.tell)(&format!("trying {name} once more, since {NOTHING}"));
            attempt()
        }
        launched => launched,
    }
}

/// A second instance of a subject, for its twin.
fn twin(entry: &Entry, run: &RunContext) -> Result<Box<dyn Subject>> {
    let kind = subject::kind_of(&entry.spec)?;
    // With its own label, so that scripted twins have their own scripts.
    let spec = Spec { label: Some(entry.label.clone()), ..entry.spec.clone() };
    let mut subject = (kind.build)(&spec, &run.place)
        .map_err(|why| anyhow::anyhow!("`{}`: {}", entry.label, why.reason))?;
    match subject.prepare(run) {
        Ok(()) => Ok(subject),
        Err(Abort::Failed(failure)) => anyhow::bail!("`{}`: {failure}", entry.label),
        Err(Abort::Interrupted) => Err(stopped_early()),
    }
}

/// The facts about a subject that a run keeps.
pub fn facts_of(facts: &subject::Facts) -> SubjectFacts {
    let notes = facts.notes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut notes: BTreeMap<_, _> = notes.collect();
    notes.extend(facts.runtime.clone().map(|runtime| ("runtime".to_owned(), runtime)));
    SubjectFacts { components: facts.components.clone(), notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spare_is_needed_where_none_of_its_layer_works_and_its_variants_where_it_is() {
        let wanted = |text: &str| {
            let spec = Spec::parse(text).unwrap();
            let variant_of = spec.to_string().split_once(':').map(|(original, _)| original.to_owned());
            let wanted = Wanted::new(spec, Ladder::AsInstalled, Origin::Default);
            Wanted { only_in: vec!["start", "cpu"], spare_in: vec!["cpu"], variant_of, ..wanted }
        };
        let found = |texts: &[(&str, &'static str)]| Found {
            entries: texts.iter().map(|(text, only_in)| entry(text, only_in)).collect(),
            unavailable: Vec::new(),
            began: Stamp(0),
            values: Values::new(),
        };
        let needed = |text: &str, found: &Found| needed_in(&wanted(text), Layer::Runtime, found);
        let crun = found(&[("floor", "cpu"), ("crun", "cpu")]);
        assert_eq!(needed("runc", &crun), Some(vec!["start"]));
        assert_eq!(
            needed("runc", &found(&[("floor", "cpu"), ("crun", "start")])),
            Some(vec!["start", "cpu"])
        );
        assert_eq!(needed("runc:seccomp=off", &crun), Some(vec!["start"]));
        assert_eq!(needed("runc:seccomp=off", &found(&[("runc", "cpu")])), Some(vec!["start", "cpu"]));
        let alone = Wanted { only_in: vec!["cpu"], ..wanted("runc") };
        assert_eq!(needed_in(&alone, Layer::Runtime, &crun), None);
        // Who is meant for all is no spare.
        let plain = Wanted { only_in: Vec::new(), spare_in: Vec::new(), ..wanted("runc") };
        assert_eq!(needed_in(&plain, Layer::Runtime, &crun), Some(Vec::new()));
    }

    fn entry(text: &str, only_in: &'static str) -> Entry {
        let spec = Spec::parse(text).unwrap();
        Entry {
            label: text.to_owned(),
            layer: subject::kind_of(&spec).unwrap().layer,
            spec,
            ladder: Ladder::AsInstalled,
            twin_of: None,
            runtime: None,
            launch: Nanos(0),
            offers: Vec::new(),
            only_in: vec![only_in],
            variant_of: None,
            inherited: Default::default(),
        }
    }
}
