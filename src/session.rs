//! Gets a run ready: finds the place for its things, clears what killed runs left, makes the image,
//! finds the subjects and tries each of them once before it is planned with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::exit::Special;
use crate::host::facts;
use crate::image::{Digest, EXECUTABLE, Image};
use crate::outcome::Abort;
use crate::plan::{Entry, Ladder, Plan};
use crate::record::{Environment, FilterFacts, SubjectFacts, Timer};
use crate::report::text::in_shell;
use crate::runner::Tried;
use crate::subject::{self, Cause, Place, RunContext, Spec, Subject, Unavailable, context, roots};
use crate::sweep;
use crate::sys::clock;
use crate::sys::signals::Interrupts;
use crate::units::Nanos;

/// A run that is got ready and carried out. When it ends, whatever became of it, its subjects go before what it lends to them.
pub struct Session {
    /// The subjects that work, prepared; behind them the second instances of those that have a twin.
    pub subjects: Vec<Box<dyn Subject>>,
    /// What a search for subjects came to.
    pub found: Found,
    /// What the run lends to its subjects.
    pub run: RunContext,
    /// What became of them in rounds so far, those of a pilot among them.
    pub tried: Tried,
}

/// What a search for subjects came to.
#[derive(Debug, Default)]
pub struct Found {
    /// Those that work, as they stand in the plan.
    pub entries: Vec<Entry>,
    /// Those that do not, by what was asked for, with the reason.
    pub unavailable: Vec<(String, Unavailable)>,
}

/// A subject that is wanted, and on which ladder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What.
    pub spec: Spec,
    /// Where it stands.
    pub ladder: Ladder,
    /// Who wants it.
    pub origin: Origin,
    /// The experiments that it is meant for; all where none is named.
    pub only_in: Vec<&'static str>,
    /// What is shown of the subject that it varies in one key.
    pub variant_of: Option<String>,
}

impl Wanted {
    /// A subject that is meant for every experiment.
    pub fn new(spec: Spec, ladder: Ladder, origin: Origin) -> Wanted {
        Wanted { spec, ladder, origin, only_in: Vec::new(), variant_of: None }
    }
}

/// Who wants a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The default list, which holds every runtime of an engine.
    Default,
    /// The person, or a plan.
    Named,
}

