//! Gets a run ready: finds the place for its things, clears what killed runs left, makes the image,
//! finds the subjects and tries each of them once before it is planned with.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::host;
use crate::image::SmallImage;
use crate::image::rootfs::unpack;
use crate::outcome::Abort;
use crate::plan::{Entry, Ladder};
use crate::record::{ComponentFacts, Environment, FilterFacts, RoundContext, SubjectFacts, Timer};
use crate::subject::{self, Cause, Place, RunContext, Spec, Subject, Unavailable, context};
use crate::sweep;
use crate::sys::clock;
use crate::sys::signals::Interrupts;
use crate::units::Nanos;

/// A subject that works here.
pub struct Candidate {
    /// As it stands in the plan.
    pub entry: Entry,
    /// Itself, prepared.
    pub subject: Box<dyn Subject>,
}

/// What a search for subjects came to.
#[derive(Default)]
pub struct Found {
    /// Those that work.
    pub candidates: Vec<Candidate>,
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

/// What is told to the person while a session gets ready.
pub type Tell<'a> = &'a mut dyn FnMut(&str);

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

/// Where this process keeps its things, with the image in it.
pub fn place() -> Result<Place> {
    let state = context::state_directory()?;
    std::fs::create_dir_all(&state).with_context(|| {
        format!(
            "cannot make the state directory `{}`\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to",
            state.display()
        )
    })?;
    let own = std::fs::read("/proc/self/exe").context("cannot read `/proc/self/exe`")?;
    let image = SmallImage::new(&own);
    let unpacked = unpack(&image, &state).with_context(|| {
        format!(
            "cannot unpack the image in the state directory `{}`\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to, with {:.0} MB free",
            state.display(),
            (own.len() as f64 / 1e6).ceil()
        )
    })?;
    Ok(Place {
        executable: unpacked.executable(),
        rootfs: unpacked.root().to_owned(),
        reference: image.reference().to_owned(),
        digest: image.executable_digest().hex(),
        state,
    })
}

/// Begins a session: clears what killed runs left, and learns what a bare process sees.
pub fn begin(seed: u64, tell: Tell<'_>) -> Result<RunContext> {
    let interrupts = Interrupts::install().context("cannot collect signals")?;
    let place = place()?;
    for line in sweep::abandoned(&place)? {
        tell(&line);
    }
    let mut run = RunContext::begin(place, interrupts, run_name()?, seed)?;
    run.host = subject::bare::view(&mut run).map_err(|abort| match abort {
        Abort::Failed(failure) => anyhow::anyhow!("the probe does not work on the host itself: {failure}"),
        Abort::Interrupted => crate::exit::Special::Interrupted.into(),
    })?;
    Ok(run)
}

/// Ends a session: nothing of it is left but the image.
pub fn end(run: RunContext) {
    drop(run);
}

/// The subjects of a run without `-s`.
pub fn default_subjects() -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for kind in subject::shown_kinds() {
        let defaults = (kind.defaults)();
        let on = |ladder, specs: Vec<Spec>| {
            specs.into_iter().map(move |spec| Wanted::new(spec, ladder, Origin::Default))
        };
        wanted.extend(on(Ladder::AsInstalled, defaults.as_installed));
        wanted.extend(on(Ladder::Equalised, defaults.equalised));
    }
    wanted
}

/// How often a subject is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// Once: whether it works.
    Once,
    /// Once to warm it up, and once to learn how long it takes.
    Twice,
}

/// Finds the wanted subjects and tries each: one launch to warm it up, one to learn how long it
/// takes.
pub fn find(wanted: Vec<Wanted>, run: &RunContext, tell: Tell<'_>) -> Result<Found> {
    find_by(wanted, Trial::Twice, run, tell)
}

/// The same in half the time, by one launch of each: whether it works, not how long it takes.
pub fn find_working(wanted: Vec<Wanted>, run: &RunContext, tell: Tell<'_>) -> Result<Found> {
    find_by(wanted, Trial::Once, run, tell)
}

