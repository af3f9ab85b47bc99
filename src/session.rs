//! Gets a run ready: finds the place for its things, clears what killed runs left, makes the image,
//! finds the subjects and tries each of them once before it is planned with.

use std::path::Path;

use anyhow::{Context, Result};

use crate::image::SmallImage;
use crate::image::rootfs::unpack;
use crate::outcome::Abort;
use crate::plan::{Entry, Ladder};
use crate::subject::{self, Place, Spec, Stage, Subject, Unavailable, stage};
use crate::sweep;
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
    let state = stage::state_directory()?;
    std::fs::create_dir_all(&state).with_context(|| {
        format!(
            "cannot make the state directory `{}`\n\nhint: set `$DUNNAGE_STATE` to a directory that you can write to",
            state.display()
        )
    })?;
    let own = std::fs::read("/proc/self/exe").context("cannot read `/proc/self/exe`")?;
    let image = SmallImage::new(&own);
    let unpacked = unpack(&image, &state)?;
    Ok(Place {
        executable: unpacked.executable(),
        rootfs: unpacked.root().to_owned(),
        reference: image.reference().to_owned(),
        digest: image.executable_digest().hex(),
        state,
    })
}

/// Begins a session: clears what killed runs left, and learns what a bare process sees.
pub fn begin(seed: u64, tell: Tell<'_>) -> Result<Stage> {
    let interrupts = Interrupts::install().context("cannot collect signals")?;
    let place = place()?;
    for line in sweep::abandoned(&place)? {
        tell(&line);
    }
    let mut stage = Stage::begin(place, interrupts, run_name()?, seed)?;
    stage.host = subject::bare::view(&mut stage).map_err(|abort| match abort {
        Abort::Failed(failure) => anyhow::anyhow!("the probe does not work on the host itself: {failure}"),
        Abort::Interrupted => crate::exit::Special::Interrupted.into(),
    })?;
    Ok(stage)
}

/// The subjects of a run without `-s`.
pub fn default_subjects() -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for kind in subject::shown_kinds() {
        let defaults = (kind.defaults)();
        let on = |ladder, specs: Vec<Spec>| specs.into_iter().map(move |spec| Wanted { spec, ladder });
        wanted.extend(on(Ladder::AsInstalled, defaults.as_installed));
        wanted.extend(on(Ladder::Equalised, defaults.equalised));
    }
    wanted
}

/// Finds the wanted subjects, prepares them and tries each: one launch to warm it up, one to learn
/// how long it takes. What fails is listed with its reason. A runtime that an engine takes by
/// default anyway is not listed a second time under its name.
pub fn find(wanted: Vec<Wanted>, stage: &mut Stage, tell: Tell<'_>) -> Result<Found> {
    let mut found = Found::default();
    for Wanted { spec, ladder } in wanted {
        let shown = spec.shown();
        let kind = subject::kind_of(&spec)?;
        let built = (kind.build)(&spec, &stage.place);
        let mut subject = match built {
            Ok(subject) => subject,
            Err(why) => {
                found.unavailable.push((shown, why));
                continue;
            }
        };
        let runtime = subject.facts().runtime.clone();
        if spec.label.is_none() && is_default_runtime(&spec, &found) {
            continue;
        }
        tell(&format!("trying {shown}"));
        match try_out(subject.as_mut(), stage) {
            Ok(launch) => {
                let entry =
                    Entry { label: shown, layer: kind.layer, ladder, twin_of: None, runtime, launch, spec };
                found.candidates.push(Candidate { entry, subject });
            }
            Err(Abort::Failed(failure)) => {
                subject.finish(stage);
                let why = Unavailable::because(failure.to_string());
                found.unavailable.push((shown, with_known_remedy(why)));
            }
            Err(Abort::Interrupted) => {
                subject.finish(stage);
                finish(found.candidates, stage);
                return Err(crate::exit::Special::Interrupted.into());
            }
        }
    }
    Ok(found)
}

/// Whether the same engine without a runtime of one's choice is there already and takes this one.
fn is_default_runtime(spec: &Spec, found: &Found) -> bool {
    let Some(runtime) = &spec.runtime else { return false };
    let plain = Spec { runtime: None, ..spec.clone() };
    found.candidates.iter().any(|one| one.entry.spec == plain && one.entry.runtime.as_ref() == Some(runtime))
}

/// How long a launch takes until all is gone.
fn try_out(subject: &mut dyn Subject, stage: &mut Stage) -> Result<Nanos, Abort> {
    subject.prepare(stage)?;
    subject.launch(stage)?;
    let launch = subject.launch(stage)?;
    Ok(launch.gone.since(launch.spawned))
}

/// A second instance of a subject, for its twin.
pub fn twin(entry: &Entry, stage: &mut Stage) -> Result<Box<dyn Subject>> {
    let kind = subject::kind_of(&entry.spec)?;
    let mut subject =
        (kind.build)(&entry.spec, &stage.place).map_err(|why| anyhow::anyhow!("`{}`: {}", entry.label, why.reason))?;
    match subject.prepare(stage) {
        Ok(()) => Ok(subject),
        Err(Abort::Failed(failure)) => anyhow::bail!("`{}`: {failure}", entry.label),
        Err(Abort::Interrupted) => Err(crate::exit::Special::Interrupted.into()),
    }
}

/// Removes what the subjects prepared.
pub fn finish(candidates: Vec<Candidate>, stage: &mut Stage) {
    for mut candidate in candidates {
        candidate.subject.finish(stage);
    }
}

/// Adds the remedy to failures that we have met before.
fn with_known_remedy(why: Unavailable) -> Unavailable {
    const KNOWN: [(&str, &str); 4] = [
        (
            "drop all controllers",
            "crun refuses a host whose cgroup v2 hierarchy still has controllers beside v1: mount each one left as v1, \
             as in `mkdir /sys/fs/cgroup/hugetlb && mount -t cgroup -o hugetlb cgroup /sys/fs/cgroup/hugetlb`",
        ),
        (
            "setrlimit",
            "the engine may not raise limits here (CAP_SYS_RESOURCE is missing): start it with the host's own",
        ),
        ("permission denied while trying to connect", "join the group `docker`, or run as root"),
        ("no space left", "free some disk space under the engine's storage"),
    ];
    match KNOWN.iter().find(|(words, _)| why.reason.to_lowercase().contains(words)) {
        Some((_, remedy)) => why.with_remedy(*remedy),
        None => why,
    }
}

/// Whether a directory can hold a new run.
pub fn check_output(directory: &Path) -> Result<()> {
    match std::fs::read_dir(directory) {
        Ok(mut entries) if entries.by_ref().next().is_some() => Err(crate::exit::Special::Usage(format!(
            "`{}` is not empty\n\nhint: choose another directory with `-o`, or go on with an unfinished run there with `dunnage resume`",
            directory.display()
        ))
        .into()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot use `{}` for the run", directory.display()))
        }
        _ => Ok(()),
    }
}