/// Eight hexadecimal digits that no other run has.
fn run_name() -> Result<String> {
    let mut bytes = [0u8; 4];
    use std::io::Read;
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read `/dev/urandom`")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A seed by chance.
pub fn random_seed() -> Result<u64> {
    Ok(u64::from_str_radix(&run_name()?, 16)?)
}

/// The state directory, which is made.
fn state() -> Result<PathBuf> {
    let state = context::state_directory()?;
    std::fs::create_dir_all(&state).with_context(|| {
        format!(
            "cannot make the state directory `{}`\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to",
            state.display()
        )
    })?;
    Ok(state)
}

/// Where this process keeps its things, without the image: enough to remove them, and to look. A full disk has room for it.
pub fn place_without_image() -> Result<Place> {
    Ok(Place {
        state: state()?,
        executable: std::env::current_exe().context("cannot find our own executable")?,
        rootfs: PathBuf::new(),
        reference: String::new(),
        digest: String::new(),
    })
}

/// Where this process keeps its things, with the image in it.
pub fn place() -> Result<Place> {
    let state = state()?;
    let own = std::fs::read("/proc/self/exe").context("cannot read `/proc/self/exe`")?;
    place_in(&state, &own).with_context(|| {
        format!(
            "cannot unpack the image in the state directory `{}`\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to, with {:.0} MB free",
            state.display(),
            (own.len() as f64 / 1e6).ceil()
        )
    })
}

/// The hash by which a run names the executable that is its probe: that of this one.
pub fn own_digest() -> Result<String> {
    let own = std::fs::File::open("/proc/self/exe").and_then(|mut own| Digest::of_reader(&mut own));
    Ok(own.context("cannot read `/proc/self/exe`")?.hex())
}

/// A state directory with the image around this executable in it.
pub fn place_in(state: &Path, executable: &[u8]) -> Result<Place> {
    let image = Image::small(executable);
    let rootfs = image.unpack(state, &|| (), &|| true)?;
    Ok(Place {
        state: state.to_owned(),
        executable: rootfs.join(EXECUTABLE.trim_start_matches('/')),
        rootfs,
        reference: image.reference.clone(),
        digest: image.executable_digest.hex(),
    })
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

/// With what would fix it, where that is known. Of a person's own build nobody else can say more.
fn remedied(why: Unavailable, spec: &Spec) -> Unavailable {
    let why = why.with_known_remedy();
    let Some(path) = spec.get("bin").filter(|_| why.remedy.is_none()) else { return why };
    let (name, typed) = (&spec.name, in_shell([path]));
    why.with_remedy(format!("`bin=` is to name a build of {name} that works here: try `{typed} --version`"))
}

/// How often a subject is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Once: whether it works.
    Once,
    /// Once to warm it up, and once to learn how long it takes.
    Twice,
}

impl Session {
    /// Begins a session: clears what killed runs left, and learns what a bare process sees.
    pub fn begin(seed: u64, tell: fn(&str)) -> Result<Session> {
        let interrupts = Interrupts::install().context("cannot collect signals")?;
        let place = place()?;
        for line in sweep::abandoned(&place)? {
            tell(&line);
        }
        let mut run = RunContext::begin(place, interrupts, run_name()?, seed)?;
        run.tell = tell;
        run.host = subject::bare::view(&run).map_err(|abort| match abort {
            Abort::Failed(failure) => {
                anyhow::anyhow!("the probe does not work on the host itself: {failure}")
            }
            Abort::Interrupted => Special::Interrupted.into(),
        })?;
        Ok(Session { run, found: Found::default(), subjects: Vec::new(), tried: Tried::default() })
    }

    /// Prepares the wanted subjects and tries each. What fails is listed with its reason. A runtime that an engine takes by
    /// default anyway is not listed a second time under its name.
    pub fn find(&mut self, wanted: Vec<Wanted>, trial: Trial) -> Result<()> {
        let Session { run, found, subjects, .. } = self;
        let is_foreign = |one: &Wanted| one.spec.name != "bare" && roots::foreign(&one.spec).is_some();
        run.lays_in_the_probe |= wanted.iter().any(is_foreign);
        for Wanted { spec, ladder, origin, only_in, variant_of } in wanted {
            if run.interrupts.pending() {
                return Err(Special::Interrupted.into());
            }
            let label = spec.shown();
            let kind = subject::kind_of(&spec)?;
            if let Some(why) = hung(&spec, found) {
                found.unavailable.push((label, why));
                continue;
            }
            let mut subject = match (kind.build)(&spec, &run.place) {
                Ok(subject) => subject,
                Err(why) => {
                    found.unavailable.push((label, remedied(why, &spec)));
                    continue;
                }
            };
            let runtime = subject.about().facts.runtime.clone();
            if origin == Origin::Default && is_default_runtime(&spec, found) {
                continue;
            }
            (run.tell)(&format!("trying {label}"));
            let tried = match try_out(subject.as_mut(), trial, run) {
                Ok(_) if run.interrupts.asked() => Err(Abort::Interrupted),
                tried => tried,
            };
            match tried {
                Ok(launch) => {
                    let (offers, layer) = (subject.about().offers.to_vec(), kind.layer);
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
                    });
                }
                Err(Abort::Failed(failure)) => {
                    let why = Unavailable::failed(&failure);
                    found.unavailable.push((label, remedied(why, &spec)));
                }
                Err(Abort::Interrupted) => return Err(Special::Interrupted.into()),
            }
        }
        Ok(())
    }

    /// Lets the subjects with these labels go.
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

    /// What a reader must know about this machine and the programs to judge the run.
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
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
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

/// Why the same program, asked in the same way, is not asked once more: it gave no answer before, and
/// every question costs as long as we wait.
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

/// Whether the same engine without a runtime of one's choice is there already and takes this one.
fn is_default_runtime(spec: &Spec, found: &Found) -> bool {
    let Some(runtime) = &spec.runtime else { return false };
    let plain = Spec { runtime: None, ..spec.clone() };
    found.entries.iter().any(|one| one.spec == plain && one.runtime.as_ref() == Some(runtime))
}

/// How long a launch takes until all is gone.
fn try_out(subject: &mut dyn Subject, trial: Trial, run: &RunContext) -> Result<Nanos, Abort> {
    subject.prepare(run)?;
    let mut launch = subject.launch(run)?;
    if trial == Trial::Twice {
        launch = subject.launch(run)?;
    }
    Ok(launch.gone.since(launch.spawned))
}

/// A second instance of a subject, for its twin.
fn twin(entry: &Entry, run: &RunContext) -> Result<Box<dyn Subject>> {
    let kind = subject::kind_of(&entry.spec)?;
    // Under its own label, so that scripted twins follow scripts of their own.
    let spec = Spec { label: Some(entry.label.clone()), ..entry.spec.clone() };
    let mut subject = (kind.build)(&spec, &run.place)
        .map_err(|why| anyhow::anyhow!("`{}`: {}", entry.label, why.reason))?;
    match subject.prepare(run) {
        Ok(()) => Ok(subject),
        Err(Abort::Failed(failure)) => anyhow::bail!("`{}`: {failure}", entry.label),
        Err(Abort::Interrupted) => Err(Special::Interrupted.into()),
    }
}

/// What a subject says of itself, as a run keeps it.
pub fn facts_of(facts: &subject::Facts) -> SubjectFacts {
    let notes = facts.notes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let mut notes: BTreeMap<_, _> = notes.collect();
    notes.extend(facts.runtime.clone().map(|runtime| ("runtime".to_owned(), runtime)));
    SubjectFacts { components: facts.components.clone(), notes }
}