/// Prepares the wanted subjects and tries each. What fails is listed with its reason. A runtime that an engine takes by
/// default anyway is not listed a second time under its name.
fn find_by(wanted: Vec<Wanted>, trial: Trial, run: &RunContext, tell: Tell<'_>) -> Result<Found> {
    let mut found = Found::default();
    for Wanted { spec, ladder, origin, only_in, variant_of } in wanted {
        if run.interrupts.pending() {
            finish(found.candidates, run);
            return Err(crate::exit::Special::Interrupted.into());
        }
        let shown = spec.shown();
        let kind = subject::kind_of(&spec)?;
        if let Some(why) = hung(&spec, &found) {
            found.unavailable.push((shown, why));
            continue;
        }
        let built = (kind.build)(&spec, &run.place);
        let mut subject = match built {
            Ok(subject) => subject,
            Err(why) => {
                found.unavailable.push((shown, why.with_known_remedy()));
                continue;
            }
        };
        let runtime = subject.facts().runtime.clone();
        if origin == Origin::Default && is_default_runtime(&spec, &found) {
            continue;
        }
        tell(&format!("trying {shown}"));
        let tried = match try_out(subject.as_mut(), trial, run) {
            Ok(_) if run.interrupts.asked() => Err(Abort::Interrupted),
            tried => tried,
        };
        match tried {
            Ok(launch) => {
                let offers = subject.offers().to_vec();
                let layer = kind.layer;
                let entry = Entry {
                    label: shown,
                    layer,
                    ladder,
                    twin_of: None,
                    runtime,
                    launch,
                    spec,
                    offers,
                    only_in,
                    variant_of,
                };
                found.candidates.push(Candidate { entry, subject });
            }
            Err(Abort::Failed(failure)) => {
                subject.finish(run);
                let why = Unavailable::failed(&failure);
                found.unavailable.push((shown, why.with_known_remedy()));
            }
            Err(Abort::Interrupted) => {
                subject.finish(run);
                finish(found.candidates, run);
                return Err(crate::exit::Special::Interrupted.into());
            }
        }
    }
    Ok(found)
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
    found.candidates.iter().any(|one| one.entry.spec == plain && one.entry.runtime.as_ref() == Some(runtime))
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
pub fn twin(entry: &Entry, run: &RunContext) -> Result<Box<dyn Subject>> {
    let kind = subject::kind_of(&entry.spec)?;
    // Under its own label, so that scripted twins follow scripts of their own.
    let spec = Spec { label: Some(entry.label.clone()), ..entry.spec.clone() };
    let mut subject = (kind.build)(&spec, &run.place)
        .map_err(|why| anyhow::anyhow!("`{}`: {}", entry.label, why.reason))?;
    match subject.prepare(run) {
        Ok(()) => Ok(subject),
        Err(Abort::Failed(failure)) => anyhow::bail!("`{}`: {failure}", entry.label),
        Err(Abort::Interrupted) => Err(crate::exit::Special::Interrupted.into()),
    }
}

/// Removes what the subjects prepared.
pub fn finish(candidates: Vec<Candidate>, run: &RunContext) {
    for mut candidate in candidates {
        candidate.subject.finish(run);
    }
}

/// What a reader must know about this machine and the programs to judge the run.
pub fn environment(run: &RunContext, found: &Found) -> Environment {
    let subjects =
        found.candidates.iter().map(|one| (one.entry.label.clone(), facts_of(one.subject.facts())));
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
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().into(),
        started: jiff::Timestamp::now().to_string(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        asked: Vec::new(),
        tags: BTreeMap::new(),
        machine: machine(&run.place.state),
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

fn facts_of(facts: &subject::Facts) -> SubjectFacts {
    let component = |one: &subject::Component| ComponentFacts {
        role: one.role.into(),
        path: one.path.display().to_string(),
        version: one.version.clone(),
        sha256: one.hash.clone(),
    };
    let mut notes: BTreeMap<_, _> = facts.notes.iter().cloned().collect();
    notes.extend(facts.runtime.clone().map(|runtime| ("runtime".to_owned(), runtime)));
    SubjectFacts { components: facts.components.iter().map(component).collect(), notes }
}

/// Reads, at the end of every round, what the machine was like during it. Rounds are marked by a
/// rule that is fixed in `host`; none is dropped.
pub fn round_context() -> impl FnMut() -> RoundContext {
    let mut watch = host::context::Watch::new();
    move || {
        let context = watch.read();
        RoundContext {
            disturbed: host::context::disturbed(&context),
            steal: context.steal_share,
            busy: context.busy_share,
            load: context.load_1min,
            cpu_pressure: context.cpu_pressure,
            io_pressure: context.io_pressure,
            containers: context.containers.map(u64::from),
            frequency: context.cpu_hertz,
            available_memory: context.available_memory_bytes,
        }
    }
}

/// The machine, by the names that stand in `env.json`. What is not known is left out.
fn machine(state: &Path) -> BTreeMap<String, String> {
    let facts = host::facts::Facts::gather(state);
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let joined = |list: &[String]| list.join(",");
    let mut all: Vec<(&str, Option<String>)> = vec![
        ("kernel", facts.kernel.release.clone()),
        ("kernel_version", facts.kernel.version.clone()),
        ("kernel_command_line", facts.kernel.command_line.clone()),
        ("distribution", facts.distribution.clone()),
        ("architecture", facts.architecture.clone()),
        ("cpu", facts.cpu.model.clone()),
        ("cpu_sockets", number(facts.cpu.sockets)),
        ("cpu_cores", number(facts.cpu.cores)),
        ("cpu_threads", number(facts.cpu.threads)),
        ("cpu_usable", number(facts.cpu.usable)),
        ("memory_bytes", facts.memory_bytes.map(|bytes| bytes.to_string())),
        ("hypervisor", facts.virtualisation.hypervisor.clone()),
        ("inside", facts.containment.kind().map(str::to_owned)),
        ("clock_source", facts.clock_source.clone()),
        ("cgroup_mode", Some(facts.cgroups.mode.name().to_owned())),
        (
            "cgroup_v1_controllers",
            Some(facts.cgroups.v1.iter().map(|one| joined(&one.controllers)).collect::<Vec<_>>().join(",")),
        ),
        (
            "cgroup_v2_controllers",
            facts.cgroups.v2.as_ref().and_then(|v2| v2.controllers.as_deref().map(joined)),
        ),
        ("security_modules", facts.security.modules.as_deref().map(joined)),
        ("user", number(facts.own.user)),
        ("capabilities", facts.own.capabilities.map(|set| format!("{set:#x}"))),
        ("boot_time", facts.boot_time.map(|seconds| seconds.to_string())),
    ];
    let mitigations: Vec<_> = facts
        .kernel
        .mitigations
        .iter()
        .map(|(name, state)| (format!("mitigation_{name}"), state.clone()))
        .collect();
    let storage = facts.storage.iter().map(|one| {
        let device = format!("{} on {} ({})", one.filesystem, one.device, one.options.join(","));
        (format!("storage_{}", one.purpose), format!("{}: {device}", one.path.display()))
    });
    let stated = all.drain(..).filter_map(|(name, value)| Some((name.to_owned(), value?)));
    stated.filter(|(_, value)| !value.is_empty()).chain(mitigations).chain(storage).collect()
}
